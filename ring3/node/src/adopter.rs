// SPDX-License-Identifier: GPL-2.0
//! The node's adopter as its keeper sees it: a child that goes on with what programs were doing in
//! kernel code when they were killed. The image's adopt.c says how.
//!
//! It is started when a node has had programs for a while, or several. Where the host lets it not use BPF, it traces the
//! node's programs. Where it can do neither it says so by its exit status, an error number, and the node does without:
//! then such a death poisons it.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ring3_abi::{RING3_ENV_ADOPT, RING3_ENV_NODE, RING3_POISONED};
use rustix::process::{kill_process, pidfd_open, Pid, PidfdFlags, Signal};

use crate::error::{Errno, Error, Result};
use crate::region::Region;
use crate::sys;

/// Names another gate, as for the command.
const ENV_GATE: &str = "RING3_GATE";
/// "trace": by ptrace() in any case; "none": no adopter.
const ENV_HOW: &str = "RING3_ADOPTER";

#[derive(Debug)]
pub(crate) struct Adopter {
    region: Arc<Region>,
    child: Child,
}

/// How it is to work; else as the host lets it.
fn how() -> std::ffi::OsString {
    std::env::var_os(ENV_HOW).unwrap_or_else(|| "best".into())
}

/// The gate: the one that is named, or the one beside the image.
fn gate(region: &Region) -> Option<PathBuf> {
    let beside = || region.image.parent().map(|it| it.join("ring3-gate"));
    std::env::var_os(ENV_GATE)
        .map(PathBuf::from)
        .or_else(beside)
        .filter(|path| path.is_file())
}

impl Adopter {
    /// Starts it; `None` where there is no gate. The descriptor is readable when it has ended.
    pub fn start(region: &Arc<Region>, join: &Path) -> Result<Option<(Adopter, OwnedFd)>> {
        if how() == "none" {
            return Ok(None);
        }
        let Some(gate) = gate(region) else {
            log::debug!("no gate beside {}", region.image.display());
            return Ok(None);
        };
        let mut command = Command::new(&gate);
        command
            .env_clear()
            .env(RING3_ENV_NODE, join)
            .env(RING3_ENV_ADOPT, how())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        sys::block_none_in(&mut command);
        let child = command
            .spawn()
            .map_err(Error::io(format!("start {}", gate.display())))?;
        let adopter = Adopter {
            region: region.clone(),
            child,
        };
        let pid = Pid::from_child(&adopter.child);
        let ended = pidfd_open(pid, PidfdFlags::empty())
            .map_err(Error::host("watch the node's adopter"))?;
        Ok(Some((adopter, ended)))
    }

    /// Programs or threads have come.
    pub fn look(&self) {
        look(&self.region);
    }

    /// It has ended. Whether another may have more success.
    pub fn has_ended(mut self) -> bool {
        let status = self.child.wait();
        if self.region.state() >= RING3_POISONED {
            return false;
        }
        match status.as_ref().map(|it| (it.code(), it.signal())) {
            Ok((_, Some(libc::SIGUSR2))) => {
                log::info!("the node's adopter was told to end");
                false
            }
            Ok((Some(errno), _)) => {
                let why = Errno(errno);
                log::warn!(
                    "a program that is killed in kernel code ends the node: no adopter ({why})"
                );
                false
            }
            _ => {
                log::warn!("the node's adopter has ended: {status:?}");
                true
            }
        }
    }
}

/// Something is to be looked at. One that does not trace programs need not know.
pub(crate) fn look(region: &Region) {
    if let Some(pid) = region.tracer_pid().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::USR1);
    }
}

impl Drop for Adopter {
    fn drop(&mut self) {
        self.region.adopter_is_gone();
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
