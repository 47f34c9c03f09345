// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: datagrams
//!
//! A flow is a source on the node and a destination. Its first datagram comes to the socket that takes all; the relay then
//! makes two sockets. The one on the node is bound to the destination and connected to the source, so that the node's
//! kernel brings it the flow's other datagrams, and answers come in the destination's name. The one on the
//! host is connected too, at a port that the host chose: it hears the destination alone, and no two flows share it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use ring3_node::task::{Fd, Task};
use ring3_node::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::door::Door;
use crate::icmp::{Icmp, Problem};
use crate::names::{Asked, Names};
use crate::slab::Side;
use crate::stream::Next;
use crate::tuning::{DATAGRAMS, FLOW_IDLE, FLOW_IDLE_ANSWERED};

/// The host's half.
#[derive(Debug)]
pub enum HostEnd {
    /// A program's flow: a socket of its own, connected.
    Own(OwnedFd),
    /// A client's of a published port: that port's socket, and who the client is.
    Shared(Rc<Door>, SocketAddr),
}

/// What a flow needs of the engine.
pub struct Out<'a> {
    pub task: &'a mut Task,
    /// Tells a program of errors; `None`: nobody does.
    pub icmp: Option<&'a Icmp>,
    pub names: &'a mut Names,
}

/// Has a socket of datagrams report all errors that the host hears of.
pub fn hear_errors(socket: &OwnedFd, is_v6: bool) -> Result<(), Errno> {
    let done = match is_v6 {
        true => setsockopt(socket, sockopt::Ipv6RecvErr, &true),
        false => setsockopt(socket, sockopt::Ipv4RecvErr, &true),
    };
    done.map_err(|why| Errno(why as i32))
}

/// Empties its queue of errors; each has been reported by a call, too.
pub fn forget_errors(socket: &OwnedFd) {
    let flags = RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT;
    for _ in 0..DATAGRAMS {
        if rustix::net::recv(socket, &mut [0u8; 64][..], flags).is_err() {
            return;
        }
    }
}

#[derive(Debug)]
pub struct Flow {
    pub node: Fd,
    pub host: HostEnd,
    /// Who began it and whither, as the one who began it sees them.
    pub ends: (SocketAddr, SocketAddr),
    /// The resolver is asked, and rules say for which names.
    pub asks_names: bool,
    /// Ends after so long without a datagram, where that is not the usual time.
    pub idle: Option<Duration>,
    last: Instant,
    answered: bool,
}

impl Flow {
    pub fn new(node: Fd, host: HostEnd, ends: (SocketAddr, SocketAddr)) -> Flow {
        Flow {
            node,
            host,
            ends,
            asks_names: false,
            idle: None,
            last: Instant::now(),
            answered: false,
        }
    }

    /// A client of a published port has begun it: the node's datagrams are the answers.
    fn is_guests(&self) -> bool {
        matches!(self.host, HostEnd::Shared(..))
    }

    /// Before the node's socket was connected it had a name, and another client's datagram may have come to it: that is lost.
    fn is_from_its_end(&self, from: Option<SocketAddr>) -> bool {
        let (its, place) = (self.ends.0, |it: SocketAddr| (it.ip(), it.port()));
        self.is_guests() || from.is_none_or(|from| place(from) == place(its))
    }

    /// What ends first where room is needed: flows without an answer, the most idle ones first.
    pub fn age(&self) -> (bool, Instant) {
        (self.answered, self.last)
    }

    pub fn is_idle(&self, now: Instant) -> bool {
        let limit = match (self.idle, self.answered) {
            (Some(idle), true) => idle,
            (Some(idle), false) => idle.min(FLOW_IDLE),
            (None, true) => FLOW_IDLE_ANSWERED,
            (None, false) => FLOW_IDLE,
        };
        now.duration_since(self.last) > limit
    }

    /// A datagram came from this side.
    fn heard(&mut self, from: Side) {
        self.last = Instant::now();
        self.answered |= self.is_guests() == (from == Side::Node);
    }

    /// What a program sends.
    pub fn say_for_program(&mut self, out: &mut Out<'_>, data: &[u8]) {
        if !self.asks_names {
            return self.send_out(out, data);
        }
        match out.names.asked(self.ends, data) {
            Asked::Pass(question) => self.send_out(out, &question),
            Asked::Answer(refusal) => self.send_in(out.task, &refusal),
            Asked::Drop => {}
        }
    }

    /// To the host. What its queue does not take is lost, as on any wire.
    fn send_out(&mut self, out: &mut Out<'_>, data: &[u8]) {
        self.heard(Side::Node);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let send = || match &self.host {
            HostEnd::Own(socket) => rustix::net::send(socket, data, flags),
            HostEnd::Shared(door, client) => rustix::net::sendto(&door.socket, data, flags, client),
        };
        // An ICMP error of an earlier datagram is reported once, and this one not sent.
        if let Err(why) = send() {
            self.fail(out, why.into());
            let _ = send();
        }
    }

    /// The host has heard an error for a datagram of a program's.
    fn fail(&self, out: &mut Out<'_>, why: Errno) {
        let HostEnd::Own(socket) = &self.host else {
            return;
        };
        forget_errors(socket);
        if let (Some(problem), Some(icmp)) = (Problem::of(why), out.icmp) {
            icmp.tell(out.task, self.ends, problem);
        }
    }

    /// To the node.
    pub fn send_in(&mut self, task: &mut Task, data: &[u8]) {
        self.heard(Side::Host);
        let _ = task.send(self.node, data);
    }

    /// Passes on what came from one side.
    pub fn pump(&mut self, out: &mut Out<'_>, from: Side, chunk: &mut [u8]) -> Next {
        for _ in 0..DATAGRAMS {
            match from {
                Side::Node => match out.task.recv_from(self.node, chunk) {
                    Ok((_, from)) if !self.is_from_its_end(from) => {}
                    Ok((len, _)) => self.say_for_program(out, &chunk[..len]),
                    Err(Errno(libc::EAGAIN)) => return Next::Wait,
                    Err(_) => {}
                },
                Side::Host => {
                    // A published port's socket has its own events.
                    let HostEnd::Own(socket) = &self.host else {
                        return Next::Wait;
                    };
                    match rustix::net::recv(socket, &mut *chunk, RecvFlags::DONTWAIT) {
                        Ok((len, _)) => {
                            let data = &mut chunk[..len];
                            let is_wanted = !self.asks_names
                                || out.names.answered(self.ends, data, Instant::now());
                            if is_wanted {
                                self.send_in(out.task, data);
                            }
                        }
                        Err(rustix::io::Errno::AGAIN) => return Next::Wait,
                        Err(why) => self.fail(out, why.into()),
                    }
                }
            }
        }
        Next::Again
    }

    pub fn end(self, task: &mut Task) {
        let _ = task.close(self.node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A client that is never answered must not count as one that is, else a flood of such holds its places for long.
    #[test]
    fn what_answers_is_the_other_side() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ends = (client.local_addr().unwrap(), socket.local_addr().unwrap());
        let door = Door {
            socket: socket.into(),
            is_stream: false,
            to: 53,
        };
        let mut guest = Flow::new(0, HostEnd::Shared(Rc::new(door), ends.0), ends);
        guest.heard(Side::Host);
        assert!(!guest.age().0);
        guest.heard(Side::Node);
        assert!(guest.age().0);
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        own.connect(ends.0).unwrap();
        let mut program = Flow::new(0, HostEnd::Own(own.into()), ends);
        program.heard(Side::Node);
        assert!(!program.age().0);
        program.heard(Side::Host);
        assert!(program.age().0);
    }
}
