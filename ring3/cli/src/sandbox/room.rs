// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the disks that a sandbox fills
//!
//! The host has no quota that a user can set. A look at the sandbox's folders would not see files whose names are gone. So the
//! reaper asks for what is left on each file system that the sandbox writes to, its log included, or that its gateway writes
//! captures to, and ends the sandbox when that is less than the user wants to keep. It asks the more often the less is left: between two looks no
//! disk takes more than what is above the limit. Files take inodes, too, of which many file systems have a number: a part of those
//! that are free at the start stays, or a number that other programs can work with.
//!
//! The reaper looks, and not the warden, since Ctrl-Z stops the warden: a process of the sandbox in another session would fill the disk meanwhile.
//! The reaper holds that signal back.
//!
//! The log of a node that stays lies in the runtime folder, and what programs have for /dev/shm there. Both are small on many hosts:
//! there half of what is free at the start stays, if the user's limit is more. /dev/shm is other programs', too, and the user did not ask for the sandbox's folder
//! there. So a part of it stays free without a limit of the user's as well, from when a program first asks for that folder on. What other programs
//! take counts as well: files that have no name, and only a mapping, are in no sum that could be made of the sandbox's own.
//!
//! ```text
//! warden → reaper    one message when a program first asks for /dev/shm: how much of it is to stay
//! reaper → warden    one byte: what is used up. The sandbox ends
//! ```

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::poll::PollTimeout;
use nix::sys::socket::{recv, send, MsgFlags};
use nix::sys::stat::{fstat, SFlag};
use nix::sys::statvfs::fstatvfs;
use ring3_config::{size, NodeConfig};

use super::apart::Writable;
use crate::args::SandboxArgs;
use crate::error::{Failure, Result};

/// Bytes a second that a disk, or memory, takes at most.
const FASTEST: u64 = 8 << 30;
/// Files a second that are made at most.
const FASTEST_FILES: u64 = 8 << 20;
const TURN_MIN: Duration = Duration::from_millis(2);
const TURN_MAX: Duration = Duration::from_millis(500);
/// Inodes that are to stay at most. XFS, ZFS and f2fs make free inodes of free blocks: there a part of them is the same part of the bytes, which the user did not ask for.
const INODES_STAY: u64 = 1 << 16;
/// The part that stays of the inodes that are free at the start, and of /dev/shm where the user has no limit: one part of so many.
const STAYS: u64 = 4;

/// How much is to stay free, if the user has said so.
#[derive(Debug, Clone, Copy)]
pub struct Room(Option<u64>);

impl Room {
    pub fn of(args: &SandboxArgs) -> Result<Room> {
        let least = args.min_free.as_deref().map(size::parse).transpose()?;
        Ok(Room(least))
    }

    /// Of where the sandbox writes, and the ports of `captured` do; `memory` is what its programs have at /dev/shm. The reaper's end and the warden's.
    /// An error: there is too little now.
    pub fn watch(
        self,
        written: &Writable,
        tmp: Option<&OwnedFd>,
        memory: Option<&OwnedFd>,
        captured: Option<&NodeConfig>,
    ) -> Result<(DiskWatch, DiskReport)> {
        let (theirs, ours) = super::pair()?;
        let report = DiskReport {
            reaper: ours,
            least: self.0,
            memory: memory.map(copy).transpose()?,
        };
        let mut watch = DiskWatch {
            warden: theirs,
            disks: Vec::new(),
            memory: None,
        };
        match self.0 {
            Some(least) => watch.disks = disks(least, written, tmp, memory, captured)?,
            None => watch.memory = memory.map(copy).transpose()?,
        }
        match calm(&watch.disks)? {
            Some(_) => Ok((watch, report)),
            None => Err(report.too_little()),
        }
    }
}

fn copy(fd: &OwnedFd) -> Result<OwnedFd> {
    fd.try_clone().map_err(Failure::host("copy a descriptor"))
}

