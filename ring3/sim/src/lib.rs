// SPDX-License-Identifier: GPL-2.0
//! Simulated networks.
//!
//! | module | concept |
//! | --- | --- |
//! | [`read`], [`process`], [`places`], [`ours`], [`old`], [`events`], [`topology`] | from a scenario's file to a [`scenario::Scenario`] |
//! | [`yaml`], [`gml`], [`units`] | the formats of it; every node of a file knows its place |
//! | [`graph`] | a network of places, and the ways between them |
//! | [`plan`], [`network`] | from there to each thing that is done, with its time |
//! | [`run`], [`stage`] | a simulation from its plan to its judgement, and its processes |
//! | [`conduct`], [`words`], [`spawn`], [`tools`], [`settle`], [`rtnl`], [`rtnl_message`] | the conductor, on the node: carries out the plan, starts programs |
//! | [`waits`], [`stuck`] | do all programs wait for each other? |
//! | [`preempted`] | which programs were preempted while they computed? |
//! | [`sample`], [`netlink`] | connections, queues and interfaces over time |
//! | [`capture`] | packets |
//! | [`report`] | one HTML file about a run |
//! | [`stats`] | sim-stats.json |
//! | [`faults`] | faults by seed |
//! | [`diff`] | where two runs differ first |
//! | [`data`] | the data folder |
//! | [`leaf`] | everything unsafe |
//! | [`address`], [`route`], [`qdisc`], [`steps`] | the words of it, for `ip`, `tc` and `nft` |
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod address;
mod capture;
mod conduct;
pub mod data;
pub mod diff;
pub mod error;
mod events;
pub mod faults;
pub mod gdb;
mod gml;
pub mod graph;
mod leaf;
mod netlink;
mod network;
mod old;
mod ours;
mod places;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod preempted;
mod process;
mod qdisc;
pub mod read;
#[cfg(test)]
mod read_tests;
pub mod report;
mod route;
mod rtnl;
mod rtnl_message;
pub mod run;
mod sample;
pub mod scenario;
mod settle;
mod simlink;
mod spawn;
pub mod stage;
mod stats;
mod steps;
mod stuck;
mod tools;
mod topology;
mod trace;
pub mod units;
mod waits;
pub mod words;
pub mod yaml;

pub use error::{Error, Fault, Result};
