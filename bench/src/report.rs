// SPDX-License-Identifier: GPL-2.0
//! bench/REPORT.md: what is promised and what was measured, figure by figure.

use crate::figure::{self, Bar, Better};
use crate::outcome::{Outcome, Verdict, shown, sign};
use crate::spread::round;
use crate::stamp::Stamp;
use crate::tool;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A bar of a built-in benchmark.
#[derive(Serialize, Deserialize)]
pub struct Promise {
    pub what: String,
    pub bar: f64,
    pub found: f64,
    pub met: bool,
}

impl Promise {
    pub fn at_most(what: &str, bar: f64, found: f64) -> Promise {
        Promise {
            what: what.into(),
            bar,
            found: round(found),
            met: found <= bar,
        }
    }
}

/// The output of a built-in benchmark.
pub struct Other {
    name: String,
    json: String,
    held: Held,
}

/// The part of it that the report reads.
#[derive(Deserialize)]
struct Held {
    promises: Vec<Promise>,
    met: bool,
    stamp: Stamp,
}

impl Other {
    pub fn new(name: &str, json: String) -> Result<Other, String> {
        let held = serde_json::from_str(&json)
            .map_err(|e| format!("{name}: {e}: run bench/run {name} anew"))?;
        let name = name.into();
        Ok(Other { name, json, held })
    }

    pub fn met(&self) -> bool {
        self.held.met
    }
}

/// A figure of which there is none, and the bars that are not met therefore.
pub struct Broken {
    pub name: String,
    why: String,
    bars: Vec<LostBar>,
    /// A built-in one says its bars only when it is measured.
    is_builtin: bool,
}

struct LostBar {
    what: String,
    bar: String,
    is_beside_uml: bool,
}

impl Broken {
    pub fn new(name: &str, why: &str) -> Broken {
        let figure = figure::read(name);
        let is_builtin = figure.is_err();
        let bars = figure.map_or(Vec::new(), |figure| {
            let bar = |bar: &Bar| {
                let is_less = figure
                    .measure
                    .iter()
                    .any(|m| m.key == bar.measure && m.better == Better::Less);
                LostBar {
                    what: bar.what.clone(),
                    bar: format!("{} {}", sign(is_less), bar.ratio),
                    is_beside_uml: bar.is_beside_uml(),
                }
            };
            figure.bar.iter().map(bar).collect()
        });
        Broken {
            name: name.into(),
            why: why.lines().next().unwrap_or("").replace('|', "/"),
            bars,
            is_builtin,
        }
    }

    /// Of its bars, those beside User-mode Linux or the others.
    fn lines(&self, text: &mut String, beside_uml: bool) {
        let Broken { name, why, .. } = self;
        for bar in self.bars.iter().filter(|b| b.is_beside_uml == beside_uml) {
            let LostBar { what, bar, .. } = bar;
            let _ = writeln!(text, "| {what} ({name}) | {bar} | not measured: {why} | |");
        }
        if self.is_builtin && !beside_uml {
            let _ = writeln!(text, "| {name} | | not measured: {why} | |");
        }
    }
}

