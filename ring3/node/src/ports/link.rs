// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the two ends of a link
//!
//! A link is memory that two nodes share: include/ring3.abi describes it. The node that comes first
//! makes it, and passes it to the second (handover.rs). It lives while either of them does.
//!
//! The nodes find each other by the file `links/NAME` (see runtime.rs). A side is taken by locking
//! the byte of its number (0 or 1) through a descriptor that no other process gets; the host drops
//! the lock when the keeper ends, however that happens. `links/NAME@SIDE` is the socket where that
//! side passes the memory on. Everything that involves both sides (taking one, releasing one) is
//! done under flock of the whole file. So:
//!
//! ```text
//! both bytes free     the memory is made. Programs of dead nodes that map an earlier one are alone with it
//! one byte free       ours, and the memory is the far end's. What our predecessor was sent is dropped
//! none                two nodes are joined already: an error that names both
//! giving back         the far end sees `up` go, hears its doorbell; the last one removes the file
//! ```
//!
//! The file contains the nodes' names, for people only.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use rustix::fs::{flock, FlockOperation};

use crate::elf::c_string;
use crate::error::{Errno, Error, Result};
use crate::runtime::{is_current, open_current, Folder};
use crate::sys::{byte_is_locked, lock_byte};
use crate::window::LinkMemory;

use super::handover::{self, Handover};

const TRIES: usize = 100;
/// Bytes of each of the two names.
const NAME_BYTES: usize = 64;

/// One end of a link; given back with this value.
#[derive(Debug)]
pub(crate) struct Link {
    path: PathBuf,
    side: usize,
    /// Holds the lock of the side's byte; never passed to another process.
    lock: File,
    /// Mapped, and passed to programs that join.
    memory: File,
    window: LinkMemory,
    handover: Option<Handover>,
}

impl Link {
    /// Becomes true before any other process has this end's memory; `None`: the memory is another
    /// node's.
    pub fn was_given(&self) -> Option<Arc<AtomicBool>> {
        Some(self.handover.as_ref()?.was_given.clone())
    }

    /// Takes a free end of link `name` for node `node`. Programs of a node that is up have mapped
    /// `memory` already: so the link must use that, and the far end must be free.
    pub fn take(folder: &Folder, name: &str, node: &str, memory: Option<&File>) -> Result<Link> {
        let path = folder.link(name);
        for _ in 0..TRIES {
            let Some(lock) = open_current(&path)? else {
                break;
            };
            let _turn = Turn::wait(&lock)?;
            if !is_current(&lock, &path) {
                continue;
            }
            if let Some(link) = Link::take_from(
                &path,
                lock.try_clone().map_err(Error::io("copy a descriptor"))?,
                name,
                node,
                memory,
            )? {
                return Ok(link);
            }
        }
        Err(Error::LinkBad {
            path,
            why: "it is removed as fast as it is made",
        })
    }

    /// The same with the file locked. `None`: the far end has just gone; try again.
    fn take_from(
        path: &Path,
        lock: File,
        name: &str,
        node: &str,
        memory: Option<&File>,
    ) -> Result<Option<Link>> {
        let (side, is_first) = match [take_byte(&lock, 0)?, take_byte(&lock, 1)?] {
            [true, true] => {
                give_byte(&lock, 1)?;
                (0, true)
            }
            [true, false] => (0, false),
            [false, true] => (1, false),
            [false, false] => {
                return Err(Error::LinkTaken {
                    link: name.to_owned(),
                    first: read_name(&lock, 0),
                    second: read_name(&lock, 1),
                })
            }
        };
        let memory = if is_first {
            match memory {
                Some(memory) => handover::use_spare(memory)?,
                None => handover::make_memory(name)?,
            }
        } else if memory.is_some() {
            return Err(Error::LinkHasMemory {
                link: name.to_owned(),
                node: read_name(&lock, 1 - side),
            });
        } else {
            match handover::ask(&socket(path, 1 - side))? {
                Ok(memory) => memory,
                Err(_) if byte_is_locked(&lock, 1 - side as i64) == Ok(false) => return Ok(None),
                Err(why) => {
                    return Err(Error::LinkSilent {
                        link: name.to_owned(),
                        node: read_name(&lock, 1 - side),
                        why,
                    })
                }
            }
        };
        let window = LinkMemory::map(&memory)?;
        if is_first {
            window.start();
        } else if !window.is_valid() {
            return Err(Error::LinkBad {
                path: path.to_owned(),
                why: "its memory is of another ring3 version",
            });
        } else {
            window.take_over(side);
        }
        write_name(&lock, side, node).map_err(Error::io(format!("write {}", path.display())))?;
        let handover = Handover::start(&socket(path, side), &memory)?;
        Ok(Some(Link {
            path: path.to_owned(),
            side,
            lock,
            memory,
            window,
            handover: Some(handover),
        }))
    }

    pub fn side(&self) -> u32 {
        self.side as u32
    }

