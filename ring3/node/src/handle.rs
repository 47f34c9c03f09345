// SPDX-License-Identifier: GPL-2.0
//! Starts and ends a node, from the process that keeps it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc};
use std::thread::JoinHandle;
use std::time::Duration;

use ring3_config::NodeConfig;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

use crate::drivers::{event_fd, ring};
use crate::error::{Error, Result};
use crate::fault;
use crate::join::Caller;
use crate::node::{Guests, Node, Place};
use crate::outside::Given;
use crate::region::Region;
use crate::runtime::Folder;
use crate::sys;

/// Boot runs kernel code on this stack before it has one of its own.
const STACK_BYTES: usize = 1 << 20;

/// How long a node may take to end in good order after its programs' grace, and then by force.
const ORDERLY_END: Duration = Duration::from_secs(5);
const FORCED_END: Timespec = seconds(5);

/// How long the clean-up of an abandoned start may take, if nothing blocks it.
const GIVE_UP_PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

const fn seconds(n: i64) -> Timespec {
    Timespec {
        tv_sec: n,
        tv_nsec: 0,
    }
}

/// Lets programs join a confined node.
#[derive(Debug, Clone)]
pub struct Door {
    announce: mpsc::Sender<Caller>,
    bell: Arc<OwnedFd>,
}

impl Door {
    /// A child of this process, which has the other end of this SOCK_SEQPACKET pair.
    pub fn admit(&self, socket: OwnedFd, pid: i32) {
        // If the node has ended, the child sees its end of the pair closed.
        let _ = self.announce.send(Caller::child(socket, pid));
        ring(&self.bell);
    }
}

/// A node kept by this process. Dropping it takes the node down.
#[derive(Debug)]
pub struct NodeHandle {
    name: String,
    join: PathBuf,
    grace: Duration,
    region: Arc<Region>,
    stop: Arc<OwnedFd>,
    ended: Arc<OwnedFd>,
    failed: Arc<OwnedFd>,
    thread: Option<JoinHandle<Result<()>>>,
    /// Of a confined node: announces children that join.
    announce: Option<Door>,
}

impl NodeHandle {
    /// Boots the node in threads of this process; returns when programs may join.
    ///
    /// The threads block every signal, so the caller's handlers run on its own threads.
    pub fn start(config: NodeConfig) -> Result<NodeHandle> {
        NodeHandle::start_in(config, &Folder::open()?)
    }

    /// The same in a runtime folder that is already open.
    pub fn start_in(config: NodeConfig, folder: &Folder) -> Result<NodeHandle> {
        NodeHandle::begin(config, Place::Folder(folder.clone()), &[])
    }

