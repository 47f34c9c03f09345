// SPDX-License-Identifier: GPL-2.0
//! Whether a target answers: a connection, or a GET that is answered with 2xx or 3xx. A thread for each target.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring3_config::proxy::{Health, Version};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::error::{Error, Result};
use crate::targets::{connect_unix, Place};

/// The status line is in what comes first.
const ANSWER_MAX: usize = 1 << 10;

/// The thread ends with this.
#[derive(Debug)]
pub struct Watch {
    up: Arc<AtomicBool>,
    _stop: Sender<()>,
}

impl Watch {
    /// The target is up until it has failed.
    /// `proxy_out`: it expects a header of the PROXY protocol.
    pub fn start(
        health: &Health,
        proxy_out: Option<Version>,
        place: &Place,
        name: &str,
    ) -> Result<Watch> {
        let (stop, stopped) = channel::<()>();
        let up = Arc::new(AtomicBool::new(true));
        let (said, health, place) = (up.clone(), health.clone(), place.clone());
        let name = name.to_owned();
        let head = nobody(proxy_out);
        let run = move || {
            let mut state = State::default();
            loop {
                let outcome = check(&health, head, &place);
                if let Some(is_up) = state.after(&health, outcome.is_ok()) {
                    said.store(is_up, Ordering::Relaxed);
                    match outcome {
                        Ok(()) => log::warn!("target {name} is up"),
                        Err(why) => log::warn!("target {name} is down: {why}"),
                    }
                }
                match stopped.recv_timeout(health.interval) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
            }
        };
        std::thread::Builder::new()
            .name("ring3-health".into())
            .spawn(run)
            .map_err(Error::host("start a thread"))?;
        Ok(Watch { up, _stop: stop })
    }

    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }
}

/// Outcomes in a row.
#[derive(Debug)]
struct State {
    is_up: bool,
    against: u32,
}

impl Default for State {
    fn default() -> State {
        State {
            is_up: true,
            against: 0,
        }
    }
}

impl State {
    /// What it is from now on, if that is another.
    fn after(&mut self, health: &Health, is_fine: bool) -> Option<bool> {
        if is_fine == self.is_up {
            self.against = 0;
            return None;
        }
        self.against += 1;
        let enough = match self.is_up {
            true => health.fall,
            false => health.rise,
        };
        if self.against < enough {
            return None;
        }
        *self = State {
            is_up: is_fine,
            against: 0,
        };
        Some(is_fine)
    }
}

/// A header that names no client (proxy-protocol.txt, LOCAL and UNKNOWN): a check is nobody's connection.
fn nobody(version: Option<Version>) -> &'static [u8] {
    match version {
        None => b"",
        Some(Version::V1) => b"PROXY UNKNOWN\r\n",
        Some(Version::V2) => b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
    }
}

fn check(health: &Health, head: &[u8], place: &Place) -> std::io::Result<()> {
    let end = Instant::now() + health.timeout;
    match place {
        Place::Addresses(all) => {
            let mut outcome = Err(std::io::ErrorKind::AddrNotAvailable.into());
            for address in all {
                outcome = check_at(health, head, *address, end);
                if outcome.is_ok() {
                    break;
                }
            }
            outcome
        }
        Place::Unix(path) => check_unix(health, head, path, end),
        Place::Node(..) => Ok(()),
    }
}

fn left(end: Instant) -> std::io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(std::io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

fn check_at(
    health: &Health,
    head: &[u8],
    address: SocketAddr,
    end: Instant,
) -> std::io::Result<()> {
    let stream = TcpStream::connect_timeout(&address, left(end)?)?;
    let Some(path) = &health.path else {
        return Ok(());
    };
    stream.set_write_timeout(Some(left(end)?))?;
    stream.set_read_timeout(Some(left(end)?))?;
    (&stream).write_all(&request_for(head, path, &address.to_string()))?;
    is_fine(&stream)
}

fn check_unix(health: &Health, head: &[u8], path: &Path, end: Instant) -> std::io::Result<()> {
    let socket = connect_unix(path)?;
    let Some(request) = &health.path else {
        return Ok(());
    };
    let stream = UnixStream::from(socket);
    let wait = Timespec::try_from(left(end)?).map_err(std::io::Error::other)?;
    (&stream).write_all(&request_for(head, request, "localhost"))?;
    let mut fds = [PollFd::new(&stream, PollFlags::IN)];
    if poll(&mut fds, Some(&wait))? == 0 {
        return Err(std::io::ErrorKind::TimedOut.into());
    }
    is_fine(&stream)
}

fn request_for(head: &[u8], path: &str, host: &str) -> Vec<u8> {
    let get = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: ring3-proxy\r\nConnection: close\r\n\r\n");
    [head, get.as_bytes()].concat()
}

/// `HTTP/1.1 204 ...`
fn is_fine(mut from: impl Read) -> std::io::Result<()> {
    let mut answer = Vec::new();
    let mut part = [0; 256];
    while !answer.contains(&b'\n') && answer.len() < ANSWER_MAX {
        match from.read(&mut part)? {
            0 => break,
            len => answer.extend_from_slice(&part[..len]),
        }
    }
    let line = answer.split(|byte| *byte == b'\r' || *byte == b'\n').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
    let mut words = line.split(' ');
    let version = words.next().unwrap_or_default();
    let status: u16 = words.next().and_then(|it| it.parse().ok()).unwrap_or(0);
    match version.starts_with("HTTP/1.") && (200..400).contains(&status) {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("it answers `{line}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> Health {
        Health {
            path: None,
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            fall: 3,
            rise: 2,
        }
    }

    #[test]
    fn a_row_of_outcomes_changes_it() {
        let (mut state, health) = (State::default(), health());
        let mut after =
            |fine: &[bool]| -> Vec<_> { fine.iter().map(|it| state.after(&health, *it)).collect() };
        assert_eq!(after(&[false, false, true, false, false]), [None; 5]);
        assert_eq!(
            after(&[false, true, false, true]),
            [Some(false), None, None, None]
        );
        assert_eq!(after(&[true, true, false]), [Some(true), None, None]);
    }

    /// One that serves behind a proxy only: it answers those alone who begin with the header.
    #[test]
    fn a_check_begins_as_connections_do() {
        let health = Health {
            path: Some("/".into()),
            timeout: Duration::from_secs(60),
            ..health()
        };
        let versions = [None, Some(Version::V1), Some(Version::V2)];
        for (version, head) in versions.map(|it| (it, nobody(it))) {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let place = Place::Addresses(vec![listener.local_addr().unwrap()]);
            let target = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut first = vec![0; head.len() + 4];
                stream.read_exact(&mut first).unwrap();
                stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n").unwrap();
                first
            });
            check(&health, head, &place).unwrap();
            let first = target.join().unwrap();
            assert_eq!(first, [head, b"GET "].concat(), "{version:?}");
        }
        assert_eq!(nobody(Some(Version::V2)).len(), 16);
    }

    #[test]
    fn answers() {
        for (answer, fine) in [
            (&b"HTTP/1.1 200 OK\r\n\r\n"[..], true),
            (b"HTTP/1.0 302 Found\r\n", true),
            (b"HTTP/1.1 503 Busy\r\n", false),
            (b"SSH-2.0-OpenSSH\r\n", false),
            (b"", false),
        ] {
            assert_eq!(is_fine(answer).is_ok(), fine, "{answer:?}");
        }
    }
}
