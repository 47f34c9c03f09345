// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a node and the programs that it starts with, and starting them again
//!
//! ```text
//! --restart not given   one process keeps the node, and ends when that has failed and its programs have ended
//! --restart             a supervisor, whose child keeps the node and ends when that has failed
//! --foreground          the same two, but the process that was called is the first of them
//! ```
//!
//! The supervisor makes no thread, so that it may fork. Whoever was left by a keeper that was killed, its
//! undertaker among them, becomes the supervisor's child (PR_SET_CHILD_SUBREAPER): when all are gone, nothing has the
//! node's memory, ports or names any more, and it can come up again.

use std::os::fd::AsFd;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::prctl;
use nix::sys::resource::{getrlimit, Resource};
use nix::sys::signal::{kill, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use ring3_config::{NodeConfig, Restart};
use ring3_node::client::Client;
use ring3_node::{ended, raise_descriptor_limit, Folder, NodeHandle};

use crate::error::{Failure, Result};
use crate::program::Program;
use crate::up::Caller;
use crate::{leaf, names, notify, say};

/// Signals that take a node down.
const ENDING: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
/// Exit code of a keeper whose node failed after it had been up.
const FAILED_LATER: i32 = 3;
/// Before something is started again; twice as long each time, until it lasts.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A node that has been up for so long counts as well started.
const LASTS: Duration = Duration::from_secs(10);
/// So many times in a row a node that does not last is started again.
const TRIES: u32 = 6;

/// A node, and what runs on it from the beginning.
pub struct Job {
    config: NodeConfig,
    programs: Vec<Program>,
    is_foreground: bool,
}

impl Job {
    /// Finds the programs, so that mistakes are reported before a node is made for them.
    pub fn new(config: NodeConfig, is_foreground: bool) -> Result<Job> {
        let programs = config.programs.iter().map(|command| Program::find(command));
        Ok(Job {
            programs: programs.collect::<Result<_>>()?,
            config,
            is_foreground,
        })
    }

    /// Keeps the node until it is taken down. The status to exit with; everything was said.
    pub fn carry_out(&self, caller: Option<Caller>) -> i32 {
        let status = match self.config.restart {
            Restart::No => self.keep(caller),
            Restart::OnFailure | Restart::Always => match self.supervise(caller) {
                Ok(status) => status,
                Err(failure) => {
                    say::complain(failure);
                    1
                }
            },
        };
        i32::from(status != 0)
    }

    fn supervise(&self, mut caller: Option<Caller>) -> Result<i32> {
        let fail = |what: &str| {
            let what = what.to_owned();
            move |why: nix::Error| Failure::host(what)(why.into())
        };
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGCHLD);
        ENDING.iter().for_each(|signal| signals.add(*signal));
        let before = signals
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .map_err(fail("hold signals back"))?;
        prctl::set_child_subreaper(true).map_err(fail("take children over"))?;
        let (mut pause, mut tries) = (PAUSE, 0);
        loop {
            let began = Instant::now();
            let is_first = tries == 0 && caller.is_some();
            let Some(keeper) = leaf::fork_child().map_err(fail("start a process"))? else {
                // The keeper sets its own signal mask.
                let _ = before.thread_set_mask();
                std::process::exit(self.keep(caller.take()));
            };
            drop(caller.take());
            let (status, told) = wait_for_all(keeper, &signals)?;
            match status {
                _ if told => return Ok(0),
                Some(WaitStatus::Exited(_, 0)) => return Ok(0),
                Some(WaitStatus::Exited(_, 1)) if is_first => return Ok(1),
                _ => {}
            }
            if began.elapsed() > LASTS {
                (pause, tries) = (PAUSE, 0);
            }
            tries += 1;
            let name = &self.config.name;
            if tries >= TRIES {
                say::complain(format_args!(
                    "node `{name}` failed {tries} times in a row: given up"
                ));
                return Ok(1);
            }
            say::complain(format_args!(
                "node `{name}` has failed: it is started again"
            ));
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// One life of the node.
    fn keep(&self, caller: Option<Caller>) -> i32 {
        let mut caller = caller;
        let mut was_up = false;
        match self.live(&mut caller, &mut was_up) {
            Ok(()) => 0,
            Err(failure) => {
                match caller {
                    Some(caller) => caller.failed(&failure),
                    None => say::complain(failure),
                }
                if was_up {
                    FAILED_LATER
                } else {
                    1
                }
            }
        }
    }

    fn live(&self, caller: &mut Option<Caller>, was_up: &mut bool) -> Result<()> {
        let fail = |e: nix::Error| Failure::host("watch for signals")(e.into());
        let mut set = SigSet::empty();
        ENDING.iter().for_each(|signal| set.add(*signal));
        let ending = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(fail)?;
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let ended_children =
            SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
                .map_err(fail)?;
        set.add(Signal::SIGCHLD);
        let mask = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(fail)?;
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE)
            .map_err(|why| Failure::host("ask for the limit of descriptors")(why.into()))?;
        raise_descriptor_limit();
        let mut give_up = vec![ending.as_fd()];
        give_up.extend(caller.iter().map(Caller::fd));
        let node = NodeHandle::start_unless(self.config.clone(), &give_up)?;
        let mut running = Vec::new();
        for program in &self.programs {
            let child = program.spawn_listed(node.join_path(), mask, descriptors)?;
            running.push(Running::new(program, child));
        }
        if let Some(caller) = caller.take() {
            // A caller that is gone was interrupted, and does not want the node.
            if !caller.ready() {
                return node.down().map_err(Failure::from);
            }
        }
        if self.is_foreground {
            if names::has_neighbours(&self.config) {
                names::introduce(&self.config.name);
            }
            notify::ready();
        }
        *was_up = true;
        loop {
            let due = running.iter().filter_map(Running::time_left).min();
            let limit = due.map_or(PollTimeout::NONE, |left| {
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            });
            let (ended, failed) = (node.ended_fd(), node.failed_fd());
            let mut fds = [
                PollFd::new(ending.as_fd(), PollFlags::POLLIN),
                PollFd::new(ended.as_fd(), PollFlags::POLLIN),
                PollFd::new(ended_children.as_fd(), PollFlags::POLLIN),
                PollFd::new(failed.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, limit) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(why) => return Err(fail(why)),
            }
            let is_ready = |at: usize| fds.get(at).and_then(PollFd::any).unwrap_or(false);
            let has_failed = is_ready(3);
            if is_ready(0) || is_ready(1) || has_failed {
                drop((ended, failed));
                if has_failed && self.config.restart == Restart::No {
                    self.record_end();
                }
                return node.down().map_err(Failure::from);
            }
            while let Ok(Some(_)) = ended_children.read_signal() {}
            if node.poison().is_none() {
                for it in &mut running {
                    it.look(self.config.restart);
                    it.start_if_due(|program| {
                        program.spawn_listed(node.join_path(), mask, descriptors)
                    });
                }
            }
        }
    }
}

impl Job {
    /// Leaves word of a node that has failed, for whoever looks for it.
    fn record_end(&self) {
        let name = &self.config.name;
        let last = Folder::open().and_then(|folder| {
            let status = Client::find(folder.clone(), name)?.status()?;
            ended::record(&folder, &status)
        });
        if let Err(why) = last {
            say::complain(format_args!("what became of node `{name}`: {why}"));
        }
    }
}

/// One of the node's programs.
struct Running<'a> {
    program: &'a Program,
    child: Option<Child>,
    since: Instant,
    pause: Duration,
    /// When it is to be started again.
    due: Option<Instant>,
}

