// SPDX-License-Identifier: GPL-2.0
//! Queues: the words for `tc` and `nft` that make rates, delays and losses.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use crate::address::Addresses;
use crate::graph::Way;
use crate::scenario::{Host, Wire};
use crate::units::Rate;

/// A frame of Ethernet: 1,500 bytes and its header.
const FRAME: u64 = 1514;
/// What waits at an interface unless said otherwise: as many packets as a Linux interface has by default.
const QUEUE_BYTES: u64 = 1000 * FRAME;
/// Packets on their way at once; a place in netem's queue costs nothing until it is used.
const FLYING: u32 = 1_000_000;
/// What a host gets while it has no limit.
const FREE: Rate = Rate(100_000_000_000);

/// The bytes that may go at once: two frames, or what the rate sends in 50 us.
fn burst(rate: Rate) -> u64 {
    (2 * FRAME).max(rate.0 / 8 / 20_000)
}

/// What a sender's interface does: limits the rate, with a queue before it.
pub fn egress(
    dev: &str,
    rate: Option<Rate>,
    queue: Option<&str>,
    limit: Option<u64>,
) -> Vec<String> {
    let Some(rate) = rate else {
        return queue
            .map(|queue| format!("qdisc replace dev {dev} root handle 1: {queue}"))
            .into_iter()
            .collect();
    };
    let bits = rate.0;
    let queue = queue.filter(|queue| *queue != "fifo");
    if let Some(rest) = queue.and_then(|queue| queue.strip_prefix("cake")) {
        return vec![format!(
            "qdisc replace dev {dev} root handle 1: cake bandwidth {bits}bit{rest}"
        )];
    }
    let limit = limit.unwrap_or(QUEUE_BYTES).max(FRAME);
    let mut lines = vec![format!(
        "qdisc replace dev {dev} root handle 1: tbf rate {bits}bit burst {} limit {limit}",
        burst(rate)
    )];
    if let Some(queue) = queue {
        lines.push(format!(
            "qdisc replace dev {dev} parent 1:1 handle 10: {queue}"
        ));
    }
    lines
}

/// The queue at an interface that has a rate itself.
pub fn before(dev: &str, wire: &Wire) -> Option<String> {
    wire.rate?;
    let queue = match wire.queue.as_deref().filter(|queue| *queue != "fifo") {
        Some(queue) => queue.to_owned(),
        None => format!(
            "bfifo limit {}",
            wire.limit.unwrap_or(QUEUE_BYTES).max(FRAME)
        ),
    };
    Some(format!("qdisc replace dev {dev} root handle 1: {queue}"))
}

/// What a wire does to what travels on it, at its far end.
pub fn wire(dev: &str, wire: &Wire) -> Vec<String> {
    vec![format!(
        "qdisc replace dev {dev} root handle 1: {}",
        netem(wire)
    )]
}

/// What comes in on `from` goes out on `to`.
pub fn patch(from: &str, to: &str) -> Vec<String> {
    vec![
        format!("qdisc add dev {from} clsact"),
        format!("filter add dev {from} ingress matchall action mirred egress redirect dev {to}"),
    ]
}

fn netem(wire: &Wire) -> String {
    let mut words = format!("netem limit {FLYING}");
    delay(&mut words, wire.delay, wire.jitter);
    for (word, share) in [
        ("loss", wire.loss),
        ("corrupt", wire.corrupt),
        ("duplicate", wire.duplicate),
        ("reorder", wire.reorder),
    ] {
        if share > 0.0 {
            let _ = write!(words, " {word} {}", percent(share));
        }
    }
    words
}

fn delay(words: &mut String, delay: Duration, jitter: Duration) {
    if !delay.is_zero() || !jitter.is_zero() {
        // With a distribution, a delay of 0 is refused.
        let least = u128::from(!jitter.is_zero());
        let _ = write!(words, " delay {}us", micros(delay).max(least));
    }
    if !jitter.is_zero() {
        let _ = write!(words, " {}us distribution normal", micros(jitter));
    }
}

/// tc takes whole microseconds; less than one is one.
fn micros(time: Duration) -> u128 {
    time.as_nanos().div_ceil(1000)
}

/// tc knows 32 bits of it: eight digits are more than enough.
fn percent(share: f64) -> String {
    format!("{:.8}%", share * 100.0)
}

/// Towards a host: from each place its way, then the host's downstream rate. Class 1:N is of the Nth place.
pub fn downstream(port: &str, rate: Option<Rate>, ways: &[Way], free: bool) -> Vec<String> {
    let rate = match free {
        true => FREE,
        false => rate.unwrap_or(FREE),
    };
    let (bits, burst) = (rate.0, burst(rate));
    let share = (bits / ways.len().max(1) as u64).max(8);
    let mut lines = vec![
        format!("qdisc add dev {port} root handle 1: htb default 1"),
        format!("class add dev {port} parent 1: classid 1:ffff htb rate {bits}bit burst {burst} cburst {burst} quantum {FRAME}"),
    ];
    for (i, way) in ways.iter().enumerate() {
        let class = i + 1;
        lines.push(format!(
            "class add dev {port} parent 1:ffff classid 1:{class:x} htb rate {share}bit ceil {bits}bit burst {burst} cburst {burst} quantum {FRAME}"
        ));
        let mut words = format!("netem limit {FLYING}");
        delay(&mut words, way.latency, way.jitter);
        if way.loss > 0.0 && !free {
            let _ = write!(words, " loss {}", percent(way.loss));
        }
        let handle = 0x10 + class;
        lines.push(format!(
            "qdisc add dev {port} parent 1:{class:x} handle {handle:x}: {words}"
        ));
        // The queue of an access network, kept short as Shadow's is.
        lines.push(format!(
            "qdisc add dev {port} parent {handle:x}:1 codel limit 1000 target 10ms interval 100ms"
        ));
    }
    lines
}

/// The same in the place of what was there.
pub fn again(port: &str, lines: Vec<String>) -> Vec<String> {
    let mut all = vec![format!("qdisc del dev {port} root")];
    all.extend(lines);
    all
}

/// Puts each packet into the class of its sender's place. With one place the default does.
pub fn classify(hosts: &[(&String, &Host)], used: &[i64], addresses: &Addresses) -> String {
    if used.len() < 2 {
        return String::new();
    }
    let mut maps = [String::new(), String::new()];
    for (name, host) in hosts {
        let Some(at) = used.iter().position(|id| Some(*id) == host.node) else {
            continue;
        };
        let all = addresses.of(name);
        for (map, is) in maps.iter_mut().zip([IpAddr::is_ipv4, IpAddr::is_ipv6]) {
            if let Some(address) = all.iter().find(|address| is(address)) {
                let _ = write!(
                    map,
                    "{}{address} : 1:{:x}",
                    if map.is_empty() { "" } else { ", " },
                    at + 1
                );
            }
        }
    }
    let mut script = String::from("table inet places {\n");
    for (map, kind) in maps.iter().zip(["ipv4", "ipv6"]) {
        if !map.is_empty() {
            let _ = writeln!(
                script,
                "\tmap of_{kind} {{ type {kind}_addr : classid; elements = {{ {map} }} }}"
            );
        }
    }
    script.push_str("\tchain out { type filter hook postrouting priority 0;\n");
    for (map, (kind, word)) in maps.iter().zip([("ipv4", "ip"), ("ipv6", "ip6")]) {
        if !map.is_empty() {
            let _ = writeln!(script, "\t\tmeta priority set {word} saddr map @of_{kind}");
        }
    }
    script.push_str("\t}\n}\n");
    script
}
