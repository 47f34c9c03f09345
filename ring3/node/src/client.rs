// SPDX-License-Identifier: GPL-2.0
//! Talking to nodes that run, for the `ring3` command.

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::control::{read_line, write_line, Reply, Request, PATIENCE};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_setfl, mknodat, FileType, Mode, OFlags, CWD};
use rustix::process::{pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

pub use crate::calls::Instruction;
pub use crate::control::{Adopter, Calls, Counters, Log, Memory, Port, Proc, State, Status};
use crate::ended;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::runtime::{is_held, Folder};

/// How long `ring3 ls` waits for one node.
const LIST_PATIENCE: Duration = Duration::from_secs(2);
/// How long `down` waits for the node's process to clean up, after its programs' grace.
const DOWN_PATIENCE: Duration = Duration::from_secs(10);
/// How long `down` then waits for the keeper's process to end. It does not wait for one that keeps
/// other nodes, too.
const KEEPER_PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};
/// How often to look whether a node that does not answer is stopped.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const DOWN_TURN: Duration = Duration::from_millis(2);

/// One of this user's nodes.
#[derive(Debug)]
pub struct Client {
    folder: Folder,
    name: String,
    /// The lock of the node that was found; a later node of that name has another one.
    lock: File,
}

/// This user's nodes, with the status of each, or the reason why it does not answer. All are asked
/// at the same time.
pub fn list() -> Result<Vec<(String, Result<Status>)>> {
    let folder = Folder::open()?;
    let names = folder.nodes()?;
    let ask = |name: &str| {
        let node = Client::find(folder.clone(), name)?;
        match node.ask_within(&Request::Status, LIST_PATIENCE)? {
            Reply::Status(status) => Ok(*status),
            other => Err(node.unexpected(other)),
        }
    };
    let statuses: Vec<Result<Status>> = std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .iter()
            .map(|name| scope.spawn(move || ask(name)))
            .collect();
        threads
            .into_iter()
            .zip(&names)
            .map(|(thread, name)| {
                thread.join().unwrap_or_else(|_| {
                    Err(Error::NoAnswer {
                        name: name.clone(),
                        why: "asking it failed".into(),
                    })
                })
            })
            .collect()
    });
    // A node that has just gone down is left out.
    let mut all: Vec<_> = names
        .into_iter()
        .zip(statuses)
        .filter(|(_, status)| !matches!(status, Err(Error::NoSuchNode { .. })))
        .collect();
    for status in ended::list(&folder) {
        if !all.iter().any(|(name, _)| *name == status.name) {
            all.push((status.name.clone(), Ok(status)));
        }
    }
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(all)
}

/// What a node says of itself, or what was left of it when it failed.
pub fn status(name: &str) -> Result<Status> {
    match Client::open(name) {
        Ok(node) => node.status(),
        Err(Error::Ended { name, .. }) => {
            ended::find(&Folder::open()?, &name).ok_or(Error::NoSuchNode { name })
        }
        Err(error) => Err(error),
    }
}

/// Forgets a node that failed; false: there is none of that name.
pub fn forget(name: &str) -> Result<bool> {
    Ok(ended::forget(&Folder::open()?, name))
}

impl Client {
    /// The node called `name`; else [`Error::Ended`], where it failed lately, or [`Error::NoSuchNode`].
    pub fn open(name: &str) -> Result<Client> {
        let folder = Folder::open()?;
        match Client::find(folder.clone(), name) {
            Err(Error::NoSuchNode { name }) => Err(match ended::find(&folder, &name) {
                Some(Status {
                    poison: Some(why),
                    ended_s: Some(ago_s),
                    ..
                }) => Error::Ended { name, ago_s, why },
                _ => Error::NoSuchNode { name },
            }),
            found => found,
        }
    }

    /// The same in a runtime folder that is already open.
    pub fn find(folder: Folder, name: &str) -> Result<Client> {
        let name = name.to_owned();
        match folder.running(&name) {
            Some(lock) => Ok(Client { folder, name, lock }),
            None => Err(Error::NoSuchNode { name }),
        }
    }

    /// The value of the environment variable `RING3_NODE` with which a program joins.
    pub fn join_path(&self) -> PathBuf {
        self.folder.join_path(&self.name)
    }

    /// Whether programs may join yet.
    pub fn is_up(&self) -> Result<()> {
        if self.join_path().exists() || self.is_sandboxed() {
            return Ok(());
        }
        Err(self.absent(Absent::Starting))
    }

    /// Whether programs cannot join but are started inside: [`crate::outside::ask`].
    pub fn is_sandboxed(&self) -> bool {
        self.folder.enter_path(&self.name).exists()
    }

    pub fn status(&self) -> Result<Status> {
        match self.ask(&Request::Status)? {
            Reply::Status(status) => Ok(*status),
            other => Err(self.unexpected(other)),
        }
    }

