// SPDX-License-Identifier: GPL-2.0
//! Programs that are particular about where in the address space anything lies.

use super::{Checked, Verdict, ensure, trial};
use crate::compile::{compile, compile_thread_sanitizer};
use crate::exec;
use crate::node::{Node, SHORT, ring3};
use crate::paths;
use libtest_mimic::Trial;
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
/// More than there are slots.
const NODES: usize = 80;

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

/// More nodes than slots: those that come late lie where others lie, too, and all serve.
fn many_nodes() -> Checked {
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(Node::up(&[])?);
    }
    for node in &nodes {
        let serves = format!("ip addr add {ADDRESS}/32 dev lo && ip -br addr show lo");
        let said = node.output(&["sh", "-c", &serves])?;
        ensure(said.contains(ADDRESS), || format!("{}: {said}", node.name))?;
    }
    Ok(Verdict::Passed)
}
