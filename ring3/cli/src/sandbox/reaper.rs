// SPDX-License-Identifier: GPL-2.0
//! The process that outlives all of a sandbox, and ends it.
//!
//! It has one thread, maps nothing of the node, and takes no signal but SIGKILL; the warden's death comes as
//! SIGTERM. Ctrl-Z does not stop it, so that it can look at the disks (room.rs). All that the sandbox's processes leave behind becomes its child. kill(-1) reaches every process that it
//! may signal: those of its domain. It is one step of the host's, so none that forks meanwhile escapes.

use std::os::fd::AsFd;

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::prctl;
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getppid, Pid};

use super::room::DiskWatch;
use crate::error::{Failure, Result};
use crate::leaf;

/// What SIGTERM ends, as a shell has it.
const ENDED: i32 = 128 + Signal::SIGTERM as i32;

/// Starts `keeper` in a child, and returns when nothing is left of the sandbox: the keeper's status as a shell has it.
pub fn run(mut disks: Option<DiskWatch>, keeper: impl FnOnce() -> i32) -> Result<i32> {
    let fail = |what: &str| {
        let what = what.to_owned();
        move |why: nix::Error| Failure::host(what)(why.into())
    };
    let all = SigSet::all();
    let before = all
        .thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK)
        .map_err(fail("hold signals back"))?;
    let warden = getppid();
    prctl::set_pdeathsig(Signal::SIGTERM).map_err(fail("watch the warden"))?;
    if getppid() != warden {
        return Ok(0);
    }
    prctl::set_child_subreaper(true).map_err(fail("take children over"))?;
    ring3_sandbox::enclose()?;
    // Else kill(-1) would reach all of the user's processes.
    if kill(warden, None) != Err(nix::Error::EPERM) {
        return Err(Failure::NotEnclosed);
    }
    let Some(pid) = leaf::fork_child().map_err(fail("start a process"))? else {
        before
            .thread_set_mask()
            .map_err(fail("let signals through"))?;
        drop(disks);
        std::process::exit(keeper());
    };
    // And with it the socket to the warden, whose end is the keeper's end.
    drop(keeper);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&all, flags).map_err(fail("hear signals"));
    let status = signals.map(|signals| wait(pid, &signals, &mut disks));
    end_all();
    status
}

/// Until the keeper has ended, the warden has, or a disk is used up.
fn wait(keeper: Pid, signals: &SignalFd, disks: &mut Option<DiskWatch>) -> i32 {
    loop {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) if pid == keeper => return status,
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == keeper => {
                    return 128 + signal as i32
                }
                Ok(WaitStatus::StillAlive) | Err(_) => break,
                Ok(_) => {}
            }
        }
        let look = disks.as_mut().map(DiskWatch::look);
        let Some(calm) = look.unwrap_or(Some(PollTimeout::NONE)) else {
            return ENDED;
        };
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(
            disks
                .iter()
                .map(|it| PollFd::new(it.news(), PollFlags::POLLIN)),
        );
        // Whatever it says, the next turn looks at all of them.
        let _ = poll(&mut fds, calm);
        // Only the host and the user can send any.
        while let Ok(Some(info)) = signals.read_signal() {
            if info.ssi_signo == Signal::SIGTERM as u32 {
                return ENDED;
            }
        }
    }
}

fn end_all() {
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    // What a process that ends leaves is our child before that itself is gone: no children, nobody left.
    while matches!(waitpid(None, None), Ok(_) | Err(nix::Error::EINTR)) {}
}
