// SPDX-License-Identifier: GPL-2.0
//! Where things are, all derived from the root of the checkout.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The root of the checkout.
pub fn root() -> PathBuf {
    match std::env::var_os("RING3_ROOT") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")),
    }
}

static IN_SANDBOXES: AtomicBool = AtomicBool::new(false);

/// From now on, nodes are sandboxes.
pub fn use_sandboxes() {
    IN_SANDBOXES.store(true, Ordering::Relaxed);
}

pub fn in_sandboxes() -> bool {
    IN_SANDBOXES.load(Ordering::Relaxed)
}

/// The command under test; `RING3` overrides it.
pub fn ring3() -> PathBuf {
    if in_sandboxes() {
        return root().join("tests/ring3-sandbox");
    }
    match std::env::var_os("RING3") {
        Some(path) => PathBuf::from(path),
        None => root().join("bin/ring3"),
    }
}

/// The runtime folder, where the command finds it.
pub fn runtime() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() => folder.join("ring3"),
        _ if rustix::process::geteuid().is_root() => PathBuf::from("/run/ring3"),
        _ => PathBuf::from(format!(
            "/tmp/ring3-{}",
            rustix::process::geteuid().as_raw()
        )),
    }
}

/// The folder of the oracle programs' sources.
pub fn oracle() -> PathBuf {
    root().join("tests/oracle")
}

/// The folder for everything the tests build.
pub fn build() -> PathBuf {
    match std::env::var_os("RING3_BUILD") {
        Some(path) => PathBuf::from(path).join("tests"),
        None => root().join("build/tests"),
    }
}
