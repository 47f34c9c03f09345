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
//! A file without a name can't be found so. Its mode and times are the caller's to change if the caller has a descriptor to write to it,
//! but not so that others may read or write it.
//!
//! The thread that does so has no capabilities, like the sandbox. So it can't look up or change what the user can't.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::{pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};

use rustix::fs::{
    fcntl_getfl, fstat, openat2, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, Timespec,
    Timestamps, CWD,
};

use crate::members::descendant;
use crate::sockets::Sockets;

/// With the NUL (<linux/limits.h>).
const PATH_MAX: usize = 4096;
/// Reading and writing by others than the owner.
const OTHERS: u32 = 0o066;
/// A file as such.
pub(crate) const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;
const EMPTY_PATH: u64 = libc::AT_EMPTY_PATH as u64;

/// Files and folders whose content a sandbox may change. A folder's own attributes are its owner's, those of what is below are the sandbox's.
#[derive(Debug, Default)]
pub struct Reach {
    places: Vec<OwnedFd>,
    /// Of the warden's, for unix sockets with names; it is made when there is one. None: there can't be any.
    sockets: Option<PathBuf>,
    memory: Option<Memory>,
    /// Above all processes of the sandbox, and of nobody else: what its processes leave behind becomes its child.
    reaper: Option<u32>,
}

/// For POSIX shared memory and semaphores: what the sandbox has at /dev/shm.
struct Memory {
    folder: OwnedFd,
    /// To be done before a program learns of it, and whether it is done.
    prepare: Box<dyn Fn() -> Result<()> + Send + Sync>,
    is_ready: OnceLock<bool>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.folder.fmt(out)
    }
}

impl Reach {
    pub fn new(places: Vec<OwnedFd>) -> Reach {
        Reach {
            places,
            ..Reach::default()
        }
    }

    /// `path`: a folder that is not there yet, where only the warden comes to.
    pub fn with_sockets(self, path: PathBuf) -> Reach {
        let sockets = Some(path);
        Reach { sockets, ..self }
    }

