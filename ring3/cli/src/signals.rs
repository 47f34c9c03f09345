// SPDX-License-Identifier: GPL-2.0
//! Waiting for a program as a shell would.
//!
//! The terminal belongs to the program: it runs in our process group, so what is typed
//! (Ctrl-C, Ctrl-\, Ctrl-Z) reaches it without us. Such a signal comes from the kernel and
//! is left alone here. One that we alone have is passed on: what somebody sent (`kill`, a service
//! manager), and the SIGHUP of a terminal that goes away, which is for the leader of its session
//! only. Either way ring3 lives until the program is gone. Before there is a program,
//! what would end it ends ring3.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, killpg, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{siginfo, SfdFlags, SignalFd};
use nix::sys::wait::{waitid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::{getpgid, getpid, getsid, Pid};

use crate::error::{Failure, Result};
use crate::leaf;

/// Signals that are passed on to the program. SIGCHLD tells of its end.
const FORWARDED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// poll(2) counts in these.
const TICK: Duration = Duration::from_millis(1);

/// Signals that end the start of a node, before there is a program to pass them on to.
pub const ENDING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
];

/// An event that [`Watch::next`] waits for.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// There is something to read, or the far end is gone.
    Readable,
    /// One of those that are passed on.
    Signal(Signal),
    /// The deadline has passed.
    Late,
}

/// Holds the signals back until [`Watch::wait`] looks at them.
#[derive(Debug)]
pub struct Watch {
    fd: SignalFd,
    /// The same for those of [`ENDING`] that we do not ignore.
    ending: SignalFd,
    /// The signal mask from before; the program starts with it.
    before: SigSet,
}

impl Watch {
    /// Call it before the first thread is made: threads inherit what is held back.
    pub fn start() -> Result<Watch> {
        let watch = || {
            let mut set = SigSet::empty();
            set.add(Signal::SIGCHLD);
            FORWARDED.iter().for_each(|signal| set.add(*signal));
            let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
            let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC)?;
            let mut set = SigSet::empty();
            ENDING
                .iter()
                .filter(|signal| !leaf::is_ignored(**signal))
                .for_each(|signal| set.add(*signal));
            let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
            let ending = SignalFd::with_flags(&set, flags)?;
            Ok(Watch { fd, ending, before })
        };
        watch().map_err(|e: nix::Error| Failure::host("watch for signals")(e.into()))
    }

    /// The signal mask that this process was started with.
    pub fn mask_before(&self) -> SigSet {
        self.before
    }

    /// Readable when there is a signal that ends a start.
    pub fn ending(&self) -> BorrowedFd<'_> {
        self.ending.as_fd()
    }

    /// The status to end with, if there was a signal that ends a start.
    pub fn is_to_end(&self) -> Option<u8> {
        let info = self.ending.read_signal().ok().flatten()?;
        Some(128 + info.ssi_signo as u8)
    }

    /// Waits until the program ends, passing signals on to it.
    pub fn wait(&self, child: &mut Child) -> Result<ExitStatus> {
        let pid = Pid::from_raw(child.id() as i32);
        let pass_on = |signal| {
            // It may be gone already; the next turn sees that.
            let _ = kill(pid, signal);
        };
        let ended = || {
            if has_stopped(pid) {
                stop_with(pid);
            }
            let ended = child.try_wait();
            ended.map_err(Failure::host("wait for the program"))
        };
        self.wait_until(ended, pass_on)
    }

    /// The next event. The caller has to pass a signal on: no other process has got it.
    pub fn next(&self, end: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<Event> {
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let limit = left.map_or(PollTimeout::NONE, |left| {
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            });
            let mut fds = [
                PollFd::new(end, PollFlags::POLLIN),
                PollFd::new(self.fd.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, limit) {
                Ok(_) if fds[0].any() == Some(true) => return Ok(Event::Readable),
                Ok(0) if left.is_some_and(|left| left < TICK) => return Ok(Event::Late),
                Ok(0) => continue,
                Ok(_) => {}
                Err(nix::Error::EINTR) => continue,
                Err(why) => return Err(Failure::host("wait for signals")(why.into())),
            }
            let signal = self.fd.read_signal().ok().flatten();
            let signal = signal.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok());
            if let Some(signal) = signal.filter(|signal| FORWARDED.contains(signal)) {
                return Ok(Event::Signal(signal));
            }
        }
    }

    /// The same where the caller knows what has `ended` and whom to pass signals on to.
    pub fn wait_until<T>(
        &self,
        mut ended: impl FnMut() -> Result<Option<T>>,
        pass_on: impl Fn(Signal),
    ) -> Result<T> {
        loop {
            if let Some(result) = ended()? {
                return Ok(result);
            }
            let info = match self.fd.read_signal() {
                Ok(Some(info)) => info,
                Ok(None) | Err(nix::Error::EINTR) => continue,
                Err(e) => return Err(Failure::host("wait for signals")(e.into())),
            };
            let signal = Signal::try_from(info.ssi_signo as i32).ok();
            match signal {
                Some(signal) if FORWARDED.contains(&signal) && !has_reached_all(signal, &info) => {
                    pass_on(signal);
                }
                _ => {}
            }
        }
    }
}

/// Whether the program is stopped since we looked last.
fn has_stopped(pid: Pid) -> bool {
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG;
    matches!(waitid(Id::Pid(pid), flags), Ok(WaitStatus::Stopped(..)))
}

/// A shell that has job control and suspends itself stops its own process group, of which we are not; whoever
/// waits for us has to hear of it. When that goes on with us, we go on with the program.
fn stop_with(pid: Pid) {
    let _ = kill(Pid::from_raw(0), Signal::SIGSTOP);
    let group = getpgid(Some(pid)).unwrap_or(pid);
    let _ = killpg(group, Signal::SIGCONT);
}

/// Whether the host has sent this signal to our whole process group, the program included.
fn has_reached_all(signal: Signal, info: &siginfo) -> bool {
    let leads = getsid(None).is_ok_and(|session| session == getpid());
    info.ssi_code == libc::SI_KERNEL && !(signal == Signal::SIGHUP && leads)
}

/// The status that a shell would give.
pub fn shell_status(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128 + signal as u8,
        (None, None) => unreachable!("a process that ended neither by exit nor by signal"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        assert_eq!(shell_status(ExitStatus::from_raw(0)), 0);
        assert_eq!(shell_status(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(shell_status(ExitStatus::from_raw(15)), 143);
        assert_eq!(shell_status(ExitStatus::from_raw(11 | 0x80)), 139);
    }
}
