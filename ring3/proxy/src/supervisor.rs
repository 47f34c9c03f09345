// SPDX-License-Identifier: GPL-2.0
//! The loop: the relay's wishes, signals, commands.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use ring3_config::ProxyConfig;
use ring3_node::outside::Outside;
use ring3_relay::proxy::wire::{
    Broken, Counts, End, FromRelay, Line, ListenerId, Start, TargetId, ToRelay,
};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getrlimit, Resource};
use serde_json::json;

use crate::child::{self, open_ports};
use crate::control::{self, Control};
use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::metrics::{numbers, Snapshot};
use crate::reading::{Fresh, Reading};
use crate::reload::Open;
use crate::scrape::{Answer, Scrapes};
use crate::wants::{Wants, LATER_TURN};
use crate::Orders;

/// A relay joins its nodes and serves in some 10 ms on an idle machine.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How often what has no event is looked at: the end of a grace.
pub const TURN: Duration = Duration::from_millis(200);
/// Sockets that wait for the relay to take them; it has asked for each, and hears the rest later.
const WAITING_MAX: usize = 256;

pub struct Supervisor<'a> {
    pub orders: &'a Orders<'a>,
    pub config: ProxyConfig,
    line: Line,
    child: Child,
    /// What the proxy's own node has on the host.
    outside: Option<Outside>,
    pub open: Vec<Open>,
    /// What a reload will make of them, until the relay has said that it can.
    pub coming: Vec<Open>,
    /// Listeners that are closed, for clients whose connection was just opening; and targets that are gone, as long as they
    /// have connections.
    pub closed: Vec<Open>,
    /// Names of listeners that are closed, whose connections may go on.
    pub names: HashMap<ListenerId, String>,
    pub last_listener: ListenerId,
    pub last_target: TargetId,
    pub said: Vec<ToRelay>,
    /// Descriptors of what is said, in its order.
    pub fds: Vec<OwnedFd>,
    pub wants: Wants,
    pub journal: Journal,
    pub ends: BTreeMap<(String, End), u64>,
    /// Who waits for numbers, until the relay has told its own.
    answers: Vec<Answer>,
    pub reading: Reading,
    pub reloads: [u64; 2],
    /// What the relay has said of its listeners.
    pub listening: Option<Vec<String>>,
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
    let others = config.others();
    let fresh = Fresh::of(config, &others)?;
    let mut supervisor = Supervisor::start(orders, fresh, others)?;
    let served = supervisor.serve(&signal, &control, &scrapes);
    supervisor.end();
    served
}

impl<'a> Supervisor<'a> {
    fn start(orders: &'a Orders<'a>, fresh: Fresh, others: Vec<String>) -> Result<Supervisor<'a>> {
        let journal = Journal::open(fresh.config.log.as_deref())?;
        let reading = Reading::new(orders.source.clone(), &others)?;
        let (line, child) = child::start(orders.verb)?;
        let mut supervisor =
            Supervisor::new(orders, fresh.config.clone(), journal, reading, line, child);
        let begun = supervisor.begin(&fresh, others);
        if begun.is_err() {
            supervisor.end();
        }
        begun.map(|()| supervisor)
    }

    /// Of a relay that has heard nothing yet.
    pub fn new(
        orders: &'a Orders<'a>,
        config: ProxyConfig,
        journal: Journal,
        reading: Reading,
        line: Line,
        child: Child,
    ) -> Supervisor<'a> {
        Supervisor {
            orders,
            config,
            line,
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
            wants: Wants::new(connections_max()),
            journal,
            ends: BTreeMap::new(),
            answers: Vec::new(),
            reading,
            reloads: [0; 2],
            listening: None,
            drains_until: None,
            is_empty: false,
        }
    }

    fn begin(&mut self, fresh: &Fresh, others: Vec<String>) -> Result<()> {
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
        let open = self.number(fresh)?;
        self.take_over(open)?.map_err(Error::Listeners)
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

    pub fn wait_for_line(&self, time: Duration) -> Result<()> {
        let mut fds = [PollFd::from_borrowed_fd(self.line.as_fd(), PollFlags::IN)];
        wait(&mut fds, time)
    }

    pub fn flush(&mut self) -> Result<()> {
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
            // A relay that does not listen is not heard either: it has asked for all that waits.
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
                PollFd::from_borrowed_fd(self.reading.as_fd(), PollFlags::IN),
            ];
            match (self.wants.any_later(), self.drains_until) {
                (true, _) => wait(&mut fds, LATER_TURN)?,
                (false, Some(_)) => wait(&mut fds, TURN)?,
                (false, None) => drop(poll(&mut fds, None)),
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
            if ready[4] {
                self.on_read()?;
            }
            self.look_at_later();
            self.flush()?;
            let is_late = self.drains_until.is_some_and(|it| it <= Instant::now());
            if self.is_empty || is_late {
                let about = json!({"connections_left": self.active()});
                self.journal.event("ended", about);
                return Ok(());
            }
        }
    }

    pub fn active(&self) -> u64 {
        let all = self.open.iter().chain(&self.closed);
        let targets = all.flat_map(|it| &it.targets);
        targets.map(|it| it.active).sum()
    }

    /// True: at once.
    fn on_signals(&mut self, signal: &SignalFd) -> bool {
        while let Ok(Some(info)) = signal.read_signal() {
            if info.ssi_signo == Signal::SIGHUP as u32 {
                // Whoever sent it reads the log.
                self.reading.ask(None);
            } else if self.drains_until.is_some() {
                return true;
            } else {
                self.drain();
            }
        }
        false
    }

    /// It takes no more clients, and ends after the last.
    pub fn drains(&self) -> bool {
        self.drains_until.is_some()
    }

    pub fn drain(&mut self) {
        if self.drains() {
            return;
        }
        self.drains_until = Some(Instant::now() + self.config.grace);
        self.said.push(ToRelay::Drain);
        let grace = self.config.grace.as_millis() as u64;
        self.journal.event("drains", json!({"grace_ms": grace}));
    }

    fn on_command(&mut self, control: &Control) {
        while let Some((words, stream)) = control.hear() {
            match words.as_str() {
                "reload" => self.reading.ask(Some(stream)),
                _ => control::answer(stream, &Err("it knows `reload` only".into())),
            }
        }
    }

    pub fn hear(&mut self) -> Result<()> {
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
                    } => self.want(ask, listener, tried)?,
                    FromRelay::Unused { ask, target } => self.unused(ask, target)?,
                    FromRelay::Over(over) => self.over(over)?,
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

/// As many as the relay may have descriptors: it has this process's limit.
fn connections_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit
        .and_then(|it| usize::try_from(it).ok())
        .unwrap_or(usize::MAX)
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
