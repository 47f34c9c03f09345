// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a node from its keeper's side
//!
//! One thread, `ring3-node`, boots the node and then is its pid 1: it alone owns init_thread and
//! makes every call as root of the node (SPAWN, REAP, netlink, log), so these need no lock. After
//! that it waits in one epoll set and serves:
//!
//! ```text
//! join        a program wants in           -> SPAWN, descriptors (join.rs)
//! ask         `ring3 log`, `ring3 port`     -> LOG_READ, PORT_ADD (live.rs); answer.rs answers the rest
//! tickets     a descriptor is on its way    -> forget it when nobody can collect it (tickets.rs)
//! death       a process died (procs.rs)     -> REAP
//! over        KEEP has returned            -> say why, if the node is poisoned
//! stop        the handle, or `ring3 down`   -> the end
//! ```
//!
//! States of the node (region->state) and what the keeper does about them:
//!
//! ```text
//! LOADED    image copied, nothing runs              -> KEEP is started, then boot
//! BOOTING   start_kernel on this thread              -> wait; an error or poison ends it all
//! UP        ports, addresses, sysctls, then sockets: whoever can connect finds it complete
//! POISONED  the node is over, the keeper is not      -> ends the programs; says why to who asks meanwhile. The handle ends it then
//! DOWN      set here                                 -> KEEP and every call return; clean up
//! ```
//!
//! If the keeper itself is killed, its undertaker poisons the node and ends the programs
//! (undertaker.rs). If that is gone too, the first thread whose wait in the kernel times out checks
//! its keeper and poisons the node, and all calls get `EIO` (wait_for_it() in vcpu/wait.c). A
//! program that never sleeps there runs until then. No program can join. The rest in the runtime
//! folder is removed by the next command that looks (runtime.rs).

mod answer;
mod last_words;
mod live;
mod serve;

pub(crate) use live::Spare;
pub(crate) use serve::Guests;

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use ring3_abi::RING3_UP;
use ring3_config::{NodeConfig, Restart};

use crate::calls::Instruction;
use crate::drivers::{self, event_fd, ring, Driver, PortWatch};
use crate::elf::Image;
use crate::error::{Errno, Error, Result};
use crate::farewell::{Farewell, Whom};
use crate::fault::{self, Guard};
use crate::image::Thread;
use crate::netlink::{Netlink, NodeWire};
use crate::outside::Given;
use crate::ports::given::GivenLink;
use crate::ports::{OpenPort, Port};
use crate::procs::{Adopts, Deaths, Graves};
use crate::region::{Params, Region};
use crate::runtime::{Folder, NodeFolder};
use crate::tickets::Tickets;
use crate::undertaker::Undertaker;
use crate::{configure, control, flows, layout, pcap};

/// The place of a node on the host.
pub(crate) enum Place {
    /// In a runtime folder, where others find it.
    Folder(Folder),
    /// None: all that it needs was passed to it, and each program that joins is announced.
    Confined(Given, Guests),
}

impl From<&Folder> for Place {
    fn from(folder: &Folder) -> Place {
        Place::Folder(folder.clone())
    }
}

/// How long a node may take to end in good order.
const ORDERLY_END: Duration = Duration::from_secs(2);
/// A node that runs. Dropping it takes it down and cleans up.
#[derive(Debug)]
pub(crate) struct Node {
    config: NodeConfig,
    /// None: the node is confined.
    runtime: Option<Folder>,
    /// Released last, by drop().
    folder: Option<NodeFolder>,
    region: Arc<Region>,
    init: Thread,
    guard: Option<Guard>,
    ports: Vec<Port>,
    /// The ports as the control socket reports them.
    port_statuses: Arc<Mutex<Vec<control::Port>>>,
    /// Places for further ports, see live.rs.
    spares: Vec<live::Spare>,
    /// Names of other nodes that this one was told.
    known: Vec<(String, Vec<IpAddr>)>,
    /// Of a switch.
    alone: live::Alone,
    /// Of a confined node: ports that were opened outside and are not added yet.
    given: Vec<OpenPort>,
    flows: Option<std::fs::File>,
    guests: Option<Guests>,
    keep: Option<Driver>,
    keep_others: Vec<Driver>,
    port_watch: Option<PortWatch>,
    deaths: Option<Deaths>,
    graves: Graves,
    tickets: Tickets,
    undertaker: Option<Undertaker>,
    /// The thread that ends the programs of a poisoned node, and since when.
    farewell: Option<(Driver, Instant)>,
    captures: Vec<Driver>,
    /// Of a gateway.
    flow_log: Option<Driver>,
    captures_stop: Arc<AtomicBool>,
    /// Rung when KEEP returns: the node is poisoned, or down.
    over: Arc<OwnedFd>,
    started: Instant,
    /// Set when drop() begins.
    leaving: Arc<AtomicBool>,
}

