// SPDX-License-Identifier: GPL-2.0
//! `ring3 doctor`: what this host offers, and what ring3 will therefore do.

mod checks;

use serde::Serialize;

use crate::args;
use crate::error::{Failure, Result};
use crate::nodes::print_json;
use crate::say;
use crate::table::{self, Cell, Colour};

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Grade {
    /// As good as it gets.
    Good,
    /// ring3 works, but slower or with less.
    Less,
    /// ring3 does not work without it.
    Missing,
    /// Looked at for the record; this version of ring3 does not use it.
    Unused,
}

/// One thing about the host.
#[derive(Debug, Clone, Serialize)]
struct Check {
    what: &'static str,
    grade: Grade,
    found: String,
    therefore: String,
    remedy: Option<String>,
}

impl Check {
    fn new(what: &'static str, grade: Grade, found: impl Into<String>) -> Check {
        Check {
            what,
            grade,
            found: found.into(),
            therefore: String::new(),
            remedy: None,
        }
    }

    fn therefore(mut self, text: impl Into<String>) -> Check {
        self.therefore = text.into();
        self
    }

    fn remedy(mut self, text: impl Into<String>) -> Check {
        self.remedy = Some(text.into());
        self
    }
}

pub fn doctor(args: &args::Doctor) -> Result<()> {
    let checks = checks::all();
    let usable = checks.iter().all(|check| check.grade != Grade::Missing);
    if args.json {
        print_json(&serde_json::json!({ "usable": usable, "checks": checks }))?;
    } else {
        let rows: Vec<_> = checks.iter().map(row).collect();
        table::print(&["", "WHAT", "FOUND", "THEREFORE"], &rows)?;
        let mut text = String::from("\n");
        for check in &checks {
            if let Some(remedy) = &check.remedy {
                text += &format!("{}: {remedy}\n", check.what);
            }
        }
        text += match usable {
            true => "ring3 works on this host.\n",
            false => "ring3 does not work on this host yet: mend what is marked `no`.\n",
        };
        say::print(text)?;
    }
    match usable {
        true => Ok(()),
        false => Err(Failure::Said),
    }
}

fn row(check: &Check) -> Vec<Cell> {
    let (mark, colour) = match check.grade {
        Grade::Good => ("ok", Colour::Green),
        Grade::Less => ("less", Colour::Yellow),
        Grade::Missing => ("no", Colour::Red),
        Grade::Unused => ("-", Colour::Dim),
    };
    let text_colour = match check.grade {
        Grade::Unused => Colour::Dim,
        _ => Colour::Plain,
    };
    vec![
        Cell(mark.to_owned(), colour),
        Cell(check.what.to_owned(), Colour::Bold),
        Cell(check.found.clone(), text_colour),
        Cell(check.therefore.clone(), text_colour),
    ]
}
