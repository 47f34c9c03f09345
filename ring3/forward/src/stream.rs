// SPDX-License-Identifier: GPL-2.0
//! What is joined with one client's connection. See [`crate::tcp`].

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use rustix::event::epoll::EventFlags;

use crate::handler::About;
use crate::leaf::Name;
use crate::numbers::{add, Numbers};
use crate::tuning::{CHUNK, TURNS};
use crate::watchdog::Caller;

/// Which of a stream's descriptors has an event.
pub const KINDS: u64 = 2;
/// The client's, or the first target's.
const END: u64 = 0;
const OTHER: u64 = 1;

/// Its peer sees a reset when it is closed.
pub fn reset(stream: &TcpStream) {
    // It may be reset already.
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Until an event.
    Wait,
    Again,
    /// The client and the first target are done, others are not.
    Left,
    Done,
    Reset,
}

#[derive(Debug)]
pub struct Target {
    stream: TcpStream,
    /// Of the bytes that are kept, those it has.
    has: usize,
    /// It failed or was late, and is not the first.
    pub is_out: bool,
    /// It has ended its direction.
    is_quiet: bool,
    /// It knows that the client has ended its direction.
    is_told: bool,
}

/// One way: bytes that were read and not yet taken.
#[derive(Debug, Default)]
pub struct Lane {
    pub kept: Vec<u8>,
    /// Its sender has ended it.
    is_eof: bool,
    /// Its receivers know.
    is_over: bool,
}

/// The targets behind the first.
#[derive(Debug, Default)]
pub struct Others {
    pub targets: Vec<Target>,
    /// Bytes that they have taken of what was kept for them.
    pub given: u64,
    /// Until when they are waited for, and what they had when that began.
    pub until: Option<Instant>,
    pub had: u64,
}

#[derive(Debug)]
pub struct Stream {
    number: u64,
    name: Name,
    client: TcpStream,
    first: Target,
    pub others: Others,
    /// From the client to the targets.
    pub there: Lane,
    /// From the first target to the client; `has` of it.
    back: Lane,
    client_has: usize,
    /// The client's connection or the first target's has an error. Bytes that came before it are passed on
    /// first, if there is room for them at once: a reset drops the rest, as it does where client and target have one connection.
    is_failed: bool,
}

/// What is left of a stream whose client and first target are done.
#[derive(Debug)]
pub struct Rest(pub Others);

#[derive(Debug)]
pub enum Held {
    Stream(Box<Stream>),
    Rest(Rest),
}

impl Held {
    pub fn others(&mut self) -> &mut Others {
        match self {
            Held::Stream(stream) => &mut stream.others,
            Held::Rest(rest) => &mut rest.0,
        }
    }

    pub fn reset(mut self) {
        if let Held::Stream(stream) = &self {
            reset(&stream.client);
            reset(&stream.first.stream);
        }
        let others = self.others().targets.iter();
        others.for_each(|it| reset(&it.stream));
    }
}

impl Rest {
    pub fn pump(&mut self, chunk: &mut [u8]) -> Next {
        let next = self.0.hear(chunk);
        match self.0.tell() && self.0.are_over() {
            true => Next::Done,
            false => next,
        }
    }
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

impl Target {
    /// Tells it that the client has ended its direction; whether it knows. Linux gives a connection up that is
    /// shut down while it is being made: such a target is told when it is there, which is an event.
    fn tell(&mut self) -> bool {
        if !self.is_told {
            // One that has ended its direction was there, and may have reset since.
            self.is_told = self.is_quiet || self.stream.peer_addr().is_ok();
            if self.is_told {
                // One that is gone has nothing to hear.
                let _ = self.stream.shutdown(Shutdown::Write);
            }
        }
        self.is_told
    }

