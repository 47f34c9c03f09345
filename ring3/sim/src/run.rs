// SPDX-License-Identifier: GPL-2.0
//! A simulation from its plan to its judgement.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::data::{self, Data};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::preempted::Preempted;
use crate::scenario::Expected;
use crate::stage::{self, Setup};
use crate::stats;
use crate::units::signal_name;
use crate::words::{End, Stuck, Word};

/// How a process of the scenario went. Times are virtual, in nanoseconds.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    pub host: String,
    pub process: String,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    /// `running`, `exited: N`, `signaled: SIGNAL`, `not started`.
    pub state: String,
    pub expected: String,
    pub ok: bool,
}

#[derive(Debug, Serialize)]
pub struct Happening {
    pub at: u64,
    pub what: String,
}

/// What is the same for each run of a scenario with a seed: result.json.
#[derive(Debug, Serialize)]
pub struct Outcomes {
    pub seed: u64,
    /// The scenario's stop time, or that of a deadlock.
    pub stop: u64,
    /// What the hosts' clock of the day says at time 0; captures have that time.
    pub epoch: u64,
    pub ok: bool,
    pub processes: Vec<Outcome>,
    pub events: Vec<Happening>,
    /// Programs that were to end, and waited at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck: Option<Stuck>,
    /// Programs that were preempted while they computed. Another run may differ from here on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preempted: Vec<Preempted>,
}

#[derive(Debug)]
pub struct Report {
    pub outcomes: Outcomes,
    /// Real time of the whole, and what of it went by before time began.
    pub wall: Duration,
    pub set_up: Duration,
}

/// Who is told how far it is.
pub trait Watcher {
    /// So many namespaces of the network have been made.
    fn making(&mut self, _done: usize, _of: usize) {}
    /// A debugger is waited for.
    fn debugger(&mut self) {}
    /// The network is there, time begins.
    fn ready(&mut self) {}
    /// Virtual time has come to here.
    fn tick(&mut self, _at: Duration) {}
    fn event(&mut self, _at: Duration, _label: &str) {}
}

#[derive(Default)]
struct Life {
    started: Option<u64>,
    ended: Option<(u64, End)>,
}

struct Run<'a> {
    plan: &'a Plan,
    lives: Vec<Life>,
    events: Vec<Happening>,
    /// When it was over.
    done: Option<u64>,
    stuck: Option<Stuck>,
    preempted: Vec<Preempted>,
    epoch: u64,
    begun: Instant,
    set_up: Duration,
    failed: Option<String>,
}

/// Runs the plan. The data folder is there.
pub fn run(plan: &Plan, setup: &Setup, watcher: &mut dyn Watcher) -> Result<Report> {
    let start = Instant::now();
    let mut run = Run {
        plan,
        lives: plan.processes.iter().map(|_| Life::default()).collect(),
        events: Vec::new(),
        done: None,
        stuck: None,
        preempted: Vec::new(),
        epoch: 0,
        begun: start,
        set_up: Duration::ZERO,
        failed: None,
    };
    let mut child = stage::first(setup)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Error::host("start the simulation"))?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.map_err(Error::host("hear from the simulation"))?;
            match serde_json::from_str(&line) {
                Ok(word) => run.hear(word, watcher),
                Err(_) => log::debug!("the simulation says: {line}"),
            }
        }
    }
    let status = child
        .wait()
        .map_err(Error::host("wait for the simulation"))?;
    if let Some(what) = run.failed {
        return Err(Error::Said(what));
    }
    let Some(stop) = run.done else {
        return Err(Error::Said(format!(
            "the simulation ended before its time ({status}); what it last said is above"
        )));
    };
    let set_up = run.set_up;
    let outcomes = run.judge(stop);
    let text = serde_json::to_string_pretty(&outcomes).map_err(Error::host("write the result"))?;
    let data = Data::of(plan);
    data::write(&data.path("result.json"), &format!("{text}\n"))?;
    stats::write(&data, plan.hosts.len(), &outcomes)?;
    Ok(Report {
        outcomes,
        wall: start.elapsed(),
        set_up,
    })
}

