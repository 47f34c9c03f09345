// SPDX-License-Identifier: GPL-2.0
//! `ring3 stat NODE --watch`: what a node does, a line each second or so, as vmstat(8) shows a host.

use std::io::{ErrorKind, Write};
use std::time::{Duration, Instant};

use ring3_node::client::{Client, Counters, Status};
use ring3_node::Error;
use serde::Serialize;

use crate::error::{Failure, Result};

/// Lines between two heads: they stay in sight on a terminal of 24 lines.
const LINES_PER_HEAD: usize = 20;

/// Sums since the node's start, and how things are now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    received: [u64; 2],
    sent: [u64; 2],
    dropped: u64,
    retransmitted: u64,
    calls: u64,
    sockets: u64,
    memory: u64,
}

/// The figures shown: rates are per second, of all interfaces but loopback.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Line {
    received_bytes: f64,
    received_packets: f64,
    sent_bytes: f64,
    sent_packets: f64,
    dropped_packets: f64,
    tcp_retransmitted: f64,
    calls: f64,
    /// TCP and UDP sockets now.
    sockets: u64,
    /// Bytes of the host's memory now.
    memory: u64,
}

/// Shows until the node goes down or nobody reads any more.
pub fn watch(name: &str, every: Duration, json: bool) -> Result<()> {
    let node = Client::open(name)?;
    let mut before = (Instant::now(), read(&node)?);
    for number in 0.. {
        std::thread::sleep(every);
        let now = match read(&node) {
            Ok(reading) => (Instant::now(), reading),
            Err(Error::NoSuchNode { .. } | Error::Ending { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let line = Line::between(before.1, now.1, now.0 - before.0);
        before = now;
        let mut text = String::new();
        if json {
            text = serde_json::to_string(&line).map_err(|e| Failure::host("print")(e.into()))?;
        } else {
            if number % LINES_PER_HEAD == 0 {
                text = head() + "\n";
            }
            text += &line.text();
        }
        text.push('\n');
        let mut out = std::io::stdout();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(why) if why.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(Failure::host("write to standard output"))?,
        }
    }
    Ok(())
}

fn read(node: &Client) -> Result<Reading, Error> {
    Ok(Reading::of(&node.status()?, &node.counters()?))
}

impl Reading {
    pub fn of(status: &Status, counters: &Counters) -> Reading {
        let dev = interfaces(&counters.dev);
        Reading {
            received: [dev[0], dev[1]],
            sent: [dev[8], dev[9]],
            dropped: dev[3] + dev[11],
            retransmitted: counter(&counters.snmp, "Tcp:", "RetransSegs"),
            calls: status.calls.rewritten + status.calls.trapped,
            sockets: in_use(&counters.sockstat) + in_use(&counters.sockstat6),
            memory: status.mem.resident,
        }
    }
}

impl Line {
    pub fn between(before: Reading, now: Reading, time: Duration) -> Line {
        // A thread tells of its calls by dozens, an interface that was removed takes its counts along.
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / time.as_secs_f64();
        Line {
            received_bytes: rate(before.received[0], now.received[0]),
            received_packets: rate(before.received[1], now.received[1]),
            sent_bytes: rate(before.sent[0], now.sent[0]),
            sent_packets: rate(before.sent[1], now.sent[1]),
            dropped_packets: rate(before.dropped, now.dropped),
            tcp_retransmitted: rate(before.retransmitted, now.retransmitted),
            calls: rate(before.calls, now.calls),
            sockets: now.sockets,
            memory: now.memory,
        }
    }

    /// As the head of `stat --watch` has them.
    pub fn figures(&self) -> [String; 9] {
        [
            format!("{:.2}", self.received_bytes * 8.0 / 1e6),
            format!("{:.0}", self.received_packets),
            format!("{:.2}", self.sent_bytes * 8.0 / 1e6),
            format!("{:.0}", self.sent_packets),
            format!("{:.0}", self.dropped_packets),
            format!("{:.0}", self.tcp_retransmitted),
            format!("{:.0}", self.calls),
            self.sockets.to_string(),
            (self.memory >> 20).to_string(),
        ]
    }

    /// Of both ways, a second.
    pub fn bits(&self) -> f64 {
        (self.received_bytes + self.sent_bytes) * 8.0
    }

    pub fn memory(&self) -> u64 {
        self.memory
    }

    fn text(&self) -> String {
        let figures = self.figures().into_iter().zip(WIDTHS);
        let columns = figures.map(|(figure, width)| format!("{figure:>width$}"));
        columns.collect::<Vec<_>>().join(" ")
    }
}

/// Of the columns.
const WIDTHS: [usize; 9] = [10, 10, 10, 10, 8, 8, 10, 8, 8];

fn head() -> String {
    format!(
        "{:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>10} {:>8} {:>8}",
        "in Mbit/s",
        "in pkt/s",
        "out Mbit/s",
        "out pkt/s",
        "drop/s",
        "retr/s",
        "calls/s",
        "sockets",
        "MiB"
    )
}

/// The sixteen columns of /proc/net/dev, each the sum of all interfaces but loopback.
fn interfaces(text: &str) -> [u64; 16] {
    let mut sums = [0; 16];
    for line in text.lines() {
        let Some((name, values)) = line.rsplit_once(':') else {
            continue;
        };
        if name.trim() == "lo" {
            continue;
        }
        for (sum, value) in sums.iter_mut().zip(values.split_whitespace()) {
            *sum += value.parse::<u64>().unwrap_or(0);
        }
    }
    sums
}

/// A value of /proc/net/snmp, whose lines are pairs: names, and values below them.
fn counter(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(have, _)| *have == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// TCP and UDP sockets of /proc/net/sockstat or sockstat6.
fn in_use(text: &str) -> u64 {
    let lines = text.lines().filter_map(|line| line.split_once(": inuse "));
    lines
        .filter(|(protocol, _)| matches!(*protocol, "TCP" | "UDP" | "TCP6" | "UDP6"))
        .filter_map(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_linux_writes() {
        let dev = " face |bytes packets\n    lo: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n  x: 100 2 0 3 0 0 0 0 50 1 0 4 0 0 0 0\n  y: 1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n";
        let sums = interfaces(dev);
        assert_eq!((sums[0], sums[1], sums[3]), (101, 3, 3));
        assert_eq!((sums[8], sums[9], sums[11]), (52, 2, 4));
        let snmp = "Ip: RetransSegs\nIp: 1\nTcp: InSegs RetransSegs\nTcp: 7 8\n";
        assert_eq!(counter(snmp, "Tcp:", "RetransSegs"), 8);
        let sockstat = "sockets: used 9\nTCP: inuse 3 orphan 0\nUDP: inuse 2 mem 0\nRAW: inuse 4\n";
        assert_eq!(in_use(sockstat), 5);
    }

    #[test]
    fn rates_are_per_second() {
        let before = Reading {
            received: [0, 0],
            sent: [0, 10],
            dropped: 5,
            retransmitted: 0,
            calls: 0,
            sockets: 1,
            memory: 1 << 20,
        };
        let now = Reading {
            received: [1000, 4],
            sent: [0, 12],
            dropped: 2,
            ..before
        };
        let line = Line::between(before, now, Duration::from_secs(2));
        assert_eq!((line.received_bytes, line.received_packets), (500.0, 2.0));
        assert_eq!((line.sent_packets, line.dropped_packets), (1.0, 0.0));
        assert_eq!(line.text().split_whitespace().count(), 9);
    }
}
