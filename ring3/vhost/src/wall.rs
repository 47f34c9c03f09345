// SPDX-License-Identifier: GPL-2.0
//! The wall around a device: the host calls that its process may make once it serves. All else is `EPERM`, for ever.
//!
//! Whoever takes the process over, by a guest's queues or a frontend's messages, has the guest's memory, the link's ring, and
//! the socket on which further virtual machines come. It opens no file, starts nothing, signals nobody, makes no socket and
//! connects none.

use ring3_sandbox::rules::{hide, option, word, Checked, Rules, WHOLE};

use crate::error::Result;

/// With any arguments, and what makes it.
const ALLOWED: &[libc::c_long] = &[
    // The frontend: messages with descriptors, on connections that come.
    libc::SYS_accept4,
    libc::SYS_close,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    // Kicks and calls, what the logger says.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_eventfd2,
    libc::SYS_poll,
    libc::SYS_ppoll,
    // The link's bell; locks.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrandom,
    // A thread for each connection; see NO_CLONE3.
    libc::SYS_clone3,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sched_getaffinity,
    // Memory; what could make code of it is below.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_munmap,
    // The end of a thread, a panic.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
];

/// Its flags lie in memory, where no filter can look: the C library falls back to clone().
const HIDDEN: &[libc::c_long] = &[libc::SYS_clone3];

/// What a thread of this process is made with: nothing else can be.
const THREAD: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID) as u64;
/// Neither code, nor a file: see CHECKED.
const NO_EXEC: (u8, u64, u64) = (2, libc::PROT_EXEC as u64, 0);
/// To a socket's own peer: an address could name any path.
const NO_ADDRESS: (u8, u64, u64) = (4, u64::MAX, 0);

/// What may be made with some arguments: alternatives, each of conditions that all hold.
const CHECKED: &[Checked] = &[
    // The guest's memory, and stacks of threads: never code.
    (libc::SYS_mmap, &[&[NO_EXEC]]),
    (libc::SYS_mprotect, &[&[NO_EXEC]]),
    (libc::SYS_clone, &[&[(0, u64::MAX, THREAD)]]),
    // vhost's answers; an answer on a stream has no address, whatever is said.
    (libc::SYS_sendmsg, &[&[(2, libc::MSG_FASTOPEN as u64, 0)]]),
    (libc::SYS_sendto, &[&[NO_ADDRESS]]),
    (
        libc::SYS_fcntl,
        &[
            &[(1, WHOLE, word(libc::F_DUPFD_CLOEXEC))],
            &[(1, WHOLE, word(libc::F_GETFD))],
            &[(1, WHOLE, word(libc::F_GETFL))],
            // Without O_ASYNC, by which a terminal would signal its foreground.
            &[
                (1, WHOLE, word(libc::F_SETFL)),
                (2, libc::O_ASYNC as u64, 0),
            ],
        ],
    ),
    (
        libc::SYS_getsockopt,
        &[&option(libc::SOL_SOCKET, libc::SO_ERROR)],
    ),
    (
        libc::SYS_prctl,
        &[
            &[(0, WHOLE, word(libc::PR_SET_NAME))],
            // What the C library calls a mapping; where the kernel has it not, nothing is lost.
            &[(0, WHOLE, 0x5356_4d41)],
        ],
    ),
];

/// From here on.
pub fn raise() -> Result<()> {
    hide(HIDDEN)?;
    let rules = Rules {
        allowed: &[ALLOWED],
        checked: &[CHECKED],
    };
    Ok(rules.raise()?)
}
