// SPDX-License-Identifier: GPL-2.0
//! What is said of a guest: to the log, and to the keeper for `ring3 stat`.
//!
//! A guest can send nonsense as fast as it likes. So the first of each kind is a line, and the rest is counted until it leaves.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::chain::{Fault, FAULTS};

#[derive(Debug, Default)]
pub struct Says {
    /// What each line begins with.
    pub head: String,
    faults: [AtomicU64; FAULTS],
    large: AtomicU64,
    bad_rings: AtomicU64,
}

const NAMES: [&str; 2] = ["receive", "transmit"];

impl Says {
    pub fn new(node: &str, socket: &std::path::Path) -> Says {
        Says {
            head: format!("node {node}: vhost:{}: ", socket.display()),
            ..Says::default()
        }
    }

    /// A chain of the guest's is given back without being used.
    pub fn refuse(&self, fault: Fault) {
        if self.faults[fault as usize].fetch_add(1, Ordering::Relaxed) == 0 {
            log::warn!(
                "{}the guest's queues have {}: dropped; further ones are counted",
                self.head,
                fault.words()
            );
        }
    }

    /// A frame for the guest was dropped.
    pub fn too_large(&self) {
        if self.large.fetch_add(1, Ordering::Relaxed) == 0 {
            log::warn!(
                "{}the guest's buffers are too small for a frame: dropped; is the port's mtu larger than the guest's?",
                self.head
            );
        }
    }

    pub fn bad_ring(&self, queue: usize) {
        self.bad_rings.fetch_add(1, Ordering::Relaxed);
        log::warn!(
            "{}the guest's {} queue makes no sense: it is left alone until the guest sets it up anew",
            self.head,
            NAMES[queue.min(1)]
        );
    }

    /// How much nonsense there was since the last time this was asked, in words.
    pub fn sum(&self) -> String {
        let faults = self.faults.iter().map(|it| it.swap(0, Ordering::Relaxed));
        let faults: u64 = faults.sum();
        let large = self.large.swap(0, Ordering::Relaxed);
        let rings = self.bad_rings.swap(0, Ordering::Relaxed);
        match (faults, large, rings) {
            (0, 0, 0) => String::new(),
            _ => format!(" ({faults} bad chains, {large} frames too large for it, {rings} queues that made no sense)"),
        }
    }
}
