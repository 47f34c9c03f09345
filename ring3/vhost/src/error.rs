// SPDX-License-Identifier: GPL-2.0
//! What keeps a device from serving.

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Node(#[from] ring3_node::Error),
    #[error("cannot confine the device: {0}")]
    Sandbox(#[from] ring3_sandbox::Error),
    #[error("cannot give up capabilities: {0}")]
    Capabilities(rustix::io::Errno),
    #[error("cannot map a link's memory: {0}")]
    Map(String),
    #[error("cannot {what}: {why}")]
    Io {
        what: &'static str,
        why: std::io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        move |why| Error::Io { what, why }
    }
}
