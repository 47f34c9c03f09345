// SPDX-License-Identifier: GPL-2.0
//! Tables of many lines, each a work at a place in a state, on ring3 beside the host: `bench/tables/NAME.toml`.
//!
//! `bench/run NAME [WORD]... [ROUNDS] [--quick] [--json] [--list] [--before FILE]` measures the
//! lines whose names hold all WORDs. Host and node take turns, round by round, and the one that begins
//! changes. What is measured goes into bench/results/NAME.json beside the lines that
//! earlier runs left there; FILE is such a result of an earlier ring3.
//!
//! A ratio says how many times better than the host ring3 is, whether less or more is better: 1 is equal.

use crate::bed::Bed;
use crate::figure::{self, BedKind, Better, Output, Series};
use crate::process::{self, Ended, Values};
use crate::spread::{Spread, round};
use crate::stamp::Stamp;
use crate::tool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const NAMES: [&str; 2] = ["company", "servers"];

/// Time until busy loops run on all CPUs.
const SETTLE: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    title: String,
    note: String,
    place: Vec<Place>,
    state: Vec<State>,
    work: Vec<Work>,
}

/// Where the two ends run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    name: String,
    host: BedKind,
    ring3: BedKind,
}

/// The load beside the measurement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    name: String,
    /// Everything is pinned to so many CPUs, the first that we may use.
    #[serde(default = "two")]
    cpus: usize,
    /// Busy loops on these CPUs.
    #[serde(default)]
    loops: u32,
    /// Both ends, and the keepers, have so much of a CPU between them; 0: as much as there is.
    #[serde(default)]
    share: f64,
    /// Measured by a quick run, too.
    #[serde(default)]
    quick: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    name: String,
    /// Its description, one sentence.
    what: String,
    places: Vec<String>,
    states: Vec<String>,
    /// Of a quick run; none: all.
    #[serde(default)]
    quick_places: Vec<String>,
    #[serde(default = "nothing")]
    x: Vec<String>,
    #[serde(default)]
    quick_x: Vec<String>,
    /// C programs below bench/.
    #[serde(default)]
    sources: Vec<String>,
    /// Programs that have to be installed.
    #[serde(default)]
    needs: Vec<String>,
    serve: Vec<String>,
    /// The server goes on from round to round, and answers all x.
    #[serde(default)]
    keep: bool,
    /// A program that runs beside what asks, on the same node.
    #[serde(default)]
    beside: Vec<String>,
    ask: Vec<String>,
    #[serde(default)]
    output: Output,
    seconds: f64,
    quick_seconds: f64,
    measure: Vec<Measure>,
    /// The least ratio that meets the bar.
    #[serde(default = "one")]
    bar: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measure {
    key: String,
    unit: String,
    better: Better,
}

fn two() -> usize {
    2
}

fn one() -> f64 {
    1.0
}

fn nothing() -> Vec<String> {
    vec![String::new()]
}

/// The stored form of a table.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    name: String,
    title: String,
    note: String,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    line: String,
    measure: String,
    unit: String,
    host: Option<Spread>,
    ring3: Option<Spread>,
    /// How many times better ring3 is, within a round.
    ratio: Option<Spread>,
    bar: f64,
    met: bool,
    rounds: usize,
    /// Makes this line again.
    command: String,
    /// The code that ran, and the machine.
    ran: String,
    /// Measurements of ring3's or the host's that failed, with the reason.
    failures: Vec<String>,
    stamp: Stamp,
}

/// The options of `bench/run NAME`.
#[derive(Default)]
struct Asked {
    words: Vec<String>,
    rounds: Option<usize>,
    quick: bool,
    json: bool,
    list: bool,
    before: Option<PathBuf>,
}

fn asked(args: &[String]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => asked.quick = true,
            "--json" => asked.json = true,
            "--list" => asked.list = true,
            "--before" => {
                asked.before = Some(args.next().ok_or("--before: a file is wanted")?.into());
            }
            other if other.starts_with("--") => return Err(format!("{other}: unknown option")),
            other => asked.words.push(other.into()),
        }
    }
    // A number at the end is that of the rounds.
    if let Some(Ok(rounds)) = asked.words.last().map(|last| last.parse()) {
        asked.words.pop();
        asked.rounds = Some(rounds);
        if rounds < 3 {
            return Err("at least 3 rounds are needed".into());
        }
    }
    Ok(asked)
}

