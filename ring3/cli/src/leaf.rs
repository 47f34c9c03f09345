// SPDX-License-Identifier: GPL-2.0
//! The few things the command does that Rust cannot check.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::prctl;
use nix::sys::resource::{rlim_t, setrlimit, Resource};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{fork, getpid, getppid, setsid, ForkResult};

/// Which of the two processes [`detach`] returned in.
#[derive(Debug, PartialEq, Eq)]
pub enum Side {
    Caller,
    Detached,
}

/// A signal whose disposition is changed in this process, and how it was when we were started.
struct Given {
    signal: Signal,
    ignored: AtomicBool,
}

/// SIGPIPE: Rust's runtime ignores it in this process and sets it to its default in each that it
/// starts. SIGCHLD: [`wait_for_children`].
static GIVEN: [Given; 2] = [
    Given {
        signal: Signal::SIGPIPE,
        ignored: AtomicBool::new(false),
    },
    Given {
        signal: Signal::SIGCHLD,
        ignored: AtomicBool::new(false),
    },
];

/// The C library calls this before main(), and so before Rust's runtime changes anything.
// SAFETY of the section: the C library calls each entry once, with arguments that a function
// without parameters does not look at.
#[used]
#[link_section = ".init_array"]
static REMEMBER: extern "C" fn() = remember_dispositions;

extern "C" fn remember_dispositions() {
    for given in &GIVEN {
        given
            .ignored
            .store(is_ignored(given.signal), Ordering::Relaxed);
    }
}

/// Sets the signals that we were started with ignored so again. One call each: fit for the time
/// between fork and exec.
fn ignore_what_was_ignored() {
    for given in &GIVEN {
        if given.ignored.load(Ordering::Relaxed) {
            // SAFETY: no handler is involved.
            unsafe { libc::signal(given.signal as libc::c_int, libc::SIG_IGN) };
        }
    }
}

/// Whether this process ignores a signal.
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: sigaction is plain data, for which all zeroes is a value; nothing is changed.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal as libc::c_int, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}

/// Makes the ends of our children something to wait for. A parent that ignores SIGCHLD leaves
/// that to us, and then the host would throw each child's status away.
pub fn wait_for_children() {
    // SAFETY: no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// The program that `command` starts ignores the signals that were ignored when this command started, as without it.
pub fn prepare_exec(command: &mut Command) {
    let hook = || {
        ignore_what_was_ignored();
        Ok(())
    };
    // SAFETY: the hook makes system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(hook) };
}

/// Gives `command`'s process this signal mask and these limits of descriptors, and makes it die (SIGKILL) with the thread
/// that starts it.
pub fn prepare_child(command: &mut Command, mask: SigSet, descriptors: (rlim_t, rlim_t)) {
    prepare_listed(command, mask, descriptors);
    let parent = getpid();
    let hook = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have gone before the line above took effect.
        if getppid() != parent {
            return Err(nix::Error::ESRCH.into());
        }
        Ok(())
    };
    // SAFETY: the hook runs between fork and exec: it makes two system calls, allocates
    // nothing and takes no lock.
    unsafe { command.pre_exec(hook) };
}

/// Gives `command`'s process this limit, soft and hard.
pub fn limit(command: &mut Command, what: Resource, (soft, hard): (rlim_t, rlim_t)) {
    let hook = move || Ok(setrlimit(what, soft, hard)?);
    // SAFETY: the hook makes one system call, allocates nothing and takes no lock.
    unsafe { command.pre_exec(hook) };
}

/// Leaves a descriptor to what `command` becomes.
pub fn keep_open(command: &mut Command, fd: &std::os::fd::OwnedFd) {
    use std::os::fd::{AsRawFd, BorrowedFd};
    let fd = fd.as_raw_fd();
    let hook = move || {
        // SAFETY: the caller has the descriptor until the command has been spawned.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        nix::fcntl::fcntl(
            fd,
            nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
        )?;
        Ok(())
    };
    // SAFETY: the hook makes one system call, allocates nothing and takes no lock.
    unsafe { command.pre_exec(hook) };
}

