// SPDX-License-Identifier: GPL-2.0
//! The control socket's server.
//!
//! Each connection has a thread of its own, so that a node whose kernel is stuck (a stopped program
//! owns the vCPU) can still be queried and taken down. Only the log and the counters come from the
//! kernel: such a request goes to the node's thread, which may be busy.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::time::{Duration, Instant};

use ring3_abi::*;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::adopter;
use crate::calls::Instruction;
use crate::control::{self, Adopter, Calls, Memory, Proc, Reply, Request, State, Status};
use crate::drivers::{event_fd, ring, Driver};
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::ports::link::far_end;
use crate::ports::Port;
use crate::region::Region;
use crate::runtime::Folder;

/// How long the kernel may take to give its log or its counters.
const KERNEL_PATIENCE: Duration = Duration::from_secs(5);
/// If the owner of a vCPU is stopped for so long, it holds the node up.
const HELD_UP: Duration = Duration::from_millis(20);
/// How long the adopter may take to let a process go: its threads have to come out of what can't be interrupted.
const PLACE_PATIENCE: Duration = Duration::from_secs(2);
const PLACE_TURN: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// How long the node's thread may take to notice that it is to end.
const DOWN_PATIENCE: Duration = Duration::from_secs(2);

/// Everything about a node that is known without asking its kernel.
#[derive(Debug)]
pub(super) struct Facts {
    pub name: String,
    pub folder: Folder,
    pub region: Arc<Region>,
    pub ports: Arc<Mutex<Vec<control::Port>>>,
    pub join: PathBuf,
    pub started: Instant,
    pub grace: Duration,
    /// The node's thread cleans up.
    pub leaving: Arc<AtomicBool>,
}

/// Requests that only the node's thread can answer.
#[derive(Debug)]
pub(super) enum Question {
    /// The log from this record on.
    Log(u64),
    Counters,
    Plug(String),
    PortAdd(String),
    PortDel(String),
    Know(String, Vec<String>),
    Capture(String, PathBuf, Vec<Instruction>),
}

/// A request to the node's thread.
#[derive(Debug)]
pub(super) struct Ask {
    pub question: Question,
    pub reply: mpsc::Sender<Reply>,
}

/// The receiving end; `bell` is rung for each request.
#[derive(Debug)]
pub(super) struct Asks {
    pub queue: mpsc::Receiver<Ask>,
    pub bell: Arc<OwnedFd>,
}

/// Serves until this is dropped.
#[derive(Debug)]
pub(super) struct ControlServer {
    driver: Option<Driver>,
    quit: Arc<OwnedFd>,
}

/// The state of each connection's thread.
#[derive(Clone)]
struct Context {
    facts: Arc<Facts>,
    asks: mpsc::Sender<Ask>,
    bell: Arc<OwnedFd>,
    stop: Arc<OwnedFd>,
}

impl ControlServer {
    /// Listens at `path`; `down` rings `stop`.
    pub fn start(path: &Path, facts: Facts, stop: &Arc<OwnedFd>) -> Result<(ControlServer, Asks)> {
        let fail = || Error::io(format!("listen on {}", path.display()));
        let listener = UnixListener::bind(path).map_err(fail())?;
        listener.set_nonblocking(true).map_err(fail())?;
        let quit = Arc::new(event_fd()?);
        let bell = Arc::new(event_fd()?);
        let (asks, queue) = mpsc::channel();
        let context = Context {
            facts: Arc::new(facts),
            asks,
            bell: bell.clone(),
            stop: stop.clone(),
        };
        let driver = Driver::start("ring3-control", {
            let quit = quit.clone();
            move || accept(&listener, &quit, &context)
        })?;
        let server = ControlServer {
            driver: Some(driver),
            quit,
        };
        Ok((server, Asks { queue, bell }))
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        ring(&self.quit);
        self.driver.take().map(Driver::end);
    }
}

