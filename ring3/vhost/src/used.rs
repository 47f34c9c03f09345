// SPDX-License-Identifier: GPL-2.0
//! Giving buffers back to the guest, several at once.
//!
//! virtio-queue's add_used() publishes each buffer by itself. A driver that takes a frame out of merged buffers must find them
//! all, so here the index is written once for a batch. Whether the guest wants an interrupt is then asked by the positions
//! before and after.

use std::sync::atomic::{fence, Ordering};

use virtio_bindings::bindings::virtio_ring::VRING_AVAIL_F_NO_INTERRUPT;
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// The ring itself lies outside of the guest's memory, or its index makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRing;

impl<E> From<Wrong<E>> for BadRing {
    fn from(_: Wrong<E>) -> BadRing {
        BadRing
    }
}

/// Errors of the libraries', of which no more is to be known.
struct Wrong<E>(#[allow(dead_code)] E);

/// Bytes before the first element of either ring, and of a used one.
const RING_HEAD: u64 = 4;
const USED_ELEMENT: u64 = 8;

fn at(base: u64, offset: u64) -> Result<GuestAddress, BadRing> {
    base.checked_add(offset).map(GuestAddress).ok_or(BadRing)
}

/// Heads of chains, and how many bytes were written to each.
pub type Used = (u16, u32);

/// Publishes these. True: the guest wants an interrupt.
pub fn give_back(queue: &mut Queue, mem: &GuestMemoryMmap, used: &[Used]) -> Result<bool, BadRing> {
    if used.is_empty() {
        return Ok(false);
    }
    let size = queue.size();
    if size == 0 {
        return Err(BadRing);
    }
    let old = queue.next_used();
    let mut new = old;
    for &(head, len) in used {
        let place = at(
            queue.used_ring(),
            RING_HEAD + u64::from(new % size) * USED_ELEMENT,
        )?;
        let element = [u32::from(head).to_le(), len.to_le()];
        mem.write_obj(element, place).map_err(Wrong)?;
        new = new.wrapping_add(1);
    }
    queue.set_next_used(new);
    let index = at(queue.used_ring(), 2)?;
    mem.store(new.to_le(), index, Ordering::Release)
        .map_err(Wrong)?;
    wants_interrupt(queue, mem, old, new)
}

fn wants_interrupt(
    queue: &Queue,
    mem: &GuestMemoryMmap,
    old: u16,
    new: u16,
) -> Result<bool, BadRing> {
    // The index above is there before the guest's word is read.
    fence(Ordering::SeqCst);
    let load = |offset| -> Result<u16, BadRing> {
        let place = at(queue.avail_ring(), offset)?;
        let word: u16 = mem.load(place, Ordering::Relaxed).map_err(Wrong)?;
        Ok(u16::from_le(word))
    };
    if !queue.event_idx_enabled() {
        return Ok(u32::from(load(0)?) & VRING_AVAIL_F_NO_INTERRUPT == 0);
    }
    let event = load(RING_HEAD + 2 * u64::from(queue.size()))?;
    // vring_need_event() of the specification.
    Ok(new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old))
}
