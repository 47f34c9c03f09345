// SPDX-License-Identifier: GPL-2.0
//! The figures of each node: rates since the last look.

use std::collections::HashMap;
use std::time::Instant;

use ring3_node::client::{self, Client, Counters, Status};

use crate::error::Result;
use crate::nodes::{duration, words_without_answer};
use crate::watch::{Line, Reading};

/// USER_HZ, which is 100 on x86 (asm/param.h): the unit of times in /proc/PID/stat.
const TICKS_PER_SECOND: f64 = 100.0;

/// A node as it was at one look.
#[derive(Debug, Clone)]
struct Was {
    at: Instant,
    reading: Reading,
    ticks: HashMap<i32, u64>,
}

#[derive(Debug)]
pub struct Watch(HashMap<String, Was>);

/// A node now.
#[derive(Debug, Clone)]
pub struct Row {
    pub name: String,
    /// Up, poisoned ..., as `ring3 ls` has it.
    pub state: String,
    /// Why it does not answer.
    pub why: Option<String>,
    pub status: Option<Status>,
    /// `None`: it is new, or its kernel does not answer.
    pub line: Option<Line>,
    /// Per cent of one CPU: its keeper's, its ports' processes' and its programs'.
    pub cpu: f64,
}

impl Watch {
    pub fn start() -> Result<Watch> {
        let mut watch = Watch(HashMap::new());
        watch.look()?;
        Ok(watch)
    }

    /// Asks all nodes at the same time.
    pub fn look(&mut self) -> Result<Vec<Row>> {
        let nodes = client::list()?;
        let counters: Vec<Option<Counters>> = std::thread::scope(|scope| {
            let ask = |name: &str| Client::open(name).ok()?.counters().ok();
            let threads: Vec<_> = nodes
                .iter()
                .map(|(name, status)| status.is_ok().then(|| scope.spawn(move || ask(name))))
                .collect();
            let joined = threads.into_iter().map(|it| it?.join().ok().flatten());
            joined.collect()
        });
        let mut now = HashMap::new();
        let mut rows = Vec::new();
        for ((name, status), counters) in nodes.into_iter().zip(counters) {
            let status = match status {
                Ok(status) => status,
                Err(why) => {
                    rows.push(Row::silent(name, &why));
                    continue;
                }
            };
            let ticks = ticks(&status);
            let was = self.0.get(&name);
            let is = counters.map(|counters| Was {
                at: Instant::now(),
                reading: Reading::of(&status, &counters),
                ticks,
            });
            rows.push(Row::between(name.clone(), status, was, is.as_ref()));
            now.extend(is.map(|is| (name, is)));
        }
        self.0 = now;
        Ok(rows)
    }
}

/// CPU time of each process of the node.
fn ticks(status: &Status) -> HashMap<i32, u64> {
    let ports = status.ports.iter().filter_map(|port| port.pid);
    let programs = status.procs.iter().map(|proc| proc.pid);
    let pids = std::iter::once(status.pid).chain(ports).chain(programs);
    pids.filter_map(|pid| {
        Some((
            pid,
            ticks_of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?,
        ))
    })
    .collect()
}

/// utime and stime, fields 14 and 15 of /proc/PID/stat; the name in field 2 may have anything in it.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split_ascii_whitespace().skip(14 - 3);
    let user: u64 = words.next()?.parse().ok()?;
    Some(user + words.next()?.parse::<u64>().ok()?)
}

impl Row {
    pub const HEAD: [&'static str; 13] = [
        "NODE",
        "STATE",
        "UP",
        "CPU %",
        "IN Mbit/s",
        "IN pkt/s",
        "OUT Mbit/s",
        "OUT pkt/s",
        "DROP/s",
        "RETR/s",
        "CALLS/s",
        "SOCKETS",
        "MiB",
    ];

    fn silent(name: String, error: &ring3_node::Error) -> Row {
        let (state, why) = words_without_answer(error);
        Row {
            name,
            state,
            why,
            status: None,
            line: None,
            cpu: 0.0,
        }
    }

