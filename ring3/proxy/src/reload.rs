// SPDX-License-Identifier: GPL-2.0
//! Another configuration, all or nothing: the relay says whether it can have the listeners before any is the supervisor's.

use std::time::{Duration, Instant};

use ring3_config::proxy::{Listener, Version};
use ring3_relay::proxy::wire::{Listen, ListenerId, TargetId, ToRelay};
use serde_json::json;

use crate::control;
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::reading::Fresh;
use crate::supervisor::{Supervisor, TURN};
use crate::targets::{Live, Place};

/// A relay that does not say what its listeners became.
const LISTEN_PATIENCE: Duration = Duration::from_secs(20);

pub struct Open {
    pub id: ListenerId,
    pub config: Listener,
    pub targets: Vec<Live>,
}

impl Supervisor<'_> {
    /// A reading has ended.
    pub fn on_read(&mut self) {
        while let Some((fresh, askers)) = self.reading.take() {
            let outcome = self.reload(fresh);
            for asker in askers {
                control::answer(asker, &outcome);
            }
        }
    }

    fn reload(&mut self, fresh: Result<Fresh>) -> Result<(), String> {
        let outcome = fresh.and_then(|fresh| self.try_reload(&fresh));
        let outcome = outcome.map_err(|why| why.to_string());
        self.reloads[usize::from(outcome.is_err())] += 1;
        match &outcome {
            Ok(()) => self
                .journal
                .event("reloaded", json!({"listeners": self.open.len()})),
            Err(why) => {
                log::warn!("the configuration is as it was: {why}");
                self.journal.event("not_reloaded", json!({"why": why}));
            }
        }
        outcome
    }

    fn try_reload(&mut self, fresh: &Fresh) -> Result<()> {
        let config = &fresh.config;
        for (what, is_new) in [
            ("on", config.on != self.config.on),
            ("port", config.ports != self.config.ports),
            ("metrics", config.metrics != self.config.metrics),
        ] {
            if is_new {
                return Err(Error::Listeners(format!(
                    "`{what}` changes with a new start only"
                )));
            }
        }
        let journal = Journal::open(config.log.as_deref())?;
        self.take_over(fresh)?;
        self.journal = journal;
        self.config = config.clone();
        Ok(())
    }

    /// What became of the listeners that the relay was told of.
    fn wait_for_listeners(&mut self) -> Result<Vec<String>> {
        let end = Instant::now() + LISTEN_PATIENCE;
        while Instant::now() < end {
            if let Some(wrong) = self.listening.take() {
                return Ok(wrong.iter().map(|it| self.explain(it)).collect());
            }
            self.wait_for_line(TURN)?;
            self.hear()?;
            self.flush()?;
        }
        Err(Error::RelayBroken("it does not listen".into()))
    }

    /// `ID ERRNO`, for people.
    fn explain(&self, text: &str) -> String {
        let (id, errno) = text.split_once(' ').unwrap_or((text, "0"));
        let id: ListenerId = id.parse().unwrap_or(0);
        let why = std::io::Error::from_raw_os_error(errno.parse().unwrap_or(0));
        let mut all = self.coming.iter().chain(&self.open);
        let place = all.find(|it| it.id == id);
        let place = place.map_or("?".into(), |it| it.config.listen.to_string());
        format!("node {} cannot listen on {place}: {why}", self.config.on)
    }

    /// These listeners with numbers: of one that stays, of targets none that was before.
    fn number(&mut self, fresh: &Fresh) -> Result<Vec<Open>> {
        let (mut last_listener, mut last_target) = (self.last_listener, self.last_target);
        let mut open = Vec::new();
        for listener in &fresh.config.listeners {
            let mut before = self.open.iter();
            let before = before.find(|it| it.config.listen == listener.listen);
            let id = before.map_or_else(
                || {
                    last_listener += 1;
                    last_listener
                },
                |it| it.id,
            );
            let mut targets = Vec::new();
            for spec in &listener.targets {
                let first = last_target + 1;
                let place = fresh.places.get(&spec.to).cloned();
                let place = place.unwrap_or(Place::Addresses(Vec::new()));
                let live = Live::new(first, spec.clone(), place, listener)?;
                last_target += live.tries() as TargetId;
                targets.push(live);
            }
            open.push(Open {
                id,
                config: listener.clone(),
                targets,
            });
        }
        (self.last_listener, self.last_target) = (last_listener, last_target);
        Ok(open)
    }

    /// Has these listeners from now on. What is the same as before stays as it is. On an error nothing has changed.
    pub fn take_over(&mut self, fresh: &Fresh) -> Result<()> {
        let open = self.number(fresh)?;
        let listeners = open.iter().map(|it| listen(it.id, &it.config));
        self.said.push(ToRelay::Listen(listeners.collect()));
        for it in &open {
            let name = it.config.name.clone();
            self.names.entry(it.id).or_insert(name);
        }
        self.coming = open;
        self.listening = None;
        self.flush()?;
        let wrong = self.wait_for_listeners()?;
        let mut open = std::mem::take(&mut self.coming);
        if !wrong.is_empty() {
            return Err(Error::Listeners(wrong.join("; ")));
        }
        for it in &mut open {
            let before = self.open.iter_mut().find(|old| old.id == it.id);
            if let Some(before) = before {
                keep_targets(
                    &mut it.targets,
                    before,
                    it.config.health == before.config.health
                        && it.config.proxy_out == before.config.proxy_out,
                );
            }
            self.names.insert(it.id, it.config.name.clone());
        }
        let before = std::mem::replace(&mut self.open, open);
        let is_gone = |old: &Open| !self.open.iter().any(|it| it.id == old.id);
        self.closed = before.into_iter().filter(is_gone).collect();
        Ok(())
    }
}

