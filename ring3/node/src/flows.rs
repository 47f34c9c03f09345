// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a gateway's record of what it passes and refuses, as lines of JSON
//!
//! The rules around a gateway's policy (`ring3/cli/src/sandbox/rules.rs`) log the first packets of connections to the group
//! [`GROUP`] of <linux/netfilter/nfnetlink_log.h>, each with one of [`Word`] in front:
//!
//! ```text
//! ring3 try     before the policy's chains
//! ring3 pass    behind them
//! ring3 spoof, self, peer, invalid    dropped by the rules around the policy
//! ```
//!
//! A packet crosses all chains of a hook in one step. So if the message after a `try` is not the
//! `pass` of the same packet, the policy has refused that packet. Messages that the kernel could
//! not queue are counted as `lost`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::calls::SockAddr;
use crate::drivers::Driver;
use crate::error::{Errno, Error, Result};
use crate::image::Thread;
use crate::nfnetlink::{
    attribute, attributes, message, Head, BIND, CFG_CMD, COPY_BYTES, COPY_PACKET, HEADER, LOG,
};
use crate::pcap::word;

/// A group of nfnetlink_log: a high number, so that a policy's own `log group` does not collide
/// with it.
pub const GROUP: u16 = 21043;

/// Largest size of a gateway's file; later lines are dropped. A program could make it grow without
/// limit.
const FILE_MAX: u64 = 64 << 20;
/// How long a `pass` may come after its `try`: the kernel delivers messages every 10 ms.
const PAIR_PATIENCE: Duration = Duration::from_millis(50);
/// The kernel's delivery interval, in hundredths of a second.
const TURN: u32 = 1;
/// So large that a burst of connections is not lost while the disk is slow.
const SOCKET_BYTES: i32 = 4 << 20;
/// A batch of messages is shorter (NFULNL_NLBUFSIZ_DEFAULT is a page).
const BATCH_MAX: usize = 64 << 10;
/// <linux/netfilter/nfnetlink_log.h>
const PACKET: u16 = LOG;
const CONFIG: u16 = LOG | 1;
const CFG_MODE: u16 = 2;
const CFG_TIMEOUT: u16 = 4;
const INDEV: u16 = 4;
const PAYLOAD: u16 = 9;
const PREFIX: u16 = 10;

/// The meaning of a message's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Try,
    Pass,
    Dropped(&'static str),
}

impl Word {
    fn of(prefix: &[u8]) -> Option<Word> {
        match prefix.strip_suffix(&[0]).unwrap_or(prefix) {
            b"ring3 try" => Some(Word::Try),
            b"ring3 pass" => Some(Word::Pass),
            b"ring3 spoof" => Some(Word::Dropped("the source is not the sandbox's")),
            b"ring3 self" => Some(Word::Dropped("to the gateway itself")),
            b"ring3 peer" => Some(Word::Dropped("to another sandbox")),
            b"ring3 invalid" => Some(Word::Dropped("of no connection")),
            _ => None,
        }
    }
}

/// The first packet of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Flow {
    /// The interface at which it arrived.
    by: String,
    proto: String,
    src: String,
    dst: String,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970.
    time: f64,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    #[serde(flatten)]
    flow: Option<&'a Flow>,
}

/// Matches tries with passes, and writes lines.
struct Book<W: Write> {
    out: W,
    written: u64,
    tried: Option<Flow>,
}

impl<W: Write> Book<W> {
    fn hear(&mut self, word: Word, flow: Flow) -> std::io::Result<()> {
        match word {
            Word::Pass => {
                // Of another packet: this one waits in a queue of the policy, and its try has been
                // reported.
                if self.tried.as_ref() == Some(&flow) {
                    self.tried = None;
                }
                self.settle()?;
                self.say("passed", None, Some(&flow))
            }
            Word::Try => {
                self.settle()?;
                self.tried = Some(flow);
                Ok(())
            }
            Word::Dropped(why) => {
                // It has reached the rules after the policy.
                if self.tried.as_ref() == Some(&flow) {
                    self.tried = None;
                }
                self.settle()?;
                self.say("refused", Some(why), Some(&flow))
            }
        }
    }

    /// Everything that was tried and has not passed has been refused.
    fn settle(&mut self) -> std::io::Result<()> {
        match self.tried.take() {
            Some(flow) => self.say("refused", Some("policy"), Some(&flow)),
            None => Ok(()),
        }
    }

