// SPDX-License-Identifier: GPL-2.0
//! Makes the models' steps from include/ring3_lock.h, so that code and models can't drift apart.
//!
//! The part of the header before "Steps" keeps to functions of one return statement, whose expression means the same
//! in C and in Rust but for `~`. A model's words have 8 bits: of the flags above bit 23 the upper 8 are taken.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let mut out = String::new();
    let file = Path::new(&root).join("../include/ring3_lock.h");
    println!("cargo:rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let (steps, _) = text
        .split_once("/* Steps */")
        .expect("ring3_lock.h has the line Steps");
    constants(&mut out);
    functions(steps, &mut out);
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

/// `static inline TYPE NAME(r3_u32 A, ...)`, `{`, `return EXPRESSION;`, `}`.
fn functions(text: &str, out: &mut String) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix("static inline ") else {
            continue;
        };
        let (result, head) = head.split_once(' ').expect("a type and a name");
        let result = match result {
            "_Bool" => "bool",
            "r3_u32" => "u8",
            other => panic!("a step of type {other}"),
        };
        let args = head.replace("r3_u32 ", "").replace(',', ": u8,");
        let args = args.replace(')', ": u8)");
        let body = match (lines.next(), lines.next(), lines.next()) {
            (Some("{"), Some(body), Some("}")) => body.trim(),
            _ => panic!("{head}: more than one return statement"),
        };
        let value = body
            .strip_prefix("return ")
            .and_then(|b| b.strip_suffix(';'));
        let value = value.unwrap_or_else(|| panic!("{head}: no return statement"));
        writeln!(
            out,
            "pub fn {args} -> {result} {{\n    {}\n}}",
            value.replace('~', "!")
        )
        .expect("a string");
    }
}
