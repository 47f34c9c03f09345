// SPDX-License-Identifier: GPL-2.0
//! Makes the Rust mirror of the contract from its C headers, include/ring3*.h: they are the one description.
//!
//! The headers keep to a small part of C, which this reads: `#define NAME EXPRESSION`, `enum` with values,
//! `struct` of the types below, one field a line. What else stands there (comments, #if, the function-like
//! RING3_IRQ_PORT) is passed over or is an error. A constant's type goes by its notation: `ULL` and RING3_NR_*
//! are u64, `u` and the values of an enum u32, a plain number usize, but u64 in ring3_space.h. tests/header.rs compares sizes,
//! offsets and values with those of a C compiler.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The headers, each after those that it uses.
const HEADERS: &[&str] = &[
    "space", "cpuid", "stat", "sites", "", "smp", "link", "join", "park", "xdp", "cred", "xfer",
    "adopt", "sim",
];

/// C type, Rust type, bytes. The `r3_a` ones are words that several parties write at once.
const TYPES: &[(&str, &str, usize)] = &[
    ("char", "u8", 1),
    ("r3_u8", "u8", 1),
    ("r3_u16", "u16", 2),
    ("r3_u32", "u32", 4),
    ("r3_s32", "i32", 4),
    ("r3_u64", "u64", 8),
    ("r3_s64", "i64", 8),
    ("r3_a32", "core::sync::atomic::AtomicU32", 4),
    ("r3_as32", "core::sync::atomic::AtomicI32", 4),
    ("r3_a64", "core::sync::atomic::AtomicU64", 8),
];

/// Most elements of an array that core derives Default for.
const DEFAULT_MAX: u64 = 32;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let include = Path::new(&root).join("../../include");
    let mut mirror = Mirror::default();
    for name in HEADERS {
        let file = match *name {
            "" => include.join("ring3.h"),
            name => include.join(format!("ring3_{name}.h")),
        };
        println!("cargo:rerun-if-changed={}", file.display());
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        mirror.header(&text, &file.display().to_string());
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("abi.rs"), mirror.finish())
        .expect("OUT_DIR can be written");
}

struct Type {
    rust: String,
    size: u64,
    align: u64,
    atomic: bool,
    default: bool,
}

#[derive(Default)]
struct Mirror {
    values: BTreeMap<String, (u64, &'static str)>,
    structs: BTreeMap<String, Type>,
    rust: String,
    constants: String,
    layout: String,
}

impl Mirror {
    fn header(&mut self, text: &str, file: &str) {
        let text = without_comments(text);
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let line = line.trim();
            let at = format!("{file}:{}", number + 1);
            if let Some(rest) = line.strip_prefix("#define ") {
                self.define(rest, &at);
            } else if line.starts_with("enum ")
                || (line.starts_with("struct ") && line.ends_with('{'))
            {
                let mut body = Vec::new();
                for (_, line) in lines.by_ref() {
                    if line.trim().starts_with('}') {
                        break;
                    }
                    body.push(line.trim().to_string());
                }
                match line.strip_prefix("struct ") {
                    Some(rest) => self.structure(rest.trim_end_matches('{').trim(), &body, &at),
                    None => self.enumeration(&body, &at),
                }
            }
        }
    }

    fn constant(&mut self, name: &str, ty: &'static str, value: u64) {
        self.values.insert(name.into(), (value, ty));
        let _ = writeln!(self.rust, "pub const {name}: {ty} = {value:#x};");
        let _ = writeln!(self.constants, "    (\"{name}\", {value:#x}),");
    }

    fn define(&mut self, rest: &str, at: &str) {
        let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let value = value.trim();
        // Include guards, and names of fields.
        if value.is_empty() || name.contains('(') || !name.starts_with("RING3_") {
            return;
        }
        if let Some(text) = value.strip_prefix('"') {
            let text = text.trim_end_matches('"');
            let _ = writeln!(self.rust, "pub const {name}: &str = \"{text}\";");
            return;
        }
        let words = || value.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let known =
            |ty| words().any(|word| self.values.get(word).is_some_and(|known| known.1 == ty));
        let ty = match () {
            () if value.contains("ULL") || name.starts_with("RING3_NR_") || known("u64") => "u64",
            () if words().any(is_unsigned) || known("u32") => "u32",
            () if at.contains("ring3_space.h") => "u64",
            () => "usize",
        };
        let value = self.evaluate(value, at);
        self.constant(name, ty, value);
    }

