// SPDX-License-Identifier: GPL-2.0
//! Which target is next, and a socket that connects to it.
//!
//! Targets take turns by their weights, spread evenly (the smooth form of weighted round robin that nginx has). One that is
//! down by its health checks has no turn. One that did not answer rests for a moment, unless all do.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use ring3_config::proxy::{Listener, Target};
use ring3_relay::proxy::wire::TargetId;
use ring3_relay::sockets;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::Result;
use crate::health::Watch;

/// A target that did not answer has no turn for so long (nginx's fail_timeout is 10 s, after which clients wait again).
const REST: Duration = Duration::from_secs(2);

/// Where a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Addresses(Vec<SocketAddr>),
    Unix(std::path::PathBuf),
    /// The number of the node among the others, and where there.
    Node(usize, SocketAddr),
}

impl Place {
    /// A resolver gives the addresses of a name in another order each time.
    pub fn is_same(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Addresses(all), Place::Addresses(others)) => {
                let set = |all: &[SocketAddr]| all.iter().copied().collect::<BTreeSet<_>>();
                set(all) == set(others)
            }
            _ => self == other,
        }
    }
}

#[derive(Debug)]
pub struct Live {
    /// Of its first address; the others have the numbers after it.
    pub id: TargetId,
    pub spec: Target,
    pub place: Place,
    /// The address that is tried first.
    at: usize,
    turn: i64,
    rests_until: Option<Instant>,
    pub watch: Option<Watch>,
    pub active: u64,
    pub served: u64,
    pub failed: u64,
}

/// What a target is given to a client as.
#[derive(Debug)]
pub enum Given {
    Socket(OwnedFd),
    Node(usize, SocketAddr),
}

impl Live {
    pub fn new(id: TargetId, spec: Target, place: Place, listener: &Listener) -> Result<Live> {
        let watch = match (&listener.health, &place) {
            // The relay alone reaches another node.
            (Some(_), Place::Node(..)) | (None, _) => None,
            (Some(health), place) => {
                let name = spec.to.to_string();
                Some(Watch::start(health, listener.proxy_out, place, &name)?)
            }
        };
        Ok(Live {
            id,
            spec,
            place,
            at: 0,
            turn: 0,
            rests_until: None,
            watch,
            active: 0,
            served: 0,
            failed: 0,
        })
    }

    pub fn is_up(&self) -> bool {
        self.watch.as_ref().is_none_or(Watch::is_up)
    }

    fn rests(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// How many addresses it has to try.
    pub fn tries(&self) -> usize {
        match &self.place {
            Place::Addresses(all) => all.len(),
            _ => 1,
        }
    }

    /// Which of its addresses has this number.
    fn place_of(&self, id: TargetId) -> Option<usize> {
        let at = id.checked_sub(self.id)? as usize;
        (at < self.tries()).then_some(at)
    }

    pub fn has(&self, id: TargetId) -> bool {
        self.place_of(id).is_some()
    }

    /// The address whose turn it is for a client that has tried these.
    pub fn turn_of(&self, tried: &[TargetId]) -> TargetId {
        let all = (0..self.tries()).map(|step| (self.at + step) % self.tries());
        let mut left = all.map(|at| self.id + at as TargetId);
        let fresh = left.find(|id| !tried.contains(id));
        fresh.unwrap_or(self.id + self.at as TargetId)
    }

    /// The last of `tried`, all that a client has tried, did not answer.
    pub fn fail(&mut self, tried: &[TargetId], now: Instant) {
        self.failed += 1;
        // Clients that have failed there at the same time have moved it already.
        if tried.last().and_then(|id| self.place_of(*id)) == Some(self.at) {
            self.at = (self.at + 1) % self.tries();
        }
        // Another address may answer at once.
        if tried.iter().filter(|id| self.has(**id)).count() >= self.tries() {
            self.rests_until = Some(now + REST);
        }
    }

    /// A socket that connects to it, or that will have done so soon. EAGAIN: a unix target's backlog is full.
    pub fn give(&self, id: TargetId, is_stream: bool) -> Result<Given, Errno> {
        match &self.place {
            Place::Addresses(all) => {
                let at = self.place_of(id).and_then(|at| all.get(at));
                let to = at.ok_or(Errno::ADDRNOTAVAIL)?;
                connect(*to, is_stream).map(Given::Socket)
            }
            Place::Unix(path) => connect_unix(path).map(Given::Socket),
            Place::Node(at, to) => Ok(Given::Node(*at, *to)),
        }
    }
}

/// The next of these to have a turn; those in `tried` have had theirs.
pub fn next<'a>(all: &'a mut [Live], tried: &[TargetId], now: Instant) -> Option<&'a mut Live> {
    let is_left = |it: &Live| {
        let times = tried.iter().filter(|id| it.has(**id)).count();
        times < it.tries() && it.is_up()
    };
    let any_awake = all.iter().any(|it| is_left(it) && !it.rests(now));
    let may = |it: &Live| is_left(it) && (!any_awake || !it.rests(now));
    let mut total = 0;
    for it in all.iter_mut() {
        if may(it) {
            it.turn += i64::from(it.spec.weight);
            total += i64::from(it.spec.weight);
        }
    }
    let best = all.iter_mut().filter(|it| may(it));
    // The first of those that are equal.
    let chosen = best.reduce(|best, it| if it.turn > best.turn { it } else { best })?;
    chosen.turn -= total;
    Some(chosen)
}

