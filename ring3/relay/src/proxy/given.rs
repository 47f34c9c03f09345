// SPDX-License-Identifier: GPL-2.0
//! What the supervisor gives: a target's socket, its place on another node, or nothing; and what becomes of it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use ring3_node::Errno;

use super::engine::{About, Engine, Entry, Joint};
use super::opening::{Opening, Stage};
use super::wire::{Ask, End, FromRelay, TargetId};
use crate::slab::{Key, Side};

impl Engine {
    /// The opening has become a stream.
    pub fn join(&mut self, key: Key, opening: Opening) {
        let about = About {
            listen: opening.listen.clone(),
            client: opening.client,
            target: None,
            source: opening.source,
            since: opening.since,
        };
        let Some((stream, target)) = opening.into_stream() else {
            return;
        };
        self.openings -= 1;
        self.streams += 1;
        let joint = Joint {
            held: stream.held(),
            stream,
            about: About {
                target: Some(target),
                ..about
            },
            last: Instant::now(),
        };
        self.held += joint.held;
        self.entries.put(key, Entry::Joint(Box::new(joint)));
        self.go_on(key, Side::Node);
    }

    /// The supervisor gives a socket, or says where on another node the target is.
    pub fn take(
        &mut self,
        ask: Ask,
        target: TargetId,
        fd: Option<OwnedFd>,
        node: Option<(usize, SocketAddr)>,
    ) {
        let (key, _) = Key::of(ask);
        match self.entries.get_mut(key) {
            Some(Entry::Opening(opening)) if matches!(opening.stage, Stage::Asked) => {}
            Some(Entry::Course(course)) if course.flow.is_none() => {
                return self.begin_flow(key, target, fd);
            }
            // The client has gone meanwhile.
            _ => return self.say(FromRelay::Unused { ask, target }),
        }
        let data = key.data(Side::Host);
        let far = match (fd, node) {
            (Some(fd), _) => self.feed.add_host(&fd, data).map(|()| fd.into()),
            (None, Some((at, to))) => self.others.connect(at, to, data),
            // This process has no room for it.
            (None, None) => Err(Errno(libc::EMFILE)),
        };
        let Some(Entry::Opening(opening)) = self.entries.get_mut(key) else {
            return;
        };
        match far {
            Ok(far) => {
                opening.stage = Stage::Connecting {
                    far,
                    target,
                    since: Instant::now(),
                };
            }
            Err(Errno(libc::EMFILE)) => {
                self.say(FromRelay::Unused { ask, target });
                self.end(key, End::Full);
            }
            Err(_) => {
                opening.tried.push(target);
                self.ask(key);
            }
        }
    }

    pub fn nothing(&mut self, ask: Ask) {
        let (key, _) = Key::of(ask);
        match self.entries.get_mut(key) {
            Some(Entry::Opening(opening)) if matches!(opening.stage, Stage::Asked) => {}
            Some(Entry::Course(course)) if course.flow.is_none() => {}
            _ => return,
        }
        self.end(key, End::NoTarget);
    }
}
