// SPDX-License-Identifier: GPL-2.0
//! A node's kernel log outlives it in the file that $RING3_KERNEL_LOG names: tests start nodes by
//! the hundred, and check afterwards whether any kernel has complained.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use ring3_abi::RING3_UP;

use super::Node;
use crate::error::Result;

const FILE_ENV: &str = "RING3_KERNEL_LOG";

impl Node {
    /// Appends the log, if that is asked for. A poisoned node runs no kernel code any more: then
    /// only the reason is written.
    pub(super) fn keep_log(&mut self) {
        let Some(path) = std::env::var_os(FILE_ENV).map(PathBuf::from) else {
            return;
        };
        let mut text = format!("== node {}\n", self.config.name);
        match (self.region.poison(), self.region.state()) {
            (Some(why), _) => text.push_str(&format!("poisoned: {why}\n")),
            (None, RING3_UP) => match self.whole_log() {
                Ok(log) => text.push_str(&log),
                Err(why) => text.push_str(&format!("no log: {why}\n")),
            },
            // It never came up.
            _ => return,
        }
        // One write, so that nodes that end together do not mix their lines.
        let written = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(why) = written {
            log::warn!("node {}: {}: {why}", self.config.name, path.display());
        }
    }

    fn whole_log(&mut self) -> Result<String> {
        let mut text = String::new();
        let mut from = 0;
        loop {
            let log = self.log(from)?;
            if log.text.is_empty() {
                return Ok(text);
            }
            text.push_str(&log.text);
            from = log.next;
        }
    }
}
