// SPDX-License-Identifier: GPL-2.0
//! All frames of an interface of the host, through rings in shared memory: AF_XDP.
//!
//! The image registers the memory for frames (`kernel/drivers/net/ring3/xdp.c`), between
//! [`Xdp::open`] and [`Xdp::attach`].

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Errno, Error, Result};
use crate::{sys, xsk};

const _: () = assert!(ring3_config::port::MTU_MAX_XDP == ring3_abi::RING3_XDP_MTU_MAX);

#[derive(Debug)]
pub(crate) struct Xdp {
    ifname: String,
    ifindex: u32,
    socket: OwnedFd,
    /// Frames for the node's address are not addressed to the interface itself.
    _promiscuous: OwnedFd,
    /// Keeps the BPF program attached.
    link: Option<OwnedFd>,
}

impl Xdp {
    pub fn open(ifname: &str) -> Result<Xdp> {
        let ifindex = sys::interface_index(ifname).ok_or_else(|| Error::PacketNoInterface {
            ifname: ifname.to_owned(),
        })?;
        // The host's programs talk to each other there: the node would take their packets.
        if sys::is_loopback(ifname) {
            return Err(Error::XdpLoopback {
                ifname: ifname.to_owned(),
            });
        }
        let open = || -> std::result::Result<_, Errno> {
            Ok((xsk::socket()?, sys::promiscuous(ifindex)?))
        };
        let (socket, promiscuous) = open().map_err(|why| failed(ifname, why))?;
        Ok(Xdp {
            ifname: ifname.to_owned(),
            ifindex,
            socket,
            _promiscuous: promiscuous,
            link: None,
        })
    }

    /// From now on the node gets the interface's frames.
    pub fn attach(&mut self) -> Result<()> {
        let attach = || {
            xsk::bind(&self.socket, self.ifindex)?;
            xsk::redirect(self.ifindex, &self.socket)
        };
        self.link = Some(attach().map_err(|why| failed(&self.ifname, why))?);
        Ok(())
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn failed(ifname: &str, why: Errno) -> Error {
    let ifname = ifname.to_owned();
    match why {
        Errno(libc::EPERM | libc::EACCES) => Error::XdpForbidden { ifname },
        Errno(libc::EBUSY | libc::EEXIST) => Error::XdpBusy { ifname },
        Errno(libc::EAFNOSUPPORT) => Error::XdpMissing,
        why => Error::Host {
            what: format!("open an xdp port on `{ifname}`"),
            why,
        },
    }
}
