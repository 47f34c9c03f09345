// SPDX-License-Identifier: GPL-2.0
//! How programs' connections and flows begin: a SYN that is held, a connection that is accepted, a datagram that no
//! flow's socket has taken.

use std::net::SocketAddr;
use std::time::Instant;

use ring3_node::inside::Mark;
use ring3_node::task::Fd;
use ring3_node::Errno;
use rustix::net::SocketType;

use crate::engine::{Accepts, Caller, Engine, Entry, Pair};
use crate::flow::{hear_errors, Flow, HostEnd, Out};
use crate::frames::Frames;
use crate::hold::{self, Queue, Verdict};
use crate::icmp::{Echo, Ping, Problem};
use crate::slab::{Key, Side};
use crate::sockets::{ask_for_life, connect, transparent};
use crate::stream::Stream;
use crate::tuning::{ACCEPTS, DATAGRAMS, PINGS_MAX};

impl Engine {
    /// SYNs that wait for a verdict.
    pub fn take_held(&mut self) {
        loop {
            let len = match self.task.recv(self.hold, &mut self.chunk) {
                Ok(len) => len,
                // Some did not fit and were accepted as they are.
                Err(Errno(libc::ENOBUFS | libc::EINTR)) => continue,
                Err(_) => return,
            };
            match hold::parse(&self.chunk[..len]) {
                Ok(Some(held)) => {
                    let verdict = match held.ends {
                        Some(ends) => self.call(ends, held.id),
                        None => Some(Verdict::Accept),
                    };
                    self.decide(held.id, verdict);
                }
                Ok(None) => {}
                Err(why) => log::warn!("a gateway's queue of SYNs: {why}"),
            }
        }
    }

    fn decide(&mut self, id: u32, verdict: Option<Verdict>) {
        let Some(verdict) = verdict else { return };
        if let Err(why) = hold::decide(&mut self.task, (self.hold, Queue::Syns), id, verdict) {
            log::debug!("a SYN's verdict was refused: {why}");
        }
    }

    /// Begins the host's connection for a SYN; `None`: the verdict comes later.
    fn call(&mut self, ends: Pair, id: u32) -> Option<Verdict> {
        if let Some(Entry::Caller(caller)) = self
            .callers
            .get(&ends)
            .and_then(|key| self.entries.get_mut(*key))
        {
            // The program's kernel asks again; the first SYN still waits, or has been answered.
            return Some(match caller.held {
                Some(_) => Verdict::Drop,
                None => Verdict::Accept,
            });
        }
        let to = match self.routes.lead(ends.1) {
            Ok(to) => to,
            Err(why) => {
                self.refusals.say("tcp to", ends.1, why);
                return Some(Verdict::Refuse(Mark::Prohibited));
            }
        };
        match self.begin_call(ends, to, id) {
            Ok(()) => None,
            Err(why) => Some(hold::verdict_of(why)),
        }
    }

    fn begin_call(&mut self, ends: Pair, to: SocketAddr, id: u32) -> Result<(), Errno> {
        let (host, _) = connect(to, SocketType::STREAM)?;
        let key = self.entries.reserve().ok_or(Errno(libc::EMFILE))?;
        if let Err(why) = self.feed.add_host(&host, key.data(Side::Host)) {
            self.entries.give_back(key);
            return Err(why);
        }
        let caller = Caller {
            host,
            ends,
            held: Some(id),
            since: Instant::now(),
        };
        self.entries.put(key, Entry::Caller(caller));
        self.callers.insert(ends, key);
        Ok(())
    }

    /// The host has answered a caller's connect().
    pub fn on_answer(&mut self, key: Key, outcome: Result<(), Errno>) {
        let Some(Entry::Caller(caller)) = self.entries.get_mut(key) else {
            return;
        };
        let Some(id) = caller.held.take() else { return };
        caller.since = Instant::now();
        let verdict = match outcome {
            Ok(()) => Verdict::Accept,
            Err(why) => {
                self.remove(key, false);
                hold::verdict_of(why)
            }
        };
        self.decide(id, Some(verdict));
    }

