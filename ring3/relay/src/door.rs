// SPDX-License-Identifier: GPL-2.0
//! Published ports: sockets of the host whose connections and datagrams go to the node.
//!
//! The node's program sees its client's own address, where that can be anybody's but the node's own host's or its own:
//! such a client has the gateway's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use ring3_config::Publish;
use ring3_node::{Errno, Plan};
use rustix::net::{sockopt, AddressFamily, SocketFlags, SocketType};

use crate::tuning::BACKLOG;

#[derive(Debug)]
pub struct Door {
    pub socket: OwnedFd,
    pub is_stream: bool,
    /// The node's port.
    pub to: u16,
}

/// Addresses of the node and of its gateway, for each family that it has.
#[derive(Debug)]
pub struct Ends {
    pairs: Vec<(IpAddr, IpAddr)>,
}

impl Ends {
    pub fn new(plan: &Plan) -> Ends {
        let pairs = plan.addrs.iter().filter_map(|net| {
            let gateway = plan
                .gateways
                .iter()
                .find(|gw| gw.addr().is_ipv4() == net.addr().is_ipv4());
            gateway.map(|gateway| (net.addr(), gateway.addr()))
        });
        Ends {
            pairs: pairs.collect(),
        }
    }

    /// Where a client's traffic goes on the node, and the name it has there (port 0: any).
    pub fn lead(&self, client: SocketAddr, port: u16) -> Option<(SocketAddr, SocketAddr)> {
        let ip = client.ip().to_canonical();
        let same = self
            .pairs
            .iter()
            .find(|(node, _)| node.is_ipv4() == ip.is_ipv4());
        let (node, gateway) = *same.or(self.pairs.first())?;
        let is_ours = self.pairs.iter().any(|(a, b)| *a == ip || *b == ip);
        // An address of one of the host's links means nothing on the node's.
        let is_of_a_link = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let keeps = same.is_some() && !ip.is_loopback() && !is_ours && !is_of_a_link;
        let name = match keeps {
            true => SocketAddr::new(ip, client.port()),
            false => SocketAddr::new(gateway, 0),
        };
        Some((SocketAddr::new(node, port), name))
    }
}

/// Opens all that is published. An error says which could not be.
pub fn open(list: &[String], is_stream: bool) -> Result<Vec<Door>, (String, Errno)> {
    let mut doors = Vec::new();
    for text in list {
        let fail = |why: Errno| (text.clone(), why);
        let publish: Publish = text.parse().map_err(|_| fail(Errno(libc::EINVAL)))?;
        for at in 0..=publish.last - publish.first {
            let socket = listen(publish.address, publish.first + at, is_stream).map_err(fail)?;
            doors.push(Door {
                socket,
                is_stream,
                to: publish.to + at,
            });
        }
    }
    Ok(doors)
}

fn listen(address: Option<IpAddr>, port: u16, is_stream: bool) -> Result<OwnedFd, Errno> {
    match address {
        Some(address) => bind((address, port).into(), is_stream),
        None => match bind((Ipv6Addr::UNSPECIFIED, port).into(), is_stream) {
            // A host without IPv6.
            Err(Errno(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) => {
                bind((Ipv4Addr::UNSPECIFIED, port).into(), is_stream)
            }
            bound => bound,
        },
    }
}

fn bind(address: SocketAddr, is_stream: bool) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let kind = match is_stream {
        true => SocketType::STREAM,
        false => SocketType::DGRAM,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        sockopt::set_ipv6_v6only(&socket, false)?;
    }
    if is_stream {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    if is_stream {
        rustix::net::listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_keep_their_names_where_they_can() {
        let ends = Ends {
            pairs: vec![("10.0.2.15".parse().unwrap(), "10.0.2.2".parse().unwrap())],
        };
        let both = Ends {
            pairs: vec![
                ("10.0.2.15".parse().unwrap(), "10.0.2.2".parse().unwrap()),
                ("fd00::15".parse().unwrap(), "fd00::2".parse().unwrap()),
            ],
        };
        let of_a_link = "[fe80::1%2]:1000".parse().unwrap();
        let gateway = (
            "[fd00::15]:80".parse().unwrap(),
            "[fd00::2]:0".parse().unwrap(),
        );
        assert_eq!(both.lead(of_a_link, 80), Some(gateway));
        let name = |client: &str| {
            ends.lead(client.parse().unwrap(), 80)
                .unwrap()
                .1
                .to_string()
        };
        assert_eq!(name("192.0.2.7:1000"), "192.0.2.7:1000");
        assert_eq!(name("[::ffff:192.0.2.7]:1000"), "192.0.2.7:1000");
        for other in [
            "127.0.0.1:1000",
            "10.0.2.15:1000",
            "10.0.2.2:1000",
            "[2001:db8::1]:1000",
        ] {
            assert_eq!(name(other), "10.0.2.2:0", "{other}");
        }
    }
}
