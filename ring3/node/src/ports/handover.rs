// SPDX-License-Identifier: GPL-2.0
//! Passes a link's memory from the node at one end to the node at the other.
//!
//! Each end listens on a socket while it has the end, in a thread of its own: the far node may ask
//! while this one still boots. One connection passes one descriptor, to processes of the node's own
//! user only.
//!
//! Programs of the nodes have the descriptor too, and a program can reopen a descriptor that it
//! has. So the memory is sealed: its size can't be reduced (SIGBUS for all who map it) or extended.
//! The receiver checks that.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use ring3_abi::RING3_LINK_BYTES;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
};

use crate::drivers::Driver;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::unix::{address, socket};

/// An end answers as soon as its thread runs.
const PATIENCE: Duration = Duration::from_secs(5);
const BACKLOG: i32 = 16;
/// How often to retry what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);

const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// New memory for link `name`. It is allocated at once: a lack of memory is an error now, instead
/// of an OOM kill later.
pub(super) fn make_memory(name: &str) -> Result<File> {
    let fail = || Error::host(format!("get memory for the link {name}"));
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create(format!("ring3-link:{name}"), flags).map_err(fail())?;
    rustix::fs::fallocate(&memory, FallocateFlags::empty(), 0, RING3_LINK_BYTES.into())
        .map_err(fail())?;
    rustix::fs::fcntl_add_seals(&memory, SEALS).map_err(fail())?;
    Ok(memory.into())
}

/// Memory for a link that may be added later: it has its full size, and costs nothing until it is
/// used.
pub(crate) fn make_spare() -> Result<File> {
    let fail = || Error::host("get memory for links to come");
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("ring3-link:spare", flags).map_err(fail())?;
    rustix::fs::ftruncate(&memory, RING3_LINK_BYTES.into()).map_err(fail())?;
    rustix::fs::fcntl_add_seals(&memory, SEALS).map_err(fail())?;
    Ok(memory.into())
}

/// Makes a link of such memory. All of it is allocated at once: a later lack of memory would kill
/// its users.
pub(super) fn use_spare(memory: &File) -> Result<File> {
    rustix::fs::fallocate(memory, FallocateFlags::empty(), 0, RING3_LINK_BYTES.into())
        .map_err(Error::host("get memory for a link"))?;
    memory.try_clone().map_err(Error::io("copy a descriptor"))
}

/// Makes such memory a spare again: empties it. Only processes of this node have had it.
pub(crate) fn empty_spare(memory: &File) -> Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(memory, flags, 0, RING3_LINK_BYTES.into())
        .map_err(Error::host("empty a link's memory"))
}

/// Whether this can be mapped: it has the right size, and is sealed.
fn is_safe(memory: &OwnedFd) -> bool {
    let size = rustix::fs::fstat(memory).map_or(0, |stat| stat.st_size);
    size == i64::from(RING3_LINK_BYTES)
        && rustix::fs::fcntl_get_seals(memory).is_ok_and(|seals| seals.contains(SEALS))
}

/// The thread that passes the memory on, and its socket. Ends with this value.
#[derive(Debug)]
pub(super) struct Handover {
    listener: Arc<OwnedFd>,
    thread: Option<Driver>,
    /// Another process has received the memory.
    pub was_given: Arc<AtomicBool>,
}

impl Handover {
    /// Listens at `path`, where a dead end may have left its socket.
    pub fn start(path: &Path, memory: &File) -> Result<Handover> {
        let fail = || Error::host(format!("listen on {}", path.display()));
        let _ = std::fs::remove_file(path);
        let listener = Arc::new(socket().map_err(fail())?);
        rustix::net::bind(&listener, &address(path)?).map_err(fail())?;
        rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600)).map_err(fail())?;
        rustix::net::listen(&listener, BACKLOG).map_err(fail())?;
        let memory = memory.try_clone().map_err(Error::io("copy a descriptor"))?;
        let heard = listener.clone();
        let was_given = Arc::new(AtomicBool::new(false));
        let given = was_given.clone();
        let thread = Driver::start("ring3-link", move || serve(&heard, &memory, &given))?;
        Ok(Handover {
            listener,
            thread: Some(thread),
            was_given,
        })
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        self.thread.take().map(Driver::end);
    }
}

