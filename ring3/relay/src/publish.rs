// SPDX-License-Identifier: GPL-2.0
//! How connections and flows from outside begin: a client of a published port.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use ring3_node::Errno;
use rustix::net::{sockopt, RecvFlags, SocketFlags};

use crate::door::Door;
use crate::engine::{Engine, Entry};
use crate::flow::HostEnd;
use crate::guests::Guest;
use crate::route::Refusal;
use crate::slab::{Key, Side};
use crate::sockets::ask_for_life;
use crate::stream::{Next, Stream};
use crate::tuning::DATAGRAMS;

impl Engine {
    /// Those who wait at a published port.
    pub fn take_clients(&mut self, door: &Rc<Door>) -> Next {
        for _ in 0..DATAGRAMS {
            let taken = match door.is_stream {
                true => self.take_connection(door),
                false => self.take_datagram(door),
            };
            match taken {
                Ok(()) | Err(rustix::io::Errno::CONNABORTED | rustix::io::Errno::INTR) => {}
                // Nobody is left; or no descriptor is, and the next sweep looks again.
                Err(_) => return Next::Wait,
            }
        }
        Next::Again
    }

    fn take_connection(&mut self, door: &Door) -> rustix::io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (host, client) = rustix::net::acceptfrom_with(&door.socket, flags)?;
        let client = client.and_then(|it| SocketAddr::try_from(it).ok());
        let Some(client) = client else { return Ok(()) };
        let Some(guest) = self.streams.enter(client.ip()) else {
            self.refusals.say("tcp from", client, Refusal::Full);
            let _ = sockopt::set_socket_linger(&host, Some(Duration::ZERO));
            return Ok(());
        };
        if let Err((host, why)) = self.let_in(host, client, door.to, guest) {
            log::debug!("a client of port {} was not let in: {why}", door.to);
            self.streams.leave(guest);
            let _ = sockopt::set_socket_linger(&host, Some(Duration::ZERO));
        }
        Ok(())
    }

    fn let_in(
        &mut self,
        host: OwnedFd,
        client: SocketAddr,
        port: u16,
        guest: Guest,
    ) -> Result<(), (OwnedFd, Errno)> {
        let begin = |engine: &mut Engine| {
            let (to, name) = engine
                .ends
                .lead(client, port)
                .ok_or(Errno(libc::EADDRNOTAVAIL))?;
            let node = match engine.speaker(libc::SOCK_STREAM, name, to) {
                // An earlier connection of this client's is not over yet here.
                Err(Errno(libc::EADDRINUSE | libc::EADDRNOTAVAIL)) => {
                    let name = SocketAddr::new(name.ip(), 0);
                    engine.speaker(libc::SOCK_STREAM, name, to)?
                }
                made => made?,
            };
            let Some(key) = engine.entries.reserve() else {
                return engine.task.close(node).and(Err(Errno(libc::EMFILE)));
            };
            if let Err(why) = engine.watch(key, node, &host) {
                engine.entries.give_back(key);
                return engine.task.close(node).and(Err(why));
            }
            let _ = ask_for_life(&host);
            let nodelay = libc::TCP_NODELAY;
            let _ = engine.task.set_option(node, libc::IPPROTO_TCP, nodelay, 1);
            Ok((key, node))
        };
        match begin(self) {
            Ok((key, node)) => {
                let mut stream = Stream::new(node, host, Some(Side::Node));
                stream.guest = Some(guest);
                self.entries.put(key, Entry::Stream(stream));
                Ok(())
            }
            Err(why) => Err((host, why)),
        }
    }

    fn take_datagram(&mut self, door: &Rc<Door>) -> rustix::io::Result<()> {
        let (len, _, client) =
            rustix::net::recvfrom(&door.socket, &mut self.chunk[..], RecvFlags::DONTWAIT)?;
        let client = client.and_then(|it| SocketAddr::try_from(it).ok());
        let Some(client) = client else { return Ok(()) };
        let key = match self.begin_guest(door, client) {
            Ok(key) => key,
            Err(why) => {
                log::debug!("a client of port {} was not let in: {why}", door.to);
                return Ok(());
            }
        };
        if let Some(Entry::Flow(flow)) = self.entries.get_mut(key) {
            flow.send_in(&mut self.task, &self.chunk[..len]);
        }
        Ok(())
    }

    /// The client's flow, which there may be already.
    fn begin_guest(&mut self, door: &Rc<Door>, client: SocketAddr) -> Result<Key, Errno> {
        let nobody = Errno(libc::EADDRNOTAVAIL);
        let (to, name) = self.ends.lead(client, door.to).ok_or(nobody)?;
        let ends = (client, to);
        if let Some(key) = self.guests.get(&ends) {
            return Ok(*key);
        }
        self.make_room(true);
        let node = self.speaker(libc::SOCK_DGRAM, name, to)?;
        let key = self.new_flow(node, HostEnd::Shared(door.clone(), client), ends)?;
        self.guests.insert(ends, key);
        Ok(key)
    }
}