fn accept(listener: &UnixListener, quit: &OwnedFd, context: &Context) {
    loop {
        let mut fds = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(quit, PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, most likely: the waiting peer is still there next time.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let facts = &context.facts;
        // The folder's mode keeps other users out; if someone has changed that, this check still
        // holds.
        if !Peer::of(&stream).is_ok_and(Peer::is_own_user) {
            log::warn!(
                "node {}: another user asked at its control socket",
                facts.name
            );
            continue;
        }
        let context = context.clone();
        let started = Driver::start("ring3-answer", move || {
            if let Err(error) = context.serve(&stream) {
                log::debug!("node {}: control: {error}", context.facts.name);
            }
        });
        if let Err(error) = started {
            log::warn!("node {}: {error}", facts.name);
        }
    }
}

impl Context {
    fn serve(&self, stream: &UnixStream) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(control::PATIENCE))?;
        stream.set_write_timeout(Some(control::PATIENCE))?;
        match control::read_line(stream)? {
            Request::Status => {
                let status = Box::new(self.facts.status());
                control::write_line(stream, &Reply::Status(status))
            }
            Request::Log { from } => {
                control::write_line(stream, &self.ask_kernel(Question::Log(from)))
            }
            Request::Counters => control::write_line(stream, &self.ask_kernel(Question::Counters)),
            Request::Plug { link } => {
                control::write_line(stream, &self.ask_kernel(Question::Plug(link)))
            }
            Request::PortAdd { spec } => {
                control::write_line(stream, &self.ask_kernel(Question::PortAdd(spec)))
            }
            Request::Know { name, addresses } => {
                control::write_line(stream, &self.ask_kernel(Question::Know(name, addresses)))
            }
            Request::Capture {
                ifname,
                path,
                filter,
            } => {
                let question = Question::Capture(ifname, path, filter);
                control::write_line(stream, &self.ask_kernel(question))
            }
            Request::Debug { pid } => self.debug(stream, pid),
            Request::PortDel { ifname } => {
                control::write_line(stream, &self.ask_kernel(Question::PortDel(ifname)))
            }
            Request::Down => {
                ring(&self.stop);
                let grace_ms = self.facts.grace.as_millis() as u64;
                control::write_line(stream, &Reply::Down { grace_ms })?;
                self.see_it_end();
                Ok(())
            }
        }
    }

    /// Keeps the adopter away from the process for as long as the connection lasts.
    fn debug(&self, stream: &UnixStream, pid: i32) -> std::io::Result<()> {
        let region = &self.facts.region;
        let Some(entry) = region.procs().find(|it| it.pid == pid) else {
            let why = format!("process {pid} is not one of its programs");
            return control::write_line(stream, &Reply::Error(why));
        };
        region.want_place(entry.index);
        let start = Instant::now();
        while !region.is_place_free(entry.index) && start.elapsed() < PLACE_PATIENCE {
            adopter::look(region);
            std::thread::sleep(Duration::from_millis(1));
        }
        let reply = match region.is_place_free(entry.index) {
            true => Reply::Free,
            false => Reply::Error(format!(
                "process {pid} is in a system call that can't be interrupted"
            )),
        };
        let told = control::write_line(stream, &reply);
        if matches!(reply, Reply::Free) {
            // Until it is closed, or the node ends.
            let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
            while region.state() == RING3_UP
                && matches!(
                    poll(&mut fds, Some(&PLACE_TURN)),
                    Ok(0) | Err(rustix::io::Errno::INTR)
                )
            {}
        }
        region.leave_place(entry.index);
        adopter::look(region);
        told
    }

    fn ask_kernel(&self, question: Question) -> Reply {
        let (reply, answer) = mpsc::channel();
        let busy = || Reply::Error("its kernel is busy: is one of its programs stopped?".into());
        if self.asks.send(Ask { question, reply }).is_err() {
            return Reply::Ending;
        }
        ring(&self.bell);
        match answer.recv_timeout(KERNEL_PATIENCE) {
            Ok(reply) => reply,
            Err(mpsc::RecvTimeoutError::Timeout) => busy(),
            Err(mpsc::RecvTimeoutError::Disconnected) => Reply::Ending,
        }
    }

    /// If the node's thread does not react, it is in a call that does not end; state DOWN ends the
    /// call.
    fn see_it_end(&self) {
        let start = Instant::now();
        while !self.facts.leaving.load(Ordering::Acquire) {
            if start.elapsed() > DOWN_PATIENCE {
                self.facts.region.set_down();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Facts {
    /// A port, and the node at its other end now.
    fn port(&self, port: &control::Port) -> control::Port {
        let peer = match (port.kind.as_str(), &port.name) {
            ("link", Some(link)) => far_end(&self.folder, link, &self.name),
            ("switch", _) => {
                let link = port.link.as_deref().unwrap_or_default();
                far_end(&self.folder, link, &self.name)
            }
            ("host", _) if !port.pid.is_some_and(has_ended) => Some("the host".to_owned()),
            // One that was opened outside: the node is not told.
            ("vhost", _) if port.guest.is_none() => Some("a socket for virtual machines".into()),
            ("vhost", _) => port.guest.as_ref().and_then(|it| it.get()),
            _ => None,
        };
        control::Port {
            peer,
            pid: port.guest.as_ref().map_or(port.pid, |it| it.pid()),
            ..port.clone()
        }
    }

    fn status(&self) -> Status {
        let own = std::process::id() as i32;
        let procs = self.region.procs().filter(|entry| entry.pid > 0);
        let ports = self
            .ports
            .lock()
            .map_or_else(|_| Vec::new(), |it| it.clone());
        Status {
            name: self.name.clone(),
            state: match self.region.state() {
                RING3_LOADED | RING3_BOOTING => State::Booting,
                RING3_UP => State::Up,
                RING3_DOWN => State::Down,
                _ => State::Poisoned,
            },
            poison: self.region.poison(),
            pid: own,
            uptime_ns: self.started.elapsed().as_nanos() as u64,
            version: self.region.version.clone(),
            image: self.region.image.clone(),
            join: self.join.clone(),
            base: self.region.base(),
            calls: calls(self.region.counts()),
            late: self.region.late(),
            mem: Memory {
                size: self.region.size(),
                resident: self.region.resident(),
            },
            ports: ports.iter().map(|port| self.port(port)).collect(),
            // The keeper's own tasks (captures) are not programs.
            procs: procs
                .filter(|entry| entry.pid != own)
                .map(|entry| Proc {
                    pid: entry.pid,
                    threads: entry.threads,
                    command: command_name(entry.pid),
                })
                .collect(),
            adopter: self.region.adopter().map(|(how, done)| Adopter {
                how: match how {
                    RING3_ADOPTS_AFTER => "killed",
                    RING3_ADOPTS_TRACED => "traced",
                    _ => "unknown",
                }
                .to_owned(),
                adopted: done[RING3_ADOPTED],
                freed: done[RING3_FREED],
            }),
            held_up_by: self.held_up_by(),
            ended_s: None,
        }
    }

    /// Owners of a vCPU that the host reports as stopped, twice in a row: not one whose code the
    /// adopter is about to continue.
    fn held_up_by(&self) -> Vec<Proc> {
        let stopped = || -> Vec<u32> {
            let mut all = self.region.holders();
            all.retain(|tid| is_stopped(*tid));
            all
        };
        let first = stopped();
        if first.is_empty() {
            return Vec::new();
        }
        std::thread::sleep(HELD_UP);
        let both = stopped().into_iter().filter(|tid| first.contains(tid));
        both.map(|tid| Proc {
            pid: tid as i32,
            threads: 1,
            command: command_name(tid as i32),
        })
        .collect()
    }
}

/// True also for a zombie.
fn has_ended(pid: i32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    let state = text.rsplit(") ").next().and_then(|it| it.chars().next());
    matches!(state, Some('Z' | 'X'))
}

/// Stopped by job control or a debugger.
fn is_stopped(tid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{tid}/stat")).is_ok_and(|text| {
        let state = text.rsplit(") ").next().and_then(|it| it.chars().next());
        matches!(state, Some('T' | 't'))
    })
}

pub(super) fn port_status(port: &Port) -> control::Port {
    control::Port {
        kind: port.spec.kind.kind().to_owned(),
        name: port.spec.kind.name().map(str::to_owned),
        ifname: port.ifname.clone(),
        ifindex: port.ifindex,
        addrs: port.addrs.iter().map(ToString::to_string).collect(),
        gw: port.gw.iter().map(ToString::to_string).collect(),
        mtu: port.spec.mtu,
        pcap: port.spec.pcap.clone(),
        made: port.made(),
        pid: port.pid(),
        peer: None,
        link: port.link.clone(),
        guest: port.guest(),
    }
}

/// A process's name, which it chooses; empty when it is gone. On one line, whatever it is.
fn command_name(pid: i32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name));
    name.replace(char::is_control, "?")
}

fn calls(counts: [u64; RING3_STAT_COUNTS]) -> Calls {
    Calls {
        rewritten: counts[RING3_STAT_DIRECT]
            + counts[RING3_STAT_STRAIGHT]
            + counts[RING3_STAT_ENTERED],
        trapped: counts[RING3_STAT_TRAPPED],
        host: counts[RING3_STAT_DIRECT] + counts[RING3_STAT_PASSED],
    }
}
