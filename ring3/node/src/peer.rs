// SPDX-License-Identifier: GPL-2.0
//! The process at the other end of a unix socket, as the host reports it (unix(7), SO_PEERCRED).

use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt};

/// A process that has connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub uid: u32,
    /// `None`: it is outside this process's PID namespace, and has no number within. The keeper of a simulation is in
    /// such a namespace, and commands that look at it are outside.
    pub pid: Option<i32>,
}

impl Peer {
    pub fn of(socket: &impl AsFd) -> std::io::Result<Peer> {
        let who = getsockopt(socket, sockopt::PeerCredentials)?;
        Ok(Peer {
            uid: who.uid(),
            pid: (who.pid() != 0).then_some(who.pid()),
        })
    }

    /// Whether it is a process of this one's user.
    pub fn is_own_user(self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }
}
