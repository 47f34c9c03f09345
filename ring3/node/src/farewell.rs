// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: how the programs of a node end with it
//!
//! A server without its network would fail in every call and retry for ever. So each program gets
//! SIGTERM, as on a machine that is switched off, and SIGKILL after the node's grace period. A
//! stopped program is continued, so that it can handle the signal.
//!
//! ```text
//! down       the keeper: SIGTERM, the network stays for the grace; then the ports go, then SIGKILL
//! poisoned   the keeper, in a thread: SIGTERM, the grace, SIGKILL
//! killed     the keeper is gone: the undertaker does the same (undertaker.rs)
//! ```
//!
//! Where none of them is left, or allowed to, each program's gate does it for itself (gate/process/end.c).
//! SIGKILL comes when the node is over, so that it can't poison it.
//!
//! The number of a process may be another's by now. So its memory is looked at first: whoever is on
//! the node has the region. Where the host does not let us look, the process must have started when the one did that
//! the keeper has watched by this number (procs.rs). One that was never watched is left to its gate. A confined keeper sees
//! nobody's memory, and its signals reach nobody outside of its sandbox: there a number is enough.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ring3_abi::RING3_PROC_LIVE;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};
use rustix::time::Timespec;

use crate::procs::started;
use crate::region::Region;

/// How long the host may take to end what got SIGKILL.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// How often to look for processes that were forked meanwhile.
const TURN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The programs that are being ended.
#[derive(Debug)]
pub(crate) struct Farewell<'a> {
    region: &'a Region,
    whom: Whom,
    known: Vec<Program>,
}

/// Whom this process's signals reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// Processes that have nothing to do with the node, too.
    Anybody,
    /// Those of the sandbox that this process is in.
    Sandbox,
}

#[derive(Debug)]
struct Program {
    pid: i32,
    pidfd: OwnedFd,
    is_killed: bool,
}

impl<'a> Farewell<'a> {
    pub fn new(region: &'a Region, whom: Whom) -> Farewell<'a> {
        Farewell {
            region,
            whom,
            known: Vec::new(),
        }
    }

    /// Tells the programs to end; returns when they have, or after the grace period.
    pub fn ask(&mut self, grace: Duration) {
        let start = Instant::now();
        loop {
            self.look();
            match self.living().next() {
                Some(program) if start.elapsed() < grace => {
                    let _ = is_readable(&program.pidfd, TURN);
                }
                Some(_) => {
                    let count = self.living().count();
                    log::info!("programs of a node that ends go on after SIGTERM: {count}");
                    return;
                }
                None => return,
            }
        }
    }

    /// Kills those that are left.
    pub fn kill(&mut self) {
        let start = Instant::now();
        loop {
            self.look();
            for program in &mut self.known {
                if !program.is_killed {
                    let _ = pidfd_send_signal(&program.pidfd, Signal::KILL);
                    program.is_killed = true;
                }
            }
            match self.living().next() {
                Some(program) if start.elapsed() < KILL_PATIENCE => {
                    let _ = is_readable(&program.pidfd, TURN);
                }
                Some(program) => {
                    let pid = program.pid;
                    log::warn!("process {pid}, of a node that has ended, does not end");
                    return;
                }
                None => return,
            }
        }
    }

    fn living(&self) -> impl Iterator<Item = &Program> {
        let known = self.known.iter();
        known.filter(|program| !is_readable(&program.pidfd, Timespec::default()))
    }

    /// Finds processes that are not known yet, and tells each of them to end.
    fn look(&mut self) {
        let own = std::process::id() as i32;
        let region = self.region;
        for entry in region.procs() {
            let is_known = self.known.iter().any(|program| program.pid == entry.pid);
            if entry.state != RING3_PROC_LIVE || entry.pid == own || is_known {
                continue;
            }
            let Some(pid) = Pid::from_raw(entry.pid).filter(|_| entry.pid > 0) else {
                continue;
            };
            // One that has ended needs nothing; one that is about to execute a program is found the
            // next time.
            let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            let is_here = || {
                let now = region.proc_entry(entry.index);
                now.state == RING3_PROC_LIVE && now.pid == entry.pid
            };
            let is_meant = self.whom == Whom::Sandbox || is_of_node(entry.pid, entry.index, region);
            if !is_meant || !is_here() {
                continue;
            }
            if region.is_first_to_end(entry.index) {
                let _ = pidfd_send_signal(&pidfd, Signal::TERM);
            }
            let _ = pidfd_send_signal(&pidfd, Signal::CONT);
            self.known.push(Program {
                pid: entry.pid,
                pidfd,
                is_killed: false,
            });
        }
    }
}

/// Whether a process is the one of this entry.
fn is_of_node(pid: i32, index: usize, region: &Region) -> bool {
    match File::open(format!("/proc/{pid}/maps")) {
        Ok(maps) => has_mapped(maps, region),
        Err(_) => is_same(started(pid), region.started(index)),
    }
}

/// `known`: the start time of the watched process; 0: none was watched.
fn is_same(now: Option<u64>, known: u64) -> bool {
    known != 0 && now == Some(known)
}

/// Whether a process's mappings include the region.
fn has_mapped(maps: impl Read, region: &Region) -> bool {
    // "550800000000-5508000aa000 rw-s 00000000 00:01 12345   /memfd:..."
    let start = format!("{:x}-", region.base());
    let inode = region.inode().to_string();
    let lines = BufReader::new(maps).lines().map_while(Result::ok);
    lines
        .filter(|line| line.starts_with(&start))
        .any(|line| line.split_whitespace().nth(4) == Some(inode.as_str()))
}

fn is_readable(pidfd: &OwnedFd, limit: Timespec) -> bool {
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&limit)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// If its mappings can't be read, a process is identified by its start time, or not at all.
    #[test]
    fn numbers_used_again() {
        let own = std::process::id() as i32;
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let mut late = Command::new("sleep").arg("60").spawn().unwrap();
        let known = started(other.id() as i32).unwrap();
        assert!(is_same(started(other.id() as i32), known));
        assert!(!is_same(started(late.id() as i32), known));
        assert!(!is_same(started(own), 0));
        assert!(!is_same(None, known));
        for child in [&mut other, &mut late] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
