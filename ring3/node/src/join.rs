// SPDX-License-Identifier: GPL-2.0
//! Letting programs into the node: the server of include/ring3_join.h. Unsafe leaf, for the
//! two structures that cross the socket as bytes.
//!
//! One connection is one exchange: the request, SPAWN, the reply with its descriptors, close.
//! Whoever asks must be of the node's own user, and be who the host says it is.
#![allow(unsafe_code)]

use std::io::IoSlice;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use ring3_abi::*;
use rustix::net::sockopt::{set_socket_timeout, socket_peercred, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::error::{Errno, Error, Result};
use crate::image::Thread;
use crate::ports::Port;

/// A gate sends its request right after it has connected.
const PATIENCE: Duration = Duration::from_secs(1);
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

/// Takes one program that waits at the socket and lets it in. `None`: nobody waits. The
/// program's host pid is returned, for a pidfd.
pub(crate) fn serve(
    listener: &OwnedFd,
    node: &str,
    ports: &[Port],
    tickets: &OwnedFd,
    init: &mut Thread,
) -> Option<Result<i32>> {
    let socket = match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
        Ok(socket) => socket,
        Err(rustix::io::Errno::AGAIN) => return None,
        Err(why) => return Some(Err(Error::host("take a program into the node")(why))),
    };
    Some(match admit(&socket, init) {
        Ok((pid, thread)) => {
            let reply = welcome(node, ports, init, thread);
            let mut fds = vec![init.region().memory(), tickets.as_fd()];
            fds.extend(ports.iter().map(Port::join_fd));
            send(&socket, &reply, &fds).map(|()| pid)
        }
        Err((status, message)) => {
            let reply = refusal(status, &message);
            let _ = send(&socket, &reply, &[]);
            Err(Error::Refused {
                name: node.to_owned(),
                why: message,
            })
        }
    })
}

/// Checks the request and makes the program's task: its pid and thread block.
fn admit(socket: &OwnedFd, init: &mut Thread) -> Result<(i32, u64), (i32, String)> {
    let fail = |errno: rustix::io::Errno| (-errno.raw_os_error(), errno.to_string());
    set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE)).map_err(fail)?;
    let peer = socket_peercred(socket).map_err(fail)?;
    let mut bytes = [0; size_of::<ring3_join_request>() + 1];
    if peer.uid != rustix::process::geteuid() {
        // Not waited for; but what lies there unread would cost the asker our answer.
        let _ = rustix::net::recv(socket, &mut bytes[..], RecvFlags::DONTWAIT);
        let uid = peer.uid.as_raw();
        return Err((-libc::EPERM, format!("user {uid} is not this node's user")));
    }
    let (len, _) = rustix::net::recv(socket, &mut bytes[..], RecvFlags::empty()).map_err(fail)?;
    let pid = peer.pid.as_raw_nonzero().get();
    judge(&bytes[..len], pid)?;
    if let Some(why) = init.region().poison() {
        return Err((-libc::EIO, format!("the node is poisoned: {why}")));
    }
    match init.spawn(pid) {
        Ok(thread) => Ok((pid, thread)),
        Err(Errno(libc::EAGAIN | libc::ENOMEM)) => Err((
            -libc::EAGAIN,
            "the node is full: no room for another process".into(),
        )),
        // It may have come to its end since we looked.
        Err(why) => Err(match init.region().poison() {
            Some(poison) => (-libc::EIO, format!("the node is poisoned: {poison}")),
            None => (-why.0, format!("the node's kernel refused: {why}")),
        }),
    }
}

/// Is this a request that process `pid` (the host says so) may make? Else why not.
pub(crate) fn judge(bytes: &[u8], pid: i32) -> Result<(), (i32, String)> {
    if bytes.len() != size_of::<ring3_join_request>() {
        return Err((-libc::EPROTO, "the request has a wrong length".into()));
    }
    // SAFETY: `bytes` holds as many bytes, and every bit pattern is a ring3_join_request.
    let request: ring3_join_request = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    if request.magic != RING3_JOIN_MAGIC {
        return Err((-libc::EPROTO, "this is no request to join".into()));
    }
    if request.abi != RING3_ABI {
        let why = format!(
            "the gate has version {} of the contract, the node {RING3_ABI}: build both from one source and start the node again",
            request.abi
        );
        return Err((-libc::EPROTO, why));
    }
    if request.pid != pid {
        let why = format!(
            "the program says that it is process {}, the host says {pid}: nodes do not reach across pid namespaces",
            request.pid
        );
        return Err((-libc::EPERM, why));
    }
    Ok(())
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

fn welcome(node: &str, ports: &[Port], init: &Thread, thread: u64) -> ring3_join_reply {
    let region = init.region();
    let text = region.text();
    let mut reply = blank(0);
    copy(&mut reply.node, node);
    reply.base = region.base();
    reply.size = region.size();
    reply.text_start = text.start;
    reply.text_end = text.end;
    reply.thread = thread;
    reply.nports = ports.len() as u32;
    for (to, port) in reply.ports.iter_mut().zip(ports) {
        to.index = port.index as u32;
        to.kind = port.kind();
    }
    reply
}

/// Text with its NUL, cut at a character where it is too long.
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