    /// Whether another node has the far end.
    pub fn far_end_is_up(&self) -> bool {
        self.window.far_end_is_up(self.side)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Ok(_turn) = Turn::wait(&self.lock) else {
            return;
        };
        self.window.leave(self.side);
        let _ = write_name(&self.lock, self.side, "");
        let last = take_byte(&self.lock, 1 - self.side).unwrap_or(false);
        // If someone has removed the folder, these names belong to another link.
        let is_ours = is_current(&self.lock, &self.path);
        drop(self.handover.take());
        if is_ours {
            let _ = std::fs::remove_file(socket(&self.path, self.side));
        }
        if is_ours && last {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The node at the other end of link `name` of node `node`, by the files; None: there is none.
pub(crate) fn far_end(folder: &Folder, name: &str, node: &str) -> Option<String> {
    let lock = File::open(folder.link(name)).ok()?;
    let is_there = |side: usize| byte_is_locked(&lock, side as i64) == Ok(true);
    let ends = (0..2).filter(|side| is_there(*side));
    ends.map(|side| read_name(&lock, side))
        .find(|other| other != node)
}

/// An exclusive lock on the file. Ends with this value, or with the process.
struct Turn<'a>(&'a File);

impl<'a> Turn<'a> {
    fn wait(file: &'a File) -> Result<Turn<'a>> {
        flock(file, FlockOperation::LockExclusive).map_err(Error::host("lock a link's memory"))?;
        Ok(Turn(file))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Locks a side's byte; false: another node has it.
fn take_byte(lock: &File, side: usize) -> Result<bool> {
    match lock_byte(lock, side as i64) {
        Ok(()) => Ok(true),
        Err(Errno(libc::EAGAIN)) => Ok(false),
        Err(why) => Err(Error::Host {
            what: "lock a link's side".into(),
            why,
        }),
    }
}

fn give_byte(lock: &File, side: usize) -> Result<()> {
    crate::sys::unlock_byte(lock, side as i64).map_err(|why| Error::Host {
        what: "unlock a link's side".into(),
        why,
    })
}

/// The socket where a side passes the memory on. No link has this name, since none contains an `@`.
fn socket(path: &Path, side: usize) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(format!("@{side}"));
    path.into()
}

fn read_name(lock: &File, side: usize) -> String {
    let mut bytes = [0; NAME_BYTES];
    match lock.read_exact_at(&mut bytes, (side * NAME_BYTES) as u64) {
        Ok(()) => c_string(&bytes),
        Err(_) => "?".into(),
    }
}

fn write_name(lock: &File, side: usize, node: &str) -> std::io::Result<()> {
    let mut bytes = [0; NAME_BYTES];
    let len = node.len().min(NAME_BYTES - 1);
    bytes[..len].copy_from_slice(&node.as_bytes()[..len]);
    lock.write_all_at(&bytes, (side * NAME_BYTES) as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        (dir, folder)
    }

    #[test]
    fn two_ends_a_third_is_refused_and_an_end_is_taken_again() {
        let (_dir, folder) = folder();
        let a = Link::take(&folder, "l", "a", None).unwrap();
        let b = Link::take(&folder, "l", "b", None).unwrap();
        assert_eq!((a.side(), b.side()), (0, 1));
        let error = Link::take(&folder, "l", "c", None).unwrap_err().to_string();
        assert!(error.contains("`a`") && error.contains("`b`"), "{error}");
        drop(a);
        let c = Link::take(&folder, "l", "c", None).unwrap();
        assert_eq!(c.side(), 0);
        drop((b, c));
        assert!(!folder.link("l").exists());
    }

    /// Memory that programs have mapped becomes a link's, but not a link's that has other memory.
    #[test]
    fn spare_memory() {
        let (_dir, folder) = folder();
        let spare = handover::make_spare().unwrap();
        let a = Link::take(&folder, "l", "a", Some(&spare)).unwrap();
        let b = Link::take(&folder, "l", "b", None).unwrap();
        let inode = |file: &File| file.metadata().unwrap().ino();
        assert_eq!(inode(&b.memory), inode(&spare));
        drop(a);
        let error = Link::take(&folder, "l", "c", Some(&spare)).unwrap_err();
        assert!(matches!(error, Error::LinkHasMemory { .. }), "{error}");
        let c = Link::take(&folder, "l", "c", None).unwrap();
        assert_eq!(c.side(), 0);
    }

    #[test]
    fn what_dead_nodes_left_is_made_anew() {
        let (_dir, folder) = folder();
        std::fs::write(folder.link("l"), "rubbish").unwrap();
        let a = Link::take(&folder, "l", "a", None).unwrap();
        assert_eq!(a.side(), 0);
        assert!(a.window.is_valid());
    }

    #[test]
    fn memory_of_another_version_is_refused() {
        let (_dir, folder) = folder();
        let a = Link::take(&folder, "l", "a", None).unwrap();
        a.memory.write_all_at(&[0; 8], 0).unwrap();
        let error = Link::take(&folder, "l", "b", None).unwrap_err();
        assert!(matches!(error, Error::LinkBad { .. }));
    }
}
