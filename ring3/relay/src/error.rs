// SPDX-License-Identifier: GPL-2.0
//! What ends a relay.

use ring3_node::Errno;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Inside(#[from] ring3_node::Error),
    #[error("the gateway's kernel refused to {what}: {why}")]
    Node { what: &'static str, why: Errno },
    #[error("cannot {what}: {why}")]
    Host { what: &'static str, why: Errno },
    #[error("cannot publish {what}: {why}")]
    Publish { what: String, why: Errno },
    #[error("the port's rules are of another ring3 version: {why}")]
    Rules { why: &'static str },
    #[error("cannot open {}, the log of refusals: {why}", path.display())]
    Log {
        path: std::path::PathBuf,
        why: std::io::Error,
    },
    #[error("cannot confine the gateway: {0}")]
    Fence(#[from] ring3_sandbox::Error),
    #[error("cannot give up capabilities: {0}")]
    Capabilities(rustix::io::Errno),
    #[error("a proxy's supervisor: {why}")]
    Supervisor { why: crate::proxy::wire::Broken },
    #[error("the relay's thread panicked")]
    Panicked,
}

impl Error {
    /// A call on the node failed: `what` completes "refused to ...".
    pub(crate) fn node(what: &'static str) -> impl Fn(Errno) -> Error {
        move |why| Error::Node { what, why }
    }

    /// A host call failed: `what` completes "cannot ...".
    pub(crate) fn host<E: Into<Errno>>(what: &'static str) -> impl Fn(E) -> Error {
        move |why| Error::Host {
            what,
            why: why.into(),
        }
    }
}
