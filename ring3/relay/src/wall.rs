// SPDX-License-Identifier: GPL-2.0
//! The wall around a gateway: the host calls that its process may make once it serves. All else is `EPERM`, on each of its
//! threads, for ever. Whoever takes the process over by a packet can connect to what the user can reach on the network, and
//! nothing else: no file, no program, no other process, no socket of another kind.
//!
//! Capabilities are given up before anything of the node is mapped; ports below 1024 are bound before that.

use std::collections::BTreeMap;

use seccompiler::{
    apply_filter_all_threads, BpfProgram, SeccompAction, SeccompCmpArgLen as Len,
    SeccompCmpOp as Op, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::error::{Error, Result};

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

const fn word(value: i32) -> u64 {
    value as u32 as u64
}

/// One condition: argument, mask, value. A mask of more than 32 bits takes the whole argument.
pub type Condition = (u8, u64, u64);
/// A host call, and alternatives, each of conditions that all hold.
pub type Checked = (libc::c_long, &'static [&'static [Condition]]);
pub const WHOLE: u64 = 0xffff_ffff;
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

/// A socket option of this level.
pub const fn option(level: i32, name: i32) -> [Condition; 2] {
    [(1, WHOLE, word(level)), (2, WHOLE, word(name))]
}

/// New memory of this process's own, or of threads' stacks: not a file, whose bytes could be the kernel's text.
const ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;

/// No new code; and no second mapping of shared memory, which mremap() makes, too: a writable one of the kernel's text.
pub const NO_CODE: [Checked; 2] = [
    (
        libc::SYS_mmap,
        &[&[(2, word(libc::PROT_EXEC), 0), (3, ANONYMOUS, ANONYMOUS)]],
    ),
    (libc::SYS_mprotect, &[&[(2, word(libc::PROT_EXEC), 0)]]),
];

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

fn rule(conditions: &[Condition]) -> Result<SeccompRule> {
    let made = conditions
        .iter()
        .map(|&(index, mask, value)| {
            let len = if mask > WHOLE { Len::Qword } else { Len::Dword };
            SeccompCondition::new(index, len, Op::MaskedEq(mask), value)
        })
        .collect::<std::result::Result<_, _>>()
        .and_then(SeccompRule::new);
    made.map_err(|why| Error::Wall {
        why: why.to_string(),
    })
}

/// A list of host calls: with any arguments, and with some.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub allowed: &'a [&'static [libc::c_long]],
    pub checked: &'a [&'static [Checked]],
}

impl Rules<'_> {
    fn program(&self) -> Result<BpfProgram> {
        let allowed = self.allowed.iter().copied().flatten();
        let allowed = allowed.map(|nr| (*nr, Vec::new()));
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = allowed.collect();
        for (nr, alternatives) in self.checked.iter().copied().flatten() {
            let all: Result<_> = alternatives.iter().map(|it| rule(it)).collect();
            rules.insert(*nr, all?);
        }
        let refuse = SeccompAction::Errno(libc::EPERM as u32);
        SeccompFilter::new(rules, refuse, SeccompAction::Allow, TargetArch::x86_64)
            .and_then(BpfProgram::try_from)
            .map_err(|why| Error::Wall {
                why: why.to_string(),
            })
    }

    /// From here on, for all threads of this process. Also sets no_new_privs.
    pub fn raise(&self) -> Result<()> {
        apply_filter_all_threads(&self.program()?).map_err(|why| Error::Wall {
            why: why.to_string(),
        })
    }
}

/// The gateway's.
pub fn raise() -> Result<()> {
    Rules {
        allowed: &[ALLOWED],
        checked: &[CHECKED],
    }
    .raise()
}
