// SPDX-License-Identifier: GPL-2.0
//! The wall around a gateway: the host calls that its process may make once it serves. All else is `EPERM`, on each of its
//! threads, for ever. Whoever takes the process over by a packet can connect to what the user can reach on the network, and
//! nothing else: no file, no program, no other process, no socket of another kind.
//!
//! Capabilities are given up before anything of the node is mapped; ports below 1024 are bound before that.

use ring3_sandbox::rules::{option, word, Checked, Condition, Rules, NO_CODE, WHOLE};

use crate::error::Result;

/// With any arguments, and what makes it.
const ALLOWED: &[libc::c_long] = &[
    // The relay, on descriptors that it has.
    libc::SYS_accept4,
    libc::SYS_close,
    libc::SYS_connect,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_wait,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_write,
    // The node's kernel and the keeper's threads: waits, clocks.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_nanosleep,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_sched_yield,
    // A thread that was just starting: the C library ends the process where it can't have these.
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    // Of this process once its number is known (procs.rs), and nothing can be sent to it.
    libc::SYS_pidfd_open,
    // Memory; what could make code of it is below.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_munmap,
    // Faults in kernel code, the end of a thread, a panic.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
];

/// A socket's kind without its flags, none of which is another kind's.
const KIND: u64 = WHOLE & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;

/// A socket of this family, kind and protocol.
const fn of(family: i32, kind: i32, protocol: i32) -> [Condition; 3] {
    [
        (0, WHOLE, word(family)),
        (1, KIND, word(kind)),
        (2, WHOLE, word(protocol)),
    ]
}

/// What may be made with some arguments: alternatives, each of conditions that all hold.
const CHECKED: &[Checked] = &[
    // Datagrams and streams of IP.
    (
        libc::SYS_socket,
        &[
            &of(libc::AF_INET, libc::SOCK_STREAM, 0),
            &of(libc::AF_INET, libc::SOCK_DGRAM, 0),
            &of(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP),
            &of(libc::AF_INET6, libc::SOCK_STREAM, 0),
            &of(libc::AF_INET6, libc::SOCK_DGRAM, 0),
            &of(libc::AF_INET6, libc::SOCK_DGRAM, libc::IPPROTO_ICMPV6),
        ],
    ),
    (
        libc::SYS_setsockopt,
        &[
            &option(libc::SOL_SOCKET, libc::SO_LINGER),
            &option(libc::SOL_SOCKET, libc::SO_KEEPALIVE),
            &option(libc::IPPROTO_TCP, libc::TCP_NODELAY),
            &option(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
            &option(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
            &option(libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
            &option(libc::SOL_IP, libc::IP_RECVERR),
            &option(libc::SOL_IPV6, libc::IPV6_RECVERR),
        ],
    ),
    NO_CODE[0],
    NO_CODE[1],
    // Is somebody there? Nothing is sent.
    (libc::SYS_kill, &[&[(1, WHOLE, 0)]]),
    (libc::SYS_tgkill, &[&[(2, WHOLE, 0)]]),
    (
        libc::SYS_prctl,
        &[&[(0, WHOLE, word(libc::PR_SET_TIMERSLACK))]],
    ),
];

/// The gateway's.
pub fn raise() -> Result<()> {
    let rules = Rules {
        allowed: &[ALLOWED],
        checked: &[CHECKED],
    };
    Ok(rules.raise()?)
}
