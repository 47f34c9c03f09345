// SPDX-License-Identifier: GPL-2.0
//! Whether simulated TCP is as fast as theory says, and simulated wires as slow. In virtual time: the figures depend on
//! the seed, not on the machine.

use super::sim_cmd::Simulation;
use super::{Checked, Verdict, ensure, missing, trial};
use libtest_mimic::Trial;
use std::collections::BTreeMap;
use std::process::Command;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_truth_round_trip".into(), round_trip),
        trial("sim_truth_full_link".into(), full_link),
        trial("sim_truth_change".into(), change),
        trial("sim_truth_reno".into(), reno),
        trial("sim_truth_cubic".into(), cubic),
    ]
}

/// Bytes of a segment's data: 1,500 less headers with time stamps.
const SEGMENT: f64 = 1448.0;
/// How far from a model a throughput may be.
const TOLERANCE: f64 = 0.15;
/// The window's growth at first is no part of the models.
const SETTLED: f64 = 20.0;

const SEND: &str = "import socket,sys\ns=socket.create_connection((sys.argv[1],9))\nwhile True: s.sendall(bytes(1<<20))\n";
const TAKE: &str = "import socket\nd=socket.create_server((\"\",9))\ns,_=d.accept()\nb=bytearray(1<<20)\nwhile s.recv_into(b): pass\n";

/// Hosts `sN` that send to `dN` all they can; `wires` are the properties of the links there.
fn bulk(congestion: &str, wires: &[String], stop: u32, sample: &str) -> String {
    let mut text = format!(
        "general: {{stop_time: {stop} s}}\nsim: {{sample: {sample}}}\n\
         x-send: &send {SEND:?}\nx-take: &take {TAKE:?}\nhosts:\n"
    );
    let mut links = String::from("links:\n");
    for (i, wire) in wires.iter().enumerate() {
        text.push_str(&format!(
            "  s{i}:\n    sysctls: {{net.ipv4.tcp_congestion_control: {congestion}}}\n    processes:\n    \
             - {{path: python3, args: [-c, *send, d{i}], start_time: 1 s, expected_final_state: running}}\n  \
             d{i}: {{processes: [{{path: python3, args: [-c, *take], expected_final_state: running}}]}}\n"
        ));
        links.push_str(&format!(
            "- {{between: [s{i}, d{i}], {wire}, back: {{loss: 0}}}}\n"
        ));
    }
    text + &links
}

/// Rows of a table, by the words of its first line.
fn rows(simulation: &Simulation, name: &str) -> Result<Vec<BTreeMap<String, String>>, String> {
    let text = simulation.read(name)?;
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let head: Vec<String> = lines.next().ok_or("an empty table")?.collect();
    Ok(lines
        .map(|row| head.iter().cloned().zip(row).collect())
        .collect())
}

fn number(row: &BTreeMap<String, String>, key: &str) -> Result<f64, String> {
    let text = row.get(key).ok_or_else(|| format!("no column {key}"))?;
    text.parse().map_err(|_| format!("{key}: `{text}`"))
}

/// What a column of a host gains per second from `from` on.
fn gain(
    rows: &[BTreeMap<String, String>],
    host: &str,
    column: &str,
    from: f64,
) -> Result<f64, String> {
    let mut points = Vec::new();
    for row in rows.iter().filter(|row| row["host"] == host) {
        points.push((number(row, "time")?, number(row, column)?));
    }
    points.retain(|(time, _)| *time >= from);
    match (points.first(), points.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => {
            Ok((last.1 - first.1) / (last.0 - first.0))
        }
        _ => Err(format!("{host}: too few samples of {column}")),
    }
}

