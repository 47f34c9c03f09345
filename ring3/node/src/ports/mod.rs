// SPDX-License-Identifier: GPL-2.0
//! A node's ports: the host's half of each, and adding them to the node.

mod confined;
mod foreign;
pub mod given;
pub(crate) mod handover;
pub mod host;
pub(crate) mod link;
mod packet;
pub(crate) mod passt;
mod passt_probe;
mod tap;
pub(crate) mod vhost;
mod words;
mod xdp;

use std::fs::File;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use ipnet::IpNet;
use ring3_abi::*;
use ring3_config::{PortKind, PortSpec};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::image::Thread;
use crate::region::Region;
use crate::runtime::Folder;

pub(crate) use foreign::Facts;
use foreign::Foreign;
use given::GivenLink;
use host::HostPort;
use link::Link;
use packet::Packet;
use passt::Passt;
use tap::Tap;
use vhost::VhostPort;
use xdp::Xdp;

/// The interface of a switch that joins its ports.
pub(crate) const BRIDGE: &str = "switch0";
/// IFNAMSIZ without the NUL.
const IFNAME_MAX: usize = 15;

/// The host's half.
#[derive(Debug)]
enum Host {
    Link(Link),
    /// A gateway's own end.
    Given(GivenLink),
    Relay(HostPort),
    Vhost(VhostPort),
    Tap(Tap),
    Passt(Passt),
    Packet(Packet),
    Xdp(Xdp),
    Foreign(Foreign),
}

impl Host {
    /// RING3_PORT_LINK and its like.
    fn kind(&self) -> u32 {
        match self {
            Host::Link(_) | Host::Given(_) | Host::Relay(_) | Host::Vhost(_) => RING3_PORT_LINK,
            Host::Tap(_) => RING3_PORT_TAP,
            Host::Passt(_) => RING3_PORT_PASST,
            Host::Packet(_) => RING3_PORT_PACKET,
            Host::Xdp(_) => RING3_PORT_XDP,
            Host::Foreign(port) => port.facts.kind,
        }
    }

    /// Offloads that the far side supports: RING3_PORT_CSUM and its like.
    fn flags(&self) -> u32 {
        match self {
            Host::Link(_) | Host::Given(_) | Host::Relay(_) | Host::Vhost(_) => {
                RING3_PORT_CSUM | RING3_PORT_TSO | RING3_PORT_USO
            }
            Host::Tap(tap) => tap.flags(),
            Host::Packet(packet) => packet.flags(),
            Host::Xdp(_) | Host::Passt(_) => 0,
            Host::Foreign(port) => port.facts.flags,
        }
    }

    /// A link's memory or the port's descriptor.
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Host::Link(link) => link.fd(),
            Host::Given(link) => link.fd(),
            Host::Relay(port) => port.link().fd(),
            Host::Vhost(port) => port.link().fd(),
            Host::Tap(tap) => tap.fd(),
            Host::Passt(passt) => passt.fd(),
            Host::Packet(packet) => packet.fd(),
            Host::Xdp(xdp) => xdp.fd(),
            Host::Foreign(port) => port.fd(),
        }
    }

    /// The memory of a link with a gateway.
    fn given(&self) -> Option<&GivenLink> {
        match self {
            Host::Given(link) => Some(link),
            Host::Relay(port) => Some(port.link()),
            Host::Vhost(port) => Some(port.link()),
            _ => None,
        }
    }

    /// Which end of a link this is.
    fn side(&self) -> u32 {
        match self {
            Host::Link(link) => link.side(),
            Host::Foreign(port) => port.facts.side,
            _ => self.given().map_or(0, GivenLink::side),
        }
    }

    fn window(&self) -> Option<u32> {
        match self {
            Host::Passt(passt) => passt.window(),
            Host::Foreign(port) => port.facts.window,
            _ => None,
        }
    }

    fn made(&self) -> bool {
        match self {
            Host::Tap(tap) => tap.made(),
            Host::Foreign(port) => port.facts.made,
            _ => false,
        }
    }

    fn pid(&self) -> Option<i32> {
        match self {
            Host::Relay(port) => port.pid(),
            Host::Vhost(port) => port.pid(),
            Host::Passt(passt) => Some(passt.pid()),
            Host::Foreign(port) => port.facts.pid,
            _ => None,
        }
    }

    /// What a vhost port's virtual machine does.
    fn guest(&self) -> Option<vhost::State> {
        match self {
            Host::Vhost(port) => Some(port.state()),
            _ => None,
        }
    }

    /// Its gateway answers for the host's resolvers.
    fn has_names(&self) -> bool {
        match self {
            Host::Relay(_) => true,
            Host::Foreign(port) => port.facts.names,
            _ => false,
        }
    }
}

