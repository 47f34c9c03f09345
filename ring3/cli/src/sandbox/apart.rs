// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: files that a sandbox's programs must not reach
//!
//! A policy or a record that the sandbox's programs can write is worth nothing. They write below `--rw`: files there, links that
//! lead elsewhere, folders in the place of others, and all of that while a path is looked up. So a path is walked by hand, by one
//! descriptor for each folder. None of them may be one of `--rw` or lie below one; links are read where they lie, and walked in
//! the same way. What is opened at the end is what was looked at, and is used by its descriptor, or by a path on which
//! no folder can be changed from within.
//!
//! A folder may lie below one of `--rw` by a mount, too (mounts.rs).
//!
//! A file with a second name may have that below `--rw`. It is refused where there is any `--rw`: a layered file system gives its
//! files other numbers of devices than its folders.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{open, openat, readlinkat, OFlag};
use nix::sys::stat::{fstat, mkdirat, stat, FileStat, Mode, SFlag};

use ring3_config::NodeConfig;

use super::mounts::{Mounts, Place};
use crate::error::{Failure, Result};

/// As many links as Linux follows on one path (MAXSYMLINKS of <linux/namei.h>).
const LINKS_MAX: u32 = 40;
/// A path as such: nothing is read or written by it, and a link is not followed.
const PLACE: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// What the programs may write to.
#[derive(Debug, Default)]
pub struct Writable(Vec<Given>, Mounts);

/// One path of `--rw`, looked up once.
#[derive(Debug)]
struct Given {
    path: PathBuf,
    fd: OwnedFd,
    id: Id,
    /// All that lies at and below it, mounts included.
    places: Vec<Place>,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Id {
    device: u64,
    inode: u64,
}

impl Id {
    fn of(stat: &FileStat) -> Id {
        Id {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// Why a path is not used.
enum Refusal<'a> {
    Host(Errno),
    Reach(&'a Given),
    Names,
}

impl From<Errno> for Refusal<'_> {
    fn from(why: Errno) -> Self {
        Refusal::Host(why)
    }
}

impl Writable {
    pub fn find(paths: &[PathBuf]) -> Result<Writable> {
        if paths.is_empty() {
            return Ok(Writable::default());
        }
        let mounts = Mounts::read();
        let mounts = mounts.map_err(|why| Failure::host("read the host's mounts")(why.into()))?;
        let find = |path: &PathBuf| -> nix::Result<Given> {
            let fd = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
            let id = Id::of(&fstat(&fd)?);
            let path = path.clone();
            let places = mounts.below(&fd)?;
            Ok(Given {
                path,
                fd,
                id,
                places,
            })
        };
        let find = |path: &PathBuf| {
            find(path).map_err(|why| Failure::SandboxPath {
                path: path.clone(),
                why: std::io::Error::from(why).into(),
            })
        };
        let given = paths.iter().map(find).collect::<Result<_>>()?;
        Ok(Writable(given, mounts))
    }

    /// What is to stay open in a process that uses [`Writable::paths`].
    pub fn fds(&self) -> impl Iterator<Item = &OwnedFd> {
        self.0.iter().map(|given| &given.fd)
    }

    /// Names for what was found, whatever is at the paths by now.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.fds().map(by_descriptor)
    }

    /// A file to read.
    pub fn read(&self, path: &Path) -> Result<File> {
        let file = || {
            let (at, name) = self.walk(path, false)?;
            let file = self.file(&at, &name, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?;
            Ok(file.into())
        };
        file().map_err(|why| refused("read", path, why))
    }

    /// A file to append to, which is made if it is not there; and a path that leads to it.
    pub fn append(&self, path: &Path) -> Result<(File, PathBuf)> {
        let file = || {
            let (at, name) = self.walk(path, false)?;
            self.append_in(&at, &name)
        };
        file().map_err(|why| refused("write", path, why))
    }

    /// The files that a node's ports write.
    pub fn keep_apart(&self, config: &mut NodeConfig) -> Result<()> {
        let ports = config.ports.iter_mut();
        let mut paths = ports.flat_map(|port| port.pcap.iter_mut().chain(&mut port.log));
        paths.try_for_each(|path| {
            *path = self.append(path)?.1;
            Ok(())
        })
    }

    /// A folder, which is made if it is not there.
    pub fn folder(&self, path: &Path) -> Result<Folder<'_>> {
        let folder = || {
            let (at, name) = self.walk(path, true)?;
            match name.as_bytes() {
                b"." => Ok(at),
                _ => Err(Refusal::Host(Errno::ENOTDIR)),
            }
        };
        let (given, path) = (self, path.to_owned());
        match folder() {
            Ok(at) => Ok(Folder { given, path, at }),
            Err(why) => Err(refused("make", &path, why)),
        }
    }

    /// A folder of which nothing may be in reach, whatever is mounted where.
    pub fn keeps_off(&self, path: &Path) -> Result<()> {
        let at = self.folder(path)?.at;
        let within = || -> std::result::Result<(), Refusal<'_>> {
            if self.0.is_empty() {
                return Ok(());
            }
            let place = self.1.place_of(&at)?;
            let reaches = |given: &&Given| given.places.iter().any(|it| it.is_below(&place));
            match self.0.iter().find(reaches) {
                Some(given) => Err(Refusal::Reach(given)),
                None => Ok(()),
            }
        };
        within().map_err(|why| refused("look at", path, why))
    }

