// SPDX-License-Identifier: GPL-2.0
//! Who has which address, and the words that give it to them.
//!
//! No neighbour is ever asked for: each end knows the other's link address from the start. A gateway of its own
//! (169.254.0.1, fe80::1) stands for the network of places.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::scenario::Scenario;

pub const ETH0: &str = "eth0";
pub const GATEWAY: &str = "169.254.0.1";
pub const GATEWAY6: &str = "fe80::1";

/// The first address that a host gets by itself (Shadow's).
const FIRST: u32 = u32::from_be_bytes([11, 0, 0, 1]);
const FIRST6: u128 = 0xfd11_0000_0000_0000_0000_0000_0000_0001;
/// Subnets of links: four addresses each, of which two are used.
const LINKS: u32 = u32::from_be_bytes([10, 128, 0, 0]);
const LINKS6: u128 = 0xfd10_0000_0000_0000_0000_0000_0000_0000;

/// One end of a link, with everything decided.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkEnd {
    pub interface: String,
    pub addresses: Vec<IpNet>,
}

#[derive(Debug, Default)]
pub struct Addresses {
    hosts: BTreeMap<String, Vec<IpAddr>>,
    /// By link, then by side.
    pub ends: Vec<[LinkEnd; 2]>,
}

impl Addresses {
    pub fn assign(scenario: &Scenario) -> Addresses {
        let mut made = Addresses::default();
        let taken: BTreeSet<IpAddr> = scenario
            .hosts
            .values()
            .flat_map(|host| [host.address, host.address6])
            .flatten()
            .collect();
        let (mut next, mut next6) = (FIRST, FIRST6);
        for (name, host) in scenario
            .hosts
            .iter()
            .filter(|(_, host)| host.node.is_some())
        {
            let address = host.address.unwrap_or_else(|| loop {
                let address = IpAddr::V4(next.into());
                next += 1;
                let last = next.wrapping_sub(1) & 0xff;
                if last != 0 && last != 255 && !taken.contains(&address) {
                    break address;
                }
            });
            let mut list = vec![address];
            match host.address6 {
                Some(address) => list.push(address),
                None if scenario.general.ipv6 => list.push(loop {
                    let address = IpAddr::V6(next6.into());
                    next6 += 1;
                    if !taken.contains(&address) {
                        break address;
                    }
                }),
                None => {}
            }
            made.hosts.insert(name.clone(), list);
        }
        made.assign_links(scenario);
        made
    }

    fn assign_links(&mut self, scenario: &Scenario) {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, host) in &scenario.hosts {
            count.insert(name, usize::from(host.node.is_some()));
        }
        let mut taken: BTreeSet<(String, String)> = BTreeSet::new();
        for link in &scenario.links {
            for end in &link.ends {
                if let Some(interface) = &end.interface {
                    taken.insert((end.host.clone(), interface.clone()));
                }
            }
        }
        for (i, link) in scenario.links.iter().enumerate() {
            let mut sides = Vec::new();
            for (side, end) in link.ends.iter().enumerate() {
                let interface = end.interface.clone().unwrap_or_else(|| {
                    let next = count.entry(&end.host).or_default();
                    loop {
                        let name = format!("eth{next}");
                        *next += 1;
                        if !taken.contains(&(end.host.clone(), name.clone())) {
                            break name;
                        }
                    }
                });
                let addresses = match end.addresses.is_empty() {
                    false => end.addresses.clone(),
                    true => automatic_link(i, side, scenario.general.ipv6),
                };
                let known = self.hosts.entry(end.host.clone()).or_default();
                known.extend(addresses.iter().map(IpNet::addr));
                sides.push(LinkEnd {
                    interface,
                    addresses,
                });
            }
            if let Ok(sides) = <[LinkEnd; 2]>::try_from(sides) {
                self.ends.push(sides);
            }
        }
    }

    /// A host's addresses; the first is the one that its name stands for.
    pub fn of(&self, host: &str) -> Vec<IpAddr> {
        self.hosts.get(host).cloned().unwrap_or_default()
    }

    pub fn has_ipv6(&self, host: &str) -> bool {
        self.of(host).iter().any(IpAddr::is_ipv6)
    }
}

