// SPDX-License-Identifier: GPL-2.0
//! The few things a simulation does that Rust cannot check.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};

/// Runs `hook` in the child, between fork and exec. The caller has one thread and starts nothing at the same time.
pub fn in_child(
    command: &mut Command,
    hook: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the caller's process has one thread (its duty), so the child's copy of memory is consistent, no lock in
    // it is held, and the hook may do whatever the caller could.
    unsafe { command.pre_exec(hook) };
}

extern "C" fn nothing(_: libc::c_int) {}

/// The end of a child interrupts whoever waits for signals. It does so nowhere else: the signal is blocked.
pub fn hear_children() -> nix::Result<()> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.thread_block()?;
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGCHLD, &action) }.map(drop)
}
