// SPDX-License-Identifier: GPL-2.0
//! What ends a proxy, or refuses it a new configuration.

use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Config(#[from] ring3_config::ConfigError),
    #[error(transparent)]
    Node(#[from] ring3_node::Error),
    #[error("cannot read {}: {why}", path.display())]
    Unreadable { path: PathBuf, why: std::io::Error },
    #[error("cannot {what}: {why}")]
    Host { what: String, why: std::io::Error },
    #[error("target {target}: no address is known for it: {why}")]
    NoAddress { target: String, why: std::io::Error },
    #[error("a proxy named `{name}` runs already: name this one with --name")]
    NameTaken { name: String },
    #[error("no proxy named `{name}` runs: it has its node's name, or that of --name")]
    NoSuchProxy { name: String },
    #[error("the proxy refused: {why}")]
    Refused { why: String },
    #[error(
        "the proxy `{name}` still reads its file, or looks names up: its log will tell the outcome"
    )]
    StillReads { name: String },
    #[error("the relay did not start: {0}")]
    NotStarted(String),
    #[error("the relay has ended: is node `{node}` up? `ring3 log {node}` has its kernel's words")]
    RelayEnded { node: String },
    #[error("the relay says what makes no sense ({0}): it is ended")]
    RelayBroken(String),
    #[error("{0}")]
    Listeners(String),
    #[error("another node needs a new start: {what}")]
    NeedsStart { what: String },
}

impl Error {
    pub(crate) fn host<E: Into<std::io::Error>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |why| Error::Host {
            what,
            why: why.into(),
        }
    }
}
