// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a node from its keeper's side
//!
//! One thread, `ring3-node`, boots the node and then is its pid 1: it alone owns init_thread and
//! makes every call as root of the node (SPAWN, REAP, netlink, log), so those need no lock.
//! The rest of its life it waits in one epoll set and serves:
//!
//! ```text
//! join        a program wants in           -> SPAWN, descriptors (join.rs)
//! control     `ring3 ls`, `log`, `down`    -> one answer each
//! procs       procs[] changed              -> pidfds for the new, forget the gone (procs.rs)
//! a pidfd     a process died               -> REAP
//! stop        the handle, or `down`        -> the end
//! ```
//!
//! States of the node (region->state) and what the keeper does about them:
//!
//! ```text
//! LOADED    image copied, nothing runs              -> KEEP is started, then boot
//! BOOTING   start_kernel on this thread              -> wait; an error or poison ends it all
//! UP        ports, addresses, sysctls, then sockets: whoever can connect finds it complete
//! POISONED  the node is over, the keeper is not      -> says why to who asks, until `down`
//! DOWN      set here                                 -> KEEP and every call return; clean up
//! ```
//!
//! If the keeper itself is killed, the region stays with the programs that map it, and they can
//! go on as long as they drive each other; timers and ports with descriptors stop while
//! they sleep, and nobody can join. What is left in the runtime folder is removed by the next
//! one who looks (runtime.rs).

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring3_abi::{RING3_BOOTING, RING3_DOWN, RING3_LOADED, RING3_UP};
use ring3_config::{NodeConfig, PortSpec};
use rustix::event::epoll;

use crate::control::{self, Log, Memory, Proc, Reply, Request, State, Status};
use crate::drivers::{self, event_fd, was_rung, Driver, PortWatch, ProcsWatch};
use crate::elf::Image;
use crate::error::{Error, Result};
use crate::fault::{self, Guard};
use crate::image::Thread;
use crate::ports::Port;
use crate::procs::Procs;
use crate::region::{Params, Region};
use crate::runtime::{Folder, NodeFolder};
use crate::{configure, join, pcap};

/// What LOG_READ fills at a time, and what one answer holds at most.
const LOG_PIECE: usize = 64 << 10;
const LOG_MAX: usize = 4 << 20;

/// How long a node may take to end in good order.
const ORDERLY_END: Duration = Duration::from_secs(2);
/// How often to try again what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

/// Tokens of the epoll set; a process's is PROC plus its index in procs[].
const STOP: u64 = 0;
const PROCS: u64 = 1;
const JOIN: u64 = 2;
const CONTROL: u64 = 3;
const PROC: u64 = 1 << 32;

/// A node that runs. Dropping it takes it down and cleans up.
#[derive(Debug)]
pub(crate) struct Node {
    config: NodeConfig,
    runtime: Folder,
    /// Given back last, by drop().
    folder: Option<NodeFolder>,
    region: Arc<Region>,
    init: Thread,
    guard: Option<Guard>,
    ports: Vec<Port>,
    keep: Option<Driver>,
    port_watch: Option<PortWatch>,
    procs_watch: Option<ProcsWatch>,
    captures: Vec<Driver>,
    captures_stop: Arc<AtomicBool>,
    procs: Procs,
    /// Rung by the procs watcher, and by KEEP when it returns.
    bell: Arc<OwnedFd>,
    started: Instant,
}

impl Node {
    /// Boots the node and makes it complete but for its sockets.
    pub fn start(config: NodeConfig, runtime: &Folder) -> Result<Node> {
        let folder = NodeFolder::claim(runtime, &config.name)?;
        let image = Image::open(config.image.as_deref())?;
        let params = Params {
            name: &config.name,
            size: config.mem,
            cmdline: &config.cmdline,
            spin_ns: config.spin_ns,
        };
        let region = Arc::new(Region::create(&image, &params)?);
        let mut node = Node {
            init: Thread::init(&region),
            guard: fault::guard(&region),
            runtime: runtime.clone(),
            folder: Some(folder),
            region,
            ports: Vec::new(),
            keep: None,
            port_watch: None,
            procs_watch: None,
            captures: Vec::new(),
            captures_stop: Arc::default(),
            procs: Procs::default(),
            bell: Arc::new(event_fd()?),
            started: Instant::now(),
            config,
        };
        // From here on drop() cleans up whatever there is.
        node.boot()?;
        node.configure()?;
        Ok(node)
    }