/// `command` becomes the leader of a session of its own.
pub fn own_session(command: &mut Command) {
    let hook = || Ok(setsid().map(drop)?);
    // SAFETY: the hook makes one system call, allocates nothing and takes no lock.
    unsafe { command.pre_exec(hook) };
}

/// The same without the death: the node's end is the program's.
pub fn prepare_listed(command: &mut Command, mask: SigSet, descriptors: (rlim_t, rlim_t)) {
    prepare_exec(command);
    let hook = move || {
        mask.thread_set_mask()?;
        setrlimit(Resource::RLIMIT_NOFILE, descriptors.0, descriptors.1)?;
        Ok(())
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(hook) };
}

/// Gives `command`'s process this signal mask.
pub fn with_mask(command: &mut Command, mask: SigSet) {
    let hook = move || Ok(mask.thread_set_mask()?);
    // SAFETY: as above.
    unsafe { command.pre_exec(hook) };
}

/// Goes on in a child too; its number, or nothing in the child. Must be called while this process has one thread.
pub fn fork_child() -> nix::Result<Option<nix::unistd::Pid>> {
    // SAFETY: this process has a single thread (the caller's duty), so the child's copy of
    // memory is consistent and any code may go on in it.
    match unsafe { fork()? } {
        ForkResult::Parent { child } => Ok(Some(child)),
        ForkResult::Child => Ok(None),
    }
}

/// Goes on in a process of its own: no terminal, no parent that waits for it, no way to
/// acquire a terminal again. Must be called while this process has one thread.
pub fn detach() -> nix::Result<Side> {
    // SAFETY: this process has a single thread (the caller's duty), so the child's copy of
    // memory is consistent and any code may go on in it.
    match unsafe { fork()? } {
        ForkResult::Parent { child } => {
            waitpid(child, None)?;
            Ok(Side::Caller)
        }
        ForkResult::Child => {
            let in_between = || -> nix::Result<bool> {
                setsid()?;
                // SAFETY: as above, a single thread.
                Ok(matches!(unsafe { fork()? }, ForkResult::Child))
            };
            match in_between() {
                Ok(true) => Ok(Side::Detached),
                // The caller hears of a failure through the end of the pipe.
                // SAFETY: _exit is always fine; no destructor or atexit handler of the
                // caller's may run twice.
                _ => unsafe { libc::_exit(0) },
            }
        }
    }
}

/// Closes every descriptor above standard error but `keep`: they came from whoever started
/// this process, and something may wait for their end.
pub fn close_all_but(keep: &[std::os::fd::BorrowedFd<'_>]) {
    use std::os::fd::AsRawFd;
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd() as u32).collect();
    keep.sort_unstable();
    let mut first = 3;
    for last in keep.into_iter().map(|fd| fd - 1).chain([u32::MAX]) {
        if first <= last {
            // SAFETY: called right after a fork, in a child that uses nothing but `keep` and leaves by exit(), so no
            // owner of another descriptor closes a number that has become another's.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
        }
        first = last.saturating_add(2);
    }
}

/// Does `probe` in a child and says how that ended. `probe` may only make system calls.
pub fn in_child(probe: impl FnOnce() -> i32) -> nix::Result<WaitStatus> {
    // SAFETY: the child only makes system calls (the caller's duty) and leaves by _exit.
    match unsafe { fork()? } {
        ForkResult::Parent { child } => waitpid(child, None),
        ForkResult::Child => {
            let status = probe();
            // SAFETY: see above.
            unsafe { libc::_exit(status) }
        }
    }
}

