// SPDX-License-Identifier: GPL-2.0
//! Messages of the node's library, on standard error.
//!
//! Warnings and worse by default; `RING3_LOG=debug` (off, error, warn, info, debug, trace).

use log::{LevelFilter, Log, Metadata, Record};

use crate::say;

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ring3")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_ascii_lowercase();
            say::complain(format_args!("{level}: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

pub fn start() {
    let level = std::env::var("RING3_LOG")
        .ok()
        .and_then(|word| word.parse().ok())
        .unwrap_or(LevelFilter::Warn);
    // Fails only where a logger is set already, and main calls this once.
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(level);
    }
}
