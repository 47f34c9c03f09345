// SPDX-License-Identifier: GPL-2.0
//! Several nodes and what joins them, in one file.
//!
//! ```toml
//! [link.ab]                      # a link: its two nodes, with the address of each
//! a = "10.0.0.1/24"
//! b = ["10.0.0.2/24", "fd00::2/64"]
//!
//! [switch.lan]                   # a switch: any number of nodes
//! a = "10.1.0.1/24"
//! b = "10.1.0.2/24"
//!
//! [node.a]                       # as node.toml
//! wait = ["tcp 8000"]
//! program = [{ command = ["python3", "-m", "http.server"] }]
//!
//! [node.b]
//! route = ["default via 10.0.0.1"]
//! ```
//!
//! Each node knows the others by name: its /etc/hosts has the addresses of all, those on a network of its own first.

use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use serde::Deserialize;

use crate::error::ConfigError;
use crate::file::{place, File, Many, Named};
use crate::node::NodeConfig;
use crate::port::{Draft, PortKind, PortSpec};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compose {
    #[serde(default)]
    link: Named<Named<Many>>,
    #[serde(default)]
    switch: Named<Named<Many>>,
    #[serde(default)]
    node: Named<File>,
}

/// The nodes of a file, in its order.
pub fn from_toml(path: &Path, text: &str) -> Result<Vec<NodeConfig>, ConfigError> {
    let error = |cause: String| ConfigError::File {
        path: path.to_owned(),
        cause,
    };
    let compose: Compose = toml::from_str(text).map_err(|e| error(place(text, &e)))?;
    if compose.node.0.is_empty() {
        return Err(error("no node: add [node.NAME]".into()));
    }
    let mut nodes = Vec::new();
    for (name, file) in compose.node.0 {
        if file.has_name() {
            return Err(error(format!(
                "node `{name}` has a name = already: leave that out"
            )));
        }
        nodes.push(file.node(path, name)?);
    }
    for (link, ends) in compose.link.0 {
        if ends.0.len() != 2 {
            return Err(error(format!(
                "link `{link}` has {} ends: a link joins two nodes",
                ends.0.len()
            )));
        }
        if let Some(address) = at_both_ends(&ends.0) {
            return Err(error(format!(
                "link `{link}` has the address {address} at both ends: give each node one of its own"
            )));
        }
        for (name, addresses) in ends.0 {
            let node = nodes.iter_mut().find(|node| node.name == name);
            let node = node.ok_or_else(|| {
                error(format!(
                    "link `{link}` leads to node `{name}`, which the file has not: add [node.{name}]"
                ))
            })?;
            let port = port("link", &link, &addresses.0).map_err(|e| error(e.to_string()))?;
            node.ports.push(port);
        }
    }
    for (switch, ends) in compose.switch.0 {
        if nodes.iter().any(|node| node.name == switch) {
            return Err(error(format!(
                "switch `{switch}` has the name of a node: it is a node itself"
            )));
        }
        for (name, addresses) in ends.0 {
            let node = nodes.iter_mut().find(|node| node.name == name);
            let node = node.ok_or_else(|| {
                error(format!(
                    "switch `{switch}` leads to node `{name}`, which the file has not: add [node.{name}]"
                ))
            })?;
            let port = port("switch", &switch, &addresses.0).map_err(|e| error(e.to_string()))?;
            node.ports.push(port);
        }
    }
    check_ends(&nodes).map_err(error)?;
    name_each_other(&mut nodes);
    for node in &nodes {
        node.check().map_err(|e| error(e.to_string()))?;
    }
    Ok(nodes)
}

/// An address that both ends of a link have. What is none is found later.
fn at_both_ends(ends: &[(String, Many)]) -> Option<IpAddr> {
    let [(_, one), (_, other)] = ends else {
        return None;
    };
    let address = |text: &String| text.parse::<IpNet>().ok().map(|net| net.addr());
    let one: Vec<IpAddr> = one.0.iter().filter_map(address).collect();
    let mut other = other.0.iter().filter_map(address);
    other.find(|it| one.contains(it))
}

fn port(kind: &str, link: &str, addresses: &[String]) -> Result<PortSpec, ConfigError> {
    let make = || {
        let mut draft = Draft::new(PortKind::new(kind, Some(link))?);
        for address in addresses {
            draft.set("addr", address)?;
        }
        draft.finish()
    };
    make().map_err(|cause| ConfigError::Port {
        spec: format!("{kind}:{link}"),
        cause,
    })
}

/// A link that one node of the file names is a mistyped one; one that three name can't be.
fn check_ends(nodes: &[NodeConfig]) -> Result<(), String> {
    let links = |node: &NodeConfig| -> Vec<String> {
        let ports = node.ports.iter();
        let links = ports.filter(|port| port.kind.kind() == "link");
        links
            .filter_map(|port| port.kind.name().map(str::to_owned))
            .collect()
    };
    for node in nodes {
        for link in links(node) {
            let ends = nodes.iter().filter(|it| links(it).contains(&link)).count();
            if ends != 2 {
                return Err(format!(
                    "link `{link}` of node `{}` has {ends} {} in this file: two nodes have to name it",
                    node.name,
                    if ends == 1 { "end" } else { "ends" }
                ));
            }
        }
    }
    Ok(())
}

