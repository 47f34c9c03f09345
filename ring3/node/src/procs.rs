// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the host processes of a node, and their deaths
//!
//! The image writes procs[] of the region: an entry appears with SPAWN (a program joined) or CLONE
//! (one forked; its pid may come a moment later), and goes with the last task. Each live process
//! gets a pidfd, whose readiness is the process's death. Two threads handle a death, because the
//! second may have to wait for the first:
//!
//! ```text
//! ring3-deaths   never enters the kernel, so nothing can keep it. It marks the entry DEAD, and
//!                until that is free looks at the vCPU. If the dead process goes on holding
//!                that, it died inside kernel code: the node is poisoned, and every call that
//!                waits fails. If the vCPU was handed to it and not taken up, it is taken back
//! ring3-node     tells the kernel (REAP), which closes the dead one's sockets. This call may
//!                itself be in the hands of a process that dies
//! ```

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{mpsc, Arc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ring3_abi::{RING3_ADOPTS_AFTER, RING3_POISONED, RING3_PROC_FREE, RING3_PROC_LIVE};
use rustix::event::epoll;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use rustix::time::Timespec;

use crate::adopter::Adopter;
use crate::drivers::{event_fd, ring, was_rung, Driver, ProcsWatch};
use crate::error::{Errno, Error, Result};
use crate::image::Thread;
use crate::region::Region;
use crate::vcpu::Grip;

/// A thread that hands the vCPU over writes the new owner first and then announces it; waiters
/// check their owner themselves. A state that lasts longer than this is permanent.
const GRIP_PATIENCE: Duration = Duration::from_millis(100);
/// The same with an adopter, which may have no CPU to notice the death.
const ADOPTED_PATIENCE: Duration = Duration::from_secs(2);
/// When a node's first program has lived this long, or a second one comes, the node gets its
/// adopter.
const ADOPT_AFTER: Duration = Duration::from_millis(200);
/// How often to check the vCPU while the entry of a dead process is not free yet.
const GRIP_TURN: Duration = Duration::from_millis(25);
/// How often to retry a process for which the host refused a pidfd.
const LOOK_TURN: Duration = Duration::from_secs(1);
/// How often to reap a dead process again, of which a task waits. Each time takes the node's thread a second (REAP_PATIENCE in
/// kernel/task.c), in which no program can join.
const REAP_TURN: Duration = Duration::from_secs(5);
/// When the adopter has looked at new processes, for sure.
const SAY_AFTER: Duration = Duration::from_millis(200);
/// It has looked at none before it has started, which may take long on a busy machine: how often to see if it has.
const SAYS_AFTER_START: u32 = 50;
/// After so many processes it pays to make the start of processes cheaper.
const MANY: u64 = 16;
/// ... and after so many times as many again: the node has grown meanwhile.
const MANY_TIMES: u64 = 4;

/// Tokens of the epoll set. A process's token is its index in procs[] and, above these bits, the
/// number of its watch: an event may be about the process that had the entry before.
const INDEX_BITS: u32 = 16;
const STOP: u64 = u64::MAX;
const CHANGED: u64 = u64::MAX - 1;
const ADOPTER: u64 = u64::MAX - 2;

/// A process that is dead, and its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dead {
    index: usize,
    pid: i32,
}

/// How the node gets its adopter.
#[derive(Debug)]
pub(crate) struct Adopts {
    /// The node's socket.
    pub join: PathBuf,
    /// For its first program. Else for its second: the node ends with the first.
    pub at_once: bool,
}

/// The watch over procs[].
#[derive(Debug)]
pub(crate) struct Deaths {
    changes: ProcsWatch,
    driver: Driver,
    stop: Arc<OwnedFd>,
    changed: Arc<OwnedFd>,
}

/// The node's thread's end: processes to reap; `bell` is rung for each.
#[derive(Debug)]
pub(crate) struct Graves {
    queue: mpsc::Receiver<Dead>,
    /// Those whose tasks had not ended in time, and when to try again.
    later: Vec<(Dead, Instant)>,
    pub bell: Arc<OwnedFd>,
}

