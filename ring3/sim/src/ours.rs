// SPDX-License-Identifier: GPL-2.0
//! The keys of a scenario that Shadow has not: links, routers, topologies by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use crate::error::{Fault, Places};
use crate::read::opt;
use crate::scenario::{ClockChange, End, FaultPlan, General, Host, Link, Nat, NatKind, Wire};
use crate::topology;
use crate::units::{bytes_of, drift_of, rate_of, share_of, step_of, time_of};
use crate::yaml::{Map, Node, Result, Value};

pub const WIRE: &[&str] = &[
    "rate",
    "delay",
    "jitter",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "queue",
    "limit",
    "trace",
];
pub const LINK: &[&str] = &[
    "between",
    "name",
    "interfaces",
    "addresses",
    "back",
    "rate",
    "delay",
    "jitter",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "queue",
    "limit",
    "trace",
];
/// IFNAMSIZ of linux/if.h, without its zero.
const INTERFACE_BYTES: usize = 15;

pub const CLOCK: &[&str] = &["step", "drift"];
pub const SETTINGS: &[&str] = &["sample", "ipv6", "routes", "faults"];
pub const FAULTS: &[&str] = &["hosts", "from", "to", "most"];

/// `sim:` of the file. What it returns is read when hosts are known.
pub fn settings<'a>(node: &'a Node, general: &mut General) -> Result<Option<&'a Node>> {
    let mut map = node.map("sim")?;
    if let Some(sample) = opt(&mut map, "sample", time_of)? {
        general.sample = sample;
    }
    general.ipv6 = opt(&mut map, "ipv6", |n, p| n.bool(p))?.unwrap_or(false);
    general.routes = opt(&mut map, "routes", |n, p| n.bool(p))?.unwrap_or(true);
    let faults = map.take("faults");
    map.finish(SETTINGS)?;
    Ok(faults)
}

/// `sim.faults`: what a search by seeds may do.
pub fn faults(node: &Node, general: &General, hosts: &BTreeMap<String, Host>) -> Result<FaultPlan> {
    let mut map = node.map("sim.faults")?;
    let places = map.places();
    let list = opt(&mut map, "hosts", names)?.unwrap_or_default();
    if let Some(name) = list.iter().find(|name| !hosts.contains_key(*name)) {
        let words = format!("sim.faults.hosts: there is no host `{name}`");
        return Err(Fault::at(places.of("hosts"), words));
    }
    let plan = FaultPlan {
        hosts: list,
        from: opt(&mut map, "from", time_of)?,
        to: opt(&mut map, "to", time_of)?,
        most: opt(&mut map, "most", |n, p| n.int(p))?.unwrap_or(FaultPlan::default().most),
    };
    let to = plan.to.unwrap_or(general.stop_time);
    if plan.from.unwrap_or_default() >= to || to > general.stop_time {
        let words =
            "sim.faults: `from` has to be before `to`, and `to` not after general.stop_time";
        let key = if plan.to.is_some() { "to" } else { "from" };
        return Err(Fault::at(places.of(key), words));
    }
    if plan.most == 0 {
        let words = "sim.faults.most: at least 1";
        return Err(Fault::at(places.of("most"), words));
    }
    map.finish(FAULTS)?;
    Ok(plan)
}

/// What a host has beyond Shadow's.
pub fn host(map: &mut Map, host: &mut Host) -> Result<()> {
    host.router = opt(map, "router", |n, p| n.bool(p))?.unwrap_or(false);
    host.nat = opt(map, "nat", nat)?;
    if host.nat.is_some() {
        host.router = true;
    }
    host.clock = opt(map, "clock", |n, p| {
        let mut map = n.map(p)?;
        let change = clock_change(&mut map)?;
        map.finish(CLOCK)?;
        Ok(change)
    })?;
    host.qdisc = opt(map, "qdisc", |n, p| n.text(p).map(str::to_owned))?;
    host.sysctls = opt(map, "sysctls", pairs)?.unwrap_or_default();
    let places = map.places();
    for (path, text) in opt(map, "files", pairs)?.unwrap_or_default() {
        if !path.starts_with('/') {
            let words = format!(
                "{}: `{path}`: a path from the root is needed",
                map.at("files")
            );
            return Err(Fault::at(places.of("files"), words));
        }
        host.files.push((PathBuf::from(path), text));
    }
    Ok(())
}

/// `step: -2 s`, `drift: 100 ppm`: one of them, or both.
pub fn clock_change(map: &mut Map) -> Result<ClockChange> {
    let places = map.places();
    let step = opt(map, "step", step_of)?;
    let drift = opt(map, "drift", drift_of)?;
    if step.is_none() && drift.is_none() {
        let words = format!("{}: `step: TIME` or `drift: PPM` is needed", map.path);
        return Err(Fault::at(places.of("host"), words));
    }
    Ok(ClockChange {
        step: step.unwrap_or(0),
        drift,
    })
}

