// SPDX-License-Identifier: GPL-2.0
//! Makes a region: its memory, the image in it, its place in the address space. Unsafe leaf.
//!
//! A node lives in one of 76 slots of address space, at the same address in every one of its
//! processes. Only processes that hold two nodes at once care which (a proxy between them), so a
//! node takes one that no other node of its user has, as long as there is one (runtime.rs);
//! behind that, any. The map call itself refuses a slot that is taken (MAP_FIXED_NOREPLACE). The
//! whole slot is reserved first, so that nothing else moves in, then filled:
//!
//! ```text
//! base                        the memfd, read and write
//! base + text_start..text_end the same pages again, read and execute
//! base + RING3_ALIAS_OFFSET   the text once more, read and write (jump labels)
//! base + RING3_LINK_OFFSET    windows of link ports
//! ```
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use ring3_abi::{RING3_ALIAS_OFFSET, RING3_SLOTS, RING3_SLOT_SIZE, RING3_SPACE_BASE};
use rustix::fs::{seek, MemfdFlags, SealFlags, SeekFrom};
use rustix::io::Errno;
use rustix::mm::{mmap, mmap_anonymous, munmap, MapFlags, ProtFlags};

use crate::elf::Image;
use crate::error::{Error, Result};
use crate::sys::{lock_byte, unlock_byte};

/// A simulation's slot. Other nodes take it last.
const SLOT_FIXED: u64 = 0;
/// <asm-generic/mman-common.h>; the libc crate has it for glibc only.
const MADV_COLLAPSE: libc::c_int = 25;

/// A memfd whose size cannot be changed.
pub(crate) fn make_memory(name: &str, size: u64) -> Result<OwnedFd> {
    let fail = |why: rustix::io::Errno| Error::Memory {
        size,
        why: why.into(),
    };
    let name = format!("ring3:{name}");
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create(name, flags).map_err(fail)?;
    rustix::fs::ftruncate(&memory, size).map_err(fail)?;
    // A program that has joined must not truncate the memory under the others (SIGBUS for all).
    rustix::fs::fcntl_add_seals(
        &memory,
        SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL,
    )
    .map_err(fail)?;
    Ok(memory)
}

/// Copies the segments. Through the file rather than a mapping: whole pages are then written
/// without being cleared or faulted in first.
pub(crate) fn copy_image(image: &Image, memory: &OwnedFd) -> Result<()> {
    let unreadable = |why: rustix::io::Errno| Error::ImageUnreadable {
        path: image.path.clone(),
        why: why.into(),
    };
    let file_size = rustix::fs::fstat(&image.file).map_err(unreadable)?.st_size as u64;
    for segment in image.segments.iter().filter(|s| s.len > 0) {
        let end = segment.offset.checked_add(segment.len);
        if end.is_none_or(|end| end > file_size) {
            return Err(Error::ImageBad {
                path: image.path.clone(),
                why: "it is cut off",
            });
        }
        let first_page = segment.offset & !0xfff;
        let skip = (segment.offset - first_page) as usize;
        let len = skip + segment.len as usize;
        // SAFETY: a new private mapping at an address that the kernel chooses, unmapped below.
        let source = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ,
                MapFlags::PRIVATE | MapFlags::POPULATE,
                &image.file,
                first_page,
            )
        }
        .map_err(unreadable)?;
        // SAFETY: `len` bytes are mapped at `source`, all of them within the file.
        let bytes = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), len) };
        let result = write_at(memory, &bytes[skip..], segment.address);
        // SAFETY: the mapping made above; `bytes` is not used any more.
        let _ = unsafe { munmap(source, len) };
        result.map_err(|why| Error::Memory {
            size: image.size,
            why: why.into(),
        })?;
    }
    Ok(())
}

const PAGE: usize = 4096;
static ZEROES: [u8; PAGE] = [0; PAGE];

/// The memory is zero anyway: pages of zeroes are not written, so the host need not allocate them.
fn write_at(memory: &OwnedFd, bytes: &[u8], at: u64) -> rustix::io::Result<()> {
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        let page = PAGE - (at as usize + to) % PAGE;
        let next = (to + page).min(bytes.len());
        if bytes[to..next] == ZEROES[..next - to] {
            write_all_at(memory, &bytes[from..to], at + from as u64)?;
            from = next;
        }
        to = next;
    }
    write_all_at(memory, &bytes[from..], at + from as u64)
}

fn write_all_at(memory: &OwnedFd, mut bytes: &[u8], mut at: u64) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let done = rustix::io::pwrite(memory, bytes, at)?;
        bytes = &bytes[done..];
        at += done as u64;
    }
    Ok(())
}

