// SPDX-License-Identifier: GPL-2.0
//! Code and machine of a result, kept with it: one report may have results of several runs.

use crate::tool;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::sync::OnceLock;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub commit: String,
    /// The image's version, as `ring3 stat` has it.
    pub image: String,
    /// Whether it was a short run.
    pub quick: bool,
    pub date: String,
    /// The machine's, when the measurement was done.
    pub load: String,
}

impl Stamp {
    pub fn now(quick: bool) -> Stamp {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let root = tool::root().display().to_string();
        Stamp {
            commit: said("git", &["-C", &root, "describe", "--always", "--dirty"]),
            image: image().to_string(),
            quick,
            date: said("date", &["-u", "+%F %H:%M UTC"]),
            load: load.split(' ').next().unwrap_or("?").to_string(),
        }
    }

    /// In what it differs from the run that a report is of, in words; empty: in nothing.
    pub fn differs(&self, run: &Stamp) -> String {
        let mut all = Vec::new();
        if self.commit != run.commit {
            all.push(format!("commit {}", self.commit));
        }
        if self.image != run.image {
            all.push(format!("image {}", self.image));
        }
        match (self.quick, run.quick) {
            (true, false) => all.push("a quick run".to_string()),
            (false, true) => all.push("a full run".to_string()),
            _ => {}
        }
        all.join(", ")
    }

    pub fn is_profiled(&self) -> bool {
        self.image.split(' ').any(|word| word == "profiled")
    }
}

/// The output of a program, or the reason why there is none.
fn said(program: &str, args: &[&str]) -> String {
    tool::output(Command::new(program).args(args)).map_or_else(
        |why| format!("unknown ({})", why.lines().next().unwrap_or("")),
        |text| text.trim().to_string(),
    )
}

/// As a node says it that is up for this.
fn image() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| version().unwrap_or_else(|why| format!("unknown ({why})")))
}

fn version() -> Result<String, String> {
    let name = format!("r3b{}-v", std::process::id());
    tool::output(&mut tool::ring3(&["up", &name]))?;
    let stat = tool::stat(&name);
    tool::output(&mut tool::ring3(&["down", &name]))?;
    stat?["version"]
        .as_str()
        .map(String::from)
        .ok_or_else(|| "ring3 stat names no version".into())
}

#[cfg(test)]
mod tests {
    use super::Stamp;

    fn stamp(commit: &str, image: &str, quick: bool) -> Stamp {
        Stamp {
            commit: commit.into(),
            image: image.into(),
            quick,
            date: "2026-01-01 12:00 UTC".into(),
            load: "0.10".into(),
        }
    }

    #[test]
    fn says_what_differs() {
        let run = stamp("a1", "6.12.1 up profiled", false);
        let mut later = run.clone();
        later.date = "2026-01-02 12:00 UTC".into();
        assert_eq!(later.differs(&run), "");
        let other = stamp("b2", "6.12.1 up", true);
        assert_eq!(
            other.differs(&run),
            "commit b2, image 6.12.1 up, a quick run"
        );
        assert!(run.is_profiled() && !other.is_profiled());
    }
}
