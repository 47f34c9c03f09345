// SPDX-License-Identifier: GPL-2.0
//! Counting host calls: a call on a node's socket is no call of the host.
//!
//! Counts, unlike durations, don't depend on the machine. The programs mark the phase
//! that counts by two getpriority() calls, which pass through to the host.

use super::topology::{Pair, Place, Topology};
use super::{Checked, Verdict, ensure, helper, missing, trial};
use crate::exec::{self, Group};
use crate::node::{self, Node, SHORT};
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("calls_loopback".into(), loopback),
        trial("calls_link".into(), link),
        trial("calls_sites".into(), sites),
        trial("calls_clocks".into(), clocks),
        trial("calls_children".into(), children),
        trial("flood_link".into(), flood),
        trial("flood_tap".into(), flood_tap),
        trial("keeper_rests".into(), keeper_rests),
    ]
}

/// A node whose first program has lived for less time than an adopter waits for. Its keeper is idle then: it makes few host
/// calls, where one that looks without a pause made a hundred thousand a second.
fn keeper_rests() -> Checked {
    let node = Node::up(&[])?;
    for time in ["0.05", "0.12"] {
        node.output(&["sleep", time])?;
        std::thread::sleep(Duration::from_millis(600));
        let status = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
        let pid = status.stdout.split("\"pid\": ").nth(1);
        let pid = pid.and_then(|rest| rest.split(',').next());
        let pid = pid.ok_or_else(|| status.report())?.to_owned();
        let ticks = || -> Result<u64, String> {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            let stat = stat.map_err(|why| why.to_string())?;
            let words: Vec<&str> = stat
                .rsplit(')')
                .next()
                .unwrap_or("")
                .split_whitespace()
                .collect();
            // utime and stime of proc(5), behind the name.
            Ok(words[11].parse::<u64>().unwrap_or(0) + words[12].parse::<u64>().unwrap_or(0))
        };
        let before = ticks()?;
        std::thread::sleep(Duration::from_secs(2));
        let used = ticks()? - before;
        // Hundredths of a second.
        ensure(used <= 4, || {
            format!("an idle node's keeper used {used} of 200 ticks")
        })?;
    }
    Ok(Verdict::Passed)
}

/// The lines of the trace between the marks, of all processes, without signals.
fn counted(trace: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(trace).map_err(|e| format!("{}: {e}", trace.display()))?;
    let mut lines = text.lines();
    ensure(
        lines.any(|line| line.contains("getpriority(PRIO_PROCESS, 4711")),
        || "the phase never began".into(),
    )?;
    let mut phase = Vec::new();
    for line in lines {
        if line.contains("getpriority(PRIO_PROCESS, 4712") {
            return Ok(phase);
        }
        // "1234 futex(...", not "1234 --- SIGSYS" nor "<... futex resumed>", which was counted.
        let call = line
            .split_once(' ')
            .map_or("", |(_, call)| call.trim_start());
        if call.starts_with(|c: char| c.is_ascii_lowercase()) {
            phase.push(call.split('(').next().unwrap_or(call).to_string());
        }
    }
    Err("the phase never ended".into())
}

/// Which calls, how often.
fn summary(calls: &[String]) -> String {
    let mut names: Vec<&String> = calls.iter().collect();
    names.sort();
    names
        .chunk_by(|a, b| a == b)
        .map(|same| format!("{} {}", same.len(), same[0]))
        .collect::<Vec<_>>()
        .join(", ")
}

fn traced(argv: &mut Command, limit: Duration) -> Result<Vec<String>, String> {
    let folder = Scratch::new()?;
    let trace = folder.file("trace");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-o"])
        .arg(&trace)
        .arg(argv.get_program())
        .args(argv.get_args());
    let outcome = exec::run(&mut command, limit)?;
    ensure(
        outcome.ok() && outcome.stdout.contains("10000 pairs"),
        || outcome.report(),
    )?;
    counted(&trace)
}

