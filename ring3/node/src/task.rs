// SPDX-License-Identifier: GPL-2.0
//! A thread of this process that is a task of a node: sockets and epoll, for a relay. Unsafe leaf.
//!
//! Each function is the Linux call of its name, on the node: same arguments, same errors.
//! Descriptors are the node's and unrelated to this process's; they end with the node.
#![allow(unsafe_code)]

use std::mem::{size_of, zeroed};
use std::net::SocketAddr;

use ring3_abi::*;

use crate::calls::SockAddr;
use crate::error::Errno;
use crate::image::Thread;

type Result<T> = std::result::Result<T, Errno>;

/// A descriptor of the node.
pub type Fd = i32;

/// One event of the node's epoll: EPOLL* bits, and the data that was added with the descriptor.
pub type Event = libc::epoll_event;

/// Ancillary data of one datagram: its original destination, and more if the socket asks for it.
const CONTROL_BYTES: usize = 128;
/// <linux/in.h>, <linux/in6.h>
const IP_ORIGDSTADDR: i32 = 20;
const IPV6_ORIGDSTADDR: i32 = 74;

#[derive(Debug)]
pub struct Task(Thread);

/// Statistics of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round trip time.
    pub rtt_us: u32,
    /// Segments that were retransmitted.
    pub retransmits: u32,
}

/// A datagram as the node received it.
#[derive(Debug, Clone, Copy)]
pub struct Datagram {
    pub len: usize,
    pub from: SocketAddr,
    pub to: SocketAddr,
}

impl Task {
    pub(crate) fn new(thread: Thread) -> Task {
        Task(thread)
    }

    /// From now on nothing in this process can change the text of the node's kernel.
    pub fn fix_text(&self) -> crate::error::Result<()> {
        self.0.region().fix_text()
    }

    /// Another thread of the same process, with the same descriptors.
    pub fn helper(&mut self) -> Result<Task> {
        let flags = libc::CLONE_THREAD | libc::CLONE_FILES | libc::CLONE_VM | libc::CLONE_SIGHAND;
        let block = self.call(RING3_NR_CLONE, [flags as u64, 0, 0, 0, 0, 0])?;
        let region = self.0.region().clone();
        Ok(Task(Thread::spawned(&region, block as u64)))
    }

    fn call(&mut self, nr: u64, args: [u64; 6]) -> Result<i64> {
        // SAFETY: the functions below pass addresses of borrowed memory with its true length,
        // alive until the call returns.
        unsafe { self.0.call(nr, args) }
    }

    fn linux(&mut self, nr: libc::c_long, args: [u64; 6]) -> Result<i64> {
        self.call(nr as u64, args)
    }

    /// A socket that does not block.
    pub fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<Fd> {
        self.0.socket(domain, kind | libc::SOCK_NONBLOCK, protocol)
    }

    pub fn set_option(&mut self, fd: Fd, level: i32, option: i32, value: i32) -> Result<()> {
        self.0.set_option(fd, level, option, value)
    }

    /// The socket's next close sends a reset.
    pub fn reset_at_close(&mut self, fd: Fd) -> Result<()> {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let (at, len) = (&raw const linger as u64, size_of::<libc::linger>() as u64);
        let (level, option) = (libc::SOL_SOCKET as u64, libc::SO_LINGER as u64);
        self.linux(libc::SYS_setsockopt, [fd as u64, level, option, at, len, 0])?;
        Ok(())
    }

    /// SO_ERROR: the pending error, or 0.
    pub fn take_error(&mut self, fd: Fd) -> Result<i32> {
        let (mut error, mut len) = (0i32, 4u32);
        let (level, option) = (libc::SOL_SOCKET as u64, libc::SO_ERROR as u64);
        let (at, len) = (&raw mut error as u64, &raw mut len as u64);
        self.linux(libc::SYS_getsockopt, [fd as u64, level, option, at, len, 0])?;
        Ok(error)
    }

    /// TCP_INFO of a connection.
    pub fn tcp_info(&mut self, fd: Fd) -> Result<TcpInfo> {
        // Eight bytes, then words of four (struct tcp_info of <linux/tcp.h>).
        const RTT: usize = 2 + 15;
        const TOTAL_RETRANS: usize = 2 + 23;
        let mut words = [0u32; TOTAL_RETRANS + 1];
        let mut len = size_of_val(&words) as u32;
        let (level, option) = (libc::IPPROTO_TCP as u64, libc::TCP_INFO as u64);
        let (at, len_at) = (words.as_mut_ptr() as u64, &raw mut len as u64);
        let args = [fd as u64, level, option, at, len_at, 0];
        self.linux(libc::SYS_getsockopt, args)?;
        Ok(TcpInfo {
            rtt_us: words[RTT],
            retransmits: words[TOTAL_RETRANS],
        })
    }

