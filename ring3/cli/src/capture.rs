// SPDX-License-Identifier: GPL-2.0
//! `ring3 capture`: what crosses an interface of a node, as pcap-ng with the owners of the sockets.
//!
//! The keeper captures (`ring3/node/src/pcap.rs`) and writes into a pipe; this process passes whole blocks on. So what it has
//! written is whole, wherever a signal ends it.

use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

use ring3_node::client::{Client, Instruction};

use crate::args;
use crate::error::{Failure, Result};

/// Bytes that are read at once.
const PART_BYTES: usize = 256 << 10;
/// Of a block: its type and its length.
const BLOCK_HEAD: usize = 8;

pub fn capture(args: &args::Capture) -> Result<()> {
    ring3_config::name::node(&args.name)?;
    let node = Client::open(&args.name)?;
    node.is_up()?;
    let filter = match args.filter.is_empty() {
        true => Vec::new(),
        false => compile(&args.filter.join(" "))?,
    };
    let is_output = args.write == Path::new("-");
    if is_output && std::io::stdout().is_terminal() {
        return Err(Failure::CaptureOnTerminal);
    }
    // A pipe of Wireshark's is opened when that reads it, and before the capture begins.
    let out = match is_output {
        true => {
            let copy = std::io::stdout().as_fd().try_clone_to_owned();
            File::from(copy.map_err(Failure::host("write to standard output"))?)
        }
        false => {
            let what = format!("write {}", args.write.display());
            File::create(&args.write).map_err(Failure::host(what))?
        }
    };
    pass_on(node.capture(&args.interface, filter)?, out)
}

fn pass_on(mut from: impl Read, mut to: impl Write) -> Result<()> {
    let mut held = Vec::new();
    let mut part = vec![0; PART_BYTES];
    loop {
        let len = from
            .read(&mut part)
            .map_err(Failure::host("read what the node captures"))?;
        if len == 0 {
            return Ok(());
        }
        held.extend_from_slice(&part[..len]);
        let whole = whole_blocks(&held);
        match to.write_all(&held[..whole]) {
            // Its reader has seen enough.
            Err(why) if why.kind() == ErrorKind::BrokenPipe => return Ok(()),
            done => done.map_err(Failure::host("write the capture"))?,
        }
        held.drain(..whole);
    }
}

/// How many bytes of it are whole blocks.
fn whole_blocks(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + BLOCK_HEAD) {
        let len = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if len < BLOCK_HEAD || bytes.len() - at < len {
            break;
        }
        at += len;
    }
    at
}

/// By tcpdump, which needs no right for that.
fn compile(filter: &str) -> Result<Vec<Instruction>> {
    let run = Command::new("tcpdump")
        .args(["-y", "EN10MB", "-ddd", filter])
        .stdin(Stdio::null())
        .output();
    let done = run.map_err(|why| match why.kind() {
        ErrorKind::NotFound => Failure::NoTcpdump,
        _ => Failure::host("start tcpdump")(why),
    })?;
    let words = String::from_utf8_lossy(&done.stderr);
    let wrong = || Failure::CaptureFilter {
        filter: filter.to_owned(),
        why: words.trim().trim_start_matches("tcpdump: ").to_owned(),
    };
    if !done.status.success() {
        return Err(wrong());
    }
    program(&String::from_utf8_lossy(&done.stdout)).ok_or_else(wrong)
}

/// The number of instructions, then each in decimal numbers.
fn program(text: &str) -> Option<Vec<Instruction>> {
    let mut lines = text.lines();
    let count: usize = lines.next()?.trim().parse().ok()?;
    let instruction = |line: &str| {
        let mut words = line.split_whitespace();
        Some(Instruction {
            code: words.next()?.parse().ok()?,
            jt: words.next()?.parse().ok()?,
            jf: words.next()?.parse().ok()?,
            k: words.next()?.parse().ok()?,
        })
    };
    let all: Option<Vec<Instruction>> = lines.map(instruction).collect();
    all.filter(|it| it.len() == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(len: u32) -> Vec<u8> {
        let mut block = [6u32.to_ne_bytes(), len.to_ne_bytes()].concat();
        block.resize(len as usize, 0);
        block
    }

    #[test]
    fn only_whole_blocks_are_passed_on() {
        let bytes = [block(12), block(40)].concat();
        assert_eq!(whole_blocks(&bytes), 52);
        for len in 12..52 {
            assert_eq!(whole_blocks(&bytes[..len]), 12);
        }
        assert_eq!(whole_blocks(&bytes[..11]), 0);
        // A length that leads nowhere.
        assert_eq!(whole_blocks(&[0; 40]), 0);
        let mut out = Vec::new();
        pass_on(&bytes[..50], &mut out).unwrap();
        assert_eq!(out, block(12));
    }

    #[test]
    fn programs_of_tcpdump() {
        let two = program("2\n40 0 0 12\n6 0 0 262144\n").unwrap();
        assert_eq!((two[0].code, two[0].k, two[1].k), (40, 12, 262_144));
        for wrong in ["", "1\n", "1\n40 0 0\n", "2\n6 0 0 0\n", "x"] {
            assert_eq!(program(wrong), None, "{wrong}");
        }
    }
}
