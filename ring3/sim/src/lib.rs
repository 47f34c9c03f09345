// SPDX-License-Identifier: GPL-2.0
//! Simulated networks.
//!
//! | module | concept |
//! | --- | --- |
//! | [`read`], [`ours`], [`topology`] | from a scenario's file to a [`scenario::Scenario`] |
//! | [`yaml`], [`gml`], [`units`] | the formats of it; every node of a file knows its place |
//! | [`graph`] | a network of places, and the ways between them |
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod error;
mod gml;
pub mod graph;
mod ours;
pub mod read;
#[cfg(test)]
mod read_tests;
pub mod scenario;
mod topology;
pub mod units;
pub mod yaml;

pub use error::{Error, Fault, Result};
