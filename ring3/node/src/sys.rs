// SPDX-License-Identifier: GPL-2.0
//! Host system calls that no crate wraps. Unsafe leaf.
#![allow(unsafe_code)]

use std::mem::{size_of_val, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::error::Errno;

type Result<T> = std::result::Result<T, Errno>;

fn last() -> Errno {
    std::io::Error::last_os_error().into()
}

fn check(ret: libc::c_int) -> Result<libc::c_int> {
    if ret < 0 {
        Err(last())
    } else {
        Ok(ret)
    }
}

// ---- open-file-description locks: they live as long as the descriptor, whichever process dies
// ----

fn byte_range(kind: libc::c_int, byte: i64) -> libc::flock {
    // SAFETY: flock is plain data, for which all zeroes is a value.
    let mut lock: libc::flock = unsafe { zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte;
    lock.l_len = 1;
    lock
}

/// Locks one byte of a file for this descriptor. `EAGAIN`: another has it.
pub(crate) fn lock_byte(fd: impl AsFd, byte: i64) -> Result<()> {
    let lock = byte_range(libc::F_WRLCK, byte);
    // SAFETY: the descriptor is open and `lock` outlives the call.
    check(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &lock) })?;
    Ok(())
}

/// Unlocks a byte.
pub(crate) fn unlock_byte(fd: impl AsFd, byte: i64) -> Result<()> {
    let lock = byte_range(libc::F_UNLCK, byte);
    // SAFETY: the descriptor is open and `lock` outlives the call.
    check(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_OFD_SETLK, &lock) })?;
    Ok(())
}

/// Whether another descriptor has locked that byte. Locks nothing.
pub(crate) fn byte_is_locked(fd: impl AsFd, byte: i64) -> Result<bool> {
    let mut lock = byte_range(libc::F_WRLCK, byte);
    // SAFETY: the descriptor is open; the kernel writes the one flock it is given.
    check(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_OFD_GETLK, &mut lock) })?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

// ---- TAP ----

/// `_IOW('T', 202, int)` and its like, <linux/if_tun.h>.
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::Ioctl = 0x4004_54d8;

fn ifreq(name: &str) -> Result<libc::ifreq> {
    // SAFETY: ifreq is plain data, for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Attaches /dev/net/tun's `fd` to TAP `name`, with a virtio-net header on each frame.
pub(crate) fn tap_attach(fd: BorrowedFd<'_>, name: &str) -> Result<()> {
    let mut request = ifreq(name)?;
    request.ifr_ifru.ifru_flags =
        (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes the one ifreq it is given.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF, &mut request) })?;
    Ok(())
}

/// Sets the size of the virtio-net header.
pub(crate) fn tap_set_header(fd: BorrowedFd<'_>, bytes: i32) -> Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETVNETHDRSZ, &bytes) })?;
    Ok(())
}

/// Sets the offloads that the reader of the TAP supports: TUN_F_*. `EINVAL`: the host does not know
/// one.
pub(crate) fn tap_set_offload(fd: BorrowedFd<'_>, flags: libc::c_uint) -> Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETOFFLOAD, libc::c_ulong::from(flags)) })?;
    Ok(())
}

/// The host's index of an interface.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: a NUL-terminated name that outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Whether interface `name` of the host has that address.
pub(crate) fn has_address(name: &str, address: IpAddr) -> bool {
    any_entry(name, |entry| ip(entry.ifa_addr) == Some(address))
}

/// Whether interface `name` is the host's own loopback.
pub(crate) fn is_loopback(name: &str) -> bool {
    any_entry(name, |entry| {
        entry.ifa_flags & libc::IFF_LOOPBACK as libc::c_uint != 0
    })
}

/// Whether `holds` is true for an entry of interface `name`: it has one for each address, and one
/// for its link layer.
fn any_entry(name: &str, holds: impl Fn(&libc::ifaddrs) -> bool) -> bool {
    let mut list = std::ptr::null_mut();
    // SAFETY: getifaddrs writes one pointer, to a list that is ours until freeifaddrs.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return false;
    }
    let mut found = false;
    let mut at: *const libc::ifaddrs = list;
    while !at.is_null() {
        // SAFETY: an entry of the list, which is not freed yet; its name ends with a NUL.
        let (entry, own) = unsafe { (&*at, std::ffi::CStr::from_ptr((*at).ifa_name)) };
        found |= own.to_bytes() == name.as_bytes() && holds(entry);
        at = entry.ifa_next;
    }
    // SAFETY: what getifaddrs gave, once.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// The address in a sockaddr of getifaddrs, if it is an IP address.
fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every sockaddr starts with its family, which says how it goes on; the C library
    // aligns them for all families.
    unsafe {
        match libc::c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let address = &*address.cast::<libc::sockaddr_in>();
                Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let address = &*address.cast::<libc::sockaddr_in6>();
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

// ---- packet sockets ----

/// <linux/if_packet.h>
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// An AF_PACKET socket on interface `ifindex`: each frame after a virtio-net header, promiscuous,
/// and without frames that the host itself sends there.
pub(crate) fn packet_socket(ifindex: u32) -> Result<OwnedFd> {
    let fd = packet_socket_unbound()?;
    set_option(&fd, libc::SOL_PACKET, PACKET_VNET_HDR, &1i32)?;
    set_option(&fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
    hear_all(&fd, ifindex)?;
    // SAFETY: sockaddr_ll is plain data, for which all zeroes is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = ifindex as i32;
    // SAFETY: bind reads `size` bytes of an address that has as many.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as u32,
        )
    })?;
    Ok(fd)
}

/// A packet socket that receives nothing.
fn packet_socket_unbound() -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Protocol 0: nothing is received before bind() names one and the interface.
    // SAFETY: no memory is involved.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the call just made this descriptor; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the interface accept frames for any address, for as long as the socket is open.
fn hear_all(fd: &OwnedFd, ifindex: u32) -> Result<()> {
    let member = libc::packet_mreq {
        mr_ifindex: ifindex as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)
}

/// Interface `ifindex` takes frames for any address, for as long as the descriptor is open.
pub(crate) fn promiscuous(ifindex: u32) -> Result<OwnedFd> {
    let fd = packet_socket_unbound()?;
    hear_all(&fd, ifindex)?;
    Ok(fd)
}

/// setsockopt(2) with options that rustix has no name for; T is what the option takes.
pub(crate) fn set_option<T>(
    fd: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> Result<()> {
    // SAFETY: setsockopt reads size_of::<T>() bytes of `value`, which is a T.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (value as *const T).cast(),
            size_of::<T>() as u32,
        )
    })?;
    Ok(())
}

// ---- signals ----

/// Blocks every signal on this thread but those that a fault raises; returns the previous mask.
/// Threads started meanwhile inherit it.
pub(crate) fn block_signals() -> SignalMask {
    // SAFETY: sigset_t is plain data that sigfillset and pthread_sigmask fill in.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        let mut before: libc::sigset_t = zeroed();
        libc::sigfillset(&mut all);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE] {
            libc::sigdelset(&mut all, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        SignalMask(before)
    }
}

/// Makes `command`'s process start with no signal blocked.
pub(crate) fn block_none_in(command: &mut Command) {
    let hook = || {
        // SAFETY: sigset_t is plain data that sigemptyset fills in.
        let done = unsafe {
            let mut none: libc::sigset_t = zeroed();
            libc::sigemptyset(&mut none);
            libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut())
        };
        match done {
            0 => Ok(()),
            why => Err(std::io::Error::from_raw_os_error(why)),
        }
    };
    // SAFETY: the hook runs between fork and exec: it makes one system call, allocates nothing
    // and takes no lock.
    unsafe { command.pre_exec(hook) };
}

/// Restores the signal mask when dropped.
pub(crate) struct SignalMask(libc::sigset_t);

impl Drop for SignalMask {
    fn drop(&mut self) {
        // SAFETY: the mask is one that pthread_sigmask wrote.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

// ---- processes ----

/// Runs `body` in a child of this process, with this name, all signals blocked, a session of its
/// own and a copy of this process's memory. The child ends with `body`, and runs no destructor
/// after it.
pub(crate) fn fork(name: &str, body: impl FnOnce()) -> Result<rustix::process::Pid> {
    let name = std::ffi::CString::new(name).map_err(|_| Errno(libc::EINVAL))?;
    let before = block_signals();
    // SAFETY: other threads of this process may hold locks, which stay held in the child. Those of
    // memory are glibc's, whose fork() sees to them; `body` takes no other: it makes system calls
    // and logs where no other thread of this process does yet.
    let pid = check(unsafe { libc::fork() })?;
    drop(before);
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        return Ok(pid);
    }
    let _mask = block_signals();
    // SAFETY: no memory but the name is involved, which outlives the call.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
    }
    // A panic must not unwind into the code of the parent.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    // SAFETY: _exit is always fine.
    unsafe { libc::_exit(0) }
}

/// For a child of [`fork`]: closes every descriptor but standard error and `keep`.
pub(crate) fn keep_only(keep: &OwnedFd) {
    let mut kept = [libc::STDERR_FILENO as u32, keep.as_raw_fd() as u32];
    kept.sort_unstable();
    let mut first = 0;
    for last in [kept[0], kept[1], u32::MAX] {
        if first < last {
            // SAFETY: whatever owns these descriptors belongs to the parent; the child never uses it.
            unsafe { libc::syscall(libc::SYS_close_range, first, last - 1, 0u32) };
        }
        first = last.wrapping_add(1);
    }
}

