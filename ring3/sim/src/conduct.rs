// SPDX-License-Identifier: GPL-2.0
//! The conductor: a program on the simulation's node that carries out a plan.
//!
//! It is an ordinary participant, so that its waits are waits in the node's time, real or virtual, and what it does
//! takes its turn like everything else. One thread; it sleeps until the next step is due or a child has ended. What it
//! has to say goes line by line, as JSON, to standard output: [`Word`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::leaf;
use crate::plan::{Plan, Step, NET, WIRES};
use crate::sample::Sampler;
use crate::settle::settle;
use crate::spawn;
use crate::stage::Setup;
use crate::stuck::{self, Moment};
use crate::tools;
use crate::words::{nanos, say, End, Word};
use nix::sched::{setns, CloneFlags};
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::time::TimeSpec;
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::time::{clock_gettime, ClockId};
use nix::unistd::Pid;

/// After so many network namespaces, some half a second's, it is said how far the set-up is.
const MAKING_TURN: usize = 50;
/// How often a run without samples says how far it is, and the least between two such words.
const SILENT_TICKS: u32 = 100;
const SHORTEST_TICK: Duration = Duration::from_millis(100);
/// How often, and how long apart, to look whether all processes have ended in the end.
const END_LOOKS: u32 = 500;
const END_TURN: Duration = Duration::from_millis(2);

/// How long links may take to come up: 20 s with a thousand hosts. In real time nobody waits for that.
const SETTLING: Duration = Duration::from_secs(600);
const SETTLING_REAL: Duration = Duration::from_secs(2);

struct Conductor {
    setup: Setup,
    plan: Plan,
    data: Data,
    root: File,
    spaces: BTreeMap<String, File>,
    start: Duration,
    /// Processes of the plan that run, by pid.
    running: BTreeMap<i32, usize>,
    /// Of each host, what has been started on it and not ended by itself.
    started: BTreeMap<usize, Vec<usize>>,
    /// How often each process of the plan has been started.
    starts: BTreeMap<usize, u32>,
    /// The UTS namespaces of what was started on each host.
    worlds: BTreeMap<usize, BTreeSet<PathBuf>>,
    captures: Vec<(String, Pid)>,
    sampler: Option<Sampler>,
}

/// Carries out the plan.
pub fn conduct(setup: &Setup) -> Result<()> {
    let plan = crate::data::read_plan(&setup.plan)?;
    leaf::hear_children().map_err(Error::host("wait for children"))?;
    nix::sys::prctl::set_child_subreaper(true).map_err(Error::host("adopt orphans"))?;
    let root = tools::open("/proc/self/ns/net")?;
    let mut conductor = Conductor {
        setup: setup.clone(),
        data: Data::of(&plan),
        plan,
        root,
        spaces: BTreeMap::new(),
        start: clock(),
        running: BTreeMap::new(),
        started: BTreeMap::new(),
        starts: BTreeMap::new(),
        worlds: BTreeMap::new(),
        captures: Vec::new(),
        sampler: None,
    };
    let result = conductor.whole();
    if let Err(error) = &result {
        say(&Word::Failed {
            at: nanos(conductor.now()),
            what: error.to_string(),
        });
    }
    conductor.end_all();
    result
}

fn clock() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

impl Conductor {
    /// Says what processes wait in that were to end, at the stop time or in a deadlock; whether it is one.
    fn is_stuck(&self, at: Duration) -> bool {
        let moment = Moment {
            start: self.start,
            at,
            captures: &self.captures,
            late: &stuck::late(&self.plan, &self.running),
        };
        let found = stuck::look(&moment, at >= self.plan.stop, |pid| self.host_of(pid));
        let is_deadlock = found.as_ref().is_some_and(|stuck| stuck.deadlock);
        if let Some(stuck) = found {
            say(&Word::Stuck(stuck));
        }
        is_deadlock
    }

    /// The name of the simulated host on which a process runs.
    fn host_of(&self, pid: Pid) -> Option<String> {
        let world = spawn::world_of(pid)?;
        let (host, _) = self.worlds.iter().find(|(_, all)| all.contains(&world))?;
        Some(self.plan.hosts[*host].name.clone())
    }

    fn now(&self) -> Duration {
        clock().saturating_sub(self.start)
    }