impl<'a> Running<'a> {
    fn new(program: &'a Program, child: Child) -> Running<'a> {
        Running {
            program,
            child: Some(child),
            since: Instant::now(),
            pause: PAUSE,
            due: None,
        }
    }

    fn time_left(&self) -> Option<Duration> {
        self.due
            .map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Has it ended, and is it to be started again?
    fn look(&mut self, restart: Restart) {
        let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) else {
            return;
        };
        self.child = None;
        let again = match restart {
            Restart::No => false,
            Restart::OnFailure => !status.success(),
            Restart::Always => true,
        };
        let then = if again { ": it is started again" } else { "" };
        if again || !status.success() {
            say::complain(format_args!(
                "{} ended, {status}{then}",
                self.program.name()
            ));
        }
        if again {
            if self.since.elapsed() > LASTS {
                self.pause = PAUSE;
            }
            self.due = Some(Instant::now() + self.pause);
            self.pause = (2 * self.pause).min(PAUSE_MAX);
        }
    }

    fn start_if_due(&mut self, start: impl FnOnce(&Program) -> Result<Child>) {
        if self.time_left() != Some(Duration::ZERO) {
            return;
        }
        self.since = Instant::now();
        match start(self.program) {
            Ok(child) => (self.child, self.due) = (Some(child), None),
            Err(failure) => {
                say::complain(failure);
                self.due = Some(self.since + self.pause);
            }
        }
    }
}

/// Waits until no child is left. How the keeper ended, and whether somebody told it to, by us.
fn wait_for_all(keeper: Pid, signals: &SigSet) -> Result<(Option<WaitStatus>, bool)> {
    let (mut status, mut told) = (None, false);
    loop {
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => break,
                Ok(it) if it.pid() == Some(keeper) => status = Some(it),
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(nix::Error::ECHILD) => return Ok((status, told)),
                Err(why) => return Err(Failure::host("wait for the node's keeper")(why.into())),
            }
        }
        if let Ok(signal) = signals.wait() {
            if ENDING.contains(&signal) && status.is_none() {
                told = true;
                let _ = kill(keeper, Signal::SIGTERM);
            }
        }
    }
}
