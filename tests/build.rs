// SPDX-License-Identifier: GPL-2.0
//! Makes the models' steps from include/ring3_lock.h, so that code and models can't drift apart.
//!
//! ring3/abi/steps.rs translates the part of the header before "Steps". A model's words have 8 bits: of the flags above
//! bit 23 the upper 8 are taken.

use std::fmt::Write as _;
use std::path::Path;

#[path = "../ring3/abi/steps.rs"]
mod steps;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let mut out = String::new();
    let file = Path::new(&root).join("../include/ring3_lock.h");
    println!("cargo:rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let (words, _) = text
        .split_once("/* Steps */")
        .expect("ring3_lock.h has the line Steps");
    constants(&mut out);
    out.push_str(&steps::translate(words, "u8", "u8"));
    let dir = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&dir).join("lock.rs"), out).expect("OUT_DIR can be written");
}

/// The bits of owner and thread words.
fn constants(out: &mut String) {
    let words = |name: &str| name.starts_with("RING3_WORD_") || name.starts_with("RING3_OWNER_");
    for (name, value) in ring3_abi::CONSTANTS.iter().filter(|(name, _)| words(name)) {
        let small = if *value > 0xff { value >> 24 } else { *value };
        writeln!(out, "pub const {name}: u8 = {small:#x};").expect("a string");
    }
}
