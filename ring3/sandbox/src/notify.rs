// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: calls that the warden makes for a confined process. Unsafe leaf.
//!
//! Landlock's rules are for files that are there when a process confines itself, so none can let a process see its
//! own folder in /proc. A call of [`crate::list::OWN`] stops its thread until the warden, outside, has answered.
//! The warden opens the file itself and puts the descriptor into the asking process. What it goes by are the call's
//! number and argument, which the host has copied: nothing that the process can change meanwhile. The process number
//! is checked after the file is open, by [`valid`]: until then it may have become another's. Calls of
//! [`crate::list::BEHALF`] are made by the warden: [`crate::behalf`], [`crate::sockets`]. All of that at a pace: [`crate::pace`].
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, Result};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::Scope;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{getrlimit, Resource};
use seccompiler::BpfProgram;

use crate::behalf::{Reach, Wish};
use crate::list::{MACHINE_FILES, OWN, OWN_FILES, OWN_MACHINE, OWN_MEMORY};
use crate::pace::Pace;
use crate::sockets::{self, Attempt, Connection, Sockets, TICK};
use crate::watches::{Instances, Watched};

/// `_IOWR('!', 0, struct seccomp_notif)` and its like, <linux/seccomp.h>.
const RECV: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
const ID_VALID: libc::Ioctl = 0x4008_2102;
const ADDFD: libc::Ioctl = 0x4018_2103;
/// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, <linux/seccomp.h>, Linux 5.19.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// Calls of connect() that wait for their listeners, each in a thread of the warden's, with a descriptor.
const WAITING_MAX: u64 = 64;
/// Sockets with names of one sandbox. The warden has a descriptor for each.
const BOUND_MAX: u64 = 512;
/// The part of this process's descriptors that waiting calls may have, and sockets with names. The others are for who controls the node.
const WAITING_PART: u64 = 16;
const BOUND_PART: u64 = 2;
/// How often to look whether a caller that waits for room in a queue still does.
const CALLER_TURN: Duration = Duration::from_millis(100);

/// Sets a filter for the calling thread, whose notifications come out of the descriptor.
pub(crate) fn listen(filter: &BpfProgram) -> Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut().cast(),
    };
    // Once the warden has the question, no signal but SIGKILL ends the call: what is done is not done twice.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE;
    // SAFETY: `program` and the filter it points to outlive the call, which only reads them; sock_filter of both
    // crates is the kernel's.
    let fd = unsafe {
        let set = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, set, flags, &raw const program)
    };
    match fd {
        // SAFETY: the call just made this descriptor; nobody else has it.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
        _ => Err(Error::last_os_error()),
    }
}

/// Answers until no process is left that could ask; for good without capabilities in this thread, as the sandbox is.
pub fn serve(listener: &OwnedFd, reach: &Reach) -> Result<()> {
    crate::drop_capabilities()?;
    // SAFETY: of this thread, only the working folder and the file mode mask are its own from here on.
    let alone = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) };
    let (waiting, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let share = |part: u64, most: u64| (descriptors / part).clamp(1, most) as usize;
    let bound_max = share(BOUND_PART, BOUND_MAX);
    std::thread::scope(|threads| {
        let mut warden = Warden {
            listener,
            reach,
            // Where a container's filter refuses that, it refuses copies of descriptors as well.
            sockets: alone.ok().and_then(|()| reach.sockets(bound_max)),
            instances: Instances::new().ok(),
            waiting: &waiting,
            over: &over,
            waiting_max: share(WAITING_PART, WAITING_MAX),
            threads,
        };
        let served = warden.serve();
        // Those that wait for listeners end, too: until they do, nobody closes the descriptor, and who asks waits.
        over.store(true, Relaxed);
        served
    })
}

struct Warden<'scope, 'env> {
    listener: &'env OwnedFd,
    reach: &'env Reach,
    sockets: Option<Sockets>,
    /// Not where the host had no descriptor for them.
    instances: Option<Instances>,
    waiting: &'env AtomicUsize,
    over: &'env AtomicBool,
    waiting_max: usize,
    threads: &'scope Scope<'scope, 'env>,
}

