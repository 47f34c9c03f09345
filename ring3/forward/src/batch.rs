// SPDX-License-Identifier: GPL-2.0
//! Datagrams in batches: one call for as many as there are. Unsafe leaf.
//!
//! The kernel reads and writes through the pointers of `headers`. They point into the boxes beside them, which neither move
//! nor shrink while the batch lives.
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::leaf::Name;
use crate::tuning::{BATCH, DATAGRAM, STRIDE};

/// Room for datagrams that come.
pub struct Inbox {
    bytes: Box<[u8]>,
    names: Box<[Name]>,
    parts: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

// SAFETY: the pointers are into the value's own boxes.
unsafe impl Send for Inbox {}

impl Inbox {
    pub fn new() -> Inbox {
        let mut inbox = Inbox {
            bytes: vec![0; BATCH * STRIDE].into(),
            names: vec![Name::none(); BATCH].into(),
            // SAFETY: plain data, for which all zeroes is a value; the same below.
            parts: vec![unsafe { zeroed() }; BATCH].into(),
            // SAFETY: as above.
            headers: vec![unsafe { zeroed() }; BATCH].into(),
        };
        for at in 0..BATCH {
            inbox.parts[at] = libc::iovec {
                iov_base: inbox.bytes[at * STRIDE..].as_mut_ptr().cast(),
                iov_len: DATAGRAM,
            };
            let header = &mut inbox.headers[at].msg_hdr;
            header.msg_iov = &raw mut inbox.parts[at];
            header.msg_iovlen = 1;
            (header.msg_name, header.msg_namelen) = inbox.names[at].for_kernel();
        }
        inbox
    }

    /// Waits for one, and takes as many as there are.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        // SAFETY: the headers are as `new` made them; see the head of this file.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_WAITFORONE as _,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for at in 0..count {
            let header = &mut self.headers[at].msg_hdr;
            self.names[at].set_len(header.msg_namelen);
            header.msg_namelen = self.names[at].for_kernel().1;
        }
        Ok(count)
    }

    /// Number `at` of those that came: all its room, its length, and its sender.
    pub fn packet(&mut self, at: usize) -> (&mut [u8], usize, &Name) {
        let len = self.headers[at].msg_len as usize;
        let room = &mut self.bytes[at * STRIDE..][..DATAGRAM];
        (room, len.min(DATAGRAM), &self.names[at])
    }
}

/// Datagrams on their way to one target: some of an inbox.
pub struct Outbox {
    parts: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    count: usize,
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

// SAFETY: the pointers are into the value's own boxes, and into the inbox that `send` is given.
unsafe impl Send for Outbox {}

/// What became of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub sent: usize,
    pub full: usize,
    pub refused: usize,
}

impl Outbox {
    pub fn new() -> Outbox {
        let mut outbox = Outbox {
            // SAFETY: plain data, for which all zeroes is a value; the same below.
            parts: vec![unsafe { zeroed() }; BATCH].into(),
            // SAFETY: as above.
            headers: vec![unsafe { zeroed() }; BATCH].into(),
            count: 0,
        };
        for at in 0..BATCH {
            outbox.headers[at].msg_hdr.msg_iov = &raw mut outbox.parts[at];
            outbox.headers[at].msg_hdr.msg_iovlen = 1;
        }
        outbox
    }

    /// Bytes of number `at` in the inbox whose packets are sent next.
    pub fn add(&mut self, at: usize, len: usize) {
        // The place is set by `send`, which has the inbox.
        self.parts[self.count] = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(at),
            iov_len: len,
        };
        self.count += 1;
    }

    /// Sends what was added, without waiting for room. What is not taken is lost, as on any wire.
    pub fn send(&mut self, socket: BorrowedFd<'_>, inbox: &Inbox) -> Sent {
        let (all, mut at, mut sum) = (self.count, 0, Sent::default());
        self.count = 0;
        for part in &mut self.parts[..all] {
            let number = part.iov_base.addr();
            let bytes = &inbox.bytes[number * STRIDE..(number + 1) * STRIDE];
            part.iov_base = bytes.as_ptr().cast_mut().cast();
            part.iov_len = part.iov_len.min(STRIDE);
        }
        let mut is_second = false;
        while at < all {
            // SAFETY: the headers from `at` to `all` have parts that point into the inbox, which the kernel reads.
            let count = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.headers[at..].as_mut_ptr(),
                    (all - at) as u32,
                    (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
                )
            };
            if count > 0 {
                (at, is_second) = (at + count as usize, false);
                sum.sent += count as usize;
                continue;
            }
            let why = io::Error::last_os_error().raw_os_error();
            match why {
                Some(libc::EINTR) => continue,
                Some(libc::EAGAIN | libc::ENOBUFS) => sum.full += 1,
                // Of a datagram before: the socket says it once, and has sent nothing.
                Some(libc::ECONNREFUSED) if !is_second => {
                    is_second = true;
                    continue;
                }
                _ => sum.refused += 1,
            }
            (at, is_second) = (at + 1, false);
        }
        sum
    }
}
