// SPDX-License-Identifier: GPL-2.0
//! The conductor's look at programs that wait.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::unistd::{getpid, Pid};

use crate::plan::Plan;
use crate::scenario::Expected;
use crate::waits::{self, Waiter};
use crate::words::{Stuck, Waiting};

/// What is known of the simulation when it is looked at.
pub struct Moment<'a> {
    /// When the simulation's time began, on the node's clock.
    pub start: Duration,
    /// The simulation's time.
    pub at: Duration,
    pub captures: &'a [(String, Pid)],
    /// Processes of the plan that have not ended, and were to.
    pub late: &'a [i32],
    /// How long a wait of all is no deadlock yet: [`waits::QUIET`], or [`waits::KEPT`].
    pub patience: Duration,
}

/// Processes of the plan that run, and were to end.
pub fn late(plan: &Plan, running: &BTreeMap<i32, usize>) -> Vec<i32> {
    let is_late = |process: usize| {
        let expected = plan.processes[process].expected;
        matches!(expected, Expected::Exited(_) | Expected::Signaled(_))
    };
    let late = running.iter().filter(|(_, process)| is_late(**process));
    late.map(|(pid, _)| *pid).collect()
}

/// A deadlock, if all programs have waited for each other for longer than that. At the stop time (`last`) what those
/// wait in that were to end. None where none was to, and where the node does not tell.
pub fn look(
    moment: &Moment<'_>,
    last: bool,
    host_of: impl Fn(Pid) -> Option<String>,
) -> Option<Stuck> {
    if moment.late.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(waits::FILE).ok()?;
    let mut others = vec![getpid().as_raw()];
    others.extend(moment.captures.iter().map(|(_, pid)| pid.as_raw()));
    if let Some(waiters) = waits::all_wait(&text, &others) {
        let quiet = moment
            .at
            .saturating_sub(since(moment, waits::since(&waiters)));
        if quiet >= moment.patience {
            return Some(stuck(moment, true, &waiters, host_of));
        }
    }
    let waiters = waits::of(&text, moment.late);
    (last && !waiters.is_empty()).then(|| stuck(moment, false, &waiters, host_of))
}

fn since(moment: &Moment<'_>, on_node: u64) -> Duration {
    Duration::from_nanos(on_node).saturating_sub(moment.start)
}

fn stuck(
    moment: &Moment<'_>,
    deadlock: bool,
    waiters: &[Waiter],
    host_of: impl Fn(Pid) -> Option<String>,
) -> Stuck {
    let named = |waiter: &Waiter| {
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", waiter.pid));
        Waiting {
            host: host_of(Pid::from_raw(waiter.pid)).unwrap_or_else(|| "-".into()),
            program: comm.unwrap_or_default().trim_end().to_owned(),
            process: waiter.pid,
            call: waiter.call.clone(),
            since: since(moment, waiter.since).as_nanos() as u64,
        }
    };
    Stuck {
        at: moment.at.as_nanos() as u64,
        deadlock,
        threads: waiters.iter().map(named).collect(),
    }
}
