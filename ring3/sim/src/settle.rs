// SPDX-License-Identifier: GPL-2.0
//! Waiting until all links of a new network work.
//!
//! Linux looks at carriers once a second, at a hundred interfaces at a time (net/core/link_watch.c). Until then an
//! interface that is up counts as one without a carrier, and has no link-local address. Programs that start at time 0 are
//! not to see that.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sched::{setns, CloneFlags};

use crate::error::{Error, Result};
use crate::netlink::Asker;

const TURN: Duration = Duration::from_millis(50);

/// Waits in one namespace after the other, for so long in all at most. The caller is in `root` before and after.
pub fn settle(spaces: &BTreeMap<String, File>, root: &File, most: Duration) -> Result<()> {
    let mut waited = Duration::ZERO;
    for (name, space) in spaces {
        setns(space.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(Error::host(format!("enter {name}")))?;
        while Asker::new()
            .and_then(|asker| asker.is_settling())
            .map_err(Error::host(format!("ask {name} for its links")))?
        {
            if waited >= most {
                log::warn!("links of {name} do not work yet after {most:?}");
                return leave(root);
            }
            std::thread::sleep(TURN);
            waited += TURN;
        }
    }
    leave(root)
}

fn leave(root: &File) -> Result<()> {
    setns(root.as_fd(), CloneFlags::CLONE_NEWNET).map_err(Error::host("leave a network namespace"))
}
