// SPDX-License-Identifier: GPL-2.0
//! The loop: who an event is for, and the ends of connections and flows. How they begin is in begin.rs and publish.rs.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

use ring3_node::task::{Fd, Task};
use ring3_node::{Errno, Plan, Talk};
use rustix::net::sockopt;

use crate::door::{Door, Ends};
use crate::error::{Error, Result};
use crate::feed::{Feed, News};
use crate::flow::{Flow, Out};
use crate::guests::Guests;
use crate::hold::{self, Queue};
use crate::icmp::{Icmp, Ping, PingKey};
use crate::refusals::Refusals;
use crate::route::Routes;
use crate::slab::{Key, Side, Slab};
use crate::sockets::socket_for_all;
use crate::stream::{Next, Stream};
use crate::tuning::{
    BACKLOG, CHUNK, FLOWS_MAX, FLOWS_SHARE, GUESTS_MAX, GUESTS_OF_ONE, PING_IDLE, SWEEP, UNCLAIMED,
};

/// Data of the engine's own descriptors: generation 0.
const TALK: u64 = 0;
const LISTENERS: [u64; 2] = [2, 4];
const CATCHERS: [u64; 2] = [6, 8];
const HOLD: u64 = 10;
const ECHOES: u64 = 12;

/// Who began it, and whither, as the one who began it sees them.
pub type Pair = (SocketAddr, SocketAddr);

/// A held SYN's connection on the host.
#[derive(Debug)]
pub struct Caller {
    pub host: OwnedFd,
    pub ends: Pair,
    /// The SYN, until the host has answered.
    pub held: Option<u32>,
    pub since: Instant,
}

#[derive(Debug)]
pub enum Entry {
    Stream(Stream),
    Flow(Flow),
    Caller(Caller),
    Ping(Ping),
    Door(Rc<Door>),
}

/// What a listener of the node's may have, whose edge is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    None,
    /// Others have their turn first.
    More,
    /// It could not be accepted, for want of a descriptor most likely: the next sweep looks again.
    Later,
}

#[derive(Debug)]
pub struct Engine {
    pub task: Task,
    pub feed: Feed,
    pub routes: Routes,
    pub ends: Ends,
    pub refusals: Refusals,
    pub icmp: Icmp,
    pub pings: HashMap<PingKey, Key>,
    /// Echo requests come here.
    pub echoes: Fd,
    pub entries: Slab<Entry>,
    /// Programs' flows, and those of clients of published ports.
    pub flows: HashMap<Pair, Key>,
    pub guests: HashMap<Pair, Key>,
    /// Connections from outside.
    pub streams: Guests,
    /// By what the SYN says.
    pub callers: HashMap<Pair, Key>,
    /// Take all TCP connections (IPv4, IPv6), and all datagrams that no flow's socket takes.
    pub listeners: [Fd; 2],
    pub accepts: [Accepts; 2],
    catchers: [Fd; 2],
    /// SYNs come here first.
    pub hold: Fd,
    /// Who has more to do than one turn.
    again: VecDeque<(Key, Side)>,
    /// What `again` has.
    queued: HashSet<(Key, Side)>,
    /// A catcher may have more.
    pub caught_short: bool,
    pub chunk: Vec<u8>,
    swept: Instant,
}

impl Engine {
    pub fn new(
        mut task: Task,
        talk: &Talk,
        plan: &Plan,
        doors: Vec<Door>,
        log: Option<File>,
    ) -> Result<Engine> {
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
        let hold = hold::open(&mut task, Queue::Syns).map_err(fail())?;
        feed.add_node(&mut task, hold, HOLD).map_err(fail())?;
        let echoes = hold::open(&mut task, Queue::Echoes).map_err(fail())?;
        feed.add_node(&mut task, echoes, ECHOES).map_err(fail())?;
        let icmp = Icmp::open(&mut task).map_err(fail())?;
        let mut engine = Engine {
            task,
            feed,
            routes: Routes::new(plan).map_err(|why| Error::Rules { why })?,
            ends: Ends::new(plan),
            refusals: Refusals::new(&plan.node, log),
            icmp,
            pings: HashMap::new(),
            echoes,
            entries: Slab::new(),
            flows: HashMap::new(),
            guests: HashMap::new(),
            streams: Guests::new(GUESTS_MAX, GUESTS_OF_ONE),
            callers: HashMap::new(),
            listeners,
            accepts: [Accepts::None; 2],
            catchers,
            hold,
            again: VecDeque::new(),
            queued: HashSet::new(),
            caught_short: false,
            chunk: vec![0; CHUNK],
            swept: Instant::now(),
        };
        for door in doors {
            engine
                .add_door(door)
                .map_err(Error::host("publish ports"))?;
        }
        Ok(engine)
    }

    fn add_door(&mut self, door: Door) -> Result<(), Errno> {
        let key = self.entries.reserve().ok_or(Errno(libc::EMFILE))?;
        self.feed.add_host(&door.socket, key.data(Side::Host))?;
        self.entries.put(key, Entry::Door(Rc::new(door)));
        Ok(())
    }

