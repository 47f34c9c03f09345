// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: unix sockets with names
//!
//! Landlock does not judge `connect()` to a unix socket by its path, and an abstract name is the whole host's. So `bind()` and `connect()`
//! stop their thread, and the warden makes them ([`crate::notify`]). Processes of a sandbox reach only one another's sockets by that, and nobody
//! outside is led to one of theirs.
//!
//! 1. The warden reads the address out of the caller's memory, once, and takes a copy of the caller's descriptor. It must be a unix
//!    socket, of streams or sequenced packets.
//! 2. `bind()`: the socket's file is in a folder of the warden's that the sandbox can't reach, with a name of its own (the *stage*). At the
//!    path that the caller wants, found as in [`crate::behalf`], there is a file of type socket to which nothing is bound. The warden keeps a descriptor
//!    of that file, so that no other file gets its inode number.
//! 3. `connect()`: the warden looks the path up, and finds the stage that belongs to that very file. A path that leads to any other file is
//!    refused as one that nobody listens at. So whatever the sandbox renames, links or swaps, it gets to a socket of its own, or to none.
//! 4. An abstract name has a stage and no file.
//!
//! `getsockname()` and its like show the stage. It has the caller's name in it, which the gate reads ([`stage_name`]; `gate/sandbox/stage.c`).
//! `SO_PEERCRED` of who has accepted a connection shows the warden.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Error, Read, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{
    accessat, fcntl_getfl, fstat, mknodat, openat, unlinkat, Access, AtFlags, FileType, Mode,
    OFlags, CWD,
};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_timeout, socket_domain, socket_timeout, socket_type, Timeout,
};
use rustix::net::{
    bind, connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::behalf::{by_descriptor, error, is_within, Asker, Reach, PLACE};

/// `sun_path` of `struct sockaddr_un`, and what is before it.
const PATH_BYTES: usize = 108;
const FAMILY_BYTES: usize = 2;
/// The shortest limit of a call: the host rounds it up to its tick.
pub(crate) const TICK: Duration = Duration::from_micros(1);
/// First byte of a stage's name, which no program gives a socket.
const STAGE: u8 = 3;
/// `/` and NUL can't be in a file's name.
const SLASH: u8 = 1;
const NUL: u8 = 2;
/// What comes next is a byte that would mean something else, with this bit.
const ESCAPE: u8 = 4;
const ESCAPED: u8 = 0x40;

/// The name that a program gives a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    File(PathBuf),
    Abstract(Vec<u8>),
    /// The host chooses one.
    Any,
}

impl Name {
    /// Of a `struct sockaddr_un` of `len` bytes in the caller's memory.
    fn read(asker: &Asker, at: u64, len: u64) -> Result<Name> {
        let len = len as u32 as usize;
        if !(FAMILY_BYTES..=FAMILY_BYTES + PATH_BYTES).contains(&len) {
            return Err(error(libc::EINVAL));
        }
        let mut bytes = vec![0; len];
        if asker.memory(at, &mut bytes)? < len {
            return Err(error(libc::EFAULT));
        }
        let (family, name) = bytes.split_at(FAMILY_BYTES);
        if family != (libc::AF_UNIX as u16).to_ne_bytes() {
            return Err(error(libc::EINVAL));
        }
        Ok(match name {
            [] => Name::Any,
            [0, rest @ ..] => Name::Abstract(rest.to_vec()),
            path => {
                let end = path.iter().position(|byte| *byte == 0);
                let path = &path[..end.unwrap_or(path.len())];
                Name::File(OsStr::from_bytes(path).into())
            }
        })
    }
}

