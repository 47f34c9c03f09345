// SPDX-License-Identifier: GPL-2.0
//! sim-stats.json, as Shadow writes it: how many objects were made, and how often each call was made.
//!
//! Calls are counted from the trace, so that there are some with `--trace` only. Objects are hosts and processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use crate::data::{self, Data};
use crate::error::{Error, Result};
use crate::run::Outcomes;
use crate::stage::TRACE;

type Counts = BTreeMap<String, u64>;

#[derive(Debug, Serialize)]
struct Objects {
    alloc_counts: Counts,
    dealloc_counts: Counts,
}

#[derive(Debug, Serialize)]
struct Stats {
    objects: Objects,
    syscalls: Counts,
}

/// Writes the file beside the other results.
pub fn write(data: &Data, hosts: usize, outcomes: &Outcomes) -> Result<()> {
    let count = |is: fn(&crate::run::Outcome) -> bool| {
        outcomes.processes.iter().filter(|one| is(one)).count() as u64
    };
    let counts = |hosts: u64, processes: u64| {
        let named = [("Host", hosts), ("Process", processes)];
        named.map(|(name, count)| (name.to_owned(), count)).into()
    };
    let stats = Stats {
        objects: Objects {
            alloc_counts: counts(hosts as u64, count(|one| one.started.is_some())),
            dealloc_counts: counts(hosts as u64, count(|one| one.ended.is_some())),
        },
        syscalls: calls(&data.path(TRACE))?,
    };
    let text = serde_json::to_string_pretty(&stats).map_err(Error::host("write statistics"))?;
    data::write(&data.path("sim-stats.json"), &format!("{text}\n"))
}

/// The third word of each line of a trace, counted; none where there is no trace.
fn calls(path: &Path) -> Result<Counts> {
    let mut counts = Counts::new();
    let file = match File::open(path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(counts),
        other => other.map_err(Error::host(format!("read {}", path.display())))?,
    };
    for line in BufReader::new(file).lines() {
        let line = line.map_err(Error::host(format!("read {}", path.display())))?;
        if let Some(call) = line.split(' ').nth(2) {
            *counts.entry(call.to_owned()).or_default() += 1;
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn each_call_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("calls.trace");
        assert!(calls(&path).unwrap().is_empty());
        let text = "0.1 1000/1 read 5\n0.2 1000/1 write 5\n0.3 1001/2 read 0\n";
        std::fs::write(&path, text).unwrap();
        let counts = calls(&path).unwrap();
        assert_eq!((counts["read"], counts["write"]), (2, 1));
    }
}
