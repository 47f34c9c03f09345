// SPDX-License-Identifier: GPL-2.0
//! What is served: each service looks at its sockets after every round of the interface.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use std::time::{Duration, Instant};

/// Buffers of a connection that carries a stream, and of one that carries little.
const LARGE: usize = 1 << 20;
const SMALL: usize = 1 << 14;
/// Datagrams that may wait, and their bytes: what bench/load gives a socket of Linux.
const DATAGRAMS: usize = 8192;
const DATAGRAM_BYTES: usize = 4 << 20;
/// Connections that may be open at once: the 64 that ask, and some that close. Each round
/// looks at all of them.
const CLIENTS: usize = 72;

pub enum Step {
    /// Nothing to do until packets come.
    Idle,
    /// Something was done that the interface should see.
    Again,
    /// The asking end is done.
    End,
}

pub trait Service {
    fn step(&mut self, sockets: &mut SocketSet) -> Step;
}

pub fn new(words: &[String], sockets: &mut SocketSet) -> Result<Box<dyn Service>, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        ["pingpong", "serve", "tcp", at, _] => Box::new(Echo(listen(sockets, port(at)?, SMALL)?)),
        ["pingpong", "serve", "udp", at, _] => Box::new(EchoDatagrams {
            data: bind(sockets, port(at)?)?,
            control: listen(sockets, port(at)?, SMALL)?,
        }),
        ["flood", "serve", at] => Box::new(Count {
            data: bind(sockets, port(at)?)?,
            control: listen(sockets, port(at)?, SMALL)?,
            start: Instant::now(),
            packets: 0,
            first: 0,
            last: 0,
        }),
        ["stream", "serve", at] => Box::new(Stream {
            socket: listen(sockets, port(at)?, LARGE)?,
            order: Vec::new(),
            bytes: 0,
            start: None,
            end: None,
            buffer: vec![0; LARGE],
        }),
        ["httpd", at] => {
            let port = port(at)?;
            let clients = (0..CLIENTS)
                .map(|_| Ok((listen(sockets, port, SMALL)?, Vec::new())))
                .collect::<Result<_, String>>()?;
            let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n".to_vec();
            answer.resize(answer.len() + 1024, b'x');
            Box::new(Http {
                port,
                clients,
                answer,
            })
        }
        _ => return Err(format!("cannot serve '{}'", words.join(" "))),
    })
}

fn port(word: &str) -> Result<u16, String> {
    word.parse().map_err(|_| format!("not a port: '{word}'"))
}

