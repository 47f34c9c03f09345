// SPDX-License-Identifier: GPL-2.0
//! Lays out a network of hosts on a node that has just booted: namespaces with names as `ip netns`
//! has them, and their interfaces, addresses and routes.
//!
//! The keeper does this by calls of pid 1, before any program joins. A program of the node could do the same, but starting
//! one costs more than all of these calls.

use std::collections::HashMap;
use std::ffi::CString;

use ring3_config::layout::{End, Step};

use crate::calls::SockAddr;
use crate::configure;
use crate::error::{Errno, Error, Result};
use crate::image::Thread;
use crate::netem;
use crate::netlink::{Netlink, VethEnd, Wire};

/// The namespace of the calling task.
const OWN: &std::ffi::CStr = c"/proc/self/ns/net";

/// A namespace: descriptors of itself, and of a netlink socket in it. Both are pid 1's.
#[derive(Debug, Clone, Copy)]
struct Host {
    namespace: i32,
    netlink: i32,
}

/// All namespaces by name; the empty name is the namespace outside of all hosts.
struct Hosts<'a> {
    init: &'a mut Thread,
    all: HashMap<String, Host>,
}

/// A socket of [`Hosts`], which stays open.
struct HostSocket<'a> {
    thread: &'a mut Thread,
    fd: i32,
}

impl Wire for HostSocket<'_> {
    fn send(&mut self, data: &[u8]) -> std::result::Result<(), Errno> {
        let kernel = SockAddr::netlink();
        self.thread.send_to(self.fd, data, &kernel).map(drop)
    }

    fn recv(&mut self, data: &mut [u8]) -> std::result::Result<usize, Errno> {
        self.thread.recv(self.fd, data, 0)
    }
}

/// If a step fails, it ends the layout, and the node's start.
pub(crate) fn carry_out(init: &mut Thread, steps: &[Step]) -> Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let mut hosts = Hosts::new(init)?;
    for step in steps {
        hosts.carry_out(step)?;
    }
    hosts.close()
}

fn unknown(name: &str) -> Error {
    Error::node(format!("find host {name} of its layout"))(Errno(libc::ENOENT))
}

impl<'a> Hosts<'a> {
    fn new(init: &'a mut Thread) -> Result<Hosts<'a>> {
        let fail = || Error::node("prepare for its layout");
        init.make_folder(c"/run").map_err(fail())?;
        init.make_folder(c"/run/netns").map_err(fail())?;
        // A mount whose submounts propagate to all namespaces, as `ip netns` makes it.
        let bind = libc::MS_BIND | libc::MS_REC;
        init.mount(c"/run/netns", c"/run/netns", bind)
            .map_err(fail())?;
        let shared = libc::MS_SHARED | libc::MS_REC;
        init.mount(c"none", c"/run/netns", shared).map_err(fail())?;
        let own = open(init).map_err(fail())?;
        Ok(Hosts {
            init,
            all: HashMap::from([(String::new(), own)]),
        })
    }

    fn host(&self, name: Option<&str>) -> Result<Host> {
        let name = name.unwrap_or_default();
        self.all.get(name).copied().ok_or_else(|| unknown(name))
    }

    fn netlink(&mut self, host: Option<&str>) -> Result<Netlink<HostSocket<'_>>> {
        let fd = self.host(host)?.netlink;
        let thread = &mut *self.init;
        Ok(Netlink::new(HostSocket { thread, fd }))
    }

    fn carry_out(&mut self, step: &Step) -> Result<()> {
        let fail = || Error::node(step.to_string());
        match step {
            Step::Sysctl { host, key, value } => self.sysctl(host.as_deref(), key, value),
            Step::Host { name } => self.add(name).map_err(fail()),
            Step::Bridge { name, mtu } => {
                self.netlink(None)?.bridge_add(name, *mtu).map_err(fail())
            }
            Step::Wire { ends: [a, b], mtu } => {
                let (a, b) = (self.end(a)?, self.end(b)?);
                self.netlink(None)?.veth_add(&a, &b, *mtu).map_err(fail())
            }
            Step::Up {
                host,
                interface,
                bridge,
            } => {
                let mut netlink = self.netlink(host.as_deref())?;
                let index = netlink.index(interface).map_err(fail())?;
                if let Some(bridge) = bridge {
                    let bridge = netlink.index(bridge).map_err(fail())?;
                    netlink.controller_set(index, bridge).map_err(fail())?;
                }
                netlink.link_up(index, None).map_err(fail())
            }
            Step::Address {
                host,
                interface,
                address,
            } => {
                let mut netlink = self.netlink(Some(host))?;
                let index = netlink.index(interface).map_err(fail())?;
                netlink.address_add(index, *address).map_err(fail())
            }
            Step::Netem {
                host,
                interface,
                netem,
            } => {
                let options = netem::options(netem);
                let mut netlink = self.netlink(Some(host))?;
                let index = netlink.index(interface).map_err(fail())?;
                netlink
                    .root_qdisc_set(index, "netem", options)
                    .map_err(fail())
            }
            Step::Route { host, to, via } => {
                let mut netlink = self.netlink(Some(host))?;
                netlink.network_route_add(*to, *via).map_err(fail())
            }
        }
    }

    fn end<'e>(&self, end: &'e End) -> Result<VethEnd<'e>> {
        let namespace = self.host(end.host.as_deref())?.namespace;
        Ok(VethEnd::new(&end.interface, namespace))
    }

    fn sysctl(&mut self, host: Option<&str>, key: &str, value: &str) -> Result<()> {
        if host.is_none() {
            return configure::sysctl(self.init, key, value);
        }
        let fail = || {
            Error::node(format!(
                "enter host {} of its layout",
                host.unwrap_or_default()
            ))
        };
        let (there, outside) = (self.host(host)?, self.host(None)?);
        self.init.enter_network(there.namespace).map_err(fail())?;
        let set = configure::sysctl(self.init, key, value);
        self.init.enter_network(outside.namespace).map_err(fail())?;
        set
    }

    /// As `ip netns add`: a file that the namespace is mounted on.
    fn add(&mut self, name: &str) -> std::result::Result<(), Errno> {
        let place = CString::new(format!("/run/netns/{name}")).map_err(|_| Errno(libc::EINVAL))?;
        self.init.write_file(&place, b"")?;
        let outside = self.all[""].namespace;
        self.init.new_network()?;
        let made = self
            .init
            .mount(OWN, &place, libc::MS_BIND)
            .and_then(|()| open(self.init));
        self.init.enter_network(outside)?;
        self.all.insert(name.to_owned(), made?);
        Ok(())
    }

    fn close(self) -> Result<()> {
        for host in self.all.values() {
            for fd in [host.netlink, host.namespace] {
                self.init
                    .close(fd)
                    .map_err(Error::node("close a descriptor"))?;
            }
        }
        Ok(())
    }
}

/// The namespace that pid 1 is in.
fn open(init: &mut Thread) -> std::result::Result<Host, Errno> {
    let namespace = init.open(OWN, libc::O_RDONLY | libc::O_CLOEXEC)?;
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let netlink = init.socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?;
    Ok(Host { namespace, netlink })
}
