// SPDX-License-Identifier: GPL-2.0
//! A node's own process.
//!
//! The kernel of a node belongs to no process, but somebody has to make its memory, boot it,
//! wait on the host for its timers and ports, and let others in: the keeper. This crate is the
//! keeper, as a library of the `ring3` command.
//!
//! | module | concept |
//! | --- | --- |
//! | [`handle`] | the way in: [`NodeHandle::start`], [`run`] |
//! | [`client`] | the way to a node that runs elsewhere |
#![deny(unsafe_code)]

mod calls;
pub mod client;
mod clock;
mod configure;
mod control;
mod drivers;
mod elf;
mod error;
mod fault;
mod handle;
mod image;
mod join;
mod netlink;
mod node;
mod pcap;
mod ports;
mod procs;
mod region;
mod runtime;
mod sys;
mod window;

#[cfg(test)]
mod tests;

pub use clock::tsc_is_invariant;
pub use error::{Errno, Error, Result};
pub use handle::{run, NodeHandle};
pub use runtime::Folder;
