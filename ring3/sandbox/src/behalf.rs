// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: calls that the warden makes for a confined process
//!
//! Landlock does not judge changes of a file's mode, owner and times. A filter can't either: it sees a path's address. So such a
//! call stops its thread, and the warden makes it:
//!
//! 1. It reads the path and the times out of the caller's memory, once. What the caller changes there later is not looked at.
//! 2. It looks the path up from the caller's working folder or descriptor, to a descriptor of the file as such (`O_PATH`). No link of
//!    /proc is followed, which would mean the warden's own.
//! 3. It asks the host for that file's path, walks that down from the folder that the sandbox may write to, without any link, and compares
//!    what is there with what it has. Whatever is renamed or swapped meanwhile, the second walk does not leave the folder.
//! 4. The host says whether the caller still waits for this answer. Only then were steps 1 and 2 about that process, and not about
//!    one that has got its number since.
//! 5. The change is made to what the second walk has found.
//!
//! The thread that does so has no capabilities, like the sandbox. So it can't look up or change what the user can't.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    fstat, openat2, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, CWD,
};

/// With the NUL (<linux/limits.h>).
const PATH_MAX: usize = 4096;
/// A file as such.
const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;
const EMPTY_PATH: u64 = libc::AT_EMPTY_PATH as u64;

/// Files and folders whose content a sandbox may change. A folder's own attributes are its owner's, those of what is below are the sandbox's.
#[derive(Debug, Default)]
pub struct Reach(Vec<OwnedFd>);

impl Reach {
    pub fn new(places: Vec<OwnedFd>) -> Reach {
        Reach(places)
    }