/// Where a node may lie.
#[derive(Debug)]
pub(crate) enum Slots {
    /// Always in the same slot, so that addresses in the node are the same each time.
    Fixed,
    /// Anywhere. The file has the locks of the user's nodes, one byte for each slot; `None`: this process can't see it.
    Any(Option<File>),
}

/// Reserves a slot and maps the region into it; returns its address.
pub(crate) fn map(memory: &OwnedFd, size: u64, text: &Range<u64>, slots: &Slots) -> Result<u64> {
    let base = reserve_slot(size, slots)?;
    fill_slot(memory, size, text, base).map(|()| base)
}

/// The same for a region that other processes have: its slot is known.
pub(crate) fn map_at(
    memory: &OwnedFd,
    size: u64,
    text: &Range<u64>,
    base: u64,
    name: &str,
) -> Result<()> {
    let slot = (base - RING3_SPACE_BASE) / RING3_SLOT_SIZE;
    try_slot(size, slot)?.ok_or_else(|| Error::SameSlot {
        name: name.to_owned(),
        slots: RING3_SLOTS,
    })?;
    fill_slot(memory, size, text, base)
}

/// Maps the parts into a reserved slot.
fn fill_slot(memory: &OwnedFd, size: u64, text: &Range<u64>, base: u64) -> Result<()> {
    let fail = |why: rustix::io::Errno| Error::Memory {
        size,
        why: why.into(),
    };
    let part = |address: u64, len: u64, prot, offset: u64| {
        // SAFETY: every part lies in the slot that was just reserved and replaces only that.
        unsafe {
            mmap(
                address as *mut c_void,
                len as usize,
                prot,
                MapFlags::SHARED | MapFlags::FIXED,
                memory,
                offset,
            )
        }
    };
    let rw = ProtFlags::READ | ProtFlags::WRITE;
    let text_len = text.end - text.start;
    let parts = [
        (base, size, rw, 0),
        (
            base + text.start,
            text_len,
            ProtFlags::READ | ProtFlags::EXEC,
            text.start,
        ),
        (
            base + RING3_ALIAS_OFFSET + text.start,
            text_len,
            rw,
            text.start,
        ),
    ];
    for (address, len, prot, offset) in parts {
        if let Err(why) = part(address, len, prot, offset) {
            // SAFETY: the slot reserved above, which nobody knows yet.
            let _ = unsafe { munmap(base as *mut c_void, RING3_SLOT_SIZE as usize) };
            return Err(fail(why));
        }
    }
    Ok(())
}

/// Fails if something is mapped there.
fn reserve(base: u64) -> rustix::io::Result<()> {
    // SAFETY: NOREPLACE makes the call fail rather than touch what is there.
    let mapped = unsafe {
        mmap_anonymous(
            base as *mut c_void,
            RING3_SLOT_SIZE as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE,
        )
    };
    mapped.map(drop)
}

/// `Ok(None)`: something is mapped there.
fn try_slot(size: u64, slot: u64) -> Result<Option<u64>> {
    let base = RING3_SPACE_BASE + slot * RING3_SLOT_SIZE;
    match reserve(base) {
        Ok(()) => Ok(Some(base)),
        Err(Errno::EXIST) => Ok(None),
        Err(why) => Err(Error::Memory {
            size,
            why: why.into(),
        }),
    }
}

/// The slots in the order in which a node tries them: from one chosen at random on.
fn order() -> impl Iterator<Item = u64> {
    let first = u64::from(getrandom::u32().unwrap_or_default());
    let others = RING3_SLOTS - 1;
    (0..others)
        .map(move |i| SLOT_FIXED + 1 + (first + i) % others)
        .chain([SLOT_FIXED])
}

fn reserve_slot(size: u64, slots: &Slots) -> Result<u64> {
    let locks = match slots {
        Slots::Fixed => {
            let none = || Error::NoSlot {
                slots: "the one of simulations".into(),
            };
            return try_slot(size, SLOT_FIXED)?.ok_or_else(none);
        }
        Slots::Any(locks) => locks.as_ref(),
    };
    for slot in order() {
        let Some(locks) = locks else { break };
        if lock_byte(locks, slot as i64).is_err() {
            continue;
        }
        if let Some(base) = try_slot(size, slot)? {
            return Ok(base);
        }
        let _ = unlock_byte(locks, slot as i64);
    }
    for slot in order() {
        if let Some(base) = try_slot(size, slot)? {
            return Ok(base);
        }
    }
    Err(Error::NoSlot {
        slots: format!("each of {RING3_SLOTS}"),
    })
}

