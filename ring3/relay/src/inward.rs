// SPDX-License-Identifier: GPL-2.0
//! Addresses that a name alone does not open. Who answers for a name may be anybody, and could have it lead into the
//! host's own networks (DNS rebinding): such addresses are allowed as addresses, or not at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::SocketType;

use crate::sockets::connect;

/// Any port: nothing is sent.
const DISCARD: u16 = 9;

#[derive(Debug, Default)]
pub struct Own(Vec<IpAddr>);

impl Own {
    /// The addresses of the host's interfaces. Before the wall, which has no call for it.
    pub fn of_host() -> Own {
        let all = nix::ifaddrs::getifaddrs().inspect_err(|why| {
            log::warn!("the host does not tell which addresses it has: {why}");
        });
        let all = all.into_iter().flatten();
        let ip = |it: nix::ifaddrs::InterfaceAddress| {
            let address = it.address?;
            let v4 = address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip())))
        };
        Own(all.filter_map(ip).collect())
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.contains(&address) || is_local_now(address)
    }

    /// Of this host, or of a network that is not the public one.
    pub fn is_inward(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_private(address) || self.has(address)
    }
}

/// The host came to this address later: it speaks to itself in its own name.
fn is_local_now(address: IpAddr) -> bool {
    let Ok((socket, _)) = connect(SocketAddr::new(address, DISCARD), SocketType::DGRAM) else {
        return false;
    };
    let from = rustix::net::getsockname(&socket).and_then(SocketAddr::try_from);
    from.is_ok_and(|from| from.ip() == address)
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    // 100.64.0.0/10 is of carriers' networks (RFC 6598).
    let carrier = a == 100 && b & 0xc0 == 64;
    a == 0 || carrier || v4.is_private() || v4.is_loopback() || v4.is_link_local()
}

fn is_private_v6(v6: Ipv6Addr) -> bool {
    let words = v6.segments();
    let v4 = |at: usize| Ipv4Addr::from((u32::from(words[at]) << 16) | u32::from(words[at + 1]));
    // fc00::/7, and of links and sites: fe80::/10, fec0::/10.
    let of_a_site = words[0] & 0xfe00 == 0xfc00 || words[0] & 0xff80 == 0xfe80;
    // What carries an IPv4 address: ::/96, NAT64 (RFC 6052, RFC 8215), 6to4.
    let carried = match words {
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_private_v4(v4(6)),
        [0x64, 0xff9b, 1, ..] => true,
        [0x2002, ..] => is_private_v4(v4(1)),
        _ => false,
    };
    v6.is_loopback() || of_a_site || carried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_does_not_open() {
        let own = Own(vec!["192.0.2.9".parse().unwrap()]);
        let is_inward = |text: &str| own.is_inward(text.parse().unwrap());
        for text in [
            "10.1.2.3",
            "172.31.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.127.0.1",
            "127.0.0.1",
            "0.1.2.3",
            "::1",
            "::10.0.0.1",
            "::ffff:10.0.0.1",
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "192.0.2.9",
        ] {
            assert!(is_inward(text), "{text}");
        }
        for text in [
            "192.0.2.1",
            "172.32.0.1",
            "100.128.0.1",
            "2001:db8::1",
            "64:ff9b::c000:201",
        ] {
            assert!(!is_inward(text), "{text}");
        }
    }

    /// An address that the host came to later: 127.0.0.1 stands for one.
    #[test]
    fn the_host_s_own_addresses_are_known() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert!(Own::of_host().0.contains(&loopback));
        assert!(Own::default().has(loopback));
    }
}
