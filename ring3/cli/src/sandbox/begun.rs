// SPDX-License-Identifier: GPL-2.0
//! The first two processes of a sandbox, as the warden has them.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, Signal};
use nix::sys::socket::{recv, recvmsg, ControlMessageOwned, MsgFlags};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use ring3_node::outside::{First, Outside};
use ring3_sandbox::behalf::Reach;
use rustix::process::{pidfd_open, pidfd_send_signal, PidfdFlags};

use super::reaper;
use super::room::{DiskReport, DiskWatch};
use crate::error::{Failure, Result};
use crate::signals::Watch;
use crate::up::Caller;
use crate::{leaf, say};

/// The byte by which a node that stays says that it is up, and a gateway's rules hold.
pub const READY: u8 = b'+';
/// How often to look whether a sandbox that was asked to has ended.
const END_TURN: Duration = Duration::from_millis(2);

/// Whether there was a keeper to hear.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Confined,
    /// It has ended, and has said why.
    Nothing,
}

/// Dropping it ends all of the sandbox that is left.
#[derive(Debug)]
pub struct Begun {
    reaper: Pid,
    status: Option<u8>,
    /// Of the keeper: its number, and whom to send signals to.
    keeper: Option<(i32, OwnedFd)>,
    talk: OwnedFd,
    disks: Option<Arc<DiskReport>>,
}

impl Begun {
    /// `keeper` is the life of the confined process, whose end of the talk it gets. It has the standard descriptors and those in
    /// `keep`. Must be called while this process has one thread.
    pub fn start(
        keep: &[BorrowedFd<'_>],
        disks: Option<(DiskWatch, DiskReport)>,
        keeper: impl FnOnce(&OwnedFd) -> i32,
    ) -> Result<Begun> {
        let (watch, report) = disks.unzip();
        let (talk, theirs) = super::pair()?;
        let fork = leaf::fork_child();
        let fork = fork.map_err(|why| Failure::host("start a process")(why.into()))?;
        let Some(reaper) = fork else {
            let watched = watch.iter().flat_map(DiskWatch::fds);
            let keep = keep.iter().copied().chain(watched);
            let keep: Vec<_> = keep.chain([theirs.as_fd()]).collect();
            leaf::close_all_but(&keep);
            // Closed with all others.
            std::mem::forget((talk, report));
            let status = reaper::run(watch, move || keeper(&theirs));
            std::process::exit(status.unwrap_or_else(|failure| {
                say::complain(failure);
                125
            }));
        };
        drop(theirs);
        Ok(Begun {
            reaper,
            status: None,
            keeper: None,
            talk,
            disks: report.map(Arc::new),
        })
    }

    /// What is said about its disks.
    pub fn disks(&self) -> Option<Arc<DiskReport>> {
        self.disks.clone()
    }

    /// The same, for the one who passes on what is to be started.
    pub fn copy_talk(&self) -> Result<OwnedFd> {
        let talk = self.talk.try_clone();
        talk.map_err(Failure::host("copy a descriptor"))
    }

    pub fn first(&self) -> First {
        First {
            reaper: self.reaper.as_raw(),
            keeper: self.keeper.as_ref().map_or(0, |it| it.0),
        }
    }

    /// Waits until the keeper is confined, and gives it its ports. `reach`: what the sandbox may change.
    pub fn hear(&mut self, outside: &Outside, reach: Reach) -> Result<Heard> {
        let Some((pid, questions)) = hear(&self.talk)? else {
            return Ok(Heard::Nothing);
        };
        let reach = reach.with_reaper(self.reaper.as_raw() as u32);
        // It ends with the last process of the sandbox.
        let body = move || {
            let served = ring3_sandbox::notify::serve(&questions, &reach);
            // From here on the host answers.
            drop(questions);
            if let Err(why) = served {
                let words =
                    "its programs have no chmod(), bind(), connect(), /proc and /dev/shm any more";
                say::complain(format_args!(
                    "the sandbox's warden answers no more, {words}: {why}: start the sandbox again"
                ));
            }
        };
        let thread = std::thread::Builder::new().spawn(body);
        thread.map_err(Failure::host("start a thread"))?;
        outside.send(&self.talk)?;
        // The reaper may have reaped it.
        let keeper = pidfd_open(pid, PidfdFlags::empty()).ok();
        self.keeper = keeper.map(|fd| (pid.as_raw_nonzero().get(), fd));
        Ok(Heard::Confined)
    }

    /// The word of a node that stays, if there is one.
    fn is_ready(&self) -> bool {
        let mut byte = [0];
        let got = recv(self.talk.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT);
        got == Ok(1) && byte[0] == READY
    }

    /// Its status as a shell has it, once nothing is left.
    pub fn ended(&mut self) -> Result<Option<u8>> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        self.status = match waitpid(self.reaper, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => Some(status as u8),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(128 + signal as u8),
            Ok(_) | Err(Errno::EINTR) => None,
            Err(why) => return Err(Failure::host("wait for the sandbox")(why.into())),
        };
        if self.status.is_some() {
            self.say_what_is_used_up();
        }
        Ok(self.status)
    }