/// A port whose host's half is open, and which has not been added to a node. Opening it needs the
/// user's rights on the host; adding it needs the node only.
#[derive(Debug)]
pub(crate) struct OpenPort {
    spec: PortSpec,
    /// The preferred name of its interface.
    wanted: String,
    addrs: Vec<IpNet>,
    gw: Vec<IpAddr>,
    host: Host,
    /// The link, if its specification does not name it.
    link: Option<String>,
}

/// Counts the links that join this process's nodes to switches.
static PLUGS: AtomicU32 = AtomicU32::new(0);

/// Takes one end of a new link, and asks the switch to take the other. No link of a user has such a
/// name.
fn plug(
    folder: &Folder,
    switch: &str,
    node: &str,
    memory: Option<&File>,
) -> Result<(Link, String)> {
    let (pid, number) = (std::process::id(), PLUGS.fetch_add(1, Ordering::Relaxed));
    let name = format!("{switch}:{node}:{pid}:{number}");
    let link = Link::take(folder, &name, node, memory)?;
    let gone = |why: Error| Error::SwitchGone {
        name: switch.to_owned(),
        why: why.to_string(),
    };
    Client::find(folder.clone(), switch)
        .and_then(|it| it.plug(&name))
        .map_err(gone)?;
    Ok((link, name))
}

/// The name of the interface at this end of a link: a switch names it after the node at the far
/// end.
fn link_interface(name: &str) -> String {
    let mut words = name.split(':');
    let first = words.next().unwrap_or(name);
    words.next().unwrap_or(first).to_owned()
}

impl OpenPort {
    /// Opens the host's half of a port for a node that is up. Its programs have mapped `memory`, if
    /// the port needs any.
    pub fn open_live(
        spec: &PortSpec,
        node: &str,
        folder: &Folder,
        memory: Option<&File>,
    ) -> Result<OpenPort> {
        let (link, wanted, name) = match &spec.kind {
            PortKind::Link { name } => {
                let link = Link::take(folder, name, node, memory)?;
                (link, link_interface(name), None)
            }
            PortKind::Switch { name } => {
                let (link, own) = plug(folder, name, node, memory)?;
                (link, name.clone(), Some(own))
            }
            other => return Err(Error::PortNotLive { kind: other.kind() }),
        };
        Ok(OpenPort {
            spec: spec.clone(),
            wanted: spec.ifname.clone().unwrap_or(wanted),
            addrs: spec.addrs.clone(),
            gw: spec.gw.clone(),
            host: Host::Link(link),
            link: name,
        })
    }

    /// Of a link whose memory is this node's: becomes true before another node has it.
    pub fn was_given(&self) -> Option<Arc<AtomicBool>> {
        match &self.host {
            Host::Link(link) => link.was_given(),
            _ => None,
        }
    }

    /// Opens the host's half for a port of node `node`.
    pub fn open(
        spec: &PortSpec,
        node: &str,
        image: Option<&Path>,
        folder: &Folder,
    ) -> Result<OpenPort> {
        let mut addrs = spec.addrs.clone();
        let mut gw = spec.gw.clone();
        let (host, wanted) = match &spec.kind {
            PortKind::Link { .. } | PortKind::Switch { .. } => {
                return OpenPort::open_live(spec, node, folder, None)
            }
            PortKind::Tap { name } => (Host::Tap(Tap::open(name, &spec.host)?), &**name),
            PortKind::Packet { ifname } => (Host::Packet(Packet::open(ifname)?), &**ifname),
            PortKind::Xdp { ifname } => (Host::Xdp(Xdp::open(ifname)?), &**ifname),
            PortKind::Host => {
                let (ends, gateways) = host::plan(&addrs, &gw);
                (addrs, gw) = (ends.addrs, ends.gw);
                let plan = host::Plan::new(node, spec, &addrs, gateways, image);
                (Host::Relay(HostPort::start(&plan)?), "host0")
            }
            PortKind::Vhost { socket } => (Host::Vhost(VhostPort::start(node, socket)?), "vhost0"),
            PortKind::Passt => {
                let plan = passt::plan(&addrs, &gw);
                let host = Host::Passt(Passt::spawn(&plan, spec.loopback == Some(true))?);
                (addrs, gw) = (plan.addrs, plan.gw);
                (host, "passt0")
            }
        };
        Ok(OpenPort {
            spec: spec.clone(),
            wanted: spec.ifname.as_deref().unwrap_or(wanted).to_owned(),
            addrs,
            gw,
            host,
            link: None,
        })
    }

