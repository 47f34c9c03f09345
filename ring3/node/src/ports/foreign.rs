// SPDX-License-Identifier: GPL-2.0
//! A port that was opened by another process, for a keeper that may open nothing itself: the
//! descriptor, and the facts that the node needs. The process that opened it releases its
//! resources.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::window::LinkMemory;

/// The facts about one port beside its descriptor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    pub wanted: String,
    pub addrs: Vec<String>,
    pub gw: Vec<String>,
    /// RING3_PORT_LINK and its like.
    pub kind: u32,
    /// RING3_PORT_CSUM and its like.
    pub flags: u32,
    /// Of a link.
    pub side: u32,
    pub window: Option<u32>,
    pub made: bool,
    pub pid: Option<i32>,
    /// Its gateway answers for the host's resolvers.
    pub names: bool,
}

/// The host's half, opened outside.
#[derive(Debug)]
pub(super) struct Foreign {
    pub facts: Facts,
    fd: OwnedFd,
    /// Of a link: its head.
    head: Option<LinkMemory>,
}

impl Foreign {
    pub fn new(facts: Facts, fd: OwnedFd) -> Result<Foreign> {
        let head = match facts.kind {
            ring3_abi::RING3_PORT_LINK => Some(LinkMemory::map(&fd)?),
            _ => None,
        };
        if facts.side > 1 {
            return Err(Error::Outside {
                why: "it names a side that no link has".into(),
            });
        }
        Ok(Foreign { facts, fd, head })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn far_end_is_up(&self) -> bool {
        let head = self.head.as_ref();
        head.is_some_and(|head| head.far_end_is_up(self.facts.side as usize))
    }
}
