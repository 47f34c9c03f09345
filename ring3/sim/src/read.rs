// SPDX-License-Identifier: GPL-2.0
//! From a scenario's file to a [`Scenario`]: Shadow's keys, and by way of [`crate::ours`] those
//! that it has not.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Fault};
use crate::graph::{Graph, ONE_GBIT_SWITCH};
use crate::ours;
use crate::process;
use crate::scenario::{General, Host, Link, Network, Scenario};
use crate::units::{bytes_of, rate_of, time_of};
use crate::yaml::{self, Map, Node, Result, Value};

/// As Shadow: a file written for it has scripts beside it that look there.
const SHADOW_DATA: &str = "shadow.data";
const HEARTBEAT: Duration = Duration::from_secs(1);
const CAPTURE_BYTES: u64 = 65535;
/// A name that is longer is no hostname (hostname(7)).
const NAME_BYTES: usize = 64;

pub const TOP: &[&str] = &[
    "general",
    "network",
    "hosts",
    "host_option_defaults",
    "experimental",
    "links",
    "topology",
    "events",
    "sim",
];
pub const GENERAL: &[&str] = &[
    "stop_time",
    "seed",
    "data_directory",
    "template_directory",
    "heartbeat_interval",
    "model_unblocked_syscall_latency",
    "parallelism",
    "log_level",
    "progress",
    "bootstrap_end_time",
];
pub const HOST: &[&str] = &[
    "network_node_id",
    "ip_addr",
    "ip6_addr",
    "bandwidth_down",
    "bandwidth_up",
    "host_options",
    "processes",
    "sysctls",
    "qdisc",
    "files",
    "router",
];
pub const OPTIONS: &[&str] = &["log_level", "pcap_enabled", "pcap_capture_size"];

/// Reads a scenario; `search` is the path that programs are looked for in.
pub fn scenario(path: &Path, search: &str) -> std::result::Result<(Scenario, Node), Error> {
    let text =
        std::fs::read_to_string(path).map_err(Error::host(format!("read {}", path.display())))?;
    let tree = yaml::parse(&text).map_err(|fault| fault.in_file(path))?;
    let mut reader = Reader {
        notes: Vec::new(),
        search: search.to_owned(),
        graph_file: None,
    };
    let made = reader
        .top(&tree)
        .map_err(|fault| match &reader.graph_file {
            Some(file) => fault.in_file(file),
            None => fault.in_file(path),
        })?;
    Ok((made, tree))
}

pub struct Reader {
    pub notes: Vec<String>,
    search: String,
    /// The file that is being read, where it is another than the scenario's.
    graph_file: Option<PathBuf>,
}

impl Reader {
    fn top(&mut self, tree: &Node) -> Result<Scenario> {
        let mut top = tree.map("")?;
        let mut general = self.general(top.need("general")?)?;
        let defaults = match top
            .take("host_option_defaults")
            .or(top.take("host_defaults"))
        {
            Some(node) => self.options(node, "host_option_defaults", None)?,
            None => None,
        };
        let mut network = match top.take("network") {
            Some(node) => Some(self.network(node)?),
            None => None,
        };
        if let Some(node) = top.take("experimental") {
            self.experimental(node)?;
        }
        if let Some(node) = top.take("sim") {
            ours::settings(node, &mut general)?;
        }
        let hosts = top.take("hosts");
        let topology = top.take("topology");
        if hosts.is_none() && topology.is_none() {
            return Err(Fault::at(tree.place, "the scenario: `hosts` is missing"));
        }
        let mut hosts = match hosts {
            Some(node) => self.hosts(node, &general, defaults)?,
            None => BTreeMap::new(),
        };
        let mut links = match top.take("links") {
            Some(node) => ours::links(node)?,
            None => Vec::new(),
        };
        if let Some(node) = topology {
            ours::topology(node, &mut hosts, &mut links)?;
        }
        ours::check_links(&links, &hosts)?;
        let events = match top.take("events") {
            Some(node) => ours::events(node, &hosts, &links, &general, &self.search)?,
            None => Vec::new(),
        };
        // Keys for anchors, as docker-compose has them.
        let rest: Vec<_> = top.rest();
        if let Some((key, place, _)) = rest.iter().find(|(key, _, _)| !key.starts_with("x-")) {
            let words = format!(
                "the scenario: unknown key `{key}`: known are {}",
                TOP.join(", ")
            );
            return Err(Fault::at(*place, words));
        }
        check_network(&hosts, &links, &mut network, tree)?;
        Ok(Scenario {
            general,
            network,
            hosts,
            links,
            events,
            notes: std::mem::take(&mut self.notes),
        })
    }

