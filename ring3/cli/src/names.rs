// SPDX-License-Identifier: GPL-2.0
//! Names of nodes for each other: whoever starts a node, or gives one a port, tells it the names and addresses of the
//! nodes at its links and switches, and tells those its own. They are lines of each one's /etc/hosts.

use ring3_config::{NodeConfig, PortKind};
use ring3_node::client::{self, Client, Port, Status};

use crate::say;

/// Whether there may be nodes to tell.
pub fn has_neighbours(config: &NodeConfig) -> bool {
    let mut ports = config.ports.iter();
    ports.any(|it| matches!(it.kind, PortKind::Link { .. } | PortKind::Switch { .. }))
}

/// Makes a node and its neighbours known to each other, and looks for links that seem to be mistyped.
pub fn introduce(name: &str) {
    let Ok(all) = client::list() else { return };
    let statuses: Vec<&Status> = all
        .iter()
        .filter_map(|(_, status)| status.as_ref().ok())
        .collect();
    let Some(own) = statuses.iter().find(|it| it.name == name) else {
        return;
    };
    for other in statuses.iter().filter(|it| it.name != name) {
        let (ours, theirs) = addresses(own, other);
        tell(own, &other.name, theirs);
        tell(other, name, ours);
    }
    crate::nodes::look_for_mistyped_links(own, &statuses);
}

/// The addresses that two nodes have where they meet.
fn addresses(own: &Status, other: &Status) -> (Vec<String>, Vec<String>) {
    let meet = |ours: &Port, theirs: &Port| {
        let same = ours.kind == theirs.kind && ours.name == theirs.name;
        same && match ours.kind.as_str() {
            "link" => ours.peer.as_ref() == Some(&other.name),
            "switch" => true,
            _ => false,
        }
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for port in &own.ports {
        for far in other.ports.iter().filter(|far| meet(port, far)) {
            ours.extend(port.addrs.iter().map(|it| without_length(it)));
            theirs.extend(far.addrs.iter().map(|it| without_length(it)));
        }
    }
    (ours, theirs)
}

fn without_length(address: &str) -> String {
    let address = address.split('/').next();
    address.unwrap_or_default().to_owned()
}

/// A sandboxed node is told nothing: its names are its user's business.
fn tell(node: &Status, name: &str, addresses: Vec<String>) {
    if addresses.is_empty() || node.join.as_os_str().is_empty() {
        return;
    }
    if let Err(error) = Client::open(&node.name).and_then(|it| it.know(name, addresses)) {
        say::complain(format_args!(
            "node `{}` does not know `{name}` by its name: {error}",
            node.name
        ));
    }
}
