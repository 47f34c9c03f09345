// SPDX-License-Identifier: GPL-2.0
//! The wall around a proxy's relay once it serves: the host calls that are left. All else is `EPERM`, for ever.
//!
//! Whoever takes the process over has the clients' bytes and the sockets that it was given, may ask the supervisor for more
//! sockets to the targets of the configuration, and owns the node that it is on: its memory is shared by all of the node's
//! processes. It opens no file, starts nothing, signals nobody, makes no socket of the host's, and connects none: neither by
//! connect() nor by an address that it sends to.
//!
//! Some relays need sendmsg() ([`FOR_MESSAGES`]), whose address is in memory, where seccomp does not see it. So these can send
//! datagrams to any address by a socket for datagrams that they were given: where a listener is for UDP.

use ring3_sandbox::rules::{option, Checked, Rules, NO_CODE, WHOLE};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use crate::error::Result;
use crate::tuning::PROXY_MEMORY;

/// RING3_SLOT_SIZE of include/ring3.abi.
const SLOT: u64 = 4 << 30;

/// With any arguments, and what makes it.
const ALLOWED: &[libc::c_long] = &[
    // stream.rs, flow.rs, far.rs: on sockets that came from the supervisor.
    libc::SYS_recvfrom,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_close,
    // wire.rs: messages with descriptors, which come from the supervisor only.
    libc::SYS_recvmsg,
    // feed.rs; what the logger says.
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

/// The flag by which a stream that is not connected becomes so.
const FAST_OPEN: u64 = libc::MSG_FASTOPEN as u64;

/// Where the node has a port `passt` (kernel/arch/ring3/kernel/host.c), and for the memory of a link that the relay keeps
/// (ring3_node, ports/handover.rs).
const FOR_MESSAGES: &[Checked] = &[(libc::SYS_sendmsg, &[&[(2, FAST_OPEN, 0)]])];

/// With these arguments.
const CHECKED: &[Checked] = &[
    // far.rs, flow.rs, wire.rs: to the socket's own peer. An address would be another, or with MSG_FASTOPEN a connect().
    (libc::SYS_sendto, &[&[(3, FAST_OPEN, 0), (4, u64::MAX, 0)]]),
    (
        libc::SYS_setsockopt,
        // far.rs: a reset.
        &[&option(libc::SOL_SOCKET, libc::SO_LINGER)],
    ),
    NO_CODE[0],
    NO_CODE[1],
    // Is somebody there? Nothing is sent.
    (libc::SYS_kill, &[&[(1, WHOLE, 0)]]),
    (libc::SYS_tgkill, &[&[(2, WHOLE, 0)]]),
    // vcpu/*.c: how exact its waits are.
    (
        libc::SYS_prctl,
        &[&[(0, WHOLE, libc::PR_SET_TIMERSLACK as u64)]],
    ),
];

/// What a relay makes besides what all do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// It keeps the node.
    pub node: bool,
    /// A port's wire, or what is said about it, has messages ([`FOR_MESSAGES`]).
    pub messages: bool,
}

/// From here on, for all threads of this process. Also sets no_new_privs.
pub fn raise(needs: Needs) -> Result<()> {
    let rules = Rules {
        allowed: &[ALLOWED, if needs.node { FOR_OWN } else { &[] }],
        checked: &[CHECKED, if needs.messages { FOR_MESSAGES } else { &[] }],
    };
    Ok(rules.raise()?)
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
