// SPDX-License-Identifier: GPL-2.0
//! `ring3 metrics`: what the nodes count, in Prometheus' text format (version 0.0.4).
//!
//! Names are those that node_exporter makes of the same files of /proc/net, so that its dashboards and alerts fit:
//!
//! ```text
//! dev                 node_network_{receive,transmit}_{bytes,packets,errs,drop,...}_total{device}
//! snmp, netstat       node_netstat_PROTOCOL_NAME
//! snmp6               node_netstat_{Ip6,Icmp6,Udp6,UdpLite6}_NAME
//! sockstat, sockstat6 node_sockstat_PROTOCOL_NAME
//! ```
//!
//! The format wants all samples of a name together: they are collected by name first.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ring3_node::client::{self, Client, Counters, State, Status};

use crate::args;
use crate::error::{Failure, Result};
use crate::say;

/// Columns of /proc/net/dev, as node_exporter calls them.
const DEV_RECEIVE: [&str; 8] = [
    "bytes",
    "packets",
    "errs",
    "drop",
    "fifo",
    "frame",
    "compressed",
    "multicast",
];
const DEV_TRANSMIT: [&str; 8] = [
    "bytes",
    "packets",
    "errs",
    "drop",
    "fifo",
    "colls",
    "carrier",
    "compressed",
];

/// Time in which a scraper has to ask and to take the answer; Prometheus' own limit is 10 s.
const PATIENCE: Duration = Duration::from_secs(5);
/// A request's head of more bytes is not a scraper's.
const HEAD_MAX: u64 = 8 << 10;
/// How often to try again what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

pub fn metrics(args: &args::Metrics) -> Result<()> {
    match args.listen {
        Some(address) => serve(address),
        None => say::print(collect()?),
    }
}

/// Samples by name. The value of each is its lines.
#[derive(Debug, Default)]
struct Samples(BTreeMap<String, Family>);

#[derive(Debug)]
struct Family {
    kind: &'static str,
    lines: String,
}

impl Samples {
    fn add(&mut self, name: &str, kind: &'static str, labels: &[(&str, &str)], value: &str) {
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family {
            kind,
            lines: String::new(),
        });
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escape(value)))
            .collect();
        family.lines += &format!("{name}{{{}}} {value}\n", labels.join(","));
    }

    fn text(&self) -> String {
        let families = self.0.iter();
        families
            .map(|(name, family)| format!("# TYPE {name} {}\n{}", family.kind, family.lines))
            .collect()
    }
}

/// An interface can have a quote in its name.
fn escape(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// All nodes, asked at the same time.
fn collect() -> Result<String> {
    let nodes = client::list()?;
    let counters: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .iter()
            .map(|(name, _)| scope.spawn(|| Client::open(name)?.counters()))
            .collect();
        threads.into_iter().map(|it| it.join().ok()).collect()
    });
    let mut samples = Samples::default();
    for ((name, status), counters) in nodes.iter().zip(counters) {
        let counters = counters.and_then(|counters| counters.ok());
        if let Ok(status) = status {
            keeper(&mut samples, status);
        }
        let success = if counters.is_some() { "1" } else { "0" };
        let labels = [("node", name.as_str())];
        samples.add("ring3_node_scrape_success", "gauge", &labels, success);
        if let Some(counters) = counters {
            kernel(&mut samples, name, &counters);
        }
    }
    Ok(samples.text())
}

/// One node's, as far as it answers.
pub fn of_node(name: &str) -> String {
    let mut samples = Samples::default();
    let counters = Client::open(name).and_then(|node| node.counters());
    if let Ok(counters) = counters {
        kernel(&mut samples, name, &counters);
    }
    samples.text()
}

/// Samples from the keeper.
fn keeper(samples: &mut Samples, status: &Status) {
    let node = ("node", status.name.as_str());
    let mut gauge = |name: &str, value: String| samples.add(name, "gauge", &[node], &value);
    let is_up = u8::from(status.state == State::Up);
    gauge("ring3_node_up", is_up.to_string());
    gauge(
        "ring3_node_uptime_seconds",
        format!("{:.3}", status.uptime_ns as f64 / 1e9),
    );
    gauge("ring3_node_memory_bytes", status.mem.size.to_string());
    gauge(
        "ring3_node_memory_resident_bytes",
        status.mem.resident.to_string(),
    );
    gauge("ring3_node_programs", status.procs.len().to_string());
    for (way, count) in [
        ("rewritten", status.calls.rewritten),
        ("trapped", status.calls.trapped),
    ] {
        let labels = [node, ("way", way)];
        samples.add(
            "ring3_node_calls_total",
            "counter",
            &labels,
            &count.to_string(),
        );
    }
    samples.add(
        "ring3_node_host_calls_total",
        "counter",
        &[node],
        &status.calls.host.to_string(),
    );
}

/// Samples from the kernel's counters.
fn kernel(samples: &mut Samples, node: &str, counters: &Counters) {
    interfaces(samples, node, &counters.dev);
    for text in [&counters.snmp, &counters.netstat] {
        protocols(samples, node, text);
    }
    protocols6(samples, node, &counters.snmp6);
    for text in [&counters.sockstat, &counters.sockstat6] {
        sockets(samples, node, text);
    }
}

