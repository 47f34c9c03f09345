// SPDX-License-Identifier: GPL-2.0
//! Measures one figure: all series in turns at each x, so that whatever else the
//! machine does hits all alike.

use crate::bed::Bed;
use crate::figure::{self, Figure, Series};
use crate::outcome::{Cell, Outcome, Point};
use crate::peer;
use crate::process::{self, Values};
use crate::stamp::Stamp;
use crate::tool;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

pub struct Effort {
    pub quick: bool,
    /// None: as many as the figure says.
    pub rounds: Option<usize>,
}

pub fn run(name: &str, effort: &Effort) -> Result<Outcome, String> {
    let mut figure = figure::read(name)?;
    figure.rounds = effort.rounds.unwrap_or(figure.rounds);
    let mut left_out = Vec::new();
    figure.series.retain(|series| match peer::missing(series) {
        Some(why) => {
            eprintln!("{name}: {} is left out: {why}", series.name);
            left_out.push(format!("{}: {why}", series.name));
            false
        }
        None => true,
    });
    let mut vars = BTreeMap::new();
    for source in &figure.load.sources {
        tool::compile(source)?;
    }
    vars.insert("load".into(), tool::programs().display().to_string());
    vars.insert(
        "bench".into(),
        tool::root().join("bench").display().to_string(),
    );
    let ring3 = tool::ring3(&[]);
    let ring3 = ring3.get_program().to_string_lossy().into_owned();
    vars.insert("ring3".into(), ring3);
    vars.insert("bin".into(), tool::root().join("bin").display().to_string());
    let seconds = match effort.quick {
        true => figure.load.quick_seconds,
        false => figure.load.seconds,
    };
    vars.insert("seconds".into(), seconds.to_string());

    let quick = effort.quick && !figure.x.quick.is_empty();
    let xs = match quick {
        true => &figure.x.quick,
        false => &figure.x.values,
    };
    let mut progress = Progress::new(name, xs.len() * figure.series.len() * figure.rounds);
    let mut beds = Vec::new();
    for series in std::mem::take(&mut figure.series) {
        match Bed::make(&series) {
            Ok(bed) => {
                beds.push(bed);
                figure.series.push(series);
            }
            // A peer that does not start is no reason to measure nothing at all.
            Err(why) if series.is_peer() => {
                eprintln!("{name}: {} is left out: {why}", series.name);
                left_out.push(format!("{}: {why}", series.name));
            }
            Err(why) => return Err(format!("{name}: {}: {why}", series.name)),
        }
    }

    let mut points = Vec::new();
    let mut port = 20000;
    for x in xs {
        vars.insert("x".into(), x.clone());
        let mut cells: Vec<Cell> = figure.series.iter().map(|_| Cell::default()).collect();
        for _ in 0..figure.rounds {
            for ((series, bed), cell) in figure.series.iter().zip(&beds).zip(&mut cells) {
                progress.step(&series.name, x);
                vars.insert("port".into(), port.to_string());
                port += 1;
                cell.add(one(&figure, series, bed, &vars, seconds));
            }
        }
        points.push(Point {
            x: x.clone(),
            cells,
        });
    }
    progress.done();
    let stamp = Stamp::now(effort.quick);
    Ok(Outcome::new(
        name, &figure, stamp, seconds, points, left_out,
    ))
}

fn one(
    figure: &Figure,
    series: &Series,
    bed: &Bed,
    vars: &BTreeMap<String, String>,
    seconds: f64,
) -> Result<Values, String> {
    let mut vars = vars.clone();
    vars.insert("addr".into(), bed.addr.to_string());
    vars.extend(series.vars.clone());
    let fill = |words: &[String]| {
        words
            .iter()
            .map(|word| figure::fill(word, &vars))
            .filter(|word| word.as_ref().map_or(true, |word| !word.is_empty()))
            .collect::<Result<Vec<_>, _>>()
    };
    let far = match figure.load.serve.is_empty() {
        true => None,
        false => Some(bed.far(&fill(&figure.load.serve)?)),
    };
    let mut near = bed.near(&fill(&figure.load.ask)?);
    if let Some((program, rest)) = fill(&figure.load.around)?.split_first() {
        let mut around = std::process::Command::new(program);
        around
            .args(rest)
            .arg(near.get_program())
            .args(near.get_args());
        near = around;
    }
    process::measure(far, near, figure.load.output, seconds)
}

/// One line on the terminal that moves; a line at the end elsewhere.
struct Progress {
    name: String,
    all: usize,
    at: usize,
    start: std::time::Instant,
    terminal: bool,
}

impl Progress {
    fn new(name: &str, all: usize) -> Progress {
        Progress {
            name: name.into(),
            all,
            at: 0,
            start: std::time::Instant::now(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    fn step(&mut self, series: &str, x: &str) {
        self.at += 1;
        if self.terminal {
            let Progress { name, all, at, .. } = self;
            eprint!("\r\x1b[K{name}: {at}/{all} {series} {x}");
            let _ = std::io::stderr().flush();
        }
    }

    fn done(&self) {
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let took = self.start.elapsed().as_secs_f64();
        eprintln!(
            "{start}{}: {} measurements in {took:.0} s",
            self.name, self.all
        );
    }
}
