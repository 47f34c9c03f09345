// SPDX-License-Identifier: GPL-2.0
//! The loop of a proxy's relay: who an event is for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ring3_node::task::{Fd, Task};

use super::opening::Opening;
use super::others::Others;
use super::sources::{Source, Sources};
use super::tally::Tally;
use super::wire::{Broken, End, FromRelay, Line, Listen, ListenerId, TargetId, ToRelay};
use crate::error::{Error, Result};
use crate::feed::{Feed, News};
use crate::flow::{Flow, Out};
use crate::names::Names;
use crate::slab::{Key, Side, Slab};
use crate::stream::{Next, Stream};
use crate::tuning::{BYTES_TURN, CHUNK, CHUNK_SMALL, HELD_BYTES, OPENINGS_TURN, SWEEP};

/// Data of the engine's own descriptor: generation 0.
const LINE: u64 = 0;

/// Where clients come.
#[derive(Debug)]
pub struct Listening {
    pub fd: Fd,
    pub listen: Rc<Listen>,
}

/// A connection with both halves.
#[derive(Debug)]
pub struct Joint {
    pub stream: Stream,
    pub about: About,
    /// Bytes that it holds, as `held` of the engine has them.
    pub held: usize,
    pub last: Instant,
}

/// A flow of datagrams; without its target's socket it has those that wait.
#[derive(Debug)]
pub struct Course {
    pub flow: Option<Flow>,
    pub waits: Vec<Vec<u8>>,
    pub ends: (SocketAddr, SocketAddr),
    pub about: About,
}

/// What its end will be reported with.
#[derive(Debug)]
pub struct About {
    pub listen: Rc<Listen>,
    pub client: SocketAddr,
    pub target: Option<TargetId>,
    pub source: Option<Source>,
    pub since: Instant,
}

#[derive(Debug)]
pub enum Entry {
    Listening(Listening),
    Opening(Box<Opening>),
    Joint(Box<Joint>),
    Course(Box<Course>),
}

#[derive(Debug)]
pub struct Engine {
    pub task: Task,
    pub feed: Feed,
    pub others: Others,
    line: Line,
    said: Vec<FromRelay>,
    pub entries: Slab<Entry>,
    pub listeners: HashMap<ListenerId, Key>,
    /// Flows, by listener and ends.
    pub courses: HashMap<(ListenerId, SocketAddr, SocketAddr), Key>,
    pub sources: Sources,
    pub tally: Tally,
    /// No rules: flows of a `host` port need some.
    pub names: Names,
    /// How many openings there are, and how many connections with all.
    pub openings: usize,
    pub streams: usize,
    pub streams_max: usize,
    again: VecDeque<(Key, Side)>,
    queued: HashSet<(Key, Side)>,
    /// Connections over their source's limit of bytes: their events are looked at once they may pass bytes on again.
    pub thirsty: HashSet<Key>,
    /// Listeners whose edge is used up and who could not accept.
    pub starved: HashSet<Key>,
    pub held: usize,
    /// Bytes of datagrams that wait for their targets' sockets.
    pub datagrams_held: usize,
    pub chunk: Vec<u8>,
    pub swept: Instant,
    looked: Instant,
    pub drains: bool,
    said_empty: bool,
}

impl Engine {
    pub fn new(
        task: Task,
        feed: Feed,
        others: Others,
        line: Line,
        streams_max: usize,
    ) -> Result<Engine> {
        feed.add_host(&line, LINE)
            .map_err(Error::host("watch the supervisor"))?;
        Ok(Engine {
            task,
            feed,
            others,
            line,
            said: Vec::new(),
            entries: Slab::new(),
            listeners: HashMap::new(),
            courses: HashMap::new(),
            sources: Sources::default(),
            tally: Tally::default(),
            names: Names::new(&[], &[]),
            openings: 0,
            streams: 0,
            streams_max,
            again: VecDeque::new(),
            queued: HashSet::new(),
            thirsty: HashSet::new(),
            starved: HashSet::new(),
            held: 0,
            datagrams_held: 0,
            chunk: vec![0; CHUNK],
            swept: Instant::now(),
            looked: Instant::now(),
            drains: false,
            said_empty: false,
        })
    }

    pub fn say(&mut self, it: FromRelay) {
        self.said.push(it);
    }

    fn timeout(&self) -> i32 {
        let turn = if !self.again.is_empty() {
            Duration::ZERO
        } else if !self.thirsty.is_empty() {
            BYTES_TURN
        } else if self.openings > 0 {
            OPENINGS_TURN
        } else if self.streams + self.courses.len() > 0 || !self.starved.is_empty() {
            SWEEP
        } else {
            return -1;
        };
        turn.as_millis() as i32
    }

