// SPDX-License-Identifier: GPL-2.0
//! A node's own process.
//!
//! The kernel of a node belongs to no process, but one process has to make its memory, boot it,
//! wait on the host for its timers and ports, and let programs join: the keeper. This crate is the
//! keeper, as a library of the `ring3` command.
//!
//! | module | concept |
//! | --- | --- |
//! | [`handle`] | the way in: [`NodeHandle::start`] |
//! | [`client`], [`control`] | the way to a node that runs elsewhere, and what is said there |
//! | [`runtime`] | where nodes find each other: the user's runtime folder |
//! | [`node`] | a node's life from boot to end; start reading here |
//! | [`elf`], [`load`], [`region`] | the image as a file, as memory, and the words of it that we use |
//! | [`image`], [`calls`] | entering the kernel, and calls on the node as typed functions |
//! | [`configure`], [`netlink`] | addresses, routes, sysctls |
//! | [`inside`], [`task`], [`nft`] | a node that its keeper uses itself: a gateway's |
//! | [`joined`] | another keeper's node, which this process takes part in: a proxy's |
//! | [`outside`] | what a confined keeper gets from its warden |
//! | [`ports`] | the host's half of each kind of port; [`window`] is a link's memory |
//! | [`drivers`], [`pcap`] | the threads that wait on the host |
//! | [`join`], [`procs`], [`vcpu`] | letting programs in, noticing their deaths, and what they had in hand |
//! | [`farewell`], [`undertaker`] | programs of a node that ends, also where its keeper was killed |
//! | [`adopter`] | the process that goes on with what is killed in kernel code |
//! | [`tickets`] | descriptors on their way between programs |
//! | [`fuzz`] | what strangers may say to a node, for the fuzzers of tests/fuzz |
//! | [`clock`], [`fault`], [`sys`], [`unix`] | TSC, SIGSEGV, host calls that no crate wraps, sockets that pass descriptors |
//!
//! Unsafe code lies in the leaves that allow it by name: calls, clock, fault, image, join, joined, load,
//! region, sys, task, vcpu, window, xsk. Locks: there are none in this process but the host's on files (see
//! runtime and ports/link); what is shared with other threads and processes are the region's
//! atomic words.
#![deny(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links)]

mod adopter;
mod calls;
pub mod client;
mod clock;
mod configure;
mod control;
mod drivers;
mod elf;
pub mod ended;
mod error;
mod farewell;
mod fault;
mod flows;
pub mod fuzz;
mod handle;
mod image;
pub mod inside;
mod join;
pub mod joined;
mod layout;
mod load;
mod netem;
pub mod netlink;
pub mod nfnetlink;
mod nft;
mod node;
pub mod outside;
mod pcap;
mod peer;
mod ports;
mod procs;
mod region;
mod resolver;
mod runtime;
mod sys;
pub mod task;
mod tickets;
mod undertaker;
mod unix;
mod vcpu;
mod window;
mod xsk;

#[cfg(test)]
mod tests;

pub use clock::tsc_is_invariant;
pub use error::{Errno, Error, Result};
pub use flows::GROUP as FLOWS_GROUP;
pub use handle::{raise_descriptor_limit, Door, NodeHandle};
pub use ports::given::GivenLink;
pub use ports::host::{gateways, News, Plan, Talk};
pub use ports::vhost::{VhostPlan, VhostTalk};
pub use region::SIM_EPOCH;
pub use runtime::Folder;
