// SPDX-License-Identifier: GPL-2.0
//! The vCPUs as the keeper sees them: their owners, and freeing them from the dead. Unsafe leaf.
//!
//! include/ring3_lock.h has the steps on the owner word. A thread that hands the vCPU over sets
//! OFFERED in the new owner's own word, writes its tid into the owner word and then replaces
//! OFFERED by BATON; the new owner clears both when it takes up the vCPU. A thread that dies with
//! one of them set has run nothing.
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use ring3_abi::*;

use crate::region::Region;
use crate::sys::futex_wake;

/// The hold of a process on a vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grip {
    /// None, or it only polls: any thread may take the vCPU.
    None,
    /// It was handed the vCPU and has not taken it up yet.
    Baton,
    /// It runs kernel code.
    Holds,
}

impl Region {
    /// The strongest hold of a thread of that process on a vCPU. A dead process's hold changes only
    /// when another thread takes the vCPU away.
    pub fn grip_of(&self, index: usize) -> Grip {
        let mut most = Grip::None;
        for vcpu in self.vcpus() {
            match self.holder_of(vcpu, index) {
                Some((Grip::Holds, ..)) => return Grip::Holds,
                Some((grip, ..)) => most = grip,
                None => {}
            }
        }
        most
    }

    /// Frees the vCPUs that were handed to a dead process and never taken up: no kernel code was
    /// running there, so any thread can continue. Their KEEPs are kicked.
    pub fn take_baton_from(&self, index: usize) {
        let vcpus: Vec<_> = self.vcpus().collect();
        for (n, vcpu) in vcpus.into_iter().enumerate() {
            let Some((Grip::Baton, owner, word)) = self.holder_of(vcpu, index) else {
                continue;
            };
            // If this fails, another thread of the node has just done the same.
            if !r3_reclaim(&vcpu.owner, owner) {
                continue;
            }
            // It may have been handed several, and this word stands for all.
            if self.grip_of(index) == Grip::None {
                let _ = r3_word_clear(word, RING3_WORD_BATON);
            }
            futex_wake(&vcpu.owner);
            if n == 0 {
                self.raise(RING3_IRQ_WORK);
                self.kick();
            } else {
                vcpu.pending.fetch_or(RING3_IRQ_WORK, Ordering::AcqRel);
                vcpu.kick.fetch_add(1, Ordering::AcqRel);
                futex_wake(&vcpu.kick);
            }
        }
    }

    /// All vCPUs of the node, by their links.
    pub(crate) fn vcpus(&self) -> impl Iterator<Item = &ring3_vcpu> {
        let inside = self.base()..self.base() + self.size() - size_of::<ring3_vcpu>() as u64;
        let first = self.at::<ring3_vcpu>(offset_of!(ring3_region, vcpu)) as u64;
        let valid = move |at: &u64| inside.contains(at) && at.is_multiple_of(8);
        std::iter::successors(Some(first).filter(&valid), {
            let valid = valid.clone();
            move |at| {
                let next = (*at + offset_of!(ring3_vcpu, next) as u64) as *const u64;
                // SAFETY: a word of a vCPU at an aligned address inside the mapped region.
                Some(unsafe { next.read_volatile() }).filter(&valid)
            }
        })
        .take(RING3_VCPUS_MAX)
        // SAFETY: as above; what others write meanwhile is atomic or read as volatile.
        .map(|at| unsafe { &*(at as *const ring3_vcpu) })
    }

    /// If the vCPU's owner is a thread of that process: its hold, the value of the owner word, and
    /// the thread's own word.
    fn holder_of(&self, vcpu: &ring3_vcpu, index: usize) -> Option<(Grip, u32, &AtomicU32)> {
        let owner = vcpu.owner.load(Ordering::Acquire);
        // SAFETY: a field of a mapped vCPU; nothing is made of the address before it is checked.
        let driver = unsafe { (&raw const vcpu.driver).read_volatile() };
        let blocks = self.base()..self.base() + self.size() - size_of::<ring3_thread>() as u64;
        if r3_owner_is_free(owner) || !blocks.contains(&driver) || driver % 8 != 0 {
            return None;
        }
        let thread = driver as *const ring3_thread;
        // SAFETY: an aligned address inside the mapped region with room for a thread block.
        let (tid, proc, word) = unsafe {
            (
                (&raw const (*thread).tid).read_volatile(),
                (&raw const (*thread).proc).read_volatile(),
                &(*thread).word,
            )
        };
        if !r3_owner_is(owner, tid) || proc != self.proc_address(index) {
            return None;
        }
        let grip = match word.load(Ordering::Acquire) & RING3_WORD_HANDED {
            0 => Grip::Holds,
            _ => Grip::Baton,
        };
        Some((grip, owner, word))
    }
}
