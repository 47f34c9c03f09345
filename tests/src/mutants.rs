// SPDX-License-Identifier: GPL-2.0
//! Do the faults that `tools/mutate` plants still fit the sources?
//!
//! A night of `make mutate` that ends with "this changes nothing" would come late: what a line of
//! tests/mutants/list looks for may have moved, or say something else by now.

use crate::exec::{self, End};
use crate::paths;
use libtest_mimic::{Failed, Trial};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

pub fn trial() -> Trial {
    Trial::test("mutants::apply", || apply().map_err(Failed::from))
}

fn apply() -> Result<(), String> {
    let list = paths::root().join("tests/mutants/list");
    let text = std::fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [_, file, what, sed] = line.splitn(4, '\t').collect::<Vec<_>>()[..] else {
            return Err(format!("not PART, FILE, what, sed: {line}"));
        };
        let source = paths::root().join(file);
        let before = std::fs::read_to_string(&source).map_err(|e| format!("{file}: {e}"))?;
        let after = exec::run(Command::new("sed").arg(sed).arg(&source), LIMIT)?;
        if after.end != End::Exit(0) || after.stdout == before {
            wrong.push(format!("{file}: {what}: changes nothing {}", after.stderr));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}