/// Many sites that take turns are all rewritten, soon: none makes the gate forget another.
fn sites() -> Checked {
    const SITES: u64 = 400;
    /// Six traps rewrite a site (HOT of gate/entry/patch.c); some more for those that share a place, and what else
    /// the program and ring3 itself call.
    const TRAPS: u64 = 12 * SITES + 1000;
    let node = Node::up(&[])?;
    node.output(&[&helper("sites")?.to_string_lossy()])?;
    let trapped = trapped(&node)?;
    ensure((SITES..=TRAPS).contains(&trapped), || {
        format!("{trapped} traps for {SITES} sites")
    })?;
    Ok(Verdict::Passed)
}

/// The vDSO's calls for clocks of the processor's time are rewritten like a library's.
fn clocks() -> Checked {
    if is_vdso_sealed()? {
        return Ok(Verdict::Ignored(
            "this host's kernel lets nobody write to the vDSO (CONFIG_MSEAL_SYSTEM_MAPPINGS)"
                .into(),
        ));
    }
    let node = Node::up(&[])?;
    node.output(&[&helper("clocks")?.to_string_lossy()])?;
    let trapped = trapped(&node)?;
    ensure(trapped < 1000, || {
        format!("{trapped} traps for 30,000 looks at clocks")
    })?;
    Ok(Verdict::Passed)
}

/// Children of a program that forks for each piece of work don't all trap at the same sites: each had to learn them anew.
fn children() -> Checked {
    const CHILDREN: u64 = 200;
    let node = Node::up(&[])?;
    node.output(&[&helper("many_children")?.to_string_lossy()])?;
    let trapped = trapped(&node)?;
    // Each fork is one.
    ensure((CHILDREN..2 * CHILDREN).contains(&trapped), || {
        format!("{trapped} traps for {CHILDREN} children")
    })?;
    Ok(Verdict::Passed)
}

/// Whether the host seals it, as it may from Linux 6.16 on: VmFlags has "sl".
fn is_vdso_sealed() -> Result<bool, String> {
    let maps = std::fs::read_to_string("/proc/self/smaps").map_err(|e| e.to_string())?;
    let vdso = maps.split_once("[vdso]").ok_or("no vDSO")?.1;
    let flags = vdso.lines().find_map(|line| line.strip_prefix("VmFlags:"));
    Ok(flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "sl")))
}

/// How many calls of the node's programs have trapped.
fn trapped(node: &Node) -> Result<u64, String> {
    let stat = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
    ensure(stat.ok(), || stat.report())?;
    let value: serde_json::Value =
        serde_json::from_str(&stat.stdout).map_err(|e| format!("{e}: {}", stat.stdout))?;
    Ok(value["calls"]["trapped"].as_u64().ok_or("no count")?)
}

/// Why no peer can be busy now: others want the processors.
fn crowded() -> Option<String> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let cpus = std::thread::available_parallelism().ok()?.get() as f64;
    // One test beside this one is normal.
    (load > cpus + 2.0).then(|| format!("load {load} on {cpus} CPUs: no peer stays busy"))
}

fn loopback() -> Checked {
    if let Some(why) = missing(&["strace"])? {
        return Ok(Verdict::Ignored(why));
    }
    let mut command = Command::new(paths::ring3());
    command.args(["run", "--"]).arg(helper("pairs")?);
    let calls = traced(&mut command, Duration::from_secs(60))?;
    ensure(calls.len() < 100, || {
        format!(
            "{} host calls for 10,000 pairs: {}",
            calls.len(),
            summary(&calls)
        )
    })?;
    Ok(Verdict::Passed)
}