fn listen(sockets: &mut SocketSet, port: u16, size: usize) -> Result<SocketHandle, String> {
    let buffer = || tcp::SocketBuffer::new(vec![0; size]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket.listen(port).map_err(|e| format!("listen: {e}"))?;
    Ok(sockets.add(socket))
}

fn bind(sockets: &mut SocketSet, port: u16) -> Result<SocketHandle, String> {
    let buffer = || {
        let metadata = vec![udp::PacketMetadata::EMPTY; DATAGRAMS];
        udp::PacketBuffer::new(metadata, vec![0; DATAGRAM_BYTES])
    };
    let mut socket = udp::Socket::new(buffer(), buffer());
    socket.bind(port).map_err(|e| format!("bind: {e}"))?;
    Ok(sockets.add(socket))
}

/// The other end has said all and it was read.
fn over(socket: &tcp::Socket) -> bool {
    socket.state() == tcp::State::CloseWait && !socket.can_recv()
        || socket.state() == tcp::State::Closed
}

/// What comes goes back.
struct Echo(SocketHandle);

impl Service for Echo {
    fn step(&mut self, sockets: &mut SocketSet) -> Step {
        let socket = sockets.get_mut::<tcp::Socket>(self.0);
        if over(socket) {
            return Step::End;
        }
        let mut bytes = [0; SMALL];
        let room = (socket.send_capacity() - socket.send_queue()).min(SMALL);
        match socket.recv_slice(&mut bytes[..room]) {
            Ok(n) if n > 0 => {
                // There is room for as much.
                let _ = socket.send_slice(&bytes[..n]);
                Step::Again
            }
            _ => Step::Idle,
        }
    }
}

/// The same with datagrams; a byte on the control connection ends it.
struct EchoDatagrams {
    data: SocketHandle,
    control: SocketHandle,
}

impl Service for EchoDatagrams {
    fn step(&mut self, sockets: &mut SocketSet) -> Step {
        let control = sockets.get::<tcp::Socket>(self.control);
        if control.can_recv() || over(control) {
            return Step::End;
        }
        let socket = sockets.get_mut::<udp::Socket>(self.data);
        let mut bytes = [0; 65536];
        let mut step = Step::Idle;
        while let Ok((n, from)) = socket.recv_slice(&mut bytes) {
            // What does not fit is lost, as datagrams are.
            let _ = socket.send_slice(&bytes[..n], from.endpoint);
            step = Step::Again;
        }
        step
    }
}

/// Datagrams are counted; each byte on the control connection asks for the counts.
struct Count {
    data: SocketHandle,
    control: SocketHandle,
    start: Instant,
    packets: u64,
    /// ns since the start
    first: u64,
    last: u64,
}

impl Service for Count {
    fn step(&mut self, sockets: &mut SocketSet) -> Step {
        let mut bytes = [0; 65536];
        let socket = sockets.get_mut::<udp::Socket>(self.data);
        while socket.recv_slice(&mut bytes).is_ok() {
            if self.packets.is_multiple_of(16) {
                self.last = self.start.elapsed().as_nanos() as u64;
                if self.first == 0 {
                    self.first = self.last;
                }
            }
            self.packets += 1;
        }
        let control = sockets.get_mut::<tcp::Socket>(self.control);
        if over(control) {
            return Step::End;
        }
        let mut asked = [0; 16];
        match control.recv_slice(&mut asked) {
            Ok(n) if n > 0 => {
                let counts = [self.packets, self.first, self.last].map(u64::to_ne_bytes);
                for _ in 0..n {
                    // Three numbers always fit: the last ones were taken long ago.
                    let _ = control.send_slice(&counts.concat());
                }
                Step::Again
            }
            _ => Step::Idle,
        }
    }
}

/// An order (u32 size, u32 back, u64 ns), then data in one of the directions.
struct Stream {
    socket: SocketHandle,
    order: Vec<u8>,
    bytes: u64,
    start: Option<Instant>,
    /// When sending ends.
    end: Option<Instant>,
    buffer: Vec<u8>,
}

const ORDER: usize = 16;

impl Stream {
    fn send(&mut self, socket: &mut tcp::Socket, end: Instant) -> Step {
        if Instant::now() >= end {
            socket.close();
            return match socket.state() {
                tcp::State::Closed | tcp::State::TimeWait => Step::End,
                _ => Step::Idle,
            };
        }
        let size = u32::from_ne_bytes(self.order[..4].try_into().unwrap_or_default());
        let size = (size as usize).min(LARGE);
        let mut step = Step::Idle;
        while socket.send_capacity() - socket.send_queue() >= size {
            match socket.send_slice(&self.buffer[..size]) {
                Ok(n) if n > 0 => step = Step::Again,
                _ => break,
            }
        }
        step
    }

    fn receive(&mut self, socket: &mut tcp::Socket) -> Step {
        while let Ok(n) = socket.recv_slice(&mut self.buffer)
            && n > 0
        {
            match self.start {
                None => self.start = Some(Instant::now()),
                Some(_) => self.bytes += n as u64,
            }
        }
        if !over(socket) {
            return Step::Idle;
        }
        let took = self.start.map_or(Duration::ZERO, |start| start.elapsed());
        let result = [self.bytes, took.as_nanos() as u64].map(u64::to_ne_bytes);
        let _ = socket.send_slice(&result.concat());
        Step::End
    }
}

impl Service for Stream {
    fn step(&mut self, sockets: &mut SocketSet) -> Step {
        let socket = sockets.get_mut::<tcp::Socket>(self.socket);
        if self.order.len() < ORDER {
            let mut bytes = [0; ORDER];
            let want = ORDER - self.order.len();
            if let Ok(n) = socket.recv_slice(&mut bytes[..want]) {
                self.order.extend(&bytes[..n]);
            }
            if self.order.len() < ORDER {
                return Step::Idle;
            }
            if self.order[4] != 0 {
                let ns = u64::from_ne_bytes(self.order[8..].try_into().unwrap_or_default());
                self.end = Some(Instant::now() + Duration::from_nanos(ns));
            }
        }
        match self.end {
            Some(end) => self.send(socket, end),
            None => self.receive(socket),
        }
    }
}

/// A kilobyte for each request.
struct Http {
    port: u16,
    /// Each with what is there of a request's head.
    clients: Vec<(SocketHandle, Vec<u8>)>,
    answer: Vec<u8>,
}

impl Service for Http {
    fn step(&mut self, sockets: &mut SocketSet) -> Step {
        let mut step = Step::Idle;
        for (handle, head) in &mut self.clients {
            let socket = sockets.get_mut::<tcp::Socket>(*handle);
            if over(socket) {
                socket.abort();
                head.clear();
                let _ = socket.listen(self.port);
                continue;
            }
            let mut bytes = [0; 4096];
            let Ok(n @ 1..) = socket.recv_slice(&mut bytes) else {
                continue;
            };
            head.extend(&bytes[..n]);
            while let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                head.drain(..end + 4);
                // wrk waits for an answer before it asks again: there is room.
                let _ = socket.send_slice(&self.answer);
            }
            step = Step::Again;
        }
        step
    }
}