    /// The same file, found from one of the places.
    fn find(&self, file: &OwnedFd) -> Result<OwnedFd> {
        let path = path_of(file)?;
        let wanted = fstat(file)?;
        for place in &self.0 {
            let top = path_of(place)?;
            let Ok(rest) = path.strip_prefix(&top) else {
                continue;
            };
            let found = match rest.as_os_str().is_empty() {
                true => place.try_clone()?,
                false => {
                    let flags = PLACE | OFlags::NOFOLLOW;
                    let within = ResolveFlags::BENEATH
                        | ResolveFlags::NO_SYMLINKS
                        | ResolveFlags::NO_MAGICLINKS;
                    match openat2(place, rest, flags, Mode::empty(), within) {
                        Ok(found) => found,
                        // It has been moved, or something else lies there.
                        Err(_) => continue,
                    }
                }
            };
            let stat = fstat(&found)?;
            let is_same = (stat.st_dev, stat.st_ino) == (wanted.st_dev, wanted.st_ino);
            if is_same && !(rest.as_os_str().is_empty() && is_folder(&stat)) {
                return Ok(found);
            }
        }
        Err(error(libc::EPERM))
    }
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn by_descriptor(fd: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

fn path_of(fd: &OwnedFd) -> Result<PathBuf> {
    fs::read_link(by_descriptor(fd.as_fd()))
}

fn error(errno: i32) -> Error {
    Error::from_raw_os_error(errno)
}

/// What a thread asks for.
#[derive(Debug)]
pub(crate) struct Wish {
    file: OwnedFd,
    change: Change,
}

#[derive(Debug)]
enum Change {
    Mode(u32),
    /// `u32::MAX` stays.
    Owner(u32, u32),
    Times(Timestamps),
}

impl Wish {
    /// Of a thread that waits in this call. Not to be granted before it is known that it still does.
    pub(crate) fn read(thread: u32, call: i64, args: &[u64; 6]) -> Result<Wish> {
        let asker = Asker { thread };
        let [first, second, third, fourth, fifth, _] = *args;
        let at = |dir: u64, path: u64, flags: u64| asker.file_at(dir as i32, path, flags);
        let here = |path: u64, flags: u64| asker.file_at(libc::AT_FDCWD, path, flags);
        let known = |flags: u64| match flags & !(NOFOLLOW | EMPTY_PATH) {
            0 => Ok(flags),
            _ => Err(error(libc::EINVAL)),
        };
        let mode = |mode: u64| Change::Mode(mode as u32);
        let owner = |user: u64, group: u64| Change::Owner(user as u32, group as u32);
        let (file, change) = match call {
            libc::SYS_chmod => (here(first, 0)?, mode(second)),
            libc::SYS_fchmod => (asker.descriptor(first as i32)?, mode(second)),
            libc::SYS_fchmodat => (at(first, second, 0)?, mode(third)),
            libc::SYS_fchmodat2 => (
                at(first, second, known(fourth as u32 as u64)?)?,
                mode(third),
            ),
            libc::SYS_chown => (here(first, 0)?, owner(second, third)),
            libc::SYS_lchown => (here(first, NOFOLLOW)?, owner(second, third)),
            libc::SYS_fchown => (asker.descriptor(first as i32)?, owner(second, third)),
            libc::SYS_fchownat => (
                at(first, second, known(fifth as u32 as u64)?)?,
                owner(third, fourth),
            ),
            libc::SYS_utime => (here(first, 0)?, Change::Times(asker.seconds(second)?)),
            libc::SYS_utimes => (here(first, 0)?, Change::Times(asker.times(second, 1000)?)),
            libc::SYS_futimesat => (
                at(first, second, 0)?,
                Change::Times(asker.times(third, 1000)?),
            ),
            libc::SYS_utimensat => (
                at(first, second, known(fourth as u32 as u64)?)?,
                Change::Times(asker.times(third, 1)?),
            ),
            _ => return Err(error(libc::ENOSYS)),
        };
        Ok(Wish { file, change })
    }

    pub(crate) fn grant(&self, reach: &Reach) -> Result<()> {
        let file = reach.find(&self.file)?;
        let stat = fstat(&file)?;
        match self.change {
            Change::Mode(mode) => {
                let forbidden = match is_folder(&stat) {
                    true => libc::S_ISUID,
                    // Who runs such a file is its owner: root's sandbox could leave one to others.
                    false => libc::S_ISUID | libc::S_ISGID,
                };
                if mode & forbidden != 0 {
                    return Err(error(libc::EPERM));
                }
                let permissions = fs::Permissions::from_mode(mode & 0o7777);
                fs::set_permissions(by_descriptor(file.as_fd()), permissions)
            }
            Change::Owner(user, group) => {
                let stays = |asked: u32, is: u32| asked == u32::MAX || asked == is;
                match stays(user, stat.st_uid) && stays(group, stat.st_gid) {
                    true => Ok(()),
                    false => Err(error(libc::EPERM)),
                }
            }
            Change::Times(ref times) => {
                rustix::fs::utimensat(&file, "", times, AtFlags::EMPTY_PATH)?;
                Ok(())
            }
        }
    }
}

/// A thread of the sandbox that waits for an answer.
struct Asker {
    thread: u32,
}

impl Asker {
    fn own(&self, what: &str) -> PathBuf {
        format!("/proc/{}/{what}", self.thread).into()
    }

    fn descriptor(&self, fd: i32) -> Result<OwnedFd> {
        if fd < 0 {
            return Err(error(libc::EBADF));
        }
        self.place(&format!("fd/{fd}"), libc::EBADF)
    }

    fn place(&self, what: &str, missing: i32) -> Result<OwnedFd> {
        rustix::fs::openat(CWD, self.own(what), PLACE, Mode::empty()).map_err(|why| match why {
            rustix::io::Errno::NOENT => error(missing),
            why => why.into(),
        })
    }

    fn file_at(&self, dir: i32, path: u64, flags: u64) -> Result<OwnedFd> {
        let at = || match dir {
            libc::AT_FDCWD => self.place("cwd", libc::ENOENT),
            fd => self.descriptor(fd),
        };
        if path == 0 && dir != libc::AT_FDCWD {
            return self.descriptor(dir);
        }
        let path = self.path(path)?;
        if path.as_os_str().is_empty() {
            return match flags & EMPTY_PATH {
                0 => Err(error(libc::ENOENT)),
                _ => at(),
            };
        }
        if let Some(fd) = self.own_descriptor(&path) {
            return self.descriptor(fd);
        }
        let follow = match flags & NOFOLLOW {
            0 => OFlags::empty(),
            _ => OFlags::NOFOLLOW,
        };
        let base = match path.is_absolute() {
            true => None,
            false => Some(at()?),
        };
        let base = base.as_ref().map_or(CWD, AsFd::as_fd);
        let found = openat2(
            base,
            &path,
            PLACE | follow,
            Mode::empty(),
            ResolveFlags::NO_MAGICLINKS,
        );
        Ok(found?)
    }

    /// The C library knows a descriptor's file by such a name.
    fn own_descriptor(&self, path: &Path) -> Option<i32> {
        let name = path
            .strip_prefix("/proc/self/fd")
            .or_else(|_| path.strip_prefix("/dev/fd"));
        name.ok()?.to_str()?.parse().ok()
    }

    fn memory(&self, at: u64, bytes: &mut [u8]) -> Result<usize> {
        let memory = File::open(self.own("mem"))?;
        memory
            .read_at(bytes, at)
            .map_err(|why| match why.raw_os_error() {
                Some(libc::EIO) => error(libc::EFAULT),
                _ => why,
            })
    }

    fn path(&self, at: u64) -> Result<PathBuf> {
        let mut bytes = vec![0; PATH_MAX];
        let got = self.memory(at, &mut bytes)?;
        let end = bytes[..got].iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| {
            error(if got == PATH_MAX {
                libc::ENAMETOOLONG
            } else {
                libc::EFAULT
            })
        })?;
        bytes.truncate(end);
        Ok(std::ffi::OsString::from_vec(bytes).into())
    }

    fn numbers<const N: usize>(&self, at: u64) -> Result<[i64; N]> {
        let mut bytes = vec![0; N * size_of::<i64>()];
        if self.memory(at, &mut bytes)? < bytes.len() {
            return Err(error(libc::EFAULT));
        }
        let mut words = bytes.chunks_exact(size_of::<i64>());
        Ok(std::array::from_fn(|_| {
            let word = words.next().and_then(|it| it.try_into().ok());
            i64::from_ne_bytes(word.unwrap_or_default())
        }))
    }

    /// A `struct utimbuf`.
    fn seconds(&self, at: u64) -> Result<Timestamps> {
        if at == 0 {
            return Ok(now());
        }
        let [access, change] = self.numbers(at)?;
        Ok(both(access, 0, change, 0))
    }

    /// Two of `struct timeval` or `timespec`, whose fractions count so many nanoseconds each.
    fn times(&self, at: u64, unit: i64) -> Result<Timestamps> {
        if at == 0 {
            return Ok(now());
        }
        let [access, of_access, change, of_change] = self.numbers(at)?;
        let fraction = |count: i64| match unit {
            1 => Ok(count),
            _ if (0..1_000_000).contains(&count) => Ok(count * unit),
            _ => Err(error(libc::EINVAL)),
        };
        Ok(both(
            access,
            fraction(of_access)?,
            change,
            fraction(of_change)?,
        ))
    }
}

fn now() -> Timestamps {
    both(0, rustix::fs::UTIME_NOW, 0, rustix::fs::UTIME_NOW)
}

fn both(access: i64, access_ns: i64, change: i64, change_ns: i64) -> Timestamps {
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    Timestamps {
        last_access: time(access, access_ns),
        last_modification: time(change, change_ns),
    }
}