    /// Until the supervisor is gone.
    pub fn run(&mut self) -> Result<()> {
        let mut news = Vec::new();
        loop {
            let timeout = self.timeout();
            self.feed.wait(&mut self.task, timeout, &mut news)?;
            if self.others.look(&mut self.task, &mut news)? {
                self.end_of_a_node();
            }
            for News { data, events } in news.drain(..) {
                match data {
                    LINE => match self.hear() {
                        Ok(()) => {}
                        Err(Broken::Gone) => return Ok(()),
                        Err(why) => return Err(Error::Supervisor { why }),
                    },
                    _ => self.on_event(data, events),
                }
            }
            for _ in 0..self.again.len() {
                if let Some((key, side)) = self.again.pop_front() {
                    self.queued.remove(&(key, side));
                    self.go_on(key, side);
                }
            }
            self.quench();
            self.look_at_openings();
            self.sweep();
            if self.drains && self.openings + self.streams == 0 && !self.said_empty {
                self.said_empty = true;
                self.say(FromRelay::Empty);
            }
            match self.line.say(&mut self.said, &mut Vec::new(), |_| false) {
                Ok(()) => {}
                Err(Broken::Gone) => return Ok(()),
                Err(why) => return Err(Error::Supervisor { why }),
            }
        }
    }

    fn hear(&mut self) -> Result<(), Broken> {
        self.line.flush()?;
        while let Some((said, fds)) = self.line.hear::<ToRelay>()? {
            let mut fds = fds.into_iter();
            for it in said {
                match it {
                    ToRelay::Start(_) => {}
                    ToRelay::Listen(listeners) => self.listen(listeners),
                    ToRelay::Take { ask, target, node } => {
                        let fd = match node {
                            Some(_) => None,
                            None => fds.next(),
                        };
                        self.take(ask, target, fd, node);
                    }
                    ToRelay::Nothing { ask } => self.nothing(ask),
                    ToRelay::Tell => {
                        let told = self.tally.told();
                        self.say(FromRelay::Told(Box::new(told)));
                    }
                    ToRelay::Drain => self.drain(),
                }
            }
        }
        Ok(())
    }

    fn on_event(&mut self, data: u64, events: u32) {
        let (key, side) = Key::of(data);
        let failed = match self.entries.get_mut(key) {
            Some(Entry::Opening(opening)) => {
                let step = match side {
                    Side::Node => opening.on_client(&mut self.task, events),
                    Side::Host => opening.on_target(events),
                };
                return self.step(key, step);
            }
            Some(Entry::Joint(joint)) => {
                joint.stream.on_event(&mut self.task, side, events).is_err()
            }
            Some(Entry::Course(_) | Entry::Listening(_)) => false,
            None => return,
        };
        match failed {
            true => self.end(key, End::Reset),
            false => self.go_on(key, side),
        }
    }

    pub fn go_on(&mut self, key: Key, side: Side) {
        let next = match self.entries.get_mut(key) {
            Some(Entry::Joint(_)) => self.pump(key),
            Some(Entry::Course(course)) => match &mut course.flow {
                Some(flow) => {
                    let mut out = Out {
                        task: &mut self.task,
                        icmp: None,
                        names: &mut self.names,
                    };
                    flow.pump(&mut out, side, &mut self.chunk)
                }
                None => Next::Wait,
            },
            Some(Entry::Listening(_)) => self.accept_some(key),
            Some(Entry::Opening(_)) | None => return,
        };
        match next {
            Next::Wait => {}
            Next::Again => self.queue(key, side),
            Next::End => self.end(key, End::Done),
            Next::Reset => self.end(key, End::Reset),
        }
    }

    /// Once: an entry that is always ready has no more turns than others.
    pub fn queue(&mut self, key: Key, side: Side) {
        if self.queued.insert((key, side)) {
            self.again.push_back((key, side));
        }
    }

    fn pump(&mut self, key: Key) -> Next {
        let Some(Entry::Joint(joint)) = self.entries.get_mut(key) else {
            return Next::Wait;
        };
        let now = Instant::now();
        let (listen, source) = (&joint.about.listen, joint.about.source);
        let may = source.is_none_or(|source| self.sources.may_pass(source, listen, now));
        if !may {
            self.thirsty.insert(key);
            return Next::Wait;
        }
        let may_hold = self.held <= HELD_BYTES;
        let len = match !may_hold || listen.bytes.is_some() {
            true => CHUNK_SMALL,
            false => CHUNK,
        };
        let before = joint.stream.passed;
        let chunk = &mut self.chunk[..len];
        let names = &mut self.names;
        let next = joint.stream.pump(&mut self.task, chunk, may_hold, names);
        self.held = self.held + joint.stream.held() - joint.held;
        joint.held = joint.stream.held();
        let after = joint.stream.passed;
        let [sent, received] = [after[0] - before[0], after[1] - before[1]];
        if sent + received > 0 {
            joint.last = now;
            let id = joint.about.listen.id;
            if let (Some(source), true) = (source, joint.about.listen.bytes.is_some()) {
                self.sources.passed(source, sent + received);
            }
            self.tally.passed(id, sent, received);
        }
        next
    }

    /// Connections that had to wait for their source's limit of bytes have a turn again.
    fn quench(&mut self) {
        for key in std::mem::take(&mut self.thirsty) {
            self.go_on(key, Side::Node);
        }
    }

    fn look_at_openings(&mut self) {
        let now = Instant::now();
        if self.openings == 0 || now.duration_since(self.looked) < OPENINGS_TURN {
            return;
        }
        self.looked = now;
        let late: Vec<_> = self
            .entries
            .iter()
            .filter_map(|(key, entry)| match entry {
                Entry::Opening(opening) => Some((key, opening.is_late(now))),
                _ => None,
            })
            .collect();
        for (key, step) in late {
            self.step(key, step);
        }
    }
}
