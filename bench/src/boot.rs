// SPDX-License-Identifier: GPL-2.0
//! The costs of a node that does nothing: its boot, its idle time, its memory.

use crate::report::Promise;
use crate::spread::{Spread, round};
use crate::stamp::Stamp;
use crate::tool;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BOOT_MS: f64 = 20.0;
const IDLE_PERCENT: f64 = 0.5;
/// Beyond the image's text and the keeper's.
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
    memory: Memory,
    beyond_text_target_mib: f64,
    promises: Vec<Promise>,
    met: bool,
    stamp: Stamp,
}

/// CPU time and memory of an idle node.
struct Idle {
    percent: f64,
    memory: Memory,
}

/// The parts of a node's memory, in MiB.
#[derive(Serialize)]
struct Memory {
    note: &'static str,
    /// The node's and the keeper's.
    total_mib: f64,
    /// Memory of the node's memory file that the host has allocated.
    node_mib: f64,
    /// Of that the image's text: a copy in each node.
    node_text_mib: f64,
    /// The keeper's mappings of other things, its share of what others map, too.
    keeper_mib: f64,
    /// Of that program text: the file's pages, which all keepers share.
    keeper_text_mib: f64,
    /// The total without both texts.
    beyond_text_mib: f64,
}

const SHARING: &str = "A node's memory is one file, which all its processes share and no other node \
    does; the image's text is copied into it. The keeper's program text is the file's, shared by all keepers: \
    it counts by its share.";

pub fn run(rounds: usize) -> Result<bool, String> {
    let program = tool::compile("load/first_packet.c")?;
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
            "memory of an idle node and its keeper beyond the text of both, MiB",
            RESIDENT_MIB,
            idle.memory.beyond_text_mib,
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
            memory: idle.memory,
            beyond_text_target_mib: RESIDENT_MIB,
            promises,
            met,
            stamp: Stamp::now(false),
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
    let stat = tool::stat(name)?;
    let pid = &stat["pid"].to_string();
    let image = stat["image"].as_str().ok_or("ring3 stat names no image")?;
    std::thread::sleep(SETTLE);
    let (start, before) = (Instant::now(), cpu_ns(pid)?);
    std::thread::sleep(WATCH);
    let used = cpu_ns(pid)? - before;
    let percent = 100.0 * used / start.elapsed().as_nanos() as f64;
    Ok(Idle {
        percent,
        memory: memory(pid, image)?,
    })
}

fn memory(pid: &str, image: &str) -> Result<Memory, String> {
    const MIB: f64 = 1048576.0;
    let node = memory_file(pid)? as f64 / MIB;
    let bytes = std::fs::read(image).map_err(|e| format!("{image}: {e}"))?;
    let node_text = text_of(&bytes).ok_or_else(|| format!("{image}: no image"))? as f64 / MIB;
    let (keeper, keeper_text) = own(&read(format!("/proc/{pid}/smaps").as_ref())?);
    Ok(Memory {
        note: SHARING,
        total_mib: round(node + keeper),
        node_mib: round(node),
        node_text_mib: round(node_text),
        keeper_mib: round(keeper),
        keeper_text_mib: round(keeper_text),
        beyond_text_mib: round(node - node_text + keeper - keeper_text),
    })
}

/// The name of a node's memory in smaps.
const MEMORY_FILE: &str = "/memfd:ring3:";

/// Bytes that the host has given to the memory of the node whose keeper this is.
fn memory_file(pid: &str) -> Result<u64, String> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{folder}: {e}"))?;
    let file = entries.flatten().map(|entry| entry.path()).find(|path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with(MEMORY_FILE))
    });
    let file = file.ok_or_else(|| format!("{folder}: none is a node's memory"))?;
    let known = std::fs::metadata(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(known.blocks() * 512)
}

/// Bytes of the pages that an image's executable segments fill: the keeper writes all of them.
fn text_of(image: &[u8]) -> Option<u64> {
    const PAGE: u64 = 4096;
    let long = |at: usize| Some(u64::from_le_bytes(image.get(at..at + 8)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(u16::from_le_bytes(image.get(at..at + 2)?.try_into().ok()?));
    // ELF64: e_phoff, e_phentsize, e_phnum; p_type, p_flags, p_vaddr, p_filesz.
    if !image.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, size, count) = (long(0x20)? as usize, half(0x36)? as usize, half(0x38)?);
    let mut bytes = 0;
    for at in (0..count as usize).map(|n| first + n * size) {
        let is_text = word(at)? == 1 && word(at + 4)? & 1 != 0;
        if is_text {
            let (address, len) = (long(at + 0x10)?, long(at + 0x20)?);
            bytes += (address + len).next_multiple_of(PAGE) - address / PAGE * PAGE;
        }
    }
    Some(bytes)
}

/// MiB of a keeper's mappings that are not its node's memory, by its share of them, and what of
/// that is program text, by /proc/PID/smaps.
fn own(smaps: &str) -> (f64, f64) {
    let (mut is_own, mut is_text) = (false, false);
    let (mut all, mut text) = (0.0, 0.0);
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Pss:", kib, ..] if is_own => {
                let kib: f64 = kib.parse().unwrap_or(0.0);
                all += kib;
                text += if is_text { kib } else { 0.0 };
            }
            [range, mode, _, _, inode, ..] if range.contains('-') => {
                is_own = !line.contains(MEMORY_FILE);
                is_text = mode.contains('x') && *inode != "0";
            }
            _ => {}
        }
    }
    (all / 1024.0, text / 1024.0)
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
    use super::{own, text_of};

    #[test]
    fn finds_what_is_the_keepers_own() {
        let smaps = "1000-2000 r-xp 00000000 00:01 1 /a\nRss:   2048 kB\nPss: 1024 kB\n\
                     2000-3000 rw-s 00000000 00:01 2 /memfd:ring3:a-b (deleted)\nPss: 4096 kB\n\
                     3000-4000 rw-p 00000000 00:00 0 \nRss: 2048 kB\nPss: 2048 kB\nPss_Dirty: 9 kB\n\
                     4000-5000 r-xp 00000000 00:00 0 [vdso]\nPss: 512 kB\n";
        assert_eq!(own(smaps), (3.5, 1.0));
    }

    #[test]
    fn finds_the_text_of_an_image() {
        let mut image = vec![0; 0x40 + 2 * 56];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, value: u64, len: usize| {
            image[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
        };
        for (at, value, len) in [(0x20, 0x40, 8), (0x36, 56, 2), (0x38, 2, 2)] {
            put(at, value, len);
        }
        // Readable and writable, then readable and executable from within a page on.
        for (n, flags, address, len) in [(0, 6, 0, 0x5000), (1, 5, 0x200800, 0x1801)] {
            let at = 0x40 + n * 56;
            put(at, 1, 4);
            put(at + 4, flags, 4);
            put(at + 0x10, address, 8);
            put(at + 0x20, len, 8);
        }
        assert_eq!(text_of(&image), Some(0x3000));
        assert_eq!(text_of(&image[..0x50]), None);
        assert_eq!(text_of(b"#!/bin/sh"), None);
    }
}