impl Node {
    /// Boots the node and completes it, except for its sockets.
    pub fn start(config: NodeConfig, place: impl Into<Place>) -> Result<Node> {
        let (runtime, folder, image, given, flows, guests) = match place.into() {
            Place::Folder(runtime) => {
                let folder = NodeFolder::claim(&runtime, &config.name)?;
                let image = Image::open(config.image.as_deref(), config.cpus)?;
                (Some(runtime), Some(folder), image, Vec::new(), None, None)
            }
            Place::Confined(given, guests) => {
                let (ports, flows) = (given.ports, given.flows);
                (None, None, given.image, ports, flows, Some(guests))
            }
        };
        let mut cmdline = config.cmdline.clone();
        if config.cpus > 1 {
            cmdline.push_str(&format!(" ring3_cpus={}", config.cpus));
        }
        let params = Params {
            name: &config.name,
            size: config.mem,
            cmdline: &cmdline,
            spin_ns: config.spin_ns,
            grace: config.grace,
            host_cpuid: config.host_cpuid,
            seed: config.seed,
        };
        let locks = runtime.as_ref().and_then(Folder::slots);
        let region = Arc::new(Region::create(&image, &params, locks)?);
        // While this process has few threads and no descriptors of the node's.
        let whom = whom(runtime.as_ref());
        // One that is started again, or was made for one program, is missed by whoever started it.
        let record = runtime
            .clone()
            .filter(|_| config.restart == Restart::No && !config.for_one)
            .map(|folder| (folder, config.name.clone()));
        let undertaker = Undertaker::start(&region, whom, config.grace, record)?;
        // In virtual time nobody is the adopter: its coming and going would be at the host's time.
        let join = runtime
            .as_ref()
            .filter(|_| !image.is_sim())
            .map(|it| it.join_path(&config.name));
        let adopts = join.map(|join| Adopts {
            join,
            at_once: !config.for_one,
        });
        let (deaths, graves) = Deaths::start(&region, adopts)?;
        let mut node = Node {
            init: Thread::init(&region),
            guard: Some(fault::guard(&region)?),
            runtime,
            folder,
            region,
            ports: Vec::new(),
            port_statuses: Arc::default(),
            spares: Vec::new(),
            known: Vec::new(),
            alone: live::Alone::default(),
            given,
            flows,
            guests,
            keep: None,
            keep_others: Vec::new(),
            port_watch: None,
            deaths: Some(deaths),
            graves,
            tickets: Tickets::new(&config.name)?,
            undertaker: Some(undertaker),
            farewell: None,
            captures: Vec::new(),
            flow_log: None,
            captures_stop: Arc::default(),
            over: Arc::new(event_fd()?),
            started: Instant::now(),
            leaving: Arc::default(),
            config,
        };
        // From here on drop() cleans up.
        node.boot()?;
        node.configure()?;
        Ok(node)
    }

    fn boot(&mut self) -> Result<()> {
        self.keep = Some(drivers::keep(&self.region, self.over.clone())?);
        self.keep_others = drivers::keep_others(&self.region, self.config.cpus)?;
        self.region.set_booting();
        let result = self.init.boot();
        if let Some(why) = self.region.poison() {
            return Err(Error::Boot { why });
        }
        match (result, self.region.state()) {
            (0, RING3_UP) => Ok(()),
            (0, state) => Err(Error::Boot {
                why: format!("it returned in state {state}"),
            }),
            (error, _) => Err(Error::Boot {
                why: format!("it returned {error}"),
            }),
        }
    }

