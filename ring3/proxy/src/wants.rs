// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: what the relay asks for
//!
//! The relay asks for a socket to a target for each client. Packets of strangers reach the relay, so what it says is held
//! against what it was given:
//!
//! ```text
//! asked   no target was given for it                              -> given, put off, or it hears that there is none
//! put off a unix target's backlog is full, and no other target is left: asked again each turn, for connect_timeout
//! given   the relay says that this target has not answered         -> asked again
//!         the relay says that it is over, or was not used          -> forgotten
//! ```
//!
//! A relay that says something else of a connection is ended. No more are given at one time than a relay can have.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use ring3_relay::proxy::wire::{Ask, ListenerId, Over, TargetId, ToRelay};
use rustix::io::Errno;
use serde_json::json;

use crate::error::{Error, Result};
use crate::reload::Open;
use crate::supervisor::Supervisor;
use crate::targets::{self, Given};

/// How often a full backlog is looked at: a server that accepts 4096 at a time at 100,000 per second needs 40 ms for all.
pub const LATER_TURN: Duration = Duration::from_millis(20);

/// A connection or flow that waits for room at a unix target.
#[derive(Debug)]
struct Later {
    listener: ListenerId,
    tried: Vec<TargetId>,
    until: Instant,
}

/// What the relay has asked for.
#[derive(Debug)]
pub struct Wants {
    /// Which target each has.
    given: HashMap<Ask, TargetId>,
    later: HashMap<Ask, Later>,
    looked: Instant,
    /// As many as a relay can have.
    most: usize,
}

impl Wants {
    pub fn new(most: usize) -> Wants {
        Wants {
            given: HashMap::new(),
            later: HashMap::new(),
            looked: Instant::now(),
            most,
        }
    }

    pub fn any_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Forgets what was given: this target, and no other.
    fn take_back(&mut self, ask: Ask, target: TargetId) -> Result<()> {
        match self.given.remove(&ask) {
            Some(given) if given == target => Ok(()),
            _ => Err(Error::RelayBroken(format!(
                "connection {ask:x} was not given target {target}"
            ))),
        }
    }
}

/// What became of a wish.
enum Outcome {
    Given(TargetId),
    /// A backlog was full.
    Busy,
    Nothing,
}