    fn boot(&mut self) -> Result<()> {
        self.keep = Some(drivers::keep(&self.region, self.bell.clone())?);
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
        for (index, spec) in self.config.ports.clone().iter().enumerate() {
            self.add_port(index, spec)?;
        }
        self.port_watch = PortWatch::start(&self.region, &self.ports)?;
        for (key, value) in &self.config.sysctls {
            configure::sysctl(&mut self.init, key, value)?;
        }
        self.wait_for_carriers()?;
        let watch = ProcsWatch::start(&self.region, self.bell.clone())?;
        self.procs_watch = Some(watch);
        Ok(())
    }

    /// Returns when every link whose far end is up can be used.
    pub fn wait_for_carriers(&mut self) -> Result<()> {
        for port in &self.ports {
            configure::wait_for_carrier(&mut self.init, port)?;
        }
        Ok(())
    }

    fn add_port(&mut self, index: usize, spec: &PortSpec) -> Result<()> {
        let name = &self.config.name;
        let port = Port::add(
            index,
            spec,
            name,
            &self.runtime,
            &self.ports,
            &mut self.init,
        )?;
        self.ports.push(port);
        // Before the interface is up, so that its first packet is in it.
        if let Some(path) = &spec.pcap {
            let thread = self.own_thread()?;
            let stop = self.captures_stop.clone();
            let capture = pcap::start(thread, self.ports[index].ifindex, path, stop)?;
            self.captures.push(capture);
        }
        configure::port(&mut self.init, &self.ports[index])
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

    /// Opens the sockets: from here on programs may join.
    pub fn listen(&self) -> Result<Listeners> {
        let name = &self.config.name;
        let path = self.runtime.control_path(name);
        let fail = || Error::io(format!("listen on {}", path.display()));
        let control = UnixListener::bind(&path).map_err(fail())?;
        control.set_nonblocking(true).map_err(fail())?;
        let join = join::listen(&self.runtime.join_path(name))?;
        Ok(Listeners { join, control })
    }

    /// Serves until `stop` is rung or somebody says `down`.
    pub fn serve(&mut self, listeners: &Listeners, stop: &OwnedFd) -> Result<()> {
        let fail = || Error::host("wait for a node's events");
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail())?;
        let add = |fd: &dyn std::os::fd::AsFd, token| {
            let data = epoll::EventData::new_u64(token);
            epoll::add(&set, fd.as_fd(), data, epoll::EventFlags::IN).map_err(fail())
        };
        add(stop, STOP)?;
        add(&self.bell, PROCS)?;
        add(&listeners.join, JOIN)?;
        add(&listeners.control, CONTROL)?;
        let mut poison_said = false;
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(fail()(why)),
            }
            let mut look = false;
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(()),
                    PROCS => look |= was_rung(&self.bell),
                    JOIN => look |= self.let_in(&listeners.join),
                    CONTROL => {
                        if self.answer(&listeners.control) {
                            return Ok(());
                        }
                    }
                    token => {
                        let index = (token - PROC) as usize;
                        self.note(|node| node.procs.died(&mut node.init, index));
                    }
                }
            }
            if look {
                self.note(|node| {
                    let watch = |index, fd: &OwnedFd| add(fd, PROC + index as u64);
                    node.procs.look(&mut node.init, watch)
                });
            }
            if let (Some(why), false) = (self.region.poison(), poison_said) {
                log::error!("node {} is poisoned: {why}", self.config.name);
                poison_said = true;
            }
        }
    }

    /// Does something that may fail without the node ending of it.
    fn note(&mut self, action: impl FnOnce(&mut Node) -> Result<()>) {
        if let Err(error) = action(self) {
            log::warn!("node {}: {error}", self.config.name);
        }
    }

    /// Serves all who wait to join; true: there was one.
    fn let_in(&mut self, listener: &OwnedFd) -> bool {
        let mut any = false;
        while let Some(result) =
            join::serve(listener, &self.config.name, &self.ports, &mut self.init)
        {
            any = true;
            match result {
                Ok(pid) => log::debug!("node {}: process {pid} joined", self.config.name),
                Err(error @ Error::Host { .. }) => {
                    // Out of descriptors, most likely: whoever waits is still there next time.
                    log::warn!("node {}: {error}", self.config.name);
                    std::thread::sleep(HOST_TROUBLE_TURN);
                    break;
                }
                Err(error) => log::warn!("node {}: {error}", self.config.name),
            }
        }
        any
    }

    /// Answers all requests that wait; true: one of them was `down`.
    fn answer(&mut self, listener: &UnixListener) -> bool {
        let mut down = false;
        while let Ok((stream, _)) = listener.accept() {
            let result = stream
                .set_read_timeout(Some(control::PATIENCE_SERVER))
                .and_then(|()| stream.set_write_timeout(Some(control::PATIENCE_SERVER)))
                .and_then(|()| control::read_line::<Request>(&stream))
                .and_then(|request| {
                    down |= request == Request::Down;
                    control::write_line(&stream, &self.reply(&request))
                });
            if let Err(error) = result {
                log::debug!("node {}: control: {error}", self.config.name);
            }
        }
        down
    }

    fn reply(&mut self, request: &Request) -> Reply {
        match request {
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Log { from } => match self.log(*from) {
                Ok(log) => Reply::Log(log),
                Err(error) => Reply::Error(error.to_string()),
            },
            Request::Down => Reply::Ok,
        }
    }

    fn status(&self) -> Status {
        let own = std::process::id() as i32;
        let procs = self.region.procs().filter(|entry| entry.pid > 0);
        Status {
            name: self.config.name.clone(),
            state: match self.region.state() {
                RING3_LOADED | RING3_BOOTING => State::Booting,
                RING3_UP => State::Up,
                RING3_DOWN => State::Down,
                _ => State::Poisoned,
            },
            poison: self.region.poison(),
            pid: own,
            uptime_ns: self.started.elapsed().as_nanos() as u64,
            version: self.region.version.clone(),
            image: self.region.image.clone(),
            join: self.runtime.join_path(&self.config.name),
            base: self.region.base(),
            mem: Memory {
                size: self.region.size(),
                resident: self.region.resident(),
            },
            ports: self.ports.iter().map(port_status).collect(),
            // The keeper's own tasks (captures) are not programs.
            procs: procs
                .filter(|entry| entry.pid != own)
                .map(|entry| Proc {
                    pid: entry.pid,
                    threads: entry.threads,
                    command: command_name(entry.pid),
                })
                .collect(),
        }
    }

    pub fn log(&mut self, from: u64) -> Result<Log> {
        let mut next = from;
        let mut text = Vec::new();
        let mut piece = vec![0; LOG_PIECE];
        while text.len() < LOG_MAX {
            let len = match self.init.log_read(&mut piece, &mut next) {
                Ok(0) => break,
                Ok(len) => len,
                Err(why) => {
                    return Err(match self.region.poison() {
                        Some(why) => Error::Poisoned { why },
                        None => Error::node("give its log")(why),
                    })
                }
            };
            text.extend_from_slice(&piece[..len.min(LOG_PIECE)]);
        }
        Ok(Log {
            text: String::from_utf8_lossy(&text).into_owned(),
            next,
        })
    }
}

