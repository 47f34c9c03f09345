// SPDX-License-Identifier: GPL-2.0
//! Where a destination that a program wrote leads on the host, and what is refused.
//!
//! ```text
//! the gateway's address, port 53     the host's resolver, as the keeper says
//! the gateway's address              the host's loopback, if the port has loopback=yes
//! loopback, unspecified, multicast   refused: on the host they would mean the host itself, or its links
//! all else                           as it is, where the port's rules allow it
//! ```
//!
//! A rule of deny= wins; where there are rules of allow=, one of them has to hold. Rules are asked about what the program
//! wrote, but for the two first lines.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ring3_config::Rule;
use ring3_node::Plan;

const DNS: u16 = 53;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The gateway itself has no such service.
    NoService,
    /// An address that no gateway passes on.
    Address,
    /// A rule says so.
    Rule,
    /// Too many connections from outside.
    Full,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::NoService => "the gateway itself has no such service (loopback=yes)",
            Refusal::Address => "no address of another host",
            Refusal::Rule => "allow= and deny=",
            Refusal::Full => "too many connections from there, or in all",
        })
    }
}

#[derive(Debug)]
pub struct Routes {
    gateways: Vec<IpAddr>,
    loopback: bool,
    pub resolver: IpAddr,
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

impl Routes {
    pub fn new(plan: &Plan) -> Result<Routes, &'static str> {
        let rules = |list: &[String]| {
            list.iter()
                .map(|text| text.parse::<Rule>())
                .collect::<Result<_, _>>()
        };
        Ok(Routes {
            allow: rules(&plan.allow)?,
            deny: rules(&plan.deny)?,
            gateways: plan.gateways.iter().map(|net| net.addr()).collect(),
            loopback: plan.loopback,
            resolver: plan.resolver,
        })
    }

    /// Where on the host.
    pub fn lead(&self, to: SocketAddr) -> Result<SocketAddr, Refusal> {
        let ip = to.ip().to_canonical();
        if self.gateways.contains(&ip) {
            return match (to.port(), self.loopback, ip) {
                (DNS, ..) => Ok((self.resolver, DNS).into()),
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
        let any = |rules: &[Rule]| rules.iter().any(|rule| rule.holds_for(ip, to.port()));
        if any(&self.deny) || !(self.allow.is_empty() || any(&self.allow)) {
            return Err(Refusal::Rule);
        }
        Ok(SocketAddr::new(ip, to.port()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(loopback: bool) -> Routes {
        Routes {
            gateways: vec!["10.0.2.2".parse().unwrap(), "fd00::2".parse().unwrap()],
            loopback,
            resolver: Ipv4Addr::LOCALHOST.into(),
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }

    #[test]
    fn deny_wins() {
        let mut routes = routes(false);
        routes.deny = vec!["192.0.2.0/24".parse().unwrap()];
        let lead = |routes: &Routes, to: &str| routes.lead(to.parse().unwrap()).is_ok();
        assert!(lead(&routes, "198.51.100.1:80"));
        assert!(!lead(&routes, "192.0.2.1:80"));
        routes.allow = vec!["*:80".parse().unwrap()];
        assert!(lead(&routes, "198.51.100.1:80"));
        assert!(!lead(&routes, "198.51.100.1:81"));
        assert!(!lead(&routes, "192.0.2.1:80"));
        assert!(!lead(&routes, "[::ffff:192.0.2.1]:80"));
        assert!(lead(&routes, "10.0.2.2:53"));
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
}