impl Deaths {
    /// `adopts`: the node gets an adopter.
    pub fn start(region: &Arc<Region>, adopts: Option<Adopts>) -> Result<(Deaths, Graves)> {
        let stop = Arc::new(event_fd()?);
        let changed = Arc::new(event_fd()?);
        let bell = Arc::new(event_fd()?);
        let (tell, queue) = mpsc::channel();
        let mut watch = Watch::new(region.clone(), tell, bell.clone())?;
        if adopts.is_some() {
            region.may_have_tracer();
        }
        watch.adopts = adopts;
        watch.add(&stop, STOP)?;
        watch.add(&changed, CHANGED)?;
        let driver = Driver::start("ring3-deaths", {
            let (stop, changed) = (stop.clone(), changed.clone());
            move || {
                watch.run(&changed);
                drop(stop);
            }
        })?;
        let changes = ProcsWatch::start(region, changed.clone())?;
        let deaths = Deaths {
            changes,
            driver,
            stop,
            changed,
        };
        let later = Vec::new();
        Ok((deaths, Graves { queue, later, bell }))
    }

    /// A process has just joined.
    pub fn look(&self) {
        ring(&self.changed);
    }

    pub fn end(self) -> bool {
        let changes = self.changes.end();
        ring(&self.stop);
        self.driver.end() && changes
    }
}

impl Graves {
    /// Reaps all that are in the queue, and those that could not be reaped before: the first error.
    pub fn reap(&mut self, init: &mut Thread) -> Result<()> {
        let mut result = Ok(());
        while was_rung(&self.bell) {
            let now = Instant::now();
            let is_due = |it: &mut (Dead, Instant)| it.1 <= now;
            let again: Vec<_> = self.later.extract_if(.., is_due).collect();
            while let Ok(dead) = self.queue.try_recv() {
                let done = self.reap_one(dead, false, init);
                result = result.and(done);
            }
            for (dead, _) in again {
                let done = self.reap_one(dead, true, init);
                result = result.and(done);
            }
        }
        result
    }

    fn reap_one(&mut self, dead: Dead, is_again: bool, init: &mut Thread) -> Result<()> {
        // The entry may have been reused by now.
        let now = init.region().proc_entry(dead.index);
        if now.state == RING3_PROC_FREE || now.pid != dead.pid {
            return Ok(());
        }
        let address = init.region().proc_address(dead.index);
        let why = match init.reap(address) {
            Ok(()) | Err(Errno(libc::ESRCH)) => return Ok(()),
            Err(why) => why,
        };
        if let Some(why) = init.region().poison() {
            return Err(Error::Poisoned { why });
        }
        if why != Errno(libc::EBUSY) {
            return Err(Error::node("bury a dead process")(why));
        }
        self.later.push((dead, Instant::now() + REAP_TURN));
        // It was said the first time.
        if !is_again {
            log::warn!(
                "process {} is dead, but a call of it waits for another process, which may be stopped: its sockets stay until that goes on",
                dead.pid
            );
        }
        Ok(())
    }
}

/// The start time of a process, in clock ticks since the host's boot: pid and start time identify
/// one process.
pub(crate) fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // "PID (NAME) STATE ...", where NAME may have anything in it; the time is field 22.
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

/// Why the adopter can't trace a process. A debugger is there on purpose.
fn refusal(pid: i32) -> (log::Level, String) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))
        .map_or("0", str::trim);
    if tracer != "0" {
        return (log::Level::Info, format!("process {tracer} traces it"));
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let why = match scope.trim() {
        "2" | "3" => "the host lets no ordinary user trace programs (kernel.yama.ptrace_scope)",
        _ => "the host refuses to trace it, as it does for processes of other users and with PR_SET_DUMPABLE",
    };
    (log::Level::Warn, why.to_owned())
}

#[derive(Debug)]
struct Watched {
    pid: i32,
    token: u64,
    /// Readable when the process is dead. Closing it takes it out of the epoll set.
    _pidfd: OwnedFd,
}

/// A dead process whose entry is not free yet, its hold on the vCPU, and since when.
#[derive(Debug)]
struct Unburied {
    dead: Dead,
    grip: Grip,
    since: Instant,
    /// When to have it reaped again.
    again: Instant,
}

