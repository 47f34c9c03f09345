// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a connection that begins
//!
//! ```text
//! header      the client is to say who it is (PROXY protocol)                    -> asked
//! asked       the supervisor is to give a socket that connects to a target       -> connecting, or the client is reset
//! connecting  the target has not answered                                        -> a stream; asked, if it fails
//! ```
//!
//! Meanwhile the client's bytes wait in its own socket, but for those that came with the header.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use super::header::{self, Parsed};
use super::sources::Source;
use super::wire::{Listen, TargetId};
use crate::far::Far;
use crate::stream::Stream;
use crate::tuning::HEADER_PATIENCE;

#[derive(Debug)]
pub struct Opening {
    pub fd: Fd,
    pub listen: Rc<Listen>,
    /// Who is at the other end, and which address it called.
    pub peer: SocketAddr,
    pub here: SocketAddr,
    /// The same as the client's header has it.
    pub client: SocketAddr,
    pub called: SocketAddr,
    /// Whose limits it counts for; `None`: not counted yet.
    pub source: Option<Source>,
    pub since: Instant,
    pub stage: Stage,
    pub tried: Vec<TargetId>,
    /// What came with the header, or a part of that.
    head: Vec<u8>,
}

#[derive(Debug)]
pub enum Stage {
    Header,
    Asked,
    Connecting {
        far: Far,
        target: TargetId,
        since: Instant,
    },
}

/// What an event makes of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Wait,
    /// The header is there.
    Named,
    /// The target has answered.
    Made,
    /// The target has not.
    Failed(i32),
    ClientGone,
    BadHeader,
}

impl Opening {
    pub fn new(fd: Fd, listen: Rc<Listen>, peer: SocketAddr, here: SocketAddr) -> Opening {
        let stage = match listen.proxy_in {
            true => Stage::Header,
            false => Stage::Asked,
        };
        Opening {
            fd,
            listen,
            peer,
            here,
            client: peer,
            called: here,
            source: None,
            since: Instant::now(),
            stage,
            tried: Vec::new(),
            head: Vec::new(),
        }
    }

    /// Something has happened on the client's side.
    pub fn on_client(&mut self, task: &mut Task, events: u32) -> Step {
        if events & (libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0 {
            return Step::ClientGone;
        }
        match self.stage {
            Stage::Header => self.read_header(task),
            _ => Step::Wait,
        }
    }

    fn read_header(&mut self, task: &mut Task) -> Step {
        let mut part = [0; header::HEADER_MAX];
        loop {
            match task.recv(self.fd, &mut part) {
                Ok(0) => return Step::BadHeader,
                Ok(len) => self.head.extend_from_slice(&part[..len]),
                Err(Errno(libc::EAGAIN)) => return Step::Wait,
                Err(Errno(libc::EINTR)) => continue,
                Err(_) => return Step::ClientGone,
            }
            match header::parse(&self.head) {
                Parsed::More if self.head.len() < header::HEADER_MAX => {}
                Parsed::More | Parsed::Bad => return Step::BadHeader,
                Parsed::Header(len, pair) => {
                    self.head.drain(..len);
                    (self.client, self.called) = pair.unwrap_or((self.peer, self.here));
                    self.stage = Stage::Asked;
                    return Step::Named;
                }
            }
        }
    }

    /// Something has happened on the target's side.
    pub fn on_target(&mut self, events: u32) -> Step {
        let Stage::Connecting { far, .. } = &self.stage else {
            return Step::Wait;
        };
        match far.take_error() {
            Ok(0) if events & libc::EPOLLOUT as u32 != 0 => Step::Made,
            Ok(0) => Step::Wait,
            Ok(error) | Err(Errno(error)) => Step::Failed(error),
        }
    }

    /// Whether it has waited for too long.
    pub fn is_late(&self, now: Instant) -> Step {
        match &self.stage {
            Stage::Header if now.duration_since(self.since) > HEADER_PATIENCE => Step::BadHeader,
            Stage::Connecting { since, .. }
                if now.duration_since(*since) > Duration::from_millis(self.listen.connect_ms) =>
            {
                Step::Failed(libc::ETIMEDOUT)
            }
            _ => Step::Wait,
        }
    }

    /// The stream that it has become, and its target.
    pub fn into_stream(self) -> Option<(Stream, TargetId)> {
        let Stage::Connecting { far, target, .. } = self.stage else {
            return None;
        };
        let mut first = match self.listen.proxy_out {
            Some(version) => header::make(version, (self.client, self.called)),
            None => Vec::new(),
        };
        first.extend(self.head);
        Some((Stream::new(self.fd, far, None).with_start(first), target))
    }
}
