// SPDX-License-Identifier: GPL-2.0
//! A chain of the guest's descriptors, as pieces of its memory.
//!
//! The guest may change its tables at any time, and may have written nonsense. virtio-queue loads each descriptor once, and
//! ends a chain that is longer than the queue: what has no end within that is a loop. Each piece lies in the guest's memory.

use virtio_queue::desc::split::Descriptor;
use virtio_queue::DescriptorChain;
use vm_memory::{GuestMemoryBackend, GuestMemoryMmap, VolatileSlice};

/// What is wrong with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not end, has an index or a table that there is not, or no descriptor at all.
    Unending,
    /// A piece lies outside of the guest's memory.
    Outside,
    /// It is to be read where it should be written, or the other way round.
    Direction,
    /// No room for the header and the shortest frame.
    Short,
    /// Larger than any frame.
    Long,
    /// Its header says what the guest did not negotiate, or what does not exist.
    Header,
}

pub const FAULTS: usize = 6;

impl Fault {
    pub fn words(self) -> &'static str {
        match self {
            Fault::Unending => "a chain of descriptors that does not end",
            Fault::Outside => "a descriptor outside of the guest's memory",
            Fault::Direction => "a descriptor of the wrong direction",
            Fault::Short => "a frame without room for its headers",
            Fault::Long => "a frame larger than 64 KiB",
            Fault::Header => "an offload header of no meaning",
        }
    }
}

/// Adds the chain's pieces to `pieces`; how many bytes they have together, at most `limit`.
pub fn pieces<'a>(
    chain: DescriptorChain<&'a GuestMemoryMmap>,
    mem: &'a GuestMemoryMmap,
    is_written: bool,
    limit: usize,
    pieces: &mut Vec<VolatileSlice<'a>>,
) -> Result<usize, Fault> {
    let mut bytes = 0;
    let mut last: Option<Descriptor> = None;
    for descriptor in chain {
        if descriptor.is_write_only() != is_written {
            return Err(Fault::Direction);
        }
        let len = descriptor.len() as usize;
        if len > limit - bytes {
            if !is_written {
                return Err(Fault::Long);
            }
            // A buffer may be larger than what is ever written.
            add(mem, descriptor, limit - bytes, pieces)?;
            return Ok(limit);
        }
        add(mem, descriptor, len, pieces)?;
        bytes += len;
        last = Some(descriptor);
    }
    match last {
        Some(last) if !last.has_next() => Ok(bytes),
        _ => Err(Fault::Unending),
    }
}

/// A descriptor may go on in the next of the guest's regions.
fn add<'a>(
    mem: &'a GuestMemoryMmap,
    descriptor: Descriptor,
    len: usize,
    pieces: &mut Vec<VolatileSlice<'a>>,
) -> Result<(), Fault> {
    for piece in mem.get_slices(descriptor.addr(), len) {
        pieces.push(piece.map_err(|_| Fault::Outside)?);
    }
    Ok(())
}

/// Reads the first bytes of `pieces`, which have so many, and takes them off.
pub fn take_front(pieces: &mut Vec<VolatileSlice<'_>>, front: &mut [u8]) -> Result<(), Fault> {
    let mut done = 0;
    let mut used = 0;
    while done < front.len() {
        let piece = pieces.get_mut(used).ok_or(Fault::Short)?;
        let len = piece.len().min(front.len() - done);
        piece.copy_to(&mut front[done..done + len]);
        done += len;
        if len == piece.len() {
            used += 1;
        } else {
            *piece = piece.offset(len).map_err(|_| Fault::Short)?;
        }
    }
    pieces.drain(..used);
    Ok(())
}

/// Copies `from` to the first bytes of `pieces`, after `skip` bytes of them.
pub fn write(
    pieces: &[VolatileSlice<'_>],
    mut skip: usize,
    from: VolatileSlice<'_>,
) -> Result<(), Fault> {
    let mut from = from;
    for piece in pieces {
        if from.is_empty() {
            break;
        }
        if skip >= piece.len() {
            skip -= piece.len();
            continue;
        }
        let to = piece.offset(skip).map_err(|_| Fault::Short)?;
        skip = 0;
        let len = to.len().min(from.len());
        // As much as both have.
        from.copy_to_volatile_slice(to);
        from = from.offset(len).map_err(|_| Fault::Short)?;
    }
    match from.is_empty() {
        true => Ok(()),
        false => Err(Fault::Short),
    }
}