/// Arms Syscall User Dispatch with every call blocked, then makes one: where it works,
/// SIGSYS ends the process. Returns what failed.
pub fn trip_user_dispatch() -> i32 {
    const PR_SET_SYSCALL_USER_DISPATCH: i32 = 59; // <linux/prctl.h>
    const PR_SYS_DISPATCH_ON: u64 = 1;
    const SELECTOR_BLOCK: u8 = 1;
    static SELECTOR: u8 = SELECTOR_BLOCK;
    // SAFETY: prctl reads SELECTOR, which lives for ever; from here on any call ends the
    // process, which is a child made for that.
    let armed = unsafe {
        libc::prctl(
            PR_SET_SYSCALL_USER_DISPATCH,
            PR_SYS_DISPATCH_ON,
            0u64,
            0u64,
            &raw const SELECTOR,
        )
    };
    if armed != 0 {
        return 1;
    }
    // SAFETY: getppid has no preconditions.
    unsafe { libc::syscall(libc::SYS_getppid) };
    2
}

/// Whether the kernel lets programs read and write the GS base (AT_HWCAP2, bit 1).
pub fn has_fsgsbase() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1; // <asm/hwcap2.h>
                                         // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}

/// Can `size` bytes at exactly `address` be reserved in this process?
pub fn can_reserve(address: u64, size: u64) -> bool {
    // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping, and what was mapped is ours to
    // unmap again.
    unsafe {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let place = libc::mmap(
            address as *mut libc::c_void,
            size as usize,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        );
        if place == libc::MAP_FAILED {
            return false;
        }
        libc::munmap(place, size as usize);
        place as u64 == address
    }
}

/// Can a memfd be mapped executable? (sysctl vm.memfd_noexec and security modules may say no.)
pub fn can_execute_memfd() -> std::io::Result<()> {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    const PAGE: usize = 4096;
    // SAFETY: the name is NUL-terminated; the descriptor is fresh and owned here; the
    // mapping is unmapped before anyone could use it.
    unsafe {
        let fd = libc::memfd_create(c"ring3-doctor".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let fd = OwnedFd::from_raw_fd(fd);
        if libc::ftruncate(fd.as_raw_fd(), PAGE as i64) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let place = libc::mmap(
            std::ptr::null_mut(),
            PAGE,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_SHARED,
            fd.as_raw_fd(),
            0,
        );
        if place == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        libc::munmap(place, PAGE);
    }
    Ok(())
}

/// Makes a TAP that goes away at once. Needs /dev/net/tun and CAP_NET_ADMIN.
pub fn can_make_tap() -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let tun = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is a valid one; an empty name lets the host choose.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which `request` is.
    let done = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    match done {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// May this user open such a socket?
pub fn can_open_socket(domain: i32, kind: i32) -> std::io::Result<()> {
    // SAFETY: socket has no preconditions; a descriptor it returns is ours to close.
    unsafe {
        let fd = libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        libc::close(fd);
    }
    Ok(())
}

/// Can a thread wait for several words at once? With nothing to wait for the host says EINVAL; else what it says.
pub fn try_futex_waitv() -> std::io::Result<()> {
    // SAFETY: a list of no entries is refused by the kernel, nothing is read.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            std::ptr::null::<u8>(),
            0u32,
            0u32,
            std::ptr::null::<u8>(),
            0,
        )
    };
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINVAL) if result < 0 => Ok(()),
        _ => Err(error),
    }
}

/// Does the host offer io_uring to this user? With invalid arguments it says EFAULT or EINVAL.
pub fn has_io_uring() -> bool {
    // SAFETY: a null parameter block is refused by the kernel, not read by us.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1u32, std::ptr::null::<u8>()) };
    let errno = std::io::Error::last_os_error().raw_os_error();
    result < 0 && errno == Some(libc::EFAULT)
}

/// A descriptor that a message has just brought, as a value that closes it.
pub fn own(fd: std::os::fd::RawFd) -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: the host has just made this descriptor, and the caller has nobody else use it.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }
}