impl Warden<'_, '_> {
    fn serve(&mut self) -> Result<()> {
        let listener = self.listener;
        let mut pace = Pace::new();
        loop {
            pace.keep();
            // SAFETY: all fields are integers; the kernel wants zeroes.
            let mut asked: libc::seccomp_notif = unsafe { zeroed() };
            match ioctl(listener, RECV, &raw mut asked) {
                Ok(_) => {}
                Err(why) if why.raw_os_error() == Some(libc::EINTR) => continue,
                // The last process has gone, or the one that asked has.
                Err(why) if why.raw_os_error() == Some(libc::ENOENT) => match is_over(listener) {
                    true => return Ok(()),
                    false => continue,
                },
                Err(why) => return Err(why),
            }
            let id = asked.id;
            if let Err(why) = self.answer(&asked) {
                refuse(listener, id, &why);
            }
        }
    }

    fn answer(&mut self, asked: &libc::seccomp_notif) -> Result<()> {
        // Its number means nothing here where it is 0.
        if asked.pid == 0 {
            return Err(Error::from_raw_os_error(libc::ENOSYS));
        }
        let (listener, id, args) = (self.listener, asked.id, &asked.data.args);
        let call = libc::c_long::from(asked.data.nr);
        let value = match call {
            _ if call == OWN.nr => {
                let file = self.open(asked)?;
                valid(listener, id)?;
                return give(listener, id, &file, libc::O_CLOEXEC);
            }
            libc::SYS_bind => {
                let sockets = self.sockets.as_mut();
                let sockets = sockets.ok_or_else(|| Error::from_raw_os_error(libc::EPERM))?;
                let wish = sockets::Wish::read(asked.pid, call, args)?;
                valid(listener, id)?;
                sockets.bind(&wish, self.reach)?;
                0
            }
            libc::SYS_connect => {
                let sockets = self.sockets.as_ref();
                let sockets = sockets.ok_or_else(|| Error::from_raw_os_error(libc::EPERM))?;
                let wish = sockets::Wish::read(asked.pid, call, args)?;
                valid(listener, id)?;
                return self.connect(id, sockets.connection(wish)?);
            }
            libc::SYS_inotify_init | libc::SYS_inotify_init1 => {
                let flags = match call {
                    libc::SYS_inotify_init => 0,
                    _ => args[0] as u32,
                };
                let instances = self.instances.as_mut().ok_or_else(no_instances)?;
                let made = instances.make(flags)?;
                return give(listener, id, &made, flags as libc::c_int & libc::O_CLOEXEC);
            }
            libc::SYS_inotify_add_watch => {
                let watched = Watched::read(asked.pid, args)?;
                valid(listener, id)?;
                let instances = self.instances.as_ref().ok_or_else(no_instances)?;
                instances.watch(&watched, self.reach)?
            }
            _ => {
                let wish = Wish::read(asked.pid, call, args)?;
                valid(listener, id)?;
                wish.grant(self.reach)?;
                0
            }
        };
        reply(listener, id, value.into(), 0)
    }

    /// Where the listener's queue is full, a thread of its own goes on: the listener may need an answer before it accepts.
    fn connect(&self, id: u64, connection: Connection) -> Result<()> {
        let (listener, waiting, over) = (self.listener, self.waiting, self.over);
        let Attempt::Full(connection) = connection.attempt(TICK)? else {
            return reply(listener, id, 0, 0);
        };
        if waiting.fetch_add(1, Relaxed) >= self.waiting_max {
            waiting.fetch_sub(1, Relaxed);
            return Err(Error::from_raw_os_error(libc::EAGAIN));
        }
        let body = move || {
            wait_for_room(listener, id, connection, over);
            waiting.fetch_sub(1, Relaxed);
        };
        let thread = std::thread::Builder::new().spawn_scoped(self.threads, body);
        if thread.is_err() {
            waiting.fetch_sub(1, Relaxed);
        }
        thread.map(drop)
    }

