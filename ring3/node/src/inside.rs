// SPDX-License-Identifier: GPL-2.0
//! A node that this process keeps for itself, without programs: a gateway's.
//!
//! No program joins it and `ring3 ls` does not show it; it has no place in the runtime folder. Its
//! kernel passes every TCP connection and UDP datagram that arrives over its link, whatever the
//! destination (nft.rs), to the transparent sockets on [`RELAY_PORT`]. The process uses it through
//! [`Task`]s.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{mpsc, Arc};

use ring3_config::NodeConfig;

use crate::drivers::event_fd;
use crate::error::{Error, Result};
use crate::fault;
use crate::netlink::{Netlink, NodeWire};
use crate::nft;
pub use crate::nft::Mark;
use crate::node::{Guests, Node, Place};
use crate::outside::Given;
use crate::ports::given::GivenLink;
use crate::ports::host::Plan;
use crate::sys;
use crate::task::Task;

/// Where the gateway's transparent sockets listen. A program of the node that connects to this port reaches it like any other.
pub const RELAY_PORT: u16 = 9999;
/// Each refusal of the host is passed on, without a rate limit.
const SYSCTLS: [(&str, &str); 2] = [
    ("net.ipv4.icmp_ratelimit", "0"),
    ("net.ipv6.icmp.ratelimit", "0"),
];
/// Interface index of the loopback device in every network namespace (LOOPBACK_IFINDEX).
const LOOPBACK: u32 = 1;
#[derive(Debug)]
pub struct Inside {
    node: Node,
}

/// A node that is about to start: all files of the host that it needs are open.
#[derive(Debug)]
pub struct Ready {
    config: NodeConfig,
    given: Given,
}

impl Ready {
    /// For the plan that the keeper has sent ([`Talk::hear`]).
    pub fn new(plan: &Plan) -> Result<Ready> {
        let mut config = NodeConfig::new(format!("{}.host", plan.node));
        config.image = plan.image.clone();
        config.sysctls = SYSCTLS
            .map(|(key, value)| (key.into(), value.into()))
            .into();
        let given = Given::new(&config)?;
        Ok(Ready { config, given })
    }
}

/// For a gateway's process that has just started: closes all inherited descriptors but standard
/// error and `socket`.
pub fn close_inherited(socket: &OwnedFd) -> Result<()> {
    sys::close_inherited(socket).map_err(|why| Error::Host {
        what: "close what was inherited".into(),
        why,
    })
}

impl Inside {
    /// Boots the node, and links it with the keeper's.
    pub fn start(ready: Ready, plan: &Plan, link: GivenLink) -> Result<Inside> {
        prepare_thread();
        let Ready { config, given } = ready;
        // No program joins.
        let (_, queue) = mpsc::channel();
        let bell = Arc::new(event_fd()?);
        let mut node = Node::start(config, Place::Confined(given, Guests { queue, bell }))?;
        // There are no programs to end, and the undertaker would not be confined.
        node.dismiss_undertaker();
        node.add_given(link, plan.gateways.clone())?;
        node.take_all()?;
        Ok(Inside { node })
    }

    /// Boots a node with the ports that a warden gave ([`Given::receive`]), for this process alone.
    pub fn own(config: NodeConfig, given: Given) -> Result<Inside> {
        prepare_thread();
        let (_, queue) = mpsc::channel();
        let bell = Arc::new(event_fd()?);
        let mut node = Node::start(config, Place::Confined(given, Guests { queue, bell }))?;
        node.dismiss_undertaker();
        Ok(Inside { node })
    }

    /// A task of the node, for one thread of this process.
    pub fn task(&mut self) -> Result<Task> {
        self.node.own_thread().map(Task::new)
    }
}

/// To be called before a thread of this process makes its first call with a [`Task`]: gives it a
/// stack for faults in kernel code, and exact timers.
pub fn prepare_thread() {
    fault::prepare_thread();
    sys::exact_timers();
}

impl Node {
    /// Makes all destinations local to this node, and passes all connections to the relay.
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
