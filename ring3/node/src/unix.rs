// SPDX-License-Identifier: GPL-2.0
//! Unix sockets of the host for messages with descriptors, named by a path.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::{Error, Result};

pub fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Fails if the path is longer than an address can be.
pub fn address(path: &Path) -> Result<SocketAddrUnix> {
    SocketAddrUnix::new(path).map_err(|_| Error::PathTooLong {
        path: path.to_owned(),
    })
}