    fn open(&self, asked: &libc::seccomp_notif) -> Result<OwnedFd> {
        let absent = || Error::from_raw_os_error(libc::ENOSYS);
        let file = asked.data.args[0] as usize;
        if file == OWN_MEMORY {
            // The host passes no descriptor of a file as such on.
            let folder = self.reach.memory().ok_or_else(absent)??;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?);
        }
        if let Some(number) = file.checked_sub(OWN_MACHINE) {
            let file = MACHINE_FILES.get(number).ok_or_else(absent)?;
            return File::open(format!("/proc/{file}")).map(OwnedFd::from);
        }
        let file = OWN_FILES.get(file).ok_or_else(absent)?;
        // Threads of others are not below it.
        let file = match asked.data.args[1] as u32 {
            0 => (*file).to_owned(),
            thread => format!("task/{thread}/{file}"),
        };
        match asked.data.args[2] as u32 {
            0 => File::open(format!("/proc/{}/{file}", asked.pid)).map(OwnedFd::from),
            process => {
                let folder = self.reach.folder_of(process)?;
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                Ok(rustix::fs::openat(folder, &file, flags, Mode::empty())?)
            }
        }
    }
}

/// Connects, or stops when the caller has gone, or nobody answers any more.
fn wait_for_room(listener: &OwnedFd, id: u64, mut connection: Connection, over: &AtomicBool) {
    loop {
        match connection.attempt(CALLER_TURN) {
            Ok(Attempt::Done) => return drop(reply(listener, id, 0, 0)),
            Ok(Attempt::Full(again)) => connection = again,
            Err(why) => return refuse(listener, id, &why),
        }
        if valid(listener, id).is_err() || over.load(Relaxed) {
            return;
        }
    }
}

/// Whether the thread that asked still waits for this answer.
fn valid(listener: &OwnedFd, id: u64) -> Result<()> {
    ioctl(listener, ID_VALID, &raw const id).map(drop)
}

/// Ends the call with a descriptor of this file.
fn give(listener: &OwnedFd, id: u64, file: &OwnedFd, flags: libc::c_int) -> Result<()> {
    let add = libc::seccomp_notif_addfd {
        id,
        flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
        srcfd: file.as_raw_fd() as u32,
        newfd: 0,
        newfd_flags: flags as u32,
    };
    ioctl(listener, ADDFD, &raw const add).map(drop)
}

/// Ends the call with this error.
fn refuse(listener: &OwnedFd, id: u64, why: &Error) {
    let errno = why.raw_os_error().unwrap_or(libc::EIO);
    // Where the asking thread has gone meanwhile, there is nobody to hear this.
    let _ = reply(listener, id, 0, -errno);
}

/// Ends the call with this value, or with an error.
fn reply(listener: &OwnedFd, id: u64, val: i64, error: i32) -> Result<()> {
    let answer = libc::seccomp_notif_resp {
        id,
        val,
        error,
        flags: 0,
    };
    ioctl(listener, SEND, &raw const answer).map(drop)
}

fn no_instances() -> Error {
    Error::from_raw_os_error(libc::EMFILE)
}

fn is_over(listener: &OwnedFd) -> bool {
    let mut fd = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one pollfd, which the call writes.
    let ready = unsafe { libc::poll(&raw mut fd, 1, 0) };
    ready > 0 && fd.revents & libc::POLLHUP != 0
}

/// T is the structure that `request` names; the callers above pair them.
fn ioctl<T>(listener: &OwnedFd, request: libc::Ioctl, argument: *const T) -> Result<libc::c_int> {
    // SAFETY: the argument is a pointer to the structure of this request, alive during the call.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), request, argument) };
    match done {
        0.. => Ok(done),
        _ => Err(Error::last_os_error()),
    }
}
