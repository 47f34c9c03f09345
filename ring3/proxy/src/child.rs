// SPDX-License-Identifier: GPL-2.0
//! The relay's process, and what it is given before it is confined.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use ring3_node::outside::{Outside, Trust};
use ring3_node::Folder;
use ring3_relay::proxy::wire::{self, Line, Start};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::error::{Error, Result};

/// What the relay's environment keeps: where nodes are, how much is said, another kernel for a node of its own.
const ENVIRONMENT: [&str; 3] = ["XDG_RUNTIME_DIR", "RING3_LOG", "RING3_IMAGE"];

/// The relay, and this process's end of the pair with it.
pub fn start(verb: &str) -> Result<(Line, Child)> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(Error::host("make a socket pair"))?;
    let exe = std::env::current_exe().map_err(Error::host("find where ring3 is"))?;
    let mut command = Command::new(exe);
    // What is typed is for this process.
    command.arg(verb).process_group(0).env_clear();
    for key in ENVIRONMENT {
        if let Some(value) = std::env::var_os(key) {
            command.env(key, value);
        }
    }
    // The command has the relay's end of the pair: it goes with this function, so that the relay's end is seen.
    let child = command
        .stdin(theirs)
        .stdout(Stdio::null())
        .spawn()
        .map_err(Error::host("start the relay"))?;
    Ok((Line::new(ours), child))
}

/// The relay is confined before it makes its node, and opens no port.
pub fn open_ports(start: &Start) -> Result<Outside> {
    let config = wire::own_node(start).map_err(|why| Error::Listeners(why.into()))?;
    let folder = Folder::open()?;
    let mut outside = Outside::claim(&config, &folder, Trust::Gateway)?;
    outside.open(&config, &folder)?;
    Ok(outside)
}
