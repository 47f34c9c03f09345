// SPDX-License-Identifier: GPL-2.0
//! How a proxy's clients come: listeners, connections that are accepted, first datagrams.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use super::engine::{About, Course, Engine, Entry, Listening};
use super::opening::{Opening, Stage, Step};
use super::sources::{is_limited, Source};
use super::wire::{End, FromRelay, Listen, TargetId};
use crate::flow::{Flow, HostEnd, Out};
use crate::names::Names;
use crate::slab::{Key, Side};
use crate::stream::Next;
use crate::tuning::{
    ACCEPTS, ALIVE_IDLE, ALIVE_TURN, ALIVE_TURNS, BACKLOG, DATAGRAMS, DATAGRAMS_HELD, FLOWS_MAX,
    FLOWS_SHARE,
};

const IP_RECVORIGDSTADDR: i32 = 20;
const IPV6_RECVORIGDSTADDR: i32 = 74;

impl Engine {
    /// These listeners and no others. One that stays keeps its socket.
    pub fn listen(&mut self, listeners: Vec<Listen>) {
        let wrong = match self.drains {
            true => Vec::new(),
            false => self.change(listeners),
        };
        let said = wrong.iter().map(|(id, why)| format!("{id} {why}"));
        let said = said.collect();
        self.say(FromRelay::Listening(said));
    }

    /// The listeners that can't be, and why; then all are as before.
    fn change(&mut self, listeners: Vec<Listen>) -> Vec<(u32, i32)> {
        let is_known = |it: &&Listen| self.listeners.contains_key(&it.id);
        let new: Vec<Listen> = listeners
            .iter()
            .filter(|it| !is_known(it))
            .cloned()
            .collect();
        let gone: Vec<Rc<Listen>> = self
            .entries
            .iter()
            .filter_map(|(_, entry)| match entry {
                Entry::Listening(it) => Some(it.listen.clone()),
                _ => None,
            })
            .filter(|old| !listeners.iter().any(|it| it.id == old.id))
            .collect();
        // One address of a port, or all, after the other.
        let is_in_the_way = |old: &Rc<Listen>| {
            let mut new = new.iter();
            new.any(|it| (it.is_stream, it.port) == (old.is_stream, old.port))
        };
        let (first, last): (Vec<_>, Vec<_>) = gone.into_iter().partition(is_in_the_way);
        first.iter().for_each(|it| self.close_listener(it.id));
        let (mut wrong, mut opened) = (Vec::new(), Vec::new());
        for listen in new {
            let (port, id) = (listen.port, listen.id);
            match self.open_listener(listen) {
                Ok(()) => opened.push(id),
                Err(why) => {
                    log::debug!("listener {id} does not listen on port {port}: {why}");
                    wrong.push((id, why.0));
                }
            }
        }
        if !wrong.is_empty() {
            opened.iter().for_each(|id| self.close_listener(*id));
            for listen in first {
                let (port, id) = (listen.port, listen.id);
                if let Err(why) = self.open_listener((*listen).clone()) {
                    log::warn!("the listener on port {port} is lost: {why}");
                    wrong.push((id, why.0));
                }
            }
            return wrong;
        }
        last.iter().for_each(|it| self.close_listener(it.id));
        for listen in listeners {
            let known = self.listeners.get(&listen.id);
            if let Some(Entry::Listening(it)) = known.and_then(|key| self.entries.get_mut(*key)) {
                it.listen = Rc::new(listen);
            }
        }
        wrong
    }

    fn open_listener(&mut self, listen: Listen) -> Result<(), Errno> {
        let fd = open(&mut self.task, &listen)?;
        let Some(key) = self.entries.reserve() else {
            return self.task.close(fd).and(Err(Errno(libc::EMFILE)));
        };
        let data = key.data(Side::Node);
        if let Err(why) = self.feed.add_node(&mut self.task, fd, data) {
            self.entries.give_back(key);
            return self.task.close(fd).and(Err(why));
        }
        self.listeners.insert(listen.id, key);
        self.tally.begin(listen.id);
        let listen = Rc::new(listen);
        self.entries
            .put(key, Entry::Listening(Listening { fd, listen }));
        Ok(())
    }

