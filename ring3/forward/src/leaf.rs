// SPDX-License-Identifier: GPL-2.0
//! The rest that Rust cannot check: names of sockets as bytes, clocks of threads, scheduling, signals. Unsafe leaf.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::mem::{size_of, MaybeUninit};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::{Error, Result};

/// A socket's name as the kernel writes and reads it.
#[derive(Clone, Copy)]
pub struct Name {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Name").field("len", &self.len).finish()
    }
}

impl Name {
    pub fn none() -> Name {
        Name {
            // SAFETY: plain data, for which all zeroes is a value.
            storage: unsafe { std::mem::zeroed() },
            len: 0,
        }
    }

    pub fn of(address: SocketAddr) -> Name {
        let mut name = Name::none();
        match address {
            SocketAddr::V4(v4) => {
                let inet = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(v4.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                name.put(inet);
            }
            SocketAddr::V6(v6) => {
                let inet = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                };
                name.put(inet);
            }
        }
        name
    }

    fn put<T: Copy>(&mut self, value: T) {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: the storage is as large, and aligned for each kind of name.
        unsafe { (&raw mut self.storage).cast::<T>().write(value) };
        self.len = size_of::<T>() as libc::socklen_t;
    }

    /// For a handler: its place, and its length.
    pub fn raw(&self) -> (*const c_void, u32) {
        ((&raw const self.storage).cast(), self.len)
    }

    pub fn for_kernel(&mut self) -> (*mut c_void, libc::socklen_t) {
        let len = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        ((&raw mut self.storage).cast(), len)
    }

    pub fn set_len(&mut self, len: libc::socklen_t) {
        self.len = len;
    }
}

/// The processor's time stamp counter.
pub fn cycles() -> u64 {
    // SAFETY: each x86-64 processor has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// The time that a thread has used on processors.
#[derive(Debug, Clone, Copy)]
pub struct Clock(libc::clockid_t);

impl Clock {
    pub fn used(&self) -> Option<Duration> {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the kernel writes one timespec if it answers 0.
        unsafe {
            (libc::clock_gettime(self.0, time.as_mut_ptr()) == 0).then(|| {
                let time = time.assume_init();
                Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
            })
        }
    }
}

pub fn clock_of_this_thread() -> Clock {
    let mut clock = 0;
    // SAFETY: a thread's own handle is valid; the C library writes one clockid_t.
    let status = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    // It fails where the host has no such clocks, which no Linux lacks: the process's then.
    Clock(if status == 0 {
        clock
    } else {
        libc::CLOCK_PROCESS_CPUTIME_ID
    })
}

fn ends() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset makes a set of it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        let mut set = set.assume_init();
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        set
    }
}

/// Threads that are made from here on don't take SIGTERM and SIGINT: [`wait_for_end`] does.
pub fn hold_back_ends() -> Result<()> {
    let set = ends();
    // SAFETY: a set, and no place for the old one.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        why => Err(Error::host("block signals")(io::Error::from_raw_os_error(
            why,
        ))),
    }
}

/// Whether such a signal came in this time.
pub fn wait_for_end(time: Duration) -> Result<bool> {
    let set = ends();
    let time = libc::timespec {
        tv_sec: time.as_secs() as _,
        tv_nsec: time.subsec_nanos().into(),
    };
    // SAFETY: a set and a time; nothing is written.
    let signal =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const time) };
    if signal >= 0 {
        return Ok(true);
    }
    let why = io::Error::last_os_error();
    match why.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Ok(false),
        _ => Err(Error::host("wait for a signal")(why)),
    }
}

/// This process, its threads and children from here on: SCHED_FIFO with this priority, on this CPU alone.
pub fn run_in_real_time(priority: Option<u8>, cpu: Option<usize>) -> Result<()> {
    if let Some(cpu) = cpu {
        // SAFETY: a set of CPUs is plain data; CPU_SET looks at the bounds.
        let done = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
        };
        if done != 0 {
            return Err(Error::host("stay on that CPU")(io::Error::last_os_error()));
        }
    }
    if let Some(priority) = priority {
        // The kernel's struct sched_param; C libraries have longer ones.
        let param = libc::c_int::from(priority);
        // SAFETY: one integer, which is read. The system call, since musl's function refuses.
        let done = unsafe {
            libc::syscall(
                libc::SYS_sched_setscheduler,
                0,
                libc::SCHED_FIFO,
                &raw const param,
            )
        };
        if done != 0 {
            return Err(Error::host(
                "run in real time (it needs CAP_SYS_NICE or a limit `ulimit -r`, and a cgroup that may)",
            )(io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// This thread's place among the host's real-time threads.
fn place() -> Result<Option<(i32, i32)>> {
    let mut param: libc::c_int = 0;
    // SAFETY: asks for this thread's policy, and its priority, one integer. The system calls, since musl's functions refuse.
    let (policy, done) = unsafe {
        (
            libc::syscall(libc::SYS_sched_getscheduler, 0) as i32,
            libc::syscall(libc::SYS_sched_getparam, 0, &raw mut param),
        )
    };
    if policy < 0 || done != 0 {
        return Err(Error::host("ask for a thread's priority")(
            io::Error::last_os_error(),
        ));
    }
    let is_real = matches!(
        policy & !libc::SCHED_RESET_ON_FORK,
        libc::SCHED_FIFO | libc::SCHED_RR
    );
    Ok(is_real.then_some((policy, param)))
}

fn take(place: (i32, i32)) -> io::Result<()> {
    // SAFETY: one integer, which is read.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, place.0, &raw const place.1) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// In real time, this thread and those that it makes are above the agent from here on; where the agent belongs is the
/// answer. Without real time nothing changes.
pub fn rise_above_agent() -> Result<Option<(i32, i32)>> {
    // SAFETY: no preconditions.
    let highest = unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) };
    let Some((policy, priority)) = place()? else {
        return Ok(None);
    };
    let above = (priority + 1).min(highest);
    take((policy, above)).map_err(Error::host(
        "run one priority above the agent's (it needs CAP_SYS_NICE, or `ulimit -r` one above --real-time)",
    ))?;
    Ok(Some((policy, above - 1)))
}

/// To the agent's place.
pub fn descend(place: Option<(i32, i32)>) -> Result<()> {
    place
        .map_or(Ok(()), take)
        .map_err(Error::host("run in real time"))
}

/// Ends the process by status 1. Nothing else is done: another thread may hold any lock.
pub fn exit_at_once() -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(1) }
}

/// Of a socket; the address is of its own family.
pub fn option(fd: i32, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: one integer, which is read.
    let done = unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// All addresses of the family that `to` has.
pub fn any_like(to: SocketAddr) -> SocketAddr {
    let ip: IpAddr = match to {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}
