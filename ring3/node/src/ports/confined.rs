// SPDX-License-Identifier: GPL-2.0
//! A confined process beside the keeper, which speaks with strangers: how it starts, answers and ends.
//!
//! The keeper starts the command again with a hidden verb. The process's standard input is its end of a socket pair, over
//! which it is told what to do; closing the keeper's end ends it. It answers once: "+", it serves, or "-" and words. What it
//! has to say it writes into a pipe (words.rs).

use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::pipe::{pipe_with, PipeFlags};

use crate::error::{Error, Result};
use crate::sys;

use super::words::{self, Words};

/// A gateway's node boots in 30 ms on an idle machine.
const START_PATIENCE: Timespec = Timespec {
    tv_sec: 20,
    tv_nsec: 0,
};
/// What it is told and what it answers is shorter.
pub(super) const MESSAGE_MAX: usize = 64 << 10;
const SERVES: u8 = b'+';
const FAILED: u8 = b'-';
/// How long it may take to end in good order.
const END_TURN: Duration = Duration::from_millis(2);
const END_TURNS: u32 = 500;

#[derive(Debug)]
pub(super) struct Process {
    pub child: Child,
    /// Closing it ends the process.
    pub talk: OwnedFd,
    pub words: Words,
}

impl Process {
    /// `what` it is, for messages.
    pub fn spawn(verb: &str, what: &'static str) -> Result<Process> {
        let (talk, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(Error::host("make a socket pair"))?;
        let exe = std::env::current_exe().map_err(Error::io("find where ring3 is"))?;
        let mut command = Command::new(exe);
        // What is typed is for the program. Our threads block all signals; the process is to have those sent to it.
        command.arg(verb).process_group(0);
        // It speaks with whoever sends packets: what the caller's environment says is none of its business.
        command.env_clear();
        sys::block_none_in(&mut command);
        if let Some(level) = std::env::var_os(words::LEVEL) {
            command.env(words::LEVEL, level);
        }
        let (said, says) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(Error::host("make a pipe"))?;
        let child = command
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(says)
            .spawn()
            .map_err(Error::io(format!("start the {what}'s process")))?;
        // `command` has their end of the socket: as long as that is open here, its end is not seen.
        drop(command);
        Ok(Process {
            child,
            talk,
            words: Words::new(said, what),
        })
    }
}

/// Waits until the process serves; or why it does not.
pub(super) fn answer(talk: &OwnedFd) -> std::result::Result<(), String> {
    let mut fds = [PollFd::new(talk, PollFlags::IN)];
    match poll(&mut fds, Some(&START_PATIENCE)) {
        Ok(0) => return Err("it says nothing for 20 s".into()),
        Ok(_) => {}
        Err(why) => return Err(format!("its answer can't be waited for: {why}")),
    }
    let mut answer = vec![0; MESSAGE_MAX];
    let got = rustix::net::recv(talk, &mut answer[..], RecvFlags::DONTWAIT);
    let len = got.map_or(0, |(len, _)| len);
    match answer[..len].split_first() {
        Some((&SERVES, _)) => Ok(()),
        Some((_, words)) => Err(String::from_utf8_lossy(words).into_owned()),
        None => Err("it ended without a word".into()),
    }
}

/// The process's side: what answer() takes.
pub(super) fn message(outcome: std::result::Result<(), &str>) -> Vec<u8> {
    match outcome {
        Ok(()) => vec![SERVES],
        Err(words) => [&[FAILED], words.as_bytes()].concat(),
    }
}

/// Waits for the end of a process whose talk is closed; after a second it is killed. How it ended by itself.
pub(super) fn end(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..END_TURNS {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(END_TURN),
            Ok(status) => return status,
            Err(_) => return None,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
