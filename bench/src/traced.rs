// SPDX-License-Identifier: GPL-2.0
//! What a program pays for the adopter as its tracer: adopt_trace.c of the image.

use crate::spread::{Spread, ratios};
use crate::stamp::Stamp;
use crate::tool;
use serde::Serialize;
use std::process::Command;

#[derive(Serialize)]
struct Way {
    way: String,
    host_us: Spread,
    untraced_us: Spread,
    traced_us: Spread,
    /// Of each round's two figures.
    traced_to_untraced: Spread,
}

#[derive(Serialize)]
struct Figures {
    what: &'static str,
    rounds: usize,
    ways: Vec<Way>,
    /// There is no bar.
    met: bool,
    stamp: Stamp,
}

/// A node whose adopter works in this way. Dropping it takes it down.
struct Adopted(String);

impl Adopted {
    fn up(how: &str) -> Result<Adopted, String> {
        let name = format!("traced-{how}-{}", std::process::id());
        tool::output(tool::ring3(&["up", &name]).env("RING3_ADOPTER", how))?;
        Ok(Adopted(name))
    }

    fn figure(&self, program: &std::path::Path, way: &str) -> Result<f64, String> {
        tool::number(tool::ring3(&["exec", &self.0, "--"]).arg(program).arg(way))
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        let _ = tool::output(&mut tool::ring3(&["down", &self.0]));
    }
}

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile_static("load/traced.c")?;
    let names = tool::output(&mut Command::new(&program))?;
    let (untraced, traced) = (Adopted::up("none")?, Adopted::up("trace")?);
    let mut ways = Vec::new();
    for name in names.lines() {
        let (mut host, mut without, mut with) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            host.push(tool::number(Command::new(&program).arg(name))?);
            without.push(untraced.figure(&program, name)?);
            with.push(traced.figure(&program, name)?);
        }
        ways.push(Way {
            way: name.to_string(),
            host_us: Spread::of(&host),
            untraced_us: Spread::of(&without),
            traced_us: Spread::of(&with),
            traced_to_untraced: Spread::of(&ratios(&with, &without)),
        });
    }
    tool::print(
        "traced",
        &Figures {
            what: "a signal, a thread and a child of a program, in microseconds",
            rounds,
            ways,
            met: true,
            stamp: Stamp::now(false),
        },
    )?;
    Ok(true)
}
