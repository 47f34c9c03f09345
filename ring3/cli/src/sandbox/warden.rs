// SPDX-License-Identifier: GPL-2.0
//! The process outside of a sandbox.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use ring3_config::NodeConfig;
use ring3_node::outside::{First, Outside};
use ring3_node::Folder;
use rustix::process::{pidfd_open, pidfd_send_signal, PidfdFlags};

use super::{files, keeper, limits, reaper};
use crate::args;
use crate::error::{Failure, Result};
use crate::leaf;
use crate::node_args;
use crate::program::Program;
use crate::say;
use crate::signals::Watch;

/// `ring3 run --sandbox`: the program's status.
pub fn run(args: &args::Run) -> Result<u8> {
    let fail = |what: &str| {
        let what = what.to_owned();
        move |why: nix::Error| Failure::host(what)(why.into())
    };
    let fallback = format!("run-{}", std::process::id());
    let config = node_args::node(&args.node, args.name.as_deref(), &fallback)?;
    if !config.programs.is_empty() {
        return Err(Failure::ProgramsForRun);
    }
    let program = Program::find(&args.command)?;
    let view = files::view(&args.sandbox, &program)?;
    let limits = limits::of(&args.sandbox)?;
    let folder = Folder::open()?;
    let (ours, theirs) = super::pair()?;
    // While there is one thread, and nothing is open that is not meant for the sandbox.
    let Some(reaper) = leaf::fork_child().map_err(fail("start a process"))? else {
        leaf::close_all_but(theirs.as_fd());
        let bounds = (view.lent(), limits);
        let status = reaper::run(move || keeper::run(config, &program, bounds, &theirs));
        std::process::exit(status.unwrap_or_else(|failure| {
            say::complain(failure);
            125
        }));
    };
    drop(theirs);
    let _tmp = view.tmp;
    let result = watch_over(&config, &folder, ours, reaper);
    if result.is_err() {
        // It ends all that is left before it does.
        let _ = kill(reaper, Signal::SIGTERM);
        let _ = waitpid(reaper, None);
    }
    result
}

fn watch_over(config: &NodeConfig, folder: &Folder, keeper: OwnedFd, reaper: Pid) -> Result<u8> {
    let watch = Watch::start()?;
    let mut outside = Outside::claim(config, folder)?;
    outside.open(config, folder)?;
    let confined = match hear(&keeper)? {
        Some((pid, questions)) => {
            // It ends with the last process of the sandbox.
            std::thread::spawn(move || ring3_sandbox::notify::serve(&questions));
            outside.send(&keeper)?;
            let first = First {
                reaper: reaper.as_raw(),
                keeper: pid.as_raw_nonzero().get(),
            };
            outside.listen(config, folder, first, end(reaper))?;
            // The reaper may have reaped it.
            pidfd_open(pid, PidfdFlags::empty()).ok()
        }
        // It has ended, and has said why.
        None => None,
    };
    let ended = || match waitpid(reaper, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(_, status)) => Ok(Some(status as u8)),
        Ok(WaitStatus::Signaled(_, signal, _)) => Ok(Some(128 + signal as u8)),
        Ok(_) | Err(Errno::EINTR) => Ok(None),
        Err(why) => Err(Failure::host("wait for the sandbox")(why.into())),
    };
    let pass_on = |signal| {
        let signal = rustix::process::Signal::from_named_raw(signal as i32);
        if let (Some(keeper), Some(signal)) = (&confined, signal) {
            // It may have ended; the next turn sees that.
            let _ = pidfd_send_signal(keeper, signal);
        }
    };
    watch.wait_until(ended, pass_on)
}

/// What ends the sandbox.
fn end(reaper: Pid) -> impl Fn() + Send {
    let reaper = rustix::process::Pid::from_raw(reaper.as_raw());
    let reaper = reaper.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    move || {
        if let Some(reaper) = &reaper {
            // It may have ended.
            let _ = pidfd_send_signal(reaper, rustix::process::Signal::TERM);
        }
    }
}

/// The keeper's one message. None: it has ended.
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
