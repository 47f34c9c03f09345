// SPDX-License-Identifier: GPL-2.0
//! Benchmarks, each beside the host: `bench/run NAME [ROUNDS]`.
//!
//! A NAME is a file of bench/figures, without `.toml`, or one of the built-in ones that
//! measure what a figure cannot say. `all` and `quick` run everything and write
//! bench/REPORT.md.

mod bed;
mod boot;
mod engine;
mod figure;
mod lines;
mod null;
mod outcome;
mod passthrough;
mod peer;
mod process;
mod report;
mod spawn;
mod spread;
mod stamp;
mod tool;
mod traced;

use engine::Effort;
use outcome::Outcome;
use report::{Broken, Other};
use stamp::Stamp;
use std::process::ExitCode;

const USAGE: &str = "usage: bench/run NAME... [ROUNDS] | all [ROUNDS] | quick | list | report
       bench/run company|servers [WORD]... [ROUNDS] [--quick] [--json] [--list] [--before FILE]
NAME: null, boot, passthrough, spawn, traced, or a figure that `list` names; NAME --quick is its short form";

/// Those that are code of their own: name, rounds, function.
type Builtin = (&'static str, usize, fn(usize) -> Result<bool, String>);
const BUILTIN: [Builtin; 5] = [
    ("null", 15, null::run),
    ("passthrough", 21, passthrough::run),
    ("spawn", 11, spawn::run),
    ("boot", 21, boot::run),
    ("traced", 5, traced::run),
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
    if let Some((name, rest)) = names.split_first()
        && lines::NAMES.contains(&name.as_str())
    {
        return lines::run(name, rest);
    }
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
    let effort = Effort { quick, rounds };
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
                    Some(known) => builtin(known, rounds)?,
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
    for name in BUILTIN.iter().map(|it| it.0).chain(lines::NAMES) {
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
    let mut run = Run::new(false);
    for name in figure::all()? {
        match read(&name)?.map(|text| serde_json::from_str::<Outcome>(&text)) {
            Some(Ok(outcome)) => run.outcomes.push(outcome),
            Some(Err(_)) => run.lost(&name, "its result is an older bench's"),
            None => run.lost(&name, "no result is kept"),
        }
    }
    for (name, ..) in BUILTIN {
        match read(name)?.map(|text| Other::new(name, text)) {
            Some(Ok(other)) => run.others.push(other),
            Some(Err(_)) => run.lost(name, "its result is an older bench's"),
            None => run.lost(name, "no result is kept"),
        }
    }
    run.write()?;
    println!("bench/REPORT.md: {} figures", run.count());
    Ok(run.met())
}

/// The results of which a report is made.
struct Run {
    stamp: Stamp,
    outcomes: Vec<Outcome>,
    others: Vec<Other>,
    broken: Vec<Broken>,
}

impl Run {
    fn new(quick: bool) -> Run {
        Run {
            stamp: Stamp::now(quick),
            outcomes: Vec::new(),
            others: Vec::new(),
            broken: Vec::new(),
        }
    }

    fn lost(&mut self, name: &str, why: &str) {
        eprintln!("{name}: {why}");
        self.broken.push(Broken::new(name, why));
    }

    fn write(&self) -> Result<(), String> {
        report::write(&self.stamp, &self.outcomes, &self.others, &self.broken)
    }

    fn count(&self) -> usize {
        self.outcomes.len() + self.others.len()
    }

    fn met(&self) -> bool {
        self.broken.is_empty()
            && self.outcomes.iter().all(Outcome::met)
            && self.others.iter().all(Other::met)
    }
}

fn builtin((name, usual, function): &Builtin, rounds: Option<usize>) -> Result<bool, String> {
    tool::discard(name)?;
    function(rounds.unwrap_or(*usual))
}

/// Measures one figure, shows its table and keeps it.
fn figure(name: &str, effort: &Effort) -> Result<Outcome, String> {
    let known = figure::all()?;
    if !known.iter().any(|one| one == name) {
        return Err(format!("no figure is called '{name}'\n{USAGE}"));
    }
    tool::discard(name)?;
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
    let mut run = Run::new(effort.quick);
    for name in figure::all()? {
        if effort.quick && !figure::read(&name)?.quick {
            continue;
        }
        match figure(&name, effort) {
            Ok(outcome) => run.outcomes.push(outcome),
            Err(why) => run.lost(&name, &why),
        }
        // After each, so that a run that is cut short leaves what it has.
        run.write()?;
    }
    for known in BUILTIN.iter().filter(|_| !effort.quick) {
        let name = known.0;
        if let Err(why) = builtin(known, None) {
            run.lost(name, &why);
            continue;
        }
        let path = tool::results()?.join(format!("{name}.json"));
        let json = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        run.others.push(Other::new(name, json)?);
    }
    run.write()?;
    let took = start.elapsed().as_secs();
    println!(
        "bench/REPORT.md: {} figures in {} min {} s",
        run.count(),
        took / 60,
        took % 60
    );
    if !run.broken.is_empty() {
        let names: Vec<&str> = run.broken.iter().map(|one| one.name.as_str()).collect();
        return Err(format!("could not be measured: {}", names.join(", ")));
    }
    Ok(run.met())
}
