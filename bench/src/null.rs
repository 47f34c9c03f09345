// SPDX-License-Identifier: GPL-2.0
//! The null call: `fcntl(fd, F_GETFL)` on a socket.

use crate::report::Promise;
use crate::spread::{Spread, ratios};
use crate::stamp::Stamp;
use crate::tool;
use serde::Serialize;
use std::process::Command;

/// Of what the host takes, a node may take this much.
const TARGET: f64 = 0.12;

#[derive(Serialize)]
struct Figures {
    what: &'static str,
    rounds: usize,
    host_ns: Spread,
    node_ns: Spread,
    /// Of each round's two figures, measured one after the other.
    ratio: Spread,
    promises: Vec<Promise>,
    met: bool,
    stamp: Stamp,
}

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile("load/null.c")?;
    let (mut host, mut node) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        host.push(tool::number(&mut Command::new(&program))?);
        node.push(tool::number(tool::ring3(&["run", "--"]).arg(&program))?);
    }
    let (host_ns, node_ns) = (Spread::of(&host), Spread::of(&node));
    let ratio = Spread::of(&ratios(&node, &host));
    let what = "null call (fcntl(F_GETFL) on a socket), a program by itself, node / host";
    let promises = vec![Promise::at_most(what, TARGET, ratio.median)];
    let met = promises.iter().all(|promise| promise.met);
    tool::print(
        "null",
        &Figures {
            what: "fcntl(F_GETFL) on a UDP socket, one thread",
            rounds,
            host_ns,
            node_ns,
            ratio,
            promises,
            met,
            stamp: Stamp::now(false),
        },
    )?;
    Ok(met)
}