    /// One of the places. `prepare` is called when a program first asks for it, in a thread without capabilities; where that fails, there is none.
    pub fn with_memory(
        self,
        folder: OwnedFd,
        prepare: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Reach {
        let memory = Some(Memory {
            folder,
            prepare: Box::new(prepare),
            is_ready: OnceLock::new(),
        });
        Reach { memory, ..self }
    }

    /// A child of this process that is not reaped.
    pub fn with_reaper(self, pid: u32) -> Reach {
        let reaper = Some(pid);
        Reach { reaper, ..self }
    }

    /// The folder in /proc of a process of the sandbox.
    pub(crate) fn folder_of(&self, process: u32) -> Result<OwnedFd> {
        let reaper = self.reaper.ok_or_else(|| error(libc::EACCES))?;
        descendant(process, reaper)
    }

    pub(crate) fn sockets(&self, most: usize) -> Option<Sockets> {
        let path = self.sockets.clone();
        path.map(|path| Sockets::new(path, most))
    }

    pub(crate) fn memory(&self) -> Option<Result<&OwnedFd>> {
        let memory = self.memory.as_ref()?;
        let is_ready = memory.is_ready.get_or_init(|| (memory.prepare)().is_ok());
        Some(match is_ready {
            true => Ok(&memory.folder),
            false => Err(error(libc::EACCES)),
        })
    }

    /// The same file, found from one of the places; not the place itself if that is a folder.
    fn find(&self, file: &OwnedFd) -> Result<OwnedFd> {
        let (found, is_place) = self.search(file)?;
        match is_place && is_folder(&fstat(&found)?) {
            true => Err(error(libc::EPERM)),
            false => Ok(found),
        }
    }

    /// The same, or the place itself.
    pub(crate) fn find_any(&self, file: &OwnedFd) -> Result<OwnedFd> {
        self.search(file).map(|it| it.0)
    }

    pub(crate) fn find_folder(&self, file: &OwnedFd) -> Result<OwnedFd> {
        let found = self.find_any(file)?;
        match is_folder(&fstat(&found)?) {
            true => Ok(found),
            false => Err(error(libc::ENOTDIR)),
        }
    }

    fn search(&self, file: &OwnedFd) -> Result<(OwnedFd, bool)> {
        let path = path_of(file)?;
        let wanted = fstat(file)?;
        for place in &self.places {
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
            if (stat.st_dev, stat.st_ino) == (wanted.st_dev, wanted.st_ino) {
                return Ok((found, rest.as_os_str().is_empty()));
            }
        }
        Err(error(libc::EPERM))
    }
}

/// Whether this folder lies in reach, by its path.
pub(crate) fn is_within(folder: &OwnedFd, reach: &Reach) -> Result<bool> {
    let path = path_of(folder)?;
    for place in &reach.places {
        if path.starts_with(path_of(place)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// A file that nobody can open by a path any more.
fn is_unlinked(file: &OwnedFd) -> Result<bool> {
    let stat = fstat(file)?;
    Ok(stat.st_nlink == 0 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

pub(crate) fn by_descriptor(fd: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

fn path_of(fd: &OwnedFd) -> Result<PathBuf> {
    fs::read_link(by_descriptor(fd.as_fd()))
}

pub(crate) fn error(errno: i32) -> Error {
    Error::from_raw_os_error(errno)
}

/// What a thread asks for.
#[derive(Debug)]
pub(crate) struct Wish {
    file: OwnedFd,
    change: Change,
    /// It has no name, and the caller may write to it.
    is_gone: bool,
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
        let asker = Asker::new(thread);
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
        let by_descriptor = match call {
            libc::SYS_fchmod => Some(first),
            libc::SYS_utimensat if second == 0 => Some(first),
            _ => None,
        };
        let is_gone = match by_descriptor {
            Some(fd) if is_unlinked(&file)? => asker.writes(fd as i32, &file),
            _ => false,
        };
        Ok(Wish {
            file,
            change,
            is_gone,
        })
    }

    pub(crate) fn grant(&self, reach: &Reach) -> Result<()> {
        let file = match self.is_gone {
            true => self.file.try_clone()?,
            false => reach.find(&self.file)?,
        };
        let stat = fstat(&file)?;
        match self.change {
            Change::Mode(mode) => {
                let forbidden = match is_folder(&stat) {
                    true => libc::S_ISUID,
                    // Who runs such a file is its owner: root's sandbox could leave one to others.
                    false => libc::S_ISUID | libc::S_ISGID,
                };
                // Its giver may still give it a name.
                let opens = self.is_gone && mode & OTHERS & !stat.st_mode != 0;
                if mode & forbidden != 0 || opens {
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
pub(crate) struct Asker {
    thread: u32,
}

/// pidfd_open() of a thread, <linux/pidfd.h>, Linux 6.9.
const PIDFD_THREAD: u32 = OFlags::EXCL.bits();

impl Asker {
    pub(crate) fn new(thread: u32) -> Asker {
        Asker { thread }
    }

    /// A copy of its descriptor.
    pub(crate) fn copy(&self, fd: i32) -> Result<OwnedFd> {
        if fd < 0 {
            return Err(error(libc::EBADF));
        }
        let thread = Pid::from_raw(self.thread as i32).ok_or_else(|| error(libc::ESRCH))?;
        let thread = pidfd_open(thread, PidfdFlags::from_bits_retain(PIDFD_THREAD))?;
        Ok(pidfd_getfd(thread, fd, PidfdGetfdFlags::empty())?)
    }

    /// Whether its descriptor is one to write to this file. Another of its threads may have put another file in its place.
    fn writes(&self, fd: i32, file: &OwnedFd) -> bool {
        let writes = || -> Result<bool> {
            let copy = self.copy(fd)?;
            let flags = fcntl_getfl(&copy)?;
            let (is, wanted) = (fstat(&copy)?, fstat(file)?);
            let is_it = (is.st_dev, is.st_ino) == (wanted.st_dev, wanted.st_ino);
            // Both bits together are for neither reading nor writing.
            let writes = flags.contains(OFlags::WRONLY) != flags.contains(OFlags::RDWR);
            Ok(is_it && writes && !flags.contains(OFlags::PATH))
        };
        writes().unwrap_or(false)
    }

    pub(crate) fn own(&self, what: &str) -> PathBuf {
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

    pub(crate) fn file_at(&self, dir: i32, path: u64, flags: u64) -> Result<OwnedFd> {
        if path == 0 && dir != libc::AT_FDCWD {
            return self.descriptor(dir);
        }
        self.look_up(dir, &self.path(path)?, flags)
    }

    pub(crate) fn look_up(&self, dir: i32, path: &Path, flags: u64) -> Result<OwnedFd> {
        let at = || match dir {
            libc::AT_FDCWD => self.place("cwd", libc::ENOENT),
            fd => self.descriptor(fd),
        };
        if path.as_os_str().is_empty() {
            return match flags & EMPTY_PATH {
                0 => Err(error(libc::ENOENT)),
                _ => at(),
            };
        }
        if let Some(fd) = self.own_descriptor(path) {
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
            path,
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

    pub(crate) fn memory(&self, at: u64, bytes: &mut [u8]) -> Result<usize> {
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
