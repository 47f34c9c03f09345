// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: packets that wait for the host's answer
//!
//! A program that connects is to hear what the host hears: that it is connected, refused, or that there is no way. So the
//! gateway's nftables queue each SYN (ring3_node::nft), and the relay gives its verdict once its own connect() has ended:
//!
//! ```text
//! connected            accept: the gateway's kernel answers the SYN, and accept() gives the connection
//! refused, no way      accept with a mark, which a rule answers with a reset or an ICMP error
//! timed out            drop: the program's own kernel has its own patience
//! ```
//!
//! An echo request waits in the same way, in a queue of its own (icmp.rs).
//!
//! The messages are those of <linux/netfilter/nfnetlink_queue.h>.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ring3_node::inside::Mark;
use ring3_node::nfnetlink::{
    self, attribute, attributes, Head, BIND, CFG_CMD, COPY_BYTES, COPY_PACKET, HEADER, QUEUE,
};
use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use crate::tuning::HELD_MAX;

const PACKET: u16 = QUEUE;
const VERDICT: u16 = QUEUE | 1;
const CONFIG: u16 = QUEUE | 2;
/// Attributes.
const CFG_PARAMS: u16 = 2;
const CFG_QUEUE_MAXLEN: u16 = 3;
const CFG_MASK: u16 = 4;
const CFG_FLAGS: u16 = 5;
const PACKET_HDR: u16 = 1;
const VERDICT_HDR: u16 = 2;
const MARK: u16 = 3;
const PAYLOAD: u16 = 10;
/// What does not find room in the queue is accepted.
const FAIL_OPEN: u32 = 1;
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
/// An echo request goes out as it is.
const COPY_ALL: u32 = 0xffff;

/// A SYN that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub id: u32,
    /// Source and destination; `None`: something that is not understood.
    pub ends: Option<(SocketAddr, SocketAddr)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accept,
    Drop,
    Refuse(Mark),
}

/// What the program's own Linux is to say for what the host said.
pub fn verdict_of(why: Errno) -> Verdict {
    match why.0 {
        libc::ECONNREFUSED | libc::ECONNRESET => Verdict::Refuse(Mark::Reset),
        libc::ENETUNREACH => Verdict::Refuse(Mark::NoRoute),
        libc::ETIMEDOUT => Verdict::Drop,
        libc::EACCES | libc::EPERM => Verdict::Refuse(Mark::Prohibited),
        _ => Verdict::Refuse(Mark::HostUnreachable),
    }
}

/// Whatever the family.
fn message(queue: u16, kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    let head = Head {
        kind,
        resource: queue,
        ..Head::default()
    };
    nfnetlink::message(head, parts)
}

/// A queue of the gateway's rules.
#[derive(Debug, Clone, Copy)]
pub enum Queue {
    Syns = 0,
    Echoes = 1,
}

/// The node's socket where held packets come in.
pub fn open(task: &mut Task, queue: Queue) -> Result<Fd, Errno> {
    let fd = task.socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)?;
    let bytes = match queue {
        Queue::Syns => COPY_BYTES,
        Queue::Echoes => COPY_ALL,
    };
    let params = [&bytes.to_be_bytes()[..], &[COPY_PACKET]].concat();
    let parts = [
        attribute(CFG_CMD, &[BIND, 0, 0, 0]),
        attribute(CFG_PARAMS, &params),
        attribute(CFG_QUEUE_MAXLEN, &HELD_MAX.to_be_bytes()),
        attribute(CFG_MASK, &FAIL_OPEN.to_be_bytes()),
        attribute(CFG_FLAGS, &FAIL_OPEN.to_be_bytes()),
    ];
    // Without an acknowledgement asked for, only an error is answered.
    match task.send_netlink(fd, &message(queue as u16, CONFIG, &parts)) {
        Ok(_) => Ok(fd),
        Err(why) => task.close(fd).and(Err(why)),
    }
}

