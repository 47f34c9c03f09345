// SPDX-License-Identifier: GPL-2.0
//! Makes the models' steps from include/ring3_lock.h, so that code and models can't drift apart.
//!
//! The part of the header before "Steps" keeps to functions of one return statement, whose expression means the same
//! in C and in Rust but for `~`. A model's words have 8 bits: of the flags above bit 23 the upper 8 are taken.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let include = Path::new(&root).join("../include");
    let mut out = String::new();
    for name in ["ring3.h", "ring3_lock.h"] {
        let file = include.join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        constants(&text, &mut out);
        if name == "ring3_lock.h" {
            let (steps, _) = text
                .split_once("/* Steps */")
                .expect("ring3_lock.h has the line Steps");
            functions(steps, &mut out);
        }
    }
    let dir = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&dir).join("lock.rs"), out).expect("OUT_DIR can be written");
}

/// The bits of owner and thread words.
fn constants(text: &str, out: &mut String) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some("#define"), Some(name), Some(value)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if !name.starts_with("RING3_WORD_") && !name.starts_with("RING3_OWNER_") {
            continue;
        }
        let value = if value.starts_with('(') {
            let shift = words.nth(1).and_then(|s| s.strip_suffix(')'));
            1u32 << shift.expect("(1u << N)").parse::<u32>().expect("a bit")
        } else {
            let hex = value.strip_prefix("0x").and_then(|v| v.strip_suffix('u'));
            u32::from_str_radix(hex.expect("0xNNu"), 16).expect("a number")
        };
        let small = if value > 0xff { value >> 24 } else { value };
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
