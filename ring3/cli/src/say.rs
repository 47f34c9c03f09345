// SPDX-License-Identifier: GPL-2.0
//! Words for people. Nobody has to take them: a disk may be full, a reader gone, and neither is a
//! reason to end a node. So nothing here can fail or panic, as `eprintln!` and `println!` do; those
//! are forbidden in this crate (main.rs).

use std::fmt::Display;
use std::io::Write;

/// One line on standard error, said as ring3.
pub fn complain(words: impl Display) {
    // One write: lines of several threads and of the program do not mix.
    let line = format!("ring3: {words}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Text on standard output.
pub fn print(text: impl AsRef<[u8]>) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_ref()).and_then(|()| out.flush());
}
