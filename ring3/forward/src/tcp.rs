// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: streams
//!
//! Each client's connection is joined with one to each target. The first target answers; what others answer is read and
//! thrown away, so that they can go on. A side that ends its direction ends that direction alone on the other side. A reset,
//! of the client or of the first target, resets all. A target behind the first that fails is left out from then on.
//!
//! A target behind the first keeps nothing for ever:
//!
//! | what it does not do | what becomes of it |
//! | --- | --- |
//! | take its copy | client and first target wait for it; when it has taken nothing for LINGER, it is left out |
//! | end its direction when client and first target are done | their connections are closed; it is a [`Rest`], and has LINGER. What it says to a closed connection would cost it the part of its copy that it has not taken |
//! | the same where descriptors are short | the oldest of these ends at once |
//!
//! Events are edge-triggered. Each of a connection's descriptors leads to the same: all that can be moved is moved
//! ([`Stream::pump`]). An error is told by its event alone where a direction is over, or its reader waits: so the event is
//! kept in mind. Bytes are read into one buffer of the agent's; what the receivers do not take is kept with the stream,
//! and no more is read in that direction until they have it. That is the back-pressure.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{Error, Result};
use crate::leaf::Name;
use crate::numbers::{add, Numbers};
use crate::stream::{reset, Held, Next, Rest, Stream, KINDS};
use crate::tuning::{ACCEPTS, BACKLOG, CHUNK_ROOM, EVENTS, LINGER, LOOK, STREAMS};
use crate::watchdog::Caller;
use crate::Order;

/// Data of the listener's events. Of a stream's: its place, from 1 on, times KINDS, and which of its descriptors it is.
const LISTENER: u64 = 0;
#[derive(Debug)]
pub struct Agent {
    listener: TcpListener,
    targets: Vec<SocketAddr>,
    events: OwnedFd,
    streams: Vec<Option<Held>>,
    free: Vec<usize>,
    /// Streams that have more to do than one turn.
    again: VecDeque<usize>,
    /// Until when targets behind the first are waited for, by the place of their stream: [`Others::until`] again.
    late: BTreeSet<(Instant, usize)>,
    linger: Duration,
    /// Clients may wait for which there is no room.
    is_starved: bool,
    /// More clients may wait than have had their turn.
    has_clients: bool,
    /// It was said that descriptors are short.
    is_said: bool,
    say: fn(String),
    count: u64,
}

