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
//! Outside there is a *warden*, which never maps the node's memory: it opens the ports, answers or makes the few calls that
//! need somebody outside ([`notify`], [`behalf`]), and ends what is left.
#![deny(unsafe_code)]

pub mod arguments;
pub mod behalf;
mod filter;
pub mod list;
mod members;
pub mod notify;
mod pace;
pub mod rules;
mod sockets;
mod watches;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    path_beneath_rules, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
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
    #[error("cannot give up capabilities: {0}")]
    Capabilities(rustix::io::Errno),
    #[error("cannot make the seccomp filter: {0}")]
    Filter(#[from] seccompiler::BackendError),
    #[error("a list of values is one condition of several: give it an alternative of its own")]
    Condition,
    #[error("cannot set the seccomp filter: {0}")]
    Seccomp(#[from] seccompiler::Error),
    #[error("cannot confine a process to its list of host calls: {0}")]
    Rules(String),
    #[error("cannot set the seccomp filter that asks the warden: {0}")]
    Listen(std::io::Error),
}

/// Confines the calling thread, and all threads and processes that it starts from now on, for ever. An error may
/// leave it confined in part: then it must end. The descriptor is for the warden: [`notify::serve`]. Where nobody
/// serves it, what asks waits, and when it is closed everywhere, the answer is `ENOSYS`.
pub fn confine(files: &Files) -> Result<OwnedFd, Error> {
    let filters = filter::programs()?;
    let question = filter::question()?;
    drop_capabilities().map_err(Error::Capabilities)?;
    restrict_files(files)?;
    for filter in &filters {
        seccompiler::apply_filter(filter)?;
    }
    notify::listen(&question).map_err(Error::Listen)
}

/// Keeps the calling thread and all that it starts from sending signals to, and tracing, whoever is outside. What it
/// starts and encloses once more can't send any to it in turn.
pub fn enclose() -> Result<(), Error> {
    // A domain refuses renames and links from folder to folder, unless a rule of its own says otherwise.
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .scope(Scope::from_all(LEAST_ABI))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::Refer))?
        .restrict_self()?;
    match status.ruleset {
        RulesetStatus::FullyEnforced if status.no_new_privs => Ok(()),
        _ => Err(Error::Partial),
    }
}

/// No file of the host's, no TCP port to listen on, no signal to and no abstract unix socket of whoever is outside, for the
/// calling thread and all that it starts from now on: as much of that as this host's kernel knows. Whether it knows any.
pub fn fence() -> Result<bool, Error> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LEAST_ABI))?
        .handle_access(AccessNet::BindTcp)?
        .scope(Scope::from_all(LEAST_ABI))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Gives up every capability for good. Only root has any.
pub fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread::{
        clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
        CapabilitySet, CapabilitySets,
    };
    clear_ambient_capability_set()?;
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // Not root's, so there is nothing that an exec could bring.
            Ok(()) | Err(rustix::io::Errno::PERM | rustix::io::Errno::INVAL) => {}
            Err(why) => return Err(why),
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
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