pub fn run(name: &str, args: &[String]) -> Result<bool, String> {
    let asked = asked(args)?;
    let tables = tables_of(name)?;
    let chosen: Vec<(&Named, Group)> = tables
        .iter()
        .flat_map(|it| choose(&it.table, &asked).into_iter().map(move |g| (it, g)))
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "no line of {name} is called so: {}",
            asked.words.join(" ")
        ));
    }
    if asked.list {
        for line in chosen.iter().flat_map(|(_, group)| group.names()) {
            println!("{line}");
        }
        return Ok(true);
    }
    let start = std::time::Instant::now();
    let mut made = Vec::new();
    let mut kept = Vec::new();
    for it in &tables {
        let mut lines = Vec::new();
        for group in chosen.iter().filter(|c| c.0.name == it.name) {
            lines.extend(measure(it.name, &group.1, &asked, start)?);
        }
        // Each table's lines are kept as soon as they are there: the next one takes minutes.
        if !lines.is_empty() {
            kept.push(keep(it.name, &it.table, &lines)?.display().to_string());
            made.extend(lines);
        }
    }
    if asked.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&made).map_err(|e| e.to_string())?
        );
    } else {
        let before = match &asked.before {
            Some(path) => Some(load(path)?),
            None => None,
        };
        let titles: Vec<&str> = tables.iter().map(|it| it.table.title.as_str()).collect();
        println!("{}\n\n{}", titles.join("\n"), shown(&made, before.as_ref()));
        println!(
            "{} of {} lines met; all: {}",
            made.iter().filter(|it| it.met).count(),
            made.len(),
            kept.join(", ")
        );
    }
    Ok(made.iter().all(|it| it.met))
}

/// A table and its name.
struct Named {
    name: &'static str,
    table: Table,
}

/// The table of that name. Servers are in company, too: `company` is both tables.
fn tables_of(name: &str) -> Result<Vec<Named>, String> {
    NAMES
        .into_iter()
        .filter(|it| *it == name || name == NAMES[0])
        .map(|name| {
            let table = read(name)?;
            Ok(Named { name, table })
        })
        .collect()
}

fn measure(
    table: &str,
    group: &Group,
    asked: &Asked,
    start: std::time::Instant,
) -> Result<Vec<Line>, String> {
    if let Some(missing) = group.work.needs.iter().find(|it| !installed(it)) {
        eprintln!(
            "{table}: {} is left out: {missing} is not installed (tools/setup bench)",
            group.work.name
        );
        return Ok(Vec::new());
    }
    eprintln!(
        "{table}: {:.0} s, {}",
        start.elapsed().as_secs_f64(),
        group.name("")
    );
    group.measure(table, asked)
}

fn path(name: &str) -> PathBuf {
    tool::root()
        .join("bench/tables")
        .join(format!("{name}.toml"))
}

fn read(name: &str) -> Result<Table, String> {
    let path = path(name);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let table: Table = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    for work in &table.work {
        let places = work.places.iter().chain(&work.quick_places);
        let unknown = places
            .filter(|it| table.place.iter().all(|place| place.name != **it))
            .chain(
                work.states
                    .iter()
                    .filter(|it| table.state.iter().all(|state| state.name != **it)),
            )
            .next();
        if let Some(unknown) = unknown {
            return Err(format!(
                "{}: {}: what is '{unknown}'?",
                path.display(),
                work.name
            ));
        }
    }
    Ok(table)
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file())
}

/// One work at one place in one state, for some x.
struct Group<'a> {
    work: &'a Work,
    place: &'a Place,
    state: &'a State,
    x: Vec<&'a str>,
}

fn choose<'a>(table: &'a Table, asked: &Asked) -> Vec<Group<'a>> {
    let mut chosen = Vec::new();
    for work in &table.work {
        for place in &table.place {
            let places = match asked.quick && !work.quick_places.is_empty() {
                true => &work.quick_places,
                false => &work.places,
            };
            if !places.contains(&place.name) {
                continue;
            }
            let states = table
                .state
                .iter()
                .filter(|it| work.states.contains(&it.name));
            for state in states.filter(|it| it.quick || !asked.quick) {
                let xs = match asked.quick && !work.quick_x.is_empty() {
                    true => &work.quick_x,
                    false => &work.x,
                };
                let mut group = Group {
                    work,
                    place,
                    state,
                    x: Vec::new(),
                };
                let wanted = |x: &&str| {
                    let name = group.name(x);
                    asked.words.iter().all(|word| name.contains(word.as_str()))
                };
                let x = xs.iter().map(String::as_str).filter(wanted).collect();
                group.x = x;
                if !group.x.is_empty() {
                    chosen.push(group);
                }
            }
        }
    }
    chosen
}

