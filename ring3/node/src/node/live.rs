// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: ports that come and go while a node is up, and switches
//!
//! Every process of a node maps the memory of each link, since any of them may drive the node when
//! a packet arrives. A program that has joined can't be made to map anything more. So each node has
//! spare memory from its start on, which every program maps with the rest: a further port uses
//! that.
//!
//! ```text
//! link:NAME     the spare memory becomes the link's. It can't if the far end is up, whose memory is another
//! switch:NAME   the same, and the switch takes the far end: it has no programs, and maps what it is given
//! other kinds   are descriptors, which programs would have to be given: refused
//! going away    the interface goes; the place and its memory are not used again, for the far end has had them
//! ```
//!
//! A switch is a node without programs, whose ports are joined by a bridge. Nodes ask it for a port
//! over its control socket. It checks from time to time which far ends are gone, and removes their
//! ports.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring3_abi::RING3_PORTS_MAX;
use ring3_config::{PortKind, PortSpec, Switch};

use super::answer::port_status;
use super::Node;
use crate::configure;
use crate::control;
use crate::error::{Error, Result};
use crate::ports::handover::{empty_spare, make_spare};
use crate::ports::link::far_end;
use crate::ports::{OpenPort, Port};

/// Ports that can be added to a node while it is up. Each costs every starting program two host
/// calls and a descriptor.
const SPARES: usize = 2;
/// How often a switch looks for far ends that are gone.
pub(super) const SWEEP_TURN: Duration = Duration::from_millis(250);
/// How long a switch that was started implicitly stays without ports: nodes of one start come one
/// after the other.
const LINGER: Duration = Duration::from_secs(2);
/// The same before its first node has come, which may take long to ask for a port.
const LINGER_UNUSED: Duration = Duration::from_secs(60);

/// A place for a port, and memory that every program of the node has mapped there.
#[derive(Debug)]
pub(crate) struct Spare {
    pub index: usize,
    pub memory: File,
}

impl Node {
    /// Makes memory for ports to come. A confined node has only what it was given; a switch needs
    /// none.
    pub(super) fn make_spares(&mut self) -> Result<()> {
        if self.runtime.is_none() || self.config.switch.is_some() {
            return Ok(());
        }
        let first = self.ports.len();
        for index in first..(first + SPARES).min(RING3_PORTS_MAX) {
            let memory = make_spare()?;
            self.region
                .map_link(index, std::os::fd::AsFd::as_fd(&memory))?;
            self.spares.push(Spare { index, memory });
        }
        Ok(())
    }

    /// Adds a port from its description.
    pub(super) fn port_add(&mut self, spec: &str) -> Result<control::Port> {
        let spec: PortSpec = spec.parse().map_err(|why| Error::PortSpec { why })?;
        self.add_live(&spec)
    }

    /// A node has one end of this link: takes the other.
    pub(super) fn plug(&mut self, link: &str) -> Result<control::Port> {
        if self.config.switch.is_none() {
            return Err(Error::NoSwitch {
                node: self.config.name.clone(),
            });
        }
        let name = link.to_owned();
        self.add_live(&PortSpec::new(PortKind::Link { name }))
    }

    fn add_live(&mut self, spec: &PortSpec) -> Result<control::Port> {
        if !matches!(spec.kind, PortKind::Link { .. } | PortKind::Switch { .. }) {
            let kind = spec.kind.kind();
            return Err(Error::PortNotLive { kind });
        }
        if spec.pcap.is_some() {
            let why = "a capture has to begin with the node: leave pcap= out, and use tcpdump";
            return Err(Error::NoPlace { why });
        }
        let Some(runtime) = self.runtime.clone() else {
            let why = "the node is sandboxed";
            return Err(Error::NoPlace { why });
        };
        let spare = match self.config.switch {
            Some(_) => None,
            None => Some(self.spares.pop().ok_or(Error::NoPlace {
                why: "two can come to a node while it is up, and two did: take it down, and up with all",
            })?),
        };
        let memory = spare.as_ref().map(|it| &it.memory);
        let open = match OpenPort::open_live(spec, &self.config.name, &runtime, memory) {
            Ok(open) => open,
            Err(error) => {
                self.spares.extend(spare);
                return Err(error);
            }
        };
        let index = match &spare {
            Some(spare) => spare.index,
            None => self.free_index()?,
        };
        let was_given = open.was_given();
        let added = Port::add(index, open, &self.ports, &mut self.init);
        let added = added.and_then(|port| match self.bring_up(&port) {
            Ok(()) => Ok(port),
            Err(error) => {
                let _ = self.init.port_del(index);
                Err(error)
            }
        });
        let port = match added {
            Ok(port) => port,
            Err(error) => {
                self.give_back(spare, was_given);
                return Err(error);
            }
        };
        let status = port_status(&port);
        self.ports.push(port);
        self.publish_ports();
        Ok(status)
    }

    /// Frees a place after a failure, unless a far end has had its memory. The port has ended: no
    /// far end gets it any more.
    fn give_back(&mut self, spare: Option<Spare>, was_given: Option<Arc<AtomicBool>>) {
        let is_own = was_given.is_some_and(|it| !it.load(Ordering::Acquire));
        let spare = spare.filter(|_| is_own);
        let spare = spare.filter(|it| empty_spare(&it.memory).is_ok());
        self.spares.extend(spare);
    }

