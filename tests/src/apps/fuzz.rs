// SPDX-License-Identifier: GPL-2.0
//! Random system calls on a node, by two programs.
//!
//! `tests/fuzz/same.c`: each call has to return what it returns on the host. The seeds are the same each time; some hundred others with
//! `--long`, one with `--seed`.
//!
//! `tests/fuzz/calls.c`: neither the node nor a process of it may crash or hang. The host is kept out of it by a network
//! namespace of its own. 30 seconds, 30 minutes with `--long`, RING3_FUZZ_SECONDS if that is set.

use super::{Checked, Verdict, ensure, trial};
use crate::Options;
use crate::compile::compile;
use crate::exec;
use crate::node::{self, Node, SHORT};
use crate::paths;
use libtest_mimic::Trial;
use std::time::Duration;

const SECONDS: u64 = 30;
const SECONDS_LONG: u64 = 1800;
/// Messages of a kernel that has found itself in a wrong state.
const BAD: [&str; 6] = [
    "BUG:",
    "WARNING:",
    "Oops",
    "general protection",
    "UBSAN:",
    "refcount_t:",
];

pub fn trials(options: Options) -> Vec<Trial> {
    vec![
        trial("fuzz_calls".into(), move || calls(options)),
        trial("fuzz_same".into(), move || same(options)),
    ]
}

/// Calls of one run.
const STEPS: &str = "600";
const SEEDS: u64 = 24;
const SEEDS_LONG: u64 = 400;

fn same(options: Options) -> Checked {
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored(
            "a network namespace of its own needs root".into(),
        ));
    }
    let program = compile(&paths::root().join("tests/fuzz/same.c"))?;
    let seeds = match options.seed {
        Some(seed) => seed..seed + 1,
        None => 1..1 + if options.long { SEEDS_LONG } else { SEEDS },
    };
    let node = Node::up(&[])?;
    let mut differ = Vec::new();
    for seed in seeds {
        let number = seed.to_string();
        let mut alone = std::process::Command::new("unshare");
        alone
            .args([
                "--net",
                "--",
                "sh",
                "-c",
                "ip link set lo up && exec \"$@\"",
                "sh",
            ])
            .arg(&program)
            .args([&number, STEPS]);
        let host = exec::run(&mut alone, SHORT)?;
        let words = [program.as_os_str(), number.as_ref(), STEPS.as_ref()];
        let inside = node.command(words);
        // Without a network of the host's, so that it is the node's that serves it.
        let mut command = std::process::Command::new("unshare");
        command
            .args(["--net", "--"])
            .arg(inside.get_program())
            .args(inside.get_args());
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(host.ok() && host.stdout.lines().count() > 100, || {
            format!("seed {seed} on the host: {}", host.report())
        })?;
        ensure(outcome.ok(), || {
            format!("seed {seed}: {}", outcome.report())
        })?;
        let lines = host.stdout.lines().zip(outcome.stdout.lines());
        if let Some((there, here)) = lines.clone().find(|(there, here)| there != here) {
            differ.push(format!("seed {seed}: host `{there}', node `{here}'"));
        } else if host.stdout != outcome.stdout {
            differ.push(format!("seed {seed}: one says more than the other"));
        }
    }
    ensure(differ.is_empty(), || differ.join("\n"))?;
    Ok(Verdict::Passed)
}

fn calls(options: Options) -> Checked {
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored(
            "a network namespace of its own needs root".into(),
        ));
    }
    let program = compile(&paths::root().join("tests/fuzz/calls.c"))?;
    let seconds = match std::env::var("RING3_FUZZ_SECONDS") {
        Ok(text) => text
            .parse()
            .map_err(|e| format!("RING3_FUZZ_SECONDS: {e}"))?,
        Err(_) if options.long => SECONDS_LONG,
        Err(_) => SECONDS,
    };
    let seed = options.seed.unwrap_or(u64::from(std::process::id()));
    let node = Node::up(&[])?;
    let inside = node.command([program.as_os_str()]);
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--net", "--"])
        .arg(inside.get_program())
        .args(inside.get_args())
        .args(["--seed", &seed.to_string()])
        .args(["--seconds", &seconds.to_string()]);
    let limit = Duration::from_secs(seconds + 120);
    let outcome = exec::run(&mut command, limit)?;
    println!("{}", outcome.stdout.lines().last().unwrap_or_default());
    let whole = paths::build().join("fuzz_calls.log");
    std::fs::write(&whole, &outcome.stdout).map_err(|e| format!("{}: {e}", whole.display()))?;
    ensure(outcome.ok(), || {
        format!(
            "seed {seed}, `tests/run apps::fuzz_calls --seed {seed}`, all of it in {}: {}",
            whole.display(),
            outcome.report()
        )
    })?;
    ensure(outcome.stderr.trim().is_empty(), || {
        format!("seed {seed}, said meanwhile: {}", outcome.stderr)
    })?;
    let log = exec::run(&mut node::ring3(["log", &node.name]), SHORT)?;
    let found: Vec<&str> = log
        .stdout
        .lines()
        .filter(|line| BAD.iter().any(|word| line.contains(word)))
        .collect();
    ensure(found.is_empty(), || {
        format!("seed {seed}, the kernel's log: {}", found.join("\n"))
    })?;
    Ok(Verdict::Passed)
}
