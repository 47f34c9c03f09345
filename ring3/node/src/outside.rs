// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a node whose keeper is confined
//!
//! A keeper maps its node's memory, which a hostile program can write to. So the program may have
//! taken it over, and the keeper must not be able to do more than the program. Actions that need
//! the host's user are therefore done by another process, the warden, which never maps that memory:
//!
//! ```text
//! warden                                   keeper, its child, confined from its first act on
//! Outside::claim    the name, for others
//! Outside::open     ports, one after the other
//! Outside::send     ── one message: facts and descriptors ──▶  Given::receive, Given::start
//! ```
//!
//! Later the warden passes on who wants a program started there (enter.rs). Nothing goes the other way: the warden answers at the node's control socket by what it knows itself (answer.rs). A confined node has no sockets in the runtime folder: each program that joins is a
//! child of the keeper, which gives it one end of a pair ([`crate::Door::admit`]).

mod answer;
mod enter;

pub use answer::First;
pub use enter::{ask, next_talk};

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ring3_abi::RING3_PORTS_MAX;
use ring3_config::{NodeConfig, PortKind};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::elf::Image;
use crate::error::{Error, Result};
use crate::ports::OpenPort;
use crate::runtime::{Folder, NodeFolder};

/// More than the facts of all ports need.
const MESSAGE_MAX: usize = 64 << 10;

/// The trust in the programs of a confined node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// None: they may have taken over its kernel.
    Strangers,
    /// The user's own programs: a gateway, to which strangers only send packets.
    Gateway,
}

/// The resources of a confined node outside of it. Dropping it releases them.
#[derive(Debug)]
pub struct Outside {
    ports: Vec<OpenPort>,
    /// Released last.
    folder: NodeFolder,
}

impl Outside {
    /// Takes the node's name and refuses settings that a confined node cannot have.
    pub fn claim(config: &NodeConfig, folder: &Folder, trust: Trust) -> Result<Outside> {
        for port in &config.ports {
            let why = match (&port.kind, &port.pcap) {
                (PortKind::Xdp { .. }, _) => {
                    "an xdp port needs rights of the host's: use tap, host, passt or link"
                }
                // Any process that was given a packet socket may send by all interfaces.
                (PortKind::Packet { .. }, _) => {
                    "a packet port would lead to all interfaces: use tap, host, passt or link"
                }
                (_, Some(_)) if trust == Trust::Strangers => "a capture would be the program's to forge: use --record FOLDER, or capture at the other end of the port",
                _ => continue,
            };
            return Err(Error::NotConfined { why });
        }
        Ok(Outside {
            ports: Vec::new(),
            folder: NodeFolder::claim(folder, &config.name)?,
        })
    }

    /// A folder that is not there, and goes with this value: for unix sockets of the node's programs.
    pub fn sockets(&self) -> PathBuf {
        self.folder.sockets()
    }

    /// Opens the ports.
    pub fn open(&mut self, config: &NodeConfig, folder: &Folder) -> Result<()> {
        for spec in &config.ports {
            let image = config.image.as_deref();
            let port = OpenPort::open(spec, &config.name, image, folder)?;
            if port.leads_to_loopback()? {
                return Err(Error::NotConfined {
                    why: "this passt lets a program that writes its own packets reach the host's loopback: use a host port or a newer \
                          passt; loopback=yes allows it",
                });
            }
            self.ports.push(port);
        }
        Ok(())
    }

    /// Sends the keeper what it needs, over a SOCK_SEQPACKET socket.
    pub fn send(&self, to: &OwnedFd) -> Result<()> {
        let fail = || Error::host("give a confined node its ports");
        let facts: Vec<_> = self.ports.iter().map(OpenPort::facts).collect();
        let bytes = serde_json::to_vec(&facts).map_err(|why| Error::Outside {
            why: why.to_string(),
        })?;
        let fds: Vec<BorrowedFd<'_>> = self.ports.iter().map(OpenPort::fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RING3_PORTS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let bytes = [IoSlice::new(&bytes)];
        rustix::net::sendmsg(to, &bytes, &mut ancillary, SendFlags::NOSIGNAL).map_err(fail())?;
        Ok(())
    }
}

/// What a confined keeper needs to start its node.
#[derive(Debug)]
pub struct Given {
    pub(crate) image: Image,
    pub(crate) ports: Vec<OpenPort>,
    /// Of a gateway: the file for its record of connections (flows.rs).
    pub flows: Option<std::fs::File>,
}

impl Given {
    /// Opens the kernel's image. The rest arrives by [`Given::receive`].
    pub fn new(config: &NodeConfig) -> Result<Given> {
        Ok(Given {
            image: Image::open(config.image.as_deref(), config.cpus)?,
            ports: Vec::new(),
            flows: None,
        })
    }

    /// Waits for the warden's message.
    pub fn receive(&mut self, config: &NodeConfig, from: &OwnedFd) -> Result<()> {
        let fail = || Error::host("get a confined node's ports");
        let mut bytes = vec![0; MESSAGE_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RING3_PORTS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = rustix::net::recvmsg(from, &mut parts, &mut ancillary, flags).map_err(fail())?;
        // The warden has ended, and has reported why.
        if got.bytes == 0 {
            return Err(Error::GivenUp);
        }
        let wrong = |why: String| Error::Outside { why };
        let facts: Vec<_> =
            serde_json::from_slice(&bytes[..got.bytes]).map_err(|why| wrong(why.to_string()))?;
        let fds: Vec<OwnedFd> = ancillary
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        if facts.len() != config.ports.len() || fds.len() != facts.len() {
            return Err(wrong(format!(
                "{} descriptors for {} ports",
                fds.len(),
                config.ports.len()
            )));
        }
        for ((spec, facts), fd) in config.ports.iter().zip(facts).zip(fds) {
            self.ports.push(OpenPort::foreign(spec, facts, fd)?);
        }
        Ok(())
    }
}

/// The name of a descriptor by which a program joins a confined node: a value of `RING3_NODE`.
pub fn join_by(fd: impl AsFd) -> PathBuf {
    use std::os::fd::AsRawFd;
    Path::new(&format!("fd:{}", fd.as_fd().as_raw_fd())).to_owned()
}