    fn is_behind(&self, kept: &[u8]) -> bool {
        !self.is_out && self.has < kept.len()
    }
}

impl Others {
    /// What they say is thrown away.
    fn hear(&mut self, chunk: &mut [u8]) -> Next {
        let mut next = Next::Wait;
        for target in &mut self.targets {
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

    /// Gives them what is kept; whether all have it.
    fn give(&mut self, kept: &[u8]) -> bool {
        for target in self.targets.iter_mut().filter(|it| !it.is_out) {
            match write(&target.stream, &kept[target.has..]) {
                Ok(bytes) => {
                    target.has += bytes;
                    self.given += bytes as u64;
                }
                Err(()) => target.is_out = true,
            }
        }
        !self.are_behind(kept)
    }

    /// Tells them of the client's end; whether all know.
    fn tell(&mut self) -> bool {
        let mut all_know = true;
        for target in self.targets.iter_mut().filter(|it| !it.is_out) {
            all_know &= target.tell();
        }
        all_know
    }

    fn are_over(&self) -> bool {
        self.targets.iter().all(|it| it.is_out || it.is_quiet)
    }

    fn are_behind(&self, kept: &[u8]) -> bool {
        self.targets.iter().any(|it| it.is_behind(kept))
    }
}

impl Stream {
    pub fn new(number: u64, client: TcpStream, name: Name, targets: Vec<TcpStream>) -> Stream {
        let target = |stream| Target {
            stream,
            has: 0,
            is_out: false,
            is_quiet: false,
            is_told: false,
        };
        let mut targets = targets.into_iter().map(target);
        Stream {
            number,
            name,
            client,
            first: targets
                .next()
                .expect("a target: forward() has at least one"),
            others: Others {
                targets: targets.collect(),
                ..Others::default()
            },
            there: Lane::default(),
            back: Lane::default(),
            client_has: 0,
            is_failed: false,
        }
    }

    pub fn sides(&self) -> impl Iterator<Item = (&TcpStream, u64)> {
        let ends = [(&self.client, END), (&self.first.stream, END)];
        let others = self.others.targets.iter();
        ends.into_iter().chain(others.map(|it| (&it.stream, OTHER)))
    }

    /// An event of one of its descriptors.
    pub fn note(&mut self, kind: u64, flags: EventFlags) {
        self.is_failed |= kind == END && flags.contains(EventFlags::ERR);
    }

    /// Whether targets behind the first keep all else waiting.
    pub fn is_late(&self) -> bool {
        self.others.are_behind(&self.there.kept)
    }

    pub fn leave_late_out(&mut self) {
        let kept = &self.there.kept;
        let others = self.others.targets.iter_mut();
        others
            .filter(|it| it.is_behind(kept))
            .for_each(|it| it.is_out = true);
    }

    pub fn pump(&mut self, caller: &mut Caller<'_>, chunk: &mut [u8], numbers: &Numbers) -> Next {
        let others = self.others.hear(chunk);
        let there = self.pump_there(caller, chunk, numbers);
        let back = match there {
            Next::Reset => Next::Reset,
            _ => self.pump_back(caller, chunk, numbers),
        };
        match (there, back) {
            (Next::Reset, _) | (_, Next::Reset) => Next::Reset,
            (Next::Again, _) | (_, Next::Again) => Next::Again,
            _ if self.is_failed => Next::Reset,
            _ if !self.first.is_told || !self.back.is_over => others,
            _ if self.there.is_over && self.others.are_over() => Next::Done,
            _ => Next::Left,
        }
    }

    /// Gives the targets what is kept; whether all have it. `Err`: the first failed.
    fn give(&mut self) -> Result<bool, ()> {
        let kept = &self.there.kept;
        self.first.has += write(&self.first.stream, &kept[self.first.has..])?;
        let have_all = self.others.give(kept) && self.first.has == kept.len();
        if have_all {
            self.there.kept = Vec::new();
            self.has_nothing_kept();
        }
        Ok(have_all)
    }

    fn has_nothing_kept(&mut self) {
        self.first.has = 0;
        self.others.targets.iter_mut().for_each(|it| it.has = 0);
    }

    fn pump_there(&mut self, caller: &mut Caller<'_>, chunk: &mut [u8], numbers: &Numbers) -> Next {
        for _ in 0..TURNS {
            match self.give() {
                Ok(true) => {}
                Ok(false) => return Next::Wait,
                Err(()) => return Next::Reset,
            }
            if self.there.is_eof {
                let (first, others) = (self.first.tell(), self.others.tell());
                self.there.is_over = first && others;
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
            let others = self.others.targets.iter_mut();
            for (number, target) in std::iter::once(&mut self.first).chain(others).enumerate() {
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
                false => self.has_nothing_kept(),
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
            let len = match outcome((&self.first.stream).read(&mut chunk[..CHUNK])) {
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
    use std::net::TcpListener;

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
        assert_eq!(stream.others.hear(&mut chunk), Next::Again);
        let left = stream.others.targets[0].stream.peek(&mut chunk);
        assert!(left.is_ok_and(|bytes| bytes > 0));
    }
}
