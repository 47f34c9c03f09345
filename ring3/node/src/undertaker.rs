// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: ending a node's programs when its keeper was killed
//!
//! A keeper that gets SIGKILL can do nothing more, and programs that sleep on the host would never
//! learn of its death. So each keeper has a child, made before it has anything else, that only
//! waits for the keeper's death. Then it poisons the node and ends the programs (farewell.rs).
//!
//! It has a copy of the keeper's memory of that time, which includes the node's region, and of
//! descriptors only the keeper's pidfd and standard error. It has a session of its own, so that the
//! terminal's signals do not reach it, and takes no signal but SIGKILL. A keeper that ends in good
//! order ends it first.

use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{kill_process, pidfd_open, waitpid, Pid, PidfdFlags, Signal, WaitOptions};

use crate::ended;
use crate::error::{Error, Result};
use crate::farewell::{Farewell, Whom};
use crate::region::Region;
use crate::runtime::Folder;
use crate::sys;

/// The keeper's child. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Undertaker {
    pid: Pid,
}

impl Undertaker {
    /// `record`: where it leaves word of the node's end, and the node's name.
    pub fn start(
        region: &Region,
        whom: Whom,
        grace: Duration,
        record: Option<(Folder, String)>,
    ) -> Result<Undertaker> {
        let keeper = rustix::process::getpid();
        let pidfd = pidfd_open(keeper, PidfdFlags::empty())
            .map_err(Error::host("watch the node's keeper"))?;
        let body = || {
            sys::keep_only(&pidfd);
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            while !matches!(poll(&mut fds, None), Ok(1)) {}
            // A start that was given up has not let programs in: there was no node.
            let record = record
                .as_ref()
                .filter(|(folder, name)| folder.join_path(name).exists());
            let keeper = keeper.as_raw_nonzero();
            region.set_poisoned(&format!("the node's keeper (process {keeper}) is gone"));
            let mut farewell = Farewell::new(region, whom);
            farewell.ask(grace);
            farewell.kill();
            if let Some(Err(why)) =
                record.map(|(folder, name)| ended::record_killed(folder, name, region))
            {
                log::warn!("{why}");
            }
        };
        let pid = sys::fork("ring3-undertake", body).map_err(|why| Error::Host {
            what: "start the process that ends programs when the keeper is killed".into(),
            why,
        })?;
        Ok(Undertaker { pid })
    }
}

impl Drop for Undertaker {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}