impl Run<'_> {
    fn hear(&mut self, word: Word, watcher: &mut dyn Watcher) {
        match word {
            Word::Making { done, of } => watcher.making(done, of),
            Word::Debugger => watcher.debugger(),
            Word::Ready { epoch } => {
                self.epoch = epoch;
                self.set_up = self.begun.elapsed();
                watcher.ready();
            }
            Word::Tick { at } => watcher.tick(Duration::from_nanos(at)),
            Word::Event { at, label } => {
                watcher.event(Duration::from_nanos(at), &label);
                self.events.push(Happening { at, what: label });
            }
            Word::Started { at, process, .. } => {
                if let Some(life) = self.lives.get_mut(process) {
                    life.started.get_or_insert(at);
                    life.ended = None;
                }
            }
            Word::Ended { at, process, end } => {
                if let Some(life) = self.lives.get_mut(process) {
                    life.ended = Some((at, end));
                }
            }
            Word::Done { at, preempted, .. } => {
                watcher.tick(Duration::from_nanos(at));
                self.done = Some(at);
                self.preempted = preempted;
            }
            Word::Stuck(stuck) => self.stuck = Some(stuck),
            Word::Failed { at, what } => {
                let at = Duration::from_nanos(at);
                self.failed = Some(format!("at {at:?} of virtual time: {what}"));
            }
        }
    }

    fn judge(self, stop: u64) -> Outcomes {
        let processes: Vec<Outcome> = self
            .plan
            .processes
            .iter()
            .zip(&self.lives)
            .map(|(process, life)| {
                let ok = match (process.expected, life.started, life.ended) {
                    (Expected::Any, ..) => true,
                    (_, None, _) => false,
                    (Expected::Running | Expected::NotFailed, _, None) => true,
                    (Expected::NotFailed, _, Some((_, End::Exited(0)))) => true,
                    (Expected::Exited(want), _, Some((_, End::Exited(got)))) => want == got,
                    (Expected::Signaled(want), _, Some((_, End::Signaled(got)))) => want == got,
                    _ => false,
                };
                Outcome {
                    host: self.plan.hosts[process.host].name.clone(),
                    process: process.label.clone(),
                    started: life.started,
                    ended: life.ended.map(|(at, _)| at),
                    state: state(life),
                    expected: expected(process.expected),
                    ok,
                }
            })
            .collect();
        Outcomes {
            seed: self.plan.seed,
            stop,
            epoch: self.epoch,
            ok: processes.iter().all(|process| process.ok),
            processes,
            events: self.events,
            stuck: self.stuck,
            preempted: self.preempted,
        }
    }
}

fn state(life: &Life) -> String {
    match (life.started, life.ended) {
        (None, _) => "not started".into(),
        (_, None) => "running".into(),
        (_, Some((_, End::Exited(status)))) => format!("exited: {status}"),
        (_, Some((_, End::Signaled(signal)))) => format!("signaled: {}", signal_name(signal)),
    }
}

fn expected(expected: Expected) -> String {
    match expected {
        Expected::Exited(status) => format!("exited: {status}"),
        Expected::Signaled(signal) => format!("signaled: {}", signal_name(signal)),
        Expected::Running => "running".into(),
        Expected::NotFailed => "exited: 0, or running".into(),
        Expected::Any => "any".into(),
    }
}

/// Writes the plan where the stages find it.
pub fn write_plan(plan: &Plan) -> Result<PathBuf> {
    let path = Data::of(plan).network("plan.json");
    let text = serde_json::to_vec(plan).map_err(Error::host("write the plan"))?;
    std::fs::write(&path, text).map_err(Error::host(format!("write {}", path.display())))?;
    Ok(path)
}