pub fn write(
    run: &Stamp,
    outcomes: &[Outcome],
    others: &[Other],
    broken: &[Broken],
) -> Result<(), String> {
    let mut text = String::from("# ring3, measured\n\n");
    let _ = writeln!(text, "{}\n", machine(run));
    text.push_str(
        "Every figure is measured on the host and on ring3 in turns, in one run; a ratio is the \
         median of the rounds' own ratios to the host's kernel (the first series), its quartiles \
         in brackets. The same binaries run on both, with the same TCP settings.\n\n",
    );
    if !outcomes.iter().all(|outcome| outcome.failures.is_empty()) {
        text.push_str("Some measurements failed: see their figures.\n\n");
    }
    if !broken.is_empty() {
        let names: Vec<&str> = broken.iter().map(|one| one.name.as_str()).collect();
        let _ = writeln!(text, "Not measured at all: {}.\n", names.join(", "));
    }
    let _ = writeln!(text, "## What is promised\n\n{HEAD}");
    verdicts(&mut text, outcomes, |bar| !bar.is_beside_uml);
    for other in others {
        let name = &other.name;
        for promise in &other.held.promises {
            let word = if promise.met { "met" } else { "**not met**" };
            let Promise {
                what, bar, found, ..
            } = promise;
            let _ = writeln!(text, "| [{what}](#{name}) | <= {bar} | {found} | {word} |");
        }
    }
    for one in broken {
        one.lines(&mut text, false);
    }
    beside_uml(&mut text, outcomes, broken);
    peers(&mut text, outcomes);
    for outcome in outcomes {
        section(&mut text, run, outcome);
    }
    for Other { name, json, held } in others {
        let word = if held.met { "met" } else { "**not met**" };
        let _ = writeln!(text, "\n## {name}\n\n`bench/run {name}`: target {word}\n");
        of_another(&mut text, &held.stamp, run);
        let _ = writeln!(text, "```json\n{}\n```", json.trim());
    }
    let path = tool::root().join("bench/REPORT.md");
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

const HEAD: &str = "| promise | bar | measured | |\n|---|--:|--:|---|";

/// A line for each of these bars.
fn verdicts(text: &mut String, outcomes: &[Outcome], are_wanted: fn(&Verdict) -> bool) {
    for outcome in outcomes {
        for bar in outcome.bars.iter().filter(|bar| are_wanted(bar)) {
            let (found, word) = bar.found(outcome.rounds);
            let word = if word == "NOT met" {
                "**not met**"
            } else {
                word
            };
            let _ = writeln!(
                text,
                "| [{}](#{}) | {} {} | {} | {word} |",
                bar.what,
                outcome.name.to_lowercase(),
                bar.sign(),
                bar.bar,
                found.replace('|', "/")
            );
        }
    }
}

/// Five times better on the same work: every line of it, met or not.
fn beside_uml(text: &mut String, outcomes: &[Outcome], broken: &[Broken]) {
    let bars = || {
        let all = outcomes.iter().flat_map(|outcome| &outcome.bars);
        all.filter(|bar| bar.is_beside_uml)
    };
    let lost = broken.iter().flat_map(|one| &one.bars);
    let lost = lost.filter(|bar| bar.is_beside_uml).count();
    let all = bars().count() + lost;
    if all == 0 {
        return;
    }
    let met = bars().filter(|bar| bar.met == Some(true)).count();
    let lost = lost + bars().filter(|bar| bar.met.is_none()).count();
    let _ = writeln!(
        text,
        "\n## Beside User-mode Linux, on the same work\n\nPromised are five times in each line: {met} of {all} are met, \
         {} are not, {lost} were not measured.\n\n{HEAD}",
        all - met - lost
    );
    verdicts(text, outcomes, |bar| bar.is_beside_uml);
    for one in broken {
        one.lines(text, true);
    }
}

/// Every measure of every peer, by how much ring3 is better: a column for each peer.
fn peers(text: &mut String, outcomes: &[Outcome]) {
    let compared: Vec<_> = outcomes.iter().filter(|o| !o.versus.is_empty()).collect();
    let mut names: Vec<&String> = Vec::new();
    for series in compared.iter().flat_map(|outcome| &outcome.series) {
        let own = series.starts_with("ring3") || series.starts_with("host");
        if !own && !names.contains(&series) {
            names.push(series);
        }
    }
    if names.is_empty() {
        return;
    }
    text.push_str(
        "\n## Beside its peers\n\nHow many times better ring3 is, measured in turns with the peer, \
         quartiles in brackets; below 1 the peer is better.\n\n| what |",
    );
    for name in &names {
        let _ = write!(text, " {name} |");
    }
    let _ = write!(text, "\n|---|{}\n", "--:|".repeat(names.len()));
    for outcome in compared {
        for point in &outcome.points {
            for measure in outcome.measures.iter().filter(|measure| !measure.plain) {
                let x = if point.x.is_empty() { "" } else { ", " };
                let _ = write!(
                    text,
                    "| [{}](#{}): {}{x}{} |",
                    outcome.title,
                    outcome.name.to_lowercase(),
                    measure.name,
                    point.x
                );
                for name in &names {
                    let figures = point.series.get(*name).and_then(|s| s.get(&measure.key));
                    let times = figures.and_then(|figures| figures.versus);
                    let times = times.map_or(String::new(), |t| shown(&t, outcome.rounds));
                    let _ = write!(text, " {times} |");
                }
                text.push('\n');
            }
        }
    }
}

/// The run of a result, where that is another one than the report's.
fn of_another(text: &mut String, stamp: &Stamp, run: &Stamp) {
    let differs = stamp.differs(run);
    if !differs.is_empty() {
        let _ = writeln!(text, "Of another run: {differs}, {}.\n", stamp.date);
    }
}

fn section(text: &mut String, run: &Stamp, outcome: &Outcome) {
    let name = &outcome.name;
    let _ = writeln!(text, "\n## {name}\n\n**{}**", outcome.title);
    if !outcome.paper.is_empty() {
        let _ = writeln!(text, "(paper {})", outcome.paper);
    }
    let _ = writeln!(
        text,
        "\n`{}`, {} rounds of {} s each, {}, load {}.\n",
        outcome.command, outcome.rounds, outcome.seconds, outcome.stamp.date, outcome.stamp.load
    );
    of_another(text, &outcome.stamp, run);
    let _ = writeln!(
        text,
        "![{}](results/{name}.png)\n\n{}",
        outcome.title,
        outcome.table()
    );
    if !outcome.note.is_empty() {
        let _ = writeln!(text, "{}\n", outcome.note);
    }
    for why in &outcome.left_out {
        let _ = writeln!(text, "- left out: {why}");
    }
    for why in &outcome.failures {
        let _ = writeln!(text, "- failed: {why}");
    }
}

/// The machine, its kernel, and what the run was of.
fn machine(run: &Stamp) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    let cpus = cpuinfo.matches("processor\t").count();
    let memory = read("/proc/meminfo");
    let kib: f64 = memory
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0.0);
    format!(
        "{} · {cpus} CPUs, {model} · {:.0} GiB · host Linux {} · load before: {} · ring3 {}, image {}{}",
        run.date,
        kib / 1048576.0,
        read("/proc/sys/kernel/osrelease").trim(),
        run.load,
        run.commit,
        run.image,
        if run.is_profiled() {
            ", optimized with a profile (`make profile`)"
        } else {
            ""
        },
    )
}
