// SPDX-License-Identifier: GPL-2.0
//! Messages of <linux/netfilter/nfnetlink.h>: shared by tables, logs and queues of packets.

/// struct nlmsghdr
pub const HEADER: usize = 16;
/// struct nfgenmsg
pub const GENERIC: usize = 4;

/// Subsystems, as the upper half of a message's kind.
pub const QUEUE: u16 = 3 << 8;
pub const LOG: u16 = 4 << 8;
pub const TABLES: u16 = 10 << 8;

/// Of logs and queues: CFG_CMD, and its values.
pub const CFG_CMD: u16 = 1;
pub const BIND: u8 = 1;
/// Of logs and queues: bytes of the packet come with the message.
pub const COPY_PACKET: u8 = 2;
/// The longest IP header, with IPv4's options or without IPv6's, and the ports.
pub const COPY_BYTES: u32 = 80;

const ATTRIBUTE_TYPE: u16 = 0x3fff;

/// An attribute with its padding.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = 4 + value.len();
    let mut bytes = [(len as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(len.next_multiple_of(4), 0);
    bytes
}

/// The part of a message before its attributes, without the length.
#[derive(Debug, Clone, Copy, Default)]
pub struct Head {
    pub kind: u16,
    /// Beside NLM_F_REQUEST.
    pub flags: u16,
    pub sequence: u32,
    pub family: u8,
    /// A queue, a group of a log.
    pub resource: u16,
}

pub fn message(head: Head, parts: &[Vec<u8>]) -> Vec<u8> {
    let body = parts.concat();
    let len = (HEADER + GENERIC + body.len()) as u32;
    let mut bytes = len.to_ne_bytes().to_vec();
    bytes.extend(head.kind.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16 | head.flags).to_ne_bytes());
    bytes.extend(head.sequence.to_ne_bytes());
    // The sender, which the kernel fills in; the version of the family.
    bytes.extend([0; 4]);
    bytes.extend([head.family, 0]);
    bytes.extend(head.resource.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// The attributes of a message, by kind; an invalid one ends the list.
pub fn attributes(message: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = message.get(HEADER + GENERIC..).unwrap_or_default();
    std::iter::from_fn(move || {
        let [a, b, c, d, ..] = *rest else { return None };
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & ATTRIBUTE_TYPE, value))
    })
}
