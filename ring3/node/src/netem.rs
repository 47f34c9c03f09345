// SPDX-License-Identifier: GPL-2.0
//! The options of the qdisc netem, in the kernel's binary format. Layout: linux/pkt_sched.h, struct
//! tc_netem_qopt and TCA_NETEM_*.

use ring3_config::layout::Netem;

const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const RATE: u16 = 6;
const RATE64: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
/// With reordering, all packets but the given share are delayed (gap of struct tc_netem_qopt), as
/// tc does it.
const GAP: u32 = 1;

pub(crate) fn options(netem: &Netem) -> Vec<u8> {
    let gap = if netem.reorder > 0 { GAP } else { 0 };
    // Delay and jitter follow as attributes, in nanoseconds.
    let words = [0, netem.limit, netem.loss, gap, netem.duplicate, 0];
    let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_ne_bytes()).collect();
    let mut add = |kind: u16, value: &[u8]| {
        let length = 4 + value.len() as u16;
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
    };
    add(LATENCY64, &netem.delay_ns.to_ne_bytes());
    add(JITTER64, &netem.jitter_ns.to_ne_bytes());
    for (kind, value) in [(REORDER, netem.reorder), (CORRUPT, netem.corrupt)] {
        if value > 0 {
            // A share, and no correlation.
            let [a, b, c, d] = value.to_ne_bytes();
            add(kind, &[a, b, c, d, 0, 0, 0, 0]);
        }
    }
    if netem.rate > 0 {
        // struct tc_netem_rate: the rate as far as it fits; no overhead, no cells.
        let [a, b, c, d] = u32::try_from(netem.rate).unwrap_or(u32::MAX).to_ne_bytes();
        add(RATE, &[a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        if netem.rate > u64::from(u32::MAX) {
            add(RATE64, &netem.rate.to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What tc 6.1 sends for `netem delay 20ms 5ms loss 1% rate 10mbit`, but for the order of its attributes.
    #[test]
    fn as_tc_says_it() {
        let netem = Netem {
            delay_ns: 20_000_000,
            jitter_ns: 5_000_000,
            loss: 42_949_673,
            rate: 1_250_000,
            ..Netem::default()
        };
        let bytes = options(&netem);
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(
            [word(4), word(8), word(12), word(16)],
            [1000, 42_949_673, 0, 0]
        );
        assert_eq!(bytes.len(), 24 + 12 + 12 + 20);
        assert_eq!(word(24), 12 | u32::from(LATENCY64) << 16);
        assert_eq!(word(28), 20_000_000);
        assert_eq!(word(48), 20 | u32::from(RATE) << 16);
        assert_eq!(word(52), 1_250_000);
    }
}
