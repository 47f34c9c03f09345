// SPDX-License-Identifier: GPL-2.0
//! What strangers and people may write, judged: the targets of tests/fuzz/rust.c, whose engine
//! (tests/fuzz/cover.h) is C. Unsafe leaf, for the one function that it calls.
//!
//! A finding is a panic, which aborts there.
#![allow(unsafe_code)]

use ring3_config::check;

type Target = (&'static str, fn(&[u8]));

/// By the names of tests/fuzz/Makefile.
const TARGETS: [Target; 5] = [
    ("join", ring3_node::fuzz::join),
    ("control", ring3_node::fuzz::control),
    ("port", check::port),
    ("node", check::node),
    ("small", check::small),
];

/// Runs target `name` (NUL-terminated) on `len` bytes; false: there is none of that name.
///
/// # Safety
/// `name` is a C string, and `data` points to `len` readable bytes.
#[no_mangle]
pub unsafe extern "C" fn ring3_fuzz(
    name: *const std::ffi::c_char,
    data: *const u8,
    len: usize,
) -> bool {
    // SAFETY: the caller promises a C string.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    let bytes = if len == 0 {
        &[]
    } else {
        // SAFETY: the caller promises `len` readable bytes.
        unsafe { std::slice::from_raw_parts(data, len) }
    };
    let target = TARGETS.iter().find(|it| name.to_bytes() == it.0.as_bytes());
    if let Some((_, judge)) = target {
        judge(bytes);
    }
    target.is_some()
}