/// An echo comes after the wires' delays, to the nanosecond.
fn round_trip() -> Checked {
    if let Some(why) = missing(&["ping", "tcpdump", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let simulation = Simulation::run_with(
        "general: {stop_time: 3 s, heartbeat_interval: null}\nhosts:\n  \
         a:\n    host_options: {pcap_enabled: true}\n    \
         processes: [{path: ping, args: -c 5 -i 0.2 b, start_time: 1 s}]\n  \
         r: {router: true}\n  b: {}\nlinks:\n\
         - {between: [a, r], delay: 10 ms}\n- {between: [r, b], delay: 7 ms, back: {delay: 3 ms}}\n",
        &[],
    )?;
    simulation.ended_well()?;
    let output = Command::new("tcpdump")
        .args(["--time-stamp-precision=nano", "-tt", "-n", "-r"])
        .arg(simulation.data("hosts/a/eth0.pcap"))
        .arg("icmp")
        .output()
        .map_err(|why| format!("tcpdump: {why}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut times = Vec::new();
    for line in text.lines() {
        let (time, _) = line.split_once(' ').ok_or_else(|| text.clone())?;
        times.push(
            time.replace('.', "")
                .parse::<u64>()
                .map_err(|_| text.clone())?,
        );
    }
    ensure(times.len() == 10, || text.clone())?;
    for pair in times.chunks(2) {
        ensure(pair[1] - pair[0] == 30_000_000, || text.clone())?;
    }
    Ok(Verdict::Passed)
}

/// One flow fills a link of 1 Gbit/s and 20 ms.
fn full_link() -> Checked {
    if let Some(why) = missing(&["python3", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let wire = ["rate: 1 Gbit, delay: 10 ms".to_owned()];
    let simulation = Simulation::run_with(&bulk("cubic", &wire, 7, "1 s"), &[])?;
    simulation.ended_well()?;
    let rows: Vec<_> = rows(&simulation, "interfaces.csv")?
        .into_iter()
        .filter(|row| row["interface"] == "eth0")
        .collect();
    let bits = 8.0 * gain(&rows, "s0", "tx_bytes", 3.0)?;
    ensure((0.95e9..=1.001e9).contains(&bits), || {
        format!("{:.1} Mbit/s of 1,000", bits / 1e6)
    })?;
    Ok(Verdict::Passed)
}

/// A link's new rate is what a flow gets from then on.
fn change() -> Checked {
    if let Some(why) = missing(&["python3", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let wire = ["rate: 100 Mbit, delay: 5 ms".to_owned()];
    let text = bulk("cubic", &wire, 14, "1 s")
        + "events:\n- {at: 6 s, change: {link: s0-d0, rate: 10 Mbit}}\n";
    let simulation = Simulation::run_with(&text, &[])?;
    simulation.ended_well()?;
    let rows: Vec<_> = rows(&simulation, "interfaces.csv")?
        .into_iter()
        .filter(|row| row["interface"] == "eth0")
        .collect();
    let (before, after): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|row| number(row, "time").is_ok_and(|time| time <= 6.0));
    let fast = 8.0 * gain(&before, "s0", "tx_bytes", 3.0)?;
    let slow = 8.0 * gain(&after, "s0", "tx_bytes", 8.0)?;
    ensure(
        (95e6..=100.1e6).contains(&fast) && (9.5e6..=10.01e6).contains(&slow),
        || format!("{:.2}, then {:.2} Mbit/s", fast / 1e6, slow / 1e6),
    )?;
    Ok(Verdict::Passed)
}

/// Mean windows in packets, over loss rates, and what the model says.
fn compare(
    congestion: &str,
    delay_ms: u32,
    stop: u32,
    losses: &[f64],
    model: impl Fn(f64, f64) -> f64,
) -> Checked {
    if let Some(why) = missing(&["python3", "tc"])? {
        return Ok(Verdict::Ignored(why));
    }
    let wires: Vec<String> = losses
        .iter()
        .map(|loss| format!("rate: 100 Mbit, delay: {delay_ms} ms, loss: {loss}"))
        .collect();
    let simulation = Simulation::run_with(&bulk(congestion, &wires, stop, "10 s"), &[])?;
    simulation.ended_well()?;
    let rows = rows(&simulation, "tcp.csv")?;
    let trip = 2.0 * f64::from(delay_ms) / 1e3;
    let mut words = String::new();
    let mut good = true;
    for (i, loss) in losses.iter().enumerate() {
        let window = gain(&rows, &format!("s{i}"), "bytes_acked", SETTLED)? * trip / SEGMENT;
        let wanted = model(trip, *loss);
        good &= (window / wanted - 1.0).abs() <= TOLERANCE;
        words.push_str(&format!(
            "loss {loss}: a window of {window:.1}, the model's {wanted:.1}\n"
        ));
    }
    ensure(good, || words)?;
    Ok(Verdict::Passed)
}

/// Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm (1997): sqrt(3/2) / sqrt(p).
fn reno_window(loss: f64) -> f64 {
    (1.5 / loss).sqrt()
}

fn reno() -> Checked {
    compare("reno", 25, 200, &[0.001, 0.002, 0.005, 0.01], |_, loss| {
        reno_window(loss)
    })
}

/// Poojary and Sharma, An asymptotic approximation of TCP CUBIC (2015), for losses at random: 1.3 (RTT/p)^(3/4), with
/// RFC 9438's constants; the RFC's own 1.054 is of losses at equal distances. A CUBIC flow is never slower than Reno.
fn cubic() -> Checked {
    let model = |trip: f64, loss: f64| (1.3 * (trip / loss).powf(0.75)).max(reno_window(loss));
    compare("cubic", 100, 600, &[0.001, 0.002, 0.005, 0.01], model)
}
