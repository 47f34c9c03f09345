// SPDX-License-Identifier: GPL-2.0
//! Starting a small program and seeing it end.

use crate::report::Promise;
use crate::spread::{Spread, ratios};
use crate::stamp::Stamp;
use crate::tool;
use serde::Serialize;
use std::process::Command;

/// Of what the host takes, a node may take so much.
const TARGET: f64 = 1.5;

#[derive(Serialize)]
struct Way {
    way: String,
    host_us: Spread,
    node_us: Spread,
    /// Of each round's two figures, measured one after the other.
    ratio: Spread,
}

#[derive(Serialize)]
struct Figures {
    what: &'static str,
    rounds: usize,
    ways: Vec<Way>,
    promises: Vec<Promise>,
    met: bool,
    stamp: Stamp,
}

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile_static("load/spawn.c")?;
    let names = tool::output(&mut Command::new(&program))?;
    let mut ways = Vec::new();
    for name in names.lines() {
        let (mut host, mut node) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            host.push(tool::number(Command::new(&program).arg(name))?);
            node.push(tool::number(
                tool::ring3(&["run", "--"]).arg(&program).arg(name),
            )?);
        }
        let (host_us, node_us) = (Spread::of(&host), Spread::of(&node));
        let ratio = Spread::of(&ratios(&node, &host));
        let way = name.to_string();
        ways.push(Way {
            way,
            host_us,
            node_us,
            ratio,
        });
    }
    // Without exec there is no bar.
    let promises: Vec<Promise> = ways
        .iter()
        .filter(|way| way.way != "fork-only")
        .map(|way| {
            let what = format!("start of a program, {}, node / host", way.way);
            Promise::at_most(&what, TARGET, way.ratio.median)
        })
        .collect();
    let met = promises.iter().all(|promise| promise.met);
    tool::print(
        "spawn",
        &Figures {
            what: "from before fork or spawn until the child is waited for",
            rounds,
            ways,
            promises,
            met,
            stamp: Stamp::now(false),
        },
    )?;
    Ok(met)
}