    /// Until the keeper is gone.
    pub fn run(&mut self, talk: &Talk) -> Result<()> {
        let mut news = Vec::new();
        loop {
            let is_busy = !self.again.is_empty()
                || self.caught_short
                || self.accepts.contains(&Accepts::More);
            let is_idle = self.entries.is_empty() && !self.accepts.contains(&Accepts::Later);
            let timeout = match (is_busy, is_idle) {
                (true, _) => 0,
                (false, false) => SWEEP.as_millis() as i32,
                (false, true) => -1,
            };
            self.feed.wait(&mut self.task, timeout, &mut news)?;
            for News { data, events } in news.drain(..) {
                match data {
                    TALK => {
                        let said = talk.news();
                        if said.is_gone {
                            return Ok(());
                        }
                        self.routes.resolver = said.resolver.unwrap_or(self.routes.resolver);
                    }
                    HOLD => self.take_held(),
                    ECHOES => self.take_echoes(),
                    _ if LISTENERS.contains(&data) => {
                        self.accept_some(usize::from(data == LISTENERS[1]));
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
            for at in 0..self.listeners.len() {
                if self.accepts[at] == Accepts::More {
                    self.accept_some(at);
                }
            }
            for _ in 0..self.again.len() {
                if let Some((key, side)) = self.again.pop_front() {
                    self.queued.remove(&(key, side));
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
            Some(Entry::Caller(caller)) => {
                if caller.held.is_some() {
                    let outcome = sockopt::socket_error(&caller.host).and_then(|error| error);
                    self.on_answer(key, outcome.map_err(Errno::from));
                }
                return;
            }
            Some(Entry::Flow(_) | Entry::Ping(_) | Entry::Door(_)) => false,
            None => return,
        };
        match failed {
            true => self.remove(key, true),
            false => self.go_on(key, side),
        }
    }

    pub fn go_on(&mut self, key: Key, side: Side) {
        let next = match self.entries.get_mut(key) {
            Some(Entry::Stream(stream)) => {
                let names = &mut self.routes.names;
                stream.pump(&mut self.task, &mut self.chunk, true, names)
            }
            Some(Entry::Flow(flow)) => {
                let mut out = Out {
                    task: &mut self.task,
                    icmp: Some(&self.icmp),
                    names: &mut self.routes.names,
                };
                flow.pump(&mut out, side, &mut self.chunk)
            }
            Some(Entry::Ping(ping)) => ping.pump(&mut self.task, &self.icmp, &mut self.chunk),
            Some(Entry::Door(door)) => {
                let door = door.clone();
                self.take_clients(&door)
            }
            Some(Entry::Caller(_)) | None => return,
        };
        self.say_names();
        match next {
            Next::Wait => {}
            // Once: an entry that is always ready has no more turns than others.
            Next::Again if self.queued.insert((key, side)) => self.again.push_back((key, side)),
            Next::Again => {}
            Next::End => self.remove(key, false),
            Next::Reset => self.remove(key, true),
        }
    }

    pub fn remove(&mut self, key: Key, reset: bool) {
        match self.entries.take(key) {
            Some(Entry::Stream(stream)) => {
                if let Some(guest) = stream.guest {
                    self.streams.leave(guest);
                }
                match reset {
                    true => stream.reset(&mut self.task),
                    false => stream.end(&mut self.task),
                }
            }
            Some(Entry::Flow(flow)) => {
                for flows in [&mut self.flows, &mut self.guests] {
                    if flows.get(&flow.ends) == Some(&key) {
                        flows.remove(&flow.ends);
                    }
                }
                flow.end(&mut self.task);
            }
            Some(Entry::Caller(caller)) => {
                self.callers.remove(&caller.ends);
            }
            Some(Entry::Ping(ping)) => {
                self.pings.remove(&ping.key());
            }
            Some(Entry::Door(_)) | None => {}
        }
    }

    /// Names that programs asked for in vain, and addresses that names do not open.
    pub fn say_names(&mut self) {
        for (what, whom, why) in self.routes.names.refused.drain(..) {
            self.refusals.say(what, whom, why);
        }
    }

    /// Both halves into the sets. The caller puts the entry in, or gives the key back.
    pub fn watch(&mut self, key: Key, node: Fd, host: &OwnedFd) -> Result<(), Errno> {
        self.feed
            .add_node(&mut self.task, node, key.data(Side::Node))?;
        self.feed.add_host(host, key.data(Side::Host))
    }

    /// Ends flows that have been idle for long, and connections that nobody came for. Looks at doors
    /// that had to wait for a descriptor.
    fn sweep(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        let (mut over, mut doors) = (Vec::new(), Vec::new());
        for (key, entry) in self.entries.iter() {
            match entry {
                Entry::Flow(flow) if flow.is_idle(now) => over.push(key),
                Entry::Ping(ping) if now.duration_since(ping.last) > PING_IDLE => over.push(key),
                Entry::Caller(caller)
                    if caller.held.is_none() && now.duration_since(caller.since) > UNCLAIMED =>
                {
                    over.push(key);
                }
                Entry::Door(_) => doors.push(key),
                _ => {}
            }
        }
        for key in over {
            self.remove(key, false);
        }
        for key in doors {
            self.go_on(key, Side::Host);
        }
        for at in 0..self.listeners.len() {
            if self.accepts[at] == Accepts::Later {
                self.accept_some(at);
            }
        }
    }

    /// Ends some flows where there are as many as there may be, so that a flood of new ones can't keep others out.
    pub fn make_room(&mut self, of_guests: bool) {
        let flows = match of_guests {
            true => &self.guests,
            false => &self.flows,
        };
        if flows.len() < FLOWS_MAX {
            return;
        }
        let keys: Vec<Key> = flows.values().copied().collect();
        let mut aged: Vec<_> = keys
            .into_iter()
            .filter_map(|key| match self.entries.get_mut(key) {
                Some(Entry::Flow(flow)) => Some((flow.age(), key)),
                _ => None,
            })
            .collect();
        aged.sort_unstable_by_key(|(age, _)| *age);
        for (_, key) in aged.into_iter().take(FLOWS_SHARE) {
            self.remove(key, false);
        }
    }
}
