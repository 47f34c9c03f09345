// SPDX-License-Identifier: GPL-2.0
//! No input panics, every error is one line, and what parses prints as itself.
//!
//! Inputs are made of the syntaxes' own pieces, so that most get past the first check.
//! The generator is seeded: a failure comes again.

use std::path::Path;

use crate::{size, sysctl, NodeConfig, PortSpec};

/// xorshift64* (Vigna 2016): enough for picking pieces.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    fn text(&mut self, pieces: &[&str], most: usize) -> String {
        (0..self.roll(most))
            .map(|_| pieces[self.roll(pieces.len())])
            .collect()
    }
}

/// Miri takes some thousand times as long.
fn rounds(all: usize) -> usize {
    if cfg!(miri) {
        all / 1000
    } else {
        all
    }
}

const PIECES: [&str; 50] = [
    "vhost",
    "link",
    "xdp",
    "tap",
    "passt",
    "packet",
    ":",
    ":",
    ",",
    ",",
    ",",
    "=",
    "=",
    "/",
    "addr",
    "addr=",
    "gw=",
    "host=",
    "mtu=",
    "mac=",
    "pcap=",
    "10.0.0.1",
    "10.0.0.1/24",
    "fd00::1/64",
    "fe80::1",
    "ab",
    "r3tap0",
    "1500",
    "02:00:00:00:00:01",
    "999999999999999999999",
    "-",
    "0",
    "255",
    "..",
    "ä",
    "\0",
    "\n",
    " ",
    "'",
    "\"",
    "[",
    "]",
    "[[port]]\n",
    "kind = 'link'\n",
    "name = 'a'\n",
    "mem = '64M'\n",
    "sysctl",
    "K",
    "G",
    "\u{1f310}",
];

#[test]
fn ports() {
    let mut dice = Dice(1);
    let mut parsed = 0;
    for _ in 0..rounds(200_000) {
        let text = dice.text(&PIECES, 14);
        match text.parse::<PortSpec>() {
            Ok(port) => {
                parsed += 1;
                assert_eq!(port.to_string().parse(), Ok(port), "{text:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    // One in a thousand does: too few are tried under Miri.
    assert!(
        parsed > 100 || cfg!(miri),
        "the pieces still make ports: {parsed}"
    );
}

#[test]
fn files() {
    let mut dice = Dice(2);
    for _ in 0..rounds(30_000) {
        let text = dice.text(&PIECES, 20);
        let _ = NodeConfig::from_toml(Path::new("x"), &text, Some("a"));
    }
}

#[test]
fn small_syntaxes() {
    let mut dice = Dice(3);
    for _ in 0..rounds(100_000) {
        let text = dice.text(&PIECES, 6);
        if let Ok(bytes) = size::parse(&text) {
            assert_eq!(size::parse(&size::format(bytes)), Ok(bytes));
        }
        if let Ok((key, value)) = sysctl::parse(&text) {
            let path = sysctl::path(&key);
            assert!(!path.split('/').any(|part| part == ".."), "{key}={value}");
        }
        let _ = crate::name::node(&text);
    }
}