    fn enumeration(&mut self, body: &[String], at: &str) {
        let mut next = 0;
        for item in body.iter().flat_map(|line| line.split(',')).map(str::trim) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            if name.is_empty() {
                continue;
            }
            if !value.is_empty() {
                next = self.evaluate(value, at);
            }
            self.constant(name.trim(), "u32", next);
            next += 1;
        }
    }

    fn structure(&mut self, name: &str, body: &[String], at: &str) {
        let (mut fields, mut layout) = (String::new(), String::new());
        let (mut offset, mut align, mut atomic, mut default) = (0, 1, false, true);
        let mut pads = 0;
        for line in body.iter().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("#define ") {
                self.define(rest, at);
                continue;
            }
            let line = line.trim_end_matches(';');
            let (line, attribute) = match line.split_once("__attribute__((aligned(") {
                Some((line, n)) => (line.trim(), self.evaluate(n.trim_end_matches(')'), at)),
                None => (line, 1),
            };
            let line = line.strip_prefix("struct ").unwrap_or(line);
            let (ty, names) = line
                .split_once(char::is_whitespace)
                .unwrap_or_else(|| panic!("{at}: struct {name}: what is '{line}'?"));
            for field in names.split(',').map(str::trim) {
                let (field, count) = match field.split_once('[') {
                    Some((field, n)) => (field, Some(self.evaluate(n.trim_end_matches(']'), at))),
                    None => (field, None),
                };
                let ty = self.lookup(ty, at);
                let wanted = ty.align.max(attribute);
                let place = offset_up(offset, wanted);
                if place > offset_up(offset, ty.align) {
                    let _ = writeln!(fields, "    pub _pad{pads}: [u8; {}],", place - offset);
                    default &= place - offset <= DEFAULT_MAX;
                    pads += 1;
                }
                let rust_name = match field {
                    "self" | "use" => format!("{field}_"),
                    field => field.into(),
                };
                let rust_type = match count {
                    Some(n) => format!("[{}; {n}]", ty.rust),
                    None => ty.rust.clone(),
                };
                default &= ty.default && count.is_none_or(|n| n <= DEFAULT_MAX);
                atomic |= ty.atomic;
                align = align.max(wanted);
                let _ = writeln!(fields, "    pub {rust_name}: {rust_type},");
                let _ = writeln!(
                    layout,
                    "        (\"{field}\", {place}, core::mem::offset_of!({name}, {rust_name})),"
                );
                offset = place + ty.size * count.unwrap_or(1);
            }
        }
        let size = offset_up(offset, align);
        let derive = match (atomic, default) {
            (true, _) => "",
            (false, true) => "#[derive(Clone, Copy, Debug, Default)]\n",
            (false, false) => "#[derive(Clone, Copy, Debug)]\n",
        };
        let _ = writeln!(
            self.rust,
            "\n#[allow(non_camel_case_types, missing_docs)]\n{derive}#[repr(C, align({align}))]\npub struct {name} {{\n{fields}}}"
        );
        let _ = writeln!(
            self.layout,
            "    Struct {{ name: \"{name}\", size: {size}, rust_size: core::mem::size_of::<{name}>(), fields: &[\n{layout}    ] }},"
        );
        let ty = Type {
            rust: name.into(),
            size,
            align,
            atomic,
            default,
        };
        self.structs.insert(name.into(), ty);
    }

    fn lookup(&self, ty: &str, at: &str) -> Type {
        if let Some((_, rust, size)) = TYPES.iter().find(|(c, ..)| *c == ty) {
            let (size, atomic) = (*size as u64, rust.contains("Atomic"));
            return Type {
                rust: (*rust).into(),
                size,
                align: size,
                atomic,
                default: !atomic,
            };
        }
        let found = self
            .structs
            .get(ty)
            .unwrap_or_else(|| panic!("{at}: no type '{ty}'"));
        Type {
            rust: found.rust.clone(),
            ..*found
        }
    }

    fn evaluate(&self, text: &str, at: &str) -> u64 {
        let mut parser = Parser {
            mirror: self,
            text: text.trim(),
            at,
        };
        let value = parser.shift();
        assert!(
            parser.text.is_empty(),
            "{at}: what is '{}' in '{text}'?",
            parser.text
        );
        value
    }

    fn finish(self) -> String {
        format!(
            "{}\n/// Every constant of the headers and its value.\npub const CONSTANTS: &[(&str, u64)] = &[\n{}];\n\n\
             /// Every structure of the headers, as the headers lay it out and as Rust does.\n\
             pub const LAYOUT: &[Struct] = &[\n{}];\n",
            self.rust, self.constants, self.layout
        )
    }
}

fn is_unsigned(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with('u')
}

fn offset_up(offset: u64, align: u64) -> u64 {
    offset.next_multiple_of(align)
}

/// Comments become spaces, their lines stay.
fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, comment)) = rest.split_once("/*") {
        let (comment, after) = comment.split_once("*/").expect("a comment ends");
        out.push_str(before);
        out.push_str(&"\n".repeat(comment.matches('\n').count()));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// C's integer expressions: `<<`, `|` lowest (the headers use one of them at a time), then sums, then products.
struct Parser<'a> {
    mirror: &'a Mirror,
    text: &'a str,
    at: &'a str,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let found = self.text.strip_prefix(token);
        self.text = found.unwrap_or(self.text).trim_start();
        found.is_some()
    }

    fn shift(&mut self) -> u64 {
        let mut value = self.sum();
        loop {
            value = match () {
                _ if self.eat("<<") => value << self.sum(),
                _ if self.eat("|") => value | self.sum(),
                _ => return value,
            }
        }
    }

    fn sum(&mut self) -> u64 {
        let mut value = self.product();
        loop {
            value = match () {
                _ if self.eat("+") => value + self.product(),
                _ if self.eat("-") => value - self.product(),
                _ => return value,
            }
        }
    }

    fn product(&mut self) -> u64 {
        let mut value = self.atom();
        loop {
            value = match () {
                _ if self.eat("*") => value * self.atom(),
                _ if self.eat("/") => value / self.atom(),
                _ => return value,
            }
        }
    }

    fn atom(&mut self) -> u64 {
        if self.eat("(") {
            let value = self.shift();
            assert!(
                self.eat(")"),
                "{}: a ) is missing before '{}'",
                self.at,
                self.text
            );
            return value;
        }
        let end = self.text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (word, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = word.trim_end_matches(['u', 'U', 'L']);
            let value = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            return value.unwrap_or_else(|e| panic!("{}: '{word}': {e}", self.at));
        }
        let known = self.mirror.values.get(word);
        known
            .unwrap_or_else(|| panic!("{}: no constant '{word}'", self.at))
            .0
    }
}
