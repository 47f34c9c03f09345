// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: listeners that come and go
//!
//! A listener that stays keeps its socket. One on the same port as another that goes (all addresses, then one of them) is
//! opened before that is closed, so that no SYN is refused in between: both have SO_REUSEPORT for the moment, without which
//! a second socket can't listen there. Afterwards neither has, and the port forgets it ([`close_to_others`]), so that no
//! program of the node that binds with SO_REUSEPORT later shares their clients. A handshake that the old socket has begun,
//! and that the client has not ended when it closes, ends with a reset.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use super::clients::{IPV6_RECVORIGDSTADDR, IP_RECVORIGDSTADDR};
use super::engine::{Engine, Entry, Listening};
use super::wire::{End, FromRelay, Listen};
use crate::slab::Side;
use crate::stream::Next;
use crate::tuning::{ACCEPTS, BACKLOG, FIRST_DATAGRAMS_BYTES};

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
        let is_beside = |a: &Listen, b: &Listen| a.is_stream && b.is_stream && a.port == b.port;
        let mut moved = gone.clone();
        moved.retain(|old| new.iter().any(|it| is_beside(it, old)));
        moved.iter().for_each(|it| self.share(it.id, true));
        let (mut wrong, mut opened) = (Vec::new(), Vec::new());
        for listen in new {
            let (port, id) = (listen.port, listen.id);
            let shares = moved.iter().any(|old| is_beside(old, &listen));
            match self.open_listener(listen, shares) {
                Ok(()) => opened.push(id),
                Err(why) => {
                    log::debug!("listener {id} does not listen on port {port}: {why}");
                    wrong.push((id, why.0));
                }
            }
        }
        let ids = moved.iter().map(|it| it.id).chain(opened.iter().copied());
        ids.for_each(|id| self.share(id, false));
        for old in &moved {
            if let Err(why) = close_to_others(&mut self.task, old.port) {
                log::warn!("programs of the node can share port {}: {why}", old.port);
            }
        }
        if !wrong.is_empty() {
            opened.iter().for_each(|id| self.close_listener(*id));
            return wrong;
        }
        gone.iter().for_each(|it| self.close_listener(it.id));
        for listen in listeners {
            let known = self.listeners.get(&listen.id);
            if let Some(Entry::Listening(it)) = known.and_then(|key| self.entries.get_mut(*key)) {
                it.listen = Rc::new(listen);
            }
        }
        wrong
    }

    /// Whether another of the relay's listeners may have the same port.
    fn share(&mut self, id: u32, may: bool) {
        let key = self.listeners.get(&id).copied();
        if let Some(Entry::Listening(it)) = key.and_then(|key| self.entries.get_mut(key)) {
            let (level, option) = (libc::SOL_SOCKET, libc::SO_REUSEPORT);
            // Without it the other does not open, which is said.
            let _ = self.task.set_option(it.fd, level, option, may.into());
        }
    }

    fn open_listener(&mut self, listen: Listen, shares: bool) -> Result<(), Errno> {
        let fd = open(&mut self.task, &listen, shares)?;
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

    /// Clients that wait at the listener are taken first.
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
}

/// A port that was bound with SO_REUSEPORT lets others of the same user do so, whatever became of the first socket's option:
/// until one without it is bound there (inet_csk_update_fastreuse). One in repair is bound whoever has the port (TCP_REPAIR
/// in tcp(7), for restored connections); it never listens.
fn close_to_others(task: &mut Task, port: u16) -> Result<(), Errno> {
    let fd = task.socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let any = (Ipv4Addr::UNSPECIFIED, port).into();
    let bound = task
        .set_option(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR, 1)
        .and_then(|()| task.bind(fd, any));
    task.close(fd).and(bound)
}

/// A socket of the node for one listener.
fn open(task: &mut Task, listen: &Listen, shares: bool) -> Result<Fd, Errno> {
    let any = match listen.address {
        Some(address) => SocketAddr::new(address, listen.port),
        None => (Ipv6Addr::UNSPECIFIED, listen.port).into(),
    };
    match bound(task, (listen, shares), any) {
        // A node without IPv6.
        Err(Errno(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) if listen.address.is_none() => {
            let any = (Ipv4Addr::UNSPECIFIED, listen.port).into();
            bound(task, (listen, shares), any)
        }
        made => made,
    }
}

fn bound(task: &mut Task, (listen, shares): (&Listen, bool), to: SocketAddr) -> Result<Fd, Errno> {
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
    let flag = |shares: bool| i32::from(shares && listen.is_stream);
    let made = task
        .set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, flag(shares))
        .and_then(|()| prepare(task, fd, listen, to));
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
        task.set_option(
            fd,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            FIRST_DATAGRAMS_BYTES,
        )?;
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
