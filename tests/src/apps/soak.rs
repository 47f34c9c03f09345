// SPDX-License-Identifier: GPL-2.0
//! A soak: mixed traffic on two nodes for an hour, and nothing may grow.
//!
//! The participants are the storm's (`tests/apps/storm.c`), but nobody is killed: servers, talkers with
//! checksummed records over TCP and UDP, in the node, over a link and over a TAP, connections and
//! forks without end. What nodes and keepers hold is looked at all the while. It is flat when its
//! median over the last quarter is no more than that over the second, and a slack.
//!
//! `make soak MINUTES=60`; the samples are in build/tests/soak.json and drawn beside it.

use super::storm::{Participant, STANDSTILL};
use super::topology::Topology;
use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, until};
use crate::node::{self, Node, SHORT};
use crate::{Options, paths, scratch};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const MINUTES: f64 = 60.0;
const SAMPLES: u32 = 120;
const PORT: &str = "7310";

/// Key, name, unit, and how much more is no growth: in the unit, and of the whole.
const MEASURES: [(&str, &str, &str, f64, f64); 6] = [
    ("region", "the region's memory", "MiB", 4.0, 0.03),
    ("keeper", "the keeper's own memory", "MiB", 1.0, 0.05),
    (
        "descriptors",
        "the keeper's descriptors",
        "descriptors",
        3.0,
        0.0,
    ),
    ("sockets", "sockets", "sockets", 8.0, 0.1),
    ("tcp_mem", "memory of TCP", "pages", 400.0, 0.5),
    ("processes", "processes", "processes", 3.0, 0.1),
];

pub fn trials(options: Options) -> Vec<Trial> {
    vec![trial("soak".into(), soak).with_ignored_flag(!options.long)]
}

/// One look at one node: its values in the order of [`MEASURES`].
type Sample = [f64; MEASURES.len()];

fn sample(node: &Node) -> Result<Sample, String> {
    let outcome = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
    let stat: Value =
        serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))?;
    let keeper = stat["pid"].as_i64().ok_or("ring3 stat: no keeper")?;
    let read = |file: &str| {
        let path = format!("/proc/{keeper}/{file}");
        std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))
    };
    // What is the keeper's alone: the region is shared memory.
    let own = field(&read("status")?, "RssAnon:")? / 1024.0;
    let open = std::fs::read_dir(format!("/proc/{keeper}/fd")).map_err(|e| e.to_string())?;
    // Beside other work a program may be too slow for a join's patience; a dead node is dead each time.
    let ask = || node.output(&["cat", "/proc/net/sockstat"]);
    let sockets = ask().or_else(|_| ask()).or_else(|_| ask())?;
    let tcp = sockets
        .lines()
        .find(|line| line.starts_with("TCP:"))
        .unwrap_or_default();
    Ok([
        stat["mem"]["resident"]
            .as_f64()
            .ok_or("ring3 stat: no memory")?
            / f64::from(1 << 20),
        own,
        open.count() as f64,
        field(&sockets, "used")?,
        field(tcp, "mem")?,
        stat["procs"].as_array().map_or(0, Vec::len) as f64,
    ])
}

