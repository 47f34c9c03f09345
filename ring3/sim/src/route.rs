// SPDX-License-Identifier: GPL-2.0
//! Routes of hosts that are joined by links: the ways with the fewest hops, all of them where several are equal.
//! Only routers pass on what is not for them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::address::{self, Addresses};
use crate::scenario::Scenario;

struct Net<'a> {
    scenario: &'a Scenario,
    addresses: &'a Addresses,
    /// Of each host: its links and the sides that it has of them.
    near: BTreeMap<&'a str, Vec<(usize, usize)>>,
}

/// Lines for `ip -batch`, by host.
pub fn routes(scenario: &Scenario, addresses: &Addresses) -> BTreeMap<String, Vec<String>> {
    let mut near: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    for (i, link) in scenario.links.iter().enumerate() {
        for (side, end) in link.ends.iter().enumerate() {
            near.entry(&end.host).or_default().push((i, side));
        }
    }
    let net = Net {
        scenario,
        addresses,
        near,
    };
    let mut made = BTreeMap::new();
    for host in net.near.keys() {
        made.insert((*host).to_owned(), net.of(host));
    }
    made
}

impl Net<'_> {
    fn of(&self, host: &str) -> Vec<String> {
        let links = &self.near[host];
        let is_on_net = self
            .scenario
            .hosts
            .get(host)
            .is_some_and(|host| host.node.is_some());
        if let ([(link, side)], false) = (links.as_slice(), is_on_net) {
            return self.default(*link, *side);
        }
        let hops = self.hops(host);
        let mut lines = Vec::new();
        for (i, link) in self.scenario.links.iter().enumerate() {
            if link.ends.iter().any(|end| end.host == host) {
                continue;
            }
            // By the nearer end; one that passes nothing on reaches its own address only.
            let best = link
                .ends
                .iter()
                .filter_map(|end| {
                    let (distance, first) = hops.get(end.host.as_str())?;
                    Some((!self.is_router(&end.host), *distance, first))
                })
                .fold(None, nearer);
            let Some((_, _, first)) = best else { continue };
            for net in subnets(&self.addresses.ends[i][0].addresses) {
                let via: Vec<IpAddr> = first
                    .iter()
                    .filter_map(|(link, side)| self.peer(*link, *side, &net))
                    .collect();
                if !via.is_empty() {
                    lines.push(address::route(&net, &via));
                }
            }
        }
        lines
    }

    fn is_router(&self, host: &str) -> bool {
        self.scenario
            .hosts
            .get(host)
            .is_some_and(|host| host.router)
    }

    /// The address at the far end of a link, of the family of `net`.
    fn peer(&self, link: usize, side: usize, net: &IpNet) -> Option<IpAddr> {
        let far = &self.addresses.ends[link][1 - side].addresses;
        far.iter()
            .map(IpNet::addr)
            .find(|address| address.is_ipv4() == net.addr().is_ipv4())
    }

    fn default(&self, link: usize, side: usize) -> Vec<String> {
        let mut seen = BTreeSet::new();
        self.addresses.ends[link][1 - side]
            .addresses
            .iter()
            .map(IpNet::addr)
            .filter(|via| seen.insert(via.is_ipv4()))
            .map(|via| format!("route replace default via {via}"))
            .collect()
    }

    fn hops(&self, from: &str) -> Hops<'_> {
        let mut found: Hops = BTreeMap::new();
        let mut queue = VecDeque::new();
        let Some((start, links)) = self.near.get_key_value(from) else {
            return found;
        };
        found.insert(start, (0, BTreeSet::new()));
        for (link, side) in links {
            let far = self.scenario.links[*link].ends[1 - side].host.as_str();
            let entry = found.entry(far).or_insert_with(|| {
                queue.push_back(far);
                (1, BTreeSet::new())
            });
            entry.1.insert((*link, *side));
        }
        while let Some(at) = queue.pop_front() {
            if !self.is_router(at) {
                continue;
            }
            let (distance, first) = found[at].clone();
            for (link, side) in &self.near[at] {
                let far = self.scenario.links[*link].ends[1 - side].host.as_str();
                let entry = found.entry(far).or_insert_with(|| {
                    queue.push_back(far);
                    (distance + 1, BTreeSet::new())
                });
                if entry.0 == distance + 1 {
                    entry.1.extend(first.iter().copied());
                }
            }
        }
        found
    }
}

/// Of each host that can be reached: how many hops away, and by which links (with our side) from here.
type Hops<'a> = BTreeMap<&'a str, (u32, BTreeSet<(usize, usize)>)>;

type End<'a> = (bool, u32, &'a BTreeSet<(usize, usize)>);

fn nearer<'a>(best: Option<End<'a>>, next: End<'a>) -> Option<End<'a>> {
    match best {
        Some(best) if (best.0, best.1) <= (next.0, next.1) => Some(best),
        _ => Some(next),
    }
}

fn subnets(addresses: &[IpNet]) -> Vec<IpNet> {
    addresses.iter().map(IpNet::trunc).collect()
}
