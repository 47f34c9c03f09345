// SPDX-License-Identifier: GPL-2.0
//! How much of the host a sandbox may take.
//!
//! The host counts processes and threads by user (RLIMIT_NPROC), not by sandbox. So the limit is what the user has now, the
//! keeper's own threads, and the sandbox's. Whatever else the user starts meanwhile takes from the same.

use std::os::unix::fs::MetadataExt;

use nix::sys::resource::{setrlimit, Resource};
use nix::unistd::geteuid;

use crate::args::SandboxArgs;
use crate::error::{Failure, Result};

/// Threads of a keeper with all its ports, undertaker and reaper included.
const KEEPERS: u64 = 16;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The user's processes and threads, all together.
    tasks: Option<u64>,
}

/// What `args` ask for, as things stand now.
pub fn of(args: &SandboxArgs) -> Result<Limits> {
    let Some(pids) = args.pids else {
        return Ok(Limits { tasks: None });
    };
    if geteuid().is_root() {
        return Err(Failure::PidsOfRoot);
    }
    Ok(Limits {
        tasks: Some(tasks_of_user() + KEEPERS + pids),
    })
}

impl Limits {
    /// What is the user's own has the user's own.
    pub fn none() -> Limits {
        Limits { tasks: None }
    }

    /// For this process and all that it starts; they can't be raised again.
    pub fn set(self) -> nix::Result<()> {
        // A host's handler of core files reads what a hostile program writes. Linux starts it whatever the limit is,
        // but for one of 1 (do_coredump() of fs/coredump.c); the list of calls keeps it there.
        setrlimit(Resource::RLIMIT_CORE, 1, 1)?;
        match self.tasks {
            Some(tasks) => setrlimit(Resource::RLIMIT_NPROC, tasks, tasks),
            None => Ok(()),
        }
    }
}

fn tasks_of_user() -> u64 {
    let uid = geteuid().as_raw();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == uid))
        .filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok())
        .map(|tasks| tasks.count() as u64)
        .sum()
}
