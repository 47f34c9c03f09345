// SPDX-License-Identifier: GPL-2.0
//! Known differences: what is expected to differ, exactly how, and why.

use serde::Deserialize;
use std::path::Path;

/// One entry of `known.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Name of the program.
    pub test: String,
    /// Why, for a person.
    pub reason: String,
    /// "root" or "ordinary", where only one of them sees it.
    pub user: Option<User>,
    /// How the node's run ends, when not as the host's: "exit N", "signal N", "timeout".
    pub end: Option<String>,
    /// The differing lines, exactly: `-` the host's, `+` the node's.
    #[serde(default)]
    pub diff: String,
}

/// Who runs the tests.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "lowercase")]
pub enum User {
    Root,
    Ordinary,
}

impl User {
    pub const ALL: [User; 2] = [User::Root, User::Ordinary];

    pub fn current() -> User {
        if rustix::process::geteuid().is_root() {
            User::Root
        } else {
            User::Ordinary
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<Known>,
}

/// Reads the file; an entry without a reason is an error.
pub fn read(path: &Path) -> Result<Vec<Known>, String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(format!("{}: {e}", path.display())),
    };
    let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    for known in &file.known {
        if known.reason.trim().is_empty() {
            return Err(format!(
                "{}: '{}' has no reason",
                path.display(),
                known.test
            ));
        }
        if known.end.is_none() && known.diff.trim().is_empty() {
            return Err(format!(
                "{}: '{}' expects no difference: remove it",
                path.display(),
                known.test
            ));
        }
    }
    Ok(file.known)
}