    /// As [`NodeHandle::start`], until one of `give_up` is readable or broken: then
    /// [`Error::GivenUp`]. The thread of the start may still be blocked, so the caller is to end
    /// this process.
    pub fn start_unless(config: NodeConfig, give_up: &[BorrowedFd<'_>]) -> Result<NodeHandle> {
        NodeHandle::begin(config, Place::Folder(Folder::open()?), give_up)
    }

    /// The same for a process that is confined (outside.rs). The node is not in the runtime folder,
    /// and each program is announced by [`Door::admit`].
    pub fn start_confined(
        config: NodeConfig,
        given: Given,
        give_up: &[BorrowedFd<'_>],
    ) -> Result<NodeHandle> {
        let (announce, queue) = mpsc::channel();
        let bell = Arc::new(event_fd()?);
        let guests = Guests {
            queue,
            bell: bell.clone(),
        };
        let mut node = NodeHandle::begin(config, Place::Confined(given, guests), give_up)?;
        node.announce = Some(Door { announce, bell });
        Ok(node)
    }

    /// Announces children of this process that join. Only a confined node has one.
    pub fn door(&self) -> Option<Door> {
        self.announce.clone()
    }

    fn begin(config: NodeConfig, place: Place, give_up: &[BorrowedFd<'_>]) -> Result<NodeHandle> {
        let name = config.name.clone();
        let grace = config.grace;
        let stop = Arc::new(event_fd()?);
        let ended = Arc::new(event_fd()?);
        let failed = Arc::new(event_fd()?);
        let is_up = Arc::new(event_fd()?);
        let (tell, told) = mpsc::channel();
        let join = match &place {
            Place::Folder(folder) => folder.join_path(&name),
            Place::Confined(..) => PathBuf::new(),
        };
        let body = {
            let (stop, ended) = (stop.clone(), ended.clone());
            let (is_up, failed) = (is_up.clone(), failed.clone());
            move || {
                let _bell = RingAtEnd(ended);
                keep(config, place, &stop, &failed, |region| {
                    let _ = tell.send(region);
                    ring(&is_up);
                })
            }
        };
        let thread = {
            let _mask = sys::block_signals();
            std::thread::Builder::new()
                .name("ring3-node".into())
                .stack_size(STACK_BYTES)
                .spawn(body)
                .map_err(Error::io("start a thread"))?
        };
        if wait_for_start(&is_up, &ended, give_up)? == Start::GivenUp {
            ring(&stop);
            has_ended_within(&ended, GIVE_UP_PATIENCE);
            return Err(Error::GivenUp);
        }
        let Ok(region) = told.recv() else {
            // It ended without a message: the error is its result.
            let result = thread.join().unwrap_or_else(|_| {
                Err(Error::Boot {
                    why: "its keeper panicked".into(),
                })
            });
            return Err(result.err().unwrap_or(Error::Boot {
                why: "its keeper ended".into(),
            }));
        };
        Ok(NodeHandle {
            join,
            name,
            grace,
            region,
            stop,
            ended,
            failed,
            thread: Some(thread),
            announce: None,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the environment variable `RING3_NODE` with which a program joins; empty if the
    /// node is confined.
    pub fn join_path(&self) -> &Path {
        &self.join
    }

    /// Where the node's memory lies in each of its processes, and how much further up its text can be written.
    pub fn memory(&self) -> (std::ops::Range<u64>, u64) {
        let base = self.region.base();
        (
            base..base + self.region.size(),
            ring3_abi::RING3_ALIAS_OFFSET,
        )
    }

    /// Why the node is poisoned, if it is.
    pub fn poison(&self) -> Option<String> {
        self.region.poison()
    }

    /// Readable when the node has ended after a request for `down`.
    pub fn ended_fd(&self) -> impl AsFd + '_ {
        self.ended.as_fd()
    }

    /// Readable when the node has failed and its programs have ended.
    pub fn failed_fd(&self) -> impl AsFd + '_ {
        self.failed.as_fd()
    }

    /// Takes the node down and removes all that it made. An error if it was poisoned.
    pub fn down(mut self) -> Result<()> {
        let result = self.end();
        match self.region.poison() {
            Some(why) => Err(Error::Poisoned { why }),
            None => result,
        }
    }

    fn end(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        ring(&self.stop);
        let patience = Timespec::try_from(self.grace + ORDERLY_END).unwrap_or(FORCED_END);
        if !has_ended_within(&self.ended, patience) {
            // It may wait for a vCPU whose owner is stopped: state DOWN ends such waits.
            self.region.set_down();
            if !has_ended_within(&self.ended, FORCED_END) {
                return Err(Error::Stuck);
            }
        }
        thread.join().unwrap_or_else(|_| {
            Err(Error::Poisoned {
                why: "its keeper panicked".into(),
            })
        })
    }
}

fn has_ended_within(ended: &OwnedFd, patience: Timespec) -> bool {
    let mut fds = [PollFd::new(ended, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&patience)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.is_ok_and(|ready| ready > 0),
        }
    }
}

/// The result of a start.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    UpOrOver,
    GivenUp,
}

fn wait_for_start(is_up: &OwnedFd, ended: &OwnedFd, give_up: &[BorrowedFd<'_>]) -> Result<Start> {
    let mut fds = vec![
        PollFd::new(is_up, PollFlags::IN),
        PollFd::new(ended, PollFlags::IN),
    ];
    fds.extend(
        give_up
            .iter()
            .map(|give_up| PollFd::new(give_up, PollFlags::IN)),
    );
    loop {
        match poll(&mut fds, None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(Error::host("wait for a node")(why)),
        }
    }
    let given_up = fds[2..].iter().any(|fd| !fd.revents().is_empty());
    Ok(match given_up {
        true => Start::GivenUp,
        false => Start::UpOrOver,
    })
}

impl Drop for NodeHandle {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            log::warn!("node {}: {error}", self.name);
        }
    }
}

/// Rings when the thread that owns it ends, also by a panic.
struct RingAtEnd(Arc<OwnedFd>);

impl Drop for RingAtEnd {
    fn drop(&mut self) {
        ring(&self.0);
    }
}

/// The life of the thread that is the node's pid 1.
fn keep(
    config: NodeConfig,
    place: Place,
    stop: &Arc<OwnedFd>,
    failed: &Arc<OwnedFd>,
    up: impl FnOnce(Arc<Region>),
) -> Result<()> {
    fault::prepare_thread();
    sys::exact_timers();
    let mut node = Node::start(config, place)?;
    let sockets = node.listen(stop)?;
    up(node.region().clone());
    node.serve(&sockets, stop, failed)
}

/// A node has a pidfd for each of its processes; the usual soft limit is half of the hard one.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(why) = setrlimit(Resource::Nofile, raised) {
        log::debug!("the limit of open files stays: {why}");
    }
}
