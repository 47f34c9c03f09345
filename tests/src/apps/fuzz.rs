// SPDX-License-Identifier: GPL-2.0
//! Random system calls on a node: the program is `tests/fuzz/calls.c`.
//!
//! Neither the node nor a process of it may crash or hang. The host is kept out of it by a network
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
    vec![trial("fuzz_calls".into(), move || calls(options))]
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
