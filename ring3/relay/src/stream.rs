// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: one connection
//!
//! Each way has one state:
//!
//! ```text
//! reads      nothing is left over: bytes go from one socket to the other          -> left over, ended
//! left over  what the other socket did not take; nothing more is read until it did -> reads
//! ended      the one side has said its last byte; when nothing is left over, the other hears it (shutdown) -> closed
//! closed     over. Both ways closed: the connection is over
//! ```
//!
//! So what the relay holds of a way is one chunk at most, and a receiver that does not read stops the sender by TCP's own window.
//! Where all connections together hold too much, a connection looks at bytes without taking them (MSG_PEEK), and takes what the other
//! socket took: then it holds nothing, for the price of reading twice. A reset or another error of one side resets the
//! other (SO_LINGER 0).

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use crate::far::Far;
use crate::frames::{Frames, WAITING_MAX};
use crate::guests::Guest;
use crate::names::Names;
use crate::slab::Side;
use crate::tuning::{CHUNK_SMALL, TURNS};

/// What to do with the connection next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something happens.
    Wait,
    /// There is more to do: others first.
    Again,
    /// Both ways are over.
    End,
    /// One side has failed.
    Reset,
}

/// What a side had to read.
enum Taken {
    Bytes(usize),
    /// Its last byte has been read.
    End,
    NotYet,
}

/// What a socket is known to be ready for, since the last edge.
#[derive(Debug, Default, Clone, Copy)]
struct Ready {
    read: bool,
    write: bool,
}

#[derive(Debug, Default)]
struct Way {
    left: Vec<u8>,
    /// How much of `left` has been sent.
    sent: usize,
    ended: bool,
    closed: bool,
}

#[derive(Debug)]
pub struct Stream {
    pub node: Fd,
    pub host: Far,
    /// The side whose connect() has not been answered yet.
    pub waits_for: Option<Side>,
    /// Who began it, from outside.
    pub guest: Option<Guest>,
    /// The resolver is asked over it, and rules say for which names.
    pub frames: Option<Box<Frames>>,
    /// Bytes passed on, by the side that they came from.
    pub passed: [u64; 2],
    ready: [Ready; 2],
    /// By the side that they come from.
    ways: [Way; 2],
}

impl Stream {
    pub fn new(node: Fd, host: impl Into<Far>, waits_for: Option<Side>) -> Stream {
        Stream {
            node,
            host: host.into(),
            waits_for,
            guest: None,
            frames: None,
            passed: [0; 2],
            ready: [Ready::default(); 2],
            ways: Default::default(),
        }
    }

    /// With a host's socket whose events have been taken already: it is ready until it says otherwise.
    pub fn with_ready_host(mut self) -> Stream {
        self.ready[Side::Host as usize] = Ready {
            read: true,
            write: true,
        };
        self
    }

    /// With sockets whose events have been taken already, and bytes that the host's half hears first.
    pub fn with_start(mut self, first: Vec<u8>) -> Stream {
        let all = Ready {
            read: true,
            write: true,
        };
        self.ready = [all; 2];
        self.ways[Side::Node as usize].left = first;
        self
    }

    /// Bytes that one side has not taken.
    pub fn held(&self) -> usize {
        self.ways.iter().map(|way| way.left.len()).sum()
    }

    /// Takes an event of one side in.
    pub fn on_event(&mut self, task: &mut Task, side: Side, events: u32) -> Result<(), Errno> {
        let has = |bits: i32| events & bits as u32 != 0;
        let over = has(libc::EPOLLHUP | libc::EPOLLERR);
        let ready = &mut self.ready[side as usize];
        ready.read |= over || has(libc::EPOLLIN | libc::EPOLLRDHUP);
        ready.write |= over || has(libc::EPOLLOUT);
        if has(libc::EPOLLERR) {
            let error = match side {
                Side::Node => task.take_error(self.node)?,
                Side::Host => self.host.take_error()?,
            };
            if error != 0 {
                return Err(Errno(error));
            }
        }
        if self.waits_for == Some(side) && has(libc::EPOLLOUT) {
            self.waits_for = None;
        }
        Ok(())
    }

    /// Passes on what there is. `may_hold`: what the other side does not take may be left over. `names` are those of
    /// `frames`.
    pub fn pump(
        &mut self,
        task: &mut Task,
        chunk: &mut [u8],
        may_hold: bool,
        names: &mut Names,
    ) -> Next {
        if self.waits_for.is_some() {
            return Next::Wait;
        }
        let mut next = Next::Wait;
        for side in [Side::Node, Side::Host] {
            let passed = match self.frames.is_some() {
                true => self.one_way_in_frames(task, side, chunk, names),
                false => self.one_way(task, side, chunk, may_hold),
            };
            match passed {
                Ok(true) => next = Next::Again,
                Ok(false) => {}
                Err(_) => return Next::Reset,
            }
        }
        if self.ways.iter().all(|way| way.closed) {
            return Next::End;
        }
        next
    }

