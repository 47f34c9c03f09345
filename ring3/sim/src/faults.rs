// SPDX-License-Identifier: GPL-2.0
//! Faults by seed: what befalls a scenario's hosts, and the shortest list of it that still does harm.
//!
//! A fault is one or two events that belong together, such as a crash and the restart after it. The same
//! scenario, kinds and seed give the same list.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::scenario::{Action, Event, Scenario};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Crash,
    Partition,
    Loss,
    Slow,
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Kind, String> {
        match word {
            "crash" => Ok(Kind::Crash),
            "partition" => Ok(Kind::Partition),
            "loss" => Ok(Kind::Loss),
            "slow" => Ok(Kind::Slow),
            _ => Err(format!(
                "`{word}`: crash, partition, loss and slow are known"
            )),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub label: String,
    pub events: Vec<Event>,
}

/// So many faults befall a run at most.
const FAULTS: u64 = 5;
/// Faults begin within this part of the stop time, and are over by its end: a system has to settle before it is judged.
const FROM: f64 = 0.1;
const TO: f64 = 0.7;
/// The shortest and the longest fault, as parts of the stop time.
const SHORTEST: f64 = 0.005;
const LONGEST: f64 = 0.2;

/// The faults of a seed; none where a scenario has nobody to befall.
pub fn faults(scenario: &Scenario, kinds: &[Kind], seed: u64) -> Vec<Fault> {
    let hosts: Vec<&String> = scenario
        .hosts
        .iter()
        .filter(|(_, host)| !host.processes.is_empty())
        .map(|(name, _)| name)
        .collect();
    if hosts.is_empty() || kinds.is_empty() {
        return Vec::new();
    }
    let mut rng = Rng::with_seed(seed);
    let stop = scenario.general.stop_time.as_secs_f64();
    let count = rng.u64(1..=FAULTS);
    let mut made = Vec::new();
    for _ in 0..count {
        let kind = kinds[rng.usize(..kinds.len())];
        let from = stop * (FROM + (TO - FROM) * rng.f64());
        let long = (stop * (SHORTEST + (LONGEST - SHORTEST) * rng.f64())).min(stop * TO - from);
        let (from, to) = (time(from), time(from + long));
        made.extend(fault(kind, &hosts, from, to, &mut rng));
    }
    made
}

/// To the microsecond, which is what is shown.
fn time(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}

fn fault(
    kind: Kind,
    hosts: &[&String],
    from: Duration,
    to: Duration,
    rng: &mut Rng,
) -> Option<Fault> {
    let host = hosts[rng.usize(..hosts.len())].clone();
    let (what, begin, end) = match kind {
        Kind::Crash => (
            format!("{host} is down"),
            Action::Crash(host.clone()),
            Action::Restart(host),
        ),
        Kind::Slow => (
            format!("{host} stands still"),
            Action::Pause(host.clone()),
            Action::Resume(host),
        ),
        Kind::Loss => {
            let share = f64::from(rng.u32(1..=50)) / 100.0;
            (
                format!("{host} loses {:.0} % of what comes", share * 100.0),
                Action::Loss(host.clone(), share),
                Action::Loss(host, 0.0),
            )
        }
        Kind::Partition => {
            if hosts.len() < 2 {
                return None;
            }
            let mut order: Vec<String> = hosts.iter().map(|host| (*host).clone()).collect();
            rng.shuffle(&mut order);
            let mut other = order.split_off(rng.usize(1..order.len()));
            order.sort();
            other.sort();
            (
                format!("{} | {}", order.join(" "), other.join(" ")),
                Action::Partition(vec![order, other]),
                Action::Heal,
            )
        }
    };
    let label = format!(
        "{:.6} s to {:.6} s: {what}",
        from.as_secs_f64(),
        to.as_secs_f64()
    );
    let events = vec![
        Event {
            at: from,
            what: begin,
        },
        Event { at: to, what: end },
    ];
    Some(Fault { label, events })
}

/// Puts the faults among a scenario's own events.
pub fn add(scenario: &mut Scenario, faults: &[Fault]) {
    for fault in faults {
        scenario.events.extend(fault.events.iter().cloned());
    }
    scenario.events.sort_by_key(|event| event.at);
}

/// The shortest list that leaving out one after the other leads to. `fails` says whether a run with these
/// still fails.
pub fn minimize<E>(
    faults: Vec<Fault>,
    mut fails: impl FnMut(&[Fault]) -> Result<bool, E>,
) -> Result<Vec<Fault>, E> {
    let mut kept = faults;
    let mut at = 0;
    while at < kept.len() {
        let mut fewer = kept.clone();
        fewer.remove(at);
        match fails(&fewer)? {
            true => kept = fewer,
            false => at += 1,
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.yaml");
        let text = "general: {stop_time: 100 s}\nhosts: {r: {router: true}}\n\
                    topology: {type: star, hosts: [a, b, c]}\n";
        std::fs::write(&path, text).unwrap();
        let mut scenario = crate::read::scenario(&path, "/bin").unwrap().0;
        let dummy = crate::scenario::Process {
            place: Default::default(),
            name: "x".into(),
            program: "/bin/true".into(),
            args: vec![],
            environment: vec![],
            start: Duration::ZERO,
            shutdown: None,
            expected: crate::scenario::Expected::Any,
        };
        for name in ["a", "b", "c"] {
            scenario
                .hosts
                .get_mut(name)
                .unwrap()
                .processes
                .push(dummy.clone());
        }
        scenario
    }

    const ALL: [Kind; 4] = [Kind::Crash, Kind::Partition, Kind::Loss, Kind::Slow];

    #[test]
    fn a_seed_is_a_list() {
        let scenario = scenario();
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let list = faults(&scenario, &ALL, seed);
            assert_eq!(list, faults(&scenario, &ALL, seed));
            assert!(!list.is_empty());
            for fault in &list {
                let [begin, end] = fault.events.as_slice() else {
                    panic!()
                };
                assert!(
                    begin.at < end.at && end.at <= Duration::from_secs(70),
                    "{fault:?}"
                );
                assert!(
                    !fault.label.contains("hub") && !fault.label.contains("r "),
                    "{fault:?}"
                );
                kinds.insert(format!("{:?}", std::mem::discriminant(&begin.what)));
            }
        }
        assert_eq!(kinds.len(), 4);
        assert_ne!(faults(&scenario, &ALL, 1), faults(&scenario, &ALL, 2));
    }

    #[test]
    fn the_shortest_list() {
        let scenario = scenario();
        let list: Vec<Fault> = (0..4)
            .flat_map(|seed| faults(&scenario, &ALL, seed))
            .collect();
        let needed = [list[1].clone(), list[3].clone()];
        let mut runs = 0;
        let found = minimize(list.clone(), |some| {
            runs += 1;
            Ok::<_, ()>(needed.iter().all(|fault| some.contains(fault)))
        });
        assert_eq!(found.unwrap(), needed);
        assert_eq!(runs, list.len());
    }
}
