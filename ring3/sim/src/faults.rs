// SPDX-License-Identifier: GPL-2.0
//! Faults by seed: what befalls a scenario's hosts, and the shortest list of it that still does harm.
//!
//! A fault is one or two events that belong together, such as a crash and the restart after it, or another order of
//! wake-ups for the whole run. The same scenario, kinds and seed give the same list.

use std::time::Duration;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::scenario::{Action, ClockChange, Event, Scenario};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Crash,
    Partition,
    Loss,
    Slow,
    Clock,
    Schedule,
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(word: &str) -> Result<Kind, String> {
        match word {
            "crash" => Ok(Kind::Crash),
            "partition" => Ok(Kind::Partition),
            "loss" => Ok(Kind::Loss),
            "slow" => Ok(Kind::Slow),
            "clock" => Ok(Kind::Clock),
            "schedule" => Ok(Kind::Schedule),
            _ => Err(format!(
                "`{word}`: crash, partition, loss, slow, clock and schedule are known"
            )),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    pub label: String,
    pub events: Vec<Event>,
    /// Some calls cost up to so much more, at random; zero: none does.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    pub schedule: Duration,
}

/// Faults begin within this part of the stop time, and are over by its end: a system has to settle before it is judged.
const FROM: f64 = 0.1;
const TO: f64 = 0.7;
/// The shortest and the longest fault, as parts of the stop time.
const SHORTEST: f64 = 0.005;
const LONGEST: f64 = 0.2;
/// What a call costs more at most, in powers of ten of a microsecond: from that of a cold cache to that of another
/// program's slice of the processor.
const EXTRA_POWERS: std::ops::RangeInclusive<u32> = 1..=4;

/// How wrong a clock is.
const CLOCK_MS: std::ops::RangeInclusive<u32> = 10..=10_000;

/// The faults of a seed; none where a scenario has nobody to befall.
pub fn faults(scenario: &Scenario, kinds: &[Kind], seed: u64) -> Vec<Fault> {
    let said = &scenario.general.faults;
    let hosts: Vec<&String> = scenario
        .hosts
        .iter()
        .filter(|(name, host)| match said.hosts.is_empty() {
            true => !host.processes.is_empty(),
            false => said.hosts.contains(name),
        })
        .map(|(name, _)| name)
        .collect();
    if hosts.is_empty() || kinds.is_empty() {
        return Vec::new();
    }
    let mut rng = Rng::with_seed(seed);
    let stop = scenario.general.stop_time.as_secs_f64();
    let (first, last) = (
        said.from.map_or(stop * FROM, |at| at.as_secs_f64()),
        said.to.map_or(stop * TO, |at| at.as_secs_f64()),
    );
    let count = rng.u64(1..=said.most);
    let mut made: Vec<Fault> = Vec::new();
    for _ in 0..count {
        let kind = kinds[rng.usize(..kinds.len())];
        if kind == Kind::Schedule {
            // One order is all that a run can have.
            if made.iter().all(|fault| fault.schedule.is_zero()) {
                made.push(order(&mut rng));
            }
            continue;
        }
        let from = first + (last - first) * rng.f64();
        let long = (stop * (SHORTEST + (LONGEST - SHORTEST) * rng.f64())).min(last - from);
        let (from, to) = (time(from), time(from + long));
        made.extend(fault(kind, &hosts, from, to, &mut rng));
    }
    made
}

fn order(rng: &mut Rng) -> Fault {
    let micros = 10u64.pow(rng.u32(EXTRA_POWERS));
    Fault {
        label: format!("another order of wake-ups: some calls take up to {micros} us more"),
        events: Vec::new(),
        schedule: Duration::from_micros(micros),
    }
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
        Kind::Clock => {
            let ms = rng.u32(CLOCK_MS);
            let (step, way) = match rng.bool() {
                true => (i64::from(ms) * 1_000_000, "ahead"),
                false => (-i64::from(ms) * 1_000_000, "behind"),
            };
            let by = |step| {
                let change = ClockChange { step, drift: None };
                Action::Clock(host.clone(), change)
            };
            let label = format!("{host}'s clock is {} s {way}", f64::from(ms) / 1e3);
            (label, by(step), by(-step))
        }
        Kind::Loss => {
            let share = f64::from(rng.u32(1..=50)) / 100.0;
            (
                format!("{host} loses {:.0} % of what comes", share * 100.0),
                Action::Loss(host.clone(), share),
                Action::Loss(host, 0.0),
            )
        }
        // Befalls nobody: order().
        Kind::Schedule => return None,
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
    Some(Fault {
        label,
        events,
        schedule: Duration::ZERO,
    })
}

/// Puts the faults among a scenario's own events.
pub fn add(scenario: &mut Scenario, faults: &[Fault]) {
    for fault in faults {
        scenario.events.extend(fault.events.iter().cloned());
        scenario.general.schedule = scenario.general.schedule.max(fault.schedule);
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
        let mut scenario = crate::read::scenario(&path, "/bin", &[]).unwrap().0;
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

    const ALL: [Kind; 5] = [
        Kind::Crash,
        Kind::Partition,
        Kind::Loss,
        Kind::Slow,
        Kind::Clock,
    ];

    #[test]
    fn whom_and_when() {
        let mut scenario = scenario();
        scenario.general.faults = crate::scenario::FaultPlan {
            hosts: vec!["b".into()],
            from: Some(Duration::from_secs(20)),
            to: Some(Duration::from_secs(30)),
            most: 2,
        };
        for seed in 0..100 {
            let list = faults(&scenario, &ALL[..1], seed);
            assert!((1..=2).contains(&list.len()));
            for fault in &list {
                assert!(fault.label.ends_with("b is down"), "{fault:?}");
                assert!(fault.events[0].at >= Duration::from_secs(20), "{fault:?}");
                assert!(fault.events[1].at <= Duration::from_secs(30), "{fault:?}");
            }
        }
    }

    #[test]
    fn one_order_of_wake_ups() {
        let mut scenario = scenario();
        for seed in 0..50 {
            let list = faults(&scenario, &[Kind::Schedule], seed);
            assert_eq!(list.len(), 1, "{list:?}");
            scenario.general.schedule = Duration::ZERO;
            add(&mut scenario, &list);
            assert_eq!(scenario.general.schedule, list[0].schedule);
            assert!(!list[0].schedule.is_zero());
        }
    }

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
        assert_eq!(kinds.len(), 5);
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