    fn general(&mut self, node: &Node) -> Result<General> {
        let mut map = node.map("general")?;
        let stop = map.need("stop_time")?;
        let stop_time = time_of(stop, "general.stop_time")?;
        if stop_time.is_zero() {
            return Err(Fault::at(
                stop.place,
                "general.stop_time: it must be more than 0",
            ));
        }
        let general = General {
            stop_time,
            seed: opt(&mut map, "seed", |n, p| n.int(p))?.unwrap_or(1),
            data_directory: opt(&mut map, "data_directory", |n, p| {
                n.text(p).map(PathBuf::from)
            })?
            .unwrap_or_else(|| SHADOW_DATA.into()),
            template_directory: opt(&mut map, "template_directory", |n, p| n.text(p).map(home))?,
            sample: opt(&mut map, "heartbeat_interval", time_of)?.unwrap_or(HEARTBEAT),
            ipv6: false,
            bootstrap_end: opt(&mut map, "bootstrap_end_time", time_of)?.unwrap_or_default(),
        };
        opt(&mut map, "model_unblocked_syscall_latency", |n, p| {
            n.bool(p)
        })?;
        if let Some(n) = opt(&mut map, "parallelism", |n, p| n.int::<u32>(p))? {
            if n > 1 {
                self.note(
                    "general.parallelism: one simulation runs on one core; --seeds runs several",
                );
            }
        }
        for key in ["log_level", "progress"] {
            opt(&mut map, key, |n, p| n.scalar(p))?;
        }
        map.finish(GENERAL)?;
        Ok(general)
    }

    fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    fn experimental(&mut self, node: &Node) -> Result<()> {
        let mut map = node.map("experimental")?;
        let keys: Vec<String> = map.rest().into_iter().map(|(key, _, _)| key).collect();
        if !keys.is_empty() {
            self.note(format!(
                "experimental: ignored, it is about Shadow itself: {}",
                keys.join(", ")
            ));
        }
        Ok(())
    }

    fn network(&mut self, node: &Node) -> Result<Network> {
        let mut map = node.map("network")?;
        let graph = self.graph(map.need("graph")?)?;
        let shortest = opt(&mut map, "use_shortest_path", |n, p| n.bool(p))?.unwrap_or(true);
        map.finish(&["graph", "use_shortest_path"])?;
        Ok(Network { graph, shortest })
    }

    fn graph(&mut self, node: &Node) -> Result<Graph> {
        let mut map = node.map("network.graph")?;
        let kind = map.need("type")?;
        match kind.text("network.graph.type")? {
            "1_gbit_switch" => {
                map.finish(&["type"])?;
                Graph::parse(ONE_GBIT_SWITCH)
            }
            "gml" => {
                let inline = map.take("inline");
                let file = map.take("file");
                map.finish(&["type", "inline", "file"])?;
                match (inline, file) {
                    (Some(text), None) => inline_graph(text),
                    (None, Some(file)) => self.graph_file(file),
                    _ => Err(Fault::at(
                        node.place,
                        "network.graph: `inline` or `file` is needed, one of them",
                    )),
                }
            }
            other => {
                let words = format!(
                    "network.graph.type: `gml` or `1_gbit_switch` is needed, this is `{other}`"
                );
                Err(Fault::at(kind.place, words))
            }
        }
    }