impl Node {
    /// Takes the interfaces away in good order: peers lose their carrier now, captures see
    /// the end. A program that is stopped while it holds the vCPU would keep us waiting, so a
    /// helper ends the node after a while: then these calls fail like everybody's.
    fn remove_ports(&mut self) {
        if self.region.state() != RING3_UP {
            return;
        }
        let (done, is_done) = mpsc::channel::<()>();
        let region = self.region.clone();
        let helper = Driver::start("ring3-end", move || {
            if is_done.recv_timeout(ORDERLY_END) == Err(RecvTimeoutError::Timeout) {
                region.set_down();
            }
        });
        for port in self.ports.iter().rev() {
            if let Err(why) = self.init.port_del(port.index) {
                log::warn!("node {}: {}: {why}", self.config.name, port.ifname);
            }
        }
        drop(done);
        if let Ok(helper) = helper {
            helper.end();
        }
    }
}

/// The node's sockets.
#[derive(Debug)]
pub(crate) struct Listeners {
    join: OwnedFd,
    control: UnixListener,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.captures_stop.store(true, Ordering::Release);
        self.remove_ports();
        self.region.set_down();
        let mut ended = true;
        ended &= self.port_watch.take().is_none_or(PortWatch::end);
        ended &= self.procs_watch.take().is_none_or(ProcsWatch::end);
        for capture in self.captures.drain(..) {
            ended &= capture.end();
        }
        ended &= self.keep.take().is_none_or(Driver::end);
        self.ports.clear();
        if !ended {
            // A thread is still in there: better to keep the memory than to pull it away.
            std::mem::forget(self.guard.take());
            std::mem::forget(self.region.clone());
        }
        drop(self.folder.take());
    }
}

fn port_status(port: &Port) -> control::Port {
    control::Port {
        kind: port.spec.kind.kind().to_owned(),
        name: port.spec.kind.name().map(str::to_owned),
        ifname: port.ifname.clone(),
        ifindex: port.ifindex,
        addrs: port.addrs.iter().map(ToString::to_string).collect(),
        gw: port.gw.iter().map(ToString::to_string).collect(),
        mtu: port.spec.mtu,
        pcap: port.spec.pcap.clone(),
        made: port.made(),
        pid: port.pid(),
    }
}

/// A process's name; empty when it is gone.
fn command_name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map(|name| name.trim_end().to_owned())
        .unwrap_or_default()
}