impl Agent {
    pub fn open(order: &Order, say: fn(String)) -> Result<Agent> {
        let at = order.listen;
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(at)?;
            // Again, for the backlog.
            rustix::net::listen(&listener, BACKLOG)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|why| Error::Listen { at, why })?;
        let watch = || -> io::Result<OwnedFd> {
            let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let data = EventData::new_u64(LISTENER);
            epoll::add(&events, &listener, data, EventFlags::IN | EventFlags::ET)?;
            Ok(events)
        };
        let events = watch().map_err(Error::host("watch sockets"))?;
        Ok(Agent {
            listener,
            targets: order.targets.clone(),
            events,
            streams: Vec::new(),
            free: Vec::new(),
            again: VecDeque::new(),
            late: BTreeSet::new(),
            linger: LINGER,
            is_starved: false,
            has_clients: false,
            is_said: false,
            say,
            count: 0,
        })
    }

    pub fn run(mut self, mut caller: Caller<'_>, numbers: &Numbers) -> Result<()> {
        let mut chunk = vec![0; CHUNK_ROOM];
        let mut news = Vec::with_capacity(EVENTS);
        let look = rustix::time::Timespec {
            tv_sec: LOOK.as_secs() as i64,
            tv_nsec: 0,
        };
        let now = rustix::time::Timespec::default();
        while !numbers.ends.load(Ordering::Acquire) {
            let timeout = match self.is_starved || !self.late.is_empty() {
                _ if self.has_clients || !self.again.is_empty() => Some(&now),
                true => Some(&look),
                false => None,
            };
            news.clear();
            let room = rustix::buffer::spare_capacity(&mut news);
            match epoll::wait(&self.events, room, timeout) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(Error::host("wait for sockets")(why.into())),
            }
            let mut ready: Vec<usize> = self.again.drain(..).collect();
            let mut clients = self.is_starved || self.has_clients;
            for event in &news {
                let number = event.data.u64();
                if number == LISTENER {
                    clients = true;
                    continue;
                }
                let (at, kind) = ((number / KINDS - 1) as usize, number % KINDS);
                ready.push(at);
                if let Some(Some(Held::Stream(stream))) = self.streams.get_mut(at) {
                    stream.note(kind, event.flags);
                }
            }
            // A stream has several descriptors.
            ready.sort_unstable();
            ready.dedup();
            for at in ready {
                let next = match self.streams.get_mut(at) {
                    Some(Some(Held::Stream(stream))) => {
                        stream.pump(&mut caller, &mut chunk, numbers)
                    }
                    Some(Some(Held::Rest(rest))) => rest.pump(&mut chunk),
                    _ => continue,
                };
                match next {
                    Next::Wait => self.judge_late(at),
                    Next::Again => {
                        self.judge_late(at);
                        self.again.push_back(at);
                    }
                    Next::Left => self.leave(at),
                    Next::Done => self.remove(at, false),
                    Next::Reset => self.remove(at, true),
                }
            }
            self.end_late();
            if clients {
                self.accept_some(numbers)?;
            }
        }
        // A target would take the end of half a stream for the end of all of it.
        for at in 0..self.streams.len() {
            self.remove(at, true);
        }
        caller.end();
        Ok(())
    }

    fn remove(&mut self, at: usize, is_reset: bool) {
        self.wait_for_others(at, false);
        if let Some(held) = self.streams[at].take() {
            if is_reset {
                held.reset();
            }
            self.free.push(at);
        }
    }

    /// The client and the first target are done.
    fn leave(&mut self, at: usize) {
        self.wait_for_others(at, false);
        if let Some(Held::Stream(stream)) = self.streams[at].take() {
            self.streams[at] = Some(Held::Rest(Rest(stream.others)));
            self.again.push_back(at);
        }
    }

    fn judge_late(&mut self, at: usize) {
        let is_late = match &self.streams[at] {
            Some(Held::Stream(stream)) => stream.is_late(),
            held => held.is_some(),
        };
        self.wait_for_others(at, is_late);
    }

    /// From now on, if not already; or not any more.
    fn wait_for_others(&mut self, at: usize, is_late: bool) {
        let Some(held) = &mut self.streams[at] else {
            return;
        };
        let others = held.others();
        if others.until.is_some() == is_late {
            return;
        }
        if let Some(until) = others.until.take() {
            self.late.remove(&(until, at));
        }
        if is_late {
            let until = Instant::now() + self.linger;
            (others.until, others.had) = (Some(until), others.given);
            self.late.insert((until, at));
        }
    }

    /// Waits no longer for those whose time is over, unless they have taken something meanwhile.
    fn end_late(&mut self) {
        while let Some((until, at)) = self.late.first().copied() {
            if until > Instant::now() {
                break;
            }
            self.wait_for_others(at, false);
            let held = self.streams[at].as_mut();
            if held.is_some_and(|it| it.others().given != it.others().had) {
                self.judge_late(at);
                continue;
            }
            match &mut self.streams[at] {
                Some(Held::Stream(stream)) => {
                    stream.leave_late_out();
                    self.again.push_back(at);
                }
                _ => self.remove(at, false),
            }
        }
    }

    /// For want of descriptors: the rest of a stream that has waited longest for its targets. No client waits for it.
    fn end_oldest(&mut self) -> bool {
        let is_rest = |at: usize| matches!(self.streams[at], Some(Held::Rest(_)));
        let oldest = self.late.iter().find(|(_, at)| is_rest(*at));
        let oldest = oldest.map(|(_, at)| *at);
        oldest.inspect(|at| self.remove(*at, false)).is_some()
    }

    fn accept_some(&mut self, numbers: &Numbers) -> Result<()> {
        (self.is_starved, self.has_clients) = (false, false);
        for _ in 0..ACCEPTS {
            if self.streams.len() - self.free.len() >= STREAMS && !self.end_oldest() {
                self.starve(&format!(
                    "{STREAMS} connections are as many as it has at one time"
                ));
                return Ok(());
            }
            match self.listener.accept() {
                Ok((client, from)) => {
                    add(&numbers.streams, 1);
                    if let Err(why) = self.join(client, from) {
                        // The client sees a reset, as where nobody listens.
                        add(&numbers.refused, 1);
                        if is_shortage(&why) {
                            self.starve(&why.to_string());
                            return Ok(());
                        }
                    }
                }
                Err(why) => match why.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    _ if is_shortage(&why) && self.end_oldest() => {}
                    _ if is_shortage(&why) => {
                        self.starve(&why.to_string());
                        return Ok(());
                    }
                    _ => return Err(Error::host("accept connections")(why)),
                },
            }
        }
        // Others have their turn first.
        self.has_clients = true;
        Ok(())
    }

    /// The clients that wait are looked at later.
    fn starve(&mut self, why: &str) {
        self.is_starved = true;
        if !self.is_said {
            self.is_said = true;
            (self.say)(format!(
                "clients wait, or are reset, until others have gone: {why}"
            ));
        }
    }

    fn join(&mut self, client: TcpStream, from: SocketAddr) -> io::Result<()> {
        let prepare = |targets: &[SocketAddr]| -> io::Result<Vec<TcpStream>> {
            client.set_nonblocking(true)?;
            client.set_nodelay(true)?;
            targets.iter().map(|to| connect(*to)).collect()
        };
        let mut targets = prepare(&self.targets);
        while matches!(&targets, Err(why) if is_shortage(why)) && self.end_oldest() {
            targets = prepare(&self.targets);
        }
        let targets = match targets {
            Ok(targets) => targets,
            Err(why) => {
                reset(&client);
                return Err(why);
            }
        };
        self.count += 1;
        let stream = Stream::new(self.count, client, Name::of(from), targets);
        let at = self.free.pop().unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = |kind| EventData::new_u64((at as u64 + 1) * KINDS + kind);
        let add = |(side, kind)| epoll::add(&self.events, side, data(kind), flags);
        let watched = stream.sides().try_for_each(add);
        if let Err(why) = watched {
            Held::Stream(Box::new(stream)).reset();
            self.free.push(at);
            return Err(why.into());
        }
        self.streams[at] = Some(Held::Stream(Box::new(stream)));
        // What came before it was watched.
        self.again.push_back(at);
        Ok(())
    }
}