    fn graph_file(&mut self, node: &Node) -> Result<Graph> {
        let at = "network.graph.file";
        let (path, compression) = match &node.value {
            Value::Text(path) => (home(path), None),
            _ => {
                let mut map = node.map(at)?;
                let path = home(map.need("path")?.text("network.graph.file.path")?);
                let compression =
                    opt(&mut map, "compression", |n, p| n.text(p).map(str::to_owned))?;
                map.finish(&["path", "compression"])?;
                (path, compression)
            }
        };
        let cannot = |why: String| {
            Fault::at(
                node.place,
                format!("{at}: cannot read {}: {why}", path.display()),
            )
        };
        let bytes = std::fs::read(&path).map_err(|why| cannot(why.to_string()))?;
        let bytes = match compression.as_deref() {
            None => bytes,
            Some("xz") => {
                let mut plain = Vec::new();
                lzma_rs::xz_decompress(&mut bytes.as_slice(), &mut plain)
                    .map_err(|why| cannot(format!("{why:?}")))?;
                plain
            }
            Some(other) => {
                return Err(Fault::at(
                    node.place,
                    format!("{at}.compression: `xz` or nothing, not `{other}`"),
                ))
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8".into()))?;
        Graph::parse(&text).inspect_err(|_| self.graph_file = Some(path.clone()))
    }

    fn options(&mut self, node: &Node, path: &str, before: Option<u32>) -> Result<Option<u32>> {
        let mut map = node.map(path)?;
        opt(&mut map, "log_level", |n, p| n.scalar(p))?;
        let enabled = opt(&mut map, "pcap_enabled", |n, p| n.bool(p))?;
        let size = opt(&mut map, "pcap_capture_size", bytes_of)?;
        // Shadow 2 named a folder.
        let folder = opt(&mut map, "pcap_directory", |n, p| {
            n.text(p).map(str::to_owned)
        })?;
        map.finish(OPTIONS)?;
        let kept = size
            .unwrap_or(before.map_or(CAPTURE_BYTES, u64::from))
            .min(CAPTURE_BYTES);
        let is_on = enabled.unwrap_or(before.is_some() || folder.is_some());
        Ok(is_on.then_some(kept as u32))
    }

    fn hosts(
        &mut self,
        node: &Node,
        general: &General,
        defaults: Option<u32>,
    ) -> Result<BTreeMap<String, Host>> {
        let mut hosts = BTreeMap::new();
        for (name, place, node) in node.map("hosts")?.rest() {
            check_name(&name).map_err(|why| Fault::at(place, format!("hosts: {why}")))?;
            let mut host = self.host(&name, node, general, defaults)?;
            host.place = place;
            hosts.insert(name, host);
        }
        match hosts.is_empty() {
            true => Err(Fault::at(node.place, "hosts: at least one is needed")),
            false => Ok(hosts),
        }
    }

    fn host(
        &mut self,
        name: &str,
        node: &Node,
        general: &General,
        defaults: Option<u32>,
    ) -> Result<Host> {
        let path = format!("hosts.{name}");
        let mut map = node.map(&path)?;
        let options = map.take("host_options").or(map.take("options"));
        let pcap = match options {
            Some(node) => self.options(node, &format!("{path}.host_options"), defaults)?,
            None => defaults,
        };
        let mut host = Host {
            node: opt(&mut map, "network_node_id", |n, p| n.int(p))?,
            address: opt(&mut map, "ip_addr", address::<std::net::Ipv4Addr>)?,
            address6: opt(&mut map, "ip6_addr", address::<std::net::Ipv6Addr>)?,
            down: opt(&mut map, "bandwidth_down", rate_of)?,
            up: opt(&mut map, "bandwidth_up", rate_of)?,
            pcap,
            ..Host::default()
        };
        ours::host(&mut map, &mut host)?;
        if let Some(list) = map.take("processes") {
            for (i, node) in list.list(&format!("{path}.processes"))?.iter().enumerate() {
                let at = format!("{path}.processes[{i}]");
                host.processes
                    .push(process::read(node, &at, general, &self.search)?);
            }
        }
        if let Some(quantity) = map.take("quantity") {
            return Err(Fault::at(
                quantity.place,
                format!("{path}: Shadow 3 has no `quantity`: give each host a name, by aliases"),
            ));
        }
        map.finish(HOST)?;
        Ok(host)
    }
}

/// `~/` is the user's home folder; nothing else is expanded.
pub fn home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Takes a key and reads it, if it is there.
pub fn opt<T>(
    map: &mut Map,
    key: &str,
    read: impl FnOnce(&Node, &str) -> Result<T>,
) -> Result<Option<T>> {
    let path = map.at(key);
    map.take(key).map(|node| read(node, &path)).transpose()
}

fn inline_graph(node: &Node) -> Result<Graph> {
    let text = node.text("network.graph.inline")?;
    Graph::parse(text).map_err(|fault| Fault {
        // A block begins on the line after its sign; its column is not known any more.
        place: crate::error::Place {
            line: node.place.line + fault.place.line - 1,
            column: fault.place.column,
        },
        words: format!("network.graph.inline: {}", fault.words),
    })
}

fn address<T: std::str::FromStr + Into<IpAddr>>(node: &Node, path: &str) -> Result<IpAddr> {
    let text = node.text(path)?;
    let address: IpAddr = text
        .parse::<T>()
        .map_err(|_| {
            Fault::at(
                node.place,
                format!("{path}: `{text}` is not such an address"),
            )
        })?
        .into();
    let is_bad = match address {
        IpAddr::V4(ip) => {
            ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast()
        }
        IpAddr::V6(ip) => ip.is_unspecified() || ip.is_loopback() || ip.is_multicast(),
    };
    match is_bad {
        true => Err(Fault::at(
            node.place,
            format!("{path}: {address} can't be a host's address"),
        )),
        false => Ok(address),
    }
}

/// A hostname: letters, digits, `-` and `.` (hostname(7)); it becomes a folder's name, too.
fn check_name(name: &str) -> std::result::Result<(), String> {
    let is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        && !name.contains("..")
        && name.len() <= NAME_BYTES;
    match is_good {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is not a hostname: letters, digits, `-` and `.`, {NAME_BYTES} at most"
        )),
    }
}

