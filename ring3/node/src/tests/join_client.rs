// SPDX-License-Identifier: GPL-2.0
//! The gate's half of include/ring3.abi, in Rust. Unsafe leaf of the tests.
#![allow(unsafe_code)]

use std::io::IoSliceMut;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use ring3_abi::*;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix, SocketType,
};

/// Joins as process `pid` says it is: the reply and its descriptors.
pub(super) fn join(path: &Path, abi: u32, pid: i32) -> (ring3_join_reply, Vec<OwnedFd>) {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        SocketType::SEQPACKET,
        None,
    )
    .unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    let request = ring3_join_request {
        magic: RING3_JOIN_MAGIC,
        abi,
        pid,
    };
    // SAFETY: plain data without padding, borrowed for as long as the bytes are.
    let bytes = unsafe {
        std::slice::from_raw_parts((&raw const request).cast::<u8>(), size_of_val(&request))
    };
    rustix::net::send(&socket, bytes, SendFlags::empty()).unwrap();

    let mut bytes = [0u8; size_of::<ring3_join_reply>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = rustix::net::recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .unwrap();
    assert_eq!(got.bytes, bytes.len());
    let fds = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    // SAFETY: as many bytes as the structure has, and every bit pattern is one.
    (
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) },
        fds,
    )
}

/// Makes thread block `block`, whose word is `word`, look like the vCPU's holder.
pub(super) fn hold_vcpu(base: u64, block: u64, tid: u32, word: u32) {
    let region = base as *mut ring3_region;
    let thread = block as *mut ring3_thread;
    // SAFETY: the region of a fake node that runs in this process; nobody else is in it.
    unsafe {
        (*thread).tid = tid;
        (*thread).word.store(word, Ordering::Release);
        (&raw mut (*region).vcpu[0].driver).write_volatile(block);
        (*region).vcpu[0].owner.store(tid, Ordering::Release);
    }
}

/// The vCPU's owner word.
pub(super) fn vcpu_owner(base: u64) -> u32 {
    // SAFETY: as above.
    unsafe {
        (*(base as *const ring3_region)).vcpu[0]
            .owner
            .load(Ordering::Acquire)
    }
}
