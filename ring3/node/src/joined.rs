// SPDX-License-Identifier: GPL-2.0
//! Joins a node that another process keeps, without a gate: the client of include/ring3.abi. Unsafe
//! leaf, for the two structures that cross the socket as bytes.
//!
//! A program's gate decides for each call whether it is the node's or the host's. A proxy knows
//! that itself, so it calls the node through [`Task`]s and the host like any program. To the node's
//! kernel and its keeper it is one more process of the node: its death is noticed, and `ring3 ls`
//! counts it.
#![allow(unsafe_code)]

use std::io::IoSliceMut;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use ring3_abi::*;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::fault::{self, Guard};
use crate::image::Thread;
use crate::inside::prepare_thread;
use crate::region::Region;
use crate::task::Task;

/// A keeper answers as soon as it runs.
const PATIENCE: Duration = Duration::from_secs(10);
/// The region and the socket to the keeper come before the ports' descriptors.
const FDS_BEFORE_PORTS: usize = 2;
const FDS_MAX: usize = FDS_BEFORE_PORTS + RING3_PORTS_MAX;

/// This process as a process of a node. The node's tasks in it end with the process.
#[derive(Debug)]
pub struct Joined {
    region: Arc<Region>,
    /// The thread block of the first task, until that is taken.
    block: Option<u64>,
    /// The ports' descriptors, which the node's kernel uses by their numbers.
    _ports: Vec<OwnedFd>,
    sends_messages: bool,
    _guard: Guard,
}

impl Joined {
    /// Joins the node called `name`.
    pub fn join(name: &str) -> Result<Joined> {
        let node = Client::open(name)?;
        node.is_up()?;
        let broken = |why: &str| Error::NoAnswer {
            name: name.to_owned(),
            why: why.to_owned(),
        };
        if node.is_sandboxed() {
            return Err(Error::Refused {
                name: name.to_owned(),
                why: "it is sandboxed: no process outside of the sandbox joins it".into(),
            });
        }
        let (reply, mut fds) = ask(name, &node)?;
        if fds.len() != FDS_BEFORE_PORTS + reply.nports as usize {
            return Err(broken("it sent other descriptors than it said"));
        }
        let ports = fds.split_off(FDS_BEFORE_PORTS);
        // The socket to the keeper is for passing descriptors between programs; a proxy passes
        // none.
        fds.truncate(1);
        let memory = fds.pop().ok_or_else(|| broken("it sent no memory"))?;
        let text = reply.text_start..reply.text_end;
        let region = Arc::new(Region::join(memory, reply.base, reply.size, text, name)?);
        let guard = fault::guard(&region)?;
        prepare_thread();
        let thread = Thread::spawned(&region, reply.thread);
        for index in 0..RING3_PORTS_MAX {
            region.set_port_fd(thread.proc(), index, -1);
        }
        for (port, fd) in reply.ports.iter().zip(&ports) {
            let index = port.index as usize;
            if index >= RING3_PORTS_MAX {
                return Err(broken("it has a port of an impossible number"));
            }
            match port.kind {
                RING3_PORT_LINK => {
                    region.map_link(index, std::os::fd::AsFd::as_fd(fd))?;
                }
                RING3_PORT_XDP => {
                    region.map_xdp(index, std::os::fd::AsFd::as_fd(fd))?;
                    region.set_port_fd(thread.proc(), index, fd.as_raw_fd());
                }
                _ => region.set_port_fd(thread.proc(), index, fd.as_raw_fd()),
            }
        }
        Ok(Joined {
            region,
            block: Some(reply.thread),
            _ports: ports,
            sends_messages: reply.ports[..reply.nports as usize]
                .iter()
                .any(|port| port.kind == RING3_PORT_PASST),
            _guard: guard,
        })
    }

    /// Whether the node's kernel may call sendmsg() in this process: it has a `passt` port.
    pub fn sends_messages(&self) -> bool {
        self.sends_messages
    }

    /// The process's task, for one of its threads; `None`: it has been taken. [`Task::helper`]
    /// makes others.
    pub fn task(&mut self) -> Option<Task> {
        let block = self.block.take()?;
        Some(Task::new(Thread::spawned(&self.region, block)))
    }
}

/// One exchange with the keeper.
fn ask(name: &str, node: &Client) -> Result<(ring3_join_reply, Vec<OwnedFd>)> {
    let path = node.join_path();
    let fail = || Error::host(format!("speak to the keeper at {}", path.display()));
    let broken = |why: String| Error::NoAnswer {
        name: name.to_owned(),
        why,
    };
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(fail())?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(fail())?;
    let address =
        SocketAddrUnix::new(&path).map_err(|_| Error::PathTooLong { path: path.clone() })?;
    rustix::net::connect(&socket, &address).map_err(fail())?;
    let request = ring3_join_request {
        magic: RING3_JOIN_MAGIC,
        abi: RING3_ABI,
        pid: std::process::id() as i32,
    };
    // SAFETY: a #[repr(C)] structure without padding, borrowed for as long as the bytes are.
    let bytes = unsafe {
        std::slice::from_raw_parts(
            (&raw const request).cast::<u8>(),
            size_of::<ring3_join_request>(),
        )
    };
    rustix::net::send(&socket, bytes, SendFlags::NOSIGNAL).map_err(fail())?;

    let mut bytes = vec![0; size_of::<ring3_join_reply>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::net::recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(|why| match why {
        rustix::io::Errno::AGAIN => broken(format!("it says nothing for {} s", PATIENCE.as_secs())),
        why => fail()(why),
    })?;
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    if got.bytes != bytes.len() {
        return Err(broken(format!("its answer has {} bytes", got.bytes)));
    }
    // SAFETY: `bytes` holds as many bytes, and every bit pattern is a ring3_join_reply.
    let reply: ring3_join_reply = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
    if reply.magic != RING3_JOIN_MAGIC {
        return Err(broken("its answer is none".into()));
    }
    if reply.status != 0 {
        let len = reply.message.iter().position(|byte| *byte == 0);
        let words = &reply.message[..len.unwrap_or(reply.message.len())];
        return Err(Error::Refused {
            name: name.to_owned(),
            why: String::from_utf8_lossy(words).into_owned(),
        });
    }
    if reply.abi != RING3_ABI || reply.nports as usize > RING3_PORTS_MAX {
        return Err(broken("it is of another ring3 version".into()));
    }
    Ok((reply, fds))
}
