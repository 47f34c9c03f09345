// SPDX-License-Identifier: GPL-2.0
//! How much of the host a sandbox may take.
//!
//! The host counts processes and threads by user (RLIMIT_NPROC), not by sandbox. So the limit is what the user has now, the
//! keeper's own threads, and the sandbox's. Whatever else the user starts meanwhile takes from the same.

use nix::errno::Errno;
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::sys::wait::waitpid;
use nix::unistd::geteuid;

use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::leaf;

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
        tasks: Some(tasks_of_user()? + KEEPERS + pids),
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

/// How many processes and threads the user has, as the host counts them: those in other process namespaces, which /proc does not
/// show, too. The host tells nobody, but it refuses one more than a limit. While this process has one thread.
fn tasks_of_user() -> Result<u64> {
    let fail = |why: nix::Error| Failure::host("count the user's processes")(why.into());
    let (soft, hard) = getrlimit(Resource::RLIMIT_NPROC).map_err(fail)?;
    let fits = |limit: u64| -> nix::Result<bool> {
        setrlimit(Resource::RLIMIT_NPROC, limit.min(hard), hard)?;
        match leaf::fork_child() {
            Ok(Some(child)) => waitpid(child, None).map(|_| true),
            Ok(None) => std::process::exit(0),
            Err(Errno::EAGAIN) => Ok(false),
            Err(why) => Err(why),
        }
    };
    // This process and its child.
    let (mut least, mut enough) = (1, 2);
    while !fits(enough).map_err(fail)? {
        if enough >= hard {
            return Err(fail(Errno::EAGAIN));
        }
        (least, enough) = (enough, enough * 2);
    }
    while enough - least > 1 {
        let middle = least + (enough - least) / 2;
        match fits(middle).map_err(fail)? {
            true => enough = middle,
            false => least = middle,
        }
    }
    setrlimit(Resource::RLIMIT_NPROC, soft, hard).map_err(fail)?;
    // Without the child.
    Ok(enough - 1)
}
