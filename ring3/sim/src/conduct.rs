// SPDX-License-Identifier: GPL-2.0
//! The conductor: a program on the simulation's node that carries out a plan.
//!
//! It is an ordinary participant, so that its waits are waits in the node's time, real or virtual, and what it does
//! takes its turn like everything else. One thread; it sleeps until the next step is due or a child has ended. What it
//! has to say goes line by line, as JSON, to standard output: [`Word`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::gdb;
use crate::leaf;
use crate::netlink::Asker;
use crate::plan::{Plan, Step, NET, WIRES};
use crate::preempted::{self, Preempted};
use crate::sample::Sampler;
use crate::settle::settle;
use crate::spawn;
use crate::stage::Setup;
use crate::stuck::{self, Moment};
use crate::tools;
use crate::waits;
use crate::words::{nanos, say, Stuck, Word};
use nix::sched::{setns, CloneFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, ClockId};
use nix::unistd::Pid;

mod processes;

/// After so many network namespaces, some half a second's, it is said how far the set-up is.
const MAKING_TURN: usize = 50;
/// How often a run without samples says how far it is, and the least between two such words.
const SILENT_TICKS: u32 = 100;
const SHORTEST_TICK: Duration = Duration::from_millis(100);
/// How long links may take to come up: 20 s with a thousand hosts. In real time nobody waits for that.
const SETTLING: Duration = Duration::from_secs(600);
const SETTLING_REAL: Duration = Duration::from_secs(2);
/// How often connections are looked at for keepalive, where all wait.
const KEPT_TURN: Duration = Duration::from_secs(500);

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
    /// Until when it is known whether a connection has keepalive.
    kept: Option<(Duration, bool)>,
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
        kept: None,
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
    fn is_stuck(&mut self, at: Duration) -> Result<bool> {
        let mut found = self.look(at, waits::QUIET);
        let is_deadlock = |found: &Option<Stuck>| found.as_ref().is_some_and(|it| it.deadlock);
        if is_deadlock(&found) && self.is_kept(at)? {
            found = self.look(at, waits::KEPT);
        }
        let result = is_deadlock(&found);
        if let Some(stuck) = found {
            say(&Word::Stuck(stuck));
        }
        Ok(result)
    }

    fn look(&self, at: Duration, patience: Duration) -> Option<Stuck> {
        let moment = Moment {
            start: self.start,
            at,
            captures: &self.captures,
            late: &stuck::late(&self.plan, &self.running),
            patience,
        };
        stuck::look(&moment, at >= self.plan.stop, |pid| self.host_of(pid))
    }

    /// Whether a connection has keepalive, which may end the wait of all. While all wait the answer stays, and it takes a walk over
    /// all hosts: it is asked for once in a while.
    fn is_kept(&mut self, at: Duration) -> Result<bool> {
        if let Some((_, kept)) = self.kept.filter(|(until, _)| at < *until) {
            return Ok(kept);
        }
        let mut kept = false;
        let names: Vec<String> = self.spaces.keys().cloned().collect();
        for name in names {
            kept = kept
                || self.inside(&name, |_| {
                    let all = Asker::new().and_then(|asker| asker.connections());
                    let all = all.map_err(Error::host("ask for connections"))?;
                    Ok(all.iter().any(|one| one.is_kept))
                })?;
        }
        self.kept = Some((at + KEPT_TURN, kept));
        Ok(kept)
    }

    fn now(&self) -> Duration {
        clock().saturating_sub(self.start)
    }

    fn whole(&mut self) -> Result<()> {
        self.set_up()?;
        self.start = clock();
        let epoch = match self.setup.image {
            Some(_) => self.begin_day()?,
            None => clock_gettime(ClockId::CLOCK_REALTIME).map_or(Duration::ZERO, Duration::from),
        };
        say(&Word::Ready {
            epoch: nanos(epoch),
        });
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
            if over && self.is_stuck(until)? {
                return self.done(until);
            }
            if until >= self.plan.stop {
                return self.done(self.plan.stop);
            }
        }
    }

    /// In virtual time the day began with the node, which has taken a second or more to set up: it begins anew at the start. That
    /// is at a whole second of the node's: what counts from there in seconds, as `ps` does, comes to the same day.
    fn begin_day(&mut self) -> Result<Duration> {
        self.start = Duration::from_secs(clock().as_secs() + 1);
        std::thread::sleep(self.start.saturating_sub(clock()));
        leaf::set_clock(-(nanos(self.start) as i64), None).map_err(Error::host("set the clock"))?;
        Ok(ring3_node::SIM_EPOCH)
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
            preempted: self.preempted()?,
        });
        Ok(())
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
        if self.plan.gdb {
            self.write_hosts()?;
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

    /// Which network namespace is whose.
    fn hosts(&self) -> Result<BTreeMap<u64, String>> {
        let one = |(name, space): (&String, &File)| {
            let meta = space
                .metadata()
                .map_err(Error::host(format!("look at the namespace of {name}")))?;
            Ok((meta.ino(), name.clone()))
        };
        self.spaces.iter().map(one).collect()
    }

    /// The same for a debugger.
    fn write_hosts(&self) -> Result<()> {
        let lines = self.hosts()?;
        let text: String = lines
            .iter()
            .map(|(number, name)| format!("{number} {name}\n"))
            .collect();
        crate::data::write(&self.data.network(gdb::HOSTS), &text)
    }

    fn preempted(&self) -> Result<Vec<Preempted>> {
        if self.plan.preemption.is_none() {
            return Ok(Vec::new());
        }
        let text = match std::fs::read(preempted::FILE) {
            // A program gives itself any name. Linux cuts long ones, also amid a character.
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            // In real time there is no such file, and nobody is preempted by the node.
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(why) => return Err(Error::host(format!("read {}", preempted::FILE))(why)),
        };
        Ok(preempted::of(&text, nanos(self.start), &self.hosts()?))
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
            Step::Clock { space, change } => self.inside(space, |_| {
                leaf::set_clock(change.step, change.drift).map_err(Error::host("set a clock"))
            }),
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
}