    fn between(name: String, status: Status, was: Option<&Was>, is: Option<&Was>) -> Row {
        let pair = was.zip(is);
        let line = pair.map(|(was, is)| Line::between(was.reading, is.reading, is.at - was.at));
        let cpu = pair.map_or(0.0, |(was, is)| {
            // One that has come since may have been busy elsewhere before: it counts from now on.
            let spent = is.ticks.iter().map(|(pid, ticks)| {
                let before = was.ticks.get(pid).copied().unwrap_or(*ticks);
                ticks.saturating_sub(before)
            });
            let seconds = (is.at - was.at).as_secs_f64().max(1e-3);
            spent.sum::<u64>() as f64 * 100.0 / TICKS_PER_SECOND / seconds
        });
        Row {
            state: status.state.to_string(),
            why: None,
            name,
            status: Some(status),
            line,
            cpu,
        }
    }

    /// The keys of `ring3 stat --watch --json`, and the node's. Rates are left out where there are none.
    pub fn json(&self) -> serde_json::Value {
        let mut all = serde_json::json!({ "name": self.name, "state": self.state });
        if let Some(why) = &self.why {
            all["error"] = why.clone().into();
        }
        if let Some(status) = &self.status {
            all["uptime_ns"] = status.uptime_ns.into();
        }
        if let Some(line) = &self.line {
            all["cpu_percent"] = self.cpu.into();
            if let (Some(all), serde_json::Value::Object(line)) =
                (all.as_object_mut(), serde_json::json!(line))
            {
                all.extend(line);
            }
        }
        all
    }

    pub fn cells(&self) -> [String; 13] {
        let up = self.status.as_ref().map(|it| duration(it.uptime_ns));
        let mut cells: [String; 13] = Default::default();
        cells[0].clone_from(&self.name);
        cells[1].clone_from(&self.state);
        cells[2] = up.unwrap_or_default();
        if let Some(line) = &self.line {
            cells[3] = format!("{:.1}", self.cpu);
            for (cell, figure) in cells[4..].iter_mut().zip(line.figures()) {
                *cell = figure;
            }
        }
        cells
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Name,
    Cpu,
    Traffic,
    Memory,
}

impl Sort {
    pub fn next(self) -> Sort {
        match self {
            Sort::Name => Sort::Cpu,
            Sort::Cpu => Sort::Traffic,
            Sort::Traffic => Sort::Memory,
            Sort::Memory => Sort::Name,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Cpu => "CPU",
            Sort::Traffic => "traffic",
            Sort::Memory => "memory",
        }
    }

    /// The largest first; those of one size by name.
    pub fn apply(self, rows: &mut [Row]) {
        let key = |row: &Row| match (self, &row.line) {
            (Sort::Name, _) | (_, None) => 0.0,
            (Sort::Cpu, _) => row.cpu,
            (Sort::Traffic, Some(line)) => line.bits(),
            (Sort::Memory, Some(line)) => line.memory() as f64,
        };
        rows.sort_by(|a, b| key(b).total_cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn row(name: &str, cpu: f64) -> Row {
        Row {
            name: name.to_owned(),
            state: "up".to_owned(),
            why: None,
            status: None,
            line: None,
            cpu,
        }
    }

    #[test]
    fn times_of_a_process() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("7 (a"), None);
    }

    #[test]
    fn the_busiest_first() {
        let mut rows = vec![row("c", 1.0), row("a", 1.0), row("b", 2.0)];
        for row in &mut rows {
            row.line = Some(Line::default());
        }
        let names = |rows: &[Row]| rows.iter().map(|row| row.name.clone()).collect::<String>();
        Sort::Cpu.apply(&mut rows);
        assert_eq!(names(&rows), "bac");
        Sort::Name.apply(&mut rows);
        assert_eq!(names(&rows), "abc");
        assert_eq!(Sort::Memory.next(), Sort::Name);
    }
}
