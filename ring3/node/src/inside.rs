// SPDX-License-Identifier: GPL-2.0
//! A node that this process keeps for itself, with no program on it: a gateway's.
//!
//! Nobody joins it and nobody sees it in `ring3 ls`. Its kernel takes every TCP connection and UDP datagram that comes
//! over its link, whatever the destination (nft.rs), to the transparent sockets on [`RELAY_PORT`]. The process uses it through
//! [`Task`]s.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ring3_config::NodeConfig;

use crate::error::{Error, Result};
use crate::fault;
use crate::netlink::{Netlink, NodeWire};
use crate::nft;
use crate::node::Node;
use crate::ports::host::{Plan, Talk};
use crate::runtime::Folder;
use crate::sys;
use crate::task::Task;

/// Where the gateway's transparent sockets listen. A program of the node that connects to this port reaches it like any other.
pub const RELAY_PORT: u16 = 9999;
/// Interface index of the loopback device in every network namespace (LOOPBACK_IFINDEX).
const LOOPBACK: u32 = 1;
#[derive(Debug)]
pub struct Inside {
    node: Node,
}

impl Inside {
    /// Hears from the keeper at the other end of `socket` what to do, and boots the node for it.
    pub fn start(socket: OwnedFd) -> Result<(Inside, Talk, Plan)> {
        let (talk, plan, link) = Talk::hear(socket)?;
        let start = || {
            prepare_thread();
            let folder = Folder::open()?;
            let folder = Folder::at(folder.root().join("gateways"))?;
            // Removes what killed ones left.
            folder.nodes()?;
            let config = NodeConfig::new(format!("{}.{}", plan.node, std::process::id()));
            let mut node = Node::start(config, &folder)?;
            node.add_given(link, plan.gateways.clone())?;
            node.take_all()?;
            Ok(Inside { node })
        };
        match start() {
            Ok(inside) => Ok((inside, talk, plan)),
            Err(error) => {
                let error: Error = error;
                talk.answer(Err(&error.to_string()));
                Err(error)
            }
        }
    }

    /// A task of the node, for one thread of this process.
    pub fn task(&mut self) -> Result<Task> {
        self.node.own_thread().map(Task::new)
    }
}

/// Before a thread of this process makes its first call with a [`Task`]: a stack for faults in kernel code, exact timers.
pub fn prepare_thread() {
    fault::prepare_thread();
    sys::exact_timers();
}

impl Node {
    /// All destinations are this node's own, and all connections the relay's.
    fn take_all(&mut self) -> Result<()> {
        let families = [IpAddr::from([0; 4]), IpAddr::from([0u16; 8])];
        let wire =
            NodeWire::open(self.init_thread()).map_err(Error::node("open a netlink socket"))?;
        let mut netlink = Netlink::new(wire);
        for any in families {
            netlink
                .local_default_add(LOOPBACK, any)
                .map_err(Error::node("take all addresses for its own"))?;
        }
        drop(netlink);
        nft::to_relay(self.init_thread(), RELAY_PORT)
            .map_err(Error::node("give all connections to the relay"))
    }
}
