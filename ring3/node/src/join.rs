// SPDX-License-Identifier: GPL-2.0
//! Letting programs into the node: the server of include/ring3.abi. Unsafe leaf, for the
//! two structures that cross the socket as bytes.
//!
//! One connection is one exchange: the request, SPAWN, the reply with its descriptors, close. The
//! peer must be of the node's own user, and have the pid that the host reports.
#![allow(unsafe_code)]

use std::io::IoSlice;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use ring3_abi::*;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::error::{Errno, Error, Result};
use crate::image::Thread;
use crate::node::Spare;
use crate::peer::Peer;
use crate::ports::Port;

/// A gate sends its request right after it has connected.
const PATIENCE: Duration = Duration::from_secs(1);

/// A peer that has connected and whose request has not arrived yet.
#[derive(Debug)]
pub(crate) struct Caller {
    socket: OwnedFd,
    since: Instant,
    /// Known already if it is a child of this process.
    pid: Option<i32>,
}

impl Caller {
    /// Process `pid`, a child of this one, has the other end of this socket.
    pub fn child(socket: OwnedFd, pid: i32) -> Caller {
        Caller {
            socket,
            since: Instant::now(),
            pid: Some(pid),
        }
    }

    /// How long to wait for its request.
    pub fn time_left(&self) -> Duration {
        PATIENCE.saturating_sub(self.since.elapsed())
    }
}

impl AsFd for Caller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
const BACKLOG: i32 = 1024;

/// Opens the listening socket.
pub(crate) fn listen(path: &Path) -> Result<OwnedFd> {
    let fail = || Error::host(format!("listen on {}", path.display()));
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(fail())?;
    let address = SocketAddrUnix::new(path).map_err(fail())?;
    rustix::net::bind(&socket, &address).map_err(fail())?;
    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600)).map_err(fail())?;
    rustix::net::listen(&socket, BACKLOG).map_err(fail())?;
    Ok(socket)
}

/// Accepts one waiting peer. `None`: there is none.
pub(crate) fn accept(listener: &OwnedFd) -> Option<Result<Caller>> {
    match rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(socket) => Some(Ok(Caller {
            socket,
            since: Instant::now(),
            pid: None,
        })),
        Err(rustix::io::Errno::AGAIN) => None,
        Err(why) => Some(Err(Error::host("take a program into the node")(why))),
    }
}

/// Lets a program join. `None`: its request has not arrived. Returns the program's pid on the host,
/// for a pidfd.
pub(crate) fn serve(
    caller: &Caller,
    node: &str,
    ports: &[Port],
    spares: &[Spare],
    is_switch: bool,
    tickets: &OwnedFd,
    init: &mut Thread,
) -> Option<Result<i32>> {
    let socket = &caller.socket;
    Some(match admit(caller, is_switch, init)? {
        Ok((pid, thread)) => {
            let reply = welcome(node, ports, spares, init, thread);
            let mut fds = vec![init.region().memory(), tickets.as_fd()];
            fds.extend(ports.iter().map(Port::join_fd));
            fds.extend(spares.iter().map(|spare| spare.memory.as_fd()));
            send(socket, &reply, &fds).map(|()| pid)
        }
        Err((status, message)) => {
            let reply = refusal(status, &message);
            let _ = send(socket, &reply, &[]);
            Err(Error::Refused {
                name: node.to_owned(),
                why: message,
            })
        }
    })
}

/// Errno and message for a peer that is refused.
type Refusal = (i32, String);

/// Receives the request and serves it. `None`: it has not arrived yet.
fn admit(
    caller: &Caller,
    is_switch: bool,
    init: &mut Thread,
) -> Option<Result<(i32, u64), Refusal>> {
    let fail = |errno: rustix::io::Errno| (-errno.raw_os_error(), errno.to_string());
    let mut bytes = [0; size_of::<ring3_join_request>() + 1];
    let own = rustix::process::geteuid().as_raw();
    let peer = match caller.pid {
        Some(pid) => Peer {
            uid: own,
            pid: Some(pid),
        },
        None => match Peer::of(&caller.socket) {
            Ok(peer) => peer,
            Err(why) => return Some(Err((-libc::EIO, why.to_string()))),
        },
    };
    // Another user's request is not waited for; but if it stayed unread, closing would discard our
    // answer.
    let got = rustix::net::recv(&caller.socket, &mut bytes[..], RecvFlags::DONTWAIT);
    if peer.uid != own {
        let why = format!("user {} is not this node's user", peer.uid);
        return Some(Err((-libc::EPERM, why)));
    }
    match got {
        Ok((len, _)) => Some(numbered(peer).and_then(|pid| match judge(&bytes[..len], pid)? {
            Joiner::Program if is_switch => Err((
                -libc::EPERM,
                "the node is a switch, which has no programs: look from a node that is joined to it".into(),
            )),
            Joiner::Program => make_task(init, pid),
            Joiner::Adopter => adopter(init, pid),
        })),
        Err(rustix::io::Errno::AGAIN) if !caller.time_left().is_zero() => None,
        Err(rustix::io::Errno::AGAIN) => {
            let why = format!("no request within {} s", PATIENCE.as_secs());
            Some(Err((-libc::ETIMEDOUT, why)))
        }
        Err(why) => Some(Err(fail(why))),
    }
}

