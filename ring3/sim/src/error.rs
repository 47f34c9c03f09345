// SPDX-License-Identifier: GPL-2.0
//! How a simulation fails: one line each, with the place in the scenario where there is one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in a scenario file. Lines and columns count from 1; 0:0 is the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Where the values of a map stand, for checks that come after it was read.
#[derive(Debug, Clone, Default)]
pub struct Places {
    whole: Place,
    keys: BTreeMap<String, Place>,
}

impl Places {
    pub fn new(whole: Place, keys: BTreeMap<String, Place>) -> Places {
        Places { whole, keys }
    }

    /// Of something that has no keys of its own.
    pub fn at(whole: Place) -> Places {
        Places::new(whole, BTreeMap::new())
    }

    /// Of a key's value; of the whole map where it has no such key.
    pub fn of(&self, key: &str) -> Place {
        self.keys.get(key).copied().unwrap_or(self.whole)
    }
}

/// What is wrong in a scenario, before its file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub place: Place,
    pub words: String,
}

impl Fault {
    pub fn at(place: Place, words: impl Into<String>) -> Fault {
        let words = words.into();
        Fault { place, words }
    }

    pub fn in_file(self, path: &Path) -> Error {
        Error::Scenario {
            path: path.to_owned(),
            place: self.place,
            words: self.words,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}{words}", in_scenario(path, place))]
    Scenario {
        path: PathBuf,
        place: Place,
        words: String,
    },

    #[error("cannot {what}: {why}")]
    Host { what: String, why: String },

    #[error("{0}")]
    Said(String),

    #[error(transparent)]
    Node(#[from] ring3_node::Error),
}

fn in_scenario(path: &Path, place: &Place) -> String {
    match place.line {
        0 => "from the command line: ".into(),
        _ => format!("{}:{place}: ", path.display()),
    }
}

impl Error {
    pub fn host<E: fmt::Display>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |why| Error::Host {
            what,
            why: why.to_string(),
        }
    }

    /// Whether what was typed or written is at fault, not what happened.
    pub fn is_usage(&self) -> bool {
        matches!(self, Error::Scenario { .. })
    }
}