/// /proc/net/dev: two lines of heads, then `NAME: 8 columns received, 8 transmitted`.
fn interfaces(samples: &mut Samples, node: &str, text: &str) {
    let columns = DEV_RECEIVE.map(|column| ("receive", column));
    let columns = columns
        .into_iter()
        .chain(DEV_TRANSMIT.map(|column| ("transmit", column)));
    for line in text.lines() {
        let Some((device, values)) = line.rsplit_once(':') else {
            continue;
        };
        let labels = [("node", node), ("device", device.trim())];
        for ((way, column), value) in columns.clone().zip(values.split_whitespace()) {
            let name = format!("node_network_{way}_{column}_total");
            samples.add(&name, "counter", &labels, value);
        }
    }
}

/// /proc/net/snmp and netstat: pairs of lines, `Tcp: NAME...` and `Tcp: VALUE...`.
fn protocols(samples: &mut Samples, node: &str, text: &str) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((protocol, names)), Some((_, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            return;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            let name = format!("node_netstat_{protocol}_{name}");
            samples.add(&name, "untyped", &[("node", node)], value);
        }
    }
}

/// /proc/net/snmp6: `Ip6InReceives VALUE`, one a line.
fn protocols6(samples: &mut Samples, node: &str, text: &str) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        let Some((protocol, name)) = name.split_once('6') else {
            continue;
        };
        let name = format!("node_netstat_{protocol}6_{name}");
        samples.add(&name, "untyped", &[("node", node)], value);
    }
}

/// /proc/net/sockstat: `TCP: inuse 3 orphan 0`.
fn sockets(samples: &mut Samples, node: &str, text: &str) {
    for line in text.lines() {
        let Some((protocol, pairs)) = line.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = pairs.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            let name = format!("node_sockstat_{protocol}_{}", pair[0]);
            samples.add(&name, "gauge", &[("node", node)], pair[1]);
        }
    }
}

fn serve(address: SocketAddr) -> Result<()> {
    let fail = || Failure::host(format!("listen on {address}"));
    let listener = TcpListener::bind(address).map_err(fail())?;
    let bound = listener.local_addr().map_err(fail())?;
    say::print(format!("http://{bound}/metrics\n"))?;
    loop {
        match listener.accept() {
            // One that goes away, or says nothing, has no answer; the next one has.
            Ok((stream, _)) => drop(answer(&stream)),
            // Out of descriptors, most likely: whoever waits is still there next time.
            Err(_) => std::thread::sleep(HOST_TROUBLE_TURN),
        }
    }
}

/// One request and one answer.
fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = request_line(stream)?;
    let (status, body) = match line.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics" | "/"] => match collect() {
            Ok(text) => ("200 OK", text),
            Err(failure) => ("500 Internal Server Error", format!("{failure}\n")),
        },
        ["GET", _] => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "use GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Reads the head, all of it: what is left unread would cost the reader our answer.
fn request_line(stream: &TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    let mut bytes = std::io::BufReader::new(stream.take(HEAD_MAX)).bytes();
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        head.push(bytes.next().ok_or(std::io::ErrorKind::UnexpectedEof)??);
    }
    let head = String::from_utf8_lossy(&head);
    Ok(head.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as Linux 6.12 writes them, and the lines that node_exporter 1.8 makes of them, but for the label.
    #[test]
    fn names_are_those_of_node_exporter() {
        let counters = Counters {
            dev: "Inter-|   Receive  |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:     100       2    0    0    0     0          0         0      101       3    4    0    0     0       0          0\n".into(),
            snmp: "Tcp: InSegs RetransSegs MaxConn\nTcp: 7 8 -1\n".into(),
            snmp6: "Ip6InReceives                   \t9\nIcmp6InType134\t2\n".into(),
            netstat: "TcpExt: SyncookiesSent ListenDrops\nTcpExt: 1 2\n".into(),
            sockstat: "sockets: used 5\nTCP: inuse 3 orphan 0 tw 1 alloc 4 mem 2\n".into(),
            sockstat6: "TCP6: inuse 6\n".into(),
        };
        let mut samples = Samples::default();
        kernel(&mut samples, "a", &counters);
        let text = samples.text();
        for line in [
            "# TYPE node_network_receive_bytes_total counter",
            "node_network_receive_bytes_total{node=\"a\",device=\"lo\"} 100",
            "node_network_transmit_packets_total{node=\"a\",device=\"lo\"} 3",
            "node_network_transmit_errs_total{node=\"a\",device=\"lo\"} 4",
            "node_netstat_Tcp_RetransSegs{node=\"a\"} 8",
            "node_netstat_Tcp_MaxConn{node=\"a\"} -1",
            "node_netstat_TcpExt_ListenDrops{node=\"a\"} 2",
            "node_netstat_Ip6_InReceives{node=\"a\"} 9",
            "node_netstat_Icmp6_InType134{node=\"a\"} 2",
            "node_sockstat_sockets_used{node=\"a\"} 5",
            "node_sockstat_TCP_mem{node=\"a\"} 2",
            "node_sockstat_TCP6_inuse{node=\"a\"} 6",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn samples_of_a_name_stand_together() {
        let mut samples = Samples::default();
        for node in ["a", "b"] {
            samples.add("y", "gauge", &[("node", node)], "1");
            samples.add("x", "gauge", &[("node", node)], "2");
        }
        assert_eq!(
            samples.text(),
            "# TYPE x gauge\nx{node=\"a\"} 2\nx{node=\"b\"} 2\n# TYPE y gauge\ny{node=\"a\"} 1\ny{node=\"b\"} 1\n"
        );
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escape("a\"b\\c"), "a\\\"b\\\\c");
    }
}