/// The number by which the keeper knows the process.
fn numbered(peer: Peer) -> Result<i32, Refusal> {
    peer.pid.ok_or_else(|| {
        let why = "the node is in a PID namespace of its own, as that of a simulation is: programs of the host can't be put on it";
        (-libc::EPERM, why.into())
    })
}

/// Makes the program's task; returns its pid and thread block.
fn make_task(init: &mut Thread, pid: i32) -> Result<(i32, u64), Refusal> {
    if let Some(why) = init.region().poison() {
        return Err((-libc::EIO, format!("the node is poisoned: {why}")));
    }
    match init.spawn(pid) {
        Ok(thread) => Ok((pid, thread)),
        Err(Errno(libc::EAGAIN | libc::ENOMEM)) => Err((
            -libc::EAGAIN,
            "the node is full: no room for another process".into(),
        )),
        // It may have ended since the check.
        Err(why) => Err(match init.region().poison() {
            Some(poison) => (-libc::EIO, format!("the node is poisoned: {poison}")),
            None => (-why.0, format!("the node's kernel refused: {why}")),
        }),
    }
}

/// The adopter's thread block, which exists from the beginning.
fn adopter(init: &mut Thread, pid: i32) -> Result<(i32, u64), Refusal> {
    match init.adopter() {
        Ok(thread) => {
            init.region().set_adopter(pid, thread);
            Ok((pid, thread))
        }
        Err(why) => Err((-why.0, format!("no adopter: {why}"))),
    }
}

/// The kind of peer that wants to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joiner {
    Program,
    Adopter,
}

/// Checks that this is a request that process `pid` (as the host reports it) may make; otherwise
/// returns the reason.
pub(crate) fn judge(bytes: &[u8], pid: i32) -> Result<Joiner, Refusal> {
    let refused = |why: &str| Err((-libc::EPROTO, why.into()));
    // Every version has these two words at the same offsets.
    let Some((magic, rest)) = bytes.split_first_chunk() else {
        return refused("the request has a wrong length");
    };
    let who = match u64::from_ne_bytes(*magic) {
        RING3_JOIN_MAGIC => Joiner::Program,
        RING3_ADOPT_MAGIC => Joiner::Adopter,
        _ => return refused("this is no request to join"),
    };
    if let Some(abi) = rest.first_chunk().map(|abi| u32::from_ne_bytes(*abi)) {
        if abi != RING3_ABI {
            return refused(&format!(
                "the gate has contract {abi:08x}, the node {RING3_ABI:08x}: build both from one source with `make`, then take the node down and up"
            ));
        }
    }
    if bytes.len() != size_of::<ring3_join_request>() {
        return refused("the request has a wrong length");
    }
    // SAFETY: `bytes` holds as many bytes, and every bit pattern is a ring3_join_request.
    let request: ring3_join_request = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    if request.pid != pid {
        let why = format!(
            "the program says that it is process {}, the host says {pid}: nodes do not reach across pid namespaces",
            request.pid
        );
        return Err((-libc::EPERM, why));
    }
    Ok(who)
}

fn blank(status: i32) -> ring3_join_reply {
    ring3_join_reply {
        magic: RING3_JOIN_MAGIC,
        abi: RING3_ABI,
        status,
        message: [0; 160],
        base: 0,
        size: 0,
        text_start: 0,
        text_end: 0,
        thread: 0,
        node: [0; 64],
        nports: 0,
        pad: 0,
        ports: [ring3_join_port::default(); RING3_PORTS_MAX],
    }
}

fn refusal(status: i32, message: &str) -> ring3_join_reply {
    let mut reply = blank(status);
    copy(&mut reply.message, message);
    reply
}

fn welcome(
    node: &str,
    ports: &[Port],
    spares: &[Spare],
    init: &Thread,
    thread: u64,
) -> ring3_join_reply {
    let region = init.region();
    let text = region.text();
    let mut reply = blank(0);
    copy(&mut reply.node, node);
    reply.base = region.base();
    reply.size = region.size();
    reply.text_start = text.start;
    reply.text_end = text.end;
    reply.thread = thread;
    reply.nports = (ports.len() + spares.len()) as u32;
    let ports = ports.iter().map(|port| (port.index, port.kind()));
    let spares = spares.iter().map(|spare| (spare.index, RING3_PORT_LINK));
    for (to, (index, kind)) in reply.ports.iter_mut().zip(ports.chain(spares)) {
        to.index = index as u32;
        to.kind = kind;
    }
    reply
}

/// Copies text with its NUL; text that is too long is cut at a character.
pub(crate) fn copy(to: &mut [u8], text: &str) {
    let mut len = text.len().min(to.len() - 1);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    to[..len].copy_from_slice(&text.as_bytes()[..len]);
}

fn send(socket: &OwnedFd, reply: &ring3_join_reply, fds: &[BorrowedFd<'_>]) -> Result<()> {
    // SAFETY: a #[repr(C)] structure without padding (its size is the sum of its fields',
    // see ring3_abi::layout), borrowed for as long as the bytes are.
    let bytes = unsafe {
        std::slice::from_raw_parts(
            (&raw const *reply).cast::<u8>(),
            size_of::<ring3_join_reply>(),
        )
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2 + RING3_PORTS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    rustix::net::sendmsg(
        socket.as_fd(),
        &[IoSlice::new(bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )
    .map_err(Error::host("answer a program that joins"))?;
    Ok(())
}
