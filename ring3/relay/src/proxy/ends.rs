// SPDX-License-Identifier: GPL-2.0
//! What is over: connections, flows, those that were idle for too long, those of a node that has gone.

use std::time::{Duration, Instant};

use super::engine::{About, Engine, Entry, Joint};
use super::opening::Stage;
use super::wire::{End, FromRelay, Over};
use crate::slab::{Key, Side};
use crate::tuning::SWEEP;

impl Engine {
    /// Connections to targets there are over.
    pub fn end_of_a_node(&mut self) {
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

    pub fn sweep(&mut self) {
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
                self.report(key, joint.about, [sent, received], end);
                match end {
                    End::Done => joint.stream.end(&mut self.task),
                    _ => joint.stream.reset(&mut self.task),
                }
            }
            Some(Entry::Course(course)) => {
                let course = *course;
                let id = course.about.listen.id;
                self.courses.remove(&(id, course.ends.0, course.ends.1));
                self.datagrams_held -= course.waits.iter().map(Vec::len).sum::<usize>();
                self.report(key, course.about, [0; 2], end);
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
                self.report(key, about, [0; 2], end);
            }
            Some(Entry::Listening(listening)) => {
                let _ = self.task.close(listening.fd);
            }
            None => {}
        }
    }

    fn report(&mut self, key: Key, about: About, [sent, received]: [u64; 2], end: End) {
        if let Some(source) = about.source {
            self.sources.leave(source);
        }
        self.tally.over(about.listen.id);
        self.say(FromRelay::Over(Over {
            ask: key.data(Side::Host),
            listener: about.listen.id,
            target: about.target,
            client: about.client,
            sent,
            received,
            ms: about.since.elapsed().as_millis() as u64,
            end,
        }));
    }
}
