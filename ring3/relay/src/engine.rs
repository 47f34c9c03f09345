// SPDX-License-Identifier: GPL-2.0
//! The loop: events, new connections and flows, and their ends.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Instant;

use ring3_node::inside::RELAY_PORT;
use ring3_node::task::{Fd, Task};
use ring3_node::{Errno, Plan, Talk};
use rustix::net::{sockopt, AddressFamily, SocketFlags, SocketType};

use crate::error::{Error, Result};
use crate::feed::{Feed, News};
use crate::flow::Flow;
use crate::route::Routes;
use crate::slab::{Key, Side, Slab};
use crate::stream::{Next, Stream};
use crate::tuning::{BACKLOG, CHUNK, DATAGRAMS, FLOWS_MAX, SWEEP};

/// Data of the engine's own descriptors: generation 0.
const TALK: u64 = 0;
const LISTENERS: [u64; 2] = [2, 4];
const CATCHERS: [u64; 2] = [6, 8];

/// <linux/in6.h>; the libc crate has it not for all C libraries.
const IPV6_TRANSPARENT: i32 = 75;
const IPV6_RECVORIGDSTADDR: i32 = 74;
const IP_RECVORIGDSTADDR: i32 = 20;

/// A datagram's source and destination.
type Ends = (SocketAddr, SocketAddr);

#[derive(Debug)]
enum Entry {
    Stream(Stream),
    Flow(Flow),
}

#[derive(Debug)]
pub struct Engine {
    task: Task,
    feed: Feed,
    routes: Routes,
    entries: Slab<Entry>,
    flows: HashMap<Ends, Key>,
    /// Take all TCP connections (IPv4, IPv6), and all datagrams that no flow's socket takes.
    listeners: [Fd; 2],
    catchers: [Fd; 2],
    /// Who has more to do than one turn.
    again: VecDeque<(Key, Side)>,
    /// A catcher may have more.
    caught_short: bool,
    chunk: Vec<u8>,
    swept: Instant,
}

impl Engine {
    pub fn new(mut task: Task, talk: &Talk, plan: Plan) -> Result<Engine> {
        let feed = Feed::start(&mut task)?;
        feed.add_host(talk, TALK)
            .map_err(Error::host("watch the keeper"))?;
        let fail = || Error::node("take connections");
        let mut listeners = [0; 2];
        let mut catchers = [0; 2];
        for at in 0..2 {
            listeners[at] = socket_for_all(&mut task, at == 1, libc::SOCK_STREAM).map_err(fail())?;
            task.listen(listeners[at], BACKLOG).map_err(fail())?;
            catchers[at] = socket_for_all(&mut task, at == 1, libc::SOCK_DGRAM).map_err(fail())?;
            feed.add_node(&mut task, listeners[at], LISTENERS[at])
                .and_then(|()| feed.add_node(&mut task, catchers[at], CATCHERS[at]))
                .map_err(fail())?;
        }
        Ok(Engine {
            task,
            feed,
            routes: Routes::new(&plan),
            entries: Slab::new(),
            flows: HashMap::new(),
            listeners,
            catchers,
            again: VecDeque::new(),
            caught_short: false,
            chunk: vec![0; CHUNK],
            swept: Instant::now(),
        })
    }

    /// Until the keeper is gone.
    pub fn run(&mut self) -> Result<()> {
        let mut news = Vec::new();
        loop {
            let timeout = match (
                self.again.is_empty() && !self.caught_short,
                self.flows.is_empty(),
            ) {
                (false, _) => 0,
                (true, false) => SWEEP.as_millis() as i32,
                (true, true) => -1,
            };
            self.feed.wait(&mut self.task, timeout, &mut news)?;
            for News { data, events } in news.drain(..) {
                match data {
                    TALK if events & !(libc::EPOLLOUT as u32) == 0 => {}
                    TALK => return Ok(()),
                    _ if LISTENERS.contains(&data) => {
                        self.accept_all(self.listeners[usize::from(data == LISTENERS[1])]);
                    }
                    _ if CATCHERS.contains(&data) => {
                        self.catch_all(self.catchers[usize::from(data == CATCHERS[1])]);
                    }
                    _ => self.on_event(data, events),
                }
            }
            if std::mem::take(&mut self.caught_short) {
                for catcher in self.catchers {
                    self.catch_all(catcher);
                }
            }
            for _ in 0..self.again.len() {
                if let Some((key, side)) = self.again.pop_front() {
                    self.go_on(key, side);
                }
            }
            self.sweep();
        }
    }

