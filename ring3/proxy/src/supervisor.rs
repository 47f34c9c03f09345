// SPDX-License-Identifier: GPL-2.0
//! The loop: the relay's wishes, signals, commands.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use ring3_config::proxy::{Listener, Version};
use ring3_config::ProxyConfig;
use ring3_node::outside::{Outside, Trust};
use ring3_node::Folder;
use ring3_relay::proxy::wire::{
    self, Ask, Broken, Counts, End, FromRelay, Line, Listen, ListenerId, Over, Start, TargetId,
    ToRelay,
};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde_json::json;

use crate::control::{self, Control};
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::metrics::{Snapshot, TargetNumbers};
use crate::scrape::{Answer, Scrapes};
use crate::targets::{self, Given, Live};
use crate::Orders;

/// A relay joins its nodes and serves in some 10 ms on an idle machine.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// A relay that does not say what its listeners became.
const LISTEN_PATIENCE: Duration = Duration::from_secs(20);
/// How often what has no event is looked at: the end of a grace.
const TURN: Duration = Duration::from_millis(200);
/// Sockets that wait for the relay to take them; it has asked for each, and hears the rest later.
const WAITING_MAX: usize = 256;
/// What the relay's environment keeps: where nodes are, how much is said, another kernel for a node of its own.
const ENVIRONMENT: [&str; 3] = ["XDG_RUNTIME_DIR", "RING3_LOG", "RING3_IMAGE"];

struct Open {
    id: ListenerId,
    config: Listener,
    targets: Vec<Live>,
}

struct Supervisor<'a> {
    orders: &'a Orders<'a>,
    config: ProxyConfig,
    /// Nodes that the relay has joined besides.
    others: Vec<String>,
    line: Line,
    child: Child,
    /// What the proxy's own node has on the host.
    outside: Option<Outside>,
    open: Vec<Open>,
    /// What a reload will make of them, until the relay has said that it can.
    coming: Vec<Open>,
    /// Listeners that are closed, for clients whose connection was just opening.
    closed: Vec<Open>,
    /// Names of listeners that are closed, whose connections may go on.
    names: HashMap<ListenerId, String>,
    last_listener: ListenerId,
    last_target: TargetId,
    said: Vec<ToRelay>,
    fds: Vec<OwnedFd>,
    journal: Journal,
    ends: BTreeMap<(String, End), u64>,
    /// Who waits for numbers, until the relay has told its own.
    answers: Vec<Answer>,
    reloads: [u64; 2],
    /// What the relay has said of its listeners.
    listening: Option<Vec<String>>,
    drains_until: Option<Instant>,
    is_empty: bool,
}

/// `ring3 proxy`, until SIGTERM and the last connection.
pub fn run(orders: &Orders<'_>) -> Result<()> {
    // Before there are threads, which inherit it; the relay does, too.
    let signals: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]
        .into_iter()
        .collect();
    let fail = |why: nix::Error| Error::host("watch for signals")(why);
    signals.thread_block().map_err(fail)?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signal = SignalFd::with_flags(&signals, flags).map_err(fail)?;
    // Sockets for a burst of clients wait here.
    ring3_node::raise_descriptor_limit();
    let config = orders.source.read()?;
    let name = orders.name.clone().unwrap_or_else(|| config.on.clone());
    ring3_config::name::node(&name)?;
    let control = Control::open(&name)?;
    let scrapes = match config.metrics {
        Some(address) => Scrapes::serve(address)?,
        None => Scrapes::none()?,
    };
    let mut supervisor = Supervisor::start(orders, config)?;
    let served = supervisor.serve(&signal, &control, &scrapes);
    supervisor.end();
    served
}

