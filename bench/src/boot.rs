// SPDX-License-Identifier: GPL-2.0
//! What a node costs that does nothing: its boot, its idle time, its memory.

use crate::report::Promise;
use crate::spread::{Spread, round};
use crate::tool;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BOOT_MS: f64 = 20.0;
const IDLE_PERCENT: f64 = 0.5;
/// Beyond program text.
const RESIDENT_MIB: f64 = 8.0;

/// How long the idle node is watched, after it had time to settle.
const WATCH: Duration = Duration::from_secs(20);
const SETTLE: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Figures {
    rounds: usize,
    /// From the start of `ring3 run` to the first packet sent and received.
    boot_ms: Spread,
    boot_target_ms: f64,
    /// The same program without ring3.
    host_ms: Spread,
    idle_cpu_percent: f64,
    idle_cpu_target_percent: f64,
    idle_seconds: u64,
    resident_mib: f64,
    proportional_mib: f64,
    /// What is resident and no program text: the kernel's and the keeper's is shared.
    beyond_text_mib: f64,
    beyond_text_target_mib: f64,
    promises: Vec<Promise>,
    met: bool,
}

/// What an idle node takes.
struct Idle {
    percent: f64,
    resident_mib: f64,
    proportional_mib: f64,
    beyond_text_mib: f64,
}

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile("boot/first_packet.c")?;
    let (mut host, mut node) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        host.push(to_first_packet(&mut Command::new(&program))?);
        node.push(to_first_packet(tool::ring3(&["run", "--"]).arg(&program))?);
    }
    let (boot_ms, host_ms) = (Spread::of(&node), Spread::of(&host));

    let name = format!("bench-{}", std::process::id());
    tool::output(&mut tool::ring3(&["up", &name]))?;
    let idle = watch(&name);
    tool::output(&mut tool::ring3(&["down", &name]))?;
    let idle = idle?;

    let promises = vec![
        Promise::at_most("boot to first packet, ms", BOOT_MS, boot_ms.median),
        Promise::at_most("idle node, % of one CPU", IDLE_PERCENT, idle.percent),
        Promise::at_most(
            "resident memory of an idle node beyond text, MiB",
            RESIDENT_MIB,
            idle.beyond_text_mib,
        ),
    ];
    let met = promises.iter().all(|promise| promise.met);
    tool::print(
        "boot",
        &Figures {
            rounds,
            boot_ms,
            boot_target_ms: BOOT_MS,
            host_ms,
            idle_cpu_percent: round(idle.percent),
            idle_cpu_target_percent: IDLE_PERCENT,
            idle_seconds: WATCH.as_secs(),
            resident_mib: round(idle.resident_mib),
            proportional_mib: round(idle.proportional_mib),
            beyond_text_mib: round(idle.beyond_text_mib),
            beyond_text_target_mib: RESIDENT_MIB,
            promises,
            met,
        },
    )?;
    Ok(met)
}

/// Until the program's line comes: it says it right after the packet.
fn to_first_packet(command: &mut Command) -> Result<f64, String> {
    let name = format!("{:?}", command.get_program());
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{name}: {e}"))?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out)
            .read_line(&mut line)
            .map_err(|e| format!("{name}: {e}"))?;
    }
    let took = start.elapsed();
    let status = child.wait().map_err(|e| format!("{name}: {e}"))?;
    if !status.success() || line.is_empty() {
        return Err(format!("{name}: {status}"));
    }
    Ok(took.as_secs_f64() * 1e3)
}

fn read(path: &std::path::Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The node's own process.
fn watch(name: &str) -> Result<Idle, String> {
    let stat = tool::output(&mut tool::ring3(&["stat", name]))?;
    let pid = stat
        .lines()
        .find(|line| line.starts_with("keeper"))
        .and_then(|line| line.split(' ').next_back())
        .ok_or_else(|| format!("ring3 stat names no keeper:\n{stat}"))?;
    std::thread::sleep(SETTLE);
    let (start, before) = (Instant::now(), cpu_ns(pid)?);
    std::thread::sleep(WATCH);
    let used = cpu_ns(pid)? - before;
    let percent = 100.0 * used / start.elapsed().as_nanos() as f64;
    let memory = read(format!("/proc/{pid}/smaps_rollup").as_ref())?;
    let field = |name: &str| {
        memory
            .lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
            .and_then(|word| word.parse::<f64>().ok())
            .map(|kib| kib / 1024.0)
            .ok_or_else(|| format!("no {name} in smaps_rollup"))
    };
    let resident_mib = field("Rss:")?;
    Ok(Idle {
        percent,
        resident_mib,
        proportional_mib: field("Pss:")?,
        beyond_text_mib: resident_mib - text_mib(&read(format!("/proc/{pid}/smaps").as_ref())?),
    })
}

/// What is resident of mappings that can be executed, by /proc/PID/smaps.
fn text_mib(smaps: &str) -> f64 {
    let mut executable = false;
    let mut kib = 0.0;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Rss:"), Some(size)) if executable => kib += size.parse().unwrap_or(0.0),
            (Some(word), Some(mode)) if word.contains('-') => executable = mode.contains('x'),
            _ => {}
        }
    }
    kib / 1024.0
}

/// Time on a processor of all threads, by the scheduler's own count.
fn cpu_ns(pid: &str) -> Result<f64, String> {
    let tasks = format!("/proc/{pid}/task");
    let mut total = 0.0;
    for entry in std::fs::read_dir(&tasks).map_err(|e| format!("{tasks}: {e}"))? {
        let path = entry.map_err(|e| e.to_string())?.path().join("schedstat");
        let text = read(&path)?;
        total += text
            .split(' ')
            .next()
            .and_then(|word| word.parse::<f64>().ok())
            .ok_or_else(|| format!("{}: {text}", path.display()))?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::text_mib;

    #[test]
    fn finds_text() {
        let smaps = "1000-2000 r-xs 00000000 00:01 1 /a\nRss:   2048 kB\nPss: 1 kB\n\
                     2000-3000 rw-s 00000000 00:01 1 /a\nRss:   1024 kB\n";
        assert_eq!(text_mib(smaps), 2.0);
    }
}