    fn configure(&mut self) -> Result<()> {
        configure::loopback(&mut self.init)?;
        if self.config.switch.is_some() {
            configure::bridge(&mut self.init)?;
        }
        self.add_ports()?;
        self.make_spares()?;
        self.start_captures()?;
        for port in &self.ports {
            if self.config.switch.is_some() {
                configure::bridge_port(&mut self.init, port)?;
            }
            configure::port(&mut self.init, port)?;
        }
        configure::routes(&mut self.init, &self.config.routes)?;
        configure::names(&mut self.init, &self.config, &self.ports)?;
        self.port_watch = PortWatch::start(&self.region, &self.ports)?;
        for (key, value) in &self.config.sysctls {
            configure::sysctl(&mut self.init, key, value)?;
        }
        layout::carry_out(&mut self.init, &self.config.layout)?;
        self.wait_for_carriers()
    }

    /// Returns when every link whose far end is up is usable.
    pub fn wait_for_carriers(&mut self) -> Result<()> {
        for port in &self.ports {
            configure::wait_for_carrier(&mut self.init, port)?;
        }
        Ok(())
    }

    /// Makes the interfaces, down. All of them before any thread of the keeper gets a task: a task
    /// knows the descriptors of the ports that existed when it was made.
    fn add_ports(&mut self) -> Result<()> {
        let mut given = std::mem::take(&mut self.given).into_iter();
        for (index, spec) in self.config.ports.iter().enumerate() {
            let open = match &self.runtime {
                Some(runtime) => {
                    let (name, image) = (&self.config.name, self.config.image.as_deref());
                    OpenPort::open(spec, name, image, runtime)?
                }
                None => given.next().ok_or_else(|| Error::Outside {
                    why: format!("port {index} is missing"),
                })?,
            };
            let port = Port::add(index, open, &self.ports, &mut self.init)?;
            self.ports.push(port);
        }
        Ok(())
    }

    /// Before the interfaces are up, so that each capture has the first packet.
    fn start_captures(&mut self) -> Result<()> {
        for index in 0..self.ports.len() {
            let Some(path) = self.ports[index].spec.pcap.clone() else {
                continue;
            };
            let port = &self.ports[index];
            let plan = pcap::Plan {
                ifindex: port.ifindex,
                ifname: port.ifname.clone(),
                path,
                filter: Vec::new(),
                is_live: false,
                stop: self.captures_stop.clone(),
            };
            let thread = self.own_thread()?;
            self.captures.push(pcap::start(thread, plan)?);
        }
        if let Some(file) = self.flows.take() {
            let names = self.ports.iter();
            let names = names.map(|it| (it.ifindex, it.ifname.clone())).collect();
            let thread = self.own_thread()?;
            let stop = self.captures_stop.clone();
            self.flow_log = Some(flows::start(thread, file, names, stop)?);
        }
        Ok(())
    }

    /// A capture of any interface, for as long as somebody reads the pipe.
    fn capture(&mut self, ifname: String, path: PathBuf, filter: Vec<Instruction>) -> Result<()> {
        let wire = NodeWire::open(&mut self.init).map_err(Error::node("open a netlink socket"))?;
        let ifindex = Netlink::new(wire).index(&ifname).map_err(|why| match why {
            Errno(libc::ENODEV) => Error::NoSuchInterface {
                ifname: ifname.clone(),
            },
            why => Error::node("look for an interface")(why),
        })?;
        self.captures.retain(|capture| !capture.has_ended());
        let plan = pcap::Plan {
            ifindex,
            ifname,
            path,
            filter,
            is_live: true,
            stop: self.captures_stop.clone(),
        };
        let thread = self.own_thread()?;
        self.captures.push(pcap::start(thread, plan)?);
        Ok(())
    }

    /// A task of the node for a thread of this process.
    pub fn own_thread(&mut self) -> Result<Thread> {
        let block = self
            .init
            .spawn(std::process::id() as i32)
            .map_err(Error::node("make a task"))?;
        let thread = Thread::spawned(&self.region, block);
        for port in &self.ports {
            port.publish_fd(&self.region, thread.proc());
        }
        Ok(thread)
    }

