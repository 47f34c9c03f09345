// SPDX-License-Identifier: GPL-2.0
//! `include/ring3_park.h`.

pub const RING3_NR_PARK: u64 = 0x1020;
pub const RING3_NR_UNPARK: u64 = 0x1021;
pub const RING3_UNPARK_CLOEXEC: u64 = 1;
pub const RING3_UNPARK_KEEP: u64 = 2;
pub const RING3_NR_GRAB: u64 = 0x1022;

#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ring3_ticket {
    pub key: u64,
}
