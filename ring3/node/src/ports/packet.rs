// SPDX-License-Identifier: GPL-2.0
//! An interface of the host, raw, through an AF_PACKET socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ring3_abi::{RING3_PORT_CSUM, RING3_PORT_TSO};

use rustix::net::sockopt;

use crate::error::{Errno, Error, Result};
use crate::sys;

/// Two TCP windows of a fast sender's 64 KiB segments: packets that do not fit are lost.
const BUFFER_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct Packet(OwnedFd);

impl Packet {
    pub fn open(ifname: &str) -> Result<Packet> {
        let ifindex = sys::interface_index(ifname).ok_or_else(|| Error::PacketNoInterface {
            ifname: ifname.to_owned(),
        })?;
        match sys::packet_socket(ifindex) {
            Ok(fd) => {
                // Above the host's limit if this process may; otherwise the limit silently applies.
                let _ = sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER_BYTES)
                    .or_else(|_| sockopt::set_socket_recv_buffer_size(&fd, BUFFER_BYTES));
                Ok(Packet(fd))
            }
            Err(Errno(libc::EPERM | libc::EACCES)) => Err(Error::PacketForbidden {
                ifname: ifname.to_owned(),
            }),
            Err(why) => Err(Error::Host {
                what: format!("open a packet port on `{ifname}`"),
                why,
            }),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The host's driver or its software fallback does the segmentation.
    pub fn flags(&self) -> u32 {
        RING3_PORT_CSUM | RING3_PORT_TSO
    }
}