/// What is looked at for a limit of the user's.
fn disks(
    least: u64,
    written: &Writable,
    tmp: Option<&OwnedFd>,
    memory: Option<&OwnedFd>,
    captured: Option<&NodeConfig>,
) -> Result<Vec<Disk>> {
    let mut disks = Vec::new();
    for place in written.fds().chain(tmp) {
        disks.push(Disk::of(copy(place)?, |_| least)?);
    }
    let ports = captured.into_iter().flat_map(|config| &config.ports);
    for path in ports.filter_map(|port| port.pcap.as_deref()) {
        let file = File::open(path);
        let file = file.map_err(Failure::host(format!("open {}", path.display())))?;
        disks.push(Disk::of(file.into(), |_| least)?);
    }
    let half = |free: u64| least.min(free / 2);
    if let Some(memory) = memory {
        disks.push(Disk::of(copy(memory)?, half)?);
    }
    let (output, error) = (std::io::stdout(), std::io::stderr());
    for fd in [output.as_fd(), error.as_fd()] {
        let copy = fd.try_clone_to_owned();
        let copy = copy.map_err(Failure::host("copy a descriptor"))?;
        if is_on_disk(&copy) {
            disks.push(Disk::of(copy, half)?);
        }
    }
    Ok(disks)
}

/// The warden's end.
#[derive(Debug)]
pub struct DiskReport {
    reaper: OwnedFd,
    least: Option<u64>,
    memory: Option<OwnedFd>,
}

/// The reaper's byte.
const USED_UP: u8 = b'!';

impl DiskReport {
    /// A program asks for what it has at /dev/shm. From here on a part of it stays, also where the user has no limit. An error: little is left already.
    pub fn begin_memory(&self) -> Result<()> {
        let (Some(memory), None) = (&self.memory, self.least) else {
            return Ok(());
        };
        let disk = Disk::of(copy(memory)?, |free| free / STAYS)?;
        if disk.calm()?.is_none() {
            return Err(self.too_little());
        }
        let Some(stays) = disk.stays else {
            return Ok(());
        };
        let sent = send(
            self.reaper.as_raw_fd(),
            &stays.to_bytes(),
            MsgFlags::MSG_NOSIGNAL,
        );
        let sent = sent.map_err(|why| Failure::host("have a disk looked at")(why.into()));
        sent.map(drop)
    }

    /// Why the reaper has ended the sandbox, if a disk was the reason.
    pub fn used_up(&self) -> Option<Failure> {
        let mut byte = [0];
        let got = recv(self.reaper.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT);
        (got == Ok(1) && byte[0] == USED_UP).then(|| self.too_little())
    }

    fn too_little(&self) -> Failure {
        match self.least.map(size::format) {
            Some(least) => Failure::NoRoom { least },
            None => Failure::NoMemory,
        }
    }
}

/// The reaper's end.
#[derive(Debug)]
pub struct DiskWatch {
    warden: OwnedFd,
    disks: Vec<Disk>,
    /// To be looked at once the warden says how much of it is to stay.
    memory: Option<OwnedFd>,
}

impl DiskWatch {
    /// All that it uses.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let disks = self.disks.iter().map(|disk| disk.place.as_fd());
        let memory = self.memory.iter().map(AsFd::as_fd);
        disks.chain(memory).chain([self.warden.as_fd()])
    }

    /// Readable when there is to be another look.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.warden.as_fd()
    }

    /// When to look again, at the latest. None: the sandbox has to end, and the warden hears why.
    pub fn look(&mut self) -> Option<PollTimeout> {
        let mut stays = [0; size_of::<Free>()];
        match recv(self.warden.as_raw_fd(), &mut stays, MsgFlags::MSG_DONTWAIT) {
            // The warden has gone.
            Ok(0) => return None,
            Ok(_) => self.disks.extend(self.memory.take().map(|place| Disk {
                place,
                stays: Some(Free::from_bytes(stays)),
            })),
            Err(_) => {}
        }
        if self.disks.is_empty() {
            return Some(PollTimeout::NONE);
        }
        if let Ok(Some(calm)) = calm(&self.disks) {
            return Some(PollTimeout::try_from(calm).unwrap_or(PollTimeout::ZERO));
        }
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        // The warden may be about to end.
        let _ = send(self.warden.as_raw_fd(), &[USED_UP], flags);
        None
    }
}

/// Of a pipe, a terminal or a device nothing is used up.
fn is_on_disk(fd: &OwnedFd) -> bool {
    fstat(fd).is_ok_and(|it| it.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits())
}

/// The bytes and inodes that are free on a file system.
#[derive(Debug, Clone, Copy)]
struct Free {
    bytes: u64,
    inodes: u64,
}

impl Free {
    fn to_bytes(self) -> [u8; size_of::<Free>()] {
        let mut bytes = [0; size_of::<Free>()];
        bytes[..8].copy_from_slice(&self.bytes.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.inodes.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; size_of::<Free>()]) -> Free {
        let word = |from: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[from..from + 8]);
            u64::from_ne_bytes(word)
        };
        Free {
            bytes: word(0),
            inodes: word(8),
        }
    }
}