    /// True: there is more.
    fn one_way(
        &mut self,
        task: &mut Task,
        from: Side,
        chunk: &mut [u8],
        may_hold: bool,
    ) -> Result<bool, Errno> {
        let (way, to) = (from as usize, from.other());
        for _ in 0..TURNS {
            if !self.may_read(task, from)? || !self.ready[to as usize].write {
                return Ok(false);
            }
            let flags = if may_hold { 0 } else { libc::MSG_PEEK };
            let len = match self.take(task, from, chunk, flags)? {
                Taken::Bytes(len) => len,
                Taken::End => continue,
                Taken::NotYet => return Ok(false),
            };
            let sent = self.send(task, to, &chunk[..len])?;
            if !may_hold {
                // Nobody else takes anything of what was looked at; less would be passed on twice.
                if self.recv(task, from, &mut chunk[..sent], 0)? != sent {
                    return Err(Errno(libc::EIO));
                }
            } else if sent < len {
                self.ways[way].left = chunk[sent..len].to_vec();
                self.ways[way].sent = 0;
            }
        }
        Ok(true)
    }

    /// Sends what is left over, or the end. Whether something may be there to read.
    fn may_read(&mut self, task: &mut Task, from: Side) -> Result<bool, Errno> {
        let way = from as usize;
        if self.ways[way].closed {
            return Ok(false);
        }
        if !self.ways[way].left.is_empty() {
            self.send_left(task, from)?;
            if !self.ways[way].left.is_empty() {
                return Ok(false);
            }
        }
        if self.ways[way].ended {
            self.ways[way].closed = true;
            self.shut_down(task, from.other())?;
            return Ok(false);
        }
        Ok(self.ready[way].read)
    }

    /// The same for messages to and from the resolver. True: there is more.
    fn one_way_in_frames(
        &mut self,
        task: &mut Task,
        from: Side,
        chunk: &mut [u8],
        names: &mut Names,
    ) -> Result<bool, Errno> {
        let (way, back) = (from as usize, from.other() as usize);
        let chunk = &mut chunk[..CHUNK_SMALL];
        for _ in 0..TURNS {
            if !self.may_read(task, from)? {
                return Ok(false);
            }
            // Answers that the asker does not read; the other way, which comes after this one or before, sends them.
            if self.ways[back].left.len() > WAITING_MAX {
                return Ok(self.ready[way].write);
            }
            let len = match self.take(task, from, chunk, 0)? {
                Taken::Bytes(len) => len,
                Taken::End => continue,
                Taken::NotYet => return Ok(false),
            };
            let Some(frames) = &mut self.frames else {
                return Ok(false);
            };
            let [on, answers] = frames.take(names, from, &chunk[..len]);
            self.ways[way].left.extend(on);
            if !self.ways[back].closed {
                self.ways[back].left.extend(answers);
            }
        }
        Ok(true)
    }

    fn send_left(&mut self, task: &mut Task, from: Side) -> Result<(), Errno> {
        let to = from.other();
        if !self.ready[to as usize].write {
            return Ok(());
        }
        let mut way = std::mem::take(&mut self.ways[from as usize]);
        let sent = self.send(task, to, &way.left[way.sent..]);
        way.sent += *sent.as_ref().unwrap_or(&0);
        if way.sent == way.left.len() {
            (way.left, way.sent) = (Vec::new(), 0);
        }
        self.ways[from as usize] = way;
        sent.map(drop)
    }

    /// [`Self::recv`], which remembers a side's last byte and that it has nothing to read now.
    fn take(
        &mut self,
        task: &mut Task,
        from: Side,
        chunk: &mut [u8],
        flags: i32,
    ) -> Result<Taken, Errno> {
        match self.recv(task, from, chunk, flags) {
            Ok(0) => {
                self.ways[from as usize].ended = true;
                Ok(Taken::End)
            }
            Ok(len) => Ok(Taken::Bytes(len)),
            Err(Errno(libc::EAGAIN)) => {
                self.ready[from as usize].read = false;
                Ok(Taken::NotYet)
            }
            Err(why) => Err(why),
        }
    }

    fn recv(
        &self,
        task: &mut Task,
        from: Side,
        chunk: &mut [u8],
        flags: i32,
    ) -> Result<usize, Errno> {
        if chunk.is_empty() {
            return Ok(0);
        }
        match from {
            Side::Node => task.recv_with(self.node, chunk, flags),
            Side::Host => self.host.recv(chunk, flags),
        }
    }

    /// How much of it was taken; with less than all the side is not ready any more.
    fn send(&mut self, task: &mut Task, to: Side, data: &[u8]) -> Result<usize, Errno> {
        let sent = match to {
            Side::Node => task.send(self.node, data),
            Side::Host => self.host.send(data),
        };
        let sent = match sent {
            Err(Errno(libc::EAGAIN)) => 0,
            sent => sent?,
        };
        if sent < data.len() {
            self.ready[to as usize].write = false;
        }
        self.passed[to.other() as usize] += sent as u64;
        Ok(sent)
    }

    fn shut_down(&self, task: &mut Task, to: Side) -> Result<(), Errno> {
        match to {
            Side::Node => task.shut_down_writing(self.node),
            Side::Host => self.host.shut_down_writing(),
        }
    }

    /// Both sides hear a reset.
    pub fn reset(self, task: &mut Task) {
        // Whatever fails here has gone already.
        let _ = task.reset_at_close(self.node);
        let _ = task.close(self.node);
        self.host.reset_at_close();
    }

    pub fn end(self, task: &mut Task) {
        let _ = task.close(self.node);
    }
}