/// The name of stage number `count` of a socket that the program calls so: a kind, three digits, and the program's name, of which the end
/// may be missing.
fn stage_name(kind: u8, count: u32, name: &[u8]) -> Vec<u8> {
    let digit = |shift: u32| b'0' + (count >> shift & 63) as u8;
    let mut stage = vec![STAGE, kind, digit(12), digit(6), digit(0)];
    for byte in name {
        let coded: &[u8] = match *byte {
            b'/' => &[SLASH],
            0 => &[NUL],
            byte @ (SLASH | NUL | STAGE | ESCAPE) => &[ESCAPE, byte | ESCAPED],
            byte => &[byte],
        };
        if stage.len() + coded.len() >= PATH_BYTES {
            break;
        }
        stage.extend_from_slice(coded);
    }
    stage
}

#[derive(Debug)]
enum Key {
    /// Device and inode of the file, which stays there.
    File((u64, u64), OwnedFd),
    Abstract(Vec<u8>),
}

#[derive(Debug)]
struct Bound {
    key: Key,
    stage: Vec<u8>,
}

/// The sockets of a sandbox that have names. All its calls are made in one thread, whose working folder is the stages'.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Where the folder of the stages is, or will be.
    path: PathBuf,
    folder: Option<OwnedFd>,
    bound: VecDeque<Bound>,
    most: usize,
    count: u32,
}

/// A call that is to be made.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    to: SocketAddrUnix,
    /// When the caller wants it to fail, if there is room in the listener's queue by then neither; none: it has no limit.
    deadline: Option<Instant>,
}

/// The outcome of an attempt to connect.
pub(crate) enum Attempt {
    Done,
    /// The listener's queue is full, and the caller waits for room.
    Full(Connection),
}

impl Connection {
    /// Makes the call, within about this time. After [`Attempt::Done`] and errors nobody but the caller has its socket: it may close it at once.
    ///
    /// The caller can make its socket one that blocks at any moment. So the limit is not looked up but set: the host reads it once, when the call begins.
    pub(crate) fn attempt(self, within: Duration) -> Result<Attempt> {
        let waits = !fcntl_getfl(&self.socket)?.contains(OFlags::NONBLOCK);
        let left = self
            .deadline
            .map(|it| it.saturating_duration_since(Instant::now()));
        let within = left.map_or(within, |it| it.clamp(TICK, within));
        let limit = socket_timeout(&self.socket, Timeout::Send)?;
        set_socket_timeout(&self.socket, Timeout::Send, Some(within))?;
        let done = connect(&self.socket, &self.to);
        // An error: then it is no socket any more that waits for anything.
        let _ = set_socket_timeout(&self.socket, Timeout::Send, limit);
        let is_late = self.deadline.is_some_and(|it| it <= Instant::now());
        match done {
            Ok(()) => Ok(Attempt::Done),
            Err(Errno::AGAIN) if waits && !is_late => Ok(Attempt::Full(self)),
            Err(why) => Err(why.into()),
        }
    }
}

impl Sockets {
    /// At most so many at once.
    pub(crate) fn new(path: PathBuf, most: usize) -> Sockets {
        Sockets {
            path,
            folder: None,
            bound: VecDeque::new(),
            most,
            count: 0,
        }
    }

