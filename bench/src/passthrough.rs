// SPDX-License-Identifier: GPL-2.0
//! Calls that are the host's in any case: what a node adds to them.

use crate::report::Promise;
use crate::spread::{Spread, round};
use crate::stamp::Stamp;
use crate::tool;
use serde::Serialize;
use std::path::Path;
use std::process::Command;

/// Nanoseconds that a node may add.
const TARGET: f64 = 30.0;

#[derive(Serialize)]
struct Call {
    call: String,
    host_ns: Spread,
    node_ns: Spread,
    /// Of each round's figures, measured one after the other.
    added_ns: Spread,
    /// Time that the host's kernel adds in a process that only arms Syscall User Dispatch with everything
    /// exempt: the price of the backstop in any program. The rest of `added_ns` is ring3's own.
    dispatch_added_ns: Spread,
    own_ns: Spread,
}

#[derive(Serialize)]
struct Figures {
    what: &'static str,
    rounds: usize,
    calls: Vec<Call>,
    promises: Vec<Promise>,
    met: bool,
    stamp: Stamp,
}

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile("load/passthrough.c")?;
    let names = tool::output(&mut Command::new(&program))?;
    let mut calls = Vec::new();
    for name in names.lines() {
        calls.push(call(&program, name, rounds)?);
    }
    let promise = |call: &Call| {
        let what = format!("{} that passes through, ns added", call.call);
        Promise::at_most(&what, TARGET, call.added_ns.median)
    };
    let promises: Vec<Promise> = calls.iter().map(promise).collect();
    let met = promises.iter().all(|promise| promise.met);
    tool::print(
        "passthrough",
        &Figures {
            what: "host calls that pass through a rewritten site, one thread",
            rounds,
            calls,
            promises,
            met,
            stamp: Stamp::now(false),
        },
    )?;
    Ok(met)
}

fn call(program: &Path, name: &str, rounds: usize) -> Result<Call, String> {
    let (mut host, mut armed, mut node) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        host.push(tool::number(Command::new(program).arg(name))?);
        armed.push(tool::number(Command::new(program).args([name, "armed"]))?);
        node.push(tool::number(
            tool::ring3(&["run", "--"]).arg(program).arg(name),
        )?);
    }
    Ok(Call {
        call: name.to_string(),
        host_ns: Spread::of(&host),
        node_ns: Spread::of(&node),
        added_ns: Spread::of(&differences(&host, &node)),
        dispatch_added_ns: Spread::of(&differences(&host, &armed)),
        own_ns: Spread::of(&differences(&armed, &node)),
    })
}

fn differences(from: &[f64], to: &[f64]) -> Vec<f64> {
    from.iter().zip(to).map(|(a, b)| round(b - a)).collect()
}