/// What is asked for by hand comes first.
fn name_each_other(nodes: &mut [NodeConfig]) {
    let all: Vec<(String, Vec<IpNet>)> = nodes
        .iter()
        .map(|node| {
            let addrs = node.ports.iter().flat_map(|port| port.addrs.clone());
            (node.name.clone(), addrs.collect())
        })
        .collect();
    for node in nodes {
        let own: Vec<IpNet> = node.ports.iter().flat_map(|it| it.addrs.clone()).collect();
        let is_near = |address: &IpAddr| own.iter().any(|net| net.contains(address));
        for (name, addrs) in all.iter().filter(|(name, _)| *name != node.name) {
            let mut addrs: Vec<IpAddr> = addrs.iter().map(IpNet::addr).collect();
            addrs.sort_by_key(|address| !is_near(address));
            let hosts = addrs.into_iter().map(|address| (name.clone(), address));
            node.hosts.extend(hosts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> Result<Vec<NodeConfig>, ConfigError> {
        from_toml(Path::new("/etc/net.toml"), text)
    }

    #[test]
    fn a_router_and_two_hosts() {
        let nodes = nodes(
            r#"
            [link.ar]
            a = "10.1.0.1/24"
            r = "10.1.0.2/24"
            [link.rb]
            r = "10.2.0.2/24"
            b = ["10.2.0.1/24", "fd00::1/64"]
            [node.r]
            sysctl = { net.ipv4.ip_forward = 1 }
            [node.a]
            route = ["default via 10.1.0.2"]
            hosts = { db = "10.9.9.9" }
            [node.b]
            wait = ["tcp 80"]
            mem = "64M"
            "#,
        )
        .unwrap();
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["r", "a", "b"]);
        assert_eq!(nodes[0].ports[1].to_string(), "link:rb,addr=10.2.0.2/24");
        let hosts: Vec<String> = nodes[1]
            .hosts
            .iter()
            .map(|(name, address)| format!("{name} {address}"))
            .collect();
        assert_eq!(
            hosts,
            [
                "db 10.9.9.9",
                "r 10.1.0.2",
                "r 10.2.0.2",
                "b 10.2.0.1",
                "b fd00::1"
            ]
        );
        assert_eq!(nodes[1].routes[0].to_string(), "0.0.0.0/0 via 10.1.0.2");
        assert_eq!(nodes[2].waits.len(), 1);
    }

    #[test]
    fn what_is_wrong() {
        for (text, words) in [
            ("", "no node: add [node.NAME]"),
            (
                "[node.a]\n[link.ab]\na = '10.0.0.1/24'",
                "link `ab` has 1 ends",
            ),
            (
                "[node.a]\n[link.ab]\na = '10.0.0.1/24'\nb = '10.0.0.2/24'",
                "leads to node `b`, which the file has not",
            ),
            (
                "[node.a]\nport = ['link:ab']\n[node.b]\nport = ['link:ba']",
                "link `ab` of node `a` has 1 end in this file",
            ),
            ("[node.a]\nname = 'b'", "has a name = already"),
            ("[node.a]\nmen = 1", "line 2: unknown field `men`"),
            ("[node.'a b']", "node name `a b`"),
            ("[nodes.a]", "unknown field `nodes`"),
            (
                "[node.a]\n[node.b]\n[link.ab]\na = ['10.0.0.9/24', 'fd00::1/64']\nb = 'fd00::1/48'",
                "link `ab` has the address fd00::1 at both ends",
            ),
            (
                "[node.a]\n[node.b]\n[link.ab]\na = '10.0.0.1'\nb = '10.0.0.2/24'",
                "its prefix length is missing",
            ),
        ] {
            let error = nodes(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_switch_and_three_nodes() {
        let text = "[switch.lan]\na = \"10.0.0.1/24\"\nb = \"10.0.0.2/24\"\nc = \"10.0.0.3/24\"\n[node.a]\n[node.b]\n[node.c]\n";
        let nodes = nodes(text).unwrap();
        let ports: Vec<_> = nodes.iter().map(|node| node.ports[0].to_string()).collect();
        assert_eq!(ports[2], "switch:lan,addr=10.0.0.3/24");
        assert_eq!(nodes[0].hosts.len(), 2);
        for (text, why) in [
            ("[switch.a]\na = []\n[node.a]\n", "the name of a node"),
            ("[switch.lan]\nb = []\n[node.a]\n", "add [node.b]"),
        ] {
            let error = from_toml(Path::new("/etc/net.toml"), text).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
