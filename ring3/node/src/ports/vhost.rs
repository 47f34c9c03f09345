// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the `vhost` port, the keeper's half
//!
//! The keeper listens on the port's socket and starts a process, the device (`ring3 vhost-port`), which has that socket and
//! the far end of a link of the node:
//!
//! ```text
//! guest ── virtio queues ── device ── link ── node
//!   └─ QEMU ── the socket ──┘
//! ```
//!
//! The device is confined before the first virtual machine connects, and has no node of its own: it moves frames between the
//! guest's memory and the link's (ring3/vhost). So what a guest puts into its queues meets one process that can do nothing else.
//!
//! ```text
//! keeper -> device   the plan (JSON) with the link's memory; then the socket
//! device -> keeper   "+": it serves; "-" and words: it does not
//! device -> keeper   "=" and words: what state the guest is in, each time that changes
//! ```
//!
//! A device that ends by itself is started again, and a virtual machine that connects again meets the next one: the keeper
//! keeps the socket, and link and interface stay. The file of the socket goes with the node.

use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::drivers::Driver;
use crate::error::{Error, Result};
use crate::unix::address;
use crate::window::LinkMemory;

use super::confined::{self, Process, MESSAGE_MAX};
use super::given::{self, GivenLink};
use super::handover;
use super::host::Talk;

/// The hidden verb of the command that becomes the device.
const VERB: &str = "vhost-port";
/// What it is, for messages.
const WHAT: &str = "vhost port";
/// One virtual machine is served at a time, and one more may wait for the end of another.
const BACKLOG: i32 = 4;
/// Until a device that ended is started again: an end that repeats itself costs little.
const RESTART_PAUSE: Duration = Duration::from_millis(200);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a device that says too much is not heard.
const FLOOD_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of what is said of a guest's state.
const STATE_MAX: usize = 200;
const STATE: u8 = b'=';

/// What a device is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VhostPlan {
    /// The node's name and the port's socket, for messages.
    pub node: String,
    pub socket: PathBuf,
}

/// What the port's threads and its owner share.
#[derive(Debug, Default)]
struct Shared {
    leaving: AtomicBool,
    /// Of the device; 0: it is being started again.
    pid: AtomicI32,
    /// The keeper's end of the talk with the device: shutting it down ends that.
    talk: Mutex<Option<OwnedFd>>,
    /// In words; empty: there is no virtual machine.
    state: Mutex<String>,
}

impl Shared {
    fn set_state(&self, state: &str) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state.to_owned();
    }

    /// Remembers a device. False: the port is about to go, and the device with it.
    fn take_up(&self, process: &Process) -> Result<bool> {
        let talk = process.talk.try_clone();
        let talk = talk.map_err(Error::io("copy a descriptor"))?;
        let mut current = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Some(talk);
        self.pid.store(process.child.id() as i32, Ordering::Release);
        Ok(!self.leaving.load(Ordering::Acquire))
    }
}

#[derive(Debug)]
pub(crate) struct VhostPort {
    link: GivenLink,
    shared: Arc<Shared>,
    watch: Option<Driver>,
    /// Goes last.
    _socket: Listener,
}

/// The port's socket; its file goes with this value.
#[derive(Debug)]
struct Listener {
    path: PathBuf,
    fd: Arc<OwnedFd>,
    /// Device and inode of the file.
    file: (u64, u64),
}