    pub fn bind(&mut self, fd: Fd, address: SocketAddr) -> Result<()> {
        self.0.bind(fd, &SockAddr::inet(address))
    }

    pub fn connect(&mut self, fd: Fd, to: SocketAddr) -> Result<()> {
        self.0.connect(fd, &SockAddr::inet(to))
    }

    pub fn listen(&mut self, fd: Fd, backlog: i32) -> Result<()> {
        self.linux(libc::SYS_listen, [fd as u64, backlog as u64, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Accepts a connection; returns its peer's address, too.
    pub fn accept(&mut self, fd: Fd) -> Result<(Fd, SocketAddr)> {
        let (mut name, mut len) = ([0u8; SockAddr::MAX], SockAddr::MAX as u32);
        let (at, len) = (name.as_mut_ptr() as u64, &raw mut len as u64);
        let flags = (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) as u64;
        let fd = self.linux(libc::SYS_accept4, [fd as u64, at, len, flags, 0, 0])? as Fd;
        match address(&name) {
            Some(from) => Ok((fd, from)),
            None => self.close(fd).and(Err(Errno(libc::EAFNOSUPPORT))),
        }
    }

    /// The socket's own address.
    pub fn name(&mut self, fd: Fd) -> Result<SocketAddr> {
        let (mut name, mut len) = ([0u8; SockAddr::MAX], SockAddr::MAX as u32);
        let (at, len) = (name.as_mut_ptr() as u64, &raw mut len as u64);
        self.linux(libc::SYS_getsockname, [fd as u64, at, len, 0, 0, 0])?;
        address(&name).ok_or(Errno(libc::EAFNOSUPPORT))
    }

    pub fn shut_down_writing(&mut self, fd: Fd) -> Result<()> {
        let how = libc::SHUT_WR as u64;
        self.linux(libc::SYS_shutdown, [fd as u64, how, 0, 0, 0, 0])?;
        Ok(())
    }

    pub fn close(&mut self, fd: Fd) -> Result<()> {
        self.0.close(fd)
    }

    pub fn send(&mut self, fd: Fd, data: &[u8]) -> Result<usize> {
        let (at, len) = (data.as_ptr() as u64, data.len() as u64);
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) as u64;
        self.linux(libc::SYS_sendto, [fd as u64, at, len, flags, 0, 0])
            .map(|n| n as usize)
    }

    pub fn send_to(&mut self, fd: Fd, data: &[u8], to: SocketAddr) -> Result<usize> {
        self.0.send_to(fd, data, &SockAddr::inet(to))
    }

    /// Sends to the node's kernel, over a netlink socket.
    pub fn send_netlink(&mut self, fd: Fd, data: &[u8]) -> Result<usize> {
        self.0.send_to(fd, data, &SockAddr::netlink())
    }

    pub fn recv(&mut self, fd: Fd, data: &mut [u8]) -> Result<usize> {
        self.recv_with(fd, data, 0)
    }

    /// The same with flags: MSG_PEEK does not consume what is read.
    pub fn recv_with(&mut self, fd: Fd, data: &mut [u8], flags: i32) -> Result<usize> {
        self.0.recv(fd, data, libc::MSG_DONTWAIT | flags)
    }

    /// The same, with the sender's address.
    pub fn recv_from(&mut self, fd: Fd, data: &mut [u8]) -> Result<(usize, Option<SocketAddr>)> {
        let mut name = [0u8; SockAddr::MAX];
        let mut name_len = SockAddr::MAX as u32;
        let (at, len) = (data.as_mut_ptr() as u64, data.len() as u64);
        let flags = libc::MSG_DONTWAIT as u64;
        let (from, from_len) = (name.as_mut_ptr() as u64, &raw mut name_len as u64);
        let args = [fd as u64, at, len, flags, from, from_len];
        let len = self.linux(libc::SYS_recvfrom, args)? as usize;
        Ok((len, address(&name)))
    }

    /// Receives a datagram from a socket with IP_RECVORIGDSTADDR (IPV6_RECVORIGDSTADDR).
    pub fn recv_datagram(&mut self, fd: Fd, data: &mut [u8]) -> Result<Datagram> {
        let mut name = [0u8; SockAddr::MAX];
        let mut control = [0u64; CONTROL_BYTES / 8];
        let mut part = libc::iovec {
            iov_base: data.as_mut_ptr().cast(),
            iov_len: data.len(),
        };
        // SAFETY: msghdr is plain data, for which all zeroes is a value.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_name = name.as_mut_ptr().cast();
        message.msg_namelen = SockAddr::MAX as u32;
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        // Its type differs between C libraries.
        message.msg_controllen = CONTROL_BYTES as _;
        let flags = libc::MSG_DONTWAIT as u64;
        let args = [fd as u64, &raw mut message as u64, flags, 0, 0, 0];
        let len = self.linux(libc::SYS_recvmsg, args)? as usize;
        let used = (message.msg_controllen as usize).min(CONTROL_BYTES);
        let bytes: Vec<u8> = control.iter().flat_map(|word| word.to_ne_bytes()).collect();
        match (address(&name), original(&bytes[..used])) {
            (Some(from), Some(to)) => Ok(Datagram { len, from, to }),
            _ => Err(Errno(libc::EAFNOSUPPORT)),
        }
    }

    /// Makes an epoll set.
    pub fn epoll(&mut self) -> Result<Fd> {
        let flags = libc::EPOLL_CLOEXEC as u64;
        self.linux(libc::SYS_epoll_create1, [flags, 0, 0, 0, 0, 0])
            .map(|fd| fd as Fd)
    }

    pub fn epoll_add(&mut self, set: Fd, fd: Fd, events: u32, data: u64) -> Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        let (op, at) = (libc::EPOLL_CTL_ADD as u64, &raw mut event as u64);
        self.linux(libc::SYS_epoll_ctl, [set as u64, op, fd as u64, at, 0, 0])?;
        Ok(())
    }

    /// Rearms a member that was reported once (EPOLLONESHOT).
    pub fn epoll_modify(&mut self, set: Fd, fd: Fd, events: u32, data: u64) -> Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        let (op, at) = (libc::EPOLL_CTL_MOD as u64, &raw mut event as u64);
        self.linux(libc::SYS_epoll_ctl, [set as u64, op, fd as u64, at, 0, 0])?;
        Ok(())
    }

