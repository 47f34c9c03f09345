// SPDX-License-Identifier: GPL-2.0
//! Calling into the image: the one place where this program runs kernel code. Unsafe leaf.
//!
//! `enter` and its convention are described at the head of include/ring3.abi. A thread block
//! belongs to one host thread at a time; [`Thread`] is that ownership as a value, which may move
//! to another host thread but never be used by two.
#![allow(unsafe_code)]

use std::arch::asm;
use std::cell::Cell;
use std::sync::Arc;

use ring3_abi::*;

use crate::error::Errno;
use crate::region::Region;

/// Highest error number (MAX_ERRNO of <linux/err.h>).
const MAX_ERRNO: i64 = 4095;

thread_local! {
    static TID: Cell<u32> = const { Cell::new(0) };
}

fn tid() -> u32 {
    TID.with(|cell| {
        if cell.get() == 0 {
            cell.set(rustix::thread::gettid().as_raw_nonzero().get() as u32);
        }
        cell.get()
    })
}

/// A thread block of the node, and the right to enter with it.
#[derive(Debug)]
pub(crate) struct Thread {
    region: Arc<Region>,
    block: u64,
    enter: u64,
}

impl Thread {
    /// The thread block of pid 1. To be made once per region.
    pub fn init(region: &Arc<Region>) -> Thread {
        Thread::new(region, region.init_thread())
    }

    /// One of the keeper's drivers without a task. To be made once per region and number.
    pub fn driver(region: &Arc<Region>, n: usize) -> Thread {
        Thread::new(region, region.driver_thread(n))
    }

    /// A thread block that RING3_NR_SPAWN returned.
    pub fn spawned(region: &Arc<Region>, block: u64) -> Thread {
        let memory = region.base()..region.base() + region.size();
        assert!(memory.contains(&block), "a thread block outside the region");
        Thread::new(region, block)
    }

    fn new(region: &Arc<Region>, block: u64) -> Thread {
        Thread {
            enter: region.enter_address(),
            region: region.clone(),
            block,
        }
    }

    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Address of this thread's struct ring3_proc.
    pub fn proc(&self) -> u64 {
        // SAFETY: a thread block in the mapped region, written before we were given it.
        unsafe { (*(self.block as *const ring3_thread)).proc }
    }

    /// Makes one call, Linux's or ring3's own.
    ///
    /// # Safety
    ///
    /// Arguments that are addresses must be valid for what call `nr` does with them.
    pub unsafe fn call(&mut self, nr: u64, args: [u64; 6]) -> Result<i64, Errno> {
        let block = self.block as *mut ring3_thread;
        // SAFETY: the block is in mapped memory and ours alone (&mut self).
        unsafe { (*block).tid = tid() };
        let mut ret = nr as i64;
        // SAFETY: enter follows its convention: it clobbers what is listed here and flags,
        // preserves the rest and all vector state, and returns. The caller vouches for `args`.
        unsafe {
            asm!(
                "call r11",
                inout("rax") ret,
                inout("rdi") args[0] => _,
                inout("rsi") args[1] => _,
                inout("rdx") args[2] => _,
                inout("rcx") args[3] => _,
                inout("r8") args[4] => _,
                inout("r9") args[5] => _,
                inout("r10") self.block => _,
                inout("r11") self.enter => _,
            );
        }
        if (-MAX_ERRNO..0).contains(&ret) {
            return Err(Errno(-ret as i32));
        }
        Ok(ret)
    }

    /// Boots the node on this thread, which is pid 1's. The result is boot's own: 0 or -errno.
    pub fn boot(&mut self) -> i64 {
        let block = self.block as *mut ring3_thread;
        // SAFETY: as in call().
        unsafe { (*block).tid = tid() };
        // SAFETY: the image's header says that this is `long boot(struct ring3_thread *)` in
        // the C convention; Image::open checked that it lies in the text.
        let boot = unsafe {
            std::mem::transmute::<u64, extern "C" fn(u64) -> i64>(self.region.boot_address())
        };
        boot(self.block)
    }
}
