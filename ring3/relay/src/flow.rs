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
use std::time::Instant;

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::door::Door;
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

#[derive(Debug)]
pub struct Flow {
    pub node: Fd,
    pub host: HostEnd,
    /// Who began it and whither, as the one who began it sees them.
    pub ends: (SocketAddr, SocketAddr),
    last: Instant,
    answered: bool,
}

impl Flow {
    pub fn new(node: Fd, host: HostEnd, ends: (SocketAddr, SocketAddr)) -> Flow {
        Flow {
            node,
            host,
            ends,
            last: Instant::now(),
            answered: false,
        }
    }

    /// A client of a published port has begun it: the node's datagrams are the answers.
    fn is_guests(&self) -> bool {
        matches!(self.host, HostEnd::Shared(..))
    }

    /// What ends first where room is needed: flows without an answer, the most idle ones first.
    pub fn age(&self) -> (bool, Instant) {
        (self.answered, self.last)
    }

    pub fn is_idle(&self, now: Instant) -> bool {
        let limit = match self.answered {
            true => FLOW_IDLE_ANSWERED,
            false => FLOW_IDLE,
        };
        now.duration_since(self.last) > limit
    }

    /// A datagram came from this side.
    fn heard(&mut self, from: Side) {
        self.last = Instant::now();
        self.answered |= self.is_guests() == (from == Side::Node);
    }

    /// To the host. What its queue does not take is lost, as on any wire.
    pub fn send_out(&mut self, data: &[u8]) {
        self.heard(Side::Node);
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let send = || match &self.host {
            HostEnd::Own(socket) => rustix::net::send(socket, data, flags),
            HostEnd::Shared(door, client) => rustix::net::sendto(&door.socket, data, flags, client),
        };
        // An ICMP error of an earlier datagram is reported once, and this one not sent.
        if send().is_err() {
            let _ = send();
        }
    }

    /// To the node.
    pub fn send_in(&mut self, task: &mut Task, data: &[u8]) {
        self.heard(Side::Host);
        let _ = task.send(self.node, data);
    }

    /// Passes on what came from one side.
    pub fn pump(&mut self, task: &mut Task, from: Side, chunk: &mut [u8]) -> Next {
        for _ in 0..DATAGRAMS {
            match from {
                Side::Node => match task.recv(self.node, chunk) {
                    Ok(len) => self.send_out(&chunk[..len]),
                    Err(Errno(libc::EAGAIN)) => return Next::Wait,
                    Err(_) => {}
                },
                Side::Host => {
                    // A published port's socket has its own events.
                    let HostEnd::Own(socket) = &self.host else {
                        return Next::Wait;
                    };
                    match rustix::net::recv(socket, &mut *chunk, RecvFlags::DONTWAIT) {
                        Ok((len, _)) => self.send_in(task, &chunk[..len]),
                        Err(rustix::io::Errno::AGAIN) => return Next::Wait,
                        Err(_) => {}
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
        guest.send_out(b"an answer");
        assert!(guest.age().0);
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        own.connect(ends.0).unwrap();
        let mut program = Flow::new(0, HostEnd::Own(own.into()), ends);
        program.send_out(b"a question");
        assert!(!program.age().0);
        program.heard(Side::Host);
        assert!(program.age().0);
    }
}
