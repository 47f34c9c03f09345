// SPDX-License-Identifier: GPL-2.0
//! Frames that the guest does not take as they are. Those of a link have checksums to be filled in, and segments of 64 KiB; a
//! guest that has not agreed to such gets what a card would have put on a wire.
//!
//! The frame is copied first, since the node may change it. Its headers may be anything: each place is looked up with its
//! bounds, and a frame that is not what its virtio_net_hdr says is dropped.

use vm_memory::VolatileSlice;

use crate::features::{GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM};
use crate::link::{Header, HEADER};

const ETHERNET: usize = 14;
const VLAN: usize = 4;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const IPV4_MIN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_MIN: usize = 20;
const UDP: usize = 8;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Of a TCP header: its flags' place, and those that one segment of several has.
const TCP_FLAGS: usize = 13;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// One frame, and what is made of it, piece by piece.
#[derive(Debug, Default)]
pub struct Scratch {
    frame: Vec<u8>,
    cut: Option<Cut>,
    /// Bytes of the payload that are done, and segments.
    done: usize,
    count: u16,
    /// The segment at hand; empty: it has to be made.
    segment: Vec<u8>,
}

/// Where a frame's headers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    network: usize,
    is_v6: bool,
    transport: usize,
    is_tcp: bool,
    payload: usize,
    /// Bytes of payload in a segment.
    size: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The internet checksum's sum, not yet folded.