    fn append_in(
        &self,
        at: &OwnedFd,
        name: &OsStr,
    ) -> std::result::Result<(File, PathBuf), Refusal<'_>> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_NONBLOCK;
        let file = self.file(at, name, flags)?;
        let folder = std::fs::read_link(by_descriptor(at)).map_err(|_| Errno::ENOENT)?;
        Ok((file.into(), folder.join(name)))
    }

    fn file(
        &self,
        at: &OwnedFd,
        name: &OsStr,
        flags: OFlag,
    ) -> std::result::Result<OwnedFd, Refusal<'_>> {
        let mode = Mode::from_bits_truncate(0o666);
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(at, name, flags, mode)?;
        let found = fstat(&fd)?;
        let id = Id::of(&found);
        if let Some(given) = self.0.iter().find(|given| given.id == id) {
            return Err(Refusal::Reach(given));
        }
        self.check_mounts(&fd)?;
        if kind(&found) == SFlag::S_IFDIR {
            return Err(Errno::EISDIR.into());
        }
        let has_names = kind(&found) == SFlag::S_IFREG && found.st_nlink > 1;
        if has_names && !self.0.is_empty() {
            return Err(Refusal::Names);
        }
        Ok(fd)
    }

    /// The folder that a path ends in, and the name there; "." if the path is a folder itself. Folders on the way are made if `make`.
    fn walk(
        &self,
        path: &Path,
        make: bool,
    ) -> std::result::Result<(OwnedFd, OsString), Refusal<'_>> {
        let path = std::path::absolute(path).map_err(|_| Errno::ENOENT)?;
        let mut at = open("/", PLACE, Mode::empty())?;
        let mut rest = parts(&path);
        let mut links = 0;
        loop {
            self.check(&at)?;
            let Some(name) = rest.pop_front() else {
                return Ok((at, ".".into()));
            };
            let found = match openat(&at, name.as_os_str(), PLACE, Mode::empty()) {
                Err(Errno::ENOENT) if make => {
                    match mkdirat(&at, name.as_os_str(), Mode::from_bits_truncate(0o777)) {
                        Ok(()) | Err(Errno::EEXIST) => {}
                        Err(why) => return Err(why.into()),
                    }
                    openat(&at, name.as_os_str(), PLACE, Mode::empty())?
                }
                Err(Errno::ENOENT) if rest.is_empty() => return Ok((at, name)),
                found => found?,
            };
            match kind(&fstat(&found)?) {
                SFlag::S_IFDIR => at = found,
                SFlag::S_IFLNK => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::ELOOP.into());
                    }
                    let to = PathBuf::from(readlinkat(&found, c"")?);
                    if to.is_absolute() {
                        at = open("/", PLACE, Mode::empty())?;
                    }
                    let mut first = parts(&to);
                    first.append(&mut rest);
                    rest = first;
                }
                _ if rest.is_empty() => return Ok((at, name)),
                _ => return Err(Errno::ENOTDIR.into()),
            }
        }
    }

    /// Whether this folder is neither one of the programs' nor below one.
    fn check(&self, folder: &OwnedFd) -> std::result::Result<(), Refusal<'_>> {
        self.check_mounts(folder)?;
        let root = Id::of(&stat("/")?);
        let mut id = Id::of(&fstat(folder)?);
        let mut at = folder.try_clone().map_err(|_| Errno::EMFILE)?;
        loop {
            if let Some(given) = self.0.iter().find(|given| given.id == id) {
                return Err(Refusal::Reach(given));
            }
            at = openat(&at, "..", PLACE, Mode::empty())?;
            let above = Id::of(&fstat(&at)?);
            // What is mounted within itself has itself above, too.
            if above == id && id == root {
                return Ok(());
            }
            id = above;
        }
    }

    /// Whether a folder or file is one of the programs', or below one, wherever it is mounted.
    fn check_mounts(&self, fd: &OwnedFd) -> std::result::Result<(), Refusal<'_>> {
        if self.0.is_empty() {
            return Ok(());
        }
        let place = self.1.place_of(fd)?;
        let reaches = |given: &&Given| given.places.iter().any(|it| place.is_below(it));
        match self.0.iter().find(reaches) {
            Some(given) => Err(Refusal::Reach(given)),
            None => Ok(()),
        }
    }
}

/// A folder of the user's own.
pub struct Folder<'a> {
    given: &'a Writable,
    path: PathBuf,
    at: OwnedFd,
}

impl Folder<'_> {
    /// As [`Writable::append`], of a file in it. A link there is not followed.
    pub fn append(&self, name: &str) -> Result<(File, PathBuf)> {
        let file = self.given.append_in(&self.at, OsStr::new(name));
        file.map_err(|why| refused("write", &self.path.join(name), why))
    }
}

fn refused(what: &str, path: &Path, why: Refusal<'_>) -> Failure {
    let path = path.to_owned();
    match why {
        Refusal::Host(why) => Failure::host(format!("{what} {}", path.display()))(why.into()),
        Refusal::Names => Failure::SecondName { path },
        Refusal::Reach(given) => Failure::InReach {
            path,
            folder: given.path.clone(),
        },
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits())
}

/// The names of a path, without those that stay where they are.
fn parts(path: &Path) -> VecDeque<OsString> {
    use std::path::Component;
    let names = path.components().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    });
    names.collect()
}

fn by_descriptor(fd: &impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()).into()
}

#[cfg(test)]
#[path = "apart_tests.rs"]
mod tests;
