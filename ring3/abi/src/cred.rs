// SPDX-License-Identifier: GPL-2.0
//! `include/ring3_cred.h`.

pub const RING3_NR_NEWUSER: u64 = 0x1030;
pub const RING3_NR_IDS: u64 = 0x1031;
pub const RING3_NR_NUMBER: u64 = 0x1032;
