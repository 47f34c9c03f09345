// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: how much of the host a sandbox may take
//!
//! The host counts processes and threads by user (RLIMIT_NPROC), not by sandbox. So that limit is what the user has now, the
//! keeper's own threads, and the sandbox's. Whatever else the user starts meanwhile takes from the same. The other limits are of
//! each process, so all together have as many times as much as there are processes. They hold for the keeper, too, which a
//! program may have taken over: there the node's own needs come on top. CPU time does not: the keeper's grows with the node's age,
//! and who has taken it over could have more processes anyway.
//!
//! No limit of the host's bounds all that memory or a disk is filled with, through files in memory, pipes, and files whose names are
//! gone. So the host is told to kill the sandbox's processes before any other when memory runs out (oom_score_adj, which
//! nobody within can set back), and the reaper looks at what is left on the disks (room.rs).

use std::process::Command;

use nix::errno::Errno;
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::sys::signal::Signal;
use nix::sys::wait::waitpid;
use nix::unistd::geteuid;
use ring3_abi::RING3_REGION_MAX;
use ring3_config::size;

use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::leaf;

/// Threads of a keeper with all its ports, undertaker and reaper included.
const KEEPERS: u64 = 16;
/// Addresses that a keeper takes: two windows for a node's memory, and what the C library reserves for each thread (64 MiB).
const KEEPERS_ADDRESSES: u64 = 2 * RING3_REGION_MAX + (KEEPERS << 27);
/// Addresses that the gate takes of each process beside the node's memory (GATE_OWN_BYTES of gate/process/limits.c, and its file).
const GATES_ADDRESSES: u64 = 32 << 20;
/// Descriptors that a keeper needs: ports, questions, and some for each program that enters.
const KEEPERS_FILES: u64 = 1024;
/// What the host's out-of-memory killer takes first (<linux/oom.h>, OOM_SCORE_ADJ_MAX).
const KILL_FIRST: &str = "1000";
/// Seconds between SIGXCPU, which a program may handle, and SIGKILL.
const LAST_WORDS_S: u64 = 1;

#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The user's processes and threads, all together.
    tasks: Option<u64>,
    /// Of each process: bytes of addresses beside the node's and the gate's, seconds, descriptors, bytes of each file.
    addresses: Option<u64>,
    cpu_s: Option<u64>,
    files: Option<u64>,
    file_size: Option<u64>,
}

/// What `args` ask for, as things stand now. While this process has one thread.
pub fn of(args: &SandboxArgs) -> Result<Limits> {
    let bytes = |text: &Option<String>| text.as_deref().map(size::parse).transpose();
    let tasks = match args.pids {
        Some(_) if geteuid().is_root() => return Err(Failure::PidsOfRoot),
        Some(pids) => Some(tasks_of_user()? + KEEPERS + pids),
        None => None,
    };
    Ok(Limits {
        tasks,
        addresses: bytes(&args.proc_mem)?,
        cpu_s: args.cpu_time,
        files: args.files,
        file_size: bytes(&args.file_size)?,
    })
}

/// Which limit of these has ended a program whose status, as a shell has it, is this: what its signal is for.
pub fn ended_by(args: &SandboxArgs, status: u8) -> Option<String> {
    let signal = Signal::try_from(i32::from(status.checked_sub(128)?)).ok()?;
    match (signal, &args.file_size, args.cpu_time) {
        (Signal::SIGXFSZ, Some(most), _) => Some(format!(
            "the program was ended: a file would have grown beyond {most} (--file-size)"
        )),
        (Signal::SIGXCPU, _, Some(most)) => Some(format!(
            "the program was ended: it has used {most} s of CPU time (--cpu-time)"
        )),
        _ => None,
    }
}

impl Limits {
    /// For this process and all that it starts; they can't be raised again.
    pub fn set(self) -> Result<()> {
        std::fs::write("/proc/self/oom_score_adj", KILL_FIRST).map_err(Failure::host(
            "have the host end the sandbox first when memory runs out",
        ))?;
        // A host's handler of core files reads what a hostile program writes. Linux starts it whatever the limit is,
        // but for one of 1 (do_coredump() of fs/coredump.c); the list of calls keeps it there.
        hold(Resource::RLIMIT_CORE, Some(1))?;
        hold(Resource::RLIMIT_NPROC, self.tasks)
    }

    /// The same once the node is up, and before there is a program.
    pub fn set_for_programs(self) -> Result<()> {
        let with_own = |bytes: u64| bytes.saturating_add(KEEPERS_ADDRESSES);
        hold(Resource::RLIMIT_AS, self.addresses.map(with_own))?;
        hold(Resource::RLIMIT_FSIZE, self.file_size)?;
        let files = self.files.map(|files| files.max(KEEPERS_FILES));
        hold(Resource::RLIMIT_NOFILE, files)
    }

    /// What a program has of a process's descriptors, of which this host lets it have so many.
    pub fn descriptors(self, (soft, hard): (u64, u64)) -> (u64, u64) {
        let files = self.files.unwrap_or(hard);
        (soft.min(files), hard.min(files))
    }

    /// What else a program has, on a node with so much memory.
    pub fn of_program(self, mem: u64) -> Result<OfProgram> {
        let of_node = mem.saturating_add(GATES_ADDRESSES);
        let fail = |why: nix::Error| Failure::host("ask for the limit of CPU time")(why.into());
        let (_, most) = getrlimit(Resource::RLIMIT_CPU).map_err(fail)?;
        let cpu_s = |cpu_s: u64| (cpu_s.min(most), (cpu_s + LAST_WORDS_S).min(most));
        Ok(OfProgram {
            addresses: self.addresses.map(|bytes| bytes.saturating_add(of_node)),
            cpu_s: self.cpu_s.map(cpu_s),
        })
    }
}

/// Limits of a program and not of its keeper.
#[derive(Debug, Clone, Copy)]
pub struct OfProgram {
    addresses: Option<u64>,
    /// Soft and hard.
    cpu_s: Option<(u64, u64)>,
}

impl OfProgram {
    pub fn give(self, command: &mut Command) {
        if let Some(bytes) = self.addresses {
            leaf::limit(command, Resource::RLIMIT_AS, (bytes, bytes));
        }
        if let Some(cpu_s) = self.cpu_s {
            leaf::limit(command, Resource::RLIMIT_CPU, cpu_s);
        }
    }
}

/// At most so much, and never more again.
fn hold(what: Resource, most: Option<u64>) -> Result<()> {
    let Some(most) = most else {
        return Ok(());
    };
    let fail = |why: nix::Error| Failure::host("set the sandbox's limits")(why.into());
    let (_, hard) = getrlimit(what).map_err(fail)?;
    let most = most.min(hard);
    setrlimit(what, most, most).map_err(fail)
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
