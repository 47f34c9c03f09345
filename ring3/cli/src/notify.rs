// SPDX-License-Identifier: GPL-2.0
//! Telling a service manager that a node is up: one datagram to the socket that NOTIFY_SOCKET names (sd_notify(3)).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::say;

const VARIABLE: &str = "NOTIFY_SOCKET";

/// Without such a manager nothing is said.
pub fn ready() {
    let Some(place) = std::env::var_os(VARIABLE) else {
        return;
    };
    let bytes = place.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    let said = address.and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to_addr(b"READY=1\n", &address)
    });
    if let Err(why) = said {
        say::complain(format_args!(
            "the service manager was not told that the node is up: {VARIABLE} is {}: {why}",
            place.to_string_lossy()
        ));
    }
}
