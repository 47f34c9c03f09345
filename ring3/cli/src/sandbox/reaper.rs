// SPDX-License-Identifier: GPL-2.0
//! The process that outlives all of a sandbox, and ends it.
//!
//! It has one thread, maps nothing of the node, and takes no signal but SIGKILL; the warden's death comes as
//! SIGTERM. All that the sandbox's processes leave behind becomes its child. kill(-1) reaches every process that it
//! may signal: those of its domain. It is one step of the host's, so none that forks meanwhile escapes.

use nix::sys::prctl;
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getppid, Pid};

use crate::error::{Failure, Result};
use crate::leaf;

/// Starts `keeper` in a child, and returns when nothing is left of the sandbox: the keeper's status as a shell has it.
pub fn run(keeper: impl FnOnce() -> i32) -> Result<i32> {
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
        std::process::exit(keeper());
    };
    // And with it the socket to the warden, whose end is the keeper's end.
    drop(keeper);
    let status = wait(pid, &all);
    end_all();
    Ok(status)
}

/// Until the keeper has ended or the warden has.
fn wait(keeper: Pid, all: &SigSet) -> i32 {
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
        // Only the host and the user can send any.
        if all.wait() == Ok(Signal::SIGTERM) {
            return 128 + Signal::SIGTERM as i32;
        }
    }
}

fn end_all() {
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    // What a process that ends leaves is our child before that itself is gone: no children, nobody left.
    while matches!(waitpid(None, None), Ok(_) | Err(nix::Error::EINTR)) {}
}
