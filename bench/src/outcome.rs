// SPDX-License-Identifier: GPL-2.0
//! The outcome of a figure: the JSON that is kept and the table that is shown.

use crate::figure::{Bar, Better, Figure};
use crate::process::Values;
use crate::spread::{Spread, round};
use crate::stamp::Stamp;
use crate::tool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub name: String,
    pub title: String,
    pub paper: String,
    pub note: String,
    pub x: String,
    pub rounds: usize,
    pub seconds: f64,
    pub command: String,
    pub stamp: Stamp,
    pub series: Vec<String>,
    pub measures: Vec<Shown>,
    pub points: Vec<Drawn>,
    pub bars: Vec<Verdict>,
    pub plot: Plot,
    /// Measurements that failed, with the reason.
    pub failures: Vec<String>,
    /// Series that could not be measured here, with the reason.
    pub left_out: Vec<String>,
    /// The series of ring3's that the others are compared with; empty: none.
    pub versus: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    pub key: String,
    pub name: String,
    pub unit: String,
    pub less_is_better: bool,
    pub plain: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Plot {
    pub kind: String,
    pub log_x: bool,
    pub log_y: bool,
    pub measures: Vec<String>,
}

/// All series at one x.
#[derive(Debug, Serialize, Deserialize)]
pub struct Drawn {
    pub x: String,
    pub series: BTreeMap<String, BTreeMap<String, Figures>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Figures {
    pub values: Vec<f64>,
    pub spread: Spread,
    /// To the baseline, round by round; none for the baseline itself.
    pub ratio: Option<Spread>,
    /// How many times better than this the series is that `versus` names.
    pub versus: Option<Spread>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Verdict {
    pub what: String,
    pub measure: String,
    pub series: String,
    pub x: String,
    /// The series it is compared with.
    pub to: String,
    pub is_beside_uml: bool,
    pub bar: f64,
    pub less_is_better: bool,
    pub ratio: Option<Spread>,
    pub met: Option<bool>,
    /// Where it was not measured: why.
    pub why: String,
}

impl Verdict {
    /// As a line of a table or a list.
    pub fn sign(&self) -> &'static str {
        sign(self.less_is_better)
    }

    /// The result of so many rounds, and whether it meets the bar.
    pub fn found(&self, rounds: usize) -> (String, &'static str) {
        match (&self.ratio, self.met) {
            (Some(ratio), Some(true)) => (shown(ratio, rounds), "met"),
            (Some(ratio), Some(false)) => (shown(ratio, rounds), "NOT met"),
            (Some(ratio), None) => (shown(ratio, rounds), "not measured: too few rounds"),
            (None, _) => (format!("not measured: {}", self.why), ""),
        }
    }
}

pub fn sign(less_is_better: bool) -> &'static str {
    if less_is_better { "<=" } else { ">=" }
}

/// One series at one x, as it is measured.
#[derive(Debug, Default)]
pub struct Cell {
    rounds: Vec<Option<Values>>,
    failures: Vec<String>,
}

impl Cell {
    pub fn add(&mut self, outcome: Result<Values, String>) {
        match outcome {
            Ok(values) => self.rounds.push(Some(values)),
            Err(why) => {
                self.rounds.push(None);
                self.failures.push(why);
            }
        }
    }

    fn get(&self, round: usize, key: &str) -> Option<f64> {
        self.rounds.get(round)?.as_ref()?.get(key).copied()
    }
}

#[derive(Debug)]
pub struct Point {
    pub x: String,
    pub cells: Vec<Cell>,
}

impl Point {
    /// The measure itself.
    fn plain(&self, series: usize, key: &str, rounds: usize) -> Option<Spread> {
        let get = |round| self.cells[series].get(round, key);
        let values: Vec<f64> = (0..rounds).filter_map(get).collect();
        (!values.is_empty()).then(|| Spread::of(&values))
    }

    /// One series to another, round by round.
    fn ratio(&self, series: usize, to: usize, key: &str, rounds: usize) -> Option<Spread> {
        let ratios: Vec<f64> = (0..rounds)
            .filter_map(|round| {
                let base = self.cells[to].get(round, key)?;
                (base != 0.0).then_some(self.cells[series].get(round, key)? / base)
            })
            .collect();
        (!ratios.is_empty()).then(|| Spread::of(&ratios))
    }
}