    fn whole(&mut self) -> Result<()> {
        self.set_up()?;
        self.start = clock();
        let day = clock_gettime(ClockId::CLOCK_REALTIME).map_or(Duration::ZERO, Duration::from);
        say(&Word::Ready { epoch: nanos(day) });
        let timeline = std::mem::take(&mut self.plan.timeline);
        // Where nothing is sampled, it is still said how far time has come.
        let turn = match self.plan.sample.is_zero() {
            true => (self.plan.stop / SILENT_TICKS).max(SHORTEST_TICK),
            false => self.plan.sample,
        };
        let mut next_sample = turn;
        let mut steps = timeline.iter().peekable();
        loop {
            let mut until = self.plan.stop.min(next_sample);
            if let Some(timed) = steps.peek() {
                until = until.min(timed.at);
            }
            self.wait(until)?;
            while let Some(timed) =
                steps.next_if(|timed| timed.at <= until && timed.at < self.plan.stop)
            {
                if !timed.label.is_empty() {
                    say(&Word::Event {
                        at: nanos(timed.at),
                        label: timed.label.clone(),
                    });
                }
                for step in &timed.steps {
                    self.step(step)?;
                }
            }
            if until == next_sample && until < self.plan.stop {
                if let Some(sampler) = &mut self.sampler {
                    sampler.take(until)?;
                }
                say(&Word::Tick { at: nanos(until) });
                next_sample += turn;
            }
            let over = steps.peek().is_none_or(|timed| timed.at >= self.plan.stop);
            if over && self.is_stuck(until) {
                return self.done(until);
            }
            if until >= self.plan.stop {
                return self.done(self.plan.stop);
            }
        }
    }

    fn done(&mut self, at: Duration) -> Result<()> {
        self.reap()?;
        if let Some(sampler) = &mut self.sampler {
            sampler.take(at)?;
            sampler.finish()?;
        }
        let mut running: Vec<usize> = self.running.values().copied().collect();
        running.sort_unstable();
        say(&Word::Done {
            at: nanos(at),
            running,
        });
        Ok(())
    }

