// SPDX-License-Identifier: GPL-2.0
//! Programs that are particular about where in the address space anything lies.

use super::{Checked, Verdict, ensure, trial};
use crate::compile::{compile, compile_thread_sanitizer};
use crate::exec::{self, Outcome};
use crate::node::{SHORT, ring3};
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("space_thread_sanitizer".into(), thread_sanitizer),
        trial("space_legacy".into(), legacy),
        trial("space_many_nodes".into(), many_nodes),
    ]
}

/// An address that the host has not, so that only the node can have served it.
const ADDRESS: &str = "10.211.77.1";
const ALL: &str = "1048576 bytes, 0 wrong\n";
/// The host chooses other addresses each time.
const STARTS: usize = 8;
/// RING3_SLOTS of include/ring3.abi.
const SLOTS: usize = 76;
const NODES: usize = SLOTS + 4;

fn source() -> PathBuf {
    paths::root().join("tests/apps/space.c")
}

/// A shell that gives the node the address, and then becomes the program.
fn on_address(program: &Path, before: &str) -> String {
    format!(
        "ip addr add {ADDRESS}/32 dev lo && exec {before} {} {ADDRESS}",
        program.display()
    )
}

fn thread_sanitizer() -> Checked {
    let program = compile_thread_sanitizer(&source())?;
    // On the host its own address is all there is.
    let mut native = Command::new(&program);
    let outcome = exec::run(native.arg("127.0.0.1"), SHORT)?;
    if outcome
        .stderr
        .contains("ThreadSanitizer: unexpected memory mapping")
    {
        // vm.mmap_rnd_bits=32 and a compiler of before 2024.
        return Ok(Verdict::Ignored(
            "this compiler's ThreadSanitizer does not start on this host either".into(),
        ));
    }
    ensure(outcome.ok() && outcome.stdout == ALL, || outcome.report())?;
    let mut native = Command::new(&program);
    let outcome = exec::run(native.arg(ADDRESS), SHORT)?;
    ensure(!outcome.ok(), || outcome.report())?;
    for _ in 0..STARTS {
        let script = on_address(&program, "");
        let outcome = exec::run(&mut ring3(["run", "--", "sh", "-c", &script]), SHORT)?;
        ensure(outcome.ok() && outcome.stdout == ALL, || outcome.report())?;
    }
    Ok(Verdict::Passed)
}

/// `setarch -L`: the host maps from a third of the address space on upwards. Around ring3, and around a program of a node.
fn legacy() -> Checked {
    let program = compile(&source())?;
    for (around, inside) in [("-L", ""), ("-R", "setarch -L"), ("-R", "setarch -R")] {
        let script = on_address(&program, inside);
        let ring3 = ring3(["run", "--", "sh", "-c", &script]);
        let mut command = Command::new("setarch");
        command
            .arg(around)
            .arg(ring3.get_program())
            .args(ring3.get_args());
        for (name, value) in ring3.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(outcome.ok() && outcome.stdout == ALL, || {
            format!("setarch {around}, {inside}: {}", outcome.report())
        })?;
    }
    Ok(Verdict::Passed)
}

/// Where a node of the runtime folder lies.
fn base(folder: &Scratch, name: &str) -> Result<u64, String> {
    let outcome = on(folder, &["stat", name, "--json"])?;
    let stat: serde_json::Value =
        serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))?;
    stat["base"].as_u64().ok_or_else(|| outcome.report())
}

fn on(folder: &Scratch, words: &[&str]) -> Result<Outcome, String> {
    exec::run(ring3(words).env("XDG_RUNTIME_DIR", folder.path()), SHORT)
}

/// Each of a user's nodes lies where no other does, as long as there are slots; more than that serve, too.
fn many_nodes() -> Checked {
    let folder = Scratch::new()?;
    let end = |result: Checked| {
        on(&folder, &["down", "--all"])?;
        result
    };
    end(many_nodes_in(&folder))
}

fn many_nodes_in(folder: &Scratch) -> Checked {
    let names: Vec<String> = (0..NODES).map(|i| format!("n{i}")).collect();
    let mut bases = HashSet::new();
    for (i, name) in names.iter().enumerate() {
        let outcome = on(folder, &["up", name])?;
        ensure(outcome.ok(), || outcome.report())?;
        let new = bases.insert(base(folder, name)?);
        ensure(new == (i < SLOTS), || {
            format!(
                "node {i} of {NODES} lies {}",
                if new { "alone" } else { "where another does" }
            )
        })?;
    }
    for name in &names {
        let serves = format!("ip addr add {ADDRESS}/32 dev lo && ip -br addr show lo");
        let outcome = on(folder, &["exec", name, "--", "sh", "-c", &serves])?;
        ensure(outcome.ok() && outcome.stdout.contains(ADDRESS), || {
            outcome.report()
        })?;
    }
    Ok(Verdict::Passed)
}