impl Outcome {
    pub fn new(
        name: &str,
        figure: &Figure,
        stamp: Stamp,
        seconds: f64,
        points: Vec<Point>,
        left_out: Vec<String>,
    ) -> Outcome {
        let series: Vec<String> = figure.series.iter().map(|s| s.name.clone()).collect();
        let mut failures = Vec::new();
        for point in &points {
            for (cell, series) in point.cells.iter().zip(&series) {
                for why in &cell.failures {
                    failures.push(format!("{series}{}: {why}", at(&point.x)));
                }
            }
        }
        for measure in figure.measure.iter().filter(|measure| !measure.optional) {
            for (cell, series) in points.iter().flat_map(|p| p.cells.iter().zip(&series)) {
                let said = cell.rounds.iter().flatten();
                if said
                    .clone()
                    .any(|values| !values.contains_key(&measure.key))
                {
                    failures.push(format!("{series}: no '{}' was printed", measure.key));
                }
            }
        }
        let place = |name: &str| series.iter().position(|one| one == name);
        let less = |key: &str| {
            let measure = figure.measure.iter().find(|m| m.key == key);
            measure.is_some_and(|m| m.better == Better::Less)
        };
        let bars = figure
            .bar
            .iter()
            .map(|bar| {
                let ratio = points.iter().find(|p| p.x == bar.x).and_then(|point| {
                    if bar.plain {
                        return point.plain(place(&bar.series)?, &bar.measure, figure.rounds);
                    }
                    let to = if bar.to.is_empty() {
                        0
                    } else {
                        place(&bar.to)?
                    };
                    point.ratio(place(&bar.series)?, to, &bar.measure, figure.rounds)
                });
                let less_is_better = less(&bar.measure);
                let why = match ratio {
                    Some(_) => String::new(),
                    None => {
                        let to = match bar.to.is_empty() {
                            true => series.first().map_or("", |first| first.as_str()),
                            false => bar.to.as_str(),
                        };
                        let is_at_x = points.iter().any(|point| point.x == bar.x);
                        why(bar, to, is_at_x, &failures, &left_out)
                    }
                };
                Verdict {
                    what: bar.what.clone(),
                    measure: bar.measure.clone(),
                    series: bar.series.clone(),
                    x: bar.x.clone(),
                    to: bar.to.clone(),
                    is_beside_uml: bar.is_beside_uml(),
                    bar: bar.ratio,
                    less_is_better,
                    met: ratio
                        .filter(|ratio| are_enough(ratio.n, figure.rounds))
                        .map(|ratio| match less_is_better {
                            true => ratio.median <= bar.ratio,
                            false => ratio.median >= bar.ratio,
                        }),
                    ratio,
                    why,
                }
            })
            .collect();
        let points = points
            .iter()
            .map(|point| draw(figure, point, figure.rounds))
            .collect();
        Outcome {
            name: name.into(),
            title: figure.title.clone(),
            paper: figure.paper.clone(),
            note: figure.note.trim().into(),
            x: figure.x.name.clone(),
            rounds: figure.rounds,
            seconds,
            command: format!("bench/run {name}"),
            stamp,
            series,
            measures: figure
                .measure
                .iter()
                .map(|m| Shown {
                    key: m.key.clone(),
                    name: m.name.clone(),
                    unit: m.unit.clone(),
                    less_is_better: m.better == Better::Less,
                    plain: m.plain,
                })
                .collect(),
            points,
            bars,
            plot: Plot {
                kind: figure.plot.kind.clone(),
                log_x: figure.plot.log_x,
                log_y: figure.plot.log_y,
                measures: figure.plot.measures.clone(),
            },
            failures,
            left_out,
            versus: figure.versus.clone(),
        }
    }

    /// A Markdown table: a line for each x and series.
    pub fn table(&self) -> String {
        if self.plot.kind == "stacked" {
            return self.table_of_layers();
        }
        let mut head = format!("| {} | series |", self.x);
        let mut rule = String::from("|---|---|");
        for m in &self.measures {
            let _ = write!(head, " {}, {} | quartiles |", m.name, m.unit);
            rule.push_str("--:|:-:|");
            if !m.plain {
                head.push_str(" ratio (quartiles) |");
                rule.push_str(":-:|");
                if !self.versus.is_empty() {
                    let _ = write!(head, " {} is better by |", self.versus);
                    rule.push_str(":-:|");
                }
            }
        }
        let mut out = format!("{head}\n{rule}\n");
        for point in &self.points {
            for series in &self.series {
                let Some(figures) = point.series.get(series) else {
                    continue;
                };
                let _ = write!(out, "| {} | {series} |", point.x);
                for m in &self.measures {
                    let found = figures.get(&m.key);
                    out.push_str(&match found {
                        Some(f) => {
                            let [low, high] = f.spread.quartiles;
                            let of = of_rounds(f.spread.n, self.rounds);
                            format!(" {}{of} | {low}..{high} |", f.spread.median)
                        }
                        None => " - | |".to_string(),
                    });
                    if !m.plain {
                        out.push_str(&match found.and_then(|f| f.ratio) {
                            Some(ratio) => format!(" {} |", shown(&ratio, self.rounds)),
                            None => " |".to_string(),
                        });
                    }
                    if !m.plain && !self.versus.is_empty() {
                        out.push_str(&match found.and_then(|f| f.versus) {
                            Some(times) => format!(" {} |", shown(&times, self.rounds)),
                            None => " |".to_string(),
                        });
                    }
                }
                out.push('\n');
            }
        }
        out
    }

