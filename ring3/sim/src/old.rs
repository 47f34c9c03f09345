// SPDX-License-Identifier: GPL-2.0
//! What files for Shadow 2 say, and Shadow 3 has no more: hosts and processes by number, and other defaults.

use std::collections::BTreeMap;

use crate::error::Fault;
use crate::scenario::{Host, Link, Network};
use crate::yaml::{Node, Result, Value};

/// Keys of host options that were about Shadow's log.
pub const OPTIONS: [&str; 3] = [
    "heartbeat_interval",
    "heartbeat_log_info",
    "heartbeat_log_level",
];

/// Of one host or process of a file; a run of more than some thousand programs is a mistake.
const MOST: u32 = 100_000;

/// Whether a file has one of the keys that only Shadow 2 had.
pub fn is_old(tree: &Node) -> bool {
    if child(tree, "host_defaults").is_some() {
        return true;
    }
    let Some(Value::Map(hosts)) = child(tree, "hosts").map(|node| &node.value) else {
        return false;
    };
    hosts.iter().any(|(_, host)| {
        let processes = match child(host, "processes").map(|node| &node.value) {
            Some(Value::List(list)) => list.as_slice(),
            _ => &[],
        };
        let has = |node: &Node, keys: &[&str]| keys.iter().any(|key| child(node, key).is_some());
        has(host, &["quantity", "options"])
            || processes
                .iter()
                .any(|process| has(process, &["quantity", "stop_time"]))
    })
}

fn child<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    entries
        .iter()
        .find(|(name, _)| matches!(&name.value, Value::Text(text) if text == key))
        .map(|(_, value)| value)
}

/// `quantity: 20`.
pub fn quantity(node: &Node, path: &str) -> Result<u32> {
    match node.int(path)? {
        count @ 1..=MOST => Ok(count),
        count => Err(Fault::at(
            node.place,
            format!("{path}: 1 to {MOST}, not {count}"),
        )),
    }
}

/// What so many hosts are called: `client` alone, or `client1` and so on.
pub fn names(name: &str, quantity: u32) -> Vec<String> {
    match quantity {
        1 => vec![name.to_owned()],
        many => (1..=many).map(|i| format!("{name}{i}")).collect(),
    }
}

/// A host that says nothing of its place is at the only one that there is.
pub fn place(hosts: &mut BTreeMap<String, Host>, links: &[Link], network: &Network) {
    let mut nodes = network.graph.nodes.keys();
    let (Some(only), None) = (nodes.next(), nodes.next()) else {
        return;
    };
    for (name, host) in hosts {
        let is_linked = links
            .iter()
            .any(|link| link.ends.iter().any(|end| end.host == *name));
        if !is_linked {
            host.node.get_or_insert(*only);
        }
    }
}
