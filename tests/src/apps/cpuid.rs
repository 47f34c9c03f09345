// SPDX-License-Identifier: GPL-2.0
//! The instruction `cpuid`, which a node answers from memory where a hypervisor makes it slow: it says
//! what it says on the host, and whether it was rewritten shows in the program's own text.

use super::{Checked, Verdict, ensure, trial};
use crate::exec;
use crate::node::{Node, SHORT};
use crate::paths;
use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::process::Command;

/// From here on gates answer from memory (SLOW_NS of gate/entry/cpuid.c), if not for the clock's grain.
const SLOW_NS: std::ops::RangeInclusive<u64> = 700..=1500;
/// The output of `cpuid sites` for seven forms that are rewritten and four that are not.
const LEFT: &str = "0 rewritten, 4 left";
const REWRITTEN: &str = "7 rewritten, 4 left";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("cpuid".into(), same),
        trial("cpuid_fault".into(), fault),
        trial("cpuid_signals".into(), signals),
        trial("cpuid_host".into(), host_cpuid),
    ]
}

fn program() -> Result<PathBuf, String> {
    let folder = paths::build().join("apps");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let program = folder.join(crate::scratch::unique("cpuid"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-Wall", "-Werror", "-static", "-o"])
        .arg(&program)
        .arg(paths::root().join("tests/apps/cpuid.c"));
    let outcome = exec::run(&mut gcc, SHORT)?;
    ensure(outcome.ok(), || outcome.report())?;
    Ok(program)
}

fn on_host(program: &Path, mode: &[&str]) -> Result<String, String> {
    let outcome = exec::run(Command::new(program).args(mode), SHORT)?;
    ensure(outcome.ok(), || outcome.report())?;
    Ok(outcome.stdout)
}

fn on_node(node: &Node, program: &Path, mode: &[&str]) -> Result<String, String> {
    let mut argv = vec![program.to_str().ok_or("a path in UTF-8")?];
    argv.extend(mode);
    node.output(&argv)
}

/// Which forms are rewritten once the node has seen the program start twice.
fn sites(node: &Node, program: &Path) -> Result<String, String> {
    let mut sites = String::new();
    for _ in 0..3 {
        sites = on_node(node, program, &["sites"])?.trim().to_string();
    }
    Ok(sites)
}

/// The same on the host and at the first and later starts on a node.
fn compare(node: &Node, program: &Path, mode: &[&str]) -> Result<(), String> {
    let host = on_host(program, mode)?;
    for start in 1..=4 {
        let here = on_node(node, program, mode)?;
        ensure(here == host, || {
            let differ = here.lines().zip(host.lines()).find(|(a, b)| a != b);
            format!("start {start} differs, node and host: {differ:?}")
        })?;
    }
    Ok(())
}

/// Each answer in each form; and that they do come from memory where that is worth while.
fn same() -> Checked {
    let program = program()?;
    let ns = on_host(&program, &["ns"])?;
    let ns: u64 = ns.trim().parse().map_err(|e| format!("{ns}: {e}"))?;
    let node = Node::up(&[])?;
    compare(&node, &program, &[])?;
    let sites = sites(&node, &program)?;
    std::fs::remove_file(&program).map_err(|e| e.to_string())?;
    if SLOW_NS.contains(&ns) {
        return Ok(Verdict::Ignored(format!(
            "cpuid takes {ns} ns here: neither slow nor fast"
        )));
    }
    let expected = if ns > *SLOW_NS.end() { REWRITTEN } else { LEFT };
    ensure(sites == expected, || {
        format!("{ns} ns for a cpuid: {sites}")
    })?;
    Ok(Verdict::Passed)
}

/// A program that wants its instruction to fault gets that, or is told that the host can't.
fn fault() -> Checked {
    let program = program()?;
    let node = Node::up(&[])?;
    compare(&node, &program, &["fault"])?;
    std::fs::remove_file(&program).map_err(|e| e.to_string())?;
    Ok(Verdict::Passed)
}

/// Wherever in a stub a signal comes.
fn signals() -> Checked {
    let program = program()?;
    let node = Node::up(&[])?;
    compare(&node, &program, &["signals"])?;
    std::fs::remove_file(&program).map_err(|e| e.to_string())?;
    Ok(Verdict::Passed)
}

/// `--host-cpuid` leaves programs alone.
fn host_cpuid() -> Checked {
    let program = program()?;
    let node = Node::up_with(["--host-cpuid"])?;
    let sites = sites(&node, &program)?;
    std::fs::remove_file(&program).map_err(|e| e.to_string())?;
    ensure(sites == LEFT, || sites.clone())?;
    Ok(Verdict::Passed)
}
