// SPDX-License-Identifier: GPL-2.0
//! A supervisor whose relay is the test.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use ring3_config::ProxyConfig;
use ring3_relay::proxy::wire::{Ask, End, FromRelay, Line, Over, TargetId, ToRelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::journal::Journal;
use crate::reading::{Fresh, Reading};
use crate::supervisor::Supervisor;
use crate::targets::{connect_unix, Place};
use crate::{Orders, Source};

/// The relay's end.
pub struct Relay {
    line: Line,
}

impl Relay {
    pub fn says(&mut self, mut said: Vec<FromRelay>) {
        self.line
            .say(&mut said, &mut Vec::new(), |_| false)
            .unwrap();
    }

    pub fn says_nonsense(&mut self) {
        rustix::io::write(self.line.socket(), b"[{}]").unwrap();
    }

    pub fn hears(&mut self) -> (Vec<ToRelay>, Vec<OwnedFd>) {
        let (mut said, mut fds) = (Vec::new(), Vec::new());
        while let Some((more, with)) = self.line.hear::<ToRelay>().unwrap() {
            said.extend(more);
            fds.extend(with);
        }
        (said, fds)
    }
}

pub fn want(ask: Ask, listener: u32, tried: &[TargetId]) -> FromRelay {
    FromRelay::Want {
        ask,
        listener,
        client: "192.0.2.1:9".parse().unwrap(),
        tried: tried.to_vec(),
    }
}

pub fn over(ask: Ask, listener: u32, target: Option<TargetId>) -> FromRelay {
    FromRelay::Over(Over {
        ask,
        listener,
        target,
        client: "192.0.2.1:9".parse().unwrap(),
        sent: 0,
        received: 0,
        ms: 0,
        end: End::Done,
    })
}

/// One listener, `listen`, with these targets at these places.
pub fn fresh(listen: &str, targets: &[(&str, Place)]) -> Fresh {
    let to: Vec<_> = targets.iter().map(|(to, _)| to.parse().unwrap()).collect();
    let places = to
        .iter()
        .cloned()
        .zip(targets.iter().map(|it| it.1.clone()));
    let places: HashMap<_, _> = places.collect();
    let config = ProxyConfig::from_words("a", &[listen.parse().unwrap()], &to).unwrap();
    Fresh { config, places }
}

/// A target that has room for one connection, and one without any.
pub fn full_target(folder: &Path, room: i32) -> (String, Place, UnixListener, Vec<OwnedFd>) {
    let path = folder.join(format!("{room}.sock"));
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, room).unwrap();
    let mut waits = Vec::new();
    while let Ok(socket) = connect_unix(&path) {
        waits.push(socket);
    }
    let place = Place::Unix(path.clone());
    (format!("unix:{}", path.display()), place, listener, waits)
}

/// A supervisor that has this already.
pub fn supervisor(fresh: &Fresh) -> (Supervisor<'static>, Relay) {
    let orders: &'static Orders<'static> = Box::leak(Box::new(Orders {
        source: Source::Words(fresh.config.clone()),
        name: None,
        verb: "",
        ready: || (),
        node_metrics: |_| String::new(),
    }));
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let child = std::process::Command::new("true").spawn().unwrap();
    let mut supervisor = Supervisor::new(
        orders,
        fresh.config.clone(),
        Journal::open(None).unwrap(),
        Reading::new(orders.source.clone(), &[]).unwrap(),
        Line::new(ours),
        child,
    );
    let mut relay = Relay {
        line: Line::new(theirs),
    };
    relay.says(vec![FromRelay::Listening(Vec::new())]);
    let open = supervisor.number(fresh).unwrap();
    supervisor.take_over(open).unwrap().unwrap();
    relay.hears();
    (supervisor, relay)
}
