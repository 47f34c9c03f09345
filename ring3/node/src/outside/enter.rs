// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: starting another program in a sandbox
//!
//! A process that confined itself would have a Landlock domain of its own, beside the sandbox's: neither could signal the other,
//! and the reaper could end neither. So the program is born within: the keeper starts it, as it started the first.
//!
//! ```text
//! ring3 exec ── one descriptor: an end of a talk ──▶ warden ── the same ──▶ keeper ── starts it
//!      ▲                                                                      │
//!      └───────────────────────────── the talk ──────────────────────────────┘
//! ```
//!
//! The warden checks who asks, and not what is asked for. The caller tells the keeper what to
//! start, and with which descriptors, over their talk, once the keeper answers there. So a stopped
//! keeper has received nothing of the caller's. Whatever the caller passes is passed to the
//! sandbox: a program that has taken over the keeper has these descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags,
};
use rustix::process::geteuid;

use crate::error::{Error, Result};
use crate::runtime::Folder;
use crate::unix::{address, socket};

const BACKLOG: i32 = 16;
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

/// Asks the warden of sandboxed node `name` to pass this end of a talk on to the keeper.
pub fn ask(folder: &Folder, name: &str, talk: &OwnedFd) -> Result<()> {
    let fail = || Error::host(format!("ask for a program in the sandbox {name}"));
    let socket = socket().map_err(fail())?;
    rustix::net::connect(&socket, &address(&folder.enter_path(name))?).map_err(fail())?;
    send(&socket, talk).map_err(fail())
}

/// The next talk, for a keeper. `None`: the warden has ended.
pub fn next_talk(from: &OwnedFd) -> Option<OwnedFd> {
    loop {
        match receive(from) {
            Ok(Received::End) => return None,
            Ok(Received::Talk(talk)) => return Some(talk),
            // This process has no descriptor left. The caller sees its end of the talk break.
            Ok(Received::Nothing) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Passes talks of callers on to the keeper at the far end of `keeper`.
pub(super) fn listen(path: &Path, keeper: OwnedFd) -> Result<()> {
    let fail = || Error::host(format!("listen on {}", path.display()));
    let listener = socket().map_err(fail())?;
    rustix::net::bind(&listener, &address(path)?).map_err(fail())?;
    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600)).map_err(fail())?;
    rustix::net::listen(&listener, BACKLOG).map_err(fail())?;
    let body = move || loop {
        let Ok(caller) = rustix::net::accept_with(&listener, SocketFlags::CLOEXEC) else {
            std::thread::sleep(HOST_TROUBLE_TURN);
            continue;
        };
        if !socket_peercred(&caller).is_ok_and(|peer| peer.uid == geteuid()) {
            continue;
        }
        // A caller sends with its connect(); one that does not must not delay the others.
        if let Ok(Received::Talk(talk)) = receive_at_once(&caller) {
            // If the keeper has ended, or does not read, the caller notices: its talk breaks with
            // `talk`.
            let _ = send(&keeper, &talk);
        }
    };
    std::thread::Builder::new()
        .name("ring3-enter".into())
        .spawn(body)
        .map_err(Error::io("start a thread"))?;
    Ok(())
}

fn receive_at_once(caller: &OwnedFd) -> rustix::io::Result<Received> {
    use rustix::net::sockopt::{set_socket_timeout, Timeout};
    set_socket_timeout(caller, Timeout::Recv, Some(Duration::from_secs(1)))?;
    receive(caller)
}

fn send(to: &OwnedFd, talk: &OwnedFd) -> rustix::io::Result<()> {
    let fds = [talk.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    // A peer that does not read must not block this thread.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(to, &[IoSlice::new(b"e")], &mut ancillary, flags).map(drop)
}

#[derive(Debug)]
enum Received {
    Talk(OwnedFd),
    /// A message without a descriptor.
    Nothing,
    /// The far end is closed.
    End,
}

fn receive(from: &OwnedFd) -> rustix::io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(from, &mut parts, &mut ancillary, flags)?;
    if got.bytes == 0 {
        return Ok(Received::End);
    }
    let mut rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(rights.next().map_or(Received::Nothing, Received::Talk))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketType};

    use super::*;

    #[test]
    fn a_message_whose_descriptor_is_missing_is_not_the_end() {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let pair = || rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let (ours, theirs) = pair();
        // The message arrives like this if no descriptor is free.
        let mut none = SendAncillaryBuffer::new(&mut []);
        let sent =
            rustix::net::sendmsg(&ours, &[IoSlice::new(b"e")], &mut none, SendFlags::empty());
        assert_eq!(sent, Ok(1));
        send(&ours, &pair().0).unwrap();
        assert!(next_talk(&theirs).is_some());
        drop(ours);
        assert!(next_talk(&theirs).is_none());
    }
}
