// SPDX-License-Identifier: GPL-2.0
//! Makes `ALLOWED` and `TABLE` of src/list.rs from column CONFINED of gate/entry/calls.tbl.

use std::path::PathBuf;

fn main() {
    let set = |name| PathBuf::from(std::env::var(name).expect("cargo sets it"));
    let file = set("CARGO_MANIFEST_DIR").join("../../gate/entry/calls.tbl");
    println!("cargo:rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let (mut allowed, mut table) = (String::new(), String::new());
    for row in text.lines().filter(|row| !row.starts_with('#')) {
        let words: Vec<_> = row.split_whitespace().collect();
        let &[nr, name, _, _, _, _, word, _, _] = words.as_slice() else {
            panic!("{}: what is '{row}'?", file.display());
        };
        let call = format!("Call {{ name: {name:?}, nr: {nr} }}");
        match word {
            "pass" => allowed += &format!("    {call},\n"),
            "some" | "refuse" | "absent" | "without" | "warden" | "-" => {}
            _ => panic!("{}: CONFINED of {name} is '{word}'", file.display()),
        }
        table += &format!("    ({call}, {word:?}),\n");
    }
    let code = format!(
        "/// What may be made with any arguments.\npub const ALLOWED: &[Call] = &[\n{allowed}];\n\
         /// Each call, with its word in column CONFINED of gate/entry/calls.tbl.\n\
         pub const TABLE: &[(Call, &str)] = &[\n{table}];\n"
    );
    std::fs::write(set("OUT_DIR").join("calls.rs"), code).expect("OUT_DIR can be written");
}
