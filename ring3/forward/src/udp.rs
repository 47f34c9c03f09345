// SPDX-License-Identifier: GPL-2.0
//! Datagrams: what comes to one socket goes to each target that the handler names.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;

use crate::batch::{Inbox, Outbox};
use crate::error::{Error, Result};
use crate::handler::About;
use crate::leaf::{any_like, option};
use crate::numbers::{add, Numbers};
use crate::tuning::QUEUE;
use crate::watchdog::Caller;
use crate::Order;

#[derive(Debug)]
pub struct Agent {
    socket: UdpSocket,
    targets: Vec<UdpSocket>,
}

impl Agent {
    pub fn open(order: &Order) -> Result<Agent> {
        let at = order.listen;
        let socket = UdpSocket::bind(at).map_err(|why| Error::Listen { at, why })?;
        let force = option(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            QUEUE,
        );
        if force.is_err() {
            // Whoever may not gets as much as the host lets him have.
            option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, QUEUE)
                .map_err(Error::host("set the size of a socket's queue"))?;
        }
        let target = |to: &SocketAddr| {
            let to = *to;
            open_target(to).map_err(|why| Error::Target { to, why })
        };
        Ok(Agent {
            socket,
            targets: order.targets.iter().map(target).collect::<Result<_>>()?,
        })
    }

    pub fn run(self, mut caller: Caller<'_>, numbers: &Numbers) -> Result<()> {
        let mut inbox = Inbox::new();
        let mut outboxes: Vec<Outbox> = self.targets.iter().map(|_| Outbox::new()).collect();
        while !numbers.ends.load(Ordering::Acquire) {
            let count = match inbox.receive(self.socket.as_fd()) {
                Ok(count) => count,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(why) => return Err(Error::host("receive datagrams")(why)),
            };
            add(&numbers.received, count as u64);
            for at in 0..count {
                let (bytes, len, from) = inbox.packet(at);
                let about = About {
                    stream: 0,
                    is_back: false,
                    from,
                };
                let Some((targets, len)) = caller.ask(bytes, len, about) else {
                    continue;
                };
                for (number, outbox) in outboxes.iter_mut().enumerate() {
                    if targets >> number & 1 == 1 {
                        outbox.add(at, len);
                    }
                }
            }
            for (target, outbox) in self.targets.iter().zip(&mut outboxes) {
                let sum = outbox.send(target.as_fd(), &inbox);
                add(&numbers.sent, sum.sent as u64);
                add(&numbers.full, sum.full as u64);
                add(&numbers.refused, sum.refused as u64);
            }
        }
        caller.end();
        Ok(())
    }
}

/// Connected, so that the route is looked up once. What it answers is never read.
fn open_target(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(any_like(to))?;
    socket.connect(to)?;
    Ok(socket)
}