    /// In a thread that shares its working folder with no other but those that it starts.
    pub(crate) fn bind(&mut self, wish: &Wish, reach: &Reach) -> Result<()> {
        self.prepare(reach)?;
        self.clear();
        if self.bound.len() >= self.most {
            return Err(error(libc::ENOBUFS));
        }
        self.count = self.count.wrapping_add(1);
        let (kind, name) = match &wish.place {
            Place::File { path, .. } => (b'f', path.as_os_str().as_bytes().to_vec()),
            Place::Abstract(name) => (b'a', name.clone()),
            Place::Any => (b'a', format!("{:05x}", self.count & 0xf_ffff).into()),
        };
        let stage = stage_name(kind, self.count, &name);
        let key = match &wish.place {
            Place::File { folder, path, mask } => {
                let folder = reach.find_folder(folder)?;
                let last = path.file_name().unwrap_or_default();
                let mode = Mode::from_bits_truncate(0o777 & !mask);
                let made = mknodat(&folder, last, FileType::Socket, mode, 0);
                made.map_err(|why| match why {
                    Errno::EXIST => error(libc::EADDRINUSE),
                    why => why.into(),
                })?;
                if let Err(why) = bind_to(&wish.socket, &stage) {
                    let _ = unlinkat(&folder, last, AtFlags::empty());
                    return Err(why);
                }
                // Something else may lie there by now. Then that leads to this socket.
                let file = openat(&folder, last, PLACE | OFlags::NOFOLLOW, Mode::empty());
                let key = file
                    .map_err(Error::from)
                    .and_then(|file| Ok(Key::File(id(&file)?, file)));
                if key.is_err() {
                    // No path leads to this socket, and clear() would not know of it.
                    let _ = unlinkat(&folder, last, AtFlags::empty());
                    let _ = unlinkat(CWD, stage.as_slice(), AtFlags::empty());
                }
                key?
            }
            Place::Abstract(_) | Place::Any => {
                if self.find_abstract(&name).is_some() {
                    return Err(error(libc::EADDRINUSE));
                }
                bind_to(&wish.socket, &stage)?;
                Key::Abstract(name)
            }
        };
        self.bound.push_back(Bound { key, stage });
        Ok(())
    }

    pub(crate) fn connection(&self, wish: Wish) -> Result<Connection> {
        let bound = match &wish.place {
            Place::File { folder, .. } => self.find_file(folder)?,
            Place::Abstract(name) => self.find_abstract(name),
            Place::Any => return Err(error(libc::EINVAL)),
        };
        let bound = bound.ok_or_else(|| error(libc::ECONNREFUSED))?;
        let limit = socket_timeout(&wish.socket, Timeout::Send)?;
        Ok(Connection {
            to: SocketAddrUnix::new(bound.stage.as_slice())?,
            deadline: limit.and_then(|it| Instant::now().checked_add(it)),
            socket: wish.socket,
        })
    }

    fn find_file(&self, file: &OwnedFd) -> Result<Option<&Bound>> {
        let wanted = id(file)?;
        let is_it = |bound: &&Bound| matches!(&bound.key, Key::File(id, _) if *id == wanted);
        let found = self.bound.iter().find(is_it);
        if found.is_some() {
            accessat(
                CWD,
                by_descriptor(file.as_fd()),
                Access::WRITE_OK,
                AtFlags::empty(),
            )?;
        }
        Ok(found)
    }

    fn find_abstract(&self, name: &[u8]) -> Option<&Bound> {
        let is_it = |bound: &&Bound| matches!(&bound.key, Key::Abstract(it) if it == name);
        self.bound.iter().find(is_it)
    }

    /// Makes the folder of the stages, and goes there.
    fn prepare(&mut self, reach: &Reach) -> Result<()> {
        if self.folder.is_some() {
            return Ok(());
        }
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        let parent = rustix::fs::open(parent, PLACE | OFlags::DIRECTORY, Mode::empty())?;
        if is_within(&parent, reach)? {
            return Err(error(libc::EPERM));
        }
        let name = self.path.file_name().unwrap_or_default();
        match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
            // Of an attempt that failed later.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(why) => return Err(why.into()),
        }
        let flags = PLACE | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let folder = openat(&parent, name, flags, Mode::empty())?;
        rustix::process::fchdir(&folder)?;
        // Modes are those that are asked for.
        rustix::process::umask(Mode::empty());
        self.folder = Some(folder);
        Ok(())
    }

    /// Forgets sockets that are gone, and files to which no path leads.
    fn clear(&mut self) {
        self.bound.retain(|bound| {
            let has_name = match &bound.key {
                Key::File(_, file) => fstat(file).is_ok_and(|stat| stat.st_nlink > 0),
                Key::Abstract(_) => true,
            };
            let stays = has_name && lives(&bound.stage);
            if !stays {
                let _ = unlinkat(CWD, bound.stage.as_slice(), AtFlags::empty());
            }
            stays
        });
    }
}