    fn on_event(&mut self, data: u64, events: u32) {
        let (key, side) = Key::of(data);
        let failed = match self.entries.get_mut(key) {
            Some(Entry::Stream(stream)) => stream.on_event(&mut self.task, side, events).is_err(),
            Some(Entry::Flow(_)) => false,
            None => return,
        };
        match failed {
            true => self.remove(key, true),
            false => self.go_on(key, side),
        }
    }

    fn go_on(&mut self, key: Key, side: Side) {
        let next = match self.entries.get_mut(key) {
            Some(Entry::Stream(stream)) => stream.pump(&mut self.task, &mut self.chunk),
            Some(Entry::Flow(flow)) => flow.pump(&mut self.task, side, &mut self.chunk),
            None => return,
        };
        match next {
            Next::Wait => {}
            Next::Again => self.again.push_back((key, side)),
            Next::End => self.remove(key, false),
            Next::Reset => self.remove(key, true),
        }
    }

    fn remove(&mut self, key: Key, reset: bool) {
        match self.entries.take(key) {
            Some(Entry::Stream(stream)) if reset => stream.reset(&mut self.task),
            Some(Entry::Stream(stream)) => stream.end(&mut self.task),
            Some(Entry::Flow(flow)) => {
                self.flows.remove(&flow.ends);
                flow.end(&mut self.task);
            }
            None => {}
        }
    }

