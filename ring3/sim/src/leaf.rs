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

/// The clock of the day of the simulated host whose network namespace we are in (kernel/arch/ring3/turn/skew.c): `step` ns forward,
/// and from now on it gains `drift` ns a second. In the node's own network namespace: of all hosts.
pub fn set_clock(step: i64, drift: Option<i64>) -> nix::Result<()> {
    const SECOND: i64 = 1_000_000_000;
    /// A millionth, in struct timex.
    const PPM: i64 = 1 << 16;
    // SAFETY: a structure of numbers alone.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    timex.modes = libc::ADJ_SETOFFSET | libc::ADJ_NANO;
    timex.time.tv_sec = step.div_euclid(SECOND);
    timex.time.tv_usec = step.rem_euclid(SECOND);
    if let Some(drift) = drift {
        timex.modes |= libc::ADJ_FREQUENCY;
        timex.freq = drift * PPM / 1000;
    }
    // SAFETY: the call reads and writes that structure.
    nix::Error::result(unsafe { libc::clock_adjtime(libc::CLOCK_REALTIME, &mut timex) }).map(drop)
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
