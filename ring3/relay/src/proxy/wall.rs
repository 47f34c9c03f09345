// SPDX-License-Identifier: GPL-2.0
//! The wall around a proxy's relay once it serves: the host calls that are left. All else is `EPERM`, for ever.
//!
//! Whoever takes the process over has the clients' bytes and the sockets that it was given, may ask the supervisor for more
//! sockets to the targets of the configuration, and owns the node that it is on: its memory is shared by all of the node's
//! processes. It opens no file, starts nothing, signals nobody, makes no socket of the host's, and has no connect().
//! It can send to any address by a socket that it was given: sendto() and sendmsg() pass with an address, and MSG_FASTOPEN.

use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use crate::error::Result;
use crate::tuning::PROXY_MEMORY;
use crate::wall::{Condition, Rules};

/// RING3_SLOT_SIZE of include/ring3.abi.
const SLOT: u64 = 4 << 30;

/// With any arguments, and what makes it.
const ALLOWED: &[libc::c_long] = &[
    // stream.rs, flow.rs, far.rs: on sockets that came from the supervisor.
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_close,
    // wire.rs: messages with descriptors.
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    // feed.rs, the signals of mod.rs; what the logger says.
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_wait,
    libc::SYS_read,
    libc::SYS_write,
    // The node's kernel (kernel/arch/ring3/kernel/host.c): waits, clocks, its ports' descriptors.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_writev,
    // A thread that was just starting: the C library ends the process where it can't have these.
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    // Memory; what could make code of it is below.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_munmap,
    // Faults in kernel code, the end of a thread, a panic.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
];

/// What a relay that keeps its node makes besides.
const FOR_OWN: &[libc::c_long] = &[
    // The far end of a link asks for its memory (ring3_node, ports/handover.rs).
    libc::SYS_accept4,
    // Of this process once its number is known (ring3_node, procs.rs), and nothing can be sent to it.
    libc::SYS_pidfd_open,
    libc::SYS_mincore,
];

/// With these arguments.
const CHECKED: &[(libc::c_long, &[&[Condition]])] = &[
    (
        libc::SYS_setsockopt,
        // far.rs: a reset.
        &[&crate::wall::option(libc::SOL_SOCKET, libc::SO_LINGER)],
    ),
    crate::wall::NO_CODE[0],
    crate::wall::NO_CODE[1],
    // Is somebody there? Nothing is sent.
    (libc::SYS_kill, &[&[(1, crate::wall::WHOLE, 0)]]),
    (libc::SYS_tgkill, &[&[(2, crate::wall::WHOLE, 0)]]),
    // vcpu/*.c: how exact its waits are.
    (
        libc::SYS_prctl,
        &[&[(0, crate::wall::WHOLE, libc::PR_SET_TIMERSLACK as u64)]],
    ),
];

/// From here on, for all threads of this process. Also sets no_new_privs.
pub fn raise() -> Result<()> {
    Rules {
        allowed: &[ALLOWED],
        checked: CHECKED,
    }
    .raise()
}

/// The same where the relay keeps the node.
pub fn raise_for_own() -> Result<()> {
    Rules {
        allowed: &[ALLOWED, FOR_OWN],
        checked: CHECKED,
    }
    .raise()
}

/// Address space beyond what there is now, so that a relay out of control does not take the host's memory; no core files.
/// `makes_node`: it will make one, whose slot of address space counts.
pub fn limit_memory(makes_node: bool) -> rustix::io::Result<()> {
    let pages = std::fs::read_to_string("/proc/self/statm");
    let pages = pages
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let page = rustix::param::page_size() as u64;
    if let Some(pages) = pages {
        let slot = if makes_node { SLOT } else { 0 };
        let all = pages * page + PROXY_MEMORY + slot;
        let hard = getrlimit(Resource::As).maximum;
        let all = hard.map_or(all, |hard| all.min(hard));
        let limit = Rlimit {
            current: Some(all),
            maximum: Some(all),
        };
        setrlimit(Resource::As, limit)?;
    }
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)
}
