// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: another program into a sandbox
//!
//! A process that confined itself would have a Landlock domain of its own, beside the sandbox's: neither could signal the other,
//! and the reaper could end neither. So the program is born within: the keeper starts it, as it started the first.
//!
//! ```text
//! ring3 exec ── one message, five descriptors ──▶ warden ── the same ──▶ keeper ── starts it
//!      ▲                                                                   │
//!      └───────────── its end, over one of the five ──────────────────────┘
//! ```
//!
//! The warden looks at who asks, and at nothing of what is asked. What the caller gives, it gives to the sandbox: whoever has taken
//! the keeper over has these descriptors.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

const FDS: usize = 5;
const BACKLOG: i32 = 16;
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

/// What a program is started with.
#[derive(Debug)]
pub struct Entry {
    /// Standard input, output and error.
    pub standard: [OwnedFd; 3],
    /// What to start, in the command's own words.
    pub words: File,
    /// SOCK_SEQPACKET: signals come in, its end goes out.
    pub talk: OwnedFd,
}

impl Entry {
    fn of(fds: Vec<OwnedFd>) -> Option<Entry> {
        let [input, output, error, words, talk]: [OwnedFd; FDS] = fds.try_into().ok()?;
        Some(Entry {
            standard: [input, output, error],
            words: words.into(),
            talk,
        })
    }

    fn fds(&self) -> [BorrowedFd<'_>; FDS] {
        let [input, output, error] = &self.standard;
        let (words, talk) = (self.words.as_fd(), self.talk.as_fd());
        [input.as_fd(), output.as_fd(), error.as_fd(), words, talk]
    }

    /// Asks the warden of sandboxed node `name` to have this started.
    pub fn send(&self, folder: &Folder, name: &str) -> Result<()> {
        let fail = || Error::host(format!("ask for a program in the sandbox {name}"));
        let socket = socket().map_err(fail())?;
        rustix::net::connect(&socket, &address(&folder.enter_path(name))?).map_err(fail())?;
        send(&socket, self).map_err(fail())
    }

    /// The next one, for a keeper. `None`: the warden has ended.
    pub fn receive(from: &OwnedFd) -> Option<Entry> {
        loop {
            match receive(from) {
                Ok(fds) if fds.is_empty() => return None,
                // Others are closed: their caller sees its end of the talk broken.
                Ok(fds) => match Entry::of(fds) {
                    Some(entry) => return Some(entry),
                    None => continue,
                },
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Passes on who asks, to the keeper at the far end of `keeper`.
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
        // A caller sends with its connect(); one that does not holds nobody else up.
        let entry = receive_at_once(&caller).and_then(Entry::of);
        if let Some(entry) = entry {
            // A keeper that has ended is seen by the caller, whose talk breaks with `entry`.
            let _ = send(&keeper, &entry);
        }
    };
    std::thread::Builder::new()
        .name("ring3-enter".into())
        .spawn(body)
        .map_err(Error::io("start a thread"))?;
    Ok(())
}

fn receive_at_once(caller: &OwnedFd) -> Option<Vec<OwnedFd>> {
    use rustix::net::sockopt::{set_socket_timeout, Timeout};
    set_socket_timeout(caller, Timeout::Recv, Some(Duration::from_secs(1))).ok()?;
    receive(caller).ok()
}

fn send(to: &OwnedFd, entry: &Entry) -> rustix::io::Result<()> {
    let fds = entry.fds();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    // A keeper that does not read is no reason to wait.
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(to, &[IoSlice::new(b"e")], &mut ancillary, flags).map(drop)
}

/// The descriptors of one message; none: the far end is closed.
fn receive(from: &OwnedFd) -> rustix::io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(from, &mut parts, &mut ancillary, flags)?;
    if got.bytes == 0 {
        return Ok(Vec::new());
    }
    let rights = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(rights.flatten().collect())
}