fn sum(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks(2);
    pairs
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Fills in a checksum whose pseudo-header's sum is in its place.
fn fill_in(frame: &mut [u8], header: &Header) -> Option<()> {
    let start = usize::from(u16::from_le_bytes([header[6], header[7]]));
    let place = start + usize::from(u16::from_le_bytes([header[8], header[9]]));
    word(frame, place)?;
    let value = match fold(sum(frame.get(start..)?)) {
        // Of UDP, 0 says that there is none; of others both are the same.
        0 => 0xffff,
        value => value,
    };
    put(frame, place, value);
    Some(())
}

impl Cut {
    fn find(frame: &[u8], header: &Header) -> Option<Cut> {
        let gso = header[1] & 0x7f;
        let size = usize::from(u16::from_le_bytes([header[4], header[5]]));
        if header[0] & NEEDS_CSUM == 0 || size == 0 {
            return None;
        }
        let transport = usize::from(u16::from_le_bytes([header[6], header[7]]));
        let mut network = ETHERNET;
        let mut kind = word(frame, ETHERNET - 2)?;
        for _ in 0..2 {
            if TAGS.contains(&kind) {
                kind = word(frame, network + 2)?;
                network += VLAN;
            }
        }
        let first = *frame.get(network)?;
        let (is_v6, least) = match (kind, first >> 4) {
            (IPV4, 4) => (false, usize::from(first & 15) * 4),
            (IPV6, 6) => (true, IPV6_LEN),
            _ => return None,
        };
        if least < IPV4_MIN || transport < network + least {
            return None;
        }
        let is_tcp = gso == GSO_TCPV4 || gso == GSO_TCPV6;
        let fits = match gso {
            GSO_TCPV4 => !is_v6,
            GSO_TCPV6 => is_v6,
            GSO_UDP_L4 => true,
            _ => false,
        };
        let head = match is_tcp {
            true => usize::from(frame.get(transport + 12)? >> 4) * 4,
            false => UDP,
        };
        let payload = transport + head;
        if !fits || (is_tcp && head < TCP_MIN) || payload >= frame.len() {
            return None;
        }
        Some(Cut {
            network,
            is_v6,
            transport,
            is_tcp,
            payload,
            size,
        })
    }

    /// The segment of these bytes of payload.
    fn make(&self, frame: &[u8], done: usize, count: u16, segment: &mut Vec<u8>) {
        let from = self.payload + done;
        let to = frame.len().min(from + self.size);
        segment.extend_from_slice(&frame[..self.payload]);
        segment.extend_from_slice(&frame[from..to]);
        let (network, transport) = (self.network, self.transport);
        let len = (segment.len() - transport) as u16;
        let addresses = if self.is_v6 {
            let len = segment.len() - network - IPV6_LEN;
            put(segment, network + 4, len as u16);
            network + 8..network + 40
        } else {
            let len = segment.len() - network;
            put(segment, network + 2, len as u16);
            let id = word(segment, network + 4).unwrap_or(0);
            put(segment, network + 4, id.wrapping_add(count));
            put(segment, network + 10, 0);
            let head = usize::from(segment[network] & 15) * 4;
            let value = fold(sum(&segment[network..network + head]));
            put(segment, network + 10, value);
            network + 12..network + 20
        };
        let (protocol, place) = match self.is_tcp {
            true => (PROTOCOL_TCP, transport + 16),
            false => (PROTOCOL_UDP, transport + 6),
        };
        if self.is_tcp {
            let at = transport + 4;
            let mut number = [0; 4];
            number.copy_from_slice(&segment[at..at + 4]);
            let number = u32::from_be_bytes(number).wrapping_add(done as u32);
            segment[at..at + 4].copy_from_slice(&number.to_be_bytes());
            if to < frame.len() {
                segment[transport + TCP_FLAGS] &= !FIN_PSH;
            }
            if done > 0 {
                segment[transport + TCP_FLAGS] &= !CWR;
            }
        } else {
            put(segment, transport + 4, len);
        }
        put(segment, place, 0);
        let pseudo = sum(&segment[addresses]) + u64::from(protocol) + u64::from(len);
        let value = match fold(pseudo + sum(&segment[transport..])) {
            0 => 0xffff,
            value => value,
        };
        put(segment, place, value);
    }
}

impl Scratch {
    /// Takes up a frame, if it is what its header says.
    pub fn take(&mut self, header: &Header, frame: VolatileSlice<'_>) {
        self.frame.resize(frame.len(), 0);
        frame.copy_to(&mut self.frame);
        (self.done, self.count, self.cut) = (0, 0, None);
        self.segment.clear();
        if header[1] & 0x7f == GSO_NONE {
            if header[0] & NEEDS_CSUM == 0 || fill_in(&mut self.frame, header).is_some() {
                std::mem::swap(&mut self.frame, &mut self.segment);
            }
            return;
        }
        self.cut = Cut::find(&self.frame, header);
    }

    /// What is left to be given.
    pub fn next(&mut self) -> Option<(Header, &mut [u8])> {
        if let (Some(cut), true) = (self.cut, self.segment.is_empty()) {
            if cut.payload + self.done < self.frame.len() {
                cut.make(&self.frame, self.done, self.count, &mut self.segment);
            }
        }
        match self.segment.is_empty() {
            true => None,
            false => Some(([0; HEADER], &mut self.segment)),
        }
    }

    /// That was given.
    pub fn consume(&mut self) {
        self.segment.clear();
        if let Some(cut) = self.cut {
            self.done += cut.size;
            self.count = self.count.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame with a TCP segment of `payload`, and the header of a node that cuts and sums later.
    fn tcp(is_v6: bool, payload: &[u8], size: u16) -> (Header, Vec<u8>) {
        let mut frame = vec![2; 12];
        if is_v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, PROTOCOL_TCP, 64]);
            frame.extend([0xfd; 16]);
            frame.extend([0xfe; 16]);
        } else {
            frame.extend([8, 0, 0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0]);
            frame.extend([64, PROTOCOL_TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let transport = frame.len();
        frame.extend([0, 80, 1, 0, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 0]);
        frame.extend([0x50, 0x99, 1, 1, 0, 0, 0, 0]);
        frame.extend(payload);
        let gso = if is_v6 { GSO_TCPV6 } else { GSO_TCPV4 };
        let [low, high] = size.to_le_bytes();
        let header = [1, gso, 0, 0, low, high, transport as u8, 0, 16, 0, 0, 0];
        (header, frame)
    }

    fn all(header: &Header, frame: &mut [u8]) -> Vec<Vec<u8>> {
        let mut scratch = Scratch::default();
        scratch.take(header, VolatileSlice::from(frame));
        let mut made = Vec::new();
        while let Some((head, segment)) = scratch.next() {
            assert_eq!(head, [0; HEADER]);
            made.push(segment.to_vec());
            scratch.consume();
        }
        made
    }

    #[test]
    fn a_segment_is_cut_into_what_a_wire_takes() {
        let payload: Vec<u8> = (0..10_000u32).map(|it| it as u8).collect();
        for is_v6 in [false, true] {
            let (header, mut frame) = tcp(is_v6, &payload, 1448);
            let made = all(&header, &mut frame);
            assert_eq!(made.len(), 7);
            let transport = usize::from(header[6]);
            let mut together: Vec<u8> = Vec::new();
            for (number, segment) in made.iter().enumerate() {
                let text = &segment[transport..];
                let mut seq = [0; 4];
                seq.copy_from_slice(&text[4..8]);
                let expected = 0xffff_ff00u32.wrapping_add(1448 * number as u32);
                assert_eq!(u32::from_be_bytes(seq), expected);
                let is_last = number == 6;
                assert_eq!(text[13] & FIN_PSH != 0, is_last, "segment {number}");
                assert_eq!(text[13] & CWR != 0, number == 0, "segment {number}");
                // A sum over a segment with its checksum is all ones.
                let addresses = if is_v6 { 22..54 } else { 26..34 };
                let pseudo = sum(&segment[addresses]) + 6 + text.len() as u64;
                assert_eq!(fold(pseudo + sum(text)), 0, "segment {number}");
                if is_v6 {
                    assert_eq!(word(segment, 18), Some(text.len() as u16));
                } else {
                    assert_eq!(fold(sum(&segment[14..34])), 0);
                    assert_eq!(word(segment, 16), Some(segment.len() as u16 - 14));
                    assert_eq!(
                        word(segment, 18),
                        Some(0xffffu16.wrapping_add(number as u16))
                    );
                }
                together.extend(&text[20..]);
            }
            assert_eq!(together, payload);
        }
    }

    #[test]
    fn a_checksum_is_filled_in() {
        let mut frame = vec![0; 14 + 20];
        frame.extend([0, 53, 0, 53, 0, 9, 0x12, 0x34, 7]);
        let header = [1, 0, 0, 0, 0, 0, 34, 0, 6, 0, 0, 0];
        let made = all(&header, &mut frame);
        assert_eq!(made.len(), 1);
        // The pseudo-header's sum was 0x1234: with it taken off, what is left is all ones.
        assert_eq!(fold(sum(&made[0][34..]) + 0x1234), 0);
    }

    #[test]
    fn headers_that_lie_give_nothing() {
        let payload = [1; 4000];
        type Spoil = dyn Fn(&mut Header, &mut Vec<u8>);
        let spoil: [&Spoil; 9] = [
            &|header, _| header[0] = 0,
            &|header, _| (header[4], header[5]) = (0, 0),
            &|header, _| (header[6], header[7]) = (0xff, 0xff),
            &|header, _| header[6] = 15,
            &|header, _| header[1] = GSO_TCPV6,
            &|header, _| header[1] = 3,
            &|_, frame| frame[14] = 0x41,
            &|_, frame| frame[14 + 20 + 12] = 0x10,
            &|_, frame| frame.truncate(40),
        ];
        for (number, spoil) in spoil.iter().enumerate() {
            let (mut header, mut frame) = tcp(false, &payload, 1000);
            spoil(&mut header, &mut frame);
            assert!(all(&header, &mut frame).is_empty(), "{number}");
        }
        let mut short = vec![0; 20];
        let header = [1, 0, 0, 0, 0, 0, 18, 0, 1, 0, 0, 0];
        assert!(all(&header, &mut short).is_empty());
    }
}
