// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: listeners that come and go
//!
//! A listener that stays keeps its socket. One on the same port as another that goes (all addresses, then one of them) is
//! opened before that is closed, so that no SYN is refused in between: both have SO_REUSEPORT for the moment, without which
//! a second socket can't listen there. Afterwards neither has, so that no other program can share their clients. A
//! handshake that the old socket has begun, and that the client has not ended when it closes, ends with a reset.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use super::clients::{IPV6_RECVORIGDSTADDR, IP_RECVORIGDSTADDR};
use super::engine::{Engine, Entry, Listening};
use super::wire::{End, FromRelay, Listen};
use crate::slab::Side;
use crate::stream::Next;
use crate::tuning::{ACCEPTS, BACKLOG};

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
        let is_moved = |it: &Listen, all: &[Listen]| {
            let mut all = all.iter();
            it.is_stream && all.any(|other| other.is_stream && other.port == it.port)
        };
        let moved: Vec<u32> = gone
            .iter()
            .filter(|it| is_moved(it, &new))
            .map(|it| it.id)
            .collect();
        moved.iter().for_each(|id| self.share(*id, true));
        let (mut wrong, mut opened) = (Vec::new(), Vec::new());
        for listen in new {
            let (port, id) = (listen.port, listen.id);
            match self.open_listener(listen, !moved.is_empty()) {
                Ok(()) => opened.push(id),
                Err(why) => {
                    log::debug!("listener {id} does not listen on port {port}: {why}");
                    wrong.push((id, why.0));
                }
            }
        }
        moved
            .iter()
            .chain(&opened)
            .for_each(|id| self.share(*id, false));
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