    /// Captures first, which have a turn yet to write what they have; then everything.
    fn end_all(&mut self) {
        if !self.captures.is_empty() {
            std::thread::sleep(END_TURN);
        }
        for (host, pid) in std::mem::take(&mut self.captures) {
            let _ = kill(pid, Signal::SIGKILL);
            if let Ok(WaitStatus::Exited(..)) = waitpid(pid, None) {
                self.capture_failed(&host);
            }
        }
        let worlds: BTreeSet<PathBuf> = self.worlds.values().flatten().cloned().collect();
        // One that is being forked is seen at the next look. What is left then dies with pid 1.
        for _ in 0..END_LOOKS {
            for pid in spawn::processes_in(&worlds) {
                let _ = kill(pid, Signal::SIGKILL);
            }
            loop {
                match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    Ok(WaitStatus::StillAlive) => break,
                    Err(nix::Error::ECHILD) => return,
                    _ => {}
                }
            }
            std::thread::sleep(END_TURN);
        }
    }

    fn wait(&mut self, until: Duration) -> Result<()> {
        loop {
            self.reap()?;
            let now = self.now();
            if now >= until {
                return Ok(());
            }
            let rest = TimeSpec::from_duration(until - now);
            match nix::poll::ppoll(&mut [], Some(rest), Some(SigSet::empty())) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(why) => return Err(Error::host("wait")(why)),
            }
        }
    }

    fn reap(&mut self) -> Result<()> {
        loop {
            let end = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => (pid, End::Exited(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, End::Signaled(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(nix::Error::ECHILD) => return Ok(()),
                Ok(_) | Err(nix::Error::EINTR) => continue,
                Err(why) => return Err(Error::host("wait for a process")(why)),
            };
            self.ended(end.0, end.1);
        }
    }

    fn capture_failed(&self, host: &str) {
        say(&Word::Failed {
            at: nanos(self.now()),
            what: spawn::capture_log(&self.data, host),
        });
    }

    fn ended(&mut self, pid: Pid, end: End) {
        if let Some(i) = self.captures.iter().position(|(_, other)| *other == pid) {
            let (host, _) = self.captures.swap_remove(i);
            return self.capture_failed(&host);
        }
        let Some(process) = self.running.remove(&pid.as_raw()) else {
            return;
        };
        let host = self.plan.processes[process].host;
        if let Some(list) = self.started.get_mut(&host) {
            // What a crash ends is started again with its host, and nothing else.
            if end != End::Signaled(Signal::SIGKILL as i32) {
                list.retain(|other| *other != process);
            }
        }
        say(&Word::Ended {
            at: nanos(self.now()),
            process,
            end,
        });
    }

    fn set_up(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.plan.links);
        tools::batch(&self.data, "ip", "network.ip", &lines)?;
        let spaces = std::mem::take(&mut self.plan.spaces);
        for space in &spaces {
            let file = tools::open(&format!("/run/netns/{}", space.name))?;
            self.spaces.insert(space.name.clone(), file);
        }
        for (done, space) in spaces.iter().enumerate() {
            if done % MAKING_TURN == 0 {
                let of = spaces.len();
                say(&Word::Making { done, of });
            }
            self.inside(&space.name, |this| tools::set_up(&this.data, space))?;
        }
        let most = match self.setup.image {
            Some(_) => SETTLING,
            None => SETTLING_REAL,
        };
        settle(&self.spaces, &self.root, most)?;
        let mut sampler = Sampler::new(&self.data, !self.plan.sample.is_zero())?;
        for host in 0..self.plan.hosts.len() {
            let name = self.plan.hosts[host].name.clone();
            self.inside(&name, |this| {
                sampler.add(&name)?;
                if !this.plan.hosts[host].captures.is_empty() {
                    let capture = spawn::capture(&this.setup, &this.data, &name)?;
                    this.captures.push((name.clone(), capture));
                }
                Ok(())
            })?;
        }
        for name in [NET, WIRES] {
            if self.spaces.contains_key(name) {
                self.inside(name, |_| sampler.add(name))?;
            }
        }
        self.sampler = Some(sampler);
        Ok(())
    }

    /// Does something within a network namespace.
    fn inside<T>(
        &mut self,
        space: &str,
        what: impl FnOnce(&mut Conductor) -> Result<T>,
    ) -> Result<T> {
        let file = self
            .spaces
            .get(space)
            .ok_or_else(|| Error::Said(format!("no network namespace {space}")))?;
        setns(file.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(Error::host(format!("enter {space}")))?;
        let result = what(self);
        setns(self.root.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(Error::host(format!("leave {space}")))?;
        result
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Ip { space, lines } => {
                self.inside(space, |this| tools::batch(&this.data, "ip", "", lines))
            }
            Step::Tc { space, lines } => {
                self.inside(space, |this| tools::batch(&this.data, "tc", "", lines))
            }
            Step::Nft { space, script } => {
                self.inside(space, |this| tools::script(&this.data, "", script))
            }
            Step::Start { process } => self.start(*process),
            Step::Signal { process, signal } => {
                self.signal(*process, *signal);
                Ok(())
            }
            Step::SignalHost { host, signal } => {
                self.signal_host(*host, *signal);
                if *signal == Signal::SIGKILL as i32 {
                    self.reap()?;
                }
                Ok(())
            }
            Step::ForgetSockets { host } => {
                let name = self.plan.hosts[*host].name.clone();
                self.inside(&name, |_| tools::run("ss", &["-K", "-a"], ""))
            }
            Step::Restart { host } => {
                // One that runs needs no start: the host had not crashed, or starts a second time.
                let is_up = |process: &usize| self.running.values().any(|other| other == process);
                let (up, down): (Vec<usize>, Vec<usize>) = self
                    .started
                    .remove(host)
                    .unwrap_or_default()
                    .into_iter()
                    .partition(is_up);
                self.started.insert(*host, up);
                down.into_iter().try_for_each(|process| self.start(process))
            }
        }
    }

    fn start(&mut self, process: usize) -> Result<()> {
        let plan = &self.plan.processes[process];
        let host = plan.host;
        let name = self.plan.hosts[host].name.clone();
        let again = *self
            .starts
            .entry(process)
            .and_modify(|n| *n += 1)
            .or_insert(0);
        let pid = self.inside(&name, |this| {
            spawn::program(
                &this.data,
                &this.plan.hosts[host],
                &this.plan.processes[process],
                again,
            )
        })?;
        self.worlds
            .entry(host)
            .or_default()
            .extend(spawn::world_of(pid));
        self.running.insert(pid.as_raw(), process);
        self.started.entry(host).or_default().push(process);
        say(&Word::Started {
            at: nanos(self.now()),
            process,
            pid: pid.as_raw(),
        });
        Ok(())
    }

    fn signal(&self, process: usize, signal: i32) {
        for (pid, _) in self
            .running
            .iter()
            .filter(|(_, running)| **running == process)
        {
            // It may end just now.
            let _ = Signal::try_from(signal).and_then(|signal| kill(Pid::from_raw(*pid), signal));
        }
    }

    /// All that was started on the host, by us or by what we have started.
    fn signal_host(&self, host: usize, signal: i32) {
        let Some(worlds) = self.worlds.get(&host) else {
            return;
        };
        for pid in spawn::processes_in(worlds) {
            let _ = Signal::try_from(signal).and_then(|signal| kill(pid, signal));
        }
    }
}
