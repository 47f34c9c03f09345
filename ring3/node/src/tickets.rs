// SPDX-License-Identifier: GPL-2.0
//! Descriptors of the node in transit over the host's unix sockets: gate/fd/ticket.c has the theory
//! of operation. Here is the other end of each ticket. When it hangs up, no process can present the
//! ticket any more, and the node drops the file.
//!
//! Programs send the ends over one socket that they all share. If one is killed at the wrong
//! moment, it leaves an end whose ticket is gone already, which needs no special handling.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, OwnedFd};

use ring3_abi::ring3_ticket;
use rustix::event::epoll;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};

use crate::error::{Errno, Error, Result};
use crate::image::Thread;

/// Token of the inbox; all others are ends.
const INBOX: u64 = 0;

/// Events taken from the epoll set at a time; the rest is there next time.
const EVENTS: usize = 64;

/// The number of lost keys that are remembered: each is retried at every look.
const LOST_MAX: usize = 1024;

/// Told of each ticket that is over.
pub(crate) trait Forget {
    fn forget(&mut self, key: u64) -> std::result::Result<(), Errno>;
}

impl Forget for Thread {
    fn forget(&mut self, key: u64) -> std::result::Result<(), Errno> {
        Thread::forget(self, key)
    }
}

#[derive(Debug)]
pub(crate) struct Tickets {
    node: String,
    set: OwnedFd,
    inbox: OwnedFd,
    for_programs: OwnedFd,
    ends: HashMap<u64, End>,
    next: u64,
    /// Keys whose ends could not be received, and that the node did not know yet.
    lost: Vec<u64>,
}

#[derive(Debug)]
struct End {
    key: u64,
    socket: OwnedFd,
}

impl Tickets {
    pub fn new(node: &str) -> Result<Tickets> {
        let fail = || Error::host("make the socket for descriptors on their way");
        let (inbox, for_programs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(fail())?;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail())?;
        let data = epoll::EventData::new_u64(INBOX);
        epoll::add(&set, &inbox, data, epoll::EventFlags::IN).map_err(fail())?;
        Ok(Tickets {
            node: node.to_owned(),
            set,
            inbox,
            for_programs,
            ends: HashMap::new(),
            next: INBOX + 1,
            lost: Vec::new(),
        })
    }

    /// Readable when there are events.
    pub fn events(&self) -> &OwnedFd {
        &self.set
    }

    /// The socket that every program of the node gets.
    pub fn for_programs(&self) -> &OwnedFd {
        &self.for_programs
    }

    /// Receives new ends and forgets the tickets that are gone.
    pub fn look(&mut self, node: &mut impl Forget) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(
            &self.set,
            rustix::buffer::spare_capacity(&mut events),
            Some(&now),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(Error::host("look after descriptors on their way")(why)),
        }
        for key in std::mem::take(&mut self.lost) {
            self.give_up(key, node);
        }
        for event in &events {
            match event.data.u64() {
                INBOX => self.take_in(node)?,
                token => self.over(token, event.flags, node),
            }
        }
        Ok(())
    }

    fn take_in(&mut self, node: &mut impl Forget) -> Result<()> {
        let fail = || Error::host("receive a descriptor on its way");
        loop {
            let mut bytes = [0; size_of::<ring3_ticket>()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let got = match rustix::net::recvmsg(
                &self.inbox,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
            ) {
                Ok(got) => got,
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(why) => return Err(fail()(why)),
            };
            let socket = ancillary.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                _ => None,
            });
            if got.bytes != bytes.len() {
                log::warn!("node {}: a ticket of {} bytes", self.node, got.bytes);
                continue;
            }
            let key = u64::from_ne_bytes(bytes);
            let watched = socket.ok_or(rustix::io::Errno::MFILE).and_then(|socket| {
                let data = epoll::EventData::new_u64(self.next);
                epoll::add(&self.set, socket.as_fd(), data, epoll::EventFlags::IN)?;
                Ok(socket)
            });
            match watched {
                Ok(socket) => {
                    self.ends.insert(self.next, End { key, socket });
                    self.next += 1;
                }
                Err(why) => {
                    log::warn!(
                        "node {}: a descriptor on its way is dropped: {why}",
                        self.node
                    );
                    self.give_up(key, node);
                }
            }
        }
    }

    /// The program may not have parked the file yet: the key is retried later.
    fn give_up(&mut self, key: u64, node: &mut impl Forget) {
        if node.forget(key) == Err(Errno(libc::ENOENT)) && self.lost.len() < LOST_MAX {
            self.lost.push(key);
        }
    }

    fn over(&mut self, token: u64, flags: epoll::EventFlags, node: &mut impl Forget) {
        let Some(End { key, socket }) = self.ends.remove(&token) else {
            return;
        };
        if !flags.contains(epoll::EventFlags::HUP) {
            log::warn!(
                "node {}: a process outside the node tried to use a descriptor that a program passed to it",
                self.node
            );
        }
        // The node does not know it if the message could not be sent.
        let _ = node.forget(key);
        // Closing a socket with unread data resets it for the other side.
        drop(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    use std::io::IoSlice;

    impl Forget for Vec<u64> {
        fn forget(&mut self, key: u64) -> std::result::Result<(), Errno> {
            self.push(key);
            Ok(())
        }
    }

    /// Does the sender's part; returns the ticket.
    fn ticket(tickets: &Tickets, key: u64) -> OwnedFd {
        let kind = SocketType::SEQPACKET;
        let (ticket, end) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::shutdown(&end, rustix::net::Shutdown::Write).unwrap();
        let fds = [end.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        rustix::net::sendmsg(
            tickets.for_programs(),
            &[IoSlice::new(&key.to_ne_bytes())],
            &mut ancillary,
            SendFlags::empty(),
        )
        .unwrap();
        ticket
    }

    #[test]
    fn a_ticket_is_forgotten_when_its_last_holder_closes_it() {
        let mut tickets = Tickets::new("t").unwrap();
        let mut forgotten = Vec::new();
        let one = ticket(&tickets, 1);
        let two = ticket(&tickets, 2);
        let again = two.try_clone().unwrap();
        drop(two);
        tickets.look(&mut forgotten).unwrap();
        tickets.look(&mut forgotten).unwrap();
        assert!(forgotten.is_empty());
        drop(one);
        tickets.look(&mut forgotten).unwrap();
        assert_eq!(forgotten, [1]);
        drop(again);
        tickets.look(&mut forgotten).unwrap();
        assert_eq!(forgotten, [1, 2]);
        assert!(tickets.ends.is_empty());
    }

    #[test]
    fn a_ticket_gone_before_it_was_seen_is_forgotten_too() {
        let mut tickets = Tickets::new("t").unwrap();
        let mut forgotten = Vec::new();
        drop(ticket(&tickets, 7));
        tickets.look(&mut forgotten).unwrap();
        tickets.look(&mut forgotten).unwrap();
        assert_eq!(forgotten, [7]);
    }

    #[test]
    fn who_uses_a_ticket_as_a_socket_is_cut_off() {
        let mut tickets = Tickets::new("t").unwrap();
        let mut forgotten = Vec::new();
        let held = ticket(&tickets, 3);
        tickets.look(&mut forgotten).unwrap();
        assert_eq!(rustix::io::read(&held, &mut [0; 8]), Ok(0));
        rustix::io::write(&held, b"GET / HTTP/1.0").unwrap();
        tickets.look(&mut forgotten).unwrap();
        assert_eq!(forgotten, [3]);
        assert_eq!(
            rustix::io::write(&held, b"x"),
            Err(rustix::io::Errno::CONNRESET)
        );
    }
}