    /// The same with a line for each measure and a column for each x and series.
    fn table_of_layers(&self) -> String {
        let mut head = format!("| {} |", self.x);
        let mut rule = String::from("|---|");
        let columns: Vec<_> = self
            .points
            .iter()
            .flat_map(|point| self.series.iter().map(move |series| (point, series)))
            .collect();
        for (point, series) in &columns {
            let _ = write!(head, " {}: {series} |", point.x);
            rule.push_str("--:|");
        }
        let mut out = format!("{head}\n{rule}\n");
        for measure in &self.measures {
            let _ = write!(out, "| {}, {} |", measure.name, measure.unit);
            for (point, series) in &columns {
                let found = point.series.get(*series).and_then(|s| s.get(&measure.key));
                out.push_str(&match found {
                    Some(figures) => format!(" {} |", shown(&figures.spread, self.rounds)),
                    None => " - |".to_string(),
                });
            }
            out.push('\n');
        }
        out
    }

    pub fn verdicts(&self) -> String {
        let mut out = String::new();
        for bar in &self.bars {
            let (found, word) = bar.found(self.rounds);
            let word = match word {
                "" => String::new(),
                word => format!("{word}: "),
            };
            let Verdict { what, bar: at, .. } = bar;
            let _ = writeln!(out, "{what}: {} {at}: {word}{found}", bar.sign());
        }
        out
    }

    /// A bar that was not measured is not met; a quick run leaves out values of x, and their bars.
    pub fn met(&self) -> bool {
        let met = |bar: &Verdict| bar.met.unwrap_or(self.stamp.quick);
        self.failures.is_empty() && self.bars.iter().all(met)
    }

    /// Keeps it as build/bench/results/NAME.json and draws it.
    pub fn keep(&self) -> Result<(), String> {
        let folder = tool::results()?;
        let json = folder.join(format!("{}.json", self.name));
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        std::fs::write(&json, text + "\n").map_err(|e| format!("{}: {e}", json.display()))?;
        let mut plot = std::process::Command::new("/usr/bin/python3");
        plot.arg(tool::root().join("bench/plot.py")).arg(&json);
        tool::output(&mut plot).map(drop)
    }
}

/// Where a failure was, behind the series' name.
fn at(x: &str) -> String {
    match x {
        "" => String::new(),
        x => format!(", {x}"),
    }
}

/// Why a bar has no figure. `to` is the series it is compared with.
fn why(bar: &Bar, to: &str, is_at_x: bool, failures: &[String], left_out: &[String]) -> String {
    let of = |all: &[String], x: &str| {
        let ends = [bar.series.as_str(), to].map(|name| format!("{name}{x}: "));
        let is_of = |why: &&String| ends.iter().any(|end| why.starts_with(end));
        all.iter().find(is_of).cloned()
    };
    if let Some(why) = of(left_out, "") {
        return why;
    }
    if !is_at_x {
        return "a quick run leaves it out".into();
    }
    of(failures, &at(&bar.x))
        .unwrap_or_else(|| format!("{}: no '{}' was printed", bar.series, bar.measure))
}

/// Whether a median of `n` rounds stands for all of them: those that failed may be the slow ones.
fn are_enough(n: usize, rounds: usize) -> bool {
    n * 5 >= rounds * 4
}

/// Of how many rounds a figure is, where it is not of all.
fn of_rounds(n: usize, rounds: usize) -> String {
    match n == rounds {
        true => String::new(),
        false => format!(" [{n}/{rounds} rounds]"),
    }
}