    /// Connections that programs have made, of one listener.
    pub fn accept_some(&mut self, at: usize) {
        self.accepts[at] = Accepts::More;
        for _ in 0..ACCEPTS {
            match self.task.accept(self.listeners[at]) {
                Ok((fd, from)) => {
                    if let Err(why) = self.join(fd, from) {
                        log::debug!("a connection was not relayed: {why}");
                        let _ = self.task.reset_at_close(fd);
                        let _ = self.task.close(fd);
                    }
                }
                Err(Errno(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(Errno(libc::EAGAIN)) => {
                    self.accepts[at] = Accepts::None;
                    return;
                }
                Err(why) => {
                    log::debug!("no connection was accepted: {why}");
                    self.accepts[at] = Accepts::Later;
                    return;
                }
            }
        }
    }

    /// Joins a program's connection with the host's half, which is there already, unless the SYN was not held.
    fn join(&mut self, fd: Fd, from: SocketAddr) -> Result<(), Errno> {
        let to = self.task.name(fd)?;
        let asks_names = self.routes.are_names_asked(to);
        let frames = asks_names.then(|| Box::new(Frames::new((from, to))));
        self.task
            .set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        if let Some(key) = self.callers.remove(&(from, to)) {
            let Some(Entry::Caller(caller)) = self.entries.take_out(key) else {
                return Err(Errno(libc::ECONNRESET));
            };
            // Without it the connection is as good as ever.
            let _ = ask_for_life(&caller.host);
            let mut stream = Stream::new(fd, caller.host, None).with_ready_host();
            stream.frames = frames;
            let added = self.feed.add_node(&mut self.task, fd, key.data(Side::Node));
            self.entries.put(key, Entry::Stream(stream));
            if added.is_err() {
                self.remove(key, true);
            }
            return Ok(());
        }
        let to = self.routes.lead(to).map_err(|why| {
            self.refusals.say("tcp to", to, why);
            Errno(libc::ECONNREFUSED)
        })?;
        let (host, is_connected) = connect(to, SocketType::STREAM)?;
        ask_for_life(&host)?;
        let key = self.entries.reserve().ok_or(Errno(libc::EMFILE))?;
        if let Err(why) = self.watch(key, fd, &host) {
            self.entries.give_back(key);
            return Err(why);
        }
        let waits_for = (!is_connected).then_some(Side::Host);
        let mut stream = Stream::new(fd, host, waits_for);
        stream.frames = frames;
        self.entries.put(key, Entry::Stream(stream));
        Ok(())
    }

    /// Datagrams that no flow's socket has taken.
    pub fn catch_all(&mut self, catcher: Fd) {
        for _ in 0..DATAGRAMS {
            let datagram = match self.task.recv_datagram(catcher, &mut self.chunk) {
                Ok(datagram) => datagram,
                Err(Errno(libc::EAGAIN)) => return,
                Err(_) => continue,
            };
            let ends = (datagram.from, datagram.to);
            let key = match self.flows.get(&ends) {
                Some(key) => Ok(*key),
                None => self.begin_flow(ends),
            };
            match key.map(|key| self.entries.get_mut(key)) {
                Ok(Some(Entry::Flow(flow))) => {
                    let mut out = Out {
                        task: &mut self.task,
                        icmp: Some(&self.icmp),
                        names: &mut self.routes.names,
                    };
                    flow.say_for_program(&mut out, &self.chunk[..datagram.len]);
                    self.say_names();
                }
                Ok(_) => {}
                Err(why) => {
                    log::debug!("a datagram to {} was dropped: {why}", datagram.to);
                    if let Some(problem) = Problem::of(why) {
                        self.icmp.tell(&mut self.task, ends, problem);
                    }
                }
            }
        }
        // Its edge is used up: the others first, then the rest.
        self.caught_short = true;
    }

    /// Echo requests that wait for a verdict: what goes out by another socket, the gateway's kernel drops.
    pub fn take_echoes(&mut self) {
        let mut packet = std::mem::take(&mut self.chunk);
        loop {
            let len = match self.task.recv(self.echoes, &mut packet) {
                Ok(len) => len,
                Err(Errno(libc::ENOBUFS | libc::EINTR)) => continue,
                Err(_) => break,
            };
            match hold::parse_packet(&packet[..len]) {
                Ok(Some((id, packet))) => {
                    let verdict = match Echo::parse(packet) {
                        Some(echo) => self.echo(&echo),
                        // No echo request that is understood: the rules refuse it.
                        None => Verdict::Accept,
                    };
                    let queue = (self.echoes, Queue::Echoes);
                    if let Err(why) = hold::decide(&mut self.task, queue, id, verdict) {
                        log::debug!("an echo request's verdict was refused: {why}");
                    }
                }
                Ok(None) => {}
                Err(why) => log::warn!("a gateway's queue of echo requests: {why}"),
            }
        }
        self.chunk = packet;
    }

    fn echo(&mut self, echo: &Echo<'_>) -> Verdict {
        match self.routes.lead_echo(echo.to) {
            Ok(Some(_)) => {}
            Ok(None) => {
                self.icmp.answer(&mut self.task, echo);
                return Verdict::Drop;
            }
            Err(why) => {
                self.refusals.say("an echo request to", echo.to, why);
                return Verdict::Refuse(Mark::Prohibited);
            }
        }
        let key = match self.pings.get(&(echo.from, echo.to, echo.ident)) {
            Some(key) => Ok(*key),
            None => self.begin_ping(echo),
        };
        match key.map(|key| self.entries.get_mut(key)) {
            Ok(Some(Entry::Ping(ping))) => {
                ping.send(&mut self.task, &self.icmp, echo);
                Verdict::Drop
            }
            Ok(_) => Verdict::Drop,
            Err(why) => {
                log::debug!("an echo request to {} was not sent: {why}", echo.to);
                hold::verdict_of(why)
            }
        }
    }

    fn begin_ping(&mut self, echo: &Echo<'_>) -> Result<Key, Errno> {
        if self.pings.len() >= PINGS_MAX {
            return Err(Errno(libc::EACCES));
        }
        let ping = Ping::new(echo)?;
        let key = self.entries.reserve().ok_or(Errno(libc::EMFILE))?;
        if let Err(why) = self.feed.add_host(&ping.host, key.data(Side::Host)) {
            self.entries.give_back(key);
            return Err(why);
        }
        self.pings.insert(ping.key(), key);
        self.entries.put(key, Entry::Ping(ping));
        Ok(key)
    }

    fn begin_flow(&mut self, ends: Pair) -> Result<Key, Errno> {
        let to = self.routes.lead(ends.1).map_err(|why| {
            self.refusals.say("udp to", ends.1, why);
            Errno(libc::EACCES)
        })?;
        self.make_room(false);
        let (host, _) = connect(to, SocketType::DGRAM)?;
        hear_errors(&host, to.is_ipv6())?;
        let node = self.speaker(libc::SOCK_DGRAM, ends.1, ends.0)?;
        let key = self.new_flow(node, HostEnd::Own(host), ends)?;
        let asks_names = self.routes.are_names_asked(ends.1);
        if let (true, Some(Entry::Flow(flow))) = (asks_names, self.entries.get_mut(key)) {
            flow.asks_names = true;
        }
        self.flows.insert(ends, key);
        Ok(key)
    }

    /// A flow of these two halves. Closes the node's where that fails.
    pub fn new_flow(&mut self, node: Fd, host: HostEnd, ends: Pair) -> Result<Key, Errno> {
        let Some(key) = self.entries.reserve() else {
            return self.task.close(node).and(Err(Errno(libc::EMFILE)));
        };
        let added = match &host {
            HostEnd::Own(socket) => self.watch(key, node, socket),
            HostEnd::Shared(..) => self
                .feed
                .add_node(&mut self.task, node, key.data(Side::Node)),
        };
        if let Err(why) = added {
            self.entries.give_back(key);
            return self.task.close(node).and(Err(why));
        }
        self.entries
            .put(key, Entry::Flow(Flow::new(node, host, ends)));
        Ok(key)
    }

    /// A socket of the node that has the name `name` and is connected to `to`, or about to be.
    pub fn speaker(&mut self, kind: i32, name: SocketAddr, to: SocketAddr) -> Result<Fd, Errno> {
        let fd = transparent(&mut self.task, to.is_ipv6(), kind)?;
        let done = self
            .task
            .bind(fd, name)
            .and_then(|()| match self.task.connect(fd, to) {
                Ok(()) | Err(Errno(libc::EINPROGRESS)) => Ok(()),
                Err(why) => Err(why),
            });
        match done {
            Ok(()) => Ok(fd),
            Err(why) => self.task.close(fd).and(Err(why)),
        }
    }
}
