// SPDX-License-Identifier: GPL-2.0
//! Calls on the node, typed so that safe code cannot hand the kernel a bad address.
//! Unsafe leaf.
//!
//! Each is the Linux (or ring3) call of its name: same arguments, same errors.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::mem::{size_of, size_of_val};
use std::time::Duration;

use ring3_abi::*;
use serde::{Deserialize, Serialize};

use crate::error::Errno;
use crate::image::Thread;

type Result<T> = std::result::Result<T, Errno>;

/// A socket address in the kernel's form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SockAddr {
    bytes: [u8; 28],
    len: usize,
}

impl SockAddr {
    /// `sockaddr_nl` of the kernel, or of a socket without an address.
    pub fn netlink() -> SockAddr {
        let mut bytes = [0; 28];
        bytes[..2].copy_from_slice(&(libc::AF_NETLINK as u16).to_ne_bytes());
        SockAddr { bytes, len: 12 }
    }

    /// `sockaddr_ll`: every protocol on one interface.
    pub fn packet(ifindex: u32) -> SockAddr {
        let mut bytes = [0; 28];
        bytes[..2].copy_from_slice(&(libc::AF_PACKET as u16).to_ne_bytes());
        bytes[2..4].copy_from_slice(&(libc::ETH_P_ALL as u16).to_be_bytes());
        bytes[4..8].copy_from_slice(&ifindex.to_ne_bytes());
        SockAddr { bytes, len: 20 }
    }

    /// Size of the largest address.
    pub const MAX: usize = 28;

    /// `sockaddr_in` or `sockaddr_in6`.
    pub fn inet(address: std::net::SocketAddr) -> SockAddr {
        let mut bytes = [0; 28];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address.ip() {
            std::net::IpAddr::V4(ip) => {
                bytes[4..8].copy_from_slice(&ip.octets());
                (libc::AF_INET, 16)
            }
            std::net::IpAddr::V6(ip) => {
                bytes[8..24].copy_from_slice(&ip.octets());
                (libc::AF_INET6, 28)
            }
        };
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        SockAddr { bytes, len }
    }
}

/// What a packet socket has received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Of the whole frame, also where the buffer is shorter.
    pub len: usize,
    /// Bytes of ancillary data.
    pub control: usize,
    /// The node sent it.
    pub is_outgoing: bool,
}

/// struct sock_filter: one instruction of classic BPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// Of struct sockaddr_ll: who sent the frame.
const SLL_PKTTYPE: usize = 10;

/// The names in what getdents64() has written: struct linux_dirent64, its length at byte 16, its name from byte 19 on.
fn entry_names(mut entries: &[u8]) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    while let Some(len) = entries.get(16..18) {
        let len = usize::from(u16::from_ne_bytes([len[0], len[1]]));
        let Some(name) = entries.get(19..len) else {
            break;
        };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
        entries = &entries[len..];
    }
    names
}

/// The calls of a thread that has a task.
impl Thread {
    fn linux(&mut self, nr: libc::c_long, args: [u64; 6]) -> Result<i64> {
        // SAFETY: the functions below pass addresses of borrowed memory with its true length,
        // alive until the call returns.
        unsafe { self.call(nr as u64, args) }
    }

    fn ring3(&mut self, nr: u64, args: [u64; 6]) -> Result<i64> {
        // SAFETY: as above.
        unsafe { self.call(nr, args) }
    }

    pub fn open(&mut self, path: &CStr, flags: i32) -> Result<i32> {
        let dir = libc::AT_FDCWD as i64 as u64;
        let args = [dir, path.as_ptr() as u64, flags as u64, 0, 0, 0];
        self.linux(libc::SYS_openat, args).map(|fd| fd as i32)
    }