    fn bring_up(&mut self, port: &Port) -> Result<()> {
        if self.config.switch.is_some() {
            configure::bridge_port(&mut self.init, port)?;
        }
        configure::port(&mut self.init, port)?;
        if self.config.switch.is_none() {
            configure::wait_for_carrier(&mut self.init, port)?;
        }
        Ok(())
    }

    /// Of a switch: any free index, since no program has mapped what was there before.
    fn free_index(&self) -> Result<usize> {
        let is_free = |index: &usize| self.ports.iter().all(|port| port.index != *index);
        (0..RING3_PORTS_MAX).find(is_free).ok_or(Error::NoPlace {
            why: "the switch has 16 nodes: join a second switch to it by a node with a bridge",
        })
    }

    pub(super) fn port_del(&mut self, ifname: &str) -> Result<control::Port> {
        let at = self
            .ports
            .iter()
            .position(|port| port.ifname == ifname && port.is_live());
        let at = at.ok_or_else(|| Error::NoSuchPort {
            ifname: ifname.to_owned(),
        })?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Result<control::Port> {
        let (index, ifname) = (self.ports[at].index, self.ports[at].ifname.clone());
        self.init
            .port_del(index)
            .map_err(Error::node(format!("remove interface {ifname}")))?;
        let port = self.ports.remove(at);
        let status = port_status(&port);
        drop(port);
        self.publish_ports();
        Ok(status)
    }

    /// Sets the ports that the control socket reports from now on.
    pub(super) fn publish_ports(&self) {
        let statuses = self.ports.iter().map(port_status).collect();
        if let Ok(mut ports) = self.port_statuses.lock() {
            *ports = statuses;
        }
    }

    /// Writes another node's name into /etc/hosts. Names of the configuration take precedence.
    pub(super) fn know(&mut self, name: &str, addresses: &[String]) -> Result<()> {
        let is_given = self.config.hosts.iter().any(|(host, _)| host == name);
        if is_given || name == self.config.name || self.config.switch.is_some() {
            return Ok(());
        }
        let wrong = |why| Error::PortSpec { why };
        let mut lines = Vec::new();
        for address in addresses {
            let host = ring3_config::names::host(&format!("{name}={address}"));
            lines.push(host.map_err(wrong)?.1);
        }
        let at = self.known.iter().position(|(known, _)| known == name);
        let before = at.map_or(Vec::new(), |at| self.known.swap_remove(at).1);
        let written = configure::known_name(&mut self.init, &self.config, name, &before, &lines);
        let stands = if written.is_ok() { lines } else { before };
        self.known.push((name.to_owned(), stands));
        written
    }

    /// Of a switch: removes ports whose far end is gone. True: no node needs the switch any more.
    pub(super) fn sweep(&mut self) -> Result<bool> {
        let Some(folder) = self.runtime.clone() else {
            return Ok(false);
        };
        let name = self.config.name.clone();
        let is_gone = |port: &&Port| {
            let link = port.spec.kind.name().unwrap_or_default();
            port.is_live() && far_end(&folder, link, &name).is_none()
        };
        self.alone.was_used |= !self.ports.is_empty();
        let gone = self.ports.iter().filter(is_gone);
        let gone: Vec<_> = gone.map(|port| port.ifname.clone()).collect();
        for ifname in gone {
            // A port that can't be removed must not end the switch for the others: it is reported
            // once, and left alone.
            if self.alone.is_stuck(&ifname) {
                continue;
            }
            if let Err(error) = self.port_del(&ifname) {
                log::warn!("node {name}: {error}");
                self.alone.stuck.push(ifname);
            }
        }
        let used = self.ports.iter();
        let used = used.filter(|port| !self.alone.is_stuck(&port.ifname));
        let is_over = self.alone.is_over(used.count(), Instant::now());
        Ok(self.config.switch == Some(Switch::WhileUsed) && is_over)
    }
}

/// Whether a switch is without nodes, and how long it stays so.
#[derive(Debug, Default)]
pub(super) struct Alone {
    since: Option<Instant>,
    was_used: bool,
    /// Interfaces whose far end is gone and that could not be removed.
    stuck: Vec<String>,
}

impl Alone {
    fn is_stuck(&self, ifname: &str) -> bool {
        self.stuck.iter().any(|stuck| stuck == ifname)
    }

    fn is_over(&mut self, ports: usize, now: Instant) -> bool {
        if ports > 0 {
            self.since = None;
            return false;
        }
        let linger = match self.was_used {
            true => LINGER,
            false => LINGER_UNUSED,
        };
        let since = *self.since.get_or_insert(now);
        now.duration_since(since) > linger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_waits_for_its_first_node() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut alone = Alone::default();
        assert!(!alone.is_over(0, start) && !alone.is_over(0, after(50)));
        assert!(alone.is_over(0, after(61)));
        alone.was_used = true;
        assert!(!alone.is_over(1, after(70)) && !alone.is_over(0, after(80)));
        assert!(!alone.is_over(0, after(81)) && alone.is_over(0, after(83)));
    }
}
