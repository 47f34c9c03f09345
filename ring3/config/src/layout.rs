// SPDX-License-Identifier: GPL-2.0
//! A network of hosts within one node, as the Python package lays it out (python/ring3/net.py): the steps that make its
//! namespaces, interfaces, addresses and routes. The keeper carries them out (ring3/node/src/layout.rs).

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

/// One thing to be done. A host is a name of a namespace; without one it is done outside of all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Step {
    Sysctl {
        host: Option<String>,
        key: String,
        value: String,
    },
    /// A namespace, as `ip netns add` makes it.
    Host {
        name: String,
    },
    Bridge {
        name: String,
        mtu: Option<u32>,
    },
    /// A pair of interfaces.
    Wire {
        ends: [End; 2],
        mtu: Option<u32>,
    },
    /// An interface goes up, as a port of a bridge where one is named.
    Up {
        host: Option<String>,
        interface: String,
        bridge: Option<String>,
    },
    Address {
        host: String,
        interface: String,
        address: IpNet,
    },
    Route {
        host: String,
        to: IpNet,
        via: IpAddr,
    },
    /// The root qdisc of an interface.
    Netem {
        host: String,
        interface: String,
        netem: Netem,
    },
}

/// What the qdisc netem does to each packet that an interface sends.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Netem {
    pub delay_ns: u64,
    pub jitter_ns: u64,
    /// Shares of all packets, in parts of 4294967295 (u32::MAX), as netem counts.
    pub loss: u32,
    pub duplicate: u32,
    pub reorder: u32,
    pub corrupt: u32,
    /// Bytes a second; 0: no limit.
    pub rate: u64,
    /// Packets that may wait.
    pub limit: u32,
}

impl Default for Netem {
    fn default() -> Self {
        Netem {
            delay_ns: 0,
            jitter_ns: 0,
            loss: 0,
            duplicate: 0,
            reorder: 0,
            corrupt: 0,
            rate: 0,
            // netem's own.
            limit: 1000,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub host: Option<String>,
    pub interface: String,
}

impl End {
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{} of {host}", self.interface),
            None => f.write_str(&self.interface),
        }
    }
}

/// What it does, for messages.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Sysctl { host, key, value } => {
                write!(f, "set sysctl {key} to `{value}`")?;
                host.as_ref().map_or(Ok(()), |it| write!(f, " on {it}"))
            }
            Step::Host { name } => write!(f, "make host {name}"),
            Step::Bridge { name, .. } => write!(f, "make bridge {name}"),
            Step::Wire { ends: [a, b], .. } => write!(f, "join {a} and {b}"),
            Step::Up {
                host, interface, ..
            } => {
                write!(f, "set {interface}")?;
                host.as_ref().map_or(Ok(()), |it| write!(f, " of {it}"))?;
                f.write_str(" up")
            }
            Step::Address {
                host,
                interface,
                address,
            } => write!(f, "give {interface} of {host} the address {address}"),
            Step::Netem {
                host, interface, ..
            } => write!(f, "set netem at {interface} of {host}"),
            Step::Route { host, to, via } => {
                write!(f, "add the route of {host} to {to} via {via}")
            }
        }
    }
}