/// The number behind a word.
fn field(text: &str, word: &str) -> Result<f64, String> {
    let mut words = text.split_whitespace();
    words.find(|it| *it == word);
    let number = words.next().and_then(|it| it.parse().ok());
    number.ok_or_else(|| format!("no number behind {word}: {text}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What has grown, a line each.
fn growth(name: &str, samples: &[(f64, Sample)]) -> Vec<String> {
    let quarter = samples.len() / 4;
    let mut found = Vec::new();
    for (at, (_, what, unit, slack, share)) in MEASURES.iter().enumerate() {
        let over = |range: &[(f64, Sample)]| median(range.iter().map(|it| it.1[at]).collect());
        let (before, after) = (
            over(&samples[quarter..2 * quarter]),
            over(&samples[3 * quarter..]),
        );
        println!("{name}: {what}: {before:.1}, at the end {after:.1} {unit}");
        if after > before + slack + share * before {
            found.push(format!(
                "{name}: {what} grew from {before:.1} to {after:.1} {unit}"
            ));
        }
    }
    found
}

/// In the form that bench/plot.py draws.
fn to_json(names: &[&str; 2], samples: &[Vec<(f64, Sample)>; 2], ticks: u64) -> Value {
    let measures: Vec<Value> = MEASURES
        .iter()
        .map(|m| json!({"key": m.0, "name": m.1, "unit": m.2, "less_is_better": true, "plain": false}))
        .collect();
    let series = |sample: &Sample| -> Value {
        let of = |at: usize| json!({"spread": {"median": sample[at], "quartiles": [sample[at], sample[at]]}});
        MEASURES
            .iter()
            .enumerate()
            .map(|(at, m)| (m.0.to_owned(), of(at)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let points: Vec<Value> = samples[0]
        .iter()
        .zip(&samples[1])
        .map(|(a, b)| json!({"x": format!("{:.1}", a.0), "series": {names[0]: series(&a.1), names[1]: series(&b.1)}}))
        .collect();
    json!({
        "title": "soak: mixed traffic on two nodes", "paper": "", "x": "minutes", "series": names,
        "ticks": ticks, "measures": measures, "points": points,
        "plot": {"kind": "lines", "measures": [], "log_x": false, "log_y": false},
    })
}

fn soak() -> Checked {
    if let Some(why) = Topology::TapServer.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let minutes = match std::env::var("RING3_SOAK_MINUTES") {
        Ok(text) => text
            .parse()
            .map_err(|e| format!("RING3_SOAK_MINUTES: {e}"))?,
        Err(_) => MINUTES,
    };
    let (link, tap) = (scratch::unique("sk"), scratch::unique("sk"));
    let net = 100 + std::process::id() % 100;
    let tap_address = format!("10.232.{net}.1");
    let a = Node::up(&[
        format!("link:{link},addr=10.231.2.1/24"),
        format!("tap:{tap},addr={tap_address}/24,host=10.232.{net}.2/24"),
    ])?;
    let b = Node::up(&[format!("link:{link},addr=10.231.2.2/24")])?;
    let on_host = Command::new(helper("storm")?);
    let mut all = [
        Participant::start(&a, &["serve", PORT])?,
        Participant::start(&b, &["serve", PORT])?,
        Participant::start(&a, &["talk", "10.231.2.2", PORT, "1"])?,
        Participant::start(&b, &["talk", "10.231.2.1", PORT, "2"])?,
        Participant::start(&a, &["talk", "127.0.0.1", PORT, "3"])?,
        Participant::start(&b, &["fork", "127.0.0.1", PORT, "4"])?,
        Participant::start(&a, &["watch"])?,
        Participant::spawn(on_host, &["talk", &tap_address, PORT, "5"])?,
    ];
    let (start, limit) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let mut samples = [Vec::new(), Vec::new()];
    let mut stopped = None;
    while start.elapsed() < limit && stopped.is_none() {
        let next = limit / SAMPLES * (samples[0].len() as u32 + 1);
        until(next.saturating_sub(start.elapsed()), || {
            stopped = all.iter_mut().find_map(|it| {
                let trouble = it.ended().is_some() || !it.words().is_empty();
                let still = it.still() > 2 * STANDSTILL;
                (trouble || still).then(|| {
                    format!(
                        "{}: {:?} {:?}, still for {:?}",
                        it.name(),
                        it.ended(),
                        it.words(),
                        it.still()
                    )
                })
            });
            stopped.is_some()
        });
        let at = start.elapsed().as_secs_f64() / 60.0;
        for (node, samples) in [&a, &b].into_iter().zip(&mut samples) {
            samples.push((at, sample(node)?));
        }
    }
    let ticks = all.iter().map(Participant::ticks).sum();
    let file = paths::build().join("soak.json");
    let text = to_json(&["node with a TAP", "node with forks"], &samples, ticks).to_string();
    std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    let plot = paths::root().join("bench/plot.py");
    let drawn = exec::run(Command::new(plot).arg(&file), 3 * SHORT)?;
    println!(
        "{:.1} minutes, {ticks} ticks of 20 ms; {}",
        start.elapsed().as_secs_f64() / 60.0,
        file.display()
    );
    if !drawn.ok() {
        println!("not drawn, python3-matplotlib is missing? {}", drawn.stderr);
    }
    let mut found = growth("node with a TAP", &samples[0]);
    found.extend(growth("node with forks", &samples[1]));
    found.extend(stopped);
    ensure(found.is_empty(), || found.join("\n"))?;
    Ok(Verdict::Passed)
}
