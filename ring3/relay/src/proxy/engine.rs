// SPDX-License-Identifier: GPL-2.0
//! The loop of a proxy's relay: who an event is for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;

use super::opening::{Opening, Stage};
use super::others::Others;
use super::sources::{Source, Sources};
use super::tally::Tally;
use super::wire::{Ask, Broken, End, FromRelay, Line, Listen, ListenerId, Over, TargetId, ToRelay};
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
    held: usize,
    last: Instant,
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
    /// Who waits for its bytes, and who has events that were not looked at for that.
    thirsty: HashSet<Key>,
    /// Listeners whose edge is used up and who could not accept.
    pub starved: HashSet<Key>,
    held: usize,
    pub chunk: Vec<u8>,
    swept: Instant,
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

    /// Connections to targets there are over.
    fn end_of_a_node(&mut self) {
        let is_over = |entry: &Entry| match entry {
            Entry::Joint(joint) => self.others.is_gone(&joint.stream.host),
            Entry::Opening(opening) => match &opening.stage {
                Stage::Connecting { far, .. } => self.others.is_gone(far),
                _ => false,
            },
            _ => false,
        };
        let over = self.entries.iter().filter(|(_, entry)| is_over(entry));
        let over: Vec<Key> = over.map(|(key, _)| key).collect();
        for key in over {
            self.end(key, End::Reset);
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
        let len = match self.held > HELD_BYTES || listen.bytes.is_some() {
            true => CHUNK_SMALL,
            false => CHUNK,
        };
        let before = joint.stream.passed;
        let next = joint.stream.pump(&mut self.task, &mut self.chunk[..len]);
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

    /// Those whose bytes have come.
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

    fn sweep(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        let is_idle = |joint: &Joint| {
            let idle = joint.about.listen.idle_ms.map(Duration::from_millis);
            idle.is_some_and(|idle| now.duration_since(joint.last) > idle)
        };
        let mut over = Vec::new();
        for (key, entry) in self.entries.iter() {
            match entry {
                Entry::Joint(joint) if is_idle(joint) => over.push(key),
                Entry::Course(course) => match &course.flow {
                    Some(flow) if flow.is_idle(now) => over.push(key),
                    _ => {}
                },
                _ => {}
            }
        }
        for key in over {
            self.end(key, End::Idle);
        }
        for key in std::mem::take(&mut self.starved) {
            self.go_on(key, Side::Node);
        }
    }

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

    /// A connection or flow is over.
    pub fn end(&mut self, key: Key, end: End) {
        match self.entries.take(key) {
            Some(Entry::Joint(joint)) => {
                let joint = *joint;
                self.streams -= 1;
                self.held -= joint.held;
                self.thirsty.remove(&key);
                self.tally.look_back(&mut self.task, joint.stream.node);
                let [sent, received] = joint.stream.passed;
                self.report(joint.about, [sent, received], end);
                match end {
                    End::Done => joint.stream.end(&mut self.task),
                    _ => joint.stream.reset(&mut self.task),
                }
            }
            Some(Entry::Course(course)) => {
                let course = *course;
                let id = course.about.listen.id;
                self.courses.remove(&(id, course.ends.0, course.ends.1));
                self.report(course.about, [0; 2], end);
                if let Some(flow) = course.flow {
                    flow.end(&mut self.task);
                }
            }
            Some(Entry::Opening(opening)) => {
                self.openings -= 1;
                let _ = self.task.reset_at_close(opening.fd);
                let _ = self.task.close(opening.fd);
                let target = match opening.stage {
                    Stage::Connecting { target, .. } => Some(target),
                    _ => None,
                };
                let about = About {
                    listen: opening.listen,
                    client: opening.client,
                    target,
                    source: opening.source,
                    since: opening.since,
                };
                self.report(about, [0; 2], end);
            }
            Some(Entry::Listening(listening)) => {
                let _ = self.task.close(listening.fd);
            }
            None => {}
        }
    }

    fn report(&mut self, about: About, [sent, received]: [u64; 2], end: End) {
        if let Some(source) = about.source {
            self.sources.leave(source);
        }
        self.tally.over(about.listen.id);
        self.say(FromRelay::Over(Over {
            listener: about.listen.id,
            target: about.target,
            client: about.client,
            sent,
            received,
            ms: about.since.elapsed().as_millis() as u64,
            end,
        }));
    }

    /// The supervisor gives a socket, or says where on another node the target is.
    fn take(
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
            _ => return self.say(FromRelay::Unused { target }),
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
                self.say(FromRelay::Unused { target });
                self.end(key, End::Full);
            }
            Err(_) => {
                opening.tried.push(target);
                self.ask(key);
            }
        }
    }

    fn nothing(&mut self, ask: Ask) {
        let (key, _) = Key::of(ask);
        match self.entries.get_mut(key) {
            Some(Entry::Opening(opening)) if matches!(opening.stage, Stage::Asked) => {}
            Some(Entry::Course(course)) if course.flow.is_none() => {}
            _ => return,
        }
        self.end(key, End::NoTarget);
    }
}
