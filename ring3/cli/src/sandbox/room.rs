// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the disks that a sandbox fills
//!
//! The host has no quota that a user can set. A look at the sandbox's folders would not see files whose names are gone. So the
//! warden asks for what is left on each file system that the sandbox writes to, its log included, or that its gateway writes
//! captures to, and ends the sandbox when that is less than the user wants to keep. It asks the more often the less is left: between two looks no
//! disk takes more than what is above the limit.
//!
//! The log of a node that stays lies in the runtime folder, and what programs have for /dev/shm there. Both are small on many hosts:
//! there half of what is free at the start stays, if the user's limit is more.

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
const TURN_MIN: Duration = Duration::from_millis(2);
const TURN_MAX: Duration = Duration::from_millis(500);

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
        let mut places: Vec<_> = places.into_iter().map(|fd| (fd, least)).collect();
        let half = |fd: &OwnedFd| free(fd).map(|it| least.min(it.map_or(0, |bytes| bytes / 2)));
        if let Some(memory) = memory {
            let copy = memory.try_clone();
            let copy = copy.map_err(Failure::host("copy a descriptor"))?;
            let least = half(&copy)?;
            places.push((copy, least));
        }
        let (output, error) = (std::io::stdout(), std::io::stderr());
        for fd in [output.as_fd(), error.as_fd()] {
            let copy = fd.try_clone_to_owned();
            let copy = copy.map_err(Failure::host("copy a descriptor"))?;
            if is_on_disk(&copy) {
                let least = half(&copy)?;
                places.push((copy, least));
            }
        }
        Disks { places, least }.watch(end)
    }
}

/// Of a pipe, a terminal or a device nothing is used up.
fn is_on_disk(fd: &OwnedFd) -> bool {
    fstat(fd).is_ok_and(|it| it.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits())
}

/// How many bytes are free where this file is; none: files in memory are on no disk.
fn free(place: &OwnedFd) -> Result<Option<u64>> {
    let found = fstatvfs(place);
    let found = found.map_err(|why| Failure::host("ask how full a disk is")(why.into()))?;
    let blocks = found.blocks_available();
    let bytes = blocks.saturating_mul(found.fragment_size());
    Ok((found.blocks() != 0).then_some(bytes))
}

/// File systems of which bytes are to stay free: so many of each, and so many as the user has said.
#[derive(Debug)]
struct Disks {
    places: Vec<(OwnedFd, u64)>,
    least: u64,
}

impl Disks {
    fn watch(self, end: impl Fn() + Send + 'static) -> Result<()> {
        if self.above()?.is_none() {
            return Err(self.used_up());
        }
        let body = move || {
            while let Ok(Some(above)) = self.above() {
                let turn = Duration::from_millis(above.saturating_mul(1000) / FASTEST);
                std::thread::sleep(turn.clamp(TURN_MIN, TURN_MAX));
            }
            say::complain(self.used_up());
            end();
        };
        let thread = std::thread::Builder::new().spawn(body);
        let thread = thread.map_err(Failure::host("start a thread"));
        thread.map(drop)
    }

    /// How much there is beyond what is to stay; nothing: less than that is left.
    fn above(&self) -> Result<Option<u64>> {
        let mut above = u64::MAX;
        for (place, least) in &self.places {
            let Some(free) = free(place)? else {
                continue;
            };
            match free.checked_sub(*least) {
                Some(left) => above = above.min(left),
                None => return Ok(None),
            }
        }
        Ok(Some(above))
    }

    fn used_up(&self) -> Failure {
        let least = size::format(self.least);
        Failure::NoRoom { least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