    fn say(
        &mut self,
        verdict: &str,
        why: Option<&str>,
        flow: Option<&Flow>,
    ) -> std::io::Result<()> {
        if self.written > FILE_MAX {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let line = Line {
            time: now.unwrap_or_default().as_secs_f64(),
            verdict,
            why,
            flow,
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.written += text.len() as u64;
        self.out.write_all(&text)?;
        if self.written > FILE_MAX {
            self.out
                .write_all(b"{\"verdict\":\"full\",\"why\":\"nothing more is written here\"}\n")?;
        }
        Ok(())
    }
}

/// Starts writing to `file`. `names`: the node's interfaces by ifindex.
pub(crate) fn start(
    mut thread: Thread,
    file: File,
    names: Vec<(u32, String)>,
    stop: Arc<AtomicBool>,
) -> Result<Driver> {
    let socket = open(&mut thread).map_err(Error::node("log what its gateway decides"))?;
    Driver::start("ring3-flows", move || {
        let mut book = Book {
            out: BufWriter::new(file),
            written: 0,
            tried: None,
        };
        let done = follow(&mut thread, socket, &names, &mut book, &stop)
            .and_then(|()| book.settle())
            .and_then(|()| book.out.flush());
        if let Err(why) = done {
            log::error!("what the gateway decides is not written any more: {why}");
        }
        // Fails if the node is over: then there is nothing to free.
        let _ = thread.exit_group();
    })
}

/// Runs until the node ends.
fn follow<W: Write>(
    thread: &mut Thread,
    socket: i32,
    names: &[(u32, String)],
    book: &mut Book<W>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let mut batch = vec![0; BATCH_MAX];
    let mut flags = 0;
    let mut is_late = false;
    loop {
        match thread.recv(socket, &mut batch, flags) {
            Ok(len) => {
                (flags, is_late) = (libc::MSG_DONTWAIT, false);
                for message in messages(&batch[..len]) {
                    if let Some((word, flow)) = parse(message, names) {
                        book.hear(word, flow)?;
                    }
                }
            }
            Err(Errno(libc::EAGAIN)) if book.tried.is_some() && !is_late => {
                is_late = true;
                std::thread::sleep(PAIR_PATIENCE);
            }
            Err(Errno(libc::EAGAIN)) => {
                book.settle()?;
                book.out.flush()?;
                if stop.load(Ordering::Acquire) {
                    return Ok(());
                }
                flags = 0;
            }
            Err(Errno(libc::ENOBUFS)) => {
                book.settle()?;
                book.say(
                    "lost",
                    Some("more connections than could be written down"),
                    None,
                )?;
            }
            Err(Errno(libc::EINTR)) => {}
            // The node is down.
            Err(_) => return Ok(()),
        }
    }
}

fn open(thread: &mut Thread) -> Result<i32, Errno> {
    let socket = thread.socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)?;
    thread.set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, SOCKET_BYTES)?;
    let mode = [&COPY_BYTES.to_be_bytes()[..], &[COPY_PACKET, 0]].concat();
    let parts = [
        attribute(CFG_CMD, &[BIND]),
        attribute(CFG_MODE, &mode),
        attribute(CFG_TIMEOUT, &TURN.to_be_bytes()),
    ];
    thread.send_to(socket, &config(CONFIG, &parts), &SockAddr::netlink())?;
    let mut answer = [0; 64];
    let len = thread.recv(socket, &mut answer, 0)?;
    // struct nlmsgerr: the error first.
    match answer[..len].get(HEADER..).and_then(|it| word(it, 0)) {
        Some(0) => Ok(socket),
        Some(code) => Err(Errno(-(code as i32))),
        None => Err(Errno(libc::EPROTO)),
    }
}

/// A request about our group.
fn config(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    let head = Head {
        kind,
        flags: libc::NLM_F_ACK as u16,
        resource: GROUP,
        ..Head::default()
    };
    message(head, parts)
}

/// Iterates over the messages of a batch.
fn messages(mut batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = word(batch, 0)? as usize;
        let message = batch.get(..len).filter(|_| len >= HEADER)?;
        batch = batch.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

fn parse(message: &[u8], names: &[(u32, String)]) -> Option<(Word, Flow)> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    if kind != PACKET {
        return None;
    }
    let (mut said, mut by, mut packet) = (None, None, None);
    for (kind, value) in attributes(message) {
        match kind {
            PREFIX => said = Word::of(value),
            INDEV => by = value.first_chunk().copied().map(u32::from_be_bytes),
            PAYLOAD => packet = Some(value),
            _ => {}
        }
    }
    let name = names.iter().find(|(index, _)| Some(*index) == by);
    let by = name.map_or_else(String::new, |(_, name)| name.clone());
    Some((said?, flow(packet?, by)?))
}