    /// A program can fill the pipe of standard error, or stop the terminal.
    fn say_what_is_used_up(&self) {
        if let Some(why) = self.disks.as_ref().and_then(|it| it.used_up()) {
            say::complain(why);
        }
    }

    /// Sends the keeper a signal, which passes it on to the program.
    pub fn ask(&self, signal: Signal) {
        let signal = rustix::process::Signal::from_named_raw(signal as i32);
        if let (Some((_, keeper)), Some(signal)) = (&self.keeper, signal) {
            // It may have ended; the next look sees that.
            let _ = pidfd_send_signal(keeper, signal);
        }
    }

    /// Waits until it says that it is up. False: a signal came, or it has ended and has said why. `Err(GivenUp)`: `caller` has
    /// gone, so nobody wants it.
    pub fn wait_ready(&self, watch: &Watch, caller: Option<&Caller>) -> Result<bool> {
        let mut fds = vec![
            PollFd::new(self.talk.as_fd(), PollFlags::POLLIN),
            PollFd::new(watch.ending(), PollFlags::POLLIN),
        ];
        // Nothing to read comes from there: it breaks.
        fds.extend(caller.map(|it| PollFd::new(it.fd(), PollFlags::empty())));
        let ready = poll(&mut fds, PollTimeout::NONE);
        ready.map_err(|why| Failure::host("wait for the sandbox")(why.into()))?;
        if fds.get(2).and_then(PollFd::any).unwrap_or(false) {
            return Err(ring3_node::Error::GivenUp.into());
        }
        Ok(self.is_ready())
    }

    /// What ends it in good order.
    pub fn asks(&self) -> Result<impl Fn() + Send + 'static> {
        let copy = |(_, keeper): &(i32, OwnedFd)| keeper.try_clone();
        let keeper = self.keeper.as_ref().map(copy).transpose();
        let keeper = keeper.map_err(Failure::host("copy a descriptor"))?;
        Ok(move || {
            if let Some(keeper) = &keeper {
                // It may have ended.
                let _ = pidfd_send_signal(keeper, rustix::process::Signal::TERM);
            }
        })
    }

    /// What ends the sandbox at once.
    pub fn end(&self) -> impl Fn() + Send + Sync + 'static {
        let reaper = rustix::process::Pid::from_raw(self.reaper.as_raw());
        let reaper = reaper.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        move || {
            if let Some(reaper) = &reaper {
                // It may have ended.
                let _ = pidfd_send_signal(reaper, rustix::process::Signal::TERM);
            }
        }
    }

    /// At most so long; then what is left is ended with this value.
    pub fn wait_for_end(&mut self, patience: Duration) {
        let start = Instant::now();
        while matches!(self.ended(), Ok(None)) && start.elapsed() < patience {
            std::thread::sleep(END_TURN);
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.status.is_none() {
            // It ends all that is left before it does.
            let _ = kill(self.reaper, Signal::SIGTERM);
            let _ = waitpid(self.reaper, None);
            self.say_what_is_used_up();
        }
    }
}

/// The keeper's first message. None: it has ended.
fn hear(keeper: &OwnedFd) -> Result<Option<(rustix::process::Pid, OwnedFd)>> {
    let fail = |why: nix::Error| Failure::host("hear from the sandbox's keeper")(why.into());
    let mut pid = [0; size_of::<i32>()];
    let mut space = nix::cmsg_space!([std::os::fd::RawFd; 1]);
    let mut parts = [IoSliceMut::new(&mut pid)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let got =
        recvmsg::<()>(keeper.as_raw_fd(), &mut parts, Some(&mut space), flags).map_err(fail)?;
    let questions = got
        .cmsgs()
        .map_err(fail)?
        .find_map(|message| match message {
            ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
            _ => None,
        });
    if got.bytes == 0 {
        return Ok(None);
    }
    let questions = questions
        .map(leaf::own)
        .ok_or(Errno::EPROTO)
        .map_err(fail)?;
    let pid = rustix::process::Pid::from_raw(i32::from_ne_bytes(pid));
    Ok(pid.map(|pid| (pid, questions)))
}
