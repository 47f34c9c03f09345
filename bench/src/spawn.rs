// SPDX-License-Identifier: GPL-2.0
//! Starting a small program and seeing it end.

use crate::spread::{Spread, round};
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
    ratio: f64,
}

#[derive(Serialize)]
struct Figures {
    what: &'static str,
    rounds: usize,
    ways: Vec<Way>,
    target: f64,
    met: bool,
}

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile_static("spawn/spawn.c")?;
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
        let ratio = round(node_us.median / host_us.median);
        let way = name.to_string();
        ways.push(Way {
            way,
            host_us,
            node_us,
            ratio,
        });
    }
    // Without exec there is no bar.
    let met = ways
        .iter()
        .all(|way| way.way == "fork-only" || way.ratio <= TARGET);
    tool::print(
        "spawn",
        &Figures {
            what: "from before fork or spawn until the child is waited for",
            rounds,
            ways,
            target: TARGET,
            met,
        },
    )?;
    Ok(met)
}