/// The two sides of a line.
const SIDES: [&str; 2] = ["host", "ring3"];

/// One side, ready to be asked.
struct Side {
    bed: Bed,
    server: Option<Ended>,
    vars: BTreeMap<String, String>,
}

impl Group<'_> {
    fn name(&self, x: &str) -> String {
        let parts = [&self.work.name, x, &self.place.name, &self.state.name];
        let parts: Vec<&str> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        parts.join(", ")
    }

    fn names(&self) -> Vec<String> {
        self.x.iter().map(|x| self.name(x)).collect()
    }

    fn measure(&self, table: &str, asked: &Asked) -> Result<Vec<Line>, String> {
        for source in &self.work.sources {
            tool::compile(source)?;
        }
        let cpus = first_cpus(self.state.cpus)?;
        let _loops = match self.state.loops {
            0 => None,
            n => Some(busy_loops(n, &cpus)?),
        };
        let mut cgroups = Vec::new();
        if self.state.share > 0.0 {
            for side in SIDES {
                cgroups.push(Cgroup::make(side, self.state.share)?);
            }
        }
        let cgroup = |side: usize| cgroups.get(side).map_or_else(String::new, Cgroup::procs);
        let mut sides: [Option<Side>; 2] = [None, None];
        let rounds = asked.rounds.unwrap_or(if asked.quick { 3 } else { 5 });
        let seconds = match asked.quick {
            true => self.work.quick_seconds,
            false => self.work.seconds,
        };
        let mut port = 20000;
        let mut lines = Vec::new();
        for x in &self.x {
            let mut found: [Vec<Option<Values>>; 2] = [Vec::new(), Vec::new()];
            let mut failures = Vec::new();
            for turn in 0..rounds {
                for side in [turn % 2, 1 - turn % 2] {
                    port += 10;
                    let outcome = match &mut sides[side] {
                        Some(ready) => Ok(ready),
                        none => self
                            .ready(side, &cpus, &cgroup(side), port)
                            .map(|it| none.insert(it)),
                    }
                    .and_then(|ready| self.ask(ready, x, port, seconds));
                    found[side].push(match outcome {
                        Ok(values) => Some(values),
                        Err(why) => {
                            failures.push(format!("{}: {why}", SIDES[side]));
                            // Whatever is wrong with it, the next round has a new one.
                            self.end(sides[side].take());
                            None
                        }
                    });
                }
            }
            for why in &failures {
                eprintln!("{}: failed: {why}", self.name(x));
            }
            for measure in &self.work.measure {
                lines.push(self.line(table, x, measure, &found, &failures, rounds));
            }
        }
        for side in sides {
            self.end(side);
        }
        Ok(lines)
    }

    fn end(&self, side: Option<Side>) {
        if let Some(Side {
            server: Some(server),
            ..
        }) = side
        {
            server.end();
        }
    }

    fn ready(&self, side: usize, cpus: &str, cgroup: &str, port: u32) -> Result<Side, String> {
        let series = Series {
            name: SIDES[side].into(),
            bed: [self.place.host, self.place.ring3][side],
            peer: String::new(),
            node: Vec::new(),
            setup: Vec::new(),
            near_cpus: cpus.into(),
            far_cpus: cpus.into(),
            cgroup: cgroup.into(),
            vars: BTreeMap::new(),
        };
        let bed = Bed::make(&series)?;
        let bench = tool::root().join("bench").display().to_string();
        let mut side = Side {
            vars: BTreeMap::from([
                ("load".into(), tool::programs().display().to_string()),
                ("bench".into(), bench),
                ("addr".into(), bed.addr.to_string()),
                ("port".into(), port.to_string()),
            ]),
            server: None,
            bed,
        };
        if self.work.keep {
            let server = fill(&self.work.serve, &side.vars)?;
            side.server = Some(process::serve(side.bed.far(&server))?);
        }
        std::thread::sleep(SETTLE);
        Ok(side)
    }

    fn ask(&self, side: &mut Side, x: &str, port: u32, seconds: f64) -> Result<Values, String> {
        let mut vars = side.vars.clone();
        vars.insert("x".into(), x.into());
        vars.insert("seconds".into(), seconds.to_string());
        if !self.work.keep {
            vars.insert("port".into(), port.to_string());
        }
        let server = match self.work.keep {
            true => None,
            false => Some(process::serve(
                side.bed.far(&fill(&self.work.serve, &vars)?),
            )?),
        };
        let beside = match self.work.beside.is_empty() {
            true => None,
            false => Some(process::serve(
                side.bed.near(&fill(&self.work.beside, &vars)?),
            )?),
        };
        let near = side.bed.near(&fill(&self.work.ask, &vars)?);
        let values = process::ask(near, self.work.output, seconds);
        if let Some(beside) = beside {
            beside.end();
        }
        if let Some(server) = server {
            // It may end by itself, and has its moment to do so.
            drop(server);
        }
        values
    }

    fn line(
        &self,
        table: &str,
        x: &str,
        measure: &Measure,
        found: &[Vec<Option<Values>>; 2],
        failures: &[String],
        rounds: usize,
    ) -> Line {
        let get = |side: usize, turn: usize| found[side][turn].as_ref()?.get(&measure.key).copied();
        let all = |side| -> Vec<f64> { (0..rounds).filter_map(|turn| get(side, turn)).collect() };
        let ratios: Vec<f64> = (0..rounds)
            .filter_map(|turn| {
                let (host, ring3) = (get(0, turn)?, get(1, turn)?);
                Some(round(match measure.better {
                    Better::Less => host / ring3,
                    Better::More => ring3 / host,
                }))
            })
            .collect();
        let spread = |values: &[f64]| (!values.is_empty()).then(|| Spread::of(values));
        let ratio = spread(&ratios);
        // A line of which every fifth round or more failed is not met, whatever the others say.
        let enough = 5 * ratios.len() > 4 * (rounds - 1);
        let name = self.name(x);
        let State {
            cpus, loops, share, ..
        } = self.state;
        let mut ran = format!(
            "{}; serves: {}; asks: {}; on the host {:?}, on ring3 {:?}; {cpus} CPUs",
            self.work.what,
            self.work.serve.join(" "),
            self.work.ask.join(" "),
            self.place.host,
            self.place.ring3,
        );
        if *loops > 0 {
            let _ = write!(ran, ", {loops} busy loops on them");
        }
        if *share > 0.0 {
            let _ = write!(ran, ", {share} of one for all of it");
        }
        Line {
            measure: measure.key.clone(),
            unit: measure.unit.clone(),
            host: spread(&all(0)),
            ring3: spread(&all(1)),
            met: enough && ratio.as_ref().is_some_and(|it| it.median >= self.work.bar),
            ratio,
            bar: self.work.bar,
            rounds,
            command: format!("bench/run {table} '{name}'"),
            line: name,
            ran,
            failures: failures.to_vec(),
            stamp: Stamp::now(false),
        }
    }
}

