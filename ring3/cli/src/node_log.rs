// SPDX-License-Identifier: GPL-2.0
//! `ring3 log`: what a node's kernel has to say.

use std::io::{BufWriter, Write};
use std::time::Duration;

use ring3_node::client::Client;
use ring3_node::Error;

use crate::args;
use crate::error::{Failure, Result};

/// How often --follow looks: soon enough for a person, cheap enough to be left running.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub fn log(args: &args::Log) -> Result<()> {
    ring3_config::name::node(&args.name)?;
    let node = Client::open(&args.name)?;
    let mut out = BufWriter::new(std::io::stdout());
    let mut from = 0;
    loop {
        let log = match node.log(from) {
            // It went down while we followed: the end of the log.
            Err(Error::NoSuchNode { .. } | Error::Ending { .. }) if from > 0 => return Ok(()),
            other => other?,
        };
        let more = log.next != from && !log.text.is_empty();
        from = log.next;
        let mut write = || -> std::io::Result<()> {
            for line in log.text.lines() {
                let (level, text) = split(line);
                if args.level.is_none_or(|least| level <= least) {
                    writeln!(out, "{text}")?;
                }
            }
            out.flush()
        };
        match write() {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            done => done.map_err(Failure::host("print the log"))?,
        }
        if more {
            continue;
        }
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// `<6>[    0.001000] text` is level 6 (syslog(2): the low three bits) and the rest.
fn split(line: &str) -> (u8, &str) {
    let split = line
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'))
        .and_then(|(prio, text)| Some((prio.parse::<u32>().ok()?, text)));
    match split {
        Some((prio, text)) => ((prio & 7) as u8, text),
        // The rest of a record of several lines: as urgent as it gets, so never dropped.
        None => (0, line),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn priorities() {
        assert_eq!(split("<6>[0.1] x"), (6, "[0.1] x"));
        assert_eq!(split("<30>[0.1] x"), (6, "[0.1] x"));
        assert_eq!(split("no prefix"), (0, "no prefix"));
        assert_eq!(split("<x> y"), (0, "<x> y"));
    }
}
