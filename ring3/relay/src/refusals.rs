// SPDX-License-Identifier: GPL-2.0
//! What was refused, counted and said: a line each, but for floods.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::route::Refusal;
use crate::tuning::REFUSALS_SAID;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Refusals {
    node: String,
    /// Since the start.
    count: u64,
    second: Instant,
    said: u32,
    unsaid: u32,
}

impl Refusals {
    pub fn new(node: &str) -> Refusals {
        Refusals {
            node: node.to_owned(),
            count: 0,
            second: Instant::now(),
            said: 0,
            unsaid: 0,
        }
    }

    pub fn say(&mut self, protocol: &str, to: SocketAddr, why: Refusal) {
        self.count += 1;
        let now = Instant::now();
        if now.duration_since(self.second) > SECOND {
            if self.unsaid > 0 {
                log::warn!("node {}: {} more were refused", self.node, self.unsaid);
            }
            (self.second, self.said, self.unsaid) = (now, 0, 0);
        }
        if self.said >= REFUSALS_SAID {
            self.unsaid += 1;
            return;
        }
        self.said += 1;
        let (node, count) = (&self.node, self.count);
        log::warn!("node {node}: refused {protocol} {to}: {why} (number {count})");
    }
}