/// A host that is nowhere is mostly one whose place was forgotten. One without programs may be there for looks.
fn check_linked(name: &str, host: &Host, links: &[Link]) -> Result<()> {
    let is_linked = links
        .iter()
        .any(|link| link.ends.iter().any(|end| end.host == name));
    match is_linked || host.processes.is_empty() {
        true => Ok(()),
        false => Err(Fault::at(
            host.place,
            format!("hosts.{name}: `network_node_id` is missing, and no link leads to it"),
        )),
    }
}

/// Hosts at places need a graph that has these places, and addresses of their own.
fn check_network(
    hosts: &BTreeMap<String, Host>,
    links: &[Link],
    network: &mut Option<Network>,
    tree: &Node,
) -> Result<()> {
    let mut addresses: BTreeMap<IpAddr, &str> = BTreeMap::new();
    let mut used: Vec<i64> = Vec::new();
    for (name, host) in hosts {
        for address in [host.address, host.address6].into_iter().flatten() {
            if let Some(other) = addresses.insert(address, name) {
                let words = format!("hosts.{name}.ip_addr: {address} is {other}'s already");
                return Err(Fault::at(host.place, words));
            }
        }
        let Some(id) = host.node else {
            check_linked(name, host, links)?;
            continue;
        };
        let Some(network) = network else {
            return Err(Fault::at(
                tree.place,
                "the scenario: `network` is missing, which network_node_id is about",
            ));
        };
        let Some(vertex) = network.graph.nodes.get(&id) else {
            let words = format!("hosts.{name}.network_node_id: the graph has no node {id}");
            return Err(Fault::at(host.place, words));
        };
        for (rate, key) in [
            (host.down.or(vertex.down), "down"),
            (host.up.or(vertex.up), "up"),
        ] {
            if rate.is_none() {
                let words = format!(
                    "hosts.{name}.bandwidth_{key}: neither the host nor node {id} of the graph has one"
                );
                return Err(Fault::at(host.place, words));
            }
        }
        used.push(id);
    }
    if let Some(network) = network {
        used.sort_unstable();
        used.dedup();
        network
            .graph
            .ways(&used, network.shortest)
            .map_err(|why| Fault::at(tree.place, format!("network.graph: {why}")))?;
    }
    Ok(())
}
