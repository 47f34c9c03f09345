// SPDX-License-Identifier: GPL-2.0
//! The sockets that connections and flows are made of, on either side.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use ring3_node::inside::RELAY_PORT;
use ring3_node::task::{Fd, Task};
use ring3_node::Errno;
use rustix::net::{sockopt, AddressFamily, SocketFlags, SocketType};

use crate::tuning::{ALIVE_IDLE, ALIVE_TURN, ALIVE_TURNS, FIRST_DATAGRAMS_BYTES};

/// <linux/in6.h>; the libc crate has it not for all C libraries.
pub const IPV6_TRANSPARENT: i32 = 75;
const IPV6_RECVORIGDSTADDR: i32 = 74;
const IP_RECVORIGDSTADDR: i32 = 20;

/// A socket of the node that speaks in the name of any address.
pub fn transparent(task: &mut Task, is_v6: bool, kind: i32) -> Result<Fd, Errno> {
    let (domain, level, option) = match is_v6 {
        false => (libc::AF_INET, libc::SOL_IP, libc::IP_TRANSPARENT),
        true => (libc::AF_INET6, libc::SOL_IPV6, IPV6_TRANSPARENT),
    };
    let fd = task.socket(domain, kind, 0)?;
    let set = |task: &mut Task| {
        task.set_option(fd, level, option, 1)?;
        task.set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        match is_v6 {
            true => task.set_option(fd, libc::SOL_IPV6, libc::IPV6_V6ONLY, 1),
            false => Ok(()),
        }
    };
    match set(task) {
        Ok(()) => Ok(fd),
        Err(why) => task.close(fd).and(Err(why)),
    }
}

/// The socket that nft.rs gives all connections, or datagrams, of a family to.
pub fn socket_for_all(task: &mut Task, is_v6: bool, kind: i32) -> Result<Fd, Errno> {
    let fd = transparent(task, is_v6, kind)?;
    if kind == libc::SOCK_DGRAM {
        let (level, option) = match is_v6 {
            false => (libc::SOL_IP, IP_RECVORIGDSTADDR),
            true => (libc::SOL_IPV6, IPV6_RECVORIGDSTADDR),
        };
        task.set_option(fd, level, option, 1)?;
        task.set_option(
            fd,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            FIRST_DATAGRAMS_BYTES,
        )?;
    }
    let any: SocketAddr = match is_v6 {
        false => (Ipv4Addr::UNSPECIFIED, RELAY_PORT).into(),
        true => (Ipv6Addr::UNSPECIFIED, RELAY_PORT).into(),
    };
    task.bind(fd, any)?;
    Ok(fd)
}

/// A stream of the host's: no bytes wait for others, and a peer that is gone is noticed.
pub fn ask_for_life(host: &OwnedFd) -> rustix::io::Result<()> {
    sockopt::set_tcp_nodelay(host, true)?;
    sockopt::set_tcp_keepidle(host, ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(host, ALIVE_TURN)?;
    sockopt::set_tcp_keepcnt(host, ALIVE_TURNS)?;
    sockopt::set_socket_keepalive(host, true)
}

/// A socket of the host; whether it is connected already.
pub fn connect(to: SocketAddr, kind: SocketType) -> rustix::io::Result<(OwnedFd, bool)> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) => Ok((socket, true)),
        Err(rustix::io::Errno::INPROGRESS) => Ok((socket, false)),
        Err(why) => Err(why),
    }
}