    /// Makes a file with this content in the node's root file system.
    pub fn write_file(&mut self, path: &CStr, content: &[u8]) -> Result<()> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
        let dir = libc::AT_FDCWD as i64 as u64;
        let args = [dir, path.as_ptr() as u64, flags as u64, 0o644, 0, 0];
        let fd = self.linux(libc::SYS_openat, args)? as i32;
        let mut rest = content;
        let mut done = Ok(());
        while !rest.is_empty() && done.is_ok() {
            done = self.write(fd, rest).map(|len| rest = &rest[len..]);
        }
        self.close(fd).and(done)
    }

    /// The content of a file in the node's root file system; EFBIG if that is more than `max`
    /// bytes.
    pub fn read_file(&mut self, path: &CStr, max: usize) -> Result<Vec<u8>> {
        // If a program has put a FIFO there, the keeper must not wait for it.
        let fd = self.open(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
        let mut content = Vec::new();
        let mut part = vec![0; 1 << 16];
        let done = loop {
            match self.read(fd, &mut part) {
                Ok(0) => break Ok(()),
                Ok(len) => content.extend_from_slice(&part[..len]),
                Err(why) => break Err(why),
            }
            if content.len() > max {
                break Err(Errno(libc::EFBIG));
            }
        };
        self.close(fd).and(done).map(|()| content)
    }

    /// Replaces one file by another.
    pub fn rename(&mut self, from: &CStr, to: &CStr) -> Result<()> {
        let dir = libc::AT_FDCWD as i64 as u64;
        let (from, to) = (from.as_ptr() as u64, to.as_ptr() as u64);
        self.linux(libc::SYS_renameat, [dir, from, dir, to, 0, 0])
            .map(drop)
    }

    /// Makes a folder, unless it exists.
    pub fn make_folder(&mut self, path: &CStr) -> Result<()> {
        let dir = libc::AT_FDCWD as i64 as u64;
        let args = [dir, path.as_ptr() as u64, 0o755, 0, 0, 0];
        match self.linux(libc::SYS_mkdirat, args) {
            Ok(_) | Err(Errno(libc::EEXIST)) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// mount(2) without a type and data.
    pub fn mount(&mut self, source: &CStr, target: &CStr, flags: u64) -> Result<()> {
        let (source, target) = (source.as_ptr() as u64, target.as_ptr() as u64);
        self.linux(libc::SYS_mount, [source, target, 0, flags, 0, 0])
            .map(drop)
    }

    /// Gives this thread's task a network namespace of its own.
    pub fn new_network(&mut self) -> Result<()> {
        let flags = libc::CLONE_NEWNET as u64;
        self.linux(libc::SYS_unshare, [flags, 0, 0, 0, 0, 0])
            .map(drop)
    }

    /// Moves this thread's task to the network namespace that `fd` is a file of.
    pub fn enter_network(&mut self, fd: i32) -> Result<()> {
        let flags = libc::CLONE_NEWNET as u64;
        self.linux(libc::SYS_setns, [fd as u64, flags, 0, 0, 0, 0])
            .map(drop)
    }

    pub fn close(&mut self, fd: i32) -> Result<()> {
        self.linux(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    pub fn write(&mut self, fd: i32, data: &[u8]) -> Result<usize> {
        let args = [fd as u64, data.as_ptr() as u64, data.len() as u64, 0, 0, 0];
        self.linux(libc::SYS_write, args).map(|n| n as usize)
    }

    pub fn read(&mut self, fd: i32, data: &mut [u8]) -> Result<usize> {
        let (at, len) = (data.as_mut_ptr() as u64, data.len() as u64);
        self.linux(libc::SYS_read, [fd as u64, at, len, 0, 0, 0])
            .map(|n| n as usize)
    }

    pub fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i32> {
        let args = [domain as u64, kind as u64, protocol as u64, 0, 0, 0];
        self.linux(libc::SYS_socket, args).map(|fd| fd as i32)
    }

    pub fn bind(&mut self, fd: i32, address: &SockAddr) -> Result<()> {
        let at = address.bytes.as_ptr() as u64;
        self.linux(libc::SYS_bind, [fd as u64, at, address.len as u64, 0, 0, 0])?;
        Ok(())
    }

    pub fn connect(&mut self, fd: i32, to: &SockAddr) -> Result<()> {
        let at = to.bytes.as_ptr() as u64;
        self.linux(libc::SYS_connect, [fd as u64, at, to.len as u64, 0, 0, 0])?;
        Ok(())
    }

    pub fn set_option(&mut self, fd: i32, level: i32, option: i32, value: i32) -> Result<()> {
        let at = &raw const value as u64;
        let args = [fd as u64, level as u64, option as u64, at, 4, 0];
        self.linux(libc::SYS_setsockopt, args)?;
        Ok(())
    }

    pub fn send_to(&mut self, fd: i32, data: &[u8], to: &SockAddr) -> Result<usize> {
        let args = [
            fd as u64,
            data.as_ptr() as u64,
            data.len() as u64,
            libc::MSG_NOSIGNAL as u64,
            to.bytes.as_ptr() as u64,
            to.len as u64,
        ];
        self.linux(libc::SYS_sendto, args).map(|n| n as usize)
    }

    /// The whole length of the datagram is returned with MSG_TRUNC, also when it was cut.
    pub fn recv(&mut self, fd: i32, data: &mut [u8], flags: i32) -> Result<usize> {
        let (at, len) = (data.as_mut_ptr() as u64, data.len() as u64);
        self.linux(libc::SYS_recvfrom, [fd as u64, at, len, flags as u64, 0, 0])
            .map(|n| n as usize)
    }

    /// recvmsg of a packet socket, with the ancillary data the caller has room for.
    pub fn recv_frame(
        &mut self,
        fd: i32,
        data: &mut [u8],
        control: &mut [u8],
        flags: i32,
    ) -> Result<Frame> {
        let mut part = libc::iovec {
            iov_base: data.as_mut_ptr().cast(),
            iov_len: data.len(),
        };
        // SAFETY: msghdr is plain data, for which all zeroes is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        let mut from = [0u8; SockAddr::MAX];
        message.msg_name = from.as_mut_ptr().cast();
        message.msg_namelen = from.len() as u32;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        // Its type differs between C libraries.
        message.msg_controllen = control.len() as _;
        let args = [fd as u64, &raw mut message as u64, flags as u64, 0, 0, 0];
        let bytes = self.linux(libc::SYS_recvmsg, args)?;
        Ok(Frame {
            len: bytes as usize,
            control: message.msg_controllen as usize,
            is_outgoing: from[SLL_PKTTYPE] == libc::PACKET_OUTGOING,
        })
    }

    /// A classic BPF program decides what the socket receives.
    pub fn attach_filter(&mut self, fd: i32, filter: &[Instruction]) -> Result<()> {
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            // The kernel copies it.
            filter: filter.as_ptr().cast_mut().cast(),
        };
        let (level, option) = (libc::SOL_SOCKET as u64, libc::SO_ATTACH_FILTER as u64);
        let (at, len) = (
            &raw const program as u64,
            size_of::<libc::sock_fprog>() as u64,
        );
        self.linux(libc::SYS_setsockopt, [fd as u64, level, option, at, len, 0])?;
        Ok(())
    }

    /// A blocking receive ends with EAGAIN after this time.
    pub fn set_receive_timeout(&mut self, fd: i32, time: Duration) -> Result<()> {
        let value = [time.as_secs(), time.subsec_micros().into()];
        let (level, option) = (libc::SOL_SOCKET as u64, libc::SO_RCVTIMEO as u64);
        let (at, len) = (value.as_ptr() as u64, size_of_val(&value) as u64);
        self.linux(libc::SYS_setsockopt, [fd as u64, level, option, at, len, 0])?;
        Ok(())
    }

    /// The names in a folder of the node.
    pub fn names_in(&mut self, path: &CStr) -> Result<Vec<Vec<u8>>> {
        let fd = self.open(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let mut names = Vec::new();
        let mut entries = vec![0u8; 1 << 15];
        let done = loop {
            let (at, len) = (entries.as_mut_ptr() as u64, entries.len() as u64);
            match self.linux(libc::SYS_getdents64, [fd as u64, at, len, 0, 0, 0]) {
                Ok(0) => break Ok(()),
                Ok(bytes) => names.extend(entry_names(&entries[..bytes as usize])),
                Err(why) => break Err(why),
            }
        };
        self.close(fd).and(done).map(|()| names)
    }

    /// Where a symbolic link of the node leads; cut at 255 bytes.
    pub fn read_link(&mut self, path: &CStr) -> Result<Vec<u8>> {
        let mut to = vec![0u8; 255];
        let dir = libc::AT_FDCWD as i64 as u64;
        let (path, at) = (path.as_ptr() as u64, to.as_mut_ptr() as u64);
        let args = [dir, path, at, to.len() as u64, 0, 0];
        let bytes = self.linux(libc::SYS_readlinkat, args)?;
        to.truncate(bytes as usize);
        Ok(to)
    }

    /// Makes a task for process `host_pid`; returns its thread block.
    pub fn spawn(&mut self, host_pid: i32) -> Result<u64> {
        self.ring3(RING3_NR_SPAWN, [host_pid as u64, 0, 0, 0, 0, 0])
            .map(|block| block as u64)
    }

    /// The host process of this struct ring3_proc has ended.
    pub fn reap(&mut self, proc: u64) -> Result<()> {
        self.ring3(RING3_NR_REAP, [proc, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    /// The address of the adopter's thread block.
    pub fn adopter(&mut self) -> Result<u64> {
        Ok(self.ring3(RING3_NR_ADOPTER, [0; 6])? as u64)
    }

    /// Forgets a parked descriptor; `ENOENT`: there is none of this key.
    pub fn forget(&mut self, key: u64) -> Result<()> {
        self.ring3(RING3_NR_UNPARK, [key, -1i64 as u64, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Makes a network interface; returns its ifindex.
    pub fn port_add(&mut self, config: &ring3_port_config) -> Result<u32> {
        let at = config as *const _ as u64;
        self.ring3(RING3_NR_PORT_ADD, [at, 0, 0, 0, 0, 0])
            .map(|index| index as u32)
    }

    pub fn port_del(&mut self, index: usize) -> Result<()> {
        self.ring3(RING3_NR_PORT_DEL, [index as u64, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Reads the kernel log from record `*seq` on, in whole lines; advances `*seq`.
    pub fn log_read(&mut self, data: &mut [u8], seq: &mut u64) -> Result<usize> {
        let (at, len) = (data.as_mut_ptr() as u64, data.len() as u64);
        let seq = seq as *mut u64 as u64;
        self.ring3(RING3_NR_LOG_READ, [at, len, seq, 0, 0, 0])
            .map(|n| n as usize)
    }

    /// Ends this thread's task; its block belongs to the node again.
    pub fn exit_group(mut self) -> Result<()> {
        self.ring3(RING3_NR_EXIT_GROUP, [0; 6])?;
        Ok(())
    }

    /// The keeper's loop for one vCPU; returns when the node is down or poisoned.
    pub fn keep(&mut self, vcpu: usize) -> Result<()> {
        self.ring3(RING3_NR_KEEP, [vcpu as u64, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Runs what is pending.
    pub fn drive(&mut self) -> Result<()> {
        self.ring3(RING3_NR_DRIVE, [0; 6])?;
        Ok(())
    }
}

/// Calls that only tests make.
#[cfg(test)]
impl Thread {
    /// Reads a clock of the node, in nanoseconds.
    pub fn clock(&mut self, clock: libc::clockid_t) -> Result<u64> {
        let mut time = [0u64; 2];
        let args = [clock as u64, time.as_mut_ptr() as u64, 0, 0, 0, 0];
        self.linux(libc::SYS_clock_gettime, args)?;
        Ok(time[0] * 1_000_000_000 + time[1])
    }

    pub fn read_at_address(&mut self, address: u64) -> Result<i64> {
        self.linux(libc::SYS_read, [0, address, 8, 0, 0, 0])
    }
}