pub fn decide(
    task: &mut Task,
    (fd, queue): (Fd, Queue),
    id: u32,
    verdict: Verdict,
) -> Result<(), Errno> {
    let word = match verdict {
        Verdict::Drop => NF_DROP,
        Verdict::Accept | Verdict::Refuse(_) => NF_ACCEPT,
    };
    let mut parts = vec![attribute(
        VERDICT_HDR,
        &[word.to_be_bytes(), id.to_be_bytes()].concat(),
    )];
    if let Verdict::Refuse(mark) = verdict {
        parts.push(attribute(MARK, &(mark as u32).to_be_bytes()));
    }
    task.send_netlink(fd, &message(queue as u16, VERDICT, &parts))
        .map(drop)
}

/// The SYN of a message; an error of the kernel's.
pub fn parse(message: &[u8]) -> Result<Option<Held>, Errno> {
    let packet = parse_packet(message)?;
    Ok(packet.map(|(id, packet)| Held {
        id,
        ends: ends_of(packet),
    }))
}

/// The packet of a message, which may be cut off, and its number.
pub fn parse_packet(message: &[u8]) -> Result<Option<(u32, &[u8])>, Errno> {
    let half = |at: usize| {
        message
            .get(at..at + 2)
            .map(|it| u16::from_ne_bytes([it[0], it[1]]))
    };
    if half(4) == Some(libc::NLMSG_ERROR as u16) {
        let code = message
            .get(HEADER..HEADER + 4)
            .map_or([0; 4], |it| it.try_into().unwrap_or([0; 4]));
        return match i32::from_ne_bytes(code) {
            0 => Ok(None),
            code => Err(Errno(-code)),
        };
    }
    if half(4) != Some(PACKET) {
        return Ok(None);
    }
    let (mut id, mut packet) = (None, &[][..]);
    for (kind, value) in attributes(message) {
        match kind {
            PACKET_HDR => id = value.first_chunk().copied().map(u32::from_be_bytes),
            PAYLOAD => packet = value,
            _ => {}
        }
    }
    Ok(id.map(|id| (id, packet)))
}

/// Source and destination of a packet that begins with its IP header and is TCP's.
fn ends_of(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let bytes = |at: usize, len: usize| packet.get(at..at + len);
    let (source, destination, ports) = match packet.first()? >> 4 {
        4 => {
            let ip = |at| -> Option<IpAddr> {
                Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes(at, 4)?).ok()?).into())
            };
            (ip(12)?, ip(16)?, usize::from(packet[0] & 15) * 4)
        }
        // Behind another header it is not looked for: such a SYN is accepted first and connected then.
        6 if packet.get(6) == Some(&(libc::IPPROTO_TCP as u8)) => {
            let ip = |at| -> Option<IpAddr> {
                Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes(at, 16)?).ok()?).into())
            };
            (ip(8)?, ip(24)?, 40)
        }
        _ => return None,
    };
    let port = |at| bytes(at, 2).map(|it| u16::from_be_bytes([it[0], it[1]]));
    let source = SocketAddr::new(source, port(ports)?);
    Some((source, SocketAddr::new(destination, port(ports + 2)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_packets() {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[12..20].copy_from_slice(&[10, 0, 2, 15, 192, 0, 2, 1]);
        packet[20..24].copy_from_slice(&[0x80, 0, 0, 80]);
        let ends = (
            "10.0.2.15:32768".parse().unwrap(),
            "192.0.2.1:80".parse().unwrap(),
        );
        assert_eq!(ends_of(&packet), Some(ends));
        packet[0] = 0x4f;
        assert_eq!(ends_of(&packet), None);
        for len in 0..40 {
            ends_of(&packet[..len]);
        }
        let mut packet = vec![0; 60];
        (packet[0], packet[6]) = (0x60, 6);
        packet[23] = 1;
        packet[40..44].copy_from_slice(&[0, 9, 0, 80]);
        let ends = ("[::1]:9".parse().unwrap(), "[::]:80".parse().unwrap());
        assert_eq!(ends_of(&packet), Some(ends));
    }

    #[test]
    fn nonsense_is_no_packet() {
        assert_eq!(parse(&[]), Ok(None));
        let mut message = message(0, PACKET, &[attribute(PACKET_HDR, &[0, 0, 0, 7, 0, 0, 0])]);
        assert_eq!(parse(&message), Ok(Some(Held { id: 7, ends: None })));
        // An attribute that is longer than the message, and one shorter than its head.
        for len in [200u16, 0, 3] {
            message[20..22].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(parse(&message), Ok(None), "{len}");
        }
    }
}
