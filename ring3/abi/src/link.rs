// SPDX-License-Identifier: GPL-2.0
//! `include/ring3_link.h`.

use core::sync::atomic::{AtomicI32, AtomicU32};

pub const RING3_LINK_MAGIC: u64 = 0x6b6e_696c_3367_6e72;
pub const RING3_RING_BYTES: u32 = 4 << 20;
pub const RING3_LINK_HEAD: u32 = 4096;
pub const RING3_LINK_BYTES: u32 = RING3_LINK_HEAD + 2 * RING3_RING_BYTES;
pub const RING3_RECORD_SKIP: u32 = 0xffff_ffff;

#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ring3_record {
    pub len: u32,
    pub vnet_hdr: [u8; 12],
    pub pad: [u8; 16],
}

/// A word on a cache line of its own.
#[repr(C, align(64))]
pub struct Line(pub AtomicU32);

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_ring {
    pub head: Line,
    pub tail: Line,
}

#[allow(non_camel_case_types)]
#[repr(C, align(64))]
pub struct ring3_side {
    pub doorbell: AtomicU32,
    pub armed: AtomicU32,
    pub waiting: AtomicU32,
    pub up: AtomicU32,
    pub pid: AtomicI32,
    pub cpu: AtomicU32,
}

#[allow(non_camel_case_types)]
#[repr(C)]
pub struct ring3_link {
    pub magic: u64,
    pub abi: u32,
    pub ring_bytes: u32,
    pub ring: [ring3_ring; 2],
    pub side: [ring3_side; 2],
}
