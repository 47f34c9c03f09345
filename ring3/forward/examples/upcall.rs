// SPDX-License-Identifier: GPL-2.0
//! What a call of a handler that does nothing costs (paper 001, table 1: the null upcall). Compiles such a handler with `cc`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CALLS: u64 = 20_000_000;
const ROUNDS: usize = 5;
const NULL: &str = "
#include <ring3_forward.h>
static uint64_t packet(void *state, struct ring3_packet *packet) { return RING3_TO_ALL; }
const struct ring3_handler ring3_handler = { .abi = RING3_HANDLER_ABI, .packet = packet };
";

fn main() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let folder = std::env::temp_dir().join(format!("ring3-upcall-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the handler");
    let (source, object) = (folder.join("null.c"), folder.join("null.so"));
    std::fs::write(&source, NULL).expect("write the handler");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-I"]).arg(include);
    let compiled = cc.arg("-o").arg(&object).arg(&source).status();
    assert!(compiled.expect("start cc").success());
    for _ in 0..ROUNDS {
        let (cycles, time) = ring3_forward::calls(&object, CALLS).expect("call the handler");
        let each = |whole: f64| whole / CALLS as f64;
        let ns = each(Duration::as_nanos(&time) as f64);
        println!(
            "{:.1} cycles of the TSC, {ns:.2} ns a call",
            each(cycles as f64)
        );
    }
    std::fs::remove_dir_all(&folder).expect("remove the folder");
}
