// SPDX-License-Identifier: GPL-2.0
//! Translates include/ring3_lock.h to Rust: for the keeper, and for the models with words of 8 bits.
//!
//! Functions of one return statement are translated, whose expression means the same in C and in Rust but for `~`, the
//! atomics, and pointers. The others are for image and gate only.

use std::fmt::Write as _;

const ATOMICS: &[(&str, &str)] = &[
    ("__atomic_exchange_n(", "swap("),
    ("__atomic_fetch_or(", "fetch_or("),
    ("__atomic_fetch_and(", "fetch_and("),
    ("__atomic_load_n(", "load("),
];

/// `static inline TYPE NAME(r3_u32 A, ...)`, `{`, `return EXPRESSION;`, `}`.
pub fn translate(text: &str, word: &str, shared: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(head) = line.strip_prefix("static inline ") else {
            continue;
        };
        let (result, head) = head.split_once(' ').expect("a type and a name");
        let (name, args) = head
            .trim_end_matches(')')
            .split_once('(')
            .expect("arguments");
        let body = match (lines.next(), lines.next(), lines.next()) {
            (Some("{"), Some(body), Some("}")) => body.trim(),
            _ => continue,
        };
        let value = body
            .strip_prefix("return ")
            .and_then(|body| body.strip_suffix(';'));
        let (Some(value), false) = (value, body.contains("&old")) else {
            continue;
        };
        let args: Vec<_> = args
            .split(", ")
            .map(|arg| argument(arg, word, shared))
            .collect();
        let result = if result == "_Bool" { "bool" } else { word };
        let _ = writeln!(
            out,
            "#[must_use]\npub fn {name}({}) -> {result} {{\n    {}\n}}",
            args.join(", "),
            expression(value)
        );
    }
    out
}

fn argument(arg: &str, word: &str, shared: &str) -> String {
    match arg.rsplit_once([' ', '*']) {
        Some((ty, name)) if ty.starts_with("r3_a32") => format!("{name}: &{shared}"),
        Some((_, name)) => format!("{name}: {word}"),
        None => panic!("what is '{arg}'?"),
    }
}

fn expression(value: &str) -> String {
    let mut value = value.replace('~', "!");
    for (c, rust) in ATOMICS {
        // `f(word, x, ORDER)` is `word.f(x, ORDER)`.
        while let Some(at) = value.find(c) {
            let rest = &value[at + c.len()..];
            let (object, rest) = rest.split_once(", ").expect("an atomic's word");
            value = format!("{}{object}.{rust}{rest}", &value[..at]);
        }
    }
    value
        .replace("__ATOMIC_SEQ_CST", "Ordering::SeqCst")
        .replace("__ATOMIC_ACQUIRE", "Ordering::Acquire")
}
