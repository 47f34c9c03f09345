// SPDX-License-Identifier: GPL-2.0
//! The contract between image, gate and keeper, as Rust sees it.
//!
//! `include/ring3*.h` are the one description; `build.rs` makes all of this crate from them, name by name. Read the
//! headers. The compiler checks every size and offset here, `tests/header.rs` asks a C compiler for the same.
#![no_std]
#![forbid(unsafe_code)]

/// A structure: its name, its size by the headers and in Rust, and for each field its name and offsets.
pub struct Struct {
    pub name: &'static str,
    pub size: usize,
    pub rust_size: usize,
    pub fields: &'static [(&'static str, usize, usize)],
}

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// `RING3_IRQ_PORT(n)`
#[must_use]
pub const fn ring3_irq_port(n: u32) -> u32 {
    1 << (8 + n)
}

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
