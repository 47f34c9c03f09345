// SPDX-License-Identifier: GPL-2.0
//! Who asks for numbers over HTTP. One thread: each is asked for its request's head, and has the answer of the supervisor.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{eventfd, EventfdFlags};

use crate::error::{Error, Result};

/// As `ring3 metrics` has it: Prometheus' own limit is 10 s.
const PATIENCE: Duration = Duration::from_secs(5);
const HEAD_MAX: u64 = 8 << 10;
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

/// Where an answer goes.
pub type Answer = Sender<String>;

#[derive(Debug)]
pub struct Scrapes {
    asked: Receiver<Answer>,
    /// Readable when somebody asks.
    pub bell: Arc<OwnedFd>,
}

impl Scrapes {
    /// Nobody asks.
    pub fn none() -> Result<Scrapes> {
        let (_, asked) = channel();
        let bell = Arc::new(bell()?);
        Ok(Scrapes { asked, bell })
    }

    pub fn serve(address: SocketAddr) -> Result<Scrapes> {
        let listener = TcpListener::bind(address)
            .map_err(Error::host(format!("listen for Prometheus on {address}")))?;
        let (asks, asked) = channel();
        let own = Arc::new(bell()?);
        let bell = own.clone();
        std::thread::Builder::new()
            .name("ring3-metrics".into())
            .spawn(move || {
                for stream in listener.incoming() {
                    match stream {
                        // One who has gone, or asks for something else, is none of the others' business.
                        Ok(stream) => drop(one(&stream, &asks, &bell)),
                        Err(_) => std::thread::sleep(HOST_TROUBLE_TURN),
                    }
                }
            })
            .map_err(Error::host("start a thread"))?;
        Ok(Scrapes { asked, bell: own })
    }

    /// Those who have asked since.
    pub fn take(&self) -> Vec<Answer> {
        let _ = rustix::io::read(&*self.bell, &mut [0u8; 8]);
        self.asked.try_iter().collect()
    }
}

/// What one thread wakes another with.
pub fn bell() -> Result<OwnedFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    eventfd(0, flags).map_err(Error::host("make an event"))
}

fn one(stream: &TcpStream, asks: &Sender<Answer>, bell: &OwnedFd) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.take(HEAD_MAX));
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = request.split_whitespace();
    let (status, text) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => {
            let (answer, answered) = channel();
            let gone = |_| std::io::ErrorKind::BrokenPipe;
            asks.send(answer)
                .map_err(|_| std::io::ErrorKind::BrokenPipe)?;
            rustix::io::write(bell, &1u64.to_ne_bytes())?;
            ("200 OK", answered.recv_timeout(PATIENCE).map_err(gone)?)
        }
        (Some("GET"), _) => ("404 Not Found", "numbers are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".into()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}