    /// Whether a hostile guest reaches the host's loopback by it although nobody said `loopback=yes`.
    pub fn leads_to_loopback(&self) -> Result<bool> {
        match &self.host {
            Host::Passt(passt) if self.spec.loopback != Some(true) => passt.leads_to_loopback(),
            _ => Ok(false),
        }
    }

    /// A port that was opened outside, described by its facts.
    pub fn foreign(spec: &PortSpec, facts: Facts, fd: OwnedFd) -> Result<OpenPort> {
        let wrong = |word: &String| Error::Outside {
            why: format!("{word} is no address"),
        };
        let addrs = facts.addrs.iter();
        let gw = facts.gw.iter();
        Ok(OpenPort {
            spec: spec.clone(),
            wanted: facts.wanted.clone(),
            addrs: addrs
                .map(|word| word.parse().map_err(|_| wrong(word)))
                .collect::<Result<_>>()?,
            gw: gw
                .map(|word| word.parse().map_err(|_| wrong(word)))
                .collect::<Result<_>>()?,
            host: Host::Foreign(Foreign::new(facts, fd)?),
            link: None,
        })
    }

    /// For the process that adds it elsewhere; its descriptor is [`OpenPort::fd`].
    pub fn facts(&self) -> Facts {
        Facts {
            wanted: self.wanted.clone(),
            addrs: self.addrs.iter().map(ToString::to_string).collect(),
            gw: self.gw.iter().map(ToString::to_string).collect(),
            kind: self.host.kind(),
            flags: self.host.flags(),
            side: self.host.side(),
            window: self.host.window(),
            made: self.host.made(),
            pid: self.host.pid(),
            names: self.host.has_names(),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.host.fd()
    }

    pub fn spec(&self) -> &PortSpec {
        &self.spec
    }

    /// The link's name if the specification does not contain it.
    pub fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }
}

/// One port of a node. Dropping it releases its resources on the host.
#[derive(Debug)]
pub(crate) struct Port {
    pub index: usize,
    pub spec: PortSpec,
    /// On the node.
    pub ifname: String,
    pub ifindex: u32,
    /// From the specification, or the kind's own.
    pub addrs: Vec<IpNet>,
    pub gw: Vec<IpAddr>,
    host: Host,
    /// See OpenPort.
    pub link: Option<String>,
}

impl Port {
    /// Makes the interface on the node, down and without address.
    pub fn add(index: usize, open: OpenPort, taken: &[Port], init: &mut Thread) -> Result<Port> {
        let kind = open.spec.kind.kind();
        let port = Port {
            index,
            ifname: interface_name(&open.wanted, kind, taken),
            spec: open.spec,
            ifindex: 0,
            addrs: open.addrs,
            gw: open.gw,
            host: open.host,
            link: open.link,
        };
        port.add_to_node(init)
    }

    /// A gateway's end of the link with its node.
    pub fn add_given(link: GivenLink, addrs: Vec<IpNet>, init: &mut Thread) -> Result<Port> {
        let kind = PortKind::Link {
            name: "node".into(),
        };
        let port = Port {
            index: 0,
            ifname: interface_name("node", "link", &[]),
            spec: PortSpec::new(kind),
            ifindex: 0,
            addrs,
            gw: Vec::new(),
            host: Host::Given(link),
            link: None,
        };
        port.add_to_node(init)
    }