    /// Takes those who wait there first.
    fn close_listener(&mut self, id: u32) {
        let Some(key) = self.listeners.remove(&id) else {
            return;
        };
        // No more than may wait: others come as fast as these are taken.
        for _ in 0..=BACKLOG as usize / ACCEPTS {
            if self.accept_some(key) != Next::Again {
                break;
            }
        }
        self.starved.remove(&key);
        self.end(key, End::Done);
        self.tally.forget(id);
    }

    /// No more clients from now on.
    pub fn drain(&mut self) {
        if std::mem::replace(&mut self.drains, true) {
            return;
        }
        let all: Vec<_> = self.listeners.keys().copied().collect();
        for id in all {
            self.close_listener(id);
        }
    }

    /// Those who wait at one listener.
    pub fn accept_some(&mut self, key: Key) -> Next {
        let Some(Entry::Listening(listening)) = self.entries.get_mut(key) else {
            return Next::Wait;
        };
        let (fd, listen) = (listening.fd, listening.listen.clone());
        if !listen.is_stream {
            return self.catch_some(fd, &listen);
        }
        for _ in 0..ACCEPTS {
            match self.task.accept(fd) {
                Ok((fd, peer)) => self.let_in(fd, peer, &listen),
                Err(Errno(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(Errno(libc::EAGAIN)) => return Next::Wait,
                Err(why) => {
                    log::debug!("no client was accepted on port {}: {why}", listen.port);
                    self.starved.insert(key);
                    return Next::Wait;
                }
            }
        }
        Next::Again
    }

    fn let_in(&mut self, fd: Fd, peer: SocketAddr, listen: &Rc<Listen>) {
        self.tally.began(listen.id);
        let here = plain(self.task.name(fd).unwrap_or(peer));
        let peer = plain(peer);
        let opening = Opening::new(fd, listen.clone(), peer, here);
        self.openings += 1;
        let Some(key) = self.entries.reserve() else {
            self.openings -= 1;
            let _ = self.task.close(fd);
            return;
        };
        let is_named = matches!(opening.stage, Stage::Asked);
        self.entries.put(key, Entry::Opening(Box::new(opening)));
        if self.openings + self.streams > self.streams_max {
            return self.end(key, End::Full);
        }
        if is_named && !self.count(key) {
            return;
        }
        let data = key.data(Side::Node);
        let watched = self.feed.add_node(&mut self.task, fd, data);
        if watched
            .and_then(|()| keep_alive(&mut self.task, fd))
            .is_err()
        {
            return self.end(key, End::Full);
        }
        if is_named {
            self.ask(key);
        }
    }

    /// Its source's limits; false: it is over.
    fn count(&mut self, key: Key) -> bool {
        let Some(Entry::Opening(opening)) = self.entries.get_mut(key) else {
            return false;
        };
        let source = Source::of(opening.listen.id, opening.client.ip());
        match self.sources.enter(source, &opening.listen, Instant::now()) {
            Ok(()) => opening.source = is_limited(&opening.listen).then_some(source),
            Err(end) => {
                self.end(key, end);
                return false;
            }
        }
        true
    }

    /// Asks for a target.
    pub fn ask(&mut self, key: Key) {
        let Some(Entry::Opening(opening)) = self.entries.get_mut(key) else {
            return;
        };
        opening.stage = Stage::Asked;
        let want = FromRelay::Want {
            ask: key.data(Side::Host),
            listener: opening.listen.id,
            client: opening.client,
            tried: opening.tried.clone(),
        };
        self.say(want);
    }

    pub fn step(&mut self, key: Key, step: Step) {
        match step {
            Step::Wait => {}
            Step::Named => {
                if self.count(key) {
                    self.ask(key);
                }
            }
            Step::Made => {
                if let Some(Entry::Opening(opening)) = self.entries.take_out(key) {
                    self.join(key, *opening);
                }
            }
            Step::Failed(why) => {
                if let Some(Entry::Opening(opening)) = self.entries.get_mut(key) {
                    if let Stage::Connecting { target, .. } = opening.stage {
                        log::debug!("target {target} does not answer: {}", Errno(why));
                        opening.tried.push(target);
                    }
                }
                self.ask(key);
            }
            Step::ClientGone => self.end(key, End::ClientGone),
            Step::BadHeader => self.end(key, End::BadHeader),
        }
    }

    /// Datagrams of no flow yet.
    fn catch_some(&mut self, fd: Fd, listen: &Rc<Listen>) -> Next {
        for _ in 0..DATAGRAMS {
            let datagram = match self.task.recv_datagram(fd, &mut self.chunk) {
                Ok(datagram) => datagram,
                Err(Errno(libc::EAGAIN)) => return Next::Wait,
                Err(_) => continue,
            };
            let (from, to) = (plain(datagram.from), plain(datagram.to));
            let name = (listen.id, from, to);
            let key = match self.courses.get(&name) {
                Some(key) => Some(*key),
                None => self.begin_course(listen, (from, to)),
            };
            let Some(Entry::Course(course)) = key.and_then(|key| self.entries.get_mut(key)) else {
                continue;
            };
            let data = &self.chunk[..datagram.len];
            match &mut course.flow {
                Some(flow) => say_to_target(&mut self.task, &mut self.names, flow, data),
                None if course.waits.len() < DATAGRAMS_HELD => course.waits.push(data.to_vec()),
                None => {}
            }
        }
        Next::Again
    }

    fn begin_course(&mut self, listen: &Rc<Listen>, ends: (SocketAddr, SocketAddr)) -> Option<Key> {
        if self.courses.len() >= FLOWS_MAX {
            self.make_room();
        }
        let source = Source::of(listen.id, ends.0.ip());
        let entered = self.sources.enter(source, listen, Instant::now());
        entered.ok()?;
        let source = is_limited(listen).then_some(source);
        let Some(key) = self.entries.reserve() else {
            if let Some(source) = source {
                self.sources.leave(source);
            }
            return None;
        };
        self.tally.began(listen.id);
        let course = Course {
            flow: None,
            waits: Vec::new(),
            ends,
            about: About {
                listen: listen.clone(),
                client: ends.0,
                target: None,
                source,
                since: Instant::now(),
            },
        };
        self.entries.put(key, Entry::Course(Box::new(course)));
        self.courses.insert((listen.id, ends.0, ends.1), key);
        self.say(FromRelay::Want {
            ask: key.data(Side::Host),
            listener: listen.id,
            client: ends.0,
            tried: Vec::new(),
        });
        Some(key)
    }

    /// Ends some flows, so that a flood of new ones can't keep others out: those without an answer first, the most idle first.
    fn make_room(&mut self) {
        let mut aged: Vec<_> = self
            .entries
            .iter()
            .filter_map(|(key, entry)| match entry {
                Entry::Course(course) => {
                    let age = course.flow.as_ref().map(Flow::age);
                    Some((age.unwrap_or((false, course.about.since)), key))
                }
                _ => None,
            })
            .collect();
        aged.sort_unstable_by_key(|(age, _)| *age);
        for (_, key) in aged.into_iter().take(FLOWS_SHARE) {
            self.end(key, End::Idle);
        }
    }

    /// The target's socket is there.
    pub fn begin_flow(&mut self, key: Key, target: TargetId, fd: Option<OwnedFd>) {
        let Some(Entry::Course(course)) = self.entries.get_mut(key) else {
            return;
        };
        let (ends, idle) = (course.ends, course.about.listen.idle_ms);
        course.about.target = Some(target);
        let made = fd.ok_or(Errno(libc::EMFILE)).and_then(|host| {
            let node = speaker(&mut self.task, ends)?;
            let data = key.data(Side::Node);
            let watched = self.feed.add_node(&mut self.task, node, data);
            let watched = watched.and_then(|()| self.feed.add_host(&host, key.data(Side::Host)));
            match watched {
                Ok(()) => Ok(Flow::new(node, HostEnd::Own(host), ends)),
                Err(why) => self.task.close(node).and(Err(why)),
            }
        });
        let mut flow = match made {
            Ok(flow) => flow,
            Err(why) => {
                log::debug!("a flow of {} did not begin: {why}", ends.0);
                return self.end(key, End::Full);
            }
        };
        flow.idle = idle.map(Duration::from_millis);
        for data in course.waits.drain(..) {
            say_to_target(&mut self.task, &mut self.names, &mut flow, &data);
        }
        course.flow = Some(flow);
        self.go_on(key, Side::Node);
        self.go_on(key, Side::Host);
    }
}

fn say_to_target(task: &mut Task, names: &mut Names, flow: &mut Flow, data: &[u8]) {
    let mut out = Out {
        task,
        icmp: None,
        names,
    };
    flow.say_for_program(&mut out, data);
}

/// IPv4 without IPv6's clothes, which a socket for both families gives it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A socket of the node for one listener.
fn open(task: &mut Task, listen: &Listen) -> Result<Fd, Errno> {
    let any = match listen.address {
        Some(address) => SocketAddr::new(address, listen.port),
        None => (Ipv6Addr::UNSPECIFIED, listen.port).into(),
    };
    match bound(task, listen, any) {
        // A node without IPv6.
        Err(Errno(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) if listen.address.is_none() => {
            bound(task, listen, (Ipv4Addr::UNSPECIFIED, listen.port).into())
        }
        made => made,
    }
}

fn bound(task: &mut Task, listen: &Listen, to: SocketAddr) -> Result<Fd, Errno> {
    let domain = if to.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let kind = match listen.is_stream {
        true => libc::SOCK_STREAM,
        false => libc::SOCK_DGRAM,
    };
    let fd = task.socket(domain, kind, 0)?;
    let made = prepare(task, fd, listen, to);
    match made {
        Ok(()) => Ok(fd),
        Err(why) => task.close(fd).and(Err(why)),
    }
}

fn prepare(task: &mut Task, fd: Fd, listen: &Listen, to: SocketAddr) -> Result<(), Errno> {
    task.set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    if to.is_ipv6() {
        let only = i32::from(listen.address.is_some());
        task.set_option(fd, libc::SOL_IPV6, libc::IPV6_V6ONLY, only)?;
    }
    if !listen.is_stream {
        task.set_option(fd, libc::SOL_IP, IP_RECVORIGDSTADDR, 1)?;
        if to.is_ipv6() {
            task.set_option(fd, libc::SOL_IPV6, IPV6_RECVORIGDSTADDR, 1)?;
        }
    }
    task.bind(fd, to)?;
    match listen.is_stream {
        true => task.listen(fd, BACKLOG),
        false => Ok(()),
    }
}

/// A socket of the node for one flow: it has the listener's name, and hears this client alone.
fn speaker(task: &mut Task, (from, to): (SocketAddr, SocketAddr)) -> Result<Fd, Errno> {
    let domain = if to.is_ipv6() {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let fd = task.socket(domain, libc::SOCK_DGRAM, 0)?;
    let made = task
        .set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)
        .and_then(|()| task.bind(fd, to))
        .and_then(|()| task.connect(fd, from));
    match made {
        Ok(()) => Ok(fd),
        Err(why) => task.close(fd).and(Err(why)),
    }
}

/// No bytes wait for others, and a client that is gone is noticed.
fn keep_alive(task: &mut Task, fd: Fd) -> Result<(), Errno> {
    task.set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    let seconds = |time: Duration| time.as_secs() as i32;
    task.set_option(
        fd,
        libc::IPPROTO_TCP,
        libc::TCP_KEEPIDLE,
        seconds(ALIVE_IDLE),
    )?;
    task.set_option(
        fd,
        libc::IPPROTO_TCP,
        libc::TCP_KEEPINTVL,
        seconds(ALIVE_TURN),
    )?;
    task.set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, ALIVE_TURNS as i32)?;
    task.set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}