pub fn shown(ratio: &Spread, rounds: usize) -> String {
    let short = |v: f64| match v {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    let [low, high] = ratio.quartiles.map(short);
    let of = of_rounds(ratio.n, rounds);
    format!("{} ({low}..{high}){of}", short(ratio.median))
}

fn draw(figure: &Figure, point: &Point, rounds: usize) -> Drawn {
    let mut series = BTreeMap::new();
    let versus = figure.series.iter().position(|s| s.name == figure.versus);
    for (at, (cell, one)) in point.cells.iter().zip(&figure.series).enumerate() {
        let mut figures = BTreeMap::new();
        for measure in &figure.measure {
            let get = |round| cell.get(round, &measure.key);
            let values: Vec<f64> = (0..rounds).filter_map(get).map(round).collect();
            if values.is_empty() {
                continue;
            }
            let ratio = |series, to| point.ratio(series, to, &measure.key, rounds);
            let times = |ring3| match measure.better {
                Better::Less => ratio(at, ring3),
                Better::More => ratio(ring3, at),
            };
            figures.insert(
                measure.key.clone(),
                Figures {
                    spread: Spread::of(&values),
                    ratio: match at > 0 && !measure.plain {
                        true => ratio(at, 0),
                        false => None,
                    },
                    versus: versus
                        .filter(|ring3| *ring3 != at && !measure.plain)
                        .and_then(times),
                    values,
                },
            );
        }
        series.insert(one.name.clone(), figures);
    }
    Drawn {
        x: point.x.clone(),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar() -> Bar {
        Bar {
            what: "fast".into(),
            measure: "p50".into(),
            series: "UML 6.1".into(),
            x: "tcp".into(),
            to: String::new(),
            ratio: 0.2,
            plain: false,
        }
    }

    fn figure() -> Figure {
        toml::from_str(
            r#"title = "t"
            load = { sources = [], ask = [] }
            series = [{ name = "host", bed = "veth" }, { name = "ring3", bed = "link" }]
            measure = [{ key = "p50", name = "median", unit = "us", better = "less" }]
            bar = [{ what = "fast", measure = "p50", series = "ring3", ratio = 0.2 }]"#,
        )
        .unwrap()
    }

    /// The outcome of five rounds in which the host has 10.
    fn outcome(ring3: &[Result<f64, String>], quick: bool) -> Outcome {
        let mut cells = [Cell::default(), Cell::default()];
        for value in ring3 {
            let value = value.clone();
            cells[0].add(Ok(Values::from([("p50".into(), 10.0)])));
            cells[1].add(value.map(|value| Values::from([("p50".into(), value)])));
        }
        let mut figure = figure();
        figure.rounds = ring3.len();
        let (x, cells) = (String::new(), cells.into());
        let stamp = Stamp {
            commit: String::new(),
            image: String::new(),
            quick,
            date: String::new(),
            load: String::new(),
        };
        Outcome::new("t", &figure, stamp, 1.0, vec![Point { x, cells }], vec![])
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert!(outcome(&[Ok(1.0), Ok(1.0), Ok(1.0)], false).met());
        assert!(!outcome(&[Ok(3.0), Ok(3.0), Ok(3.0)], false).met());
        let mut lost = outcome(&[], false);
        assert_eq!((lost.bars[0].met, lost.met()), (None, false));
        lost.stamp.quick = true;
        assert!(lost.met());
        let broken = outcome(&[Err("it died".into()), Err("again".into())], true);
        assert_eq!(broken.bars[0].why, "ring3: it died");
        assert!(!broken.met());
    }

    #[test]
    fn a_median_is_of_most_rounds() {
        let lost = || Err("lost".to_string());
        let most = outcome(&[Ok(1.0), Ok(1.0), lost(), Ok(1.0), Ok(1.0)], false);
        assert_eq!(most.bars[0].met, Some(true));
        let shown = "0.10 (0.10..0.10) [4/5 rounds]".to_string();
        assert_eq!(most.bars[0].found(5), (shown, "met"));
        assert!(most.table().contains(" 1 [4/5 rounds] | 1..1 |"));
        let few = outcome(&[Ok(1.0), Ok(1.0), lost(), Ok(1.0), lost()], false);
        assert_eq!(few.bars[0].met, None);
        assert_eq!(few.bars[0].found(5).1, "not measured: too few rounds");
        assert!(are_enough(3, 3) && !are_enough(2, 3));
    }

    #[test]
    fn says_why_there_is_no_figure() {
        let left_out = ["UML 6.12: x".to_string(), "UML 6.1: not built".to_string()];
        let failures = ["host, udp: no".to_string(), "host, tcp: gone".to_string()];
        let why = |at_x, failures, left_out| why(&bar(), "host", at_x, failures, left_out);
        assert_eq!(why(true, &failures, &left_out), "UML 6.1: not built");
        assert_eq!(why(true, &failures, &[]), "host, tcp: gone");
        assert_eq!(why(true, &[], &[]), "UML 6.1: no 'p50' was printed");
        assert_eq!(why(false, &[], &[]), "a quick run leaves it out");
    }
}
