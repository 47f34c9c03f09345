// SPDX-License-Identifier: GPL-2.0
//! What was refused, counted and said: a line each, but for floods.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::route::Refusal;
use crate::tuning::{REFUSALS_FILED, REFUSALS_SAID};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Refusals {
    node: String,
    /// Since the start.
    count: u64,
    second: Instant,
    said: u32,
    unsaid: u32,
    filed: u32,
    /// Gets a line of JSON about each.
    file: Option<File>,
}

impl Refusals {
    pub fn new(node: &str, file: Option<File>) -> Refusals {
        Refusals {
            node: node.to_owned(),
            count: 0,
            second: Instant::now(),
            said: 0,
            unsaid: 0,
            filed: 0,
            file,
        }
    }

    pub fn say(&mut self, what: &str, whom: impl Display, why: Refusal) {
        self.count += 1;
        let now = Instant::now();
        if now.duration_since(self.second) > SECOND {
            if self.unsaid > 0 {
                log::warn!("node {}: {} more were refused", self.node, self.unsaid);
            }
            (self.second, self.said, self.unsaid) = (now, 0, 0);
            self.filed = 0;
        }
        if self.filed < REFUSALS_FILED {
            self.filed += 1;
            self.write(what, &whom.to_string(), why);
        }
        if self.said >= REFUSALS_SAID {
            self.unsaid += 1;
            return;
        }
        self.said += 1;
        let (node, count) = (&self.node, self.count);
        log::warn!("node {node}: refused {what} {whom}: {why} (number {count})");
    }

    fn write(&mut self, what: &str, whom: &str, why: Refusal) {
        let Some(file) = &mut self.file else { return };
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let line = serde_json::json!({
            "time": time.unwrap_or_default().as_secs_f64(),
            "node": self.node,
            "event": "refused",
            "what": what,
            "whom": whom,
            "why": why.to_string(),
            "number": self.count,
        });
        // One write for each line, so that several gateways can share a file.
        if let Err(why) = file.write_all(format!("{line}\n").as_bytes()) {
            log::warn!("node {}: the log of refusals ends: {why}", self.node);
            self.file = None;
        }
    }
}
