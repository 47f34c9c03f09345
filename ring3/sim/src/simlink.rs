// SPDX-License-Identifier: GPL-2.0
//! Links of virtual time: pairs of interfaces of the kind `simlink` (kernel/drivers/net/ring3/simlink.c).
//!
//! `ip` does not know their properties. The words for them look like its own, and are for rtnl.rs only.

use std::time::Duration;

use crate::rtnl_message::{attribute, NEWLINK_BYTES};
use crate::scenario::Wire;

const KIND: &[u8] = b"simlink\0";
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;

// kernel/drivers/net/ring3/simlink.h
const PEER_NAME: u16 = 1;
const PEER_NETNS: u16 = 2;
const PEER_ADDRESS: u16 = 3;
/// Properties of a wire: name, number, whether it has 64 bits.
const PROPERTIES: [(&str, u16, bool); 8] = [
    ("rate", 4, true),
    ("delay", 5, true),
    ("jitter", 6, true),
    ("loss", 7, false),
    ("corrupt", 8, false),
    ("duplicate", 9, false),
    ("reorder", 10, false),
    ("seed", 11, true),
];

/// An end of a link: its namespace, interface and link address.
pub type End<'a> = (&'a str, &'a str, &'a str);

pub fn add((space, name, mac): End, (far_space, far_name, far_mac): End) -> String {
    format!(
        "link add {name} netns {space} address {mac} type simlink peer name {far_name} netns {far_space} address {far_mac}"
    )
}

/// What happens to what leaves by an interface. The random numbers go on where no seed is said.
pub fn set(dev: &str, wire: &Wire, seed: Option<u64>) -> String {
    let nanos = |time: Duration| time.as_nanos().min(u128::from(u64::MAX >> 1));
    let mut words = format!(
        "link set {dev} type simlink rate {} delay {} jitter {} loss {} corrupt {} duplicate {} reorder {}",
        wire.rate.map_or(0, |rate| rate.0),
        nanos(wire.delay),
        nanos(wire.jitter),
        parts(wire.loss),
        parts(wire.corrupt),
        parts(wire.duplicate),
        parts(wire.reorder),
    );
    if let Some(seed) = seed {
        words += &format!(" seed {seed}");
    }
    words
}

/// A share in parts of 2^32; a float becomes the nearest number that there is.
fn parts(share: f64) -> u32 {
    (share * 2f64.powi(32)) as u32
}

/// Each direction of each link has random numbers of its own.
pub fn seed(scenario: u64, link: usize, side: usize) -> u64 {
    // The fractional part of the golden ratio: neighbours get far apart.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let which = (2 * link + side + 1) as u64;
    scenario ^ which.wrapping_mul(GOLDEN).rotate_left(31)
}

/// The body of the message that makes a pair; namespaces as descriptors.
pub fn new_pair(near: (i32, &str, &[u8]), far: (i32, &str, &[u8])) -> Vec<u8> {
    let text = |name: &str| [name.as_bytes(), &[0]].concat();
    let mut data = Vec::new();
    attribute(&mut data, PEER_NAME, &text(far.1));
    attribute(&mut data, PEER_NETNS, &far.0.to_ne_bytes());
    attribute(&mut data, PEER_ADDRESS, far.2);
    let mut body = vec![0; NEWLINK_BYTES];
    attribute(&mut body, IFLA_IFNAME, &text(near.1));
    attribute(&mut body, IFLA_ADDRESS, near.2);
    attribute(&mut body, IFLA_NET_NS_FD, &near.0.to_ne_bytes());
    info(&mut body, &data);
    body
}

/// The attributes for `PROPERTY VALUE ...`; None: a word is not known.
pub fn properties(words: &[&str]) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    for pair in words.chunks(2) {
        let [name, value] = pair else { return None };
        let (_, kind, is_wide) = PROPERTIES.iter().find(|(known, ..)| known == name)?;
        match is_wide {
            true => attribute(&mut data, *kind, &value.parse::<u64>().ok()?.to_ne_bytes()),
            false => attribute(&mut data, *kind, &value.parse::<u32>().ok()?.to_ne_bytes()),
        }
    }
    let mut out = Vec::new();
    info(&mut out, &data);
    Some(out)
}

fn info(out: &mut Vec<u8>, data: &[u8]) {
    let mut info = Vec::new();
    attribute(&mut info, INFO_KIND, KIND);
    attribute(&mut info, INFO_DATA, data);
    attribute(out, IFLA_LINKINFO, &info);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver's header has the same numbers.
    #[test]
    fn numbers_are_the_drivers() {
        let header = include_str!("../../../kernel/drivers/net/ring3/simlink.h");
        let mut known = vec![
            ("PEER_NAME".to_owned(), PEER_NAME),
            ("PEER_NETNS".to_owned(), PEER_NETNS),
            ("PEER_ADDRESS".to_owned(), PEER_ADDRESS),
        ];
        known.extend(PROPERTIES.map(|(name, kind, _)| (name.to_uppercase(), kind)));
        let mut seen = 0;
        for line in header.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let ["#define", name, number, rest @ ..] = words.as_slice() else {
                continue;
            };
            let Some(name) = name.strip_prefix("SIMLINK_").filter(|name| *name != "MAX") else {
                continue;
            };
            let (_, kind) = known.iter().find(|(it, _)| it == name).expect(name);
            assert_eq!(number.parse(), Ok(*kind), "{name}");
            if let Some((.., is_wide)) = PROPERTIES.iter().find(|(_, it, _)| it == kind) {
                assert_eq!(rest.join(" ").contains("u64"), *is_wide, "{name}: {rest:?}");
            }
            seen += 1;
        }
        assert_eq!(seen, known.len());
    }

    #[test]
    fn shares_are_parts_of_all() {
        assert_eq!(parts(0.0), 0);
        assert_eq!(parts(0.5), 1 << 31);
        assert_eq!(parts(1.0), u32::MAX);
    }

    #[test]
    fn each_direction_has_its_own_seed() {
        let mut seeds: Vec<u64> = (0..1000)
            .flat_map(|link| [seed(1, link, 0), seed(1, link, 1)])
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 2000);
    }

    #[test]
    fn words_that_are_not_known_are_refused() {
        assert!(properties(&["rate", "1", "seed", "2"]).is_some());
        assert!(properties(&["rate"]).is_none());
        assert!(properties(&["rate", "x"]).is_none());
        assert!(properties(&["speed", "1"]).is_none());
    }
}
