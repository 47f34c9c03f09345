// SPDX-License-Identifier: GPL-2.0
//! The two namespaces that belong to no host: the network of places, and the links (see plan.rs).

use std::collections::BTreeMap;

use crate::address::{self, Addresses};
use crate::plan::{Space, Step, Timed, NET, WIRES};
use crate::qdisc;
use crate::scenario::{Host, Network, Scenario};
use crate::simlink;
use crate::steps;

/// The network of places. What it returns is done when the time without limits is over.
pub fn places(
    scenario: &Scenario,
    network: &Network,
    addresses: &Addresses,
    spaces: &mut BTreeMap<String, Space>,
    links: &mut Vec<String>,
) -> Option<Timed> {
    let hosts: Vec<(&String, &Host)> = scenario
        .hosts
        .iter()
        .filter(|(_, host)| host.node.is_some())
        .collect();
    if hosts.is_empty() {
        return None;
    }
    let mut used: Vec<i64> = hosts.iter().filter_map(|(_, host)| host.node).collect();
    used.sort_unstable();
    used.dedup();
    // Checked when the scenario was read.
    let ways = network
        .graph
        .ways(&used, network.shortest)
        .unwrap_or_default();
    let boot = !scenario.general.bootstrap_end.is_zero();
    let mut net = Space {
        name: NET.into(),
        early: vec![
            ("net.ipv4.ip_forward".into(), "1".into()),
            ("net.ipv6.conf.all.forwarding".into(), "1".into()),
            ("net.ipv6.conf.all.accept_dad".into(), "0".into()),
            ("net.ipv6.conf.default.accept_dad".into(), "0".into()),
        ],
        ip: vec![
            "link set lo up".into(),
            format!("addr add {}/32 dev lo", address::GATEWAY),
        ],
        nft: qdisc::classify(&hosts, &used, addresses),
        ..Space::default()
    };
    // Without IPv6 its interfaces would still report their groups, after random delays.
    let has_ipv6 = hosts.iter().any(|(name, _)| addresses.has_ipv6(name));
    let mut late = Vec::new();
    for (i, (name, host)) in hosts.iter().enumerate() {
        let (near, far) = (address::mac(i, 0), address::mac(i, 1));
        let port = format!("c{i}");
        if !has_ipv6 {
            let key = format!("net.ipv6.conf.{port}.disable_ipv6");
            net.early.push((key, "1".into()));
        }
        links.push(format!(
            "link add {} netns {name} address {near} type veth peer name {port} netns {NET} address {far}",
            address::ETH0
        ));
        let vertex = host.node.and_then(|id| network.graph.nodes.get(&id));
        let up = host.up.or(vertex.and_then(|v| v.up));
        let down = host.down.or(vertex.and_then(|v| v.down));
        net.ip
            .extend(address::net_port(&port, &near, addresses.of(name)));
        let ways: Vec<_> = used
            .iter()
            .filter_map(|from| ways.get(&(*from, host.node?)).copied())
            .collect();
        let shape = |free: bool| qdisc::downstream(&port, down, &ways, free);
        net.tc.extend(shape(boot));
        let space = spaces.get_mut(*name);
        let upstream = |free: bool| match free {
            true => Vec::new(),
            false => qdisc::egress(address::ETH0, up, host.qdisc.as_deref(), None),
        };
        if let Some(space) = space {
            space
                .ip
                .extend(address::host_port(&far, addresses.of(name)));
            space.tc.extend(upstream(boot));
        }
        if boot {
            late.push(Step::Tc {
                space: NET.into(),
                lines: qdisc::again(&port, shape(false)),
            });
            late.push(Step::Tc {
                space: (*name).clone(),
                lines: upstream(false),
            });
        }
    }
    spaces.insert(NET.into(), net);
    boot.then(|| Timed {
        at: scenario.general.bootstrap_end,
        label: "end of the time without limits".into(),
        steps: late,
    })
}

/// The links in virtual time.
pub fn cables(
    scenario: &Scenario,
    addresses: &Addresses,
    spaces: &mut BTreeMap<String, Space>,
    links: &mut Vec<String>,
) {
    for (i, link) in scenario.links.iter().enumerate() {
        let ends = &addresses.ends[i];
        let macs = [address::link_mac(i, 0), address::link_mac(i, 1)];
        let [near, far] = [0, 1].map(|side| {
            let host = link.ends[side].host.as_str();
            (host, ends[side].interface.as_str(), macs[side].as_str())
        });
        links.push(simlink::add(near, far));
        for side in 0..2 {
            let Some(space) = spaces.get_mut(&link.ends[side].host) else {
                continue;
            };
            let (end, peer, wire) = (&ends[side], &ends[1 - side], &link.wires[side]);
            let seed = simlink::seed(scenario.general.seed, i, side);
            space
                .wires
                .push(simlink::set(&end.interface, wire, Some(seed)));
            space
                .ip
                .extend(address::link_port(end, peer, &macs[1 - side]));
            space.tc.extend(qdisc::before(&end.interface, wire));
        }
    }
}

/// The links in real time.
pub fn wires(
    scenario: &Scenario,
    addresses: &Addresses,
    spaces: &mut BTreeMap<String, Space>,
    links: &mut Vec<String>,
) {
    if scenario.links.is_empty() {
        return;
    }
    let mut wires = Space {
        name: WIRES.into(),
        early: vec![("net.ipv6.conf.default.disable_ipv6".into(), "1".into())],
        ..Space::default()
    };
    for (i, link) in scenario.links.iter().enumerate() {
        let ends = &addresses.ends[i];
        for side in 0..2 {
            let (end, peer) = (&ends[side], &ends[1 - side]);
            let host = &link.ends[side].host;
            let (port, other) = (steps::port(i, side), steps::port(i, 1 - side));
            links.push(format!(
                "link add {} netns {host} address {} type veth peer name {port} netns {WIRES} address {}",
                end.interface,
                address::link_mac(i, side),
                address::link_mac(i, 2 + side),
            ));
            // The default comes too late for one that is there. It would report its groups after random delays.
            let key = format!("net.ipv6.conf.{port}.disable_ipv6");
            wires.early.push((key, "1".into()));
            wires.ip.push(format!("link set {port} up gso_max_segs 1"));
            wires.tc.extend(qdisc::patch(&port, &other));
            // What leaves by this end has come from the other host.
            wires.tc.extend(qdisc::wire(&port, &link.wires[1 - side]));
            if let Some(space) = spaces.get_mut(host) {
                let peer_mac = address::link_mac(i, 1 - side);
                space.ip.extend(address::link_port(end, peer, &peer_mac));
                let wire = &link.wires[side];
                let queue = wire.queue.as_deref();
                space
                    .tc
                    .extend(qdisc::egress(&end.interface, wire.rate, queue, wire.limit));
            }
        }
    }
    spaces.insert(WIRES.into(), wires);
}
