// SPDX-License-Identifier: GPL-2.0
//! How many connections from outside there are, and of whom: nobody outside takes all of the gateway's descriptors.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

#[derive(Debug)]
pub struct Guests {
    all: u32,
    all_max: u32,
    of_one_max: u32,
    of: HashMap<IpAddr, u32>,
}

/// Who counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest(IpAddr);

impl Guest {
    /// A host has a whole network of 64 bits of IPv6.
    fn of(address: IpAddr) -> Guest {
        const NETWORK: u128 = u128::MAX << 64;
        match address.to_canonical() {
            IpAddr::V6(v6) => Guest(Ipv6Addr::from(u128::from(v6) & NETWORK).into()),
            v4 => Guest(v4),
        }
    }
}

impl Guests {
    pub fn new(all_max: u32, of_one_max: u32) -> Guests {
        Guests {
            all: 0,
            all_max,
            of_one_max,
            of: HashMap::new(),
        }
    }

    /// One more, unless there are too many; to be given back by [`Guests::leave`].
    pub fn enter(&mut self, address: IpAddr) -> Option<Guest> {
        let guest = Guest::of(address);
        let own = self.of.get(&guest.0).copied().unwrap_or(0);
        if self.all >= self.all_max || own >= self.of_one_max {
            return None;
        }
        self.all += 1;
        self.of.insert(guest.0, own + 1);
        Some(guest)
    }

    pub fn leave(&mut self, guest: Guest) {
        self.all = self.all.saturating_sub(1);
        if let Some(own) = self.of.get_mut(&guest.0) {
            *own -= 1;
            if *own == 0 {
                self.of.remove(&guest.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_does_not_keep_others_out() {
        let mut guests = Guests::new(5, 3);
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"].map(|it| guests.enter(ip(it)));
        assert!(first.iter().all(Option::is_some));
        assert_eq!(guests.enter(ip("192.0.2.1")), None);
        let other = guests.enter(ip("2001:db8::1")).unwrap();
        assert_eq!(guests.enter(ip("2001:db8::2")), Some(other));
        assert_eq!(guests.enter(ip("198.51.100.1")), None);
        guests.leave(other);
        assert!(guests.enter(ip("198.51.100.1")).is_some());
        assert_eq!(guests.of.len(), 3);
        guests.leave(other);
        assert_eq!(guests.of.len(), 2);
    }
}
