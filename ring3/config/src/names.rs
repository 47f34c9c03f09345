// SPDX-License-Identifier: GPL-2.0
//! What a node finds, and where: routes, names of hosts, and which of its own ports to wait for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::error::ConfigError;

/// A name in /etc/hosts: as long as a domain name (RFC 1035, 2.3.4).
const HOST_NAME_MAX: usize = 253;

/// `10.2.0.0/16 via 10.0.0.1`, `default via fd00::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub to: IpNet,
    pub via: IpAddr,
}

impl FromStr for Route {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Route, ConfigError> {
        let error = |why| ConfigError::Route {
            text: text.to_owned(),
            why,
        };
        let mut words = text.split_whitespace();
        let (Some(to), Some("via"), Some(via), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(error("is not `NETWORK via GATEWAY`"));
        };
        let via: IpAddr = via.parse().map_err(|_| error("has no address after via"))?;
        let to = match (to, via) {
            ("default", IpAddr::V4(_)) => Ipv4Net::default().into(),
            ("default", IpAddr::V6(_)) => Ipv6Net::default().into(),
            _ => to
                .parse::<IpNet>()
                .map_err(|_| error("has no network before via"))?,
        };
        if to.trunc() != to {
            return Err(error("has bits set beyond its prefix length"));
        }
        if to.addr().is_ipv4() != via.is_ipv4() {
            return Err(error("mixes IPv4 and IPv6"));
        }
        Ok(Route { to, via })
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} via {}", self.to, self.via)
    }
}

/// `NAME=ADDRESS`: a line of the node's /etc/hosts.
pub fn host(text: &str) -> Result<(String, IpAddr), ConfigError> {
    let error = |why| ConfigError::Host {
        text: text.to_owned(),
        why,
    };
    let (name, address) = text
        .split_once('=')
        .ok_or_else(|| error("is not NAME=ADDRESS"))?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > HOST_NAME_MAX || !name.chars().all(is_allowed) {
        return Err(error("has no host name before the ="));
    }
    let address = address
        .parse()
        .map_err(|_| error("has no address after the ="))?;
    Ok((name.to_owned(), address))
}

/// The address of a name server.
pub fn dns(text: &str) -> Result<IpAddr, ConfigError> {
    text.parse().map_err(|_| ConfigError::Dns {
        text: text.to_owned(),
    })
}

/// What is waited for before a node counts as started: a socket of this port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitFor {
    pub is_tcp: bool,
    pub port: u16,
}

impl FromStr for WaitFor {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<WaitFor, ConfigError> {
        let error = || ConfigError::WaitFor {
            text: text.to_owned(),
        };
        let (protocol, port) = text.split_once([' ', ':']).ok_or_else(error)?;
        let is_tcp = match protocol {
            "tcp" => true,
            "udp" => false,
            _ => return Err(error()),
        };
        let port = port.trim().parse().map_err(|_| error())?;
        match port {
            0 => Err(error()),
            port => Ok(WaitFor { is_tcp, port }),
        }
    }
}

/// The same with the node's name in front: `web tcp 8000`, `web:tcp:8000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitForNode {
    pub node: String,
    pub wait: WaitFor,
}

impl FromStr for WaitForNode {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<WaitForNode, ConfigError> {
        let error = || ConfigError::WaitForNode {
            text: text.to_owned(),
        };
        let (node, wait) = text.split_once([' ', ':']).ok_or_else(error)?;
        Ok(WaitForNode {
            node: node.to_owned(),
            wait: wait.trim_start().parse().map_err(|_| error())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        for good in ["10.2.0.0/16 via 10.0.0.1", "fd00:2::/64 via fd00::1"] {
            assert_eq!(good.parse::<Route>().unwrap().to_string(), good);
        }
        let default: Route = "default via 10.0.0.1".parse().unwrap();
        assert_eq!(default.to_string(), "0.0.0.0/0 via 10.0.0.1");
        for (bad, why) in [
            ("10.2.0.0/16", "is not `NETWORK via GATEWAY`"),
            ("10.2.0.0/16 via x", "no address after via"),
            ("x via 10.0.0.1", "no network before via"),
            ("10.2.0.1/16 via 10.0.0.1", "beyond its prefix"),
            ("fd00::/64 via 10.0.0.1", "mixes IPv4 and IPv6"),
        ] {
            let error = bad.parse::<Route>().unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn hosts_and_waits() {
        assert_eq!(host("db=10.0.0.2").unwrap().0, "db");
        for bad in ["db", "=10.0.0.2", "d b=10.0.0.2", "db=x", "d\nb=10.0.0.2"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        let wait = WaitFor {
            is_tcp: true,
            port: 80,
        };
        assert_eq!("tcp 80".parse(), Ok(wait));
        assert_eq!("tcp:80".parse(), Ok(wait));
        for bad in ["80", "tcp", "tcp 0", "sctp 80", "tcp 65536"] {
            assert!(bad.parse::<WaitFor>().is_err(), "{bad}");
        }
        for good in ["a tcp 80", "a:tcp:80", "a  tcp 80"] {
            let of_a = good.parse::<WaitForNode>().unwrap();
            assert_eq!((of_a.node.as_str(), of_a.wait), ("a", wait), "{good}");
        }
        for bad in ["tcp 80", "a", "a tcp", "a 80"] {
            let error = bad.parse::<WaitForNode>().unwrap_err().to_string();
            assert!(error.contains("NODE tcp PORT"), "{error}");
        }
    }
}
