// SPDX-License-Identifier: GPL-2.0
//! What one source may take of a listener: connections at one time, new ones and bytes in a second.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use super::wire::{End, Listen, ListenerId};
use crate::tuning::SOURCES_MAX;

/// Who counts as one, for one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(ListenerId, IpAddr);

impl Source {
    /// A host has a whole network of 64 bits of IPv6.
    pub fn of(listener: ListenerId, address: IpAddr) -> Source {
        const NETWORK: u128 = u128::MAX << 64;
        match address.to_canonical() {
            IpAddr::V6(v6) => Source(listener, Ipv6Addr::from(u128::from(v6) & NETWORK).into()),
            v4 => Source(listener, v4),
        }
    }
}

#[derive(Debug)]
struct Account {
    connections: u32,
    /// New connections that it may make now, and bytes that it may pass; the bytes may be overdrawn.
    starts: f64,
    bytes: f64,
    since: Instant,
}

impl Account {
    fn new(limits: &Listen, now: Instant) -> Account {
        Account {
            connections: 0,
            starts: limits.rate.map_or(0.0, f64::from),
            bytes: limits.bytes.map_or(0.0, |bytes| bytes as f64),
            since: now,
        }
    }

    /// A second's worth may be saved up.
    fn fill(&mut self, limits: &Listen, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = now;
        let add = |have: f64, per_second: f64| (have + per_second * passed).min(per_second);
        self.starts = add(self.starts, limits.rate.map_or(0.0, f64::from));
        self.bytes = add(self.bytes, limits.bytes.map_or(0.0, |bytes| bytes as f64));
    }
}

#[derive(Debug, Default)]
pub struct Sources {
    accounts: HashMap<Source, Account>,
}

impl Sources {
    /// One more connection, to be given back by [`Sources::leave`]; or why not.
    pub fn enter(&mut self, source: Source, limits: &Listen, now: Instant) -> Result<(), End> {
        if !is_limited(limits) {
            return Ok(());
        }
        if self.accounts.len() >= SOURCES_MAX && !self.accounts.contains_key(&source) {
            self.forget();
            // So many have a connection each: nobody else has room.
            if self.accounts.len() >= SOURCES_MAX {
                return Err(End::Full);
            }
        }
        let account = self
            .accounts
            .entry(source)
            .or_insert_with(|| Account::new(limits, now));
        account.fill(limits, now);
        if limits
            .connections
            .is_some_and(|max| account.connections >= max)
        {
            return Err(End::Connections);
        }
        if limits.rate.is_some() {
            if account.starts < 1.0 {
                return Err(End::Rate);
            }
            account.starts -= 1.0;
        }
        account.connections += 1;
        Ok(())
    }

    pub fn leave(&mut self, source: Source) {
        if let Some(account) = self.accounts.get_mut(&source) {
            account.connections = account.connections.saturating_sub(1);
        }
    }

    /// Whether it may pass bytes now.
    pub fn may_pass(&mut self, source: Source, limits: &Listen, now: Instant) -> bool {
        match (limits.bytes, self.accounts.get_mut(&source)) {
            (Some(_), Some(account)) => {
                account.fill(limits, now);
                account.bytes > 0.0
            }
            _ => true,
        }
    }

    pub fn passed(&mut self, source: Source, bytes: u64) {
        if let Some(account) = self.accounts.get_mut(&source) {
            account.bytes -= bytes as f64;
        }
    }

    /// Those who have nothing open; what they have saved up or overdrawn goes with them.
    fn forget(&mut self) {
        self.accounts.retain(|_, account| account.connections > 0);
    }
}

/// Whether [`Sources::enter`] counts, so that there is something to give back.
pub fn is_limited(limits: &Listen) -> bool {
    limits.connections.is_some() || limits.rate.is_some() || limits.bytes.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn listen(connections: Option<u32>, rate: Option<u32>, bytes: Option<u64>) -> Listen {
        Listen {
            id: 1,
            is_stream: true,
            address: None,
            port: 80,
            proxy_in: false,
            proxy_out: None,
            connect_ms: 1000,
            idle_ms: None,
            connections,
            rate,
            bytes,
        }
    }

    fn source(text: &str) -> Source {
        Source::of(1, text.parse().unwrap())
    }

    #[test]
    fn each_has_its_own() {
        let (mut sources, now) = (Sources::default(), Instant::now());
        let limits = listen(Some(2), None, None);
        let mut enter = |who: &str| sources.enter(source(who), &limits, now);
        assert_eq!(enter("192.0.2.1"), Ok(()));
        assert_eq!(enter("::ffff:192.0.2.1"), Ok(()));
        assert_eq!(enter("192.0.2.1"), Err(End::Connections));
        assert_eq!(enter("2001:db8::1"), Ok(()));
        assert_eq!(enter("2001:db8::2"), Ok(()));
        assert_eq!(enter("2001:db8::3"), Err(End::Connections));
        sources.leave(source("192.0.2.1"));
        assert_eq!(sources.enter(source("192.0.2.1"), &limits, now), Ok(()));
    }

    #[test]
    fn rates_are_of_a_second() {
        let (mut sources, mut now) = (Sources::default(), Instant::now());
        let limits = listen(None, Some(10), Some(1000));
        let who = source("192.0.2.1");
        for _ in 0..10 {
            assert_eq!(sources.enter(who, &limits, now), Ok(()));
        }
        assert_eq!(sources.enter(who, &limits, now), Err(End::Rate));
        now += Duration::from_millis(150);
        assert_eq!(sources.enter(who, &limits, now), Ok(()));
        assert_eq!(sources.enter(who, &limits, now), Err(End::Rate));
        assert!(sources.may_pass(who, &limits, now));
        sources.passed(who, 2500);
        assert!(!sources.may_pass(who, &limits, now));
        now += Duration::from_secs(1);
        assert!(!sources.may_pass(who, &limits, now));
        now += Duration::from_secs(1);
        assert!(sources.may_pass(who, &limits, now));
    }

    #[test]
    fn the_table_is_bounded() {
        let (mut sources, now) = (Sources::default(), Instant::now());
        let limits = listen(Some(1), None, None);
        let who = |n: u32| Source::of(1, IpAddr::from(n.to_be_bytes()));
        for n in 0..SOURCES_MAX as u32 {
            assert_eq!(sources.enter(who(n), &limits, now), Ok(()));
        }
        assert_eq!(sources.enter(who(u32::MAX), &limits, now), Err(End::Full));
        sources.leave(who(7));
        assert_eq!(sources.enter(who(u32::MAX), &limits, now), Ok(()));
    }
}