/// Makes number `fd` a duplicate of `by`.
pub(crate) fn replace(fd: &OwnedFd, by: impl AsFd) -> Result<()> {
    // SAFETY: both are open. Whoever owns the first owns a descriptor afterwards, too.
    check(unsafe { libc::dup3(by.as_fd().as_raw_fd(), fd.as_raw_fd(), libc::O_CLOEXEC) })?;
    Ok(())
}

/// For a process that has just started, with one thread: closes every descriptor but standard error
/// and `keep`, which is not one of the first three. /dev/null replaces standard input and output.
pub(crate) fn close_inherited(keep: &OwnedFd) -> Result<()> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for standard in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: no memory is involved, and nobody owns these numbers.
        check(unsafe { libc::dup2(null.as_raw_fd(), standard) })?;
    }
    drop(null);
    let keep = keep.as_raw_fd() as u32;
    for (first, last) in [(3, keep - 1), (keep + 1, u32::MAX)] {
        if first <= last {
            // SAFETY: the process has just begun, so that nothing of it owns these descriptors.
            check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) as i32 })?;
        }
    }
    Ok(())
}

/// The name that this machine, or its UTS namespace, has for programs.
pub(crate) fn host_name() -> String {
    // SAFETY: arrays of characters, for which zeroes are a value.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: it writes to that structure alone, and ends each name with a zero.
    unsafe { libc::uname(&mut names) };
    let name = names.nodename.iter().take_while(|it| **it != 0);
    let name: Vec<u8> = name.map(|it| *it as u8).collect();
    String::from_utf8_lossy(&name).into_owned()
}

/// Sets the smallest timer slack for this thread: timers of the node are exact.
pub(crate) fn exact_timers() {
    // SAFETY: no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Asks the host's scheduler (since Linux 6.12) for short slices, so that this thread, which mostly
/// sleeps, runs soon after it wakes. No effect on older hosts and under other policies.
pub(crate) fn short_turns() {
    // SAFETY: no memory is involved; 0 is the calling thread.
    let (policy, nice) = unsafe {
        let policy = libc::sched_getscheduler(0);
        (policy, libc::getpriority(libc::PRIO_PROCESS, 0))
    };
    if policy != libc::SCHED_OTHER {
        return;
    }
    // SAFETY: all fields are integers.
    let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
    attr.size = std::mem::size_of::<libc::sched_attr>() as u32;
    attr.sched_nice = nice;
    attr.sched_runtime = SHORT_TURN_NS;
    // SAFETY: the attributes outlive the call, which only reads them.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attr, 0) };
}

/// The shortest slice that Linux allows (__setparam_fair in kernel/sched/fair.c).
const SHORT_TURN_NS: u64 = 100_000;

// ---- futexes ----

/// Sleeps until a word, which may be shared with other processes, differs from `value` and is
/// woken, or for `timeout`.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as i64,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    // SAFETY: the word is borrowed and `timeout` outlives the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &raw const timeout,
        )
    };
}

/// Wakes all threads that sleep on a word, which may be shared with other processes.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is borrowed; waking does not touch it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_byte_is_locked_for_one_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            std::fs::File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(dir.path().join("f"))
                .unwrap()
        };
        let (first, second) = (open(), open());
        lock_byte(&first, 1).unwrap();
        assert_eq!(lock_byte(&second, 1), Err(Errno(libc::EAGAIN)));
        assert!(byte_is_locked(&second, 1).unwrap());
        assert!(!byte_is_locked(&second, 0).unwrap());
        drop(first);
        assert!(!byte_is_locked(&second, 1).unwrap());
    }

    #[test]
    fn an_interface_has_its_addresses_only() {
        let lo: IpAddr = Ipv4Addr::LOCALHOST.into();
        // A namespace without any has lo down.
        if std::net::UdpSocket::bind((lo, 0)).is_ok() {
            assert!(has_address("lo", lo));
        }
        assert!(!has_address("lo", Ipv4Addr::new(192, 0, 2, 1).into()));
        assert!(!has_address("nosuch", lo));
        assert!(is_loopback("lo") && !is_loopback("nosuch"));
    }

    #[test]
    fn futex_wait_ends_by_a_change_a_wake_or_time() {
        let word = AtomicU32::new(0);
        futex_wait(&word, 1, Duration::from_secs(5));
        futex_wait(&word, 0, Duration::from_millis(1));
        std::thread::scope(|s| {
            s.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                word.store(1, Ordering::Release);
                futex_wake(&word);
            });
            let start = std::time::Instant::now();
            futex_wait(&word, 0, Duration::from_secs(5));
            assert!(start.elapsed() < Duration::from_secs(4));
        });
    }
}
