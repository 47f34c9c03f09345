// SPDX-License-Identifier: GPL-2.0
//! `include/ring3_join.h`.

use crate::RING3_PORTS_MAX;

pub const RING3_JOIN_MAGIC: u64 = 0x32_6e69_6f6a_3367;
pub const RING3_ENV_NODE: &str = "RING3_NODE";

#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ring3_join_request {
    pub magic: u64,
    pub abi: u32,
    pub pid: i32,
}

#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct ring3_join_port {
    pub index: u32,
    pub kind: u32,
}

#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ring3_join_reply {
    pub magic: u64,
    pub abi: u32,
    pub status: i32,
    pub message: [u8; 160],
    pub base: u64,
    pub size: u64,
    pub text_start: u64,
    pub text_end: u64,
    pub thread: u64,
    pub node: [u8; 64],
    pub nports: u32,
    pub pad: u32,
    pub ports: [ring3_join_port; RING3_PORTS_MAX],
}