/// `nat: LINK`, or `{link: LINK, publish: {PORT: HOST:PORT}}`.
fn nat(node: &Node, path: &str) -> Result<Nat> {
    if let Value::Text(link) = &node.value {
        return Ok(Nat {
            link: link.clone(),
            kind: NatKind::default(),
            publish: Vec::new(),
        });
    }
    let mut map = node.map(path)?;
    let places = map.places();
    let link = map.need("link")?.text(path)?.to_owned();
    let at = map.at("publish");
    let mut publish = Vec::new();
    for (port, to) in opt(&mut map, "publish", pairs)?.unwrap_or_default() {
        let wrong = || {
            let words = format!("{at}: `{port}: {to}`: a port and HOST:PORT are needed");
            Fault::at(places.of("publish"), words)
        };
        let (host, inner) = to.split_once(':').ok_or_else(wrong)?;
        let number = |word: &str| match word.parse() {
            Ok(0) | Err(_) => Err(wrong()),
            Ok(port) => Ok(port),
        };
        publish.push((number(&port)?, host.to_owned(), number(inner)?));
    }
    let kind = opt(&mut map, "kind", nat_kind)?.unwrap_or_default();
    map.finish(&["link", "publish", "kind"])?;
    Ok(Nat {
        link,
        kind,
        publish,
    })
}

fn nat_kind(node: &Node, path: &str) -> Result<NatKind> {
    match node.text(path)? {
        "full_cone" => Ok(NatKind::FullCone),
        "restricted" => Ok(NatKind::Restricted),
        "port_restricted" => Ok(NatKind::PortRestricted),
        "symmetric" => Ok(NatKind::Symmetric),
        _ => Err(node.wrong(path, "full_cone, restricted, port_restricted or symmetric")),
    }
}

fn pairs(node: &Node, path: &str) -> Result<Vec<(String, String)>> {
    node.map(path)?
        .rest()
        .into_iter()
        .map(|(key, _, node)| Ok((key, node.scalar(path)?)))
        .collect()
}

/// The properties of one direction; what is not said is as in `base`.
pub fn wire(map: &mut Map, base: &Wire) -> Result<Wire> {
    let base = base.clone();
    Ok(Wire {
        rate: opt(map, "rate", rate_of)?.or(base.rate),
        delay: opt(map, "delay", time_of)?.unwrap_or(base.delay),
        jitter: opt(map, "jitter", time_of)?.unwrap_or(base.jitter),
        loss: opt(map, "loss", share_of)?.unwrap_or(base.loss),
        corrupt: opt(map, "corrupt", share_of)?.unwrap_or(base.corrupt),
        duplicate: opt(map, "duplicate", share_of)?.unwrap_or(base.duplicate),
        reorder: opt(map, "reorder", share_of)?.unwrap_or(base.reorder),
        queue: opt(map, "queue", |n, p| n.text(p).map(str::to_owned))?.or(base.queue),
        limit: opt(map, "limit", bytes_of)?.or(base.limit),
        trace: opt(map, "trace", |n, p| n.text(p).map(crate::read::home))?.or(base.trace),
    })
}

/// Both directions: the map's own keys, and `back` where the second differs.
pub fn wires(map: &mut Map, base: &[Wire; 2]) -> Result<[Wire; 2]> {
    let places = map.places();
    let back = map.take("back");
    let there = wire(map, &base[0])?;
    // Without `back`, a change is one of both directions.
    let mut other = match base[0] == base[1] {
        true => there.clone(),
        false => base[1].clone(),
    };
    if let Some(node) = back {
        let mut back = node.map(&map.at("back"))?;
        other = wire(&mut back, &other)?;
        back.finish(WIRE)?;
    }
    for wire in [&there, &other] {
        if wire.reorder > 0.0 && wire.delay.is_zero() {
            let words = format!(
                "{}: reorder needs a delay that others are kept back by",
                map.path
            );
            return Err(Fault::at(places.of("reorder"), words));
        }
        if wire.trace.is_some() && wire.rate.is_none() {
            let words = format!(
                "{}: a link with a trace needs a rate, for where the trace says none",
                map.path
            );
            return Err(Fault::at(places.of("trace"), words));
        }
        if wire.queue.is_some() && wire.rate.is_none() {
            let words = format!("{}: a queue needs a rate that it waits for", map.path);
            return Err(Fault::at(places.of("queue"), words));
        }
    }
    Ok([there, other])
}

/// A map that describes both directions of a link and nothing else.
pub fn wires_of(node: &Node, path: &str) -> Result<[Wire; 2]> {
    let mut map = node.map(path)?;
    let wires = wires(&mut map, &Default::default())?;
    map.finish(WIRE)?;
    Ok(wires)
}

pub fn links(node: &Node) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for (i, node) in node.list("links")?.iter().enumerate() {
        links.push(link(node, &format!("links[{i}]"))?);
    }
    Ok(links)
}

