// SPDX-License-Identifier: GPL-2.0
//! The contract between image, gate and keeper, as Rust sees it.
//!
//! `include/ring3.abi` is the one description; `build.rs` makes all of this crate from it, name by name. The compiler
//! checks every size and offset here, `tests/header.rs` asks a C compiler for the same.
#![no_std]
#![forbid(unsafe_code)]

/// The folder of the C headers that were made together with this.
pub const HEADERS: &str = concat!(env!("OUT_DIR"), "/include");

/// A structure: its name, its size by the description and in Rust, and for each field its name and offsets.
pub struct Struct {
    pub name: &'static str,
    pub size: usize,
    pub rust_size: usize,
    pub fields: &'static [(&'static str, usize, usize)],
}

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// The steps of include/ring3_lock.h that are one instruction.
#[allow(unused_parens)]
mod steps {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};

    include!(concat!(env!("OUT_DIR"), "/steps.rs"));

    fn r3_step(word: &AtomicU32, old: u32, new: u32) -> bool {
        word.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }
}
pub use steps::*;

const _: () = {
    let mut s = 0;
    while s < LAYOUT.len() {
        assert!(LAYOUT[s].size == LAYOUT[s].rust_size, "a structure's size");
        let mut f = 0;
        while f < LAYOUT[s].fields.len() {
            let (_, c, rust) = LAYOUT[s].fields[f];
            assert!(c == rust, "a field's offset");
            f += 1;
        }
        s += 1;
    }
};
