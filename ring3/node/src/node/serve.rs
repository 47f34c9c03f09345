// SPDX-License-Identifier: GPL-2.0
//! The main loop of a node's thread: waits in one epoll set and serves. node.rs lists for what.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::sync::{mpsc, Arc};
use std::time::Duration;

use rustix::event::epoll;
use rustix::time::Timespec;

use super::answer::{Asks, ControlServer, Facts, Question};
use super::live::SWEEP_TURN;
use super::Node;
use crate::control::{Counters, Log, Reply};
use crate::drivers::was_rung;
use crate::error::{Errno, Error, Result};
use crate::join::{self, Caller};
use crate::procs::Deaths;

/// What LOG_READ fills at a time, and what one answer holds at most.
const LOG_PIECE: usize = 64 << 10;
const LOG_MAX: usize = 4 << 20;

/// How often to retry what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

/// Tokens of the epoll set.
const STOP: u64 = 0;
const OVER: u64 = 1;
const JOIN: u64 = 2;
const ASK: u64 = 3;
const DEATH: u64 = 4;
const TICKETS: u64 = 5;
const CALLER: u64 = 6;
const GUEST: u64 = 7;

/// If there are more, the one that has waited longest without a request is dropped.
const CALLERS_MAX: usize = 64;

/// The node's sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    join: Option<OwnedFd>,
    asks: Option<Asks>,
    /// Ends with this value.
    _control: Option<ControlServer>,
}

/// Programs that this process has started on its confined node; `bell` is rung for each.
#[derive(Debug)]
pub(crate) struct Guests {
    pub queue: mpsc::Receiver<Caller>,
    pub bell: Arc<OwnedFd>,
}

impl Node {
    /// Opens the sockets: from here on programs may join. `down` rings `stop`.
    pub fn listen(&self, stop: &Arc<OwnedFd>) -> Result<Sockets> {
        self.publish_ports();
        let name = &self.config.name;
        let Some(runtime) = &self.runtime else {
            return Ok(Sockets {
                join: None,
                asks: None,
                _control: None,
            });
        };
        let (control, asks) = ControlServer::start(
            &runtime.control_path(name),
            Facts {
                name: name.clone(),
                folder: runtime.clone(),
                region: self.region.clone(),
                ports: self.port_statuses.clone(),
                join: runtime.join_path(name),
                started: self.started,
                grace: self.config.grace,
                leaving: self.leaving.clone(),
            },
            stop,
        )?;
        Ok(Sockets {
            join: Some(join::listen(&runtime.join_path(name))?),
            asks: Some(asks),
            _control: Some(control),
        })
    }

