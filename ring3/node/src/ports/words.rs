// SPDX-License-Identifier: GPL-2.0
//! Logs the messages of a confined process, in the keeper's name.
//!
//! A gateway handles packets of strangers, so it gets no terminal and no log file of the user: its
//! standard error is a pipe. The keeper logs each line again, at the level with which the line
//! begins, without control characters, and up to a limit of lines a second.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// The environment variable for the log level.
pub(super) const LEVEL: &str = "RING3_LOG";
/// The prefix that the command writes before each line.
const COMMAND: &str = "ring3: ";
/// Bytes of a line; the rest of a longer one becomes another line.
const LINE_MAX: usize = 1024;
/// Lines a second; more are counted. The gateway's own limit is lower (REFUSALS_SAID).
const LINES_MAX: u32 = 50;
const SECOND: Duration = Duration::from_secs(1);
/// How long to wait for the last messages of a process that ends.
const LAST: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

#[derive(Debug)]
pub(super) struct Words {
    /// `None`: the process has closed it.
    pipe: Option<OwnedFd>,
    line: Vec<u8>,
    second: Instant,
    said: u32,
    unsaid: u64,
    /// Which process.
    what: &'static str,
}

impl Words {
    /// Of the process at the other end of a pipe that does not block.
    pub fn new(pipe: OwnedFd, what: &'static str) -> Words {
        Words {
            pipe: Some(pipe),
            line: Vec::new(),
            second: Instant::now(),
            said: 0,
            unsaid: 0,
            what,
        }
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Logs what is in the pipe. One turn reads at most a pipe's worth.
    pub fn hear(&mut self) {
        let mut chunk = [0; 4096];
        for _ in 0..16 {
            let Some(pipe) = &self.pipe else { return };
            match rustix::io::read(pipe, &mut chunk) {
                Ok(0) => self.pipe = None,
                Ok(len) => self.take(&chunk[..len]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }

    /// There are too many messages: the caller may pause, so that the pipe fills.
    pub fn is_flooded(&self) -> bool {
        self.unsaid > 0
    }

    /// The process has ended, or is about to: logs its last messages.
    pub fn last(&mut self) {
        while let Some(pipe) = &self.pipe {
            let mut fds = [PollFd::new(pipe, PollFlags::IN)];
            match poll(&mut fds, Some(&LAST)) {
                Ok(0) => break,
                _ => self.hear(),
            }
        }
        self.take(b"\n");
        self.say_how_many();
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
            }
            if byte == b'\n' || self.line.len() == LINE_MAX {
                let line = std::mem::take(&mut self.line);
                self.say(&line);
            }
        }
    }

    fn say(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        if self.second.elapsed() >= SECOND {
            self.say_how_many();
        }
        if self.said >= LINES_MAX {
            self.unsaid += 1;
            return;
        }
        self.said += 1;
        let (level, text) = parse(line);
        log::log!(level, "{text}");
    }

    fn say_how_many(&mut self) {
        if self.unsaid > 0 {
            log::warn!(
                "{} more lines of a {}'s process were left out",
                self.unsaid,
                self.what
            );
        }
        (self.second, self.said, self.unsaid) = (Instant::now(), 0, 0);
    }
}

/// Level and text of a line, which may contain anything.
fn parse(line: &[u8]) -> (log::Level, String) {
    let text = String::from_utf8_lossy(line);
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let text: String = text.chars().map(clean).collect();
    let rest = text.strip_prefix(COMMAND).unwrap_or(&text);
    let parted = rest.split_once(": ");
    match parted.and_then(|(level, rest)| Some((level.parse().ok()?, rest))) {
        Some((level, rest)) => (level, rest.to_owned()),
        None => (log::Level::Warn, rest.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_process() {
        let said = |line: &str| parse(line.as_bytes());
        let refused = (log::Level::Warn, "node a: refused".to_owned());
        assert_eq!(said("ring3: warn: node a: refused"), refused);
        let error = (log::Level::Error, "gone".to_owned());
        assert_eq!(said("ring3: error: gone"), error);
        let panicked = (log::Level::Warn, "thread panicked: x".to_owned());
        assert_eq!(said("thread panicked: x"), panicked);
        let (_, text) = said("ring3: warn: \x1b]0;owned\x07");
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert_eq!(parse(&[0xff, 0xfe]).1.chars().count(), 2);
    }

    #[test]
    fn a_flood_is_counted() {
        let (said, says) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let mut words = Words::new(said, "host port");
        rustix::io::write(&says, "x\n".repeat(2000).as_bytes()).unwrap();
        drop(says);
        words.hear();
        assert!(words.unsaid >= 1900, "{}", words.unsaid);
        words.last();
        assert!(words.fd().is_none() && words.unsaid == 0);
    }
}
