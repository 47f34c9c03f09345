// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: streams
//!
//! Each client's connection is joined with one to each target. The first target answers; what others answer is read and
//! thrown away, so that they can go on. A side that ends its direction ends that direction alone on the other side. A reset,
//! of the client or of the first target, resets all. A target behind the first that fails is left out from then on; one
//! that has not ended its direction when all else is over keeps its connection for LINGER: what it says to a closed one
//! would cost it the part of its copy that it has not taken.
//!
//! Events are edge-triggered. Each of a connection's descriptors leads to the same: all that can be moved is moved
//! ([`Stream::pump`]). An error is told by its event alone where a direction is over, or its reader waits: so the event is
//! kept in mind. Bytes are read into one buffer of the agent's; what the receivers do not take is kept with the stream,
//! and no more is read in that direction until they have it. That is the back-pressure.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{Error, Result};
use crate::handler::About;
use crate::leaf::Name;
use crate::numbers::{add, Numbers};
use crate::tuning::{ACCEPTS, BACKLOG, CHUNK, CHUNK_ROOM, EVENTS, LINGER, LOOK, STREAMS, TURNS};
use crate::watchdog::Caller;
use crate::Order;

/// Data of the listener's events.
const LISTENER: u64 = 0;
/// Data of a stream's events: its place, from 1 on, times KINDS, and which of its descriptors it is.
const KINDS: u64 = 2;
/// The client's, or the first target's.
const END: u64 = 0;
const OTHER: u64 = 1;

#[derive(Debug)]
pub struct Agent {
    listener: TcpListener,
    targets: Vec<SocketAddr>,
    events: OwnedFd,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    /// Streams that have more to do than one turn.
    again: VecDeque<usize>,
    /// Streams that are over but for targets behind the first: until when, place, and number, as places are used again.
    lingering: VecDeque<(Instant, usize, u64)>,
    /// Clients may wait for which there is no room.
    is_starved: bool,
    /// More clients may wait than have had their turn.
    has_clients: bool,
    /// It was said that descriptors are short.
    is_said: bool,
    say: fn(String),
    count: u64,
}

