// SPDX-License-Identifier: GPL-2.0
//! The contract between image, gate and keeper, as Rust sees it.
//!
//! `include/ring3.h`, `ring3_link.h`, `ring3_join.h`, `ring3_park.h`, `ring3_cred.h` and `ring3_cpuid.h` are the original; this
//! crate mirrors them name by name and explains nothing twice: read the headers. [`layout`] asserts every
//! size and offset at compile time, and `tests/header.rs` compares them with what a C
//! compiler makes of the headers, so neither side can move alone.
#![no_std]
#![forbid(unsafe_code)]

mod cpuid;
mod cred;
mod join;
pub mod layout;
mod link;
mod park;
mod region;
mod xdp;

pub use cpuid::*;
pub use cred::*;
pub use join::*;
pub use layout::LAYOUT;
pub use link::*;
pub use park::*;
pub use region::*;
pub use xdp::*;
