// SPDX-License-Identifier: GPL-2.0
//! What the conductor says to whoever has started it: lines of JSON on its standard output.

use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::preempted::Preempted;

/// How a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Exited(i32),
    Signaled(i32),
}

/// What the conductor says to whoever has started it. Times are virtual, in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "word", rename_all = "snake_case")]
pub enum Word {
    /// So many of the network's namespaces are there.
    Making {
        done: usize,
        of: usize,
    },
    /// A debugger is waited for.
    Debugger,
    /// The network is there; what the node's clock of the day says then, in nanoseconds.
    Ready {
        epoch: u64,
    },
    Event {
        at: u64,
        label: String,
    },
    Started {
        at: u64,
        process: usize,
        pid: i32,
    },
    Ended {
        at: u64,
        process: usize,
        end: End,
    },
    /// Where time has come to.
    Tick {
        at: u64,
    },
    /// Programs wait that were to end.
    Stuck(Stuck),
    /// The end, at the scenario's stop time or in a deadlock; the processes that had not ended, and those that were preempted.
    Done {
        at: u64,
        running: Vec<usize>,
        preempted: Vec<Preempted>,
    },
    /// A step could not be carried out, which ends the simulation.
    Failed {
        at: u64,
        what: String,
    },
}

/// A thread of a program, and the call in which it waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Waiting {
    pub host: String,
    pub program: String,
    pub process: i32,
    pub call: String,
    /// Its last turn: virtual time, in nanoseconds.
    pub since: u64,
}

/// Programs that wait, and were to end. Times are virtual, in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Stuck {
    pub at: u64,
    /// All programs wait for each other, so long that nothing ends it: the simulation ends. Else these have not ended at
    /// its stop time.
    pub deadlock: bool,
    pub threads: Vec<Waiting>,
}

pub fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

/// One line; a reader that has gone needs none.
pub fn say(word: &Word) {
    if let Ok(mut line) = serde_json::to_vec(word) {
        line.push(b'\n');
        let _ = std::io::stdout().write_all(&line);
    }
}