fn automatic_link(link: usize, side: usize, ipv6: bool) -> Vec<IpNet> {
    let last = side as u32 + 1;
    let v4 = Ipv4Addr::from(LINKS + 4 * link as u32 + last);
    let v6 = Ipv6Addr::from(LINKS6 + ((link as u128) << 64) + u128::from(last));
    let mut list = Vec::new();
    list.extend(Ipv4Net::new(v4, 30).map(IpNet::V4));
    if ipv6 {
        list.extend(Ipv6Net::new(v6, 64).map(IpNet::V6));
    }
    list
}

/// Of interface `host` of the network of places: side 0 the host's, 1 the network's.
pub fn mac(host: usize, side: u8) -> String {
    let n = host as u32;
    let [_, a, b, c] = n.to_be_bytes();
    format!("02:00:{side:02x}:{a:02x}:{b:02x}:{c:02x}")
}

/// Of a link: sides 0 and 1 the hosts', 2 and 3 those in `_wires`.
pub fn link_mac(link: usize, side: usize) -> String {
    let [_, a, b, c] = (link as u32).to_be_bytes();
    format!("02:01:{side:02x}:{a:02x}:{b:02x}:{c:02x}")
}

/// Bits of the address itself.
fn bits(address: &IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// No duplicate is looked for: there is none.
fn nodad(address: &IpAddr) -> &'static str {
    match address {
        IpAddr::V4(_) => "",
        IpAddr::V6(_) => " nodad",
    }
}

/// The host's end of its way to the network.
pub fn host_port(gateway: &str, addresses: Vec<IpAddr>) -> Vec<String> {
    let mut lines = vec![format!("link set {ETH0} up gso_max_segs 1")];
    // Links have addresses of their own; this interface has the first of each family.
    let first = |is: fn(&IpAddr) -> bool| addresses.iter().find(|address| is(address));
    for address in [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)]
        .into_iter()
        .flatten()
    {
        let via = match address {
            IpAddr::V4(_) => GATEWAY,
            IpAddr::V6(_) => GATEWAY6,
        };
        let bits = bits(address);
        lines.push(format!(
            "addr add {address}/{bits} dev {ETH0}{}",
            nodad(address)
        ));
        lines.push(format!(
            "neigh replace {via} lladdr {gateway} dev {ETH0} nud permanent"
        ));
        lines.push(format!(
            "route add default via {via} dev {ETH0} onlink src {address}"
        ));
    }
    lines
}

/// The network's end of it.
pub fn net_port(port: &str, mac: &str, addresses: Vec<IpAddr>) -> Vec<String> {
    let mut lines = vec![format!("link set {port} up gso_max_segs 1")];
    let first = |is: fn(&IpAddr) -> bool| addresses.iter().find(|address| is(address));
    for address in [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)]
        .into_iter()
        .flatten()
    {
        lines.push(format!("route add {address}/{} dev {port}", bits(address)));
        lines.push(format!(
            "neigh replace {address} lladdr {mac} dev {port} nud permanent"
        ));
    }
    lines
}

/// A host's end of a link.
pub fn link_port(end: &LinkEnd, peer: &LinkEnd, peer_mac: &str) -> Vec<String> {
    let dev = &end.interface;
    let mut lines = vec![format!("link set {dev} up gso_max_segs 1")];
    for net in &end.addresses {
        lines.push(format!("addr add {net} dev {dev}{}", nodad(&net.addr())));
    }
    // Where this end has no IPv6 address, its host may have none at all: IPv6 is off there.
    let has = |ip6| end.addresses.iter().any(|net| net.addr().is_ipv6() == ip6);
    let known = peer.addresses.iter().map(IpNet::addr);
    for address in known.filter(|address| has(address.is_ipv6())) {
        lines.push(format!(
            "neigh replace {address} lladdr {peer_mac} dev {dev} nud permanent"
        ));
    }
    lines
}

/// Words that add a route; `via` are equal.
pub fn route(net: &IpNet, via: &[IpAddr]) -> String {
    match via {
        [one] => format!("route replace {net} via {one}"),
        many => {
            let hops: Vec<_> = many
                .iter()
                .map(|via| format!("nexthop via {via}"))
                .collect();
            format!("route replace {net} {}", hops.join(" "))
        }
    }
}
