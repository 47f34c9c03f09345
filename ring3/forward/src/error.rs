// SPDX-License-Identifier: GPL-2.0
//! What ends an agent.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot {what}: {why}")]
    Host { what: &'static str, why: io::Error },
    #[error("cannot listen on {at}: {why}")]
    Listen { at: SocketAddr, why: io::Error },
    #[error("cannot send to {to}: {why}")]
    Target { to: SocketAddr, why: io::Error },
    #[error("cannot load the handler {}: {why}", path.display())]
    Load { path: PathBuf, why: String },
    #[error("the handler {}: its open() answers {status}", path.display())]
    Refused { path: PathBuf, status: i32 },
    #[error("the agent's thread panicked")]
    Panicked,
}

impl Error {
    pub(crate) fn host(what: &'static str) -> impl Fn(io::Error) -> Error {
        move |why| Error::Host { what, why }
    }
}
