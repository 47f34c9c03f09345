// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the disks that a sandbox fills
//!
//! The host has no quota that a user can set. A look at the sandbox's folders would not see files whose names are gone. So the
//! warden asks for what is left on each file system that the sandbox writes to, its log included, or that its gateway writes
//! captures to, and ends the sandbox when that is less than the user wants to keep. It asks the more often the less is left: between two looks no
//! disk takes more than what is above the limit. Files take inodes, too, of which many file systems have a number: a part of those
//! that are free at the start stays, or a number that other programs can work with.
//!
//! The log of a node that stays lies in the runtime folder, and what programs have for /dev/shm there. Both are small on many hosts:
//! there half of what is free at the start stays, if the user's limit is more. /dev/shm is other programs', too, and the user did not ask for the sandbox's folder
//! there. So a part of it stays free without a limit of the user's as well, from when a program first asks for that folder on. What other programs
//! take counts as well: files that have no name, and only a mapping, are in no sum that the warden could make of the sandbox's own.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nix::sys::stat::{fstat, SFlag};
use nix::sys::statvfs::fstatvfs;
use ring3_config::{size, NodeConfig};

use super::apart::Writable;
use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::say;

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

    /// Of where the sandbox writes, and the ports of `captured` do; from now on, in a thread that lives as long as this process. `end` is called
    /// when there is too little. An error: there is too little now.
    pub fn keep(
        self,
        written: &Writable,
        tmp: Option<&OwnedFd>,
        memory: Option<&OwnedFd>,
        captured: Option<&NodeConfig>,
        end: impl Fn() + Send + 'static,
    ) -> Result<()> {
        let Some(least) = self.0 else {
            return Ok(());
        };
        let copies = written.fds().chain(tmp).map(OwnedFd::try_clone);
        let places: std::io::Result<Vec<_>> = copies.collect();
        let mut places = places.map_err(Failure::host("copy a descriptor"))?;
        let ports = captured.into_iter().flat_map(|config| &config.ports);
        let captures = ports.filter_map(|port| port.pcap.as_deref());
        for path in captures {
            let file = File::open(path);
            let file = file.map_err(Failure::host(format!("open {}", path.display())))?;
            places.push(file.into());
        }
        let mut disks = Vec::new();
        for place in places {
            disks.push(Disk::of(place, |_| least)?);
        }
        let half = |free: u64| least.min(free / 2);
        if let Some(memory) = memory {
            let copy = memory.try_clone();
            let copy = copy.map_err(Failure::host("copy a descriptor"))?;
            disks.push(Disk::of(copy, half)?);
        }
        let (output, error) = (std::io::stdout(), std::io::stderr());
        for fd in [output.as_fd(), error.as_fd()] {
            let copy = fd.try_clone_to_owned();
            let copy = copy.map_err(Failure::host("copy a descriptor"))?;
            if is_on_disk(&copy) {
                disks.push(Disk::of(copy, half)?);
            }
        }
        let least = size::format(least);
        watch(
            disks,
            move || Failure::NoRoom {
                least: least.clone(),
            },
            end,
        )
    }

    /// Of what the programs have at /dev/shm, where no limit says so.
    pub fn keep_memory(self, memory: &OwnedFd, end: impl Fn() + Send + 'static) -> Result<()> {
        if self.0.is_some() {
            return Ok(());
        }
        let copy = memory.try_clone();
        let copy = copy.map_err(Failure::host("copy a descriptor"))?;
        let disk = Disk::of(copy, |free| free / STAYS)?;
        watch(vec![disk], || Failure::NoMemory, end)
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

/// From now on, in a thread that lives as long as this process. An error: there is too little now.
fn watch(
    disks: Vec<Disk>,
    used_up: impl Fn() -> Failure + Send + 'static,
    end: impl Fn() + Send + 'static,
) -> Result<()> {
    if calm(&disks)?.is_none() {
        return Err(used_up());
    }
    let body = move || {
        while let Ok(Some(calm)) = calm(&disks) {
            std::thread::sleep(calm);
        }
        // First: a program can fill the pipe of standard error, or stop the terminal.
        say::complain_after(end, used_up());
    };
    let thread = std::thread::Builder::new().spawn(body);
    let thread = thread.map_err(Failure::host("start a thread"));
    thread.map(drop)
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
            room.keep(written, tmp, None, None, || {})
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
}
