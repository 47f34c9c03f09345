// SPDX-License-Identifier: GPL-2.0
//! Makes the contract's C headers, its Rust mirror and its offsets for assembly of include/ring3.abi, whose head says
//! how that reads. Cargo runs this for the mirror. tools/abi compiles it alone, and runs it for the headers.

mod describe;
mod emit;
mod steps;

use std::path::{Path, PathBuf};

fn main() {
    let set = |name| PathBuf::from(std::env::var(name).expect("cargo and tools/abi set it"));
    let include = set("CARGO_MANIFEST_DIR").join("../../include");
    let out = set("OUT_DIR");
    let read = |name: &str| {
        let file = include.join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    };
    let lock = read("ring3_lock.h");
    let contract = describe::Contract::read(&read("ring3.abi"), &lock);
    let headers = out.join("include");
    std::fs::create_dir_all(&headers).expect("OUT_DIR can be written");
    for file in &contract.files {
        write(&headers.join(&file.name), &emit::header(&contract, file));
    }
    write(&headers.join("ring3_lock.h"), &lock);
    write(&headers.join("ring3_asm.h"), &emit::assembly(&contract));
    write(&out.join("abi.rs"), &emit::rust(&contract));
    write(
        &out.join("steps.rs"),
        &steps::translate(&lock, "u32", "AtomicU32"),
    );
}

/// Leaves a file alone that is so already. There is no moment at which half of a file is there.
fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    let new = path.with_extension(std::process::id().to_string());
    std::fs::write(&new, text).expect("OUT_DIR can be written");
    std::fs::rename(&new, path).expect("OUT_DIR can be written");
}