impl Listener {
    fn open(path: &Path) -> Result<Listener> {
        let path = std::path::absolute(path).map_err(Error::io("find the current folder"))?;
        let fail = |why: Errno| Error::VhostSocket {
            path: path.clone(),
            why: why.to_string(),
        };
        let flags = SocketFlags::CLOEXEC;
        let new = || rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let name = address(&path)?;
        let fd = new().map_err(fail)?;
        match rustix::net::bind(&fd, &name) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                let is_socket = path
                    .symlink_metadata()
                    .is_ok_and(|file| file.file_type().is_socket());
                let busy = |why: &str| Error::VhostSocket {
                    path: path.clone(),
                    why: why.into(),
                };
                if !is_socket {
                    return Err(busy("a file of that name is there: choose another"));
                }
                // A socket that nobody listens on was left by a process that was killed.
                match rustix::net::connect(new().map_err(fail)?, &name) {
                    Err(Errno::CONNREFUSED) => {}
                    _ => return Err(busy("another program listens there: choose another path")),
                }
                std::fs::remove_file(&path).map_err(Error::io("remove a dead socket"))?;
                rustix::net::bind(&fd, &name).map_err(fail)?;
            }
            Err(why) => return Err(fail(why)),
        }
        // Whoever may connect gives the node packets: the node's user, until somebody says otherwise by chmod.
        rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(0o600)).map_err(fail)?;
        rustix::net::listen(&fd, BACKLOG).map_err(fail)?;
        let file = path.symlink_metadata().map_err(Error::io("see a socket"))?;
        Ok(Listener {
            file: (file.dev(), file.ino()),
            path,
            fd: Arc::new(fd),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let file = self.path.symlink_metadata();
        if file.is_ok_and(|file| (file.dev(), file.ino()) == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl VhostPort {
    /// Listens, starts the device, and returns once it serves.
    pub fn start(node: &str, socket: &str) -> Result<VhostPort> {
        let listener = Listener::open(Path::new(socket))?;
        let link = GivenLink::make(node)?;
        let plan = VhostPlan {
            node: node.to_owned(),
            socket: listener.path.clone(),
        };
        let shared = Arc::new(Shared::default());
        let keep = Keep {
            memory: link
                .memory()
                .try_clone()
                .map_err(Error::io("copy a descriptor"))?,
            window: LinkMemory::map(link.memory())?,
            listener: listener.fd.clone(),
            plan,
            shared: shared.clone(),
        };
        let first = keep.begin()?;
        let mut port = VhostPort {
            link,
            shared,
            watch: None,
            _socket: listener,
        };
        port.shared.take_up(&first)?;
        port.watch = Some(Driver::start("ring3-vhost", move || keep.watch(first))?);
        Ok(port)
    }

    pub fn link(&self) -> &GivenLink {
        &self.link
    }

    pub fn pid(&self) -> Option<i32> {
        self.state().pid()
    }

    /// Reads what state the guest is in, in words.
    pub fn state(&self) -> State {
        State(self.shared.clone())
    }
}

/// The state of a port's guest, as it changes.
#[derive(Debug, Clone)]
pub(crate) struct State(Arc<Shared>);

impl State {
    /// In words; `None`: no virtual machine has connected.
    pub fn get(&self) -> Option<String> {
        let words = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(words.clone()).filter(|words| !words.is_empty())
    }

    /// The device's process now.
    pub fn pid(&self) -> Option<i32> {
        let pid = self.0.pid.load(Ordering::Acquire);
        Some(pid).filter(|pid| *pid > 0)
    }
}

impl Drop for VhostPort {
    fn drop(&mut self) {
        self.shared.leaving.store(true, Ordering::Release);
        // The device sees the end and ends; the watch sees that.
        let talk = self.shared.talk.lock();
        if let Some(talk) = &*talk.unwrap_or_else(PoisonError::into_inner) {
            let _ = rustix::net::shutdown(talk, rustix::net::Shutdown::Both);
        }
        self.watch.take().map(Driver::end);
    }
}

/// What it takes to start a device.
struct Keep {
    plan: VhostPlan,
    memory: std::fs::File,
    window: LinkMemory,
    listener: Arc<OwnedFd>,
    shared: Arc<Shared>,
}

impl Keep {
    /// Starts a device, and waits until it serves.
    fn begin(&self) -> Result<Process> {
        let failed = |why: String| Error::VhostFailed { why };
        let mut process = Process::spawn(VERB, WHAT)?;
        let deaf = |why| failed(format!("it does not listen: {why}"));
        let told = (|| {
            let plan = serde_json::to_vec(&self.plan).map_err(|why| failed(why.to_string()))?;
            handover::send(&process.talk, &plan, &self.memory).map_err(deaf)?;
            handover::send(&process.talk, b"s", &*self.listener).map_err(deaf)?;
            confined::answer(&process.talk).map_err(failed)
        })();
        if let Err(why) = told {
            let _ = process.child.kill();
            let _ = process.child.wait();
            return Err(why);
        }
        Ok(process)
    }

    /// The thread: hears the device, and starts the next when it ends.
    fn watch(self, mut process: Process) {
        let mut pause = RESTART_PAUSE;
        loop {
            let begun = std::time::Instant::now();
            self.hear(&mut process);
            self.window.leave(given::GATEWAY);
            process.words.last();
            let _ = rustix::net::shutdown(&process.talk, rustix::net::Shutdown::Both);
            let status = confined::end(&mut process.child);
            self.shared.pid.store(0, Ordering::Release);
            self.shared.set_state("");
            if self.is_leaving() {
                return;
            }
            let how = status.map_or_else(|| "it did not listen".into(), |it| it.to_string());
            log::error!(
                "node {}: the process of its port vhost:{} ended ({how}): it is started again, and a virtual machine has to connect again",
                self.plan.node,
                self.plan.socket.display()
            );
            if begun.elapsed() > RESTART_PAUSE_MAX {
                pause = RESTART_PAUSE;
            }
            process = loop {
                std::thread::sleep(pause);
                pause = RESTART_PAUSE_MAX.min(2 * pause);
                if self.is_leaving() {
                    return;
                }
                match self.begin() {
                    Ok(process) => break process,
                    Err(why) => log::error!("node {}: {why}", self.plan.node),
                }
            };
            if !self.shared.take_up(&process).unwrap_or(false) {
                let _ = process.child.kill();
                let _ = process.child.wait();
                return;
            }
        }
    }

    fn is_leaving(&self) -> bool {
        self.shared.leaving.load(Ordering::Acquire)
    }

    /// Until the device's end of the talk is closed.
    fn hear(&self, process: &mut Process) {
        let mut message = vec![0; MESSAGE_MAX];
        loop {
            let mut fds = vec![PollFd::new(&process.talk, PollFlags::IN)];
            fds.extend(
                process
                    .words
                    .fd()
                    .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
            if poll(&mut fds, None).is_err() {
                continue;
            }
            let is_said = !fds[0].revents().is_empty();
            drop(fds);
            process.words.hear();
            if process.words.is_flooded() {
                std::thread::sleep(FLOOD_PAUSE);
            }
            if !is_said {
                continue;
            }
            match rustix::net::recv(&process.talk, &mut message[..], RecvFlags::DONTWAIT) {
                Ok((len, _)) if len > 0 => self.take_state(&message[..len.min(STATE_MAX)]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// A process that a guest has taken over may say anything.
    fn take_state(&self, message: &[u8]) {
        if let Some((&STATE, words)) = message.split_first() {
            let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
            let words = String::from_utf8_lossy(words);
            self.shared
                .set_state(&words.chars().map(clean).collect::<String>());
        }
    }
}

/// The device's end of the talk.
#[derive(Debug)]
pub struct VhostTalk(Talk);

impl VhostTalk {
    /// Over the descriptor that the keeper left: the plan, the link's end and the socket.
    pub fn hear(socket: OwnedFd) -> Result<(VhostTalk, VhostPlan, GivenLink, OwnedFd)> {
        let failed = |why: String| Error::VhostFailed { why };
        let mut message = vec![0; MESSAGE_MAX];
        let (len, memory) = handover::take(&socket, &mut message)
            .map_err(|why| failed(format!("no keeper gave it a link ({why})")))?;
        let plan =
            serde_json::from_slice(&message[..len]).map_err(|why| failed(why.to_string()))?;
        let (_, listener) = handover::take_any(&socket, &mut message)
            .map_err(|why| failed(format!("no keeper gave it a socket ({why})")))?;
        let link = GivenLink::take(memory)?;
        Ok((VhostTalk(Talk(socket)), plan, link, listener))
    }

    /// Tells the keeper how it went.
    pub fn answer(&self, outcome: std::result::Result<(), &str>) {
        self.0.answer(outcome);
    }

    /// Tells the keeper what state the guest is in.
    pub fn say_state(&self, words: &str) {
        let message = [&[STATE], words.as_bytes()].concat();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        // A keeper that is gone is seen by the end of the socket.
        let _ = rustix::net::send(&self.0 .0, &message, flags);
    }

    /// Waits until the keeper is gone, or wants no device any more.
    pub fn wait_for_end(&self) {
        let mut byte = [0];
        loop {
            match rustix::net::recv(&self.0 .0, &mut byte[..], RecvFlags::empty()) {
                Ok((len, _)) if len > 0 => {}
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_its_user_s_and_a_live_one_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vm.sock");
        let _first = Listener::open(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        let error = Listener::open(&path).unwrap_err().to_string();
        assert!(error.contains("another program listens"), "{error}");
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vm.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let listener = Listener::open(&path).unwrap();
        drop(listener);
        assert!(!path.exists(), "its file goes with it");
        std::fs::write(&path, "mine").unwrap();
        let error = Listener::open(&path).unwrap_err().to_string();
        assert!(error.contains("a file of that name"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        let error = Listener::open(Path::new("/nowhere/vm.sock"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("/nowhere/vm.sock"), "{error}");
    }

    /// Another's file of that name stays.
    #[test]
    fn only_its_own_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vm.sock");
        let listener = Listener::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let other = Listener::open(&path).unwrap();
        drop(listener);
        assert!(path.exists());
        drop(other);
    }
}
