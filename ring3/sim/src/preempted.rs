// SPDX-License-Identifier: GPL-2.0
//! Processes that were preempted while they computed: where they were then depends on the machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// In the node's /proc: kernel/arch/ring3/turn/preempt.c.
pub const FILE: &str = "/proc/ring3_preempted";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preempted {
    pub host: String,
    pub program: String,
    pub process: i32,
    /// How often.
    pub count: u32,
    /// Virtual time of the first, in nanoseconds.
    pub first: u64,
}

/// From the lines of the file. `start` is the simulation's on the node's clock, `hosts` has each host's network namespace.
pub fn of(text: &str, start: u64, hosts: &BTreeMap<u64, String>) -> Vec<Preempted> {
    let one = |line: &str| {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let [net, process, count, first, program] = words[..] else {
            return None;
        };
        let host = hosts.get(&net.parse().ok()?);
        Some(Preempted {
            host: host.map_or("-", String::as_str).to_owned(),
            program: program.to_owned(),
            process: process.parse().ok()?,
            count: count.parse().ok()?,
            first: first.parse::<u64>().ok()?.saturating_sub(start),
        })
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let hosts = BTreeMap::from([(7, "a".to_owned())]);
        let all = of("7 1003 12 5000 a b\n8 1004 1 100 c\n", 1000, &hosts);
        let [a, c] = &all[..] else { panic!("{all:?}") };
        assert_eq!((&*a.host, &*a.program, a.process), ("a", "a b", 1003));
        assert_eq!((a.count, a.first), (12, 4000));
        assert_eq!((&*c.host, c.first), ("-", 0));
    }
}
