// SPDX-License-Identifier: GPL-2.0
//! AF_XDP sockets, and the BPF program that feeds one. Unsafe leaf.
//!
//! The program has six instructions and never changes, so it is written out here: libraries that
//! load BPF programs need an object file, and a compiler for it on the build machine.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use ring3_abi::*;

use crate::error::Errno;
use crate::sys::set_option;

type Result<T> = std::result::Result<T, Errno>;

fn check(ret: impl Into<i64>) -> Result<i64> {
    let ret = ret.into();
    if ret < 0 {
        Err(std::io::Error::last_os_error().into())
    } else {
        Ok(ret)
    }
}

/// A ring of the socket, and its place in a port's window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    pub at: u64,
    pub bytes: usize,
    /// The offset for mmap(2).
    pub offset: u64,
}

/// In the order of enum ring3_xdp_ring.
pub(crate) const RINGS: [Ring; 4] = {
    const fn ring(which: u32, bytes: u32, offset: u64) -> Ring {
        Ring {
            at: (which * RING3_XDP_STRIDE) as u64,
            bytes: bytes as usize,
            offset,
        }
    }
    [
        ring(
            RING3_XDP_RX,
            RING3_XDP_RXTX_BYTES,
            libc::XDP_PGOFF_RX_RING as u64,
        ),
        ring(
            RING3_XDP_TX,
            RING3_XDP_RXTX_BYTES,
            libc::XDP_PGOFF_TX_RING as u64,
        ),
        ring(
            RING3_XDP_FILL,
            RING3_XDP_UMEM_BYTES,
            libc::XDP_UMEM_PGOFF_FILL_RING,
        ),
        ring(
            RING3_XDP_COMPLETION,
            RING3_XDP_UMEM_BYTES,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING,
        ),
    ]
};

/// A socket with its four rings, bound to nothing.
pub(crate) fn socket() -> Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is involved.
    let fd = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the call just made this descriptor; nobody else has it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    for ring in [
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
    ] {
        set_option(&fd, libc::SOL_XDP, ring, &RING3_XDP_ENTRIES)?;
    }
    // The TX ring's worth of frames, each an skb of the host. Above the host's limit, which a user
    // who may attach a program to an interface may exceed.
    set_option(&fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &(4u32 << 20))?;
    Ok(fd)
}

/// Binds to queue 0 of an interface; zero copy if its driver supports that.
pub(crate) fn bind(fd: &OwnedFd, ifindex: u32) -> Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: bind reads `size` bytes of an address that has as many.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of_val(&address) as u32,
        )
    })?;
    Ok(())
}

/* bpf(2): <linux/bpf.h> */
const BPF_MAP_CREATE: i64 = 0;
const BPF_MAP_UPDATE_ELEM: i64 = 2;
const BPF_PROG_LOAD: i64 = 5;
const BPF_LINK_CREATE: i64 = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_FUNC_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
/// `struct xdp_md`'s rx_queue_index.
const RX_QUEUE_INDEX: i16 = 16;

/// The head of `union bpf_attr`, as far as each command reads it; the host takes the rest as zero.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach: u32,
}

#[repr(C)]
struct LinkCreate {
    prog: u32,
    ifindex: u32,
    attach: u32,
    flags: u32,
}

/// # Safety
/// The addresses in `attr` must be good for what the command does with them.
unsafe fn bpf<T>(command: i64, attr: &T) -> Result<i64> {
    // SAFETY: the host reads size_of::<T>() bytes of `attr`; the rest is the caller's.
    check(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attr as *const T,
            size_of::<T>() as u32,
        )
    })
}

fn owned(fd: i64) -> OwnedFd {
    // SAFETY: a descriptor that bpf(2) just made.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

const fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> u64 {
    code as u64
        | (dst as u64) << 8
        | (src as u64) << 12
        | (off as u16 as u64) << 16
        | (imm as u32 as u64) << 32
}

/// Redirects frames of queue 0 of the interface to the socket, for as long as the returned
/// descriptor is open. `EBUSY`: the interface has such a program.
pub(crate) fn redirect(ifindex: u32, socket: &OwnedFd) -> Result<OwnedFd> {
    let create = MapCreate {
        kind: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
    };
    // SAFETY: no addresses.
    let map = owned(unsafe { bpf(BPF_MAP_CREATE, &create) }?);
    let (key, value) = (0u32, socket.as_fd().as_raw_fd());
    let update = MapUpdate {
        map: map.as_raw_fd() as u32,
        pad: 0,
        key: &raw const key as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: a key and a value of four bytes each are read.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &update) }?;

    let insns = [
        insn(0x61, 2, 1, RX_QUEUE_INDEX, 0),  // r2 = ctx->rx_queue_index
        insn(0x18, 1, 1, 0, map.as_raw_fd()), // r1 = map
        0,
        insn(0xb7, 3, 0, 0, XDP_PASS), // other queues go to the host
        insn(0x85, 0, 0, 0, BPF_FUNC_REDIRECT_MAP),
        insn(0x95, 0, 0, 0, 0),
    ];
    let mut name = [0; 16];
    name[..5].copy_from_slice(b"ring3");
    let load = ProgLoad {
        kind: BPF_PROG_TYPE_XDP,
        count: insns.len() as u32,
        insns: insns.as_ptr() as u64,
        license: c"GPL".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_buf: 0,
        kern_version: 0,
        flags: 0,
        name,
        ifindex: 0,
        attach: BPF_XDP,
    };
    // SAFETY: `count` instructions and a string with its NUL are read.
    let prog = owned(unsafe { bpf(BPF_PROG_LOAD, &load) }?);
    let link = LinkCreate {
        prog: prog.as_raw_fd() as u32,
        ifindex,
        attach: BPF_XDP,
        flags: 0,
    };
    // SAFETY: no addresses.
    Ok(owned(unsafe { bpf(BPF_LINK_CREATE, &link) }?))
}