/// Where this file is; none: files in memory are on no disk.
fn free(place: &OwnedFd) -> Result<Option<Free>> {
    let found = fstatvfs(place);
    let found = found.map_err(|why| Failure::host("ask how full a disk is")(why.into()))?;
    let free = Free {
        bytes: found
            .blocks_available()
            .saturating_mul(found.fragment_size()),
        // Some have no number of them.
        inodes: match found.files() {
            0 => u64::MAX,
            _ => found.files_available(),
        },
    };
    Ok((found.blocks() != 0).then_some(free))
}

/// How many inodes are to stay free, of so many.
fn inodes_stay(free: u64) -> u64 {
    (free / STAYS).min(INODES_STAY)
}

/// A file system, and what of it is to stay free.
#[derive(Debug)]
struct Disk {
    place: OwnedFd,
    stays: Option<Free>,
}

impl Disk {
    /// `stays`: how many bytes, of so many that are free now.
    fn of(place: OwnedFd, stays: impl Fn(u64) -> u64) -> Result<Disk> {
        let stays = free(&place)?.map(|now| Free {
            bytes: stays(now.bytes),
            inodes: match now.inodes {
                u64::MAX => 0,
                inodes => inodes_stay(inodes),
            },
        });
        Ok(Disk { place, stays })
    }

    /// In this time it is not used up; nothing: less is left than is to stay.
    fn calm(&self) -> Result<Option<Duration>> {
        let (Some(stays), Some(now)) = (self.stays, free(&self.place)?) else {
            return Ok(Some(TURN_MAX));
        };
        let above = now.bytes.checked_sub(stays.bytes);
        let Some((bytes, inodes)) = above.zip(now.inodes.checked_sub(stays.inodes)) else {
            return Ok(None);
        };
        let lasts = |left: u64, fastest: u64| left.saturating_mul(1000) / fastest;
        let lasts = lasts(bytes, FASTEST).min(lasts(inodes, FASTEST_FILES));
        Ok(Some(Duration::from_millis(lasts)))
    }
}

/// The same for all of them.
fn calm(disks: &[Disk]) -> Result<Option<Duration>> {
    let mut least = TURN_MAX;
    for disk in disks {
        match disk.calm()? {
            Some(calm) => least = least.min(calm),
            None => return Ok(None),
        }
    }
    Ok(Some(least.max(TURN_MIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_that_are_made_of_bytes_are_no_limit_of_bytes() {
        assert_eq!(inodes_stay(8000), 2000);
        // XFS of 2 GiB, whose inodes are half a KiB: 32 MiB stay, not a quarter of all.
        assert_eq!(inodes_stay(1 << 22), 1 << 16);
    }

    #[test]
    fn what_is_left_is_seen() {
        let top = tempfile::tempdir().unwrap();
        let (given, none) = ([top.path().to_owned()], Writable::default());
        let written = Writable::find(&given).unwrap();
        let folder: OwnedFd = File::open(top.path()).unwrap().into();
        let keep = |least: u64, written: &Writable, tmp| {
            let room = Room(Some(least));
            room.watch(written, tmp, None, None)
        };
        assert!(keep(1, &written, None).is_ok());
        assert!(keep(u64::MAX, &none, None).is_ok());
        for refused in [
            keep(u64::MAX, &written, None),
            keep(u64::MAX, &none, Some(&folder)),
        ] {
            assert!(matches!(refused, Err(Failure::NoRoom { .. })));
        }
    }

    #[test]
    fn memory_is_looked_at_from_when_it_is_asked_for() {
        let top = tempfile::tempdir().unwrap();
        let folder: OwnedFd = File::open(top.path()).unwrap().into();
        let (mut watch, report) = Room(None)
            .watch(&Writable::default(), None, Some(&folder), None)
            .unwrap();
        assert_eq!(watch.look(), Some(PollTimeout::NONE));
        report.begin_memory().unwrap();
        assert!(watch.look().is_some_and(|it| it != PollTimeout::NONE));
        assert!(report.used_up().is_none());
        watch.disks[0].stays = Some(Free {
            bytes: u64::MAX,
            inodes: 0,
        });
        assert_eq!(watch.look(), None);
        assert!(matches!(report.used_up(), Some(Failure::NoMemory)));
        drop(report);
        assert_eq!(watch.look(), None);
    }
}
