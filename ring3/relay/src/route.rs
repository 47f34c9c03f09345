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
//! wrote, but for the two first lines. Names are in names.rs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use std::time::Instant;

use ring3_config::Rule;
use ring3_node::Plan;

use crate::names::Names;

const DNS: u16 = 53;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The gateway itself has no such service.
    NoService,
    /// An address that no gateway passes on.
    Address,
    /// A rule says so.
    Rule,
    /// A name that the rules leave out.
    Name,
    /// A name leads into the host's own networks.
    Inward,
    /// Too many connections from outside.
    Full,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Refusal::NoService => "the gateway itself has no such service (loopback=yes)",
            Refusal::Address => "no address of another host",
            Refusal::Rule => "allow= and deny=",
            Refusal::Name => "no name of allow=, or one of deny=",
            Refusal::Inward => {
                "of this host or a private network, which only an address in allow= opens"
            }
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
    pub names: Names,
}

impl Routes {
    pub fn new(plan: &Plan) -> Result<Routes, &'static str> {
        let rules = |list: &[String]| {
            list.iter()
                .map(|text| text.parse::<Rule>())
                .collect::<Result<Vec<_>, _>>()
        };
        let (allow, deny) = (rules(&plan.allow)?, rules(&plan.deny)?);
        Ok(Routes {
            names: Names::new(&allow, &deny),
            allow,
            deny,
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
        self.is_allowed(ip, Some(to.port()))?;
        Ok(SocketAddr::new(ip, to.port()))
    }

    /// Where an echo request goes; `None`: to the gateway itself.
    pub fn lead_echo(&self, to: IpAddr) -> Result<Option<IpAddr>, Refusal> {
        let ip = to.to_canonical();
        if self.gateways.contains(&ip) {
            return Ok(None);
        }
        self.is_allowed(ip, None)?;
        Ok(Some(ip))
    }

    /// Whether the resolver is asked there, and names are ruled.
    pub fn are_names_asked(&self, to: SocketAddr) -> bool {
        let is_dns = to.port() == DNS && self.gateways.contains(&to.ip().to_canonical());
        is_dns && self.names.are_ruled()
    }

    fn is_allowed(&self, ip: IpAddr, port: Option<u16>) -> Result<(), Refusal> {
        let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
        // 0.0.0.0/8 is "this host".
        let this_host = matches!(ip, IpAddr::V4(v4) if v4.octets()[0] == 0);
        if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || broadcast || this_host {
            return Err(Refusal::Address);
        }
        let now = Instant::now();
        let any = |rules: &[Rule], is_allow: bool| {
            let mut all = rules.iter().enumerate();
            // Whose an address is, is known of names that may be asked for alone.
            all.any(|(at, rule)| {
                rule.holds_for(ip, port, |_| is_allow && self.names.has(ip, at, now))
            })
        };
        match any(&self.deny, false) || !(self.allow.is_empty() || any(&self.allow, true)) {
            true => Err(Refusal::Rule),
            false => Ok(()),
        }
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
            names: Names::new(&[], &[]),
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
