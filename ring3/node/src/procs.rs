// SPDX-License-Identifier: GPL-2.0
//! The host processes of a node, and noticing their deaths.
//!
//! procs[] of the region is written by the image: an entry appears with SPAWN (a program joined)
//! or CLONE (one forked; its pid may come a moment later), and goes with the last task.
//! Each live one gets a pidfd, whose readiness is the process's death; then the kernel is told
//! (REAP), which closes its sockets, or says that it died inside kernel code.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use ring3_abi::{RING3_PROC_FREE, RING3_PROC_LIVE};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::error::{Errno, Error, Result};
use crate::image::Thread;

#[derive(Debug)]
struct Watched {
    pid: i32,
    /// Readable when the process is dead. Closing it takes it out of the epoll set.
    pidfd: OwnedFd,
}

/// What is watched, by index into procs[].
#[derive(Debug, Default)]
pub(crate) struct Procs {
    watched: HashMap<usize, Watched>,
}

impl Procs {
    /// Compares procs[] with what is watched. Calls `watch` for each new pidfd; reaps those that
    /// are dead already.
    pub fn look(
        &mut self,
        init: &mut Thread,
        mut watch: impl FnMut(usize, &OwnedFd) -> Result<()>,
    ) -> Result<()> {
        let own = std::process::id() as i32;
        let region = init.region().clone();
        self.watched.retain(|&index, watched| {
            let now = region.proc_entry(index);
            now.state != RING3_PROC_FREE && now.pid == watched.pid
        });
        let fresh: Vec<_> = region
            .procs()
            .filter(|entry| entry.state == RING3_PROC_LIVE && entry.pid > 0 && entry.pid != own)
            .filter(|entry| !self.watched.contains_key(&entry.index))
            .collect();
        for entry in fresh {
            let pid = Pid::from_raw(entry.pid).filter(|pid| !pid.is_init());
            let pidfd = match pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
                Some(Ok(pidfd)) => pidfd,
                Some(Err(rustix::io::Errno::SRCH)) => {
                    self.reap(init, entry.index)?;
                    continue;
                }
                Some(Err(why)) => return Err(Error::host("watch a process of the node")(why)),
                None => continue,
            };
            watch(entry.index, &pidfd)?;
            let pid = entry.pid;
            self.watched.insert(entry.index, Watched { pid, pidfd });
        }
        Ok(())
    }

    /// The pidfd of entry `index` is readable.
    pub fn died(&mut self, init: &mut Thread, index: usize) -> Result<()> {
        let Some(watched) = self.watched.remove(&index) else {
            return Ok(());
        };
        drop(watched.pidfd);
        // It may have ended in an orderly way, and its entry be another's by now.
        let now = init.region().proc_entry(index);
        if now.state == RING3_PROC_FREE || now.pid != watched.pid {
            return Ok(());
        }
        self.reap(init, index)
    }

    fn reap(&mut self, init: &mut Thread, index: usize) -> Result<()> {
        let address = init.region().proc_address(index);
        match init.reap(address) {
            Ok(()) | Err(Errno(libc::ESRCH)) => Ok(()),
            Err(why) => match init.region().poison() {
                Some(why) => Err(Error::Poisoned { why }),
                None => Err(Error::node("bury a dead process")(why)),
            },
        }
    }
}
