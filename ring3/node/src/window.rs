// SPDX-License-Identifier: GPL-2.0
//! The head of a link's memory, as the keeper touches it. Unsafe leaf.
//!
//! This maps the head only, beside the window in the region through which the kernel uses the link:
//! it exists before a region does and after it has gone.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use ring3_abi::*;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

use crate::error::{Error, Result};
use crate::sys::futex_wake;

#[derive(Debug)]
pub(crate) struct LinkMemory(*mut ring3_link);

// SAFETY: the mapping belongs to the process, not to a thread; only atomics of it are
// touched once others can see it.
unsafe impl Send for LinkMemory {}

impl LinkMemory {
    pub fn map(file: impl AsFd) -> Result<LinkMemory> {
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe {
            mmap(
                std::ptr::null_mut(),
                RING3_LINK_HEAD as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        }
        .map_err(Error::host("map a link's memory"))?;
        Ok(LinkMemory(at.cast()))
    }

    fn link(&self) -> &ring3_link {
        // SAFETY: mapped since map(), page-aligned, and at least as large: link.rs checks the
        // file's size, whose last page the host would not map otherwise.
        unsafe { &*self.0 }
    }

    /// Writes the head of a file that is all zeroes.
    pub fn start(&self) {
        // SAFETY: as in link(); nobody else uses the file yet (link.rs holds its lock).
        unsafe {
            (*self.0).abi = RING3_ABI;
            (*self.0).ring_bytes = RING3_RING_BYTES;
            (*self.0).magic = RING3_LINK_MAGIC;
        }
    }

    pub fn is_valid(&self) -> bool {
        // SAFETY: as in link(). The far end may scribble here: what is read is only compared.
        unsafe {
            (&raw const (*self.0).magic).read_volatile() == RING3_LINK_MAGIC
                && (&raw const (*self.0).abi).read_volatile() == RING3_ABI
                && (&raw const (*self.0).ring_bytes).read_volatile() == RING3_RING_BYTES
        }
    }

    /// Takes over a side whose last owner may have died at any point.
    pub fn take_over(&self, side: usize) {
        let link = self.link();
        let own = &link.side[side];
        own.up.store(0, Ordering::Release);
        own.armed.store(0, Ordering::Release);
        own.waiting.store(0, Ordering::Release);
        own.pid.store(0, Ordering::Release);
        // Packets to the last owner are dropped. The tail is the consumer's word.
        let ring = &link.ring[1 - side];
        let head = ring.head.load(Ordering::Acquire);
        ring.tail.store(head, Ordering::Release);
    }

    /// Whether the far end's interface is up.
    pub fn far_end_is_up(&self, side: usize) -> bool {
        self.link().side[1 - side].up.load(Ordering::Acquire) != 0
    }

    /// Tells the far end that this one is gone.
    pub fn leave(&self, side: usize) {
        let link = self.link();
        link.side[side].up.store(0, Ordering::Release);
        link.side[side].pid.store(0, Ordering::Release);
        let bell = &link.side[1 - side].doorbell;
        bell.fetch_add(1, Ordering::AcqRel);
        futex_wake(bell);
    }
}

impl Drop for LinkMemory {
    fn drop(&mut self) {
        // SAFETY: mapped in map(), not used any more.
        let _ = unsafe { munmap(self.0.cast(), RING3_LINK_HEAD as usize) };
    }
}
