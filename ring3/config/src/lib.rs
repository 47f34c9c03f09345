// SPDX-License-Identifier: GPL-2.0
//! What a node is made of, as a person writes it down.
//!
//! A node is described on the command line (`--port link:ab,addr=10.0.0.1/24`) or in a
//! file (`node.toml`). Both end in one [`NodeConfig`], checked by the same code, so
//! that both give the same errors. Nothing here touches the host.
//!
//! | module | concept |
//! | --- | --- |
//! | [`node`] | the whole of it, and the checks that need the whole |
//! | [`port`] | one port: `KIND[:NAME][,key=value]...` |
//! | [`forward`] | what a `host` port lets through |
//! | [`file`], [`compose`] | the TOML form of one, and of several nodes |
//! | [`layout`] | a network of hosts within one node |
//! | [`names`] | routes, names of hosts, what to wait for |
//! | [`proxy`] | the file of `ring3 proxy` |
//! | [`sandbox`] | what a program that nobody trusts may do |
//! | [`size`], [`name`], [`sysctl`] | the small syntaxes |
//! | [`check`] | what holds whatever is written, for fuzzers |
//! | [`error`] | everything that can be wrong, in words |

pub mod check;
pub mod compose;
pub mod error;
pub mod file;
pub mod forward;
pub mod layout;
pub mod name;
pub mod names;
pub mod node;
pub mod port;
pub mod proxy;
pub mod sandbox;
pub mod size;
pub mod sysctl;

#[cfg(test)]
mod fuzz;

pub use error::ConfigError;
pub use forward::{Pattern, Place, Publish, Rule};
pub use node::{grace, NodeConfig, Restart, Switch};
pub use port::{PortKind, PortSpec};
pub use proxy::ProxyConfig;
