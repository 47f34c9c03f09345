// SPDX-License-Identifier: GPL-2.0
//! Benchmarks, each beside the host: `bench/run NAME [ROUNDS]`.
//!
//! A NAME is a folder of bench/ with a figure.toml, or one of the built-in ones that
//! measure what a figure cannot say. `all` and `quick` run everything and write
//! bench/REPORT.md.

mod bed;
mod boot;
mod engine;
mod figure;
mod null;
mod outcome;
mod passthrough;
mod peer;
mod process;
mod report;
mod spawn;
mod spread;
mod tool;

use engine::Effort;
use outcome::Outcome;
use std::process::ExitCode;

const USAGE: &str = "usage: bench/run NAME... [ROUNDS] | all [ROUNDS] | quick | list | report
NAME: null, boot, passthrough, spawn, or a figure that `list` names; NAME --quick is its short form";

/// Those that are code of their own: name, rounds, function.
type Builtin = (&'static str, usize, fn(usize) -> Result<bool, String>);
const BUILTIN: [Builtin; 4] = [
    ("null", 15, null::run),
    ("passthrough", 21, passthrough::run),
    ("spawn", 11, spawn::run),
    ("boot", 21, boot::run),
];

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::from(3)
        }
    }
}

fn run(mut names: Vec<String>) -> Result<bool, String> {
    let rounds = match names.last().map(|last| (last.parse::<usize>(), last)) {
        Some((Ok(rounds), _)) if rounds >= 3 => {
            names.pop();
            Some(rounds)
        }
        Some((Ok(_), last)) => return Err(format!("{last} rounds: at least 3 are needed")),
        _ => None,
    };
    let quick = names
        .iter()
        .any(|name| name == "--quick" || name == "quick");
    names.retain(|name| name != "--quick");
    let effort = Effort::new(quick, rounds);
    match names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => Err(USAGE.into()),
        ["list"] => list(),
        ["all"] | ["quick"] => all(&effort),
        ["report"] => kept(),
        some => {
            let mut met = true;
            for name in some {
                met &= match BUILTIN.iter().find(|(known, ..)| known == name) {
                    Some((_, usual, function)) => function(rounds.unwrap_or(*usual))?,
                    None => figure(name, &effort)?.met(),
                };
            }
            Ok(met)
        }
    }
}

fn list() -> Result<bool, String> {
    for name in figure::all()? {
        println!("{name}\t{}", figure::read(&name)?.title);
    }
    for (name, ..) in BUILTIN {
        println!("{name}\t(see bench/README.md)");
    }
    Ok(true)
}

/// bench/REPORT.md from the results that earlier runs kept.
fn kept() -> Result<bool, String> {
    let read = |name: &str| {
        let path = tool::results()?.join(format!("{name}.json"));
        match path.exists() {
            false => Ok(None),
            true => std::fs::read_to_string(&path)
                .map(Some)
                .map_err(|e| format!("{}: {e}", path.display())),
        }
    };
    let mut outcomes: Vec<Outcome> = Vec::new();
    for name in figure::all()? {
        if let Some(text) = read(&name)? {
            outcomes.push(serde_json::from_str(&text).map_err(|e| format!("{name}: {e}"))?);
        }
    }
    let mut others = Vec::new();
    for (name, ..) in BUILTIN {
        if let Some(text) = read(name)? {
            let known: serde_json::Value =
                serde_json::from_str(&text).map_err(|e| format!("{name}: {e}"))?;
            others.push((name.to_string(), known["met"] == true, text));
        }
    }
    report::write(&outcomes, &others)?;
    println!("bench/REPORT.md: {} figures", outcomes.len() + others.len());
    Ok(outcomes.iter().all(Outcome::met) && others.iter().all(|(_, met, _)| *met))
}

/// Measures one figure, shows its table and keeps it.
fn figure(name: &str, effort: &Effort) -> Result<Outcome, String> {
    let known = figure::all()?;
    if !known.iter().any(|one| one == name) {
        return Err(format!("no figure is called '{name}'\n{USAGE}"));
    }
    let outcome = engine::run(name, effort)?;
    println!(
        "{}\n{}{}",
        outcome.title,
        outcome.table(),
        outcome.verdicts()
    );
    for why in &outcome.failures {
        eprintln!("{name}: failed: {why}");
    }
    outcome.keep()?;
    Ok(outcome)
}

fn all(effort: &Effort) -> Result<bool, String> {
    let start = std::time::Instant::now();
    let mut outcomes = Vec::new();
    let mut others = Vec::new();
    let mut met = true;
    let mut broken = Vec::new();
    for name in figure::all()? {
        if effort.quick && !figure::read(&name)?.quick {
            continue;
        }
        match figure(&name, effort) {
            Ok(outcome) => {
                met &= outcome.met();
                outcomes.push(outcome);
            }
            Err(why) => {
                eprintln!("{name}: {why}");
                broken.push(name);
            }
        }
        // After each, so that a run that is cut short leaves what it has.
        report::write(&outcomes, &others)?;
    }
    for (name, usual, function) in BUILTIN.iter().filter(|_| !effort.quick) {
        let good = match function(*usual) {
            Ok(good) => good,
            Err(why) => {
                eprintln!("{name}: {why}");
                broken.push(name.to_string());
                continue;
            }
        };
        let path = tool::results()?.join(format!("{name}.json"));
        let json = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        met &= good;
        others.push((name.to_string(), good, json));
    }
    report::write(&outcomes, &others)?;
    let took = start.elapsed().as_secs();
    println!(
        "bench/REPORT.md: {} figures in {} min {} s",
        outcomes.len() + others.len(),
        took / 60,
        took % 60
    );
    match broken.is_empty() {
        true => Ok(met),
        false => Err(format!("could not be measured: {}", broken.join(", "))),
    }
}
