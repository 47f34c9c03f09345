// SPDX-License-Identifier: GPL-2.0
//! Which socket of the node a frame belongs to: its protocol and addresses, with the node's end first.

use std::net::{IpAddr, SocketAddr};

use etherparse::{Icmpv4Type, Icmpv6Type, LaxNetSlice, LaxSlicedPacket, TransportSlice};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    Tcp,
    Udp,
    /// Echo requests of the node and their replies; the identifier is in the port's place.
    Ping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    pub protocol: Protocol,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// The flow of an Ethernet frame, and whether it is the first of a connection. `None`: no socket has such frames,
/// or it is a fragment that does not say whose it is.
pub(super) fn of(frame: &[u8], is_outgoing: bool) -> Option<(Flow, bool)> {
    let packet = LaxSlicedPacket::from_ethernet(frame).ok()?;
    let (from, to): (IpAddr, IpAddr) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let (protocol, from_port, to_port, is_first) =
        match packet.transport.as_ref()? {
            TransportSlice::Tcp(tcp) => {
                let is_first = tcp.syn() && !tcp.ack();
                (
                    Protocol::Tcp,
                    tcp.source_port(),
                    tcp.destination_port(),
                    is_first,
                )
            }
            TransportSlice::Udp(udp) => (
                Protocol::Udp,
                udp.source_port(),
                udp.destination_port(),
                false,
            ),
            TransportSlice::Icmpv4(icmp) => {
                let id = match (icmp.icmp_type(), is_outgoing) {
                    (Icmpv4Type::EchoRequest(echo), true)
                    | (Icmpv4Type::EchoReply(echo), false) => echo.id,
                    _ => return None,
                };
                (Protocol::Ping, id, id, false)
            }
            TransportSlice::Icmpv6(icmp) => {
                let id = match (icmp.icmp_type(), is_outgoing) {
                    (Icmpv6Type::EchoRequest(echo), true)
                    | (Icmpv6Type::EchoReply(echo), false) => echo.id,
                    _ => return None,
                };
                (Protocol::Ping, id, id, false)
            }
            _ => return None,
        };
    let (from, to) = (
        SocketAddr::new(from, from_port),
        SocketAddr::new(to, to_port),
    );
    let (local, remote) = match is_outgoing {
        true => (from, to),
        false => (to, from),
    };
    let flow = Flow {
        protocol,
        local,
        remote,
    };
    Some((flow, is_first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn address(words: &str) -> SocketAddr {
        words.parse().unwrap()
    }

    #[test]
    fn the_node_s_end_comes_first() {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .tcp(1234, 80, 0, 1000)
            .syn()
            .write(&mut frame, &[])
            .unwrap();
        let (flow, is_first) = of(&frame, true).unwrap();
        assert!(is_first);
        assert_eq!(flow.protocol, Protocol::Tcp);
        assert_eq!(flow.local, address("10.0.0.1:1234"));
        assert_eq!(flow.remote, address("10.0.0.2:80"));
        let (flow, _) = of(&frame, false).unwrap();
        assert_eq!(flow.local, address("10.0.0.2:80"));
        // Cut behind the ports, as a short capture length would.
        assert!(of(&frame[..30], true).is_none());
    }

    #[test]
    fn echo_requests_of_others_belong_to_nobody() {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv6([1; 16], [2; 16], 64)
            .icmpv6_echo_request(77, 1)
            .write(&mut frame, b"x")
            .unwrap();
        assert_eq!(of(&frame, true).unwrap().0.local.port(), 77);
        assert!(of(&frame, false).is_none());
    }

    #[test]
    fn nonsense_belongs_to_nobody() {
        for len in 0..60 {
            assert!(of(&vec![0xff; len], true).is_none());
        }
    }
}
