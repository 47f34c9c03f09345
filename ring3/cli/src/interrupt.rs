// SPDX-License-Identifier: GPL-2.0
//! Nodes whose start is interrupted: Ctrl-C, a service manager's SIGTERM, a terminal that goes away.
//!
//! The signals are held back from the first node on, and looked at wherever the command waits. So the command is there
//! to take down again what it has started. A second signal is not needed: taking nodes down has a time limit of its own.

use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, ExitStatus};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Failure, Result};
use crate::leaf;
use crate::signals::ENDING;

/// Holds back what ends a start, until it is dropped.
#[derive(Debug)]
pub struct Interrupt {
    ending: SignalFd,
    /// SIGCHLD, of the programs that a start waits for.
    ended: SignalFd,
    before: SigSet,
}

impl Interrupt {
    /// Call it before the first thread is made. What was ignored when the command was started (`nohup`) stays so.
    pub fn hold_back() -> Result<Interrupt> {
        let hold_back = || {
            let mut ending = SigSet::empty();
            ENDING
                .iter()
                .filter(|signal| !leaf::is_ignored(**signal))
                .for_each(|signal| ending.add(*signal));
            let mut ended = SigSet::empty();
            ended.add(Signal::SIGCHLD);
            let mut both = ending;
            both.add(Signal::SIGCHLD);
            let before = both.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
            let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
            Ok(Interrupt {
                ending: SignalFd::with_flags(&ending, flags)?,
                ended: SignalFd::with_flags(&ended, flags)?,
                before,
            })
        };
        hold_back().map_err(|e: nix::Error| Failure::host("watch for signals")(e.into()))
    }

    /// For a child that goes on by itself: signals are as they were.
    pub fn let_go(&self) {
        let _ = self.before.thread_set_mask();
    }

    /// Fails if there was a signal that ends a start.
    pub fn check(&self) -> Result<()> {
        match self.ending.read_signal() {
            Ok(Some(info)) => Err(Failure::Interrupted {
                status: 128 + info.ssi_signo as u8,
            }),
            _ => Ok(()),
        }
    }

    /// Waits until `fd` can be read, or for so long. Whether it can; fails as [`Interrupt::check`].
    pub fn wait_for(&self, fd: BorrowedFd<'_>, limit: PollTimeout) -> Result<bool> {
        let mut fds = [
            PollFd::new(fd, PollFlags::POLLIN),
            PollFd::new(self.ending.as_fd(), PollFlags::POLLIN),
        ];
        loop {
            match poll(&mut fds, limit) {
                Ok(_) => break,
                Err(nix::Error::EINTR) => {}
                Err(why) => return Err(Failure::host("wait for a node")(why.into())),
            }
        }
        let is_there = fds[0].any().unwrap_or(false);
        self.check().map(|()| is_there)
    }

    /// Runs a program to its end. It is ended when the start is.
    pub fn run(&self, command: &mut Command) -> Result<ExitStatus> {
        let fail = || Failure::host(format!("run {}", command.get_program().to_string_lossy()));
        let (cannot_start, cannot_wait) = (fail(), fail());
        leaf::with_mask(command, self.before);
        let mut child = command.spawn().map_err(cannot_start)?;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return self.check().map(|()| status),
                Ok(None) => {}
                Err(why) => return Err(cannot_wait(why)),
            }
            if let Err(failure) = self.wait_for(self.ended.as_fd(), PollTimeout::NONE) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failure);
            }
            while let Ok(Some(_)) = self.ended.read_signal() {}
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.let_go();
    }
}