/// The state of the thread `ring3-deaths`.
struct Watch {
    region: Arc<Region>,
    set: OwnedFd,
    /// By index into procs[].
    watched: HashMap<usize, Watched>,
    /// The number of all watches so far.
    watches: u64,
    /// After so many watches the memory is moved to huge pages, by this thread: programs start all the time.
    huge_at: u64,
    huge: Option<JoinHandle<()>>,
    /// The host refused a pidfd for a process; most likely, descriptors have run out.
    is_to_look_again: bool,
    unburied: Vec<Unburied>,
    /// `None`: there is no adopter, and will be none.
    adopts: Option<Adopts>,
    adopter: Option<(Adopter, OwnedFd)>,
    /// When to start it.
    adopt_at: Option<Instant>,
    /// Processes of which was said that they can't be traced.
    refused: HashSet<(usize, i32)>,
    /// When to look for others.
    say_at: Option<Instant>,
    /// How often to look for an adopter that has just been started.
    says_left: u32,
    tell: mpsc::Sender<Dead>,
    bell: Arc<OwnedFd>,
}

impl Watch {
    fn new(region: Arc<Region>, tell: mpsc::Sender<Dead>, bell: Arc<OwnedFd>) -> Result<Watch> {
        Ok(Watch {
            region,
            set: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(Error::host("watch a node's processes"))?,
            watched: HashMap::new(),
            watches: 0,
            huge_at: MANY,
            huge: None,
            is_to_look_again: false,
            unburied: Vec::new(),
            adopts: None,
            adopter: None,
            adopt_at: None,
            refused: HashSet::new(),
            say_at: None,
            says_left: 0,
            tell,
            bell,
        })
    }

    fn add(&self, fd: impl AsFd, token: u64) -> Result<()> {
        let data = epoll::EventData::new_u64(token);
        epoll::add(&self.set, fd, data, epoll::EventFlags::IN)
            .map_err(Error::host("watch a process of the node"))
    }

