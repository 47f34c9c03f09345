// SPDX-License-Identifier: GPL-2.0
//! What was refused, counted and said: a line each, but for floods.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::route::Refusal;
use crate::tuning::{REFUSALS_BYTES, REFUSALS_FILED, REFUSALS_SAID};

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
    /// Its bytes, what was there at the start included.
    written: u64,
}

impl Refusals {
    pub fn new(node: &str, file: Option<File>) -> Refusals {
        // The wall has no call for it later.
        let metadata = file.as_ref().and_then(|file| file.metadata().ok());
        Refusals {
            node: node.to_owned(),
            count: 0,
            second: Instant::now(),
            said: 0,
            unsaid: 0,
            filed: 0,
            file,
            written: metadata.map_or(0, |it| it.len()),
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
        let mut text = format!("{line}\n");
        self.written += text.len() as u64;
        let is_full = self.written > REFUSALS_BYTES;
        if is_full {
            let why = "nothing more is written here";
            let last = serde_json::json!({"node": self.node, "event": "full", "why": why});
            text = format!("{last}\n");
        }
        // One write for each line, so that several gateways can share a file. Each counts what it writes itself.
        let written = file.write_all(text.as_bytes());
        if let Err(why) = &written {
            log::warn!("node {}: the log of refusals ends: {why}", self.node);
        }
        if is_full || written.is_err() {
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{memfd_create, MemfdFlags};
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_file_has_a_bound() {
        let file = File::from(memfd_create("refusals", MemfdFlags::empty()).unwrap());
        file.set_len(REFUSALS_BYTES - 300).unwrap();
        let mut refusals = Refusals::new("a", Some(file.try_clone().unwrap()));
        for _ in 0..9 {
            refusals.say("tcp to", "192.0.2.1:80", Refusal::Rule);
        }
        let mut text = vec![0; 2000];
        let len = file.read_at(&mut text, 0).unwrap();
        let text = String::from_utf8_lossy(&text[..len]);
        let lines: Vec<_> = text.trim_end_matches('\0').lines().collect();
        assert!((2..5).contains(&lines.len()), "{text}");
        assert!(lines[0].contains("\"refused\""), "{text}");
        assert!(lines[lines.len() - 1].contains("\"full\""), "{text}");
    }
}
