// SPDX-License-Identifier: GPL-2.0
//! Faults that the host may cause in a node: the outcomes that docs/security.md promises.

mod clocks;
mod keeper;
mod lost;
mod stops;

use crate::apps::{Checked, Verdict, ensure, trial};
use crate::exec;
use crate::node::{self, Node, SHORT};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("fault_stopped".into(), stops::stopped),
        trial("fault_stopped_traced".into(), stops::stopped_traced),
        trial("fault_stopped_once".into(), stops::stopped_once),
        trial("fault_stopped_signals".into(), stops::stopped_signals),
        trial("fault_stopped_alone".into(), stops::stopped_alone),
        trial("fault_stopped_within".into(), stops::stopped_within),
        trial("fault_stopped_late".into(), stops::stopped_late),
        trial("fault_watcher_stopped".into(), stops::watcher_stopped),
        trial("fault_bystanders".into(), stops::bystanders),
        trial("fault_no_waitv".into(), keeper::no_waitv),
        trial("fault_no_waitv_keeper".into(), keeper::no_waitv_keeper),
        trial(
            "fault_keeper_killed_timers".into(),
            keeper::keeper_killed_timers,
        ),
        trial("fault_crowded_events".into(), keeper::crowded_events),
        trial("fault_tap_removed".into(), lost::tap_removed),
        trial("fault_no_descriptors".into(), lost::no_descriptors),
        trial("fault_suspended".into(), clocks::suspended),
        trial("fault_link_suspended".into(), clocks::link_suspended),
        trial("fault_passt_killed".into(), lost::passt_killed),
        trial("fault_folder_removed".into(), lost::folder_removed),
        trial("fault_clock_step".into(), clocks::clock_step),
        trial("fault_clock_other".into(), clocks::clock_other),
        trial("fault_keeper_late".into(), keeper::keeper_late),
        trial(
            "fault_keeper_stopped_timers".into(),
            keeper::keeper_stopped_timers,
        ),
    ]
}

/// A Python program on a node of its own, which ends within so many seconds, prints this.
fn prints(script: &str, seconds: u64, expected: &str) -> Checked {
    let mut command = node::ring3(["run", "--", "python3", "-c", script]);
    let outcome = exec::run(&mut command, Duration::from_secs(seconds))?;
    ensure(outcome.ok() && outcome.stdout == expected, || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}

/// The output of `ring3 stat --json` for a node.
fn stat(node: &Node) -> Result<Value, String> {
    let outcome = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
    serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))
}

/// The numbers that a program has printed.
fn figures(said: &str) -> Vec<f64> {
    said.split_whitespace()
        .filter_map(|it| it.parse().ok())
        .collect()
}

fn process(pid: &Value) -> Result<Pid, String> {
    let pid = pid.as_i64().and_then(|pid| Pid::from_raw(pid as i32));
    pid.ok_or_else(|| "ring3 stat: no process number".into())
}

fn signal_all(pids: &[Pid], signal: Signal) -> Result<(), String> {
    pids.iter()
        .try_for_each(|pid| kill_process(*pid, signal).map_err(|e| format!("{signal:?}: {e}")))
}
