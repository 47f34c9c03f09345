// SPDX-License-Identifier: GPL-2.0
//! Where a destination that a program wrote leads on the host, and what is refused.
//!
//! ```text
//! the gateway's address, port 53     the host's resolver (/etc/resolv.conf)
//! the gateway's address              the host's loopback, if the port has loopback=yes
//! loopback, unspecified, multicast   refused: on the host they would mean the host itself, or its links
//! all else                           as it is
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ring3_node::Plan;

const RESOLV_CONF: &str = "/etc/resolv.conf";
/// What a host without name servers in its file asks (resolv.conf(5)).
const NO_RESOLVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const DNS: u16 = 53;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The gateway itself has no such service.
    NoService,
    /// An address that no gateway passes on.
    Address,
}

#[derive(Debug)]
pub struct Routes {
    gateways: Vec<IpAddr>,
    loopback: bool,
}

impl Routes {
    pub fn new(plan: &Plan) -> Routes {
        Routes {
            gateways: plan.gateways.iter().map(|net| net.addr()).collect(),
            loopback: plan.loopback,
        }
    }

    /// Where on the host.
    pub fn lead(&self, to: SocketAddr) -> Result<SocketAddr, Refusal> {
        let ip = to.ip().to_canonical();
        if self.gateways.contains(&ip) {
            return match (to.port(), self.loopback, ip) {
                (DNS, ..) => Ok((resolver(), DNS).into()),
                (port, true, IpAddr::V4(_)) => Ok((Ipv4Addr::LOCALHOST, port).into()),
                (port, true, IpAddr::V6(_)) => Ok((Ipv6Addr::LOCALHOST, port).into()),
                _ => Err(Refusal::NoService),
            };
        }
        let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
        // 0.0.0.0/8 is "this host".
        let this_host = matches!(ip, IpAddr::V4(v4) if v4.octets()[0] == 0);
        if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || broadcast || this_host {
            return Err(Refusal::Address);
        }
        Ok(SocketAddr::new(ip, to.port()))
    }
}

/// The host's first name server, as it is now.
fn resolver() -> IpAddr {
    let text = std::fs::read_to_string(RESOLV_CONF).unwrap_or_default();
    first_server(&text).unwrap_or(NO_RESOLVER)
}

fn first_server(text: &str) -> Option<IpAddr> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        match words.next() {
            // A link-local server's zone is the host's.
            Some("nameserver") => words.next()?.split('%').next()?.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(loopback: bool) -> Routes {
        Routes {
            gateways: vec!["10.0.2.2".parse().unwrap(), "fd00::2".parse().unwrap()],
            loopback,
        }
    }

    #[test]
    fn the_host_s_own_loopback_is_not_reached() {
        for to in [
            "127.0.0.1:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "[::1]:80",
            "[::]:80",
            "[::ffff:127.0.0.1]:80",
            "255.255.255.255:67",
            "224.0.0.1:5353",
            "[ff02::1]:5353",
        ] {
            assert_eq!(
                routes(true).lead(to.parse().unwrap()),
                Err(Refusal::Address),
                "{to}"
            );
        }
        let gateway = "10.0.2.2:80".parse().unwrap();
        assert_eq!(routes(false).lead(gateway), Err(Refusal::NoService));
        assert_eq!(
            routes(true).lead(gateway),
            Ok("127.0.0.1:80".parse().unwrap())
        );
        let gateway = "[fd00::2]:80".parse().unwrap();
        assert_eq!(routes(true).lead(gateway), Ok("[::1]:80".parse().unwrap()));
    }

    #[test]
    fn others_stay_what_they_are() {
        let to = "192.0.2.1:443".parse().unwrap();
        assert_eq!(routes(false).lead(to), Ok(to));
    }

    #[test]
    fn name_servers() {
        let text = "# x\nsearch a b\nnameserver fe80::1%eth0\nnameserver 192.0.2.53\n";
        assert_eq!(first_server(text), Some("fe80::1".parse().unwrap()));
        assert_eq!(first_server("nameserver\nnameserver x\n"), None);
    }
}