fn serve(listener: &OwnedFd, memory: &File, was_given: &AtomicBool) {
    loop {
        match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(caller) => give(&caller, memory, was_given),
            // The socket was shut down.
            Err(Errno::INVAL) => return,
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            // Out of descriptors, most likely: the waiting peer is still there next time.
            Err(_) => std::thread::sleep(HOST_TROUBLE_TURN),
        }
    }
}

fn give(caller: &OwnedFd, memory: &File, was_given: &AtomicBool) {
    if !Peer::of(caller).is_ok_and(Peer::is_own_user) {
        return;
    }
    was_given.store(true, Ordering::Release);
    // A peer that has gone meanwhile does not need it.
    let _ = send(caller, b"m", memory);
}

/// One message with a descriptor: the memory, most often.
pub(super) fn send(to: &OwnedFd, message: &[u8], fd: impl AsFd) -> rustix::io::Result<()> {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(to, &[IoSlice::new(message)], &mut ancillary, flags)?;
    Ok(())
}

/// The memory, from the end that listens at `path`; or the reason of a refusal.
pub(super) fn ask(path: &Path) -> Result<Result<File, String>> {
    let address = address(path)?;
    Ok(receive(&address).map_err(|why| match why {
        Errno::AGAIN => format!("it says nothing for {} s", PATIENCE.as_secs()),
        Errno::NOENT => "it is of another ring3 version".into(),
        Errno::BADMSG => "what it gives is not a link's memory".into(),
        why => why.to_string(),
    }))
}

fn receive(address: &SocketAddrUnix) -> rustix::io::Result<File> {
    let socket = socket()?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, timeout, Some(PATIENCE))?;
    }
    rustix::net::connect(&socket, address)?;
    take(&socket, &mut [0]).map(|(_, memory)| memory)
}

/// Receives one message with the memory; returns its length.
pub(super) fn take(socket: &OwnedFd, message: &mut [u8]) -> rustix::io::Result<(usize, File)> {
    let (bytes, memory) = take_any(socket, message)?;
    match is_safe(&memory) {
        true => Ok((bytes, memory.into())),
        false => Err(Errno::BADMSG),
    }
}

/// One message with any descriptor.
pub(super) fn take_any(
    socket: &OwnedFd,
    message: &mut [u8],
) -> rustix::io::Result<(usize, OwnedFd)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let got = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(message)],
        &mut ancillary,
        flags,
    )?;
    let fd = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    fd.map(|fd| (got.bytes, fd)).ok_or(Errno::CONNRESET)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &Path, memory: &OwnedFd) -> Result<File, String> {
        let memory = File::from(memory.try_clone().unwrap());
        let _handover = Handover::start(path, &memory).unwrap();
        ask(path).unwrap()
    }

    #[test]
    fn memory_is_given_and_can_not_be_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l.0");
        let memory = make_memory("l").unwrap();
        let got = at(&path, &memory.into()).unwrap();
        assert!(got.set_len(0).is_err());
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&got));
        let again = File::options().write(true).open(again).unwrap();
        assert!(again.set_len(0).is_err());
        assert!(again.set_len(u64::from(RING3_LINK_BYTES) * 2).is_err());
        // No process listens there any more.
        assert!(ask(&path).unwrap().is_err());
    }

    /// A far end that keeps the right to truncate the memory.
    #[test]
    fn memory_that_can_be_cut_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = rustix::fs::memfd_create("open", flags).unwrap();
        rustix::fs::ftruncate(&memory, RING3_LINK_BYTES.into()).unwrap();
        let why = at(&dir.path().join("l.0"), &memory).unwrap_err();
        assert!(why.contains("not a link's memory"), "{why}");
    }
}
