// SPDX-License-Identifier: GPL-2.0
//! The programs of a node that goes down: they are asked to end, as by a machine that is switched off.
//!
//! A server that went on without its network would fail in every call and try again for ever.
//! Whoever does not end on SIGTERM keeps running; its calls on the node fail then.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ring3_abi::RING3_PROC_LIVE;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};
use rustix::time::Timespec;

use crate::region::Region;

/// What they have to end in while the node's network is still there.
const PATIENCE: Duration = Duration::from_millis(800);
/// How often to look for processes that were forked meanwhile.
const TURN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Tells the node's programs to end and gives them a moment for it.
pub(crate) fn end_programs(region: &Region) {
    let start = Instant::now();
    let mut told: Vec<(i32, OwnedFd)> = Vec::new();
    while start.elapsed() < PATIENCE {
        for pid in programs(region) {
            let raw = pid.as_raw_nonzero().get();
            if told.iter().any(|(known, _)| *known == raw) {
                continue;
            }
            // One that ended meanwhile needs no telling.
            if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
                // The number was its own until now: its entry is still there.
                if programs(region).any(|now| now == pid) {
                    let _ = pidfd_send_signal(&pidfd, Signal::TERM);
                    told.push((raw, pidfd));
                }
            }
        }
        let living: Vec<&OwnedFd> = told
            .iter()
            .map(|(_, pidfd)| pidfd)
            .filter(|pidfd| !is_readable(pidfd, Timespec::default()))
            .collect();
        match living.first() {
            Some(pidfd) => drop(is_readable(pidfd, TURN)),
            None => return,
        }
    }
    log::info!("programs of a node that goes down go on after SIGTERM");
}

fn is_readable(pidfd: &OwnedFd, limit: Timespec) -> bool {
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Live processes of the node, without this one.
fn programs(region: &Region) -> impl Iterator<Item = Pid> + '_ {
    let own = std::process::id() as i32;
    region
        .procs()
        .filter(move |entry| entry.state == RING3_PROC_LIVE && entry.pid > 0 && entry.pid != own)
        .filter_map(|entry| Pid::from_raw(entry.pid))
}
