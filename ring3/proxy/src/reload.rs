// SPDX-License-Identifier: GPL-2.0
//! Another configuration, all or nothing: the relay says whether it can have the listeners before any is the supervisor's.

use std::time::{Duration, Instant};

use ring3_config::proxy::{Listener, Version};
use ring3_config::ProxyConfig;
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
    /// A reading has ended. An error is the relay's, and ends it.
    pub fn on_read(&mut self) -> Result<()> {
        while let Some((fresh, askers)) = self.reading.take() {
            let outcome = self.reload(fresh);
            let said = match &outcome {
                Ok(said) => said.clone(),
                Err(why) => Err(why.to_string()),
            };
            for asker in askers {
                control::answer(asker, &said);
            }
            outcome.map(drop)?;
        }
        Ok(())
    }

    /// Why the configuration is refused, if it is.
    fn reload(&mut self, fresh: Result<Fresh>) -> Result<Result<(), String>> {
        let ready = fresh.and_then(|fresh| self.make_ready(fresh));
        let outcome = match ready {
            Ok((config, journal, open)) => self.take_over(open)?.map(|()| {
                self.journal = journal;
                self.config = config;
            }),
            Err(why) => Err(why.to_string()),
        };
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
        Ok(outcome)
    }

    /// All that can fail before the relay hears of it.
    fn make_ready(&mut self, fresh: Fresh) -> Result<(ProxyConfig, Journal, Vec<Open>)> {
        if self.drains() {
            return Err(Error::Listeners("it ends, and takes no clients".into()));
        }
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
        let open = self.number(&fresh)?;
        Ok((fresh.config, journal, open))
    }

    /// What became of the listeners that the relay was told of. One that does not say it may have them by now or not: it
    /// is ended.
    fn wait_for_listeners(&mut self, patience: Duration) -> Result<Vec<String>> {
        let end = Instant::now() + patience;
        loop {
            if let Some(wrong) = self.listening.take() {
                return Ok(wrong.iter().map(|it| self.explain(it)).collect());
            }
            if Instant::now() >= end {
                return Err(Error::RelayBroken("it does not listen".into()));
            }
            self.wait_for_line(TURN)?;
            self.hear()?;
            self.flush()?;
        }
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
    pub fn number(&mut self, fresh: &Fresh) -> Result<Vec<Open>> {
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

    /// Has these listeners from now on. What is the same as before stays as it is. Where the relay can't have them, it says
    /// why and nothing has changed. An error is the relay's: what it has is not known then, and it has to end.
    pub fn take_over(&mut self, open: Vec<Open>) -> Result<Result<(), String>> {
        let listeners = open.iter().map(|it| listen(it.id, &it.config));
        self.said.push(ToRelay::Listen(listeners.collect()));
        for it in &open {
            let name = it.config.name.clone();
            self.names.entry(it.id).or_insert(name);
        }
        self.coming = open;
        self.listening = None;
        self.flush()?;
        let wrong = self.wait_for_listeners(LISTEN_PATIENCE)?;
        let mut open = std::mem::take(&mut self.coming);
        if !wrong.is_empty() {
            return Ok(Err(wrong.join("; ")));
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
        self.leave(before);
        Ok(Ok(()))
    }

    /// What is left of these is gone. Targets are known until their last connection is over, and a listener's until the next
    /// reload: a client may just come.
    fn leave(&mut self, before: Vec<Open>) {
        let older = std::mem::take(&mut self.closed);
        let is_gone = |old: &Open| !self.open.iter().any(|it| it.id == old.id);
        let (gone, stays): (Vec<_>, Vec<_>) = before.into_iter().partition(is_gone);
        let mut used: Vec<_> = stays.into_iter().chain(older).collect();
        for it in &mut used {
            it.targets.retain(|target| target.active > 0);
            // No client has its turn there.
            it.targets.iter_mut().for_each(|it| it.watch = None);
        }
        used.retain(|it| !it.targets.is_empty());
        // The newest first: a client of a listener that is gone has a turn at its last targets.
        self.closed = gone.into_iter().chain(used).collect();
    }
}

/// A target that stays keeps its number, counts and health.
fn keep_targets(targets: &mut [Live], before: &mut Open, same_health: bool) {
    for target in targets {
        let at = before
            .targets
            .iter()
            .position(|old| old.spec.to == target.spec.to && old.place.is_same(&target.place));
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
    use crate::fake::{fresh, over, supervisor, want};
    use ring3_relay::proxy::wire::FromRelay;

    fn nowhere() -> (&'static str, Place) {
        ("unix:/nowhere", Place::Unix("/nowhere".into()))
    }

    /// What a relay may not say ends it while it is told of listeners, too: else what it gave back with it is lost.
    #[test]
    fn a_relay_that_breaks_the_rules_in_a_reload_is_ended() {
        let wrong: [Vec<FromRelay>; 3] = [
            vec![over(7, 1, Some(1)), FromRelay::Listening(Vec::new())],
            vec![FromRelay::Unused { ask: 7, target: 9 }],
            vec![want(7, 1, &[1])],
        ];
        for said in wrong {
            let (mut supervisor, mut relay) = supervisor(&fresh("tcp:80", &[nowhere()]));
            relay.says(said);
            let outcome = supervisor.reload(Ok(fresh("tcp:81", &[nowhere()])));
            assert!(matches!(outcome, Err(Error::RelayBroken(_))), "{outcome:?}");
        }
        let (mut supervisor, mut relay) = supervisor(&fresh("tcp:80", &[nowhere()]));
        relay.says_nonsense();
        let outcome = supervisor.reload(Ok(fresh("tcp:81", &[nowhere()])));
        assert!(matches!(outcome, Err(Error::RelayBroken(_))), "{outcome:?}");
        drop(relay);
        let outcome = supervisor.reload(Ok(fresh("tcp:81", &[nowhere()])));
        assert!(
            matches!(outcome, Err(Error::RelayEnded { .. })),
            "{outcome:?}"
        );
    }

    /// Its late answer would be taken for that of the next reload.
    #[test]
    fn a_relay_that_does_not_say_what_it_has_is_ended() {
        let (mut supervisor, _relay) = supervisor(&fresh("tcp:80", &[nowhere()]));
        let outcome = supervisor.wait_for_listeners(Duration::ZERO);
        assert!(matches!(outcome, Err(Error::RelayBroken(_))), "{outcome:?}");
    }

    /// Connections to a target that is gone end with its name in the log, and count until then.
    #[test]
    fn a_target_that_goes_is_known_as_long_as_it_has_connections() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("target.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let name = format!("unix:{}", path.display());
        let log = folder.path().join("log");
        let logged = |listen: &str, target| {
            let mut fresh = fresh(listen, &[target]);
            fresh.config.log = Some(log.clone());
            fresh
        };
        let (mut supervisor, mut relay) =
            supervisor(&logged("tcp:80", (&*name, Place::Unix(path.clone()))));
        relay.says(vec![want(7, 1, &[])]);
        supervisor.hear().unwrap();
        // Twice: its target goes, then its listener.
        for listen in ["tcp:80", "tcp:80", "tcp:81", "tcp:82"] {
            relay.says(vec![FromRelay::Listening(Vec::new())]);
            let outcome = supervisor.reload(Ok(logged(listen, nowhere())));
            assert_eq!(outcome.unwrap(), Ok(()));
            assert_eq!(supervisor.active(), 1);
        }
        relay.says(vec![over(7, 1, Some(1))]);
        supervisor.hear().unwrap();
        assert_eq!(supervisor.active(), 0);
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.contains(&format!("\"target\":\"{name}\"")), "{said}");
        // Then it is forgotten.
        relay.says(vec![FromRelay::Listening(Vec::new())]);
        let outcome = supervisor.reload(Ok(logged("tcp:82", nowhere())));
        assert_eq!(outcome.unwrap(), Ok(()));
        assert!(supervisor.closed.is_empty());
    }

    /// A resolver gives the addresses of a name in another order each time.
    #[test]
    fn the_order_of_addresses_makes_no_other_target() {
        let place = |all: [&str; 2]| Place::Addresses(all.map(|it| it.parse().unwrap()).into());
        let there = |all| fresh("tcp:80", &[("name:80", place(all))]);
        let (mut supervisor, mut relay) = supervisor(&there(["127.0.0.1:80", "127.0.0.2:80"]));
        supervisor.open[0].targets[0].failed = 3;
        relay.says(vec![FromRelay::Listening(Vec::new())]);
        let outcome = supervisor.reload(Ok(there(["127.0.0.2:80", "127.0.0.1:80"])));
        assert_eq!(outcome.unwrap(), Ok(()));
        let target = &supervisor.open[0].targets[0];
        assert_eq!((target.id, target.failed), (1, 3));
        relay.says(vec![FromRelay::Listening(Vec::new())]);
        let outcome = supervisor.reload(Ok(there(["127.0.0.2:80", "127.0.0.3:80"])));
        assert_eq!(outcome.unwrap(), Ok(()));
        assert_ne!(supervisor.open[0].targets[0].id, 1);
    }

    /// The relay takes no listeners any more.
    #[test]
    fn one_that_drains_refuses_a_reload() {
        let (mut supervisor, mut relay) = supervisor(&fresh("tcp:80", &[nowhere()]));
        supervisor.drain();
        relay.says(vec![FromRelay::Listening(Vec::new())]);
        let outcome = supervisor.reload(Ok(fresh("tcp:81", &[nowhere()])));
        let why = outcome.unwrap().unwrap_err();
        assert!(why.contains("it ends"), "{why}");
        assert_eq!(supervisor.open[0].id, 1);
    }

    #[test]
    fn what_the_node_cannot_have_changes_nothing() {
        let (mut supervisor, mut relay) = supervisor(&fresh("tcp:80", &[nowhere()]));
        relay.says(vec![FromRelay::Listening(vec![format!(
            "2 {}",
            libc::EADDRINUSE
        )])]);
        let outcome = supervisor.reload(Ok(fresh("tcp:81", &[nowhere()])));
        let why = outcome.unwrap().unwrap_err();
        assert!(why.contains("cannot listen on tcp:81"), "{why}");
        assert_eq!((supervisor.open.len(), supervisor.open[0].id), (1, 1));
        assert!(supervisor.coming.is_empty());
        assert_eq!(supervisor.reloads, [0, 1]);
    }

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
