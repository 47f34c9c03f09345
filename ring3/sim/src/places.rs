// SPDX-License-Identifier: GPL-2.0
//! `network` of a scenario, and whether its hosts have places there, and names.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::error::Fault;
use crate::graph::{Graph, ONE_GBIT_SWITCH};
use crate::read::{home, opt, Reader};
use crate::scenario::{Host, Link, Network};
use crate::yaml::{Node, Result, Value};

/// A name that is longer is no hostname (hostname(7)).
const NAME_BYTES: usize = 64;

impl Reader {
    pub fn network(&mut self, node: &Node) -> Result<Network> {
        let mut map = node.map("network")?;
        let at = map.need("graph")?;
        let graph = self.graph(at)?;
        let shortest = opt(&mut map, "use_shortest_path", |n, p| n.bool(p))?.unwrap_or(true);
        map.finish(&["graph", "use_shortest_path"])?;
        Ok(Network {
            place: at.place,
            graph,
            shortest,
        })
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
                // `path` is Shadow 2's.
                let file = map.take("file").or(map.take("path"));
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
pub fn check(
    hosts: &BTreeMap<String, Host>,
    links: &[Link],
    network: &mut Option<Network>,
) -> Result<()> {
    let mut addresses: BTreeMap<IpAddr, &str> = BTreeMap::new();
    let mut used: Vec<i64> = Vec::new();
    for (name, host) in hosts {
        for (address, key) in [(host.address, "ip_addr"), (host.address6, "ip6_addr")] {
            let Some(address) = address else { continue };
            if let Some(other) = addresses.insert(address, name) {
                let words = format!("hosts.{name}.{key}: {address} is {other}'s already");
                return Err(Fault::at(host.places.of(key), words));
            }
        }
        let Some(id) = host.node else {
            check_linked(name, host, links)?;
            continue;
        };
        let Some(network) = network else {
            return Err(Fault::at(
                host.places.of("network_node_id"),
                format!(
                    "hosts.{name}.network_node_id: the scenario has no `network` that it is about"
                ),
            ));
        };
        let Some(vertex) = network.graph.nodes.get(&id) else {
            let words = format!("hosts.{name}.network_node_id: the graph has no node {id}");
            return Err(Fault::at(host.places.of("network_node_id"), words));
        };
        for (rate, key) in [
            (host.down.or(vertex.down), "down"),
            (host.up.or(vertex.up), "up"),
        ] {
            if rate.is_none() {
                let words = format!(
                    "hosts.{name}.bandwidth_{key}: neither the host nor node {id} of the graph has one"
                );
                return Err(Fault::at(host.places.of("network_node_id"), words));
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
            .map_err(|why| Fault::at(network.place, format!("network.graph: {why}")))?;
    }
    Ok(())
}

/// A hostname: letters, digits, `-`, `.` and `_`, more than hostname(7) has; it becomes a folder's name, too.
pub fn check_name(name: &str) -> std::result::Result<(), String> {
    let is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
        && !name.contains("..")
        && name.len() <= NAME_BYTES;
    match is_good {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is not a hostname: letters, digits, `-`, `.` and `_`, {NAME_BYTES} at most"
        )),
    }
}