    /// The kernel log from record `from` on (0: from its beginning).
    pub fn log(&self, from: u64) -> Result<Log> {
        match self.ask(&Request::Log { from })? {
            Reply::Log(log) => Ok(log),
            other => Err(self.unexpected(other)),
        }
    }

    /// What the node's kernel counts.
    pub fn counters(&self) -> Result<Counters> {
        match self.ask(&Request::Counters)? {
            Reply::Counters(counters) => Ok(*counters),
            other => Err(self.unexpected(other)),
        }
    }

    /// Asks a switch to take the other end of a link.
    pub(crate) fn plug(&self, link: &str) -> Result<()> {
        let link = link.to_owned();
        self.port(&Request::Plug { link }).map(drop)
    }

    /// Adds a port to the node, described as for `ring3 up`.
    pub fn port_add(&self, spec: &str) -> Result<Port> {
        let spec = spec.to_owned();
        self.port(&Request::PortAdd { spec })
    }

    /// Removes the port whose interface on the node has this name.
    pub fn port_del(&self, ifname: &str) -> Result<Port> {
        let ifname = ifname.to_owned();
        self.port(&Request::PortDel { ifname })
    }

    /// Tells the node the name and addresses of another one.
    pub fn know(&self, name: &str, addresses: Vec<String>) -> Result<()> {
        let name = name.to_owned();
        match self.ask(&Request::Know { name, addresses })? {
            Reply::Known => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    /// What crosses an interface from now on, as pcap-ng, for as long as it is read. The filter is classic BPF; empty: all frames.
    pub fn capture(&self, ifname: &str, filter: Vec<Instruction>) -> Result<File> {
        let path = self.folder.capture_path(&self.name);
        let fail = || Error::host(format!("make the pipe {}", path.display()));
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &path, FileType::Fifo, mode, 0).map_err(fail())?;
        // It is opened without waiting for a writer, who finds a reader so.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty()).map_err(fail());
        let asked = opened.and_then(|pipe| {
            let request = Request::Capture {
                ifname: ifname.to_owned(),
                path: path.clone(),
                filter,
            };
            match self.ask(&request)? {
                Reply::Captures => Ok(pipe),
                other => Err(self.unexpected(other)),
            }
        });
        let _ = std::fs::remove_file(&path);
        let pipe = asked?;
        fcntl_setfl(&pipe, OFlags::empty()).map_err(fail())?;
        Ok(File::from(pipe))
    }

    /// Lets a debugger outside of the node have this process of the node's, for as long as a descriptor of the stream is open.
    pub fn debug(&self, pid: i32) -> Result<OwnedFd> {
        let stream = self.connect()?;
        match self.exchange(&stream, &Request::Debug { pid }, PATIENCE)? {
            Reply::Free => Ok(stream.into()),
            other => Err(self.unexpected(other)),
        }
    }

    fn port(&self, request: &Request) -> Result<Port> {
        match self.ask(request)? {
            Reply::Port(port) => Ok(*port),
            other => Err(self.unexpected(other)),
        }
    }

    /// Takes the node down and returns when nothing of it is left, also if another command takes it
    /// down. A node that is starting is told when its control socket exists.
    pub fn down(&self) -> Result<()> {
        let start = Instant::now();
        let mut patience = DOWN_PATIENCE;
        let mut keeper = None;
        loop {
            let is_late = || start.elapsed() > patience;
            let told = self.connect().and_then(|stream| {
                keeper = keeper_of(&stream);
                // A stopped keeper does not read.
                if let (Some(keeper), Some(_)) = (&keeper, stopped(&stream)) {
                    let _ = pidfd_send_signal(keeper, Signal::CONT);
                    std::thread::sleep(DOWN_TURN);
                }
                self.exchange(&stream, &Request::Down, PATIENCE)
            });
            match told {
                Ok(Reply::Down { grace_ms }) => {
                    patience += Duration::from_millis(grace_ms);
                    break;
                }
                Ok(other) => return Err(self.unexpected(other)),
                Err(Error::NoSuchNode { .. }) => return Ok(()),
                Err(Error::Starting { .. } | Error::Ending { .. }) if !is_late() => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(DOWN_TURN);
        }
        while is_held(&self.lock) {
            if start.elapsed() > patience {
                return Err(self.no_answer("it was told to go down and has not"));
            }
            std::thread::sleep(DOWN_TURN);
        }
        if let Some(keeper) = keeper {
            let _ = poll(
                &mut [PollFd::new(&keeper, PollFlags::IN)],
                Some(&KEEPER_PATIENCE),
            );
        }
        Ok(())
    }

    fn ask(&self, request: &Request) -> Result<Reply> {
        self.ask_within(request, PATIENCE)
    }

    fn ask_within(&self, request: &Request, patience: Duration) -> Result<Reply> {
        self.exchange(&self.connect()?, request, patience)
    }

    fn connect(&self) -> Result<UnixStream> {
        if !is_held(&self.lock) {
            return Err(self.absent(Absent::Ending));
        }
        UnixStream::connect(self.folder.control_path(&self.name)).map_err(|error| {
            match error.kind() {
                ErrorKind::NotFound => self.absent(Absent::Starting),
                ErrorKind::ConnectionRefused => self.absent(Absent::Ending),
                _ => self.no_answer(&error.to_string()),
            }
        })
    }

    fn exchange(
        &self,
        stream: &UnixStream,
        request: &Request,
        patience: Duration,
    ) -> Result<Reply> {
        let exchange = || {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            if stopped(stream).is_none() {
                write_line(stream, request)?;
                wait_for_answer(stream, patience);
            }
            match stopped(stream) {
                Some(_) if !has_answer(stream, Duration::ZERO) => Err(ErrorKind::WouldBlock.into()),
                _ => read_line(stream),
            }
        };
        exchange().map_err(|error: std::io::Error| match error.kind() {
            ErrorKind::WouldBlock => self.no_answer(&late(stream, patience)),
            // Its process has ended, or it closed its socket while we waited for our turn.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                self.absent(Absent::Ending)
            }
            _ => self.no_answer(&error.to_string()),
        })
    }

    /// Why no process answers at the node's socket.
    fn absent(&self, why: Absent) -> Error {
        let name = self.name.clone();
        match why {
            _ if !is_held(&self.lock) => Error::NoSuchNode { name },
            Absent::Starting => Error::Starting { name },
            Absent::Ending => Error::Ending { name },
        }
    }

    fn unexpected(&self, reply: Reply) -> Error {
        let why = match reply {
            Reply::Ending => return self.absent(Absent::Ending),
            Reply::Error(why) => why,
            _ => "it answered another question: is it of another ring3 version?".to_owned(),
        };
        Error::Refused {
            name: self.name.clone(),
            why,
        }
    }

    fn no_answer(&self, why: &str) -> Error {
        Error::NoAnswer {
            name: self.name.clone(),
            why: why.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::NodeFolder;
    use std::os::unix::net::UnixListener;

    /// Another node takes the name while `down` waits: the old one is gone all the same.
    #[test]
    fn down_waits_for_its_own_node() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::at(dir.path().join("r")).unwrap();
        let node = NodeFolder::claim(&folder, "a").unwrap();
        let control = UnixListener::bind(folder.control_path("a")).unwrap();
        let client = Client::find(folder.clone(), "a").unwrap();
        let server = std::thread::spawn({
            let folder = folder.clone();
            move || {
                let (stream, _) = control.accept().unwrap();
                assert_eq!(read_line::<Request>(&stream).unwrap(), Request::Down);
                drop((control, node));
                let second = NodeFolder::claim(&folder, "a").unwrap();
                write_line(&stream, &Reply::Down { grace_ms: 0 }).unwrap();
                second
            }
        });
        let start = Instant::now();
        client.down().unwrap();
        assert!(start.elapsed() < Duration::from_secs(5));
        let _second = server.join().unwrap();
        assert!(matches!(client.status(), Err(Error::NoSuchNode { .. })));
        assert!(folder.is_running("a"));
    }
}

/// A pidfd of the process that answers, unless it is this one: readable when it has ended.
fn keeper_of(stream: &UnixStream) -> Option<OwnedFd> {
    let pid = Pid::from_raw(Peer::of(stream).ok()?.pid?)?;
    (pid != rustix::process::getpid())
        .then(|| pidfd_open(pid, PidfdFlags::empty()).ok())
        .flatten()
}

/// A node whose lock is held but that has no control socket.
#[derive(Debug, Clone, Copy)]
enum Absent {
    /// It has no sockets yet.
    Starting,
    /// It has none any more: it is ending.
    Ending,
}

/// The message about a node whose process is stopped: waiting for its answer would be in vain.
fn stopped(stream: &UnixStream) -> Option<String> {
    let pid = Peer::of(stream).ok()?.pid?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, state) = stat.rsplit_once(") ")?;
    state.starts_with('T').then(|| {
        format!("its process is stopped: `fg` or `kill -CONT {pid}` lets it go on, `ring3 down` ends it")
    })
}

fn has_answer(stream: &UnixStream, limit: Duration) -> bool {
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    };
    // Any other result shows in the read that follows.
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&limit)) != Ok(0)
}

/// Waits for the answer up to `patience`, but not for a node whose process has been stopped
/// meanwhile.
fn wait_for_answer(stream: &UnixStream, patience: Duration) {
    let start = Instant::now();
    while start.elapsed() < patience && !has_answer(stream, LOOK_AGAIN) && stopped(stream).is_none()
    {
    }
}

/// The message for an answer that is late, with the way to remove the node nevertheless.
fn late(stream: &UnixStream, patience: Duration) -> String {
    if let Some(why) = stopped(stream) {
        return why;
    }
    let seconds = patience.as_secs();
    match Peer::of(stream).ok().and_then(|peer| peer.pid) {
        Some(pid) => {
            format!("nothing within {seconds} s; its process is {pid}, `kill -KILL` ends that")
        }
        None => format!("nothing within {seconds} s"),
    }
}