pub fn connect(to: SocketAddr, is_stream: bool) -> Result<OwnedFd, Errno> {
    let kind = match is_stream {
        true => SocketType::STREAM,
        false => SocketType::DGRAM,
    };
    let (socket, _) = sockets::connect(to, kind)?;
    if is_stream {
        sockets::ask_for_life(&socket)?;
    }
    Ok(socket)
}

pub fn connect_unix(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ring3_config::proxy::To;

    /// Of an address in figures.
    pub fn place(to: &To) -> Place {
        Place::Addresses(vec![to.to_string().parse().unwrap()])
    }

    fn live(weights: &[u32]) -> Vec<Live> {
        let listener = Listener::new("tcp:80".parse().unwrap(), Vec::new());
        let make = |(at, weight): (usize, &u32)| {
            let mut spec = Target::new("127.0.0.1:1".parse().unwrap());
            spec.weight = *weight;
            let place = place(&spec.to);
            Live::new(at as u32, spec, place, &listener).unwrap()
        };
        weights.iter().enumerate().map(make).collect()
    }

    fn turns(all: &mut [Live], count: usize, now: Instant) -> Vec<TargetId> {
        (0..count)
            .map(|_| next(all, &[], now).unwrap().id)
            .collect()
    }

    #[test]
    fn turns_are_by_weight_and_spread() {
        let mut all = live(&[5, 1, 1]);
        assert_eq!(turns(&mut all, 7, Instant::now()), [0, 0, 1, 0, 2, 0, 0]);
        let mut all = live(&[1, 1]);
        assert_eq!(turns(&mut all, 4, Instant::now()), [0, 1, 0, 1]);
    }

    #[test]
    fn one_that_does_not_answer_rests() {
        let (mut all, now) = (live(&[1, 1, 1]), Instant::now());
        all[1].fail(&[1], now);
        assert!(!turns(&mut all, 6, now).contains(&1));
        assert!(turns(&mut all, 6, now + REST).contains(&1));
        // Where all rest, all may be tried: a client does not wait for nothing.
        all.iter_mut().for_each(|it| it.fail(&[it.id], now + REST));
        assert!(next(&mut all, &[0, 1], now + REST).is_some_and(|it| it.id == 2));
        assert!(next(&mut all, &[0, 1, 2], now + REST).is_none());
    }

    #[test]
    fn each_address_of_a_name_is_tried() {
        let (mut all, now) = (live(&[1]), Instant::now());
        let two = ["127.0.0.1:1", "127.0.0.2:1"].map(|it| it.parse().unwrap());
        all[0].place = Place::Addresses(two.into());
        assert!(next(&mut all, &[0], now).is_some());
        assert!(next(&mut all, &[0, 1], now).is_none());
        // Two clients fail at the first address at once: each has the second then.
        for _ in 0..2 {
            assert_eq!(all[0].turn_of(&[0]), 1);
            all[0].fail(&[0], now);
            assert!(!all[0].rests(now));
        }
        assert_eq!((all[0].turn_of(&[0]), all[0].turn_of(&[])), (1, 1));
        assert!(matches!(&all[0].place, Place::Addresses(it) if it.len() == 2));
        assert_eq!(all[0].turn_of(&[1]), 0);
        all[0].fail(&[0, 1], now);
        assert!(all[0].rests(now));
    }
}
