// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: `ring3 run --sandbox`
//!
//! Three processes stand between the user and a program that nobody trusts:
//!
//! ```text
//! warden    this command. Not confined. Opens the ports, answers the few calls that need somebody outside, passes
//!  │        signals on. It maps nothing of the node and takes no word of the keeper's once a program runs
//! reaper    in a domain of its own: it can signal all below it and nobody else. When the keeper has ended, or the
//!  │        warden, it kills all that is left at once, by kill(-1)
//! keeper    in a domain below that, which can't reach the reaper; with the list of host calls, before it has made
//!  │        anything of the node. Programs are its children and inherit both domains and the list
//! programs
//! ```
//!
//! The program can overwrite its node's memory and so take the keeper over. Then it can do what the keeper could:
//! what the list and the rules for files let it.
//!
//! ```text
//! keeper → warden    one message when it is confined: its number, and the descriptor of the questions it may ask
//! warden → keeper    one message: the ports
//! ```
//!
//! With `--policy` or `--record` a second such group keeps the gateway: gateway.rs.

use std::os::fd::OwnedFd;

use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};

use crate::error::{Failure, Result};

mod apart;
mod begun;
mod environment;
mod exec;
mod files;
mod gateway;
mod keeper;
mod limits;
mod mounts;
mod reaper;
mod room;
mod rules;
mod warden;
mod words;

pub use exec::enter;
pub use gateway::served;
pub use warden::{run, stay};

/// Two ends by which processes of a sandbox speak with each other.
fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let (family, kind) = (AddressFamily::Unix, SockType::SeqPacket);
    socketpair(family, kind, None, SockFlag::SOCK_CLOEXEC)
        .map_err(|why| Failure::host("make a socket pair")(why.into()))
}