    fn run(&mut self, changed: &OwnedFd) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            let turn = match (self.unburied.is_empty(), self.is_to_look_again) {
                (false, _) => Some(GRIP_TURN),
                (true, true) => Some(LOOK_TURN),
                (true, false) => None,
            };
            let adopt_in = self
                .adopt_at
                .map(|at| at.saturating_duration_since(Instant::now()));
            let say_in = self
                .say_at
                .map(|at| at.saturating_duration_since(Instant::now()));
            let turn = turn.into_iter().chain(adopt_in).chain(say_in).min();
            let timeout = turn.and_then(|turn| Timespec::try_from(turn).ok());
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.set, spare, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => {
                    log::error!("deaths of a node's processes go unseen: {why}");
                    return;
                }
            }
            if events.is_empty() && self.is_to_look_again {
                // It was reported when it began.
                let _ = self.look();
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    CHANGED => {
                        was_rung(changed);
                        if let Err(error) = self.look() {
                            log::warn!("{error}");
                        }
                    }
                    ADOPTER => self.adopter_ended(),
                    token => self.died(token),
                }
            }
            self.judge();
            self.see_to_adopter();
            if self.say_at.is_some_and(|at| Instant::now() >= at) {
                self.say_refused();
            }
        }
    }

    /// Starts the adopter when it is time.
    fn see_to_adopter(&mut self) {
        let Some(adopts) = self.adopts.as_ref().filter(|_| self.adopter.is_none()) else {
            self.adopt_at = None;
            return;
        };
        match self.watched.len() {
            // A time that has passed would wake this thread again and again.
            0 => {
                self.adopt_at = None;
                return;
            }
            1 if !adopts.at_once => {
                self.adopt_at = None;
                return;
            }
            1 => drop(
                self.adopt_at
                    .get_or_insert_with(|| Instant::now() + ADOPT_AFTER),
            ),
            _ => self.adopt_at = Some(Instant::now()),
        }
        if self.adopt_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.adopt_at = None;
        let started = Adopter::start(&self.region, &adopts.join);
        match started {
            Ok(Some((adopter, ended))) => {
                if let Err(error) = self.add(&ended, ADOPTER) {
                    log::warn!("{error}");
                }
                self.adopter = Some((adopter, ended));
                self.says_left = SAYS_AFTER_START;
                self.say_at = Some(Instant::now() + SAY_AFTER);
            }
            Ok(None) => self.adopts = None,
            Err(error) => {
                log::warn!("{error}");
                self.adopts = None;
            }
        }
    }

    /// Says once of each process that the adopter may not trace, and why.
    fn say_refused(&mut self) {
        self.say_at = None;
        let region = &self.region;
        if self.says_left > 0 {
            let has_started = region.adopter().is_some();
            self.says_left = if has_started { 0 } else { self.says_left - 1 };
            // One more, for what it has looked at meanwhile.
            if !has_started || region.tracer_pid().is_some() {
                self.say_at = Some(Instant::now() + SAY_AFTER);
            }
        }
        let now: HashSet<_> = region
            .procs()
            .filter(|it| it.state == RING3_PROC_LIVE && region.is_refused(it.index))
            .map(|it| (it.index, it.pid))
            .collect();
        for (_, pid) in now.difference(&self.refused) {
            let (level, why) = refusal(*pid);
            log::log!(
                level,
                "if process {pid} is killed in kernel code, the node fails: {why}"
            );
        }
        self.refused = now;
    }

    fn adopter_ended(&mut self) {
        if let Some((adopter, _)) = self.adopter.take() {
            if !adopter.has_ended() {
                self.adopts = None;
            }
        }
    }

    /// Compares procs[] with the watched processes. Returns the first error, after all were
    /// checked.
    fn look(&mut self) -> Result<()> {
        let own = std::process::id() as i32;
        let region = self.region.clone();
        if self.watches >= self.huge_at && self.huge.as_ref().is_none_or(JoinHandle::is_finished) {
            self.huge_at = MANY_TIMES * self.watches;
            let region = region.clone();
            self.huge = std::thread::Builder::new()
                .name("ring3-huge".into())
                .spawn(move || region.make_huge())
                .ok();
        }
        self.watched.retain(|&index, watched| {
            let now = region.proc_entry(index);
            now.state != RING3_PROC_FREE && now.pid == watched.pid
        });
        self.is_to_look_again = true;
        let mut result = Ok(());
        for entry in region.procs() {
            let known = self.watched.contains_key(&entry.index);
            if known || entry.state != RING3_PROC_LIVE || entry.pid == own {
                continue;
            }
            let Some(pid) = Pid::from_raw(entry.pid).filter(|_| entry.pid > 0) else {
                continue;
            };
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(pidfd) => {
                    self.watches += 1;
                    let token = self.watches << INDEX_BITS | entry.index as u64;
                    self.add(&pidfd, token)?;
                    // For the node's end, when a pid may have been reused.
                    region.set_started(entry.index, started(entry.pid).unwrap_or(0));
                    let watched = Watched {
                        pid: entry.pid,
                        token,
                        _pidfd: pidfd,
                    };
                    self.watched.insert(entry.index, watched);
                }
                Err(rustix::io::Errno::SRCH) => {
                    self.bury(Dead {
                        index: entry.index,
                        pid: entry.pid,
                    });
                }
                Err(why) if result.is_ok() => {
                    result = Err(Error::host("watch a process of the node")(why));
                }
                Err(_) => {}
            }
        }
        self.is_to_look_again = result.is_err();
        if let Some((adopter, _)) = &self.adopter {
            adopter.look();
            if self.says_left == 0 && region.tracer_pid().is_some() {
                self.say_at = Some(Instant::now() + SAY_AFTER);
            }
        }
        result
    }

    /// A pidfd is readable. A killed process can no longer announce its children: look for them.
    fn died(&mut self, token: u64) {
        let index = (token & ((1 << INDEX_BITS) - 1)) as usize;
        let watched = self.watched.get(&index);
        let Some(pid) = watched.filter(|it| it.token == token).map(|it| it.pid) else {
            return;
        };
        self.watched.remove(&index);
        if !self.bury(Dead { index, pid }) {
            return;
        }
        if let Err(error) = self.look() {
            log::warn!("{error}");
        }
    }

    /// False: it has ended in an orderly way, and its entry may have been reused.
    fn bury(&mut self, dead: Dead) -> bool {
        if !self.region.mark_dead(dead.index, dead.pid) {
            return false;
        }
        self.unburied.push(Unburied {
            dead,
            grip: Grip::None,
            since: Instant::now(),
            again: Instant::now() + REAP_TURN,
        });
        let _ = self.tell.send(dead);
        ring(&self.bell);
        true
    }

    /// Checks what dead processes hold of the vCPU.
    fn judge(&mut self) {
        let (region, bell) = (&self.region, &self.bell);
        self.unburied.retain_mut(|it| {
            let Dead { index, pid } = it.dead;
            let now = region.proc_entry(index);
            if now.state == RING3_PROC_FREE || now.pid != pid || region.state() >= RING3_POISONED {
                return false;
            }
            if it.again <= Instant::now() {
                it.again += REAP_TURN;
                ring(bell);
            }
            let grip = region.grip_of(index);
            if grip != it.grip {
                it.grip = grip;
                it.since = Instant::now();
            }
            let patience = match grip {
                Grip::Holds if matches!(region.adopter(), Some((RING3_ADOPTS_AFTER, _))) => {
                    ADOPTED_PATIENCE
                }
                _ => GRIP_PATIENCE,
            };
            if it.since.elapsed() > patience {
                match grip {
                    Grip::None => {}
                    Grip::Baton => region.take_baton_from(index),
                    Grip::Holds => {
                        region.set_poisoned(&format!("process {pid} died inside kernel code"));
                    }
                }
            }
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Image;
    use crate::region::Params;
    use crate::tests::Place;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    fn region(name: &str) -> Arc<Region> {
        let place = Place::new();
        let image = Image::open(Some(&place.fake_image(&[])), 1).unwrap();
        let params = Params {
            name,
            size: 32 << 20,
            cmdline: "",
            spin_ns: 0,
            grace: Duration::ZERO,
            host_cpuid: false,
            seed: 1,
        };
        Arc::new(Region::create(&image, &params, None).unwrap())
    }

    /// An event may be about a process whose entry has been reused: the new process was taken for
    /// dead and reaped.
    #[test]
    fn news_of_who_had_the_entry_before() {
        let region = region("news");
        let (tell, queue) = mpsc::channel();
        let mut watch = Watch::new(region.clone(), tell, Arc::new(event_fd().unwrap())).unwrap();
        let (mut first, mut second) = (sleeper(), sleeper());

        region.set_proc(0, first.id() as i32);
        watch.look().unwrap();
        let stale = watch.watched[&0].token;
        first.kill().unwrap();
        first.wait().unwrap();
        region.set_proc(0, second.id() as i32);
        watch.look().unwrap();
        watch.died(stale);
        assert!(queue.try_recv().is_err());
        assert_eq!(region.proc_entry(0).state, RING3_PROC_LIVE);

        second.kill().unwrap();
        second.wait().unwrap();
        watch.died(watch.watched[&0].token);
        assert_eq!(queue.try_recv().unwrap().pid, second.id() as i32);
    }

    /// A process without a pidfd does not keep others from being watched, and is retried.
    #[test]
    fn one_that_cannot_be_watched() {
        let region = region("one");
        let (tell, _queue) = mpsc::channel();
        let mut watch = Watch::new(region.clone(), tell, Arc::new(event_fd().unwrap())).unwrap();
        let mut child = sleeper();
        // The tid of a thread that leads no process: an error that is not "no such process".
        let (say, said) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            say.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            let _ = ended.recv();
        });
        region.set_proc(0, said.recv().unwrap());
        region.set_proc(1, child.id() as i32);
        assert!(watch.look().is_err());
        assert!(watch.watched.contains_key(&1) && watch.is_to_look_again);
        drop(end);
        thread.join().unwrap();
        region.set_proc(0, child.id() as i32);
        watch.look().unwrap();
        assert!(watch.watched.contains_key(&0) && !watch.is_to_look_again);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