fn fill(words: &[String], vars: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    words.iter().map(|word| figure::fill(word, vars)).collect()
}

/// The first CPUs that we may run on, as taskset -c takes them.
fn first_cpus(n: usize) -> Result<String, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .ok_or("/proc/self/status: no Cpus_allowed_list")?;
    let mut cpus: Vec<String> = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| {
            word.parse::<usize>()
                .map_err(|_| format!("not a CPU: '{word}'"))
        };
        cpus.extend((number(first)?..=number(last)?).map(|cpu| cpu.to_string()));
    }
    if cpus.len() < n {
        return Err(format!("{n} CPUs are needed, {} are there", cpus.len()));
    }
    cpus.truncate(n);
    Ok(cpus.join(","))
}

/// Ended when dropped.
struct Loops(Option<Ended>);

impl Drop for Loops {
    fn drop(&mut self) {
        if let Some(loops) = self.0.take() {
            loops.end();
        }
    }
}

fn busy_loops(n: u32, cpus: &str) -> Result<Loops, String> {
    let program = tool::compile("load/loops.c")?;
    let mut command = std::process::Command::new("taskset");
    command.args(["-c", cpus]).arg(program).arg(n.to_string());
    Ok(Loops(Some(process::serve(command)?)))
}

/// A cgroup with a share of a CPU, by v1's or v2's files; gone when this is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make(side: &str, share: f64) -> Result<Cgroup, String> {
        const PERIOD: u64 = 100_000; // us, the kernel's own
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let v2 = Path::new("/sys/fs/cgroup");
        let quota = (share * PERIOD as f64) as u64;
        let is_v1 = v1.join("cgroup.procs").exists();
        let root = if is_v1 { v1 } else { v2 };
        let folder = root.join(format!("r3b{}-{side}", std::process::id()));
        let why = |e: std::io::Error| format!("{}: {e}", folder.display());
        if !is_v1 {
            // It may be there already.
            let _ = std::fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        std::fs::create_dir(&folder).map_err(why)?;
        let made = Cgroup(folder.clone());
        let (file, text) = match is_v1 {
            true => ("cpu.cfs_quota_us", quota.to_string()),
            false => ("cpu.max", format!("{quota} {PERIOD}")),
        };
        std::fs::write(folder.join(file), text).map_err(why)?;
        Ok(made)
    }

    fn procs(&self) -> String {
        self.0.join("cgroup.procs").display().to_string()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its processes may need a moment to end.
        for _ in 0..40 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        eprintln!("bench: {} is left behind", self.0.display());
    }
}