impl Agent {
    pub fn open(order: &Order, say: fn(String)) -> Result<Agent> {
        let at = order.listen;
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(at)?;
            // Again, for the backlog.
            rustix::net::listen(&listener, BACKLOG)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|why| Error::Listen { at, why })?;
        let watch = || -> io::Result<OwnedFd> {
            let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let data = EventData::new_u64(LISTENER);
            epoll::add(&events, &listener, data, EventFlags::IN | EventFlags::ET)?;
            Ok(events)
        };
        let events = watch().map_err(Error::host("watch sockets"))?;
        Ok(Agent {
            listener,
            targets: order.targets.clone(),
            events,
            streams: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            lingering: VecDeque::new(),
            is_starved: false,
            has_clients: false,
            is_said: false,
            say,
            count: 0,
        })
    }

    pub fn run(mut self, mut caller: Caller<'_>, numbers: &Numbers) -> Result<()> {
        let mut chunk = vec![0; CHUNK_ROOM];
        let mut news = Vec::with_capacity(EVENTS);
        let look = rustix::time::Timespec {
            tv_sec: LOOK.as_secs() as i64,
            tv_nsec: 0,
        };
        let now = rustix::time::Timespec::default();
        while !numbers.ends.load(Ordering::Acquire) {
            let timeout = match self.is_starved || !self.lingering.is_empty() {
                _ if self.has_clients || !self.again.is_empty() => Some(&now),
                true => Some(&look),
                false => None,
            };
            news.clear();
            let room = rustix::buffer::spare_capacity(&mut news);
            match epoll::wait(&self.events, room, timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(Error::host("wait for sockets")(why.into())),
            }
            let mut ready: Vec<usize> = self.again.drain(..).collect();
            let mut clients = self.is_starved || self.has_clients;
            for event in &news {
                let number = event.data.u64();
                if number == LISTENER {
                    clients = true;
                    continue;
                }
                let (at, is_end) = ((number / KINDS - 1) as usize, number % KINDS == END);
                ready.push(at);
                let flags = event.flags;
                if let (true, Some(Some(stream))) = (is_end, self.streams.get_mut(at)) {
                    stream.is_failed |= flags.contains(EventFlags::ERR);
                }
            }
            // A stream has several descriptors.
            ready.sort_unstable();
            ready.dedup();
            for at in ready {
                let Some(Some(stream)) = self.streams.get_mut(at) else {
                    continue;
                };
                match stream.pump(&mut caller, &mut chunk, numbers) {
                    Next::Wait => {}
                    Next::Linger => {
                        if !std::mem::replace(&mut stream.lingers, true) {
                            let until = Instant::now() + LINGER;
                            self.lingering.push_back((until, at, stream.number));
                        }
                    }
                    Next::Again => self.again.push_back(at),
                    Next::Done => self.remove(at, false),
                    Next::Reset => self.remove(at, true),
                }
            }
            self.end_lingering();
            if clients {
                self.accept_some(numbers)?;
            }
        }
        // A target would take the end of half a stream for the end of all of it.
        for at in 0..self.streams.len() {
            self.remove(at, true);
        }
        caller.end();
        Ok(())
    }

    fn remove(&mut self, at: usize, is_reset: bool) {
        if let Some(stream) = self.streams[at].take() {
            if is_reset {
                stream.reset();
            }
            self.free.push(at);
        }
    }

    /// Ends the streams whose LINGER is over.
    fn end_lingering(&mut self) {
        while let Some((until, at, number)) = self.lingering.front().copied() {
            let is_there = matches!(&self.streams[at], Some(stream) if stream.number == number);
            if is_there && until > Instant::now() {
                break;
            }
            self.lingering.pop_front();
            if is_there {
                self.remove(at, false);
            }
        }
    }

    fn accept_some(&mut self, numbers: &Numbers) -> Result<()> {
        (self.is_starved, self.has_clients) = (false, false);
        for _ in 0..ACCEPTS {
            if self.streams.len() - self.free.len() >= STREAMS {
                self.starve(&format!(
                    "{STREAMS} connections are as many as it has at one time"
                ));
                return Ok(());
            }
            match self.listener.accept() {
                Ok((client, from)) => {
                    add(&numbers.streams, 1);
                    if let Err(why) = self.join(client, from) {
                        // The client sees a reset, as where nobody listens.
                        add(&numbers.refused, 1);
                        if is_shortage(&why) {
                            self.starve(&why.to_string());
                            return Ok(());
                        }
                    }
                }
                Err(why) => match why.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    _ if is_shortage(&why) => {
                        self.starve(&why.to_string());
                        return Ok(());
                    }
                    _ => return Err(Error::host("accept connections")(why)),
                },
            }
        }
        // Others have their turn first.
        self.has_clients = true;
        Ok(())
    }

    /// The clients that wait are looked at later.
    fn starve(&mut self, why: &str) {
        self.is_starved = true;
        if !self.is_said {
            self.is_said = true;
            (self.say)(format!(
                "clients wait, or are reset, until others have gone: {why}"
            ));
        }
    }

    fn join(&mut self, client: TcpStream, from: SocketAddr) -> io::Result<()> {
        let prepare = || -> io::Result<Vec<TcpStream>> {
            client.set_nonblocking(true)?;
            client.set_nodelay(true)?;
            self.targets.iter().map(|to| connect(*to)).collect()
        };
        let targets = match prepare() {
            Ok(targets) => targets,
            Err(why) => {
                reset(&client);
                return Err(why);
            }
        };
        self.count += 1;
        let stream = Stream::new(self.count, client, Name::of(from), targets);
        let at = self.free.pop().unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = |kind| EventData::new_u64((at as u64 + 1) * KINDS + kind);
        let mut watched = epoll::add(&self.events, &stream.client, data(END), flags);
        for (number, target) in stream.targets.iter().enumerate() {
            let kind = if number == 0 { END } else { OTHER };
            let add = || epoll::add(&self.events, &target.stream, data(kind), flags);
            watched = watched.and_then(|()| add());
        }
        if let Err(why) = watched {
            stream.reset();
            self.free.push(at);
            return Err(why.into());
        }
        self.streams[at] = Some(stream);
        // What came before it was watched.
        self.again.push_back(at);
        Ok(())
    }
}