/// Size of the parts that make_huge() works on.
pub(crate) const HUGE: u64 = 2 << 20;

/// Asks the host to put the HUGE bytes of the memory at `offset` into a huge page, so that a
/// process that maps it has one page fault instead of many. The host may refuse (before Linux 6.1;
/// if huge pages in shared memory are disabled; if nothing is allocated there yet): then nothing
/// changes.
fn make_huge(memory: BorrowedFd<'_>, offset: u64) -> rustix::io::Result<()> {
    let len = HUGE as usize;
    // SAFETY: new mappings at addresses that the kernel chooses; the second replaces a part of the
    // first, and all of it is unmapped below. What the memory holds stays the same.
    unsafe {
        let room = mmap_anonymous(
            std::ptr::null_mut(),
            2 * len,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?;
        let at = (room as usize).next_multiple_of(len) as *mut c_void;
        let result = mmap(
            at,
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            memory,
            offset,
        )
        .and_then(|at| match libc::madvise(at, len, MADV_COLLAPSE) {
            0 => Ok(()),
            _ => {
                Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
            }
        });
        let _ = munmap(room, 2 * len);
        result
    }
}

/// The numbers of the first parts of HUGE bytes of which a good deal is allocated: of others a huge page would be memory for
/// nothing.
fn dense_parts(memory: BorrowedFd<'_>) -> Vec<u64> {
    /// More than a node has that only serves processes; of one with large buffers, those at the beginning.
    const MOST: usize = 24;
    const DENSE: u64 = 16 * PAGE as u64;
    let mut parts = BTreeMap::new();
    let mut at = 0;
    while let Ok(start) = seek(memory, SeekFrom::Data(at)) {
        let Ok(end) = seek(memory, SeekFrom::Hole(start)) else {
            break;
        };
        for part in start / HUGE..end.div_ceil(HUGE) {
            let bytes = end.min((part + 1) * HUGE) - start.max(part * HUGE);
            *parts.entry(part).or_insert(0) += bytes;
        }
        at = end;
    }
    parts.retain(|_, bytes| *bytes >= DENSE);
    parts.into_keys().take(MOST).collect()
}

/// Asks the host to put the parts of the memory that are in use into huge pages; returns how many are.
pub(crate) fn make_parts_huge(memory: BorrowedFd<'_>) -> usize {
    patiently(dense_parts(memory), |part| {
        let result = make_huge(memory, part * HUGE);
        if let Err(why) = result {
            log::debug!("no huge page for part {part} of the memory: {why}");
        }
        result
    })
}

/// A page that is in use at this moment can't be moved (`EAGAIN`): of a busy node that is one part in two. It is tried again
/// at once, and then ever later, for seconds. So is a part for which the host found no free huge page (`ENOMEM`): where its
/// memory has been in use for long, that is the rule, and each request has the host make some.
fn patiently(
    mut parts: Vec<u64>,
    mut make: impl FnMut(u64) -> std::result::Result<(), Errno>,
) -> usize {
    const TRIES: usize = 8;
    const ROUNDS: u32 = 8;
    const FIRST_PAUSE: Duration = Duration::from_millis(20);
    let mut made = 0;
    for round in 0..ROUNDS {
        parts.retain(|&part| {
            let busy = Err(Errno::AGAIN);
            let mut tries = (0..TRIES).map(|_| make(part));
            let result = tries.find(|result| *result != busy).unwrap_or(busy);
            made += usize::from(result.is_ok());
            matches!(result, Err(Errno::AGAIN | Errno::NOMEM))
        });
        if parts.is_empty() {
            break;
        }
        std::thread::sleep(FIRST_PAUSE * 2u32.pow(round));
    }
    made
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};
    use std::time::Duration;

    use super::{
        dense_parts, lock_byte, make_huge, make_memory, make_parts_huge, munmap, order, patiently,
        reserve_slot, write_at, Slots, HUGE, PAGE, RING3_SLOTS, RING3_SLOT_SIZE, RING3_SPACE_BASE,
    };
    use rustix::fs::fstat;
    use rustix::io::Errno;

    /// The slot that a node gets; it is free again.
    fn slot_of(slots: &Slots) -> u64 {
        let base = reserve_slot(0, slots).unwrap();
        // SAFETY: reserved just now, and known to nobody.
        unsafe { munmap(base as *mut _, RING3_SLOT_SIZE as usize) }.unwrap();
        (base - RING3_SPACE_BASE) / RING3_SLOT_SIZE
    }

    /// Threads of other tests have regions in this address space, too, for a moment.
    fn is_in(slots: &Slots, slot: u64) {
        let tries = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(10));
            slot_of(slots)
        });
        assert!(tries.take(500).any(|found| found == slot));
    }

    #[test]
    fn each_node_has_a_slot_of_its_own_as_long_as_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slots");
        let open = || {
            let mut options = std::fs::OpenOptions::new();
            options.create(true).truncate(false).read(true).write(true);
            options.open(&path).unwrap()
        };
        assert_eq!(order().last(), Some(0));
        let mut all: Vec<u64> = order().collect();
        all.sort_unstable();
        assert_eq!(all, (0..RING3_SLOTS).collect::<Vec<_>>());
        let other = open();
        for byte in 0..RING3_SLOTS as i64 {
            if byte != 5 {
                lock_byte(&other, byte).unwrap();
            }
        }
        let first = Slots::Any(Some(open()));
        is_in(&first, 5);
        // Now each is taken.
        let second = Slots::Any(Some(open()));
        assert!(slot_of(&second) < RING3_SLOTS);
        drop(first);
        is_in(&second, 5);
    }

    #[test]
    fn pages_of_zeroes_take_no_memory() {
        let memory = make_memory("test", 16 * PAGE as u64).unwrap();
        let mut bytes = vec![0; 9 * PAGE + 5];
        bytes[3 * PAGE - 1] = 1;
        bytes[6 * PAGE + 7] = 2;
        *bytes.last_mut().unwrap() = 3;
        // From the middle of a page on: the alignment in memory counts.
        let at = PAGE as u64 + 100;
        write_at(&memory, &bytes, at).unwrap();
        let mut found = vec![7; bytes.len()];
        assert_eq!(
            rustix::io::pread(&memory, &mut found[..], at).unwrap(),
            bytes.len()
        );
        assert!(found == bytes);
        assert_eq!(fstat(&memory).unwrap().st_blocks * 512 / PAGE as i64, 3);
    }

    /// Where the host makes huge pages of shared memory at all: a part with a page that a pipe holds is made huge once the
    /// pipe lets it go.
    #[test]
    fn a_busy_part_is_made_huge_later() {
        const HELD: Duration = Duration::from_millis(100);
        let memory = make_memory("test", 2 * HUGE).unwrap();
        write_at(&memory, &[1; 16 * PAGE], 0).unwrap();
        write_at(&memory, &[1; 16 * PAGE], HUGE).unwrap();
        if make_huge(memory.as_fd(), 0).is_err() {
            return;
        }
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut at = HUGE as i64;
        // SAFETY: descriptors that are open, and a number that outlives the call.
        let held = unsafe {
            libc::splice(
                memory.as_raw_fd(),
                &mut at,
                writer.as_raw_fd(),
                std::ptr::null_mut(),
                PAGE,
                0,
            )
        };
        assert_eq!(held, PAGE as isize);
        let busy = make_huge(memory.as_fd(), HUGE);
        assert_eq!(busy, Err(Errno::AGAIN));
        let letting_go = std::thread::spawn(move || {
            std::thread::sleep(HELD);
            drop((reader, writer));
        });
        // The first is huge already.
        assert_eq!(make_parts_huge(memory.as_fd()), 2);
        letting_go.join().unwrap();
    }

    /// A host whose memory has been in use for long has no huge page at once. Parts that it refused stayed small for ever,
    /// and a forking server's children had 700 us of page faults and unmapping in the place of 290.
    #[test]
    fn a_part_without_memory_is_tried_again() {
        let mut refusals = 2;
        let made = patiently(vec![0, 1], |part| {
            if part == 1 && refusals > 0 {
                refusals -= 1;
                return Err(Errno::NOMEM);
            }
            Ok(())
        });
        assert_eq!((made, refusals), (2, 0));
        assert_eq!(patiently(vec![0], |_| Err(Errno::INVAL)), 0);
    }

    #[test]
    fn parts_in_use() {
        let memory = make_memory("test", 6 * HUGE).unwrap();
        // A page is not worth a huge one; this is, over an end; and this, in pieces.
        write_at(&memory, &[1; PAGE], 0).unwrap();
        write_at(&memory, &[1; 40 * PAGE], 2 * HUGE - 20 * PAGE as u64).unwrap();
        for page in 0..16 {
            write_at(&memory, &[1; PAGE], 5 * HUGE + 2 * page * PAGE as u64).unwrap();
        }
        assert_eq!(dense_parts(memory.as_fd()), [1, 2, 5]);
    }
}