fn load(path: &Path) -> Result<Kept, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Puts lines into the kept result, in the place of what is there of the same names.
fn keep(name: &str, table: &Table, made: &[Line]) -> Result<PathBuf, String> {
    let path = tool::results()?.join(format!("{name}.json"));
    let mut all = match path.exists() {
        true => load(&path)?.lines,
        false => Vec::new(),
    };
    for line in made {
        let same = |it: &&mut Line| it.line == line.line && it.measure == line.measure;
        match all.iter_mut().find(same) {
            Some(old) => *old = line.clone(),
            None => all.push(line.clone()),
        }
    }
    let result = Kept {
        name: name.into(),
        title: table.title.clone(),
        note: table.note.clone(),
        lines: all,
    };
    let text = serde_json::to_string_pretty(&result).map_err(|e| e.to_string())?;
    std::fs::write(&path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// As a table in Markdown.
fn shown(lines: &[Line], before: Option<&Kept>) -> String {
    let number = |value: f64| match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v < 0.1 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    };
    let median =
        |spread: &Option<Spread>| spread.map_or_else(|| "-".into(), |it| number(it.median));
    let mut out = String::from("| line | host | ");
    if before.is_some() {
        out.push_str("before | ratio before | ");
    }
    out.push_str("ring3 | ratio | quartiles | met | command |\n|---|---:|---:|---:|---|---|---|");
    if before.is_some() {
        out.push_str("---|---|");
    }
    out.push('\n');
    for line in lines {
        let _ = write!(
            out,
            "| {}: {}, {} | {} | ",
            line.line,
            line.measure,
            line.unit,
            median(&line.host)
        );
        if let Some(before) = before {
            let old = before
                .lines
                .iter()
                .find(|it| it.line == line.line && it.measure == line.measure);
            let (ring3, ratio) = old.map_or((None, None), |it| (it.ring3, it.ratio));
            let _ = write!(out, "{} | {} | ", median(&ring3), median(&ratio));
        }
        let quartiles = line.ratio.map_or_else(
            || "-".into(),
            |it| format!("{} to {}", number(it.quartiles[0]), number(it.quartiles[1])),
        );
        let failed = match line.failures.len() {
            0 => String::new(),
            n => format!(" ({n} failed)"),
        };
        let met = if line.met { "yes" } else { "no" };
        let _ = writeln!(
            out,
            "{} | {} | {quartiles} | {met}{failed} | `{}` |",
            median(&line.ring3),
            median(&line.ratio),
            line.command
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_reads() {
        for name in NAMES {
            let table = read(name).unwrap();
            let asked = Asked::default();
            let names: Vec<String> = choose(&table, &asked)
                .iter()
                .flat_map(Group::names)
                .collect();
            assert!(names.len() > 10);
            let mut once = names.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), names.len(), "{name}: two lines have one name");
            let quick = Asked {
                quick: true,
                ..Asked::default()
            };
            assert!(!choose(&table, &quick).is_empty());
        }
    }

    #[test]
    fn company_is_both_tables() {
        let names =
            |name| -> Vec<&str> { tables_of(name).unwrap().iter().map(|it| it.name).collect() };
        assert_eq!(names("company"), NAMES);
        assert_eq!(names("servers"), ["servers"]);
    }

    #[test]
    fn chooses_by_words() {
        let table = read("company").unwrap();
        let words = ["round trip", "link", "4 busy"].map(String::from).to_vec();
        let asked = Asked {
            words,
            ..Asked::default()
        };
        let names: Vec<String> = choose(&table, &asked)
            .iter()
            .flat_map(Group::names)
            .collect();
        assert_eq!(names, ["round trip, link, 4 busy loops"]);
    }
}