/// Reads the addresses and ports of a packet that begins with its IP header.
fn flow(packet: &[u8], by: String) -> Option<Flow> {
    let (src, dst, protocol, header): (IpAddr, IpAddr, u8, usize) = match packet.first()? >> 4 {
        4 => {
            let ip = |at: usize| packet.get(at..at + 4)?.first_chunk::<4>().copied();
            let header = usize::from(packet[0] & 0xf) * 4;
            (ip(12)?.into(), ip(16)?.into(), *packet.get(9)?, header)
        }
        6 => {
            let ip = |at: usize| packet.get(at..at + 16)?.first_chunk::<16>().copied();
            (ip(8)?.into(), ip(24)?.into(), *packet.get(6)?, 40)
        }
        _ => return None,
    };
    let port = |at: usize| {
        let bytes = packet.get(header + at..)?.first_chunk::<2>()?;
        Some(u16::from_be_bytes(*bytes))
    };
    let name = match i32::from(protocol) {
        libc::IPPROTO_TCP => "tcp",
        libc::IPPROTO_UDP => "udp",
        libc::IPPROTO_SCTP => "sctp",
        libc::IPPROTO_ICMP => "icmp",
        libc::IPPROTO_ICMPV6 => "icmpv6",
        _ => "",
    };
    let proto = match name {
        "" => protocol.to_string(),
        name => name.to_owned(),
    };
    let (src, dst) = match (name, port(0), port(2)) {
        ("tcp" | "udp" | "sctp", Some(from), Some(to)) => (
            SocketAddr::new(src, from).to_string(),
            SocketAddr::new(dst, to).to_string(),
        ),
        _ => (src.to_string(), dst.to_string()),
    };
    Some(Flow {
        by,
        proto,
        src,
        dst,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(to: u8) -> Vec<u8> {
        let mut packet = vec![0; 28];
        (packet[0], packet[9]) = (0x45, libc::IPPROTO_UDP as u8);
        packet[12..16].copy_from_slice(&[10, 0, 3, 2]);
        packet[16..20].copy_from_slice(&[192, 0, 2, to]);
        packet[20..24].copy_from_slice(&[0x10, 0, 0, 53]);
        packet
    }

    fn logged(prefix: &str, packet: &[u8]) -> Vec<u8> {
        let parts = [
            attribute(PREFIX, &[prefix.as_bytes(), &[0]].concat()),
            attribute(INDEV, &7u32.to_be_bytes()),
            attribute(PAYLOAD, packet),
        ];
        config(PACKET, &parts)
    }

    #[test]
    fn a_try_without_a_pass_was_refused() {
        let batch = [
            logged("ring3 try", &udp(1)),
            logged("ring3 pass", &udp(1)),
            logged("ring3 try", &udp(2)),
            logged("ring3 try", &udp(3)),
            logged("ring3 peer", &udp(3)),
            logged("of the policy's own", &udp(4)),
            logged("ring3 try", &udp(5)),
        ]
        .concat();
        let mut book = Book {
            out: Vec::new(),
            written: 0,
            tried: None,
        };
        let names = [(7, "sandbox0".to_owned())];
        for message in messages(&batch) {
            if let Some((word, flow)) = parse(message, &names) {
                book.hear(word, flow).unwrap();
            }
        }
        book.settle().unwrap();
        let text = String::from_utf8(book.out).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let told: Vec<_> = lines
            .iter()
            .map(|it| (it["verdict"].as_str().unwrap(), it["dst"].as_str().unwrap()))
            .collect();
        let expected = [
            ("passed", "192.0.2.1:53"),
            ("refused", "192.0.2.2:53"),
            ("refused", "192.0.2.3:53"),
            ("refused", "192.0.2.5:53"),
        ];
        assert_eq!(told, expected);
        assert_eq!(lines[0]["by"], "sandbox0");
        assert_eq!(lines[1]["why"], "policy");
        assert_eq!(lines[2]["why"], "to another sandbox");
    }

    #[test]
    fn what_is_cut_short_is_no_flow() {
        let whole = logged("ring3 try", &udp(1));
        for len in 0..whole.len() {
            let _ = parse(&whole[..len], &[]);
            let _ = messages(&whole[..len]).count();
        }
        for len in 0..20 {
            assert_eq!(flow(&udp(1)[..len], String::new()), None);
        }
    }
}
