// SPDX-License-Identifier: GPL-2.0
//! `ring3 on-node lay-out`: namespaces, interfaces, addresses and routes of a network of hosts on one node, as one
//! program. `ip` would be started once for each namespace, and starting programs is most of what a test's network costs.
//!
//! Standard input is a list of [`Step`]s in JSON. They are done in their order; the first that fails ends it. Who writes
//! them is python/ring3/net.py.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use nix::mount::{mount, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};
use ring3_node::netlink::{Errno, HostWire, Netlink, VethEnd};
use serde::Deserialize;

use crate::error::{Failure, Result};

/// Where `ip netns` looks for namespaces.
const NAMES: &str = "/run/netns";
const OWN: &str = "/proc/self/ns/net";

/// One thing to be done. A host is a name of a namespace; without one it is done outside of all hosts.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
enum Step {
    /// What a file of /proc/sys is to hold.
    Write {
        path: PathBuf,
        text: String,
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
        via: std::net::IpAddr,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    host: Option<String>,
    interface: String,
}

/// The namespaces, each with a socket of its own; the empty name is the one outside of all hosts.
struct Hosts {
    outside: File,
    all: HashMap<String, (File, Netlink<HostWire>)>,
}

pub fn lay_out() -> Result<u8> {
    let steps: Vec<Step> =
        serde_json::from_reader(std::io::stdin()).map_err(|why| Failure::Layout {
            what: "read the steps".to_owned(),
            why: why.to_string(),
        })?;
    let mut hosts = Hosts::new().map_err(failure("look at its own namespace"))?;
    for step in &steps {
        hosts.carry_out(step).map_err(failure(&describe(step)))?;
    }
    Ok(0)
}

fn failure(what: &str) -> impl FnOnce(Errno) -> Failure + '_ {
    move |why| Failure::Layout {
        what: what.to_owned(),
        why: why.to_string(),
    }
}

fn describe(step: &Step) -> String {
    let at = |host: &Option<String>| {
        host.as_ref()
            .map_or(String::new(), |it| format!(" of {it}"))
    };
    match step {
        Step::Write { path, text } => format!("write {text} to {}", path.display()),
        Step::Host { name } => format!("make host {name}"),
        Step::Bridge { name, .. } => format!("make bridge {name}"),
        Step::Wire { ends: [a, b], .. } => format!(
            "join {}{} and {}{}",
            a.interface,
            at(&a.host),
            b.interface,
            at(&b.host)
        ),
        Step::Up {
            host, interface, ..
        } => format!("set {interface}{} up", at(host)),
        Step::Address {
            host,
            interface,
            address,
        } => format!("give {interface} of {host} the address {address}"),
        Step::Route { host, to, via } => format!("add the route of {host} to {to} via {via}"),
    }
}

fn number(why: nix::Error) -> Errno {
    Errno(why as i32)
}

impl Hosts {
    fn new() -> std::result::Result<Hosts, Errno> {
        let outside = File::open(OWN)?;
        let own = (outside.try_clone()?, Netlink::new(HostWire::open()?));
        Ok(Hosts {
            outside,
            all: HashMap::from([(String::new(), own)]),
        })
    }

    fn at(
        &mut self,
        host: Option<&str>,
    ) -> std::result::Result<&mut (File, Netlink<HostWire>), Errno> {
        let found = self.all.get_mut(host.unwrap_or_default());
        found.ok_or(Errno(libc::ENOENT))
    }

    fn carry_out(&mut self, step: &Step) -> std::result::Result<(), Errno> {
        match step {
            Step::Write { path, text } => Ok(std::fs::write(path, text)?),
            Step::Host { name } => self.add(name),
            Step::Bridge { name, mtu } => self.at(None)?.1.bridge_add(name, *mtu),
            Step::Wire { ends: [a, b], mtu } => {
                let a_file = self.at(a.host.as_deref())?.0.try_clone()?;
                let b_file = self.at(b.host.as_deref())?.0.try_clone()?;
                let a = VethEnd::new(&a.interface, a_file.as_fd());
                let b = VethEnd::new(&b.interface, b_file.as_fd());
                self.at(None)?.1.veth_add(&a, &b, *mtu)
            }
            Step::Up {
                host,
                interface,
                bridge,
            } => {
                let netlink = &mut self.at(host.as_deref())?.1;
                if let Some(bridge) = bridge {
                    let (port, bridge) = (netlink.index(interface)?, netlink.index(bridge)?);
                    netlink.controller_set(port, bridge)?;
                }
                let index = netlink.index(interface)?;
                netlink.link_up(index, None)
            }
            Step::Address {
                host,
                interface,
                address,
            } => {
                let netlink = &mut self.at(Some(host))?.1;
                let index = netlink.index(interface)?;
                netlink.address_add(index, *address)
            }
            Step::Route { host, to, via } => self.at(Some(host))?.1.network_route_add(*to, *via),
        }
    }

    /// As `ip netns add`: a file that the namespace is mounted on, in a folder that all mount namespaces share.
    fn add(&mut self, name: &str) -> std::result::Result<(), Errno> {
        let folder = Path::new(NAMES);
        if self.all.len() == 1 {
            share(folder)?;
        }
        let place = folder.join(name);
        drop(File::create_new(&place)?);
        unshare(CloneFlags::CLONE_NEWNET).map_err(number)?;
        let made = enter_and_name(&place);
        setns(self.outside.as_fd(), CloneFlags::CLONE_NEWNET).map_err(number)?;
        self.all.insert(name.to_owned(), made?);
        Ok(())
    }
}

/// Within a new namespace: gives it its name.
fn enter_and_name(place: &Path) -> std::result::Result<(File, Netlink<HostWire>), Errno> {
    let none: Option<&str> = None;
    mount(Some(OWN), place, none, MsFlags::MS_BIND, none).map_err(number)?;
    Ok((File::open(OWN)?, Netlink::new(HostWire::open()?)))
}

/// Makes the folder a mount of its own whose mounts are seen everywhere.
fn share(folder: &Path) -> std::result::Result<(), Errno> {
    std::fs::create_dir_all(folder)?;
    let none: Option<&str> = None;
    let shared = || {
        mount(
            none,
            folder,
            none,
            MsFlags::MS_SHARED | MsFlags::MS_REC,
            none,
        )
    };
    if shared().is_ok() {
        return Ok(());
    }
    let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(folder), folder, none, bind, none).map_err(number)?;
    shared().map_err(number)
}