fn link(node: &Node, path: &str) -> Result<Link> {
    let mut map = node.map(path)?;
    let places = map.places();
    let between = map.need("between")?;
    let hosts = names(between, &map.at("between"))?;
    let [a, b] = hosts.as_slice() else {
        return Err(Fault::at(
            between.place,
            format!("{path}.between: two hosts are needed"),
        ));
    };
    let mut ends = [a, b].map(|host| End {
        host: host.clone(),
        interface: None,
        addresses: Vec::new(),
    });
    if let Some(node) = map.take("interfaces") {
        let list = names(node, &map.at("interfaces"))?;
        let bad = list
            .iter()
            .find(|name| name.is_empty() || name.len() > INTERFACE_BYTES || name.contains('/'));
        if list.len() != 2 || bad.is_some() {
            let words = format!(
                "{path}.interfaces: two names of 1 to {INTERFACE_BYTES} letters are needed"
            );
            return Err(Fault::at(node.place, words));
        }
        for (end, name) in ends.iter_mut().zip(list) {
            end.interface = Some(name);
        }
    }
    if let Some(node) = map.take("addresses") {
        let at = map.at("addresses");
        let list = node.list(&at)?;
        if list.len() != 2 {
            return Err(node.wrong(
                &at,
                "one entry for each end (an address, or a list of them)",
            ));
        }
        for (end, node) in ends.iter_mut().zip(list) {
            end.addresses = addresses(node, &at)?;
        }
    }
    let name = opt(&mut map, "name", |n, p| n.text(p).map(str::to_owned))?;
    let wires = wires(&mut map, &Default::default())?;
    map.finish(LINK)?;
    Ok(Link {
        places,
        name: name.unwrap_or_else(|| format!("{a}-{b}")),
        ends,
        wires,
    })
}

fn addresses(node: &Node, path: &str) -> Result<Vec<IpNet>> {
    let nodes = match &node.value {
        Value::List(list) => list.as_slice(),
        _ => std::slice::from_ref(node),
    };
    nodes
        .iter()
        .map(|node| {
            let text = node.text(path)?;
            text.parse().map_err(|_| {
                let words = format!(
                    "{path}: `{text}` is not an address with its prefix, such as 10.0.0.1/24"
                );
                Fault::at(node.place, words)
            })
        })
        .collect()
}

pub fn names(node: &Node, path: &str) -> Result<Vec<String>> {
    node.list(path)?
        .iter()
        .map(|node| node.scalar(path))
        .collect()
}

pub fn topology(
    node: &Node,
    hosts: &mut BTreeMap<String, Host>,
    links: &mut Vec<Link>,
) -> Result<()> {
    topology::read(node, hosts, links)
}

/// Links lead to hosts that are there, and have names of their own.
pub fn check_links(links: &[Link], hosts: &BTreeMap<String, Host>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for link in links {
        for end in &link.ends {
            if !hosts.contains_key(&end.host) {
                let words = format!("link {}: there is no host `{}`", link.name, end.host);
                return Err(Fault::at(link.places.of("between"), words));
            }
        }
        if link.ends[0].host == link.ends[1].host {
            return Err(Fault::at(
                link.places.of("between"),
                format!("link {}: both ends are the same host", link.name),
            ));
        }
        if !seen.insert(link.name.as_str()) {
            let words = format!(
                "link {}: a second one of this name: give it another by `name`",
                link.name
            );
            return Err(Fault::at(link.places.of("name"), words));
        }
    }
    for (name, host) in hosts {
        if let Some(nat) = &host.nat {
            check_nat(name, nat, links, hosts)
                .map_err(|words| Fault::at(host.places.of("nat"), words))?;
        }
    }
    Ok(())
}

fn check_nat(
    name: &str,
    nat: &Nat,
    links: &[Link],
    hosts: &BTreeMap<String, Host>,
) -> std::result::Result<(), String> {
    let link = links.iter().find(|link| link.name == nat.link);
    if !link.is_some_and(|link| link.ends.iter().any(|end| end.host == name)) {
        return Err(format!("hosts.{name}.nat: it has no link `{}`", nat.link));
    }
    match nat
        .publish
        .iter()
        .find(|(_, host, _)| !hosts.contains_key(host))
    {
        Some((_, host, _)) => Err(format!(
            "hosts.{name}.nat.publish: there is no host `{host}`"
        )),
        None => Ok(()),
    }
}

/// A link between two hosts with these properties.
pub fn plain_link(places: Places, a: &str, b: &str, wires: &[Wire; 2]) -> Link {
    let end = |host: &str| End {
        host: host.to_owned(),
        interface: None,
        addresses: Vec::new(),
    };
    Link {
        places,
        name: format!("{a}-{b}"),
        ends: [end(a), end(b)],
        wires: wires.clone(),
    }
}

/// The default of a link's properties in a topology: 1 Gbit/s, 1 ms.
pub fn default_wires() -> [Wire; 2] {
    let wire = Wire {
        rate: Some(crate::units::Rate(1_000_000_000)),
        delay: Duration::from_millis(1),
        ..Wire::default()
    };
    [wire.clone(), wire]
}
