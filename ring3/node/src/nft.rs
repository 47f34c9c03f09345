// SPDX-License-Identifier: GPL-2.0
//! The rules of a gateway, as nftables' netlink messages (<linux/netfilter/nf_tables.h>).
//!
//! ```text
//! table inet gateway {
//!     chain hold {
//!         type filter hook prerouting priority mangle - 10
//!         meta l4proto tcp tcp flags & (fin | syn | rst | ack) == syn queue num 0 bypass
//!         icmp type echo-request queue num 1 bypass
//!         icmpv6 type echo-request queue num 1 bypass
//!     }
//!     chain prerouting {
//!         type filter hook prerouting priority mangle
//!         meta mark 1 reject with tcp reset
//!         meta mark 2 reject with icmpx no-route
//!         meta mark 3 reject with icmpx host-unreachable
//!         meta mark 4 reject with icmpx admin-prohibited
//!         meta l4proto tcp tproxy to :RELAY
//!         meta l4proto udp tproxy to :RELAY
//!         icmp type echo-request reject with icmpx admin-prohibited
//!         icmpv6 type echo-request reject with icmpx admin-prohibited
//!     }
//! }
//! ```
//!
//! All addresses are local to the gateway here, so its kernel would answer for each destination,
//! existing or not. The relay holds each echo request, too, and either carries it or lets it be
//! refused. It holds each SYN until the host has answered its own connect(), and passes a refusal
//! on by a mark.

use crate::calls::SockAddr;
use crate::error::Errno;
use crate::image::Thread;
use crate::nfnetlink::{self, attribute, Head, HEADER, TABLES};

type Result<T> = std::result::Result<T, Errno>;

/// The mark that the relay sets on a held SYN that the host has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Reset = 1,
    NoRoute = 2,
    HostUnreachable = 3,
    Prohibited = 4,
}

const TABLE: &str = "gateway";
const HOLD: &str = "hold";
const PREROUTING: &str = "prerouting";

const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEWTABLE: u16 = TABLES;
const NEWCHAIN: u16 = TABLES | 3;
const NEWRULE: u16 = TABLES | 6;
const NFPROTO_INET: u8 = 1;
const HOOK_PREROUTING: u32 = 0;
/// NF_IP_PRI_MANGLE
const MANGLE: i32 = -150;

const ACK: u16 = libc::NLM_F_ACK as u16;
const CREATE: u16 = libc::NLM_F_CREATE as u16;
const APPEND: u16 = libc::NLM_F_APPEND as u16;
const NESTED: u16 = libc::NLA_F_NESTED as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
/// The first register of 16 bytes.
const REG_1: u32 = 1;
const META_MARK: u32 = 3;
const META_L4PROTO: u32 = 16;
const CMP_EQ: u32 = 0;
const BASE_TRANSPORT: u32 = 2;
/// Of the TCP header: the byte of the flags, and those that tell a SYN.
const FLAGS_AT: u32 = 13;
/// ICMP's types of an echo request.
const ECHO: u8 = 8;
const ECHO6: u8 = 128;
const FIN_SYN_RST_ACK: u8 = 0x17;
const SYN: u8 = 0x02;
/// NFT_REJECT_*, and codes of ICMPX.
const REJECT_RESET: u32 = 1;
const REJECT_ICMPX: u32 = 2;
const NO_ROUTE: u8 = 0;
const HOST_UNREACHABLE: u8 = 2;
const PROHIBITED: u8 = 3;
/// NFT_QUEUE_FLAG_BYPASS: without a relay the packet goes on.
const BYPASS: u16 = 1;

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