/// Descriptors or memory: others end, and it is tried anew.
fn is_shortage(why: &io::Error) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    why.raw_os_error().is_some_and(|why| short.contains(&why))
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(why) => return Err(why.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Its peer sees a reset when it is closed.
fn reset(stream: &TcpStream) {
    // It may be reset already.
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Until an event.
    Wait,
    /// Until targets behind the first have ended their directions, LINGER at most.
    Linger,
    Again,
    Done,
    Reset,
}

#[derive(Debug)]
struct Target {
    stream: TcpStream,
    /// Of the bytes that are kept, those it has.
    has: usize,
    /// It failed, and is not the first.
    is_out: bool,
    /// It has ended its direction.
    is_quiet: bool,
    /// It knows that the client has ended its direction.
    is_told: bool,
}

/// One way: bytes that were read and not yet taken.
#[derive(Debug, Default)]
struct Lane {
    kept: Vec<u8>,
    /// Its sender has ended it.
    is_eof: bool,
    /// Its receivers know.
    is_over: bool,
}

#[derive(Debug)]
struct Stream {
    number: u64,
    name: Name,
    client: TcpStream,
    targets: Vec<Target>,
    /// From the client to the targets.
    there: Lane,
    /// From the first target to the client; `has` of it.
    back: Lane,
    client_has: usize,
    /// The client's connection or the first target's has an error. Bytes that came before it are passed on
    /// first, if there is room for them at once: a reset drops the rest, as it does where client and target have one connection.
    is_failed: bool,
    /// All is over but for targets behind the first.
    lingers: bool,
}

/// What a call on a nonblocking socket came to.
enum Moved {
    Bytes(usize),
    End,
    Wait,
    Failed,
}

fn outcome(done: io::Result<usize>) -> Moved {
    match done {
        Ok(0) => Moved::End,
        Ok(bytes) => Moved::Bytes(bytes),
        Err(why) if why.kind() == io::ErrorKind::WouldBlock => Moved::Wait,
        Err(why) if why.kind() == io::ErrorKind::Interrupted => Moved::Bytes(0),
        Err(_) => Moved::Failed,
    }
}

/// Writes until nothing is left or no more is taken; how many bytes. `Err`: the connection failed.
fn write(mut stream: &TcpStream, bytes: &[u8]) -> Result<usize, ()> {
    let mut at = 0;
    while at < bytes.len() {
        match outcome(stream.write(&bytes[at..])) {
            Moved::Bytes(more) => at += more,
            Moved::Wait => break,
            Moved::End | Moved::Failed => return Err(()),
        }
    }
    Ok(at)
}

impl Stream {
    fn new(number: u64, client: TcpStream, name: Name, targets: Vec<TcpStream>) -> Stream {
        let target = |stream| Target {
            stream,
            has: 0,
            is_out: false,
            is_quiet: false,
            is_told: false,
        };
        Stream {
            number,
            name,
            client,
            targets: targets.into_iter().map(target).collect(),
            there: Lane::default(),
            back: Lane::default(),
            client_has: 0,
            is_failed: false,
            lingers: false,
        }
    }

    fn reset(self) {
        reset(&self.client);
        self.targets.iter().for_each(|it| reset(&it.stream));
    }

    fn pump(&mut self, caller: &mut Caller<'_>, chunk: &mut [u8], numbers: &Numbers) -> Next {
        let others = self.hear_others(chunk);
        let there = self.pump_there(caller, chunk, numbers);
        let back = match there {
            Next::Reset => Next::Reset,
            _ => self.pump_back(caller, chunk, numbers),
        };
        match (there, back) {
            (Next::Reset, _) | (_, Next::Reset) => Next::Reset,
            (Next::Again, _) | (_, Next::Again) => Next::Again,
            _ if self.is_failed && !self.lingers => Next::Reset,
            _ if !self.there.is_over || !self.back.is_over => others,
            _ if others == Next::Again => Next::Again,
            _ if self.others_are_over() => Next::Done,
            _ => Next::Linger,
        }
    }

    /// What targets behind the first say is thrown away.
    fn hear_others(&mut self, chunk: &mut [u8]) -> Next {
        let mut next = Next::Wait;
        for target in self.targets.iter_mut().skip(1) {
            let mut turns = TURNS;
            while !target.is_out && !target.is_quiet {
                if turns == 0 {
                    next = Next::Again;
                    break;
                }
                turns -= 1;
                match outcome((&target.stream).read(chunk)) {
                    Moved::Bytes(_) => {}
                    Moved::Wait => break,
                    Moved::End => target.is_quiet = true,
                    Moved::Failed => target.is_out = true,
                }
            }
        }
        next
    }

    fn others_are_over(&self) -> bool {
        self.targets[1..].iter().all(|it| it.is_out || it.is_quiet)
    }

    /// Tells the targets that the client has ended its direction; whether all know. Linux gives a connection up that is
    /// shut down while it is being made: such a target is told when it is there, which is an event.
    fn tell_end(&mut self) -> bool {
        for target in &mut self.targets {
            if target.is_out || target.is_told {
                continue;
            }
            // One that has ended its direction was there, and may have reset since.
            target.is_told = target.is_quiet || target.stream.peer_addr().is_ok();
            if target.is_told {
                // One that is gone has nothing to hear.
                let _ = target.stream.shutdown(Shutdown::Write);
            }
        }
        self.targets.iter().all(|it| it.is_out || it.is_told)
    }

    /// Gives the targets what is kept; whether all have it. `Err`: the first failed.
    fn give(&mut self) -> Result<bool, ()> {
        let len = self.there.kept.len();
        let mut have_all = true;
        for (number, target) in self.targets.iter_mut().enumerate() {
            if target.is_out {
                continue;
            }
            match write(&target.stream, &self.there.kept[target.has..]) {
                Ok(bytes) => target.has += bytes,
                Err(()) if number == 0 => return Err(()),
                Err(()) => target.is_out = true,
            }
            have_all &= target.is_out || target.has == len;
        }
        if have_all {
            self.there.kept = Vec::new();
            self.targets.iter_mut().for_each(|it| it.has = 0);
        }
        Ok(have_all)
    }

    fn pump_there(&mut self, caller: &mut Caller<'_>, chunk: &mut [u8], numbers: &Numbers) -> Next {
        for _ in 0..TURNS {
            match self.give() {
                Ok(true) => {}
                Ok(false) => return Next::Wait,
                Err(()) => return Next::Reset,
            }
            if self.there.is_eof {
                self.there.is_over = self.there.is_over || self.tell_end();
                return Next::Wait;
            }
            let len = match outcome((&self.client).read(&mut chunk[..CHUNK])) {
                Moved::Bytes(0) => continue,
                Moved::Bytes(len) => len,
                Moved::Wait => return Next::Wait,
                Moved::End => {
                    self.there.is_eof = true;
                    continue;
                }
                Moved::Failed => return Next::Reset,
            };
            add(&numbers.received, 1);
            let Some((targets, len)) = caller.ask(chunk, len, self.about(false)) else {
                return Next::Reset;
            };
            let mut is_kept = false;
            for (number, target) in self.targets.iter_mut().enumerate() {
                target.has = len;
                if target.is_out || targets >> number & 1 == 0 {
                    continue;
                }
                add(&numbers.sent, 1);
                match write(&target.stream, &chunk[..len]) {
                    Ok(bytes) => {
                        target.has = bytes;
                        is_kept |= bytes < len;
                    }
                    Err(()) if number == 0 => return Next::Reset,
                    Err(()) => target.is_out = true,
                }
            }
            match is_kept {
                true => self.there.kept = chunk[..len].to_vec(),
                false => self.targets.iter_mut().for_each(|it| it.has = 0),
            }
        }
        Next::Again
    }

    fn pump_back(&mut self, caller: &mut Caller<'_>, chunk: &mut [u8], numbers: &Numbers) -> Next {
        for _ in 0..TURNS {
            match write(&self.client, &self.back.kept[self.client_has..]) {
                Ok(bytes) => self.client_has += bytes,
                Err(()) => return Next::Reset,
            }
            if self.client_has < self.back.kept.len() {
                return Next::Wait;
            }
            (self.back.kept, self.client_has) = (Vec::new(), 0);
            if self.back.is_eof {
                if !self.back.is_over {
                    self.back.is_over = true;
                    // A client that is gone has nothing to hear.
                    let _ = self.client.shutdown(Shutdown::Write);
                }
                return Next::Wait;
            }
            let first = &self.targets[0].stream;
            let len = match outcome({ first }.read(&mut chunk[..CHUNK])) {
                Moved::Bytes(0) => continue,
                Moved::Bytes(len) => len,
                Moved::Wait => return Next::Wait,
                Moved::End => {
                    self.back.is_eof = true;
                    continue;
                }
                Moved::Failed => return Next::Reset,
            };
            add(&numbers.received, 1);
            let Some((targets, len)) = caller.ask(chunk, len, self.about(true)) else {
                return Next::Reset;
            };
            if targets == 0 {
                continue;
            }
            add(&numbers.sent, 1);
            match write(&self.client, &chunk[..len]) {
                Ok(bytes) => self.back.kept = chunk[bytes..len].to_vec(),
                Err(()) => return Next::Reset,
            }
        }
        Next::Again
    }

    fn about(&self, is_back: bool) -> About<'_> {
        About {
            stream: self.number,
            is_back,
            from: &self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    /// One that always has more to say does not keep the agent from other streams.
    #[test]
    fn a_target_behind_the_first_has_its_turn_as_others() {
        let ((client, _near), (first, _far), (second, mut talker)) = (pair(), pair(), pair());
        second.set_nonblocking(true).unwrap();
        let mut chunk = [0; 1024];
        let words = [0; 2 * TURNS * 1024];
        talker.write_all(&words).unwrap();
        while rustix::io::ioctl_fionread(&second).unwrap() < words.len() as u64 {
            std::thread::yield_now();
        }
        let mut stream = Stream::new(1, client, Name::none(), vec![first, second]);
        assert_eq!(stream.hear_others(&mut chunk), Next::Again);
        let left = stream.targets[1].stream.peek(&mut chunk);
        assert!(left.is_ok_and(|bytes| bytes > 0));
    }
}
