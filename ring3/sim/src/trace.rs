// SPDX-License-Identifier: GPL-2.0
//! Links that follow a file: how rate, delay and losses change over time.
//!
//! Two kinds of files. A table begins with the names of its columns:
//!
//! ```text
//! time,rate,delay,loss
//! 0,20 Mbit,30 ms,0
//! 2.5 s,3 Mbit,80 ms,1 %
//! 10 s
//! ```
//!
//! An empty value is what the link itself says. A last row that has a time only is the end: from there the table begins
//! again. Else its last values stay. A file of numbers is one of Mahimahi's: at each of these milliseconds a packet may
//! leave. It becomes rates over [`BIN`], and is repeated as Mahimahi does.

use std::path::Path;
use std::time::Duration;

use crate::scenario::{Action, Event, Link, Wire};
use crate::units::{rate, share, time, Bare, Rate};

/// Packets of Mahimahi's that make a rate: long enough for 120 kbit/s, and short beside what a link's users notice.
const BIN: Duration = Duration::from_millis(100);
/// Bytes of a packet of Mahimahi's.
const PACKET: u64 = 1504;
/// A link at which nothing leaves for a while: a byte in a second.
const STILL: Rate = Rate(8);
const COLUMNS: [&str; 5] = ["time", "rate", "delay", "jitter", "loss"];

#[derive(Debug, Clone, Default, PartialEq)]
struct Row {
    at: Duration,
    rate: Option<Rate>,
    delay: Option<Duration>,
    jitter: Option<Duration>,
    loss: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Trace {
    rows: Vec<Row>,
    /// When it begins again.
    length: Option<Duration>,
}

/// What the traces of all links make of them. The error is for people, and names file and line.
pub fn events(links: &[Link], stop: Duration) -> Result<Vec<Event>, (usize, String)> {
    let mut events = Vec::new();
    for (i, link) in links.iter().enumerate() {
        let mut changes: Vec<(Duration, usize, Row)> = Vec::new();
        for (side, wire) in link.wires.iter().enumerate() {
            let Some(path) = &wire.trace else { continue };
            let trace = read(path).map_err(|why| (i, why))?;
            changes.extend(trace.unrolled(stop).map(|row| (row.at, side, row)));
        }
        changes.sort_by_key(|(at, side, _)| (*at, *side));
        let mut now = link.wires.clone();
        let mut rest = changes.as_slice();
        while let Some((at, ..)) = rest.first() {
            let at = *at;
            let count = rest.iter().take_while(|(other, ..)| *other == at).count();
            for (_, side, row) in &rest[..count] {
                row.onto(&link.wires[*side], &mut now[*side]);
            }
            rest = &rest[count..];
            let what = Action::LinkFollows(link.name.clone(), Box::new(now.clone()));
            events.push(Event { at, what });
        }
    }
    Ok(events)
}

impl Row {
    fn onto(&self, base: &Wire, wire: &mut Wire) {
        wire.rate = self.rate.or(base.rate);
        wire.delay = self.delay.unwrap_or(base.delay);
        wire.jitter = self.jitter.unwrap_or(base.jitter);
        wire.loss = self.loss.unwrap_or(base.loss);
    }
}

impl Trace {
    fn unrolled(self, stop: Duration) -> impl Iterator<Item = Row> {
        let length = self.length;
        let rounds = (0u32..).map_while(move |round| match (round, length) {
            (0, _) => Some(Duration::ZERO),
            (_, Some(length)) => length.checked_mul(round).filter(|begin| *begin < stop),
            (_, None) => None,
        });
        rounds.flat_map(move |begin| {
            let rows = self.rows.clone().into_iter();
            let rows = rows.map(move |row| Row {
                at: begin + row.at,
                ..row
            });
            rows.take_while(move |row| row.at < stop)
        })
    }
}

fn read(path: &Path) -> Result<Trace, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|why| format!("cannot read {}: {why}", path.display()))?;
    parse(&text).map_err(|(line, why)| format!("{}, line {line}: {why}", path.display()))
}