fn link() -> Checked {
    if let Some(why) = missing(&["strace"])? {
        return Ok(Verdict::Ignored(why));
    }
    if let Some(why) = crowded() {
        return Ok(Verdict::Ignored(why));
    }
    let pair = Pair::new(Topology::Link)?;
    let echo = helper("echo")?;
    let echo = echo.to_string_lossy();
    let _echo = pair.server.start(&[&echo, &pair.server4, "7200"])?;
    std::thread::sleep(Duration::from_millis(500));
    let pairs = helper("pairs")?;
    // With both cores taken by others the peer is not busy but waiting: the best of three counts.
    let mut best: Option<Vec<String>> = None;
    for _ in 0..3 {
        let mut command = pair
            .client
            .command(&[&pairs.to_string_lossy(), &pair.server4, "7200"]);
        let calls = traced(&mut command, Duration::from_secs(60))?;
        if best.as_ref().is_none_or(|least| calls.len() < least.len()) {
            best = Some(calls);
        }
    }
    let calls = best.unwrap_or_default();
    // 20,000 packets cross the link: one call for ten of them.
    ensure(calls.len() < 2000, || {
        format!(
            "{} host calls for 20,000 packets: {}",
            calls.len(),
            summary(&calls)
        )
    })?;
    Ok(Verdict::Passed)
}

/// The program that floods, and its other end on the server, which reads.
fn reader(pair: &Pair) -> Result<(String, Group), String> {
    let flood = helper("flood")?.to_string_lossy().into_owned();
    let reader = pair
        .server
        .start(&[&flood, "serve", &pair.server4, "7300"])?;
    std::thread::sleep(Duration::from_millis(500));
    Ok((flood, reader))
}

/// A sender that is faster than the reader is made to wait; what it sends isn't received
/// in preference to the program that reads it, and dropped.
fn flood() -> Checked {
    let pair = Pair::new(Topology::Link)?;
    let (flood, _reader) = reader(&pair)?;
    let send = [&flood, "send", &pair.server4, "7300", "300000"];
    // A reader without a CPU reads nothing, and another test runs beside: the best of five.
    let mut percent = 0;
    for _ in 0..5 {
        let share = pair.client.must(&send, Duration::from_secs(60))?;
        let share: u32 = share
            .trim()
            .parse()
            .map_err(|_| format!("not a number: {share}"))?;
        percent = percent.max(share);
        if percent >= 25 {
            break;
        }
    }
    ensure(percent >= 25, || {
        format!("only {percent} % of the datagrams were read")
    })?;
    Ok(Verdict::Passed)
}

/// Datagrams that a node's sockets were given, and those that they had no room for.
fn received(node: &Place) -> Result<[u64; 2], String> {
    let text = node.must(&["cat", "/proc/net/snmp"], Duration::from_secs(10))?;
    let mut lines = text.lines().filter(|line| line.starts_with("Udp: "));
    let (names, values) = (lines.next(), lines.next());
    let field = |name: &str| {
        names
            .zip(values)
            .and_then(|(names, values)| {
                let at = names.split(' ').position(|word| word == name)?;
                values.split(' ').nth(at)?.parse().ok()
            })
            .ok_or_else(|| format!("no Udp {name} in {text}"))
    };
    Ok([field("InDatagrams")?, field("RcvbufErrors")?])
}

/// The host sends faster than the node receives. What is too much is dropped at the TAP, at no
/// cost to the node, and not received in preference to the program that reads.
fn flood_tap() -> Checked {
    if let Some(why) = Topology::TapServer.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let pair = Pair::new(Topology::TapServer)?;
    let (flood, _reader) = reader(&pair)?;
    let send = [&flood, "send", &pair.server4, "7300", "100000"];
    // As above: the best of five.
    let mut percent = 0;
    for _ in 0..5 {
        let before = received(&pair.server)?;
        pair.client.must(&send, Duration::from_secs(60))?;
        let after = received(&pair.server)?;
        let [read, dropped] = [after[0] - before[0], after[1] - before[1]];
        percent = percent.max(100 * read / (read + dropped).max(1));
        if percent >= 50 {
            break;
        }
    }
    ensure(percent >= 50, || {
        format!("only {percent} % of the datagrams that the node received were read")
    })?;
    Ok(Verdict::Passed)
}
