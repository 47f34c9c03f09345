// SPDX-License-Identifier: GPL-2.0
//! What came out of a figure: the JSON that is kept and the table that is shown.

use crate::engine::Effort;
use crate::figure::{Better, Figure};
use crate::process::Values;
use crate::report;
use crate::spread::{Spread, round};
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
    pub quick: bool,
    pub command: String,
    /// Date and load when it was done.
    pub when: String,
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
    pub bar: f64,
    pub less_is_better: bool,
    /// None: it was not measured (a quick run, or it failed).
    pub ratio: Option<Spread>,
    pub met: Option<bool>,
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
        effort: &Effort,
        seconds: f64,
        points: Vec<Point>,
    ) -> Outcome {
        let series: Vec<String> = figure.series.iter().map(|s| s.name.clone()).collect();
        let mut failures = Vec::new();
        for point in &points {
            for (cell, series) in point.cells.iter().zip(&series) {
                for why in &cell.failures {
                    failures.push(format!("{series}, {}: {why}", point.x));
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
                        return point.plain(place(&bar.series)?, &bar.measure, effort.rounds);
                    }
                    let to = if bar.to.is_empty() {
                        0
                    } else {
                        place(&bar.to)?
                    };
                    point.ratio(place(&bar.series)?, to, &bar.measure, effort.rounds)
                });
                let less_is_better = less(&bar.measure);
                Verdict {
                    what: bar.what.clone(),
                    measure: bar.measure.clone(),
                    series: bar.series.clone(),
                    x: bar.x.clone(),
                    to: bar.to.clone(),
                    bar: bar.ratio,
                    less_is_better,
                    met: ratio.map(|ratio| match less_is_better {
                        true => ratio.median <= bar.ratio,
                        false => ratio.median >= bar.ratio,
                    }),
                    ratio,
                }
            })
            .collect();
        let points = points
            .iter()
            .map(|point| draw(figure, point, effort.rounds))
            .collect();
        Outcome {
            name: name.into(),
            title: figure.title.clone(),
            paper: figure.paper.clone(),
            note: figure.note.trim().into(),
            x: figure.x.name.clone(),
            rounds: effort.rounds,
            seconds,
            quick: effort.quick,
            command: format!("bench/{name}/run"),
            when: report::now(),
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
            left_out: Vec::new(),
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
                            format!(" {} | {}..{} |", f.spread.median, low, high)
                        }
                        None => " - | |".to_string(),
                    });
                    if !m.plain {
                        out.push_str(&match found.and_then(|f| f.ratio) {
                            Some(ratio) => format!(" {} |", shown(&ratio)),
                            None => " |".to_string(),
                        });
                    }
                    if !m.plain && !self.versus.is_empty() {
                        out.push_str(&match found.and_then(|f| f.versus) {
                            Some(times) => format!(" {} |", shown(&times)),
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
                    Some(figures) => format!(" {} |", shown(&figures.spread)),
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
            let sign = if bar.less_is_better { "<=" } else { ">=" };
            let found = match (&bar.ratio, bar.met) {
                (Some(ratio), Some(met)) => {
                    let word = if met { "met" } else { "NOT met" };
                    format!("{word}: {}", shown(ratio))
                }
                _ => "not measured".into(),
            };
            let _ = writeln!(out, "{}: {sign} {}: {found}", bar.what, bar.bar);
        }
        out
    }

    pub fn met(&self) -> bool {
        self.failures.is_empty() && self.bars.iter().all(|bar| bar.met != Some(false))
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

pub fn shown(ratio: &Spread) -> String {
    let short = |v: f64| match v {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    let [low, high] = ratio.quartiles.map(short);
    format!("{} ({low}..{high})", short(ratio.median))
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
