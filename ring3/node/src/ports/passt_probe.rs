// SPDX-License-Identifier: GPL-2.0
//! Does this passt let its guest reach the host's loopback?
//!
//! `--no-map-gw` closes the gateway's address. A guest can also write 127.0.0.1, ::1 or the unspecified address into a
//! packet, and a passt of before 2024, as Debian 12's, connects to that on the host. A program on a sandboxed node makes
//! its own packets. So passt is asked before it gets one: sockets of ours wait on the loopback, and the
//! connections and datagrams that a guest would try are tried.
//!
//! passt connects or sends as soon as it reads the packet, and it reads frames in order. It answers ARP requests before the
//! other packets of the same read: so after the answer to a second request all of them have been seen to.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;

use etherparse::{EtherType, PacketBuilder};

/// Address of the probe: locally administered. passt learns the node's with the node's first frame.
const MAC: [u8; 6] = [0x02, 0x72, 0x33, 0x00, 0x00, 0x01];
/// A length above this is no frame's.
const FRAME_MAX: usize = 128 << 10;
/// Of the probe's connections; the next ones by address.
const FIRST_PORT: u16 = 40_000;
const ARP_BYTES: usize = 42;

/// Asks for the gateway's Ethernet address and returns it. The stream is left between two frames.
pub(super) fn ask(mut stream: &UnixStream, from: Ipv4Addr, gateway: Ipv4Addr) -> Result<[u8; 6]> {
    send(stream, &arp_request(from, gateway))?;
    loop {
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let len = u32::from_be_bytes(len) as usize;
        if len > FRAME_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut frame = vec![0; len];
        stream.read_exact(&mut frame)?;
        if is_arp_reply(&frame) {
            let mut mac = [0; 6];
            mac.copy_from_slice(&frame[6..12]);
            return Ok(mac);
        }
    }
}

fn send(mut stream: &UnixStream, frame: &[u8]) -> Result<()> {
    // At once: a passt of 2023 that reads a length alone forgets it.
    let len = (frame.len() as u32).to_be_bytes();
    stream.write_all(&[&len[..], frame].concat())
}

/// Whether a connection or a datagram to one of the loopback's addresses arrives there.
pub(super) fn leads_to_loopback(
    stream: &UnixStream,
    (v4, gateway): (Ipv4Addr, Ipv4Addr),
    v6: Ipv6Addr,
) -> Result<bool> {
    let mac = ask(stream, v4, gateway)?;
    let mut waiting = vec![Waiting::at(Ipv4Addr::LOCALHOST.into())?];
    // A host without IPv6 has none to reach.
    waiting.extend(Waiting::at(Ipv6Addr::LOCALHOST.into()));
    let mut source = FIRST_PORT;
    for it in &waiting {
        let targets: &[(IpAddr, IpAddr)] = match it.at.is_ipv4() {
            true => &[
                (v4.into(), Ipv4Addr::LOCALHOST.into()),
                (v4.into(), Ipv4Addr::UNSPECIFIED.into()),
                (v6.into(), Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()),
            ],
            false => &[
                (v6.into(), Ipv6Addr::LOCALHOST.into()),
                (v6.into(), Ipv6Addr::UNSPECIFIED.into()),
            ],
        };
        for &(from, to) in targets {
            let streams = packet(
                mac,
                (from, source),
                (to, it.streams.local_addr()?.port()),
                true,
            )?;
            send(stream, &streams)?;
            let datagrams = it.datagrams.local_addr()?.port();
            send(
                stream,
                &packet(mac, (from, source), (to, datagrams), false)?,
            )?;
            source += 1;
        }
    }
    ask(stream, v4, gateway)?;
    ask(stream, v4, gateway)?;
    Ok(waiting.iter().any(Waiting::has_heard))
}

/// Who waits at an address of the loopback. passt of 2024-03 to 2024-07 looks at the addresses of TCP only.
struct Waiting {
    at: IpAddr,
    streams: TcpListener,
    datagrams: UdpSocket,
}

impl Waiting {
    fn at(at: IpAddr) -> Result<Waiting> {
        let (streams, datagrams) = (TcpListener::bind((at, 0))?, UdpSocket::bind((at, 0))?);
        streams.set_nonblocking(true)?;
        datagrams.set_nonblocking(true)?;
        Ok(Waiting {
            at,
            streams,
            datagrams,
        })
    }

    fn has_heard(&self) -> bool {
        self.streams.accept().is_ok() || self.datagrams.recv_from(&mut [0]).is_ok()
    }
}

/// The first packet of a connection, or a datagram.
fn packet(
    gateway: [u8; 6],
    from: (IpAddr, u16),
    to: (IpAddr, u16),
    is_stream: bool,
) -> Result<Vec<u8>> {
    const TTL: u8 = 64;
    const WINDOW: u16 = 65_535;
    let frame = PacketBuilder::ethernet2(MAC, gateway);
    let packet = match (from.0, to.0) {
        (IpAddr::V4(from), IpAddr::V4(to)) => frame.ipv4(from.octets(), to.octets(), TTL),
        (IpAddr::V6(from), IpAddr::V6(to)) => frame.ipv6(from.octets(), to.octets(), TTL),
        _ => return Err(ErrorKind::InvalidInput.into()),
    };
    let mut bytes = Vec::new();
    let written = match is_stream {
        true => packet
            .tcp(from.1, to.1, 1, WINDOW)
            .syn()
            .write(&mut bytes, &[]),
        false => packet.udp(from.1, to.1).write(&mut bytes, b"?"),
    };
    written.map_err(std::io::Error::other)?;
    Ok(bytes)
}

fn arp_request(from: Ipv4Addr, to: Ipv4Addr) -> [u8; ARP_BYTES] {
    let mut frame = [0; ARP_BYTES];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&MAC);
    frame[12..14].copy_from_slice(&EtherType::ARP.0.to_be_bytes());
    // Ethernet, IPv4, their address lengths, request
    frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    frame[22..28].copy_from_slice(&MAC);
    frame[28..32].copy_from_slice(&from.octets());
    frame[38..42].copy_from_slice(&to.octets());
    frame
}

fn is_arp_reply(frame: &[u8]) -> bool {
    frame.len() >= ARP_BYTES
        && frame[12..14] == EtherType::ARP.0.to_be_bytes()
        && frame[20..22] == [0, 2]
}
