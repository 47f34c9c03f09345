// SPDX-License-Identifier: GPL-2.0
//! The vCPU as its keeper sees it: who has it, and taking it from the dead. Unsafe leaf.
//!
//! include/ring3.h has the owner word. Whoever hands the vCPU over writes the new holder's tid
//! into it and then sets BATON in that thread's own word; the new holder clears BATON as it
//! takes up the work. A thread that dies with BATON set has run nothing.
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

use ring3_abi::*;

use crate::region::Region;
use crate::sys::futex_wake;

/// What a process has of the vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grip {
    /// Nothing, or it only polls: anybody may take over.
    None,
    /// It was given the vCPU and has not taken it up yet.
    Baton,
    /// It runs kernel code.
    Holds,
}

impl Region {
    /// What a thread of that process has of the vCPU. A dead one's grip changes only when
    /// somebody takes it away.
    pub fn grip_of(&self, index: usize) -> Grip {
        self.holder_of(index).map_or(Grip::None, |(grip, ..)| grip)
    }

    /// Frees the vCPU from a dead process that it was handed to and that never took it up: no
    /// kernel code was running there, so anybody can go on. KEEP is asked to.
    pub fn take_baton_from(&self, index: usize) {
        let Some((Grip::Baton, owner, word)) = self.holder_of(index) else {
            return;
        };
        let vcpu = self.vcpu_owner();
        let freed = vcpu.compare_exchange(owner, 0, Ordering::AcqRel, Ordering::Acquire);
        // If this failed another thread of the node did the same just now.
        if freed.is_ok() {
            word.fetch_and(!RING3_WORD_BATON, Ordering::AcqRel);
            futex_wake(vcpu);
            self.raise(RING3_IRQ_WORK);
            self.kick();
        }
    }

    /// If the vCPU's holder is a thread of that process: its grip, the owner word as it
    /// was seen, and the thread's own word.
    fn holder_of(&self, index: usize) -> Option<(Grip, u32, &AtomicU32)> {
        let vcpu = self.at::<ring3_vcpu>(offset_of!(ring3_region, vcpu));
        let owner = self.vcpu_owner().load(Ordering::Acquire);
        // SAFETY: the mapped vcpu[0]; nothing is made of the address before it is checked.
        let driver = unsafe { (&raw const (*vcpu).driver).read_volatile() };
        let blocks = self.base()..self.base() + self.size() - size_of::<ring3_thread>() as u64;
        let polls = owner & RING3_OWNER_POLLING != 0;
        if owner == 0 || polls || !blocks.contains(&driver) || driver % 8 != 0 {
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
        if tid != owner & RING3_OWNER_TID || proc != self.proc_address(index) {
            return None;
        }
        let grip = match word.load(Ordering::Acquire) & RING3_WORD_BATON {
            0 => Grip::Holds,
            _ => Grip::Baton,
        };
        Some((grip, owner, word))
    }
}
