// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: inotify
//!
//! `inotify` tells names and uses of files, and Landlock does not judge it. Linux counts instances and watches by user, so one sandbox could use up
//! those of all of the user's programs. So the warden makes both.
//!
//! 1. `inotify_init()`: the warden makes the instance, adds it to an epoll set of its own, gives it to the caller and closes its own
//!    descriptor. The host takes a file out of an epoll set when the last descriptor of that file is closed, in whichever process. So
//!    the set has those that the sandbox still has, and /proc/self/fdinfo of the set has a line for each.
//! 2. `inotify_add_watch()`: of a file that the sandbox may write to. The host numbers the watches of an instance in
//!    order, so a small number says that there are few. Beyond it /proc/self/fdinfo of the instance has a line for each.

use std::fs::File;
use std::io::{BufRead, BufReader, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::epoll;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::behalf::{by_descriptor, error, Asker, Reach};

/// The part of the user's instances and watches that one sandbox may have.
const PART: u64 = 8;
/// Where the host does not say how many there are for a user: its defaults (`max_user_instances`, and the least `max_user_watches`).
const INSTANCES_OF_USER: u64 = 128;
const WATCHES_OF_USER: u64 = 8192;

/// The instances of a sandbox.
#[derive(Debug)]
pub(crate) struct Instances {
    /// Those that are still open somewhere.
    open: OwnedFd,
    most: u64,
    watches_most: u64,
}

impl Instances {
    pub(crate) fn new() -> Result<Instances> {
        let most = (of_user("max_user_instances", INSTANCES_OF_USER) / PART).max(1);
        let watches = of_user("max_user_watches", WATCHES_OF_USER) / PART;
        Ok(Instances {
            open: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            most,
            watches_most: (watches / most).max(1),
        })
    }

    /// One that is to be given to the caller of `inotify_init1()`, before it is dropped.
    pub(crate) fn make(&self, flags: u32) -> Result<OwnedFd> {
        let known = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let flags = CreateFlags::from_bits_retain(flags);
        if !known.contains(flags) {
            return Err(error(libc::EINVAL));
        }
        if lines(&self.open, "tfd:")? >= self.most {
            return Err(error(libc::EMFILE));
        }
        let made = inotify::init(flags | CreateFlags::CLOEXEC)?;
        let none = epoll::EventData::new_u64(0);
        epoll::add(&self.open, &made, none, epoll::EventFlags::empty())?;
        Ok(made)
    }

    pub(crate) fn watch(&self, wish: &Watched, reach: &Reach) -> Result<i32> {
        let watch = wish.make(reach)?;
        let is_many = u64::try_from(watch).is_ok_and(|number| number > self.watches_most);
        if is_many && lines(&wish.inotify, "inotify wd:")? > self.watches_most {
            inotify::remove_watch(&wish.inotify, watch)?;
            return Err(error(libc::ENOSPC));
        }
        Ok(watch)
    }
}

fn of_user(what: &str, usual: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{what}"));
    text.ok()
        .and_then(|it| it.trim().parse().ok())
        .unwrap_or(usual)
}

/// How many lines of what the host says of a descriptor begin so.
fn lines(fd: &OwnedFd, begin: &str) -> Result<u64> {
    let file = File::open(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let mut count = 0;
    for line in BufReader::new(file).lines() {
        count += u64::from(line?.starts_with(begin));
    }
    Ok(count)
}

/// A watch of a file or folder that the sandbox may write to.
#[derive(Debug)]
pub(crate) struct Watched {
    inotify: OwnedFd,
    file: OwnedFd,
    mask: u32,
}

impl Watched {
    pub(crate) fn read(thread: u32, args: &[u64; 6]) -> Result<Watched> {
        let asker = Asker::new(thread);
        let mask = args[2] as u32;
        let follow = match mask & libc::IN_DONT_FOLLOW {
            0 => 0,
            _ => libc::AT_SYMLINK_NOFOLLOW as u64,
        };
        Ok(Watched {
            inotify: asker.copy(args[0] as i32)?,
            file: asker.file_at(libc::AT_FDCWD, args[1], follow)?,
            mask,
        })
    }

    /// The watch's number.
    fn make(&self, reach: &Reach) -> Result<i32> {
        let file = reach.find_any(&self.file)?;
        let mask = self.mask & !libc::IN_DONT_FOLLOW;
        let flags = WatchFlags::from_bits_retain(mask);
        let path = by_descriptor(file.as_fd());
        Ok(inotify::add_watch(&self.inotify, path, flags)?)
    }
}