impl<'a> Supervisor<'a> {
    fn start(orders: &'a Orders<'a>, config: ProxyConfig) -> Result<Supervisor<'a>> {
        let journal = Journal::open(config.log.as_deref())?;
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(Error::host("make a socket pair"))?;
        let exe = std::env::current_exe().map_err(Error::host("find where ring3 is"))?;
        let mut command = Command::new(exe);
        // What is typed is for this process.
        command.arg(orders.verb).process_group(0).env_clear();
        for key in ENVIRONMENT {
            if let Some(value) = std::env::var_os(key) {
                command.env(key, value);
            }
        }
        let child = command
            .stdin(theirs)
            .stdout(Stdio::null())
            .spawn()
            .map_err(Error::host("start the relay"))?;
        // As long as its end is open here, its end is not seen.
        drop(command);
        let others = config.others();
        let mut supervisor = Supervisor {
            orders,
            others: others.clone(),
            line: Line::new(ours),
            child,
            outside: None,
            open: Vec::new(),
            coming: Vec::new(),
            closed: Vec::new(),
            names: HashMap::new(),
            last_listener: 0,
            last_target: 0,
            said: Vec::new(),
            fds: Vec::new(),
            journal,
            ends: BTreeMap::new(),
            answers: Vec::new(),
            reloads: [0; 2],
            listening: None,
            drains_until: None,
            is_empty: false,
            config,
        };
        let begun = supervisor.begin(others);
        if begun.is_err() {
            supervisor.end();
        }
        begun.map(|()| supervisor)
    }

    fn begin(&mut self, others: Vec<String>) -> Result<()> {
        let start = Start {
            node: self.config.on.clone(),
            ports: self.config.ports.clone(),
            others,
        };
        if !start.ports.is_empty() {
            self.outside = Some(open_ports(&start)?);
        }
        self.said.push(ToRelay::Start(start));
        self.flush()?;
        if let Some(outside) = &self.outside {
            outside.send(self.line.socket())?;
        }
        self.hear_first()?;
        let config = self.config.clone();
        self.take_over(&config)
    }

    fn hear_first(&mut self) -> Result<()> {
        let end = Instant::now() + START_PATIENCE;
        while Instant::now() < end {
            self.wait_for_line(TURN)?;
            let heard = self.line.hear::<FromRelay>();
            let heard = heard.map_err(|why| match why {
                Broken::Gone => Error::NotStarted("it ended without a word".into()),
                why => Error::NotStarted(why.to_string()),
            })?;
            for it in heard.into_iter().flat_map(|(said, _)| said) {
                match it {
                    FromRelay::Serves => return Ok(()),
                    FromRelay::Failed(why) => return Err(Error::NotStarted(why)),
                    _ => {}
                }
            }
        }
        Err(Error::NotStarted("it says nothing for 20 s".into()))
    }

    fn wait_for_line(&self, time: Duration) -> Result<()> {
        let mut fds = [PollFd::from_borrowed_fd(self.line.as_fd(), PollFlags::IN)];
        wait(&mut fds, time)
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

    /// Has these listeners from now on. What is the same as before stays as it is. On an error nothing has changed.
    fn take_over(&mut self, config: &ProxyConfig) -> Result<()> {
        let (mut last_listener, mut last_target) = (self.last_listener, self.last_target);
        let mut open = Vec::new();
        for listener in &config.listeners {
            let before = self
                .open
                .iter()
                .find(|it| it.config.listen == listener.listen);
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
                let live = Live::new(first, spec.clone(), listener, &self.others)?;
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

    fn reload(&mut self) -> Result<(), String> {
        let outcome = self.try_reload().map_err(|why| why.to_string());
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

    fn try_reload(&mut self) -> Result<()> {
        let config = self.orders.source.read()?;
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
        self.take_over(&config)?;
        self.journal = journal;
        self.config = config;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let has_fd = |it: &ToRelay| matches!(it, ToRelay::Take { node: None, .. });
        let said = self.line.say(&mut self.said, &mut self.fds, has_fd);
        said.map_err(|why| self.broken(why))
    }

    fn broken(&self, why: Broken) -> Error {
        match why {
            Broken::Gone => Error::RelayEnded {
                node: self.config.on.clone(),
            },
            Broken::Nonsense(why) => Error::RelayBroken(why),
        }
    }

    fn serve(&mut self, signal: &SignalFd, control: &Control, scrapes: &Scrapes) -> Result<()> {
        (self.orders.ready)();
        let about = json!({"node": self.config.on, "listeners": self.open.len()});
        self.journal.event("serves", about);
        loop {
            let mut flags = PollFlags::empty();
            // One that does not listen is not heard either: it has asked for all that waits.
            if self.line.waiting() < WAITING_MAX {
                flags |= PollFlags::IN;
            }
            if self.line.waiting() > 0 {
                flags |= PollFlags::OUT;
            }
            let mut fds = [
                PollFd::from_borrowed_fd(self.line.as_fd(), flags),
                PollFd::new(signal, PollFlags::IN),
                PollFd::new(control, PollFlags::IN),
                PollFd::new(&*scrapes.bell, PollFlags::IN),
            ];
            match self.drains_until {
                Some(_) => wait(&mut fds, TURN)?,
                None => drop(poll(&mut fds, None)),
            }
            let ready = fds.map(|fd| !fd.revents().is_empty());
            if ready[0] {
                self.hear()?;
            }
            if ready[1] && self.on_signals(signal) {
                return Ok(());
            }
            if ready[2] {
                self.on_command(control);
            }
            if ready[3] {
                self.answers.extend(scrapes.take());
                if !self.answers.is_empty() {
                    self.said.push(ToRelay::Tell);
                }
            }
            self.flush()?;
            let is_late = self
                .drains_until
                .is_some_and(|until| Instant::now() >= until);
            if self.is_empty || is_late {
                let about = json!({"connections_left": self.active()});
                self.journal.event("ended", about);
                return Ok(());
            }
        }
    }

    fn active(&self) -> u64 {
        let targets = self.open.iter().flat_map(|it| &it.targets);
        targets.map(|it| it.active).sum()
    }

    /// True: at once.
    fn on_signals(&mut self, signal: &SignalFd) -> bool {
        while let Ok(Some(info)) = signal.read_signal() {
            if info.ssi_signo == Signal::SIGHUP as u32 {
                // Whoever sent it reads the log.
                let _ = self.reload();
            } else if self.drains_until.is_some() {
                return true;
            } else {
                self.drain();
            }
        }
        false
    }

    fn drain(&mut self) {
        if self.drains_until.is_some() {
            return;
        }
        self.drains_until = Some(Instant::now() + self.config.grace);
        self.said.push(ToRelay::Drain);
        let grace = self.config.grace.as_millis() as u64;
        self.journal.event("drains", json!({"grace_ms": grace}));
    }

    fn on_command(&mut self, control: &Control) {
        while let Some((words, stream)) = control.hear() {
            let outcome = match words.as_str() {
                "reload" => self.reload(),
                _ => Err("it knows `reload` only".into()),
            };
            control::answer(stream, &outcome);
        }
    }

    fn hear(&mut self) -> Result<()> {
        // Fewer than all: signals and commands have their turn.
        for _ in 0..WAITING_MAX {
            let heard = self.line.hear::<FromRelay>();
            let Some((said, _)) = heard.map_err(|why| self.broken(why))? else {
                return Ok(());
            };
            for it in said {
                match it {
                    FromRelay::Want {
                        ask,
                        listener,
                        tried,
                        ..
                    } => self.want(ask, listener, &tried),
                    FromRelay::Unused { target } => drop(self.gave_back(target)),
                    FromRelay::Over(over) => self.over(over),
                    FromRelay::Told(told) => self.told(*told),
                    FromRelay::Listening(wrong) => self.listening = Some(wrong),
                    FromRelay::Empty => self.is_empty = self.drains_until.is_some(),
                    FromRelay::Serves => {}
                    FromRelay::Failed(why) => return Err(Error::NotStarted(why)),
                }
            }
            self.flush()?;
        }
        Ok(())
    }

    fn want(&mut self, ask: Ask, listener: ListenerId, tried: &[TargetId]) {
        let now = Instant::now();
        let nothing = ToRelay::Nothing { ask };
        let all = self.open.iter_mut().chain(&mut self.coming);
        let mut all = all.chain(&mut self.closed);
        let Some(open) = all.find(|it| it.id == listener) else {
            return self.said.push(nothing);
        };
        let failed = tried
            .last()
            .and_then(|id| open.targets.iter_mut().find(|it| it.has(*id)));
        if let Some(failed) = failed {
            failed.fail(tried, now);
            failed.active = failed.active.saturating_sub(1);
        }
        let mut tried = tried.to_vec();
        while let Some(target) = targets::next(&mut open.targets, &tried, now) {
            let id = target.turn_of(&tried);
            let node = match target.give(id, open.config.listen.is_stream) {
                Ok(Given::Socket(socket)) => {
                    self.fds.push(socket);
                    None
                }
                Ok(Given::Node(at, to)) => Some((at, to)),
                // This process has no room for it, which is not the target's fault.
                Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => break,
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
            return self.said.push(ToRelay::Take { ask, target, node });
        }
        self.said.push(nothing);
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

    fn over(&mut self, over: Over) {
        let name = self.names.get(&over.listener);
        let Some(name) = name.cloned() else { return };
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
    }

    fn told(&mut self, told: ring3_relay::proxy::wire::Told) {
        let counts: HashMap<ListenerId, Counts> = told.listeners.iter().copied().collect();
        let named = self.open.iter();
        let snapshot = Snapshot {
            listeners: named
                .map(|it| {
                    let counts = counts.get(&it.id).copied().unwrap_or_default();
                    (it.config.name.clone(), counts)
                })
                .collect(),
            ends: self.ends.clone(),
            targets: self.open.iter().flat_map(numbers).collect(),
            told,
            reloads: self.reloads,
            is_draining: self.drains_until.is_some(),
        };
        let text = (self.orders.node_metrics)(&self.config.on) + &snapshot.text();
        for answer in self.answers.drain(..) {
            // One who has gone needs none.
            let _ = answer.send(text.clone());
        }
    }

    /// The relay ends with this process's end of the pair; and by force, if it has been taken over.
    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The relay is confined before it makes its node, and opens no port.
fn open_ports(start: &Start) -> Result<Outside> {
    let config = wire::own_node(start).map_err(|why| Error::Listeners(why.into()))?;
    let folder = Folder::open()?;
    let mut outside = Outside::claim(&config, &folder, Trust::Gateway)?;
    outside.open(&config, &folder)?;
    Ok(outside)
}

fn numbers(open: &Open) -> impl Iterator<Item = TargetNumbers> + '_ {
    open.targets.iter().map(|it| TargetNumbers {
        listener: open.config.name.clone(),
        target: it.spec.to.to_string(),
        is_up: it.is_up(),
        active: it.active,
        served: it.served,
        failed: it.failed,
    })
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

/// For so long at most.
fn wait(fds: &mut [PollFd<'_>], time: Duration) -> Result<()> {
    let time = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    match poll(fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(why) => Err(Error::host("wait for the relay")(why)),
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
                .map(|(it, id)| Live::new(id, it.clone(), &listener, &[]).unwrap())
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
