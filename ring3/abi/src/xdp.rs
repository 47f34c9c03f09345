// SPDX-License-Identifier: GPL-2.0
//! `include/ring3_xdp.h`.

pub const RING3_XDP_ENTRIES: u32 = 1024;
pub const RING3_XDP_STRIDE: u32 = 0x10000;

/* enum ring3_xdp_ring */
pub const RING3_XDP_RX: u32 = 0;
pub const RING3_XDP_TX: u32 = 1;
pub const RING3_XDP_FILL: u32 = 2;
pub const RING3_XDP_COMPLETION: u32 = 3;

pub const RING3_XDP_RXTX_BYTES: u32 = 4096 + RING3_XDP_ENTRIES * 16;
pub const RING3_XDP_UMEM_BYTES: u32 = 4096 + RING3_XDP_ENTRIES * 8;
pub const RING3_XDP_MTU_MAX: u32 = 1770;