    fn add_to_node(mut self, init: &mut Thread) -> Result<Port> {
        let region = init.region().clone();
        let config = self.config(&region)?;
        self.publish_fd(&region, region.init_proc());
        self.ifindex = init
            .port_add(&config)
            .map_err(Error::node(format!("make interface {}", self.ifname)))?;
        if let Host::Xdp(xdp) = &mut self.host {
            xdp.attach()?;
        }
        Ok(self)
    }

    fn config(&self, region: &Region) -> Result<ring3_port_config> {
        let mut config = ring3_port_config {
            index: self.index as u32,
            kind: self.kind(),
            mtu: self.spec.mtu.unwrap_or(0),
            mac: self.spec.mac.unwrap_or_default(),
            ..Default::default()
        };
        config.name[..self.ifname.len()].copy_from_slice(self.ifname.as_bytes());
        match self.kind() {
            RING3_PORT_LINK => {
                config.side = self.host.side();
                config.window = region.map_link(self.index, self.host.fd())?;
            }
            RING3_PORT_XDP => config.window = region.map_xdp(self.index, self.host.fd())?,
            _ => {}
        }
        config.flags = self.host.flags();
        Ok(config)
    }

    /// RING3_PORT_LINK and its like.
    pub fn kind(&self) -> u32 {
        self.host.kind()
    }

    /// The descriptor for programs that join: a link's memory or the port's descriptor.
    pub fn join_fd(&self) -> BorrowedFd<'_> {
        self.host.fd()
    }

    /// The address of the `host` port's gateway, which answers for the host's resolvers.
    pub fn name_server(&self) -> Option<IpAddr> {
        let gateway = self.gw.first().copied();
        gateway.filter(|_| self.host.has_names())
    }

    /// The number of bytes that a TCP peer may send at once, if the port's queue is short.
    pub fn window(&self) -> Option<u32> {
        self.host.window()
    }

    /// The descriptor whose readiness is the port's interrupt; links have doorbells.
    pub fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        (self.kind() != RING3_PORT_LINK).then(|| self.join_fd())
    }

    /// Tells the image this port's descriptor in this process.
    pub fn publish_fd(&self, region: &Region, proc: u64) {
        if let Some(fd) = self.event_fd() {
            region.set_port_fd(proc, self.index, fd.as_raw_fd());
        }
    }

    /// Whether the port is about to get a carrier: a link has one if its far end is up.
    pub fn expects_carrier(&self) -> bool {
        match &self.host {
            Host::Link(link) => link.far_end_is_up(),
            Host::Foreign(port) => port.far_end_is_up(),
            host => host.given().is_some_and(GivenLink::far_end_is_up),
        }
    }

    /// This node made the TAP.
    pub fn made(&self) -> bool {
        self.host.made()
    }

    /// Whether it can be added and removed while the node is up.
    pub fn is_live(&self) -> bool {
        matches!(self.host, Host::Link(_))
    }

    /// What a vhost port's virtual machine does.
    pub fn guest(&self) -> Option<vhost::State> {
        self.host.guest()
    }

    /// passt's process, or the gateway.
    pub fn pid(&self) -> Option<i32> {
        self.host.pid()
    }
}

/// Names that no port's interface can have: the loopback's, and those that stand for all and for
/// new interfaces in /proc/sys/net/ipv4/conf.
const RESERVED: [&str; 4] = ["lo", "all", "default", BRIDGE];

/// The preferred name, shortened to Linux's limit; `kind` and a number if it is in use.
fn interface_name(wanted: &str, kind: &str, taken: &[Port]) -> String {
    let mut name = wanted.to_owned();
    while name.len() > IFNAME_MAX {
        name.pop();
    }
    let in_use =
        |name: &str| RESERVED.contains(&name) || taken.iter().any(|port| port.ifname == name);
    if !in_use(&name) {
        return name;
    }
    (0..)
        .map(|n| format!("{kind}{n}"))
        .find(|name| !in_use(name))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux has settings for `all` interfaces and for the `default` one, so no interface may have
    /// these names.
    #[test]
    fn names_that_no_interface_can_have() {
        for (wanted, name) in [
            ("ab", "ab"),
            ("lo", "link0"),
            ("all", "link0"),
            ("default", "link0"),
            ("sixteencharacter", "sixteencharacte"),
        ] {
            assert_eq!(interface_name(wanted, "link", &[]), name);
        }
    }
}