    /// Waits for at most `timeout_ms` (-1: for ever); returns the number of events.
    pub fn epoll_wait(&mut self, set: Fd, events: &mut [Event], timeout_ms: i32) -> Result<usize> {
        let (at, len) = (events.as_mut_ptr() as u64, events.len() as u64);
        let timeout = timeout_ms as i64 as u64;
        self.linux(libc::SYS_epoll_wait, [set as u64, at, len, timeout, 0, 0])
            .map(|n| n as usize)
    }

    /// Makes a file at number `fd` whose readiness [`Task::proxy_set`] sets: it stands for a
    /// descriptor of the host in the node's epoll.
    pub fn proxy(&mut self, fd: Fd) -> Result<()> {
        self.call(RING3_NR_PROXY, [fd as u64, 0, 0, 0, 0, 0])?;
        Ok(())
    }

    /// Makes it readable, with an edge for waiters.
    pub fn proxy_set(&mut self, fd: Fd) -> Result<()> {
        let mask = libc::EPOLLIN as u64;
        self.call(RING3_NR_PROXY_SET, [fd as u64, mask, 0, 0, 0, 0])?;
        Ok(())
    }

    pub fn proxy_clear(&mut self, fd: Fd) -> Result<()> {
        self.call(RING3_NR_PROXY_CLEAR, [fd as u64, 0, 0, 0, 0, 0])?;
        Ok(())
    }
}

/// `sockaddr_in` or `sockaddr_in6`.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((ip, port).into())
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((ip, port).into())
        }
        _ => None,
    }
}

/// The original destination in ancillary data: a length (8 bytes), level and type (4 each), the
/// data, padding to 8.
fn original(mut control: &[u8]) -> Option<SocketAddr> {
    const HEAD: usize = 16;
    while control.len() > HEAD {
        let len = u64::from_ne_bytes(control[..8].try_into().ok()?) as usize;
        let level = i32::from_ne_bytes(control[8..12].try_into().ok()?);
        let kind = i32::from_ne_bytes(control[12..16].try_into().ok()?);
        let data = control.get(HEAD..len)?;
        if matches!(
            (level, kind),
            (libc::SOL_IP, IP_ORIGDSTADDR) | (libc::SOL_IPV6, IPV6_ORIGDSTADDR)
        ) {
            return address(data);
        }
        control = control.get(len.next_multiple_of(8)..)?;
    }
    None
}