/// Descriptors or memory: others end, and it is tried anew.
fn is_shortage(why: &io::Error) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    why.raw_os_error().is_some_and(|why| short.contains(&why))
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(why) => return Err(why.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::sync::Arc;

    use super::*;
    use crate::watchdog::Watchdog;
    use crate::AfterCut;

    /// No step of a test takes longer on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    fn order(targets: Vec<SocketAddr>) -> Order {
        Order {
            is_stream: true,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            targets,
            handler: None,
            words: String::new(),
            budget: crate::BUDGET,
            after_cut: AfterCut::Drop,
            stats: None,
        }
    }

    /// An agent between clients and two targets, of which the second is waited for so long.
    struct Row {
        at: SocketAddr,
        first: TcpListener,
        second: TcpListener,
        numbers: Arc<Numbers>,
        agent: Option<std::thread::JoinHandle<Result<()>>>,
    }

    impl Row {
        fn new(linger: Duration) -> Row {
            let ((first, to), (second, copy)) = (listener(), listener());
            // What it has not taken waits on the way, and not in its socket.
            rustix::net::sockopt::set_socket_recv_buffer_size(&second, 1 << 16).unwrap();
            let order = order(vec![to, copy]);
            let numbers = Arc::new(Numbers::default());
            let mut agent = Agent::open(&order, |_| {}).unwrap();
            agent.linger = linger;
            let at = agent.listener.local_addr().unwrap();
            let seen = numbers.clone();
            let body = move || {
                let dog = Arc::new(Watchdog::new(&order, seen.clone(), |_| {}));
                agent.run(Caller::new(None, dog, AfterCut::Drop, &seen), &seen)
            };
            let agent = Some(std::thread::spawn(body));
            Row {
                at,
                first,
                second,
                numbers,
                agent,
            }
        }

        /// A client, and what the targets have of it.
        fn connect(&self) -> [TcpStream; 3] {
            let client = TcpStream::connect(self.at).unwrap();
            let sides = [
                client,
                self.first.accept().unwrap().0,
                self.second.accept().unwrap().0,
            ];
            for side in &sides {
                side.set_read_timeout(Some(PATIENCE)).unwrap();
                side.set_write_timeout(Some(PATIENCE)).unwrap();
            }
            sides
        }
    }

    impl Drop for Row {
        fn drop(&mut self) {
            self.numbers.ends.store(true, Ordering::Release);
            // An event, so that it looks.
            let _ = TcpStream::connect(self.at);
            let ended = self.agent.take().unwrap().join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }

    /// All that comes, which is this long.
    fn expect(side: &mut TcpStream, length: usize) {
        let mut all = Vec::new();
        side.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), length);
    }

    /// The connection of a target that has its copy and does not end its direction is kept for a while, and no longer.
    #[test]
    fn a_target_that_does_not_end_has_linger() {
        const LINGERS: Duration = Duration::from_secs(2);
        let row = Row::new(LINGERS);
        let [mut client, mut first, mut second] = row.connect();
        client.write_all(b"x").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        expect(&mut first, 1);
        first.write_all(b"answer").unwrap();
        drop(first);
        expect(&mut client, 6);
        let start = Instant::now();
        expect(&mut second, 1);
        // Each word of it finds the connection, or is answered by a reset.
        while second.write_all(b"x").is_ok() {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(start.elapsed() >= LINGERS, "{:?}", start.elapsed());
    }

    /// One that talks without end does so no longer than one that is silent.
    #[test]
    fn a_target_that_talks_without_end_has_linger() {
        let row = Row::new(Duration::from_secs(1));
        let [client, first, mut second] = row.connect();
        drop((client, first));
        let (start, words) = (Instant::now(), vec![0; 1 << 20]);
        while second.write_all(&words).is_ok() {
            assert!(start.elapsed() < PATIENCE);
        }
    }

    /// One that never takes its copy keeps client and first target waiting for a while, and no longer.
    #[test]
    fn a_target_that_takes_nothing_is_left_out() {
        const BYTES: usize = 16 << 20;
        let row = Row::new(Duration::from_secs(1));
        let [mut client, mut first, _second] = row.connect();
        let says = client.try_clone().unwrap();
        let says = std::thread::spawn(move || {
            let mut client = says;
            client.write_all(&vec![0; BYTES]).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        expect(&mut first, BYTES);
        says.join().unwrap();
        first.write_all(b"answer").unwrap();
        drop(first);
        expect(&mut client, 6);
    }

    /// One that takes its copy slowly, and is behind all the time, has all of it however long that takes.
    #[test]
    fn a_slow_target_has_its_copy() {
        // More than all sockets on the way have room for.
        const BYTES: usize = 64 << 20;
        let row = Row::new(Duration::from_secs(2));
        let [mut client, mut first, mut second] = row.connect();
        let says = std::thread::spawn(move || client.write_all(&vec![0; BYTES]).unwrap());
        let hears = std::thread::spawn(move || expect(&mut first, BYTES));
        let (mut left, mut piece) = (BYTES, vec![0; 1 << 17]);
        while left > 0 {
            let length = left.min(piece.len());
            second.read_exact(&mut piece[..length]).unwrap();
            left -= length;
            std::thread::sleep(Duration::from_millis(10));
        }
        says.join().unwrap();
        hears.join().unwrap();
    }

    /// Time begins anew when it has taken something, and it alone is left out.
    #[test]
    fn a_target_is_left_out_when_it_has_taken_nothing() {
        const LINGERS: Duration = Duration::from_millis(50);
        let mut agent = Agent::open(&order(Vec::new()), |_| {}).unwrap();
        agent.linger = LINGERS;
        let (_near, at) = listener();
        let sides = [(); 3].map(|()| TcpStream::connect(at).unwrap());
        let [client, first, second] = sides;
        let mut stream = Stream::new(1, client, Name::none(), vec![first, second]);
        stream.there.kept = vec![0; 9];
        agent.streams.push(Some(Held::Stream(Box::new(stream))));
        for (given, is_out) in [(0, false), (5, false), (5, true)] {
            agent.judge_late(0);
            assert_eq!(agent.late.len(), 1);
            let others = agent.streams[0].as_mut().unwrap().others();
            others.given = given;
            std::thread::sleep(if given == 0 { Duration::ZERO } else { LINGERS });
            agent.end_late();
            let others = agent.streams[0].as_mut().unwrap().others();
            assert_eq!(others.targets[0].is_out, is_out);
        }
        agent.judge_late(0);
        assert!(agent.late.is_empty());
        assert_eq!(agent.again, [0]);
    }
}
