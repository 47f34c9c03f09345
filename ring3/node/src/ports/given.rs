// SPDX-License-Identifier: GPL-2.0
//! One end of a link whose memory was passed as a descriptor: between a node and its gateway.
//!
//! No file names this link, so no other process can take an end of it. The node's keeper makes the
//! memory and has side 0.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use crate::error::{Error, Result};
use crate::window::LinkMemory;

use super::handover;

/// The node's side; the gateway has the other.
pub(crate) const NODE: usize = 0;
pub(crate) const GATEWAY: usize = 1;

/// Dropping it tells the far end.
#[derive(Debug)]
pub struct GivenLink {
    memory: File,
    window: LinkMemory,
    side: usize,
}

impl GivenLink {
    /// Makes new memory, and takes the node's end of it.
    pub(crate) fn make(name: &str) -> Result<GivenLink> {
        let memory = handover::make_memory(name)?;
        let window = LinkMemory::map(&memory)?;
        window.start();
        Ok(GivenLink {
            memory,
            window,
            side: NODE,
        })
    }

    /// Takes the gateway's end of memory that the keeper has passed.
    pub(crate) fn take(memory: File) -> Result<GivenLink> {
        let window = LinkMemory::map(&memory)?;
        if !window.is_valid() {
            return Err(Error::HostPortFailed {
                why: "the link's memory is of another ring3 version".into(),
            });
        }
        window.take_over(GATEWAY);
        Ok(GivenLink {
            memory,
            window,
            side: GATEWAY,
        })
    }

    pub(crate) fn side(&self) -> u32 {
        self.side as u32
    }

    pub fn memory(&self) -> &File {
        &self.memory
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    pub(crate) fn far_end_is_up(&self) -> bool {
        self.window.far_end_is_up(self.side)
    }
}

impl Drop for GivenLink {
    fn drop(&mut self) {
        self.window.leave(self.side);
    }
}
