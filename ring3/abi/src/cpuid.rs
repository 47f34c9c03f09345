// SPDX-License-Identifier: GPL-2.0
//! `include/ring3_cpuid.h`.

use core::sync::atomic::AtomicU32;

pub const RING3_CPUID_UNKNOWN: u32 = 0;
pub const RING3_CPUID_REMEMBER: u32 = 1;
pub const RING3_CPUID_HOST: u32 = 2;
pub const RING3_CPUID_ANSWERS: usize = 32;
pub const RING3_CPUID_WRITING: u32 = 1;
pub const RING3_CPUID_READY: u32 = 2;
pub const RING3_CPUID_FILES: usize = 64;
pub const RING3_CPUID_SITES: usize = 60;

#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ring3_cpuid_answer {
    pub state: u32,
    pub leaf: u32,
    pub subleaf: u32,
    pub pad: u32,
    pub regs: [u32; 4],
}

#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ring3_cpuid_file {
    pub key: u64,
    pub sites: u32,
    pub pad: u32,
    pub site: [u32; RING3_CPUID_SITES],
}

#[allow(non_camel_case_types)]
#[repr(C, align(64))]
pub struct ring3_cpuid {
    /// `use` of the header, a word that Rust keeps for itself.
    pub use_: AtomicU32,
    pub pad: [u32; 15],
    pub answers: [ring3_cpuid_answer; RING3_CPUID_ANSWERS],
    pub files: [ring3_cpuid_file; RING3_CPUID_FILES],
}