fn parse(text: &str) -> Result<Trace, (usize, String)> {
    let mut lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    match lines.peek() {
        None => Err((1, "it is empty".into())),
        Some((_, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => mahimahi(lines),
        Some(_) => table(lines),
    }
}

fn table<'a>(mut lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, (usize, String)> {
    let (first, names) = lines.next().unwrap_or_default();
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let unknown = names.iter().find(|name| !COLUMNS.contains(name));
    if names.first() != Some(&"time") || unknown.is_some() {
        let known = COLUMNS.join(", ");
        return Err((
            first,
            format!("the first line names columns of {known}; `time` is the first"),
        ));
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut length = None;
    for (number, line) in lines {
        let wrong = |what: &str| (number, format!("`{line}`: {what}"));
        if length.is_some() {
            return Err(wrong(
                "a row after one that has a time only, which is the end",
            ));
        }
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        if values.len() > names.len() {
            return Err(wrong("more values than columns"));
        }
        let mut row = Row::default();
        for (name, value) in names
            .iter()
            .zip(&values)
            .filter(|(_, value)| !value.is_empty())
        {
            let is_read = match *name {
                "time" => time(value, Bare::Seconds).map(|it| row.at = it),
                "rate" => rate(value).map(|it| row.rate = Some(it)),
                "delay" => time(value, Bare::Seconds).map(|it| row.delay = Some(it)),
                "jitter" => time(value, Bare::Seconds).map(|it| row.jitter = Some(it)),
                _ => share(value).map(|it| row.loss = Some(it)),
            };
            is_read.ok_or_else(|| wrong(&format!("`{value}` is no {name}")))?;
        }
        if rows.last().is_some_and(|before| before.at >= row.at) {
            return Err(wrong("its time is not after that of the row before"));
        }
        match values.iter().skip(1).all(|value| value.is_empty()) && !rows.is_empty() {
            true => length = Some(row.at),
            false => rows.push(row),
        }
    }
    match rows.is_empty() {
        true => Err((first, "no row follows".into())),
        false => Ok(Trace { rows, length }),
    }
}

fn mahimahi<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Result<Trace, (usize, String)> {
    let mut counts: Vec<u64> = Vec::new();
    let mut last = 0;
    for (number, line) in lines {
        let ms: u64 = line
            .parse()
            .map_err(|_| (number, format!("`{line}` is no number of milliseconds")))?;
        if ms < last {
            return Err((number, format!("{ms} is less than the line before")));
        }
        last = ms;
        // What may leave at the end of a bin still belongs to it.
        let bin =
            usize::try_from(ms.saturating_sub(1) / BIN.as_millis() as u64).unwrap_or(usize::MAX);
        if bin > 10_000_000 {
            return Err((number, "more than eleven days".into()));
        }
        counts.resize(counts.len().max(bin + 1), 0);
        counts[bin] += 1;
    }
    if last == 0 {
        return Err((1, "it has no length: its last millisecond is 0".into()));
    }
    let length = Duration::from_millis(last);
    let mut rows: Vec<Row> = Vec::new();
    for (at, count) in (0u32..).map(|bin| BIN * bin).zip(counts) {
        let nanos =
            u128::from(count * PACKET * 8) * 1_000_000_000 / BIN.min(length - at).as_nanos();
        let rate = Some(Rate(nanos as u64).max(STILL));
        if rows.last().is_none_or(|before| before.rate != rate) {
            rows.push(Row {
                at,
                rate,
                ..Row::default()
            });
        }
    }
    Ok(Trace {
        rows,
        length: Some(length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(trace: Trace, stop: u64) -> Vec<(u128, Option<u64>)> {
        let rows = trace.unrolled(Duration::from_secs(stop));
        rows.map(|row| (row.at.as_millis(), row.rate.map(|rate| rate.0)))
            .collect()
    }

    #[test]
    fn a_table_with_an_end_begins_again() {
        let text = "# measured on a train\ntime,rate,loss\n0,1 Mbit,\n1.5 s,2 Mbit,1 %\n2 s\n";
        let trace = parse(text).unwrap();
        assert_eq!(trace.rows[1].loss, Some(0.01));
        let (one, two) = (Some(1_000_000), Some(2_000_000));
        let want = [(0, one), (1500, two), (2000, one), (3500, two), (4000, one)];
        assert_eq!(times(trace, 5), want);
    }

    #[test]
    fn a_table_without_one_ends_with_its_last_row() {
        let trace = parse("time,delay\n0,1 ms\n1,2 ms\n").unwrap();
        assert_eq!(times(trace, 60), [(0, None), (1000, None)]);
    }

    #[test]
    fn milliseconds_become_rates() {
        // Ten packets in the first 100 ms, none in the next, one in the last 50.
        let text = "10\n20\n30\n40\n50\n60\n70\n80\n90\n100\n250\n";
        let trace = parse(text).unwrap();
        let rates = [(0, Some(1_203_200)), (100, Some(8)), (200, Some(240_640))];
        assert_eq!(times(trace.clone(), 1)[..3], rates);
        assert_eq!(times(trace, 1)[3], (250, Some(1_203_200)));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, line, words) in [
            ("", 1, "empty"),
            ("rate,time\n", 1, "first line"),
            ("time,speed\n", 1, "first line"),
            ("time,rate\n", 1, "no row"),
            ("time,rate\n0,fast\n", 2, "`fast` is no rate"),
            ("time,rate\n1,1 Mbit\n\n1,2 Mbit\n", 4, "not after"),
            ("time,rate\n0,1 Mbit\n9\n10,1 Mbit\n", 4, "the end"),
            ("time,rate\n0,1 Mbit,3\n", 2, "more values"),
            ("5\nx\n", 2, "no number"),
            ("5\n4\n", 2, "less than"),
            ("0\n", 1, "no length"),
        ] {
            let (at, why) = parse(text).unwrap_err();
            assert!(at == line && why.contains(words), "{text}: {at} {why}");
        }
    }
}
