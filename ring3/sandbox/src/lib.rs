// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the wall around a node and its programs
//!
//! A program can write to the kernel of its node and make host calls directly, so the wall is the host's: a seccomp
//! filter with a list of calls ([`list`]), and a Landlock domain for files, signals and abstract unix sockets.
//! Neither needs a privilege or a namespace. Both hold for the calling thread and all that it starts later; so a
//! process confines itself while it has one thread, and before it maps anything of a node.
//!
//! What the wall does not hide: metadata of files whose path is known (Landlock has no right for `stat`), and the
//! process numbers of the host.
//!
//! `ring3 run` does not use this crate yet: a keeper opens its ports and sockets in the runtime folder, which a
//! confined one must be given from outside.
#![forbid(unsafe_code)]

mod filter;
pub mod list;

use std::path::{Path, PathBuf};

use landlock::{
    path_beneath_rules, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, ABI,
};

/// Signals and abstract sockets are scoped from here on: Linux 6.12.
const LEAST_ABI: ABI = ABI::V6;

/// What a confined process may see of the host's files.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Read and execute, with all below.
    pub read: Vec<PathBuf>,
    /// Read, write, make and remove, with all below; nothing is made there that is a device.
    pub write: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this host's kernel can't confine files and signals (Landlock ABI 6, Linux 6.12): {0}"
    )]
    Landlock(#[from] landlock::RulesetError),
    #[error("this host's kernel enforces only a part of the sandbox's Landlock rules: Linux 6.12 or later is needed")]
    Partial,
    #[error("{}: no such path to let a sandbox see: leave it out", .0.display())]
    NoPath(PathBuf),
    #[error("cannot make the seccomp filter: {0}")]
    Filter(#[from] seccompiler::BackendError),
    #[error("cannot set the seccomp filter: {0}")]
    Seccomp(#[from] seccompiler::Error),
}

/// Confines the calling thread, and all threads and processes that it starts from now on, for ever. An error may
/// leave it confined in part: then it must end.
pub fn confine(files: &Files) -> Result<(), Error> {
    let filters = filter::programs()?;
    restrict_files(files)?;
    for filter in &filters {
        seccompiler::apply_filter(filter)?;
    }
    Ok(())
}

/// Also sets no_new_privs.
fn restrict_files(files: &Files) -> Result<(), Error> {
    for path in files.read.iter().chain(&files.write) {
        exists(path)?;
    }
    let make_device = AccessFs::MakeChar | AccessFs::MakeBlock;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST_ABI))?
        .scope(Scope::from_all(LEAST_ABI))?
        .create()?
        .add_rules(path_beneath_rules(
            &files.read,
            AccessFs::from_read(LEAST_ABI),
        ))?
        .add_rules(path_beneath_rules(
            &files.write,
            AccessFs::from_all(LEAST_ABI) & !make_device,
        ))?
        .restrict_self()?;
    match status.ruleset {
        RulesetStatus::FullyEnforced if status.no_new_privs => Ok(()),
        _ => Err(Error::Partial),
    }
}

/// Landlock's rules are for what is there; a path that is not would be left out in silence.
fn exists(path: &Path) -> Result<(), Error> {
    match path.symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::NoPath(path.to_owned())),
    }
}
