// SPDX-License-Identifier: GPL-2.0
//! How a proxy's clients come: listeners, connections that are accepted, first datagrams.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use super::engine::{About, Course, Engine, Entry};
use super::opening::{Opening, Stage, Step};
use super::sources::{is_limited, Source};
use super::wire::{End, FromRelay, Listen, TargetId};
use crate::flow::{Flow, HostEnd, Out};
use crate::names::Names;
use crate::slab::{Key, Side};
use crate::stream::Next;
use crate::tuning::{
    ACCEPTS, ALIVE_IDLE, ALIVE_TURN, ALIVE_TURNS, DATAGRAMS, DATAGRAMS_HELD, DATAGRAM_BYTES_HELD,
    FLOWS_MAX, FLOWS_SHARE,
};

pub const IP_RECVORIGDSTADDR: i32 = 20;
pub const IPV6_RECVORIGDSTADDR: i32 = 74;

impl Engine {
    /// Accepts clients that wait at one listener.
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

    /// Takes datagrams that came to a listener: of no flow yet, or before their flow had its socket.
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
                None => {
                    let has_room = self.datagrams_held + data.len() <= DATAGRAM_BYTES_HELD;
                    if course.waits.len() < DATAGRAMS_HELD && has_room {
                        self.datagrams_held += data.len();
                        course.waits.push(data.to_vec());
                    }
                }
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
            self.datagrams_held -= data.len();
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