fn word(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

fn expression(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    // NFTA_LIST_ELEM: NFTA_EXPR_NAME, NFTA_EXPR_DATA
    nested(1, &[text(1, name), nested(2, parts)])
}

/// Values are in NFTA_DATA_VALUE.
fn data(kind: u16, value: &[u8]) -> Vec<u8> {
    nested(kind, &[attribute(1, value)])
}

fn message(kind: u16, flags: u16, family: u8, sequence: u32, parts: &[Vec<u8>]) -> Vec<u8> {
    let resource = match kind {
        BATCH_BEGIN | BATCH_END => TABLES >> 8,
        _ => 0,
    };
    let head = Head {
        kind,
        flags,
        sequence,
        family,
        resource,
    };
    nfnetlink::message(head, parts)
}

fn chain(sequence: u32, name: &str, priority: i32) -> Vec<u8> {
    let hook = nested(4, &[word(1, HOOK_PREROUTING), word(2, priority as u32)]);
    let parts = [text(1, TABLE), text(3, name), hook, text(7, "filter")];
    message(NEWCHAIN, CREATE | ACK, NFPROTO_INET, sequence, &parts)
}

fn rule(sequence: u32, chain: &str, expressions: &[Vec<u8>]) -> Vec<u8> {
    let parts = [text(1, TABLE), text(2, chain), nested(4, expressions)];
    message(
        NEWRULE,
        CREATE | APPEND | ACK,
        NFPROTO_INET,
        sequence,
        &parts,
    )
}

/// `key` of the packet has this value.
fn meta_is(key: u32, value: &[u8]) -> [Vec<u8>; 2] {
    [
        expression("meta", &[word(2, key), word(1, REG_1)]),
        expression("cmp", &[word(1, REG_1), word(2, CMP_EQ), data(3, value)]),
    ]
}

/// `meta l4proto PROTOCOL tproxy to :PORT`
fn transparent(sequence: u32, protocol: u8, port: u16) -> Vec<u8> {
    let [load, compare] = meta_is(META_L4PROTO, &[protocol]);
    let value = expression("immediate", &[word(1, REG_1), data(2, &port.to_be_bytes())]);
    let proxy = expression("tproxy", &[word(1, 0), word(3, REG_1)]);
    rule(sequence, PREROUTING, &[load, compare, value, proxy])
}

/// `meta l4proto tcp tcp flags & (fin | syn | rst | ack) == syn queue num 0 bypass`
fn hold(sequence: u32) -> Vec<u8> {
    let [load, compare] = meta_is(META_L4PROTO, &[libc::IPPROTO_TCP as u8]);
    let flags = [
        word(1, REG_1),
        word(2, BASE_TRANSPORT),
        word(3, FLAGS_AT),
        word(4, 1),
    ];
    let masked = [
        word(1, REG_1),
        word(2, REG_1),
        word(3, 1),
        data(4, &[FIN_SYN_RST_ACK]),
        data(5, &[0]),
    ];
    let is_syn = [word(1, REG_1), word(2, CMP_EQ), data(3, &[SYN])];
    let half = |kind: u16, value: u16| attribute(kind, &value.to_be_bytes());
    let expressions = [
        load,
        compare,
        expression("payload", &flags),
        expression("bitwise", &masked),
        expression("cmp", &is_syn),
        expression("queue", &[half(1, 0), half(2, 1), half(3, BYPASS)]),
    ];
    rule(sequence, HOLD, &expressions)
}

/// `icmp type echo-request`
fn is_echo(protocol: u8, kind: u8) -> [Vec<u8>; 4] {
    let [load, compare] = meta_is(META_L4PROTO, &[protocol]);
    let first = [
        word(1, REG_1),
        word(2, BASE_TRANSPORT),
        word(3, 0),
        word(4, 1),
    ];
    let is_echo = [word(1, REG_1), word(2, CMP_EQ), data(3, &[kind])];
    let payload = expression("payload", &first);
    [load, compare, payload, expression("cmp", &is_echo)]
}

/// `icmp type echo-request queue num 1 bypass`
fn hold_echo(sequence: u32, protocol: u8, kind: u8) -> Vec<u8> {
    let half = |kind: u16, value: u16| attribute(kind, &value.to_be_bytes());
    let queue = expression("queue", &[half(1, 1), half(2, 1), half(3, BYPASS)]);
    let expressions = [&is_echo(protocol, kind)[..], &[queue]].concat();
    rule(sequence, HOLD, &expressions)
}

/// `meta mark MARK reject with ...`
fn refuse(sequence: u32, mark: Mark) -> Vec<u8> {
    // The kernel keeps a mark in its own byte order.
    let [load, compare] = meta_is(META_MARK, &(mark as u32).to_ne_bytes());
    let code = |code: u8| vec![word(1, REJECT_ICMPX), attribute(2, &[code])];
    let how = match mark {
        Mark::Reset => vec![word(1, REJECT_RESET)],
        Mark::NoRoute => code(NO_ROUTE),
        Mark::HostUnreachable => code(HOST_UNREACHABLE),
        Mark::Prohibited => code(PROHIBITED),
    };
    rule(
        sequence,
        PREROUTING,
        &[load, compare, expression("reject", &how)],
    )
}

/// `icmp type echo-request reject with icmpx admin-prohibited`
fn no_echo(sequence: u32, protocol: u8, kind: u8) -> Vec<u8> {
    let how = [word(1, REJECT_ICMPX), attribute(2, &[PROHIBITED])];
    let reject = expression("reject", &how);
    let expressions = [&is_echo(protocol, kind)[..], &[reject]].concat();
    rule(sequence, PREROUTING, &expressions)
}

/// The messages, and how many of them are acknowledged.
fn rules(port: u16) -> (Vec<u8>, usize) {
    let table = [text(1, TABLE)];
    let parts = [
        message(BATCH_BEGIN, 0, 0, 0, &[]),
        message(NEWTABLE, CREATE | ACK, NFPROTO_INET, 1, &table),
        chain(2, HOLD, MANGLE - 10),
        hold(3),
        chain(4, PREROUTING, MANGLE),
        refuse(5, Mark::Reset),
        refuse(6, Mark::NoRoute),
        refuse(7, Mark::HostUnreachable),
        refuse(8, Mark::Prohibited),
        transparent(9, libc::IPPROTO_TCP as u8, port),
        transparent(10, libc::IPPROTO_UDP as u8, port),
        hold_echo(11, libc::IPPROTO_ICMP as u8, ECHO),
        hold_echo(12, libc::IPPROTO_ICMPV6 as u8, ECHO6),
        no_echo(13, libc::IPPROTO_ICMP as u8, ECHO),
        no_echo(14, libc::IPPROTO_ICMPV6 as u8, ECHO6),
        message(BATCH_END, 0, 0, 15, &[]),
    ];
    (parts.concat(), parts.len() - 2)
}

/// Every TCP connection and UDP datagram goes to the transparent sockets on `port`.
pub(crate) fn to_relay(init: &mut Thread, port: u16) -> Result<()> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let fd = init.socket(libc::AF_NETLINK, kind, libc::NETLINK_NETFILTER)?;
    let (batch, count) = rules(port);
    let done = init
        .send_to(fd, &batch, &SockAddr::netlink())
        .and_then(|_| acknowledged(init, fd, count));
    init.close(fd).and(done)
}

fn acknowledged(init: &mut Thread, fd: i32, mut count: usize) -> Result<()> {
    let mut answer = [0; 4096];
    while count > 0 {
        let len = init.recv(fd, &mut answer, 0)?;
        let mut rest = &answer[..len.min(answer.len())];
        while let Some(head) = rest.get(..HEADER + 4) {
            let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
            if u16::from_ne_bytes([head[4], head[5]]) == ERROR {
                let code = i32::from_ne_bytes([head[16], head[17], head[18], head[19]]);
                if code != 0 {
                    return Err(Errno(-code));
                }
                count = count.saturating_sub(1);
            }
            rest = rest
                .get(len.max(HEADER).next_multiple_of(4)..)
                .unwrap_or_default();
        }
    }
    Ok(())
}
