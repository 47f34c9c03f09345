// SPDX-License-Identifier: GPL-2.0
//! What a node's thread does all its life: wait in one epoll set and serve. node.rs says what
//! for.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use ring3_abi::{RING3_BOOTING, RING3_DOWN, RING3_LOADED, RING3_UP};
use rustix::event::epoll;

use crate::control::{self, Log, Memory, Proc, Reply, Request, State, Status};
use crate::drivers::was_rung;
use crate::error::{Error, Result};
use crate::join;
use crate::node::Node;
use crate::ports::Port;

/// What LOG_READ fills at a time, and what one answer holds at most.
const LOG_PIECE: usize = 64 << 10;
const LOG_MAX: usize = 4 << 20;

/// How often to try again what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

/// Tokens of the epoll set; a process's is PROC plus its index in procs[].
const STOP: u64 = 0;
const PROCS: u64 = 1;
const JOIN: u64 = 2;
const CONTROL: u64 = 3;
const PROC: u64 = 1 << 32;

/// The node's sockets.
#[derive(Debug)]
pub(crate) struct Listeners {
    join: OwnedFd,
    control: UnixListener,
}

impl Node {
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