    /// Connections that programs have made.
    fn accept_all(&mut self, listener: Fd) {
        loop {
            match self.task.accept(listener) {
                Ok((fd, _)) => {
                    if let Err(why) = self.join(fd) {
                        log::debug!("a connection was not relayed: {why}");
                        let _ = self.task.reset_at_close(fd);
                        let _ = self.task.close(fd);
                    }
                }
                Err(Errno(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(_) => return,
            }
        }
    }

    /// Opens the host's half of a program's connection.
    fn join(&mut self, fd: Fd) -> Result<(), Errno> {
        let to = self.task.name(fd)?;
        let to = self
            .routes
            .lead(to)
            .map_err(|_| Errno(libc::ECONNREFUSED))?;
        let (host, is_connected) = connect(to, SocketType::STREAM)?;
        sockopt::set_tcp_nodelay(&host, true)?;
        self.task
            .set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        let key = self.entries.reserve().ok_or(Errno(libc::EMFILE))?;
        let added = self
            .feed
            .add_node(&mut self.task, fd, key.data(Side::Node))
            .and_then(|()| self.feed.add_host(&host, key.data(Side::Host)));
        if let Err(why) = added {
            self.entries.give_back(key);
            return Err(why);
        }
        let waits_for = (!is_connected).then_some(Side::Host);
        let stream = Stream::new(fd, host, waits_for);
        self.entries.put(key, Entry::Stream(stream));
        Ok(())
    }

    /// Datagrams that no flow's socket has taken.
    fn catch_all(&mut self, catcher: Fd) {
        for _ in 0..DATAGRAMS {
            let datagram = match self.task.recv_datagram(catcher, &mut self.chunk) {
                Ok(datagram) => datagram,
                Err(Errno(libc::EAGAIN)) => return,
                Err(_) => continue,
            };
            let ends = (datagram.from, datagram.to);
            let key = match self.flows.get(&ends) {
                Some(key) => Ok(*key),
                None => self.begin(ends),
            };
            match key.map(|key| self.entries.get_mut(key)) {
                Ok(Some(Entry::Flow(flow))) => flow.send_out(&self.chunk[..datagram.len]),
                Ok(_) => {}
                Err(why) => log::debug!("a datagram to {} was dropped: {why}", datagram.to),
            }
        }
        // Its edge is used up: the others first, then the rest.
        self.caught_short = true;
    }

    /// A new flow.
    fn begin(&mut self, ends: Ends) -> Result<Key, Errno> {
        if self.flows.len() >= FLOWS_MAX {
            return Err(Errno(libc::EMFILE));
        }
        let to = self
            .routes
            .lead(ends.1)
            .map_err(|_| Errno(libc::ECONNREFUSED))?;
        let (host, _) = connect(to, SocketType::DGRAM)?;
        let node = self.answerer(ends)?;
        let key = self.entries.reserve().ok_or(Errno(libc::EMFILE));
        let key = match key {
            Ok(key) => key,
            Err(why) => return self.task.close(node).and(Err(why)),
        };
        let added = self
            .feed
            .add_node(&mut self.task, node, key.data(Side::Node))
            .and_then(|()| self.feed.add_host(&host, key.data(Side::Host)));
        if let Err(why) = added {
            self.entries.give_back(key);
            return self.task.close(node).and(Err(why));
        }
        self.entries
            .put(key, Entry::Flow(Flow::new(node, host, ends)));
        self.flows.insert(ends, key);
        Ok(key)
    }

    /// The node's socket of a flow: speaks as its destination, to its source.
    fn answerer(&mut self, (from, to): Ends) -> Result<Fd, Errno> {
        let fd = transparent(&mut self.task, to.is_ipv6(), libc::SOCK_DGRAM)?;
        let done = self
            .task
            .bind(fd, to)
            .and_then(|()| self.task.connect(fd, from));
        match done {
            Ok(()) => Ok(fd),
            Err(why) => self.task.close(fd).and(Err(why)),
        }
    }

    /// Ends flows that have been idle for long.
    fn sweep(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        let idle = self.entries.iter().filter_map(|(key, entry)| match entry {
            Entry::Flow(flow) if flow.is_idle(now) => Some(key),
            _ => None,
        });
        for key in idle.collect::<Vec<_>>() {
            self.remove(key, false);
        }
    }
}

/// A socket of the node that speaks in the name of any address.
fn transparent(task: &mut Task, is_v6: bool, kind: i32) -> Result<Fd, Errno> {
    let (domain, level, option) = match is_v6 {
        false => (libc::AF_INET, libc::SOL_IP, libc::IP_TRANSPARENT),
        true => (libc::AF_INET6, libc::SOL_IPV6, IPV6_TRANSPARENT),
    };
    let fd = task.socket(domain, kind, 0)?;
    let set = |task: &mut Task| {
        task.set_option(fd, level, option, 1)?;
        task.set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        match is_v6 {
            true => task.set_option(fd, libc::SOL_IPV6, libc::IPV6_V6ONLY, 1),
            false => Ok(()),
        }
    };
    match set(task) {
        Ok(()) => Ok(fd),
        Err(why) => task.close(fd).and(Err(why)),
    }
}

/// The socket that nft.rs gives all connections, or datagrams, of a family to.
fn socket_for_all(task: &mut Task, is_v6: bool, kind: i32) -> Result<Fd, Errno> {
    let fd = transparent(task, is_v6, kind)?;
    if kind == libc::SOCK_DGRAM {
        let (level, option) = match is_v6 {
            false => (libc::SOL_IP, IP_RECVORIGDSTADDR),
            true => (libc::SOL_IPV6, IPV6_RECVORIGDSTADDR),
        };
        task.set_option(fd, level, option, 1)?;
    }
    let any: SocketAddr = match is_v6 {
        false => (Ipv4Addr::UNSPECIFIED, RELAY_PORT).into(),
        true => (Ipv6Addr::UNSPECIFIED, RELAY_PORT).into(),
    };
    task.bind(fd, any)?;
    Ok(fd)
}

/// A socket of the host; whether it is connected already.
fn connect(to: SocketAddr, kind: SocketType) -> Result<(OwnedFd, bool), Errno> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) => Ok((socket, true)),
        Err(rustix::io::Errno::INPROGRESS) => Ok((socket, false)),
        Err(why) => Err(why.into()),
    }
}