    /// A gateway's one port: its end of the link that the keeper of the program's node made.
    pub fn add_given(&mut self, link: GivenLink, addrs: Vec<IpNet>) -> Result<()> {
        let port = Port::add_given(link, addrs, &mut self.init)?;
        configure::port(&mut self.init, &port)?;
        self.ports.push(port);
        Ok(())
    }

    /// For a node without programs.
    pub fn dismiss_undertaker(&mut self) {
        drop(self.undertaker.take());
    }

    pub fn init_thread(&mut self) -> &mut Thread {
        &mut self.init
    }

    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    #[cfg(test)]
    pub fn passt_pid(&self) -> Option<i32> {
        self.ports.iter().find_map(Port::pid)
    }

    #[cfg(test)]
    pub fn init(&mut self) -> &mut Thread {
        &mut self.init
    }
}

/// A keeper without a runtime folder is confined.
fn whom(runtime: Option<&Folder>) -> Whom {
    match runtime {
        Some(_) => Whom::Anybody,
        None => Whom::Sandbox,
    }
}

impl Node {
    /// The node is poisoned: ends its programs, while the control socket reports the reason.
    fn end_programs(&mut self, failed: Arc<OwnedFd>) -> Result<()> {
        let (region, grace, whom) = (
            self.region.clone(),
            self.config.grace,
            whom(self.runtime.as_ref()),
        );
        let driver = Driver::start("ring3-farewell", move || {
            let mut farewell = Farewell::new(&region, whom);
            farewell.ask(grace);
            farewell.kill();
            ring(&failed);
        })?;
        self.farewell = Some((driver, Instant::now()));
        Ok(())
    }

    /// Removes the interfaces in good order: peers lose their carrier now, captures see the end and
    /// write what they have. A program that is stopped while it owns the vCPU would block this
    /// thread, so a helper ends the node after a while: then these calls fail like all others.
    /// Tells whether all captures ended.
    fn remove_ports(&mut self) -> bool {
        let mut ended = true;
        if self.region.state() != RING3_UP {
            self.keep_log();
            return ended;
        }
        let (done, is_done) = mpsc::channel::<()>();
        let region = self.region.clone();
        let helper = Driver::start("ring3-end", move || {
            if is_done.recv_timeout(ORDERLY_END) == Err(RecvTimeoutError::Timeout) {
                region.set_down();
            }
        });
        self.keep_log();
        for port in self.ports.iter().rev() {
            if let Err(why) = self.init.port_del(port.index) {
                log::warn!("node {}: {}: {why}", self.config.name, port.ifname);
            }
        }
        for capture in self.captures.drain(..) {
            ended &= capture.end();
        }
        drop(done);
        if let Ok(helper) = helper {
            helper.end();
        }
        ended
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.leaving.store(true, Ordering::Release);
        self.captures_stop.store(true, Ordering::Release);
        let region = self.region.clone();
        let mut farewell = Farewell::new(&region, whom(self.runtime.as_ref()));
        let asked = self
            .farewell
            .as_ref()
            .map_or(Duration::ZERO, |(_, since)| since.elapsed());
        farewell.ask(self.config.grace.saturating_sub(asked));
        let mut ended = self.remove_ports();
        self.region.set_down();
        farewell.kill();
        self.farewell.take().map(|(driver, _)| driver.end());
        drop(self.undertaker.take());
        // The node's end has ended its wait.
        ended &= self.flow_log.take().is_none_or(Driver::end);
        ended &= self.port_watch.take().is_none_or(PortWatch::end);
        ended &= self.deaths.take().is_none_or(Deaths::end);
        for capture in self.captures.drain(..) {
            ended &= capture.end();
        }
        ended &= self.keep.take().is_none_or(Driver::end);
        for keep in self.keep_others.drain(..) {
            ended &= keep.end();
        }
        self.ports.clear();
        if !ended {
            // A thread is still in the image: keeping the memory is better than unmapping it.
            std::mem::forget(self.guard.take());
            std::mem::forget(self.region.clone());
        }
        drop(self.folder.take());
    }
}