    /// Serves until `stop` is rung. Rings `failed` when the node is poisoned and its programs are gone.
    pub fn serve(
        &mut self,
        sockets: &Sockets,
        stop: &OwnedFd,
        failed: &Arc<OwnedFd>,
    ) -> Result<()> {
        let fail = || Error::host("wait for a node's events");
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail())?;
        let add = |fd: &dyn std::os::fd::AsFd, token| {
            let data = epoll::EventData::new_u64(token);
            epoll::add(&set, fd.as_fd(), data, epoll::EventFlags::IN).map_err(fail())
        };
        add(stop, STOP)?;
        add(&self.over, OVER)?;
        add(&self.graves.bell, DEATH)?;
        sockets.join.iter().try_for_each(|join| add(join, JOIN))?;
        let asks = sockets.asks.as_ref();
        asks.iter().try_for_each(|asks| add(&asks.bell, ASK))?;
        let guests = self.guests.take();
        let doors = guests.iter();
        doors.into_iter().try_for_each(|it| add(&it.bell, GUEST))?;
        add(self.tickets.events(), TICKETS)?;
        let mut poison_said = false;
        let mut callers: Vec<Caller> = Vec::new();
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            // The first has waited longest.
            let first = callers.first().map(Caller::time_left);
            let sweep = self.config.switch.map(|_| SWEEP_TURN);
            let timeout = first.into_iter().chain(sweep).min();
            let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&set, spare, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(fail()(why)),
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(()),
                    OVER => drop(was_rung(&self.over)),
                    JOIN => sockets
                        .join
                        .iter()
                        .for_each(|join| self.take_callers(join, &mut callers, &set)),
                    ASK => asks.iter().for_each(|asks| self.answer(asks)),
                    GUEST => guests
                        .iter()
                        .for_each(|it| self.take_guests(it, &mut callers, &set)),
                    // Handled below, with those whose time is over.
                    CALLER => {}
                    TICKETS => self.note(|node| node.tickets.look(&mut node.init)),
                    _ => self.note(|node| node.graves.reap(&mut node.init)),
                }
            }
            callers.retain(|caller| !self.let_in(caller));
            if self.config.switch.is_some() && self.region.poison().is_none() && self.sweep()? {
                return Ok(());
            }
            if let (Some(why), false) = (self.region.poison(), poison_said) {
                log::error!("node {} is poisoned: {why}", self.config.name);
                poison_said = true;
                self.note(|node| node.end_programs(failed.clone()));
            }
        }
    }

    /// Does something whose failure must not end the node.
    fn note(&mut self, action: impl FnOnce(&mut Node) -> Result<()>) {
        if let Err(error) = action(self) {
            log::warn!("node {}: {error}", self.config.name);
        }
    }

    /// Serves the programs that this process has started.
    fn take_guests(
        &mut self,
        guests: &Guests,
        callers: &mut Vec<Caller>,
        set: &impl std::os::fd::AsFd,
    ) {
        while was_rung(&guests.bell) {
            while let Ok(caller) = guests.queue.try_recv() {
                self.take_caller(caller, callers, set);
            }
        }
    }

    /// Serves all peers that wait to join. One whose request has not arrived is put with the other
    /// `callers`, so that the others need not wait for it.
    fn take_callers(
        &mut self,
        listener: &OwnedFd,
        callers: &mut Vec<Caller>,
        set: &impl std::os::fd::AsFd,
    ) {
        while let Some(result) = join::accept(listener) {
            let caller = match result {
                Ok(caller) => caller,
                Err(error) => {
                    // Out of descriptors, most likely: the waiting peer is still there next time.
                    log::warn!("node {}: {error}", self.config.name);
                    std::thread::sleep(HOST_TROUBLE_TURN);
                    return;
                }
            };
            self.take_caller(caller, callers, set);
        }
    }

    /// Serves it now, or when its request has arrived.
    fn take_caller(
        &mut self,
        caller: Caller,
        callers: &mut Vec<Caller>,
        set: &impl std::os::fd::AsFd,
    ) {
        if self.let_in(&caller) {
            return;
        }
        if callers.len() == CALLERS_MAX {
            callers.remove(0);
        }
        let data = epoll::EventData::new_u64(CALLER);
        match epoll::add(set, &caller, data, epoll::EventFlags::IN) {
            Ok(()) => callers.push(caller),
            Err(why) => log::warn!("node {}: {why}", self.config.name),
        }
    }

    /// Serves a peer that wants to join; false: its request has not arrived.
    fn let_in(&mut self, caller: &Caller) -> bool {
        let served = join::serve(
            caller,
            &self.config.name,
            &self.ports,
            &self.spares,
            self.config.switch.is_some(),
            self.tickets.for_programs(),
            &mut self.init,
        );
        match served {
            None => return false,
            Some(Ok(pid)) => {
                log::debug!("node {}: process {pid} joined", self.config.name);
                self.deaths.iter().for_each(Deaths::look);
            }
            Some(Err(error)) => log::warn!("node {}: {error}", self.config.name),
        }
        true
    }

    /// Answers requests that need the kernel.
    fn answer(&mut self, asks: &Asks) {
        while was_rung(&asks.bell) {
            while let Ok(ask) = asks.queue.try_recv() {
                let reply = match ask.question {
                    Question::Log(from) => self.log(from).map(Reply::Log),
                    Question::Counters => self.counters().map(Box::new).map(Reply::Counters),
                    Question::Plug(link) => self.plug(&link).map(Box::new).map(Reply::Port),
                    Question::PortAdd(spec) => self.port_add(&spec).map(Box::new).map(Reply::Port),
                    Question::Know(name, addresses) => {
                        self.know(&name, &addresses).map(|()| Reply::Known)
                    }
                    Question::Capture(ifname, path, filter) => {
                        let begun = self.capture(ifname, path, filter);
                        begun.map(|()| Reply::Captures)
                    }
                    Question::PortDel(name) => self.port_del(&name).map(Box::new).map(Reply::Port),
                };
                let reply = reply.unwrap_or_else(|error| Reply::Error(error.to_string()));
                // The asking thread may have ended.
                let _ = ask.reply.send(reply);
            }
        }
    }

    /// The kernel log from record `from` on, as much as one answer holds.
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

    /// The kernel's counters of its first network namespace.
    fn counters(&mut self) -> Result<Counters> {
        Ok(Counters {
            dev: self.proc_net(c"/proc/net/dev")?,
            snmp: self.proc_net(c"/proc/net/snmp")?,
            snmp6: self.proc_net(c"/proc/net/snmp6")?,
            netstat: self.proc_net(c"/proc/net/netstat")?,
            sockstat: self.proc_net(c"/proc/net/sockstat")?,
            sockstat6: self.proc_net(c"/proc/net/sockstat6")?,
        })
    }

    /// The text of a file of the node; empty if there is none (a node without IPv6).
    fn proc_net(&mut self, path: &CStr) -> Result<String> {
        let poison = self.region.poison();
        let fail = |why| match &poison {
            Some(why) => Error::Poisoned { why: why.clone() },
            None => Error::node(format!("read {}", path.to_string_lossy()))(why),
        };
        let fd = match self.init.open(path, libc::O_RDONLY | libc::O_CLOEXEC) {
            Err(Errno(libc::ENOENT)) => return Ok(String::new()),
            opened => opened.map_err(fail)?,
        };
        let mut text = Vec::new();
        let mut piece = vec![0; LOG_PIECE];
        let result = loop {
            match self.init.read(fd, &mut piece) {
                Ok(0) => break Ok(()),
                Ok(len) if text.len() < LOG_MAX => {
                    text.extend_from_slice(&piece[..len.min(LOG_PIECE)]);
                }
                Ok(_) => break Err(Errno(libc::EFBIG)),
                Err(why) => break Err(why),
            }
        };
        let closed = self.init.close(fd);
        result.and(closed).map_err(fail)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
