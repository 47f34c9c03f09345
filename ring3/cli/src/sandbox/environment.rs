// SPDX-License-Identifier: GPL-2.0
//! What of the caller's environment leads nowhere in a sandbox, and what programs get in its place.
//!
//! A program that may not see its home folder is told so by its environment: where it finds no settings it does without, and where
//! they may not be read many end.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const TMPDIR: &str = "TMPDIR";
const HOME: &str = "HOME";
/// Folders of settings, caches and sockets. Without them they are below the home folder.
const XDG: [&str; 5] = [
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];
/// Where nobody lives (hier(7) has no such folder; Debian gives it to users without a home).
const NOWHERE: &str = "/nonexistent";

/// A variable, and its value if it has any.
type Change = (&'static str, Option<OsString>);

#[derive(Debug, Clone)]
pub struct Environment {
    /// The sandbox's own folder for temporary files, if it has one.
    tmp: Option<PathBuf>,
}

impl Environment {
    pub fn new(tmp: Option<PathBuf>) -> Environment {
        Environment { tmp }
    }

    /// What is to be changed of an environment. In a process that is confined.
    pub fn changes(&self, value: impl Fn(&str) -> Option<OsString>) -> Vec<Change> {
        let is_hidden = |name: &str| value(name).is_some_and(|it| is_hidden(Path::new(&it)));
        let mut changes: Vec<Change> = Vec::new();
        changes.extend(self.tmp.iter().map(|tmp| (TMPDIR, Some(tmp.into()))));
        if is_hidden(HOME) {
            let home = self.tmp.clone().unwrap_or_else(|| NOWHERE.into());
            changes.push((HOME, Some(home.into())));
        }
        let hidden = XDG.into_iter().filter(|name| is_hidden(name));
        changes.extend(hidden.map(|name| (name, None)));
        changes
    }
}

/// Whether Landlock, or its mode, keeps this process from a folder.
fn is_hidden(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_err_and(|why| why.kind() == ErrorKind::PermissionDenied)
}