/// A target that stays keeps its number, counts and health.
fn keep_targets(targets: &mut [Live], before: &mut Open, same_health: bool) {
    for target in targets {
        let at = before
            .targets
            .iter()
            .position(|old| old.spec.to == target.spec.to && old.place == target.place);
        let Some(at) = at else { continue };
        let old = before.targets.swap_remove(at);
        let spec = target.spec.clone();
        let watch = target.watch.take();
        *target = old;
        target.spec = spec;
        if !same_health {
            target.watch = watch;
        }
    }
}

fn listen(id: ListenerId, config: &Listener) -> Listen {
    let ms = |time: Duration| time.as_millis() as u64;
    Listen {
        id,
        is_stream: config.listen.is_stream,
        address: config.listen.address,
        port: config.listen.port,
        proxy_in: config.proxy_in,
        proxy_out: config.proxy_out.map(|it| match it {
            Version::V1 => 1,
            Version::V2 => 2,
        }),
        connect_ms: ms(config.connect_timeout),
        idle_ms: config.idle.map(ms),
        connections: config.limit.connections,
        rate: config.limit.rate,
        bytes: config.limit.bytes,
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_stay_keep_what_they_have() {
        let make = |words: &[&str], first: u32| {
            let listener = Listener::new(
                "tcp:80".parse().unwrap(),
                words
                    .iter()
                    .map(|it| ring3_config::proxy::Target::new(it.parse().unwrap()))
                    .collect(),
            );
            let specs = listener.targets.iter().zip(first..);
            let targets = specs
                .map(|(it, id)| {
                    let place = crate::targets::tests::place(&it.to);
                    Live::new(id, it.clone(), place, &listener).unwrap()
                })
                .collect();
            Open {
                id: 1,
                targets,
                config: listener,
            }
        };
        let mut before = make(&["127.0.0.1:1", "127.0.0.1:2"], 1);
        before.targets[1].active = 5;
        let mut after = make(&["127.0.0.1:2", "127.0.0.1:3"], 3);
        keep_targets(&mut after.targets, &mut before, true);
        let ids: Vec<_> = after.targets.iter().map(|it| (it.id, it.active)).collect();
        assert_eq!(ids, [(2, 5), (4, 0)]);
    }
}