impl Supervisor<'_> {
    pub fn want(&mut self, ask: Ask, listener: ListenerId, mut tried: Vec<TargetId>) -> Result<()> {
        let now = Instant::now();
        match tried.last() {
            Some(failed) => {
                self.wants.take_back(ask, *failed)?;
                self.failed(&tried, now);
            }
            None if self.wants.given.contains_key(&ask) || self.wants.later.contains_key(&ask) => {
                let why = format!("connection {ask:x} asks twice");
                return Err(Error::RelayBroken(why));
            }
            None => {}
        }
        if self.wants.given.len() + self.wants.later.len() >= self.wants.most {
            self.said.push(ToRelay::Nothing { ask });
            return Ok(());
        }
        let Some(open) = self.find(listener) else {
            self.said.push(ToRelay::Nothing { ask });
            return Ok(());
        };
        let until = now + open.config.connect_timeout;
        // It is kept while the client waits: no more than there is to try, whatever the relay says.
        tried.retain(|id| open.targets.iter().any(|it| it.has(*id)));
        tried.sort_unstable();
        tried.dedup();
        let later = Later {
            listener,
            tried,
            until,
        };
        let outcome = self.give(ask, &later, now);
        self.settle(ask, later, &outcome, now);
        Ok(())
    }

    fn settle(&mut self, ask: Ask, want: Later, outcome: &Outcome, now: Instant) {
        match outcome {
            Outcome::Given(target) => drop(self.wants.given.insert(ask, *target)),
            Outcome::Busy if now < want.until => drop(self.wants.later.insert(ask, want)),
            Outcome::Busy | Outcome::Nothing => self.said.push(ToRelay::Nothing { ask }),
        }
    }

    /// The last of these did not answer.
    fn failed(&mut self, tried: &[TargetId], now: Instant) {
        let all = self.open.iter_mut().chain(&mut self.coming);
        let mut targets = all.chain(&mut self.closed).flat_map(|it| &mut it.targets);
        let failed = tried.last().and_then(|id| targets.find(|it| it.has(*id)));
        if let Some(failed) = failed {
            failed.fail(tried, now);
            failed.active = failed.active.saturating_sub(1);
        }
    }

    fn find(&mut self, listener: ListenerId) -> Option<&mut Open> {
        let all = self.open.iter_mut().chain(&mut self.coming);
        all.chain(&mut self.closed).find(|it| it.id == listener)
    }

    fn give(&mut self, ask: Ask, want: &Later, now: Instant) -> Outcome {
        let Some(open) = self.find(want.listener) else {
            return Outcome::Nothing;
        };
        let mut tried = want.tried.clone();
        let mut is_busy = false;
        while let Some(target) = targets::next(&mut open.targets, &tried, now) {
            let id = target.turn_of(&tried);
            let (node, socket) = match target.give(id, open.config.listen.is_stream) {
                Ok(Given::Socket(socket)) => (None, Some(socket)),
                Ok(Given::Node(at, to)) => (Some((at, to)), None),
                // This process has no room for it, which is not the target's fault.
                Err(Errno::MFILE | Errno::NFILE) => break,
                // It lives, and others may have room.
                Err(Errno::AGAIN) => {
                    is_busy = true;
                    tried.push(id);
                    continue;
                }
                Err(why) => {
                    log::debug!("target {}: {why}", target.spec.to);
                    tried.push(id);
                    target.fail(&tried, now);
                    continue;
                }
            };
            target.active += 1;
            target.served += 1;
            let target = id;
            self.fds.extend(socket);
            self.said.push(ToRelay::Take { ask, target, node });
            return Outcome::Given(id);
        }
        match is_busy {
            true => Outcome::Busy,
            false => Outcome::Nothing,
        }
    }

    /// Clients that wait for room have it now, if there is some; who has waited longest is first. Where one finds none,
    /// those of its listener that have tried the same would find none either.
    pub fn look_at_later(&mut self) {
        let now = Instant::now();
        if !self.wants.any_later() || now.duration_since(self.wants.looked) < LATER_TURN {
            return;
        }
        self.wants.looked = now;
        let mut all: Vec<_> = self.wants.later.drain().collect();
        all.sort_unstable_by_key(|(_, want)| want.until);
        let mut full = HashSet::new();
        for (ask, want) in all {
            let place = (want.listener, want.tried.clone());
            let outcome = match full.contains(&place) {
                true => Outcome::Busy,
                false => self.give(ask, &want, now),
            };
            self.settle(ask, want, &outcome, now);
            if matches!(outcome, Outcome::Busy) {
                full.insert(place);
            }
        }
    }

    /// The relay did not use what it was given.
    pub fn unused(&mut self, ask: Ask, target: TargetId) -> Result<()> {
        self.wants.take_back(ask, target)?;
        self.gave_back(target);
        Ok(())
    }

    /// A target has one connection less; what it is called.
    fn gave_back(&mut self, id: TargetId) -> Option<String> {
        let all = self.open.iter_mut().chain(&mut self.coming);
        let all = all.chain(&mut self.closed);
        let mut targets = all.flat_map(|it| &mut it.targets);
        let target = targets.find(|it| it.has(id))?;
        target.active = target.active.saturating_sub(1);
        Some(target.spec.to.to_string())
    }

    pub fn over(&mut self, over: Over) -> Result<()> {
        match over.target {
            Some(target) => self.wants.take_back(over.ask, target)?,
            None => drop(self.wants.later.remove(&over.ask)),
        }
        let name = self.names.get(&over.listener);
        let Some(name) = name.cloned() else {
            return Ok(());
        };
        let target = over.target.and_then(|id| self.gave_back(id));
        *self.ends.entry((name.clone(), over.end)).or_default() += 1;
        if self.journal.has_file() {
            self.journal.line(json!({
                "event": "connection",
                "listener": name,
                "client": over.client.to_string(),
                "target": target,
                "sent": over.sent,
                "received": over.received,
                "ms": over.ms,
                "end": over.end.word(),
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{fresh, full_target, supervisor, want};
    use crate::targets::Place;

    fn dead() -> (&'static str, Place) {
        ("unix:/nowhere", Place::Unix("/nowhere".into()))
    }

    /// Where the first client finds no room, the others would find none either: each would make a socket to learn it.
    #[test]
    fn of_those_that_wait_for_room_one_looks() {
        let folder = tempfile::tempdir().unwrap();
        let (full, place, _listener, mut waits) = full_target(folder.path(), 4);
        let (mut supervisor, mut relay) = supervisor(&fresh("tcp:80", &[(&full, place), dead()]));
        relay.says((0..8).map(|ask| want(ask, 1, &[])).collect());
        supervisor.hear().unwrap();
        assert_eq!(supervisor.wants.later.len(), 8);
        // Each that looks tries the dead one, too.
        let looks = |it: &Supervisor<'_>| it.open[0].targets[1].failed;
        let before = looks(&supervisor);
        supervisor.wants.looked -= LATER_TURN;
        supervisor.look_at_later();
        assert_eq!(looks(&supervisor) - before, 1);
        assert_eq!(supervisor.wants.later.len(), 8);
        // All that have room have it, in one turn.
        let (_first, _) = (waits.remove(0), _listener.accept().unwrap());
        let (_second, _) = (waits.remove(0), _listener.accept().unwrap());
        supervisor.wants.looked -= LATER_TURN;
        supervisor.look_at_later();
        assert_eq!(
            (supervisor.wants.later.len(), supervisor.wants.given.len()),
            (6, 2)
        );
        // And all whose time is over hear it.
        for want in supervisor.wants.later.values_mut() {
            want.until = Instant::now();
        }
        supervisor.wants.looked -= LATER_TURN;
        supervisor.look_at_later();
        supervisor.flush().unwrap();
        let (said, _) = relay.hears();
        let nothing = said
            .iter()
            .filter(|it| matches!(it, ToRelay::Nothing { .. }));
        assert_eq!(nothing.count(), 6);
        assert!(!supervisor.wants.any_later());
    }

    /// What a client has tried is kept while it waits, and copied: a relay that was taken over says what it likes.
    #[test]
    fn what_was_tried_is_no_more_than_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let (full, place, _listener, mut waits) = full_target(folder.path(), 4);
        let (other, at, _second, mut room) = full_target(folder.path(), 5);
        let (mut supervisor, mut relay) =
            supervisor(&fresh("tcp:80", &[(&other, at), (&full, place)]));
        let _ = (room.remove(0), _second.accept().unwrap());
        relay.says(vec![want(7, 1, &[])]);
        supervisor.hear().unwrap();
        assert_eq!(supervisor.wants.given.get(&7), Some(&1));
        let mut tried: Vec<TargetId> = (1000..2000).chain([1, 1]).collect();
        relay.says(vec![want(7, 1, &tried)]);
        supervisor.hear().unwrap();
        assert_eq!(supervisor.wants.later[&7].tried, [1]);
        // None is tried again for that.
        let _ = (waits.remove(0), _listener.accept().unwrap());
        supervisor.wants.looked -= LATER_TURN;
        supervisor.look_at_later();
        assert_eq!(supervisor.wants.given.get(&7), Some(&2));
        tried.push(2);
        relay.says(vec![want(7, 1, &tried)]);
        supervisor.hear().unwrap();
        assert!(supervisor.wants.given.is_empty() && !supervisor.wants.any_later());
    }

    /// A relay that was taken over can't free its places by words.
    #[test]
    fn what_was_not_given_is_not_taken_back() {
        let mut wants = Wants::new(2);
        wants.given.insert(7, 1);
        assert!(wants.take_back(8, 1).is_err());
        assert!(wants.take_back(7, 1).is_ok());
        assert!(wants.take_back(7, 1).is_err());
        wants.given.insert(7, 1);
        assert!(wants.take_back(7, 2).is_err());
    }
}