fn id(file: &OwnedFd) -> Result<(u64, u64)> {
    let stat = fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => Ok((stat.st_dev, stat.st_ino)),
        _ => Err(error(libc::ECONNREFUSED)),
    }
}

fn bind_to(socket: &OwnedFd, stage: &[u8]) -> Result<()> {
    Ok(bind(socket, &SocketAddrUnix::new(stage)?)?)
}

/// Whether a socket is bound to this file: one of another type is told so. Where the host can't tell, for want of descriptors or memory, it is
/// taken to be.
fn lives(stage: &[u8]) -> bool {
    let probe = || -> rustix::io::Result<()> {
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        connect(&socket, &SocketAddrUnix::new(stage)?)
    };
    !matches!(probe(), Err(Errno::CONNREFUSED | Errno::NOENT))
}

#[derive(Debug)]
enum Place {
    /// For `bind()` the folder that the file is to be in, for `connect()` the file. The path as the caller has it.
    File {
        folder: OwnedFd,
        path: PathBuf,
        mask: u32,
    },
    Abstract(Vec<u8>),
    Any,
}

/// A `bind()` or `connect()` of a thread that waits for an answer.
#[derive(Debug)]
pub(crate) struct Wish {
    socket: OwnedFd,
    place: Place,
}

impl Wish {
    pub(crate) fn read(thread: u32, call: i64, args: &[u64; 6]) -> Result<Wish> {
        let asker = Asker::new(thread);
        let socket = asker.copy(args[0] as i32)?;
        let kinds = [SocketType::STREAM, SocketType::SEQPACKET];
        let is_unix = socket_domain(&socket)? == AddressFamily::UNIX;
        if !is_unix || !kinds.contains(&socket_type(&socket)?) {
            return Err(error(libc::EPERM));
        }
        let place = match Name::read(&asker, args[1], args[2])? {
            Name::Any => Place::Any,
            Name::Abstract(name) => Place::Abstract(name),
            Name::File(path) if call == libc::SYS_bind => Place::File {
                folder: asker.folder_of(&path)?,
                mask: asker.umask()?,
                path,
            },
            Name::File(path) => Place::File {
                folder: asker.look_up(libc::AT_FDCWD, &path, 0)?,
                mask: 0,
                path,
            },
        };
        Ok(Wish { socket, place })
    }
}

impl Asker {
    /// The folder that a new file of this path would be in.
    fn folder_of(&self, path: &Path) -> Result<OwnedFd> {
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(error(libc::ENOENT));
        }
        if path.file_name().is_none() {
            return Err(error(libc::EADDRINUSE));
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        };
        self.look_up(libc::AT_FDCWD, parent, 0)
    }

    fn umask(&self) -> Result<u32> {
        let mut text = String::new();
        File::open(self.own("status"))?.read_to_string(&mut text)?;
        let mask = text.lines().find_map(|line| line.strip_prefix("Umask:"));
        let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
        mask.ok_or_else(|| error(libc::EPERM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_names_of_files() {
        let stage = stage_name(b'f', 65, b"/tmp/a\x01b");
        assert_eq!(stage, b"\x03f011\x01tmp\x01a\x04\x41b");
        let stage = stage_name(b'a', 0, b"r3:\0x");
        assert_eq!(stage, b"\x03a000r3:\x02x");
        let stage = stage_name(b'f', 0, &[b'x'; 200]);
        assert_eq!(stage.len(), PATH_BYTES - 1);
        // No half of an escape.
        let stage = stage_name(b'f', 0, &[SLASH; 200]);
        assert_eq!(stage.last(), Some(&(SLASH | ESCAPED)));
        assert!(stage.len() < PATH_BYTES);
    }
}
