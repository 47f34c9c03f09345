// SPDX-License-Identifier: GPL-2.0
//! Asking a kernel for its connections, queues and interfaces. Layouts: linux/inet_diag.h, tcp.h (struct tcp_info),
//! rtnetlink.h, gen_stats.h, if_link.h.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    recv, send, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType,
};

const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
/// NLM_F_REQUEST | NLM_F_DUMP
const DUMP: u16 = 0x301;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const HEADER: usize = 16;
const DIAG_REQUEST: usize = 56;
const DIAG_MSG: usize = 72;
const TCMSG: usize = 20;
const IFINFOMSG: usize = 16;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// All states but LISTEN (10) and TIME_WAIT (6).
const STATES: u32 = 0xfff & !(1 << 10) & !(1 << 6);
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const IFLA_IFNAME: u16 = 3;
const IFLA_STATS64: u16 = 23;
const IFLA_OPERSTATE: u16 = 16;
const IF_OPER_UP: u8 = 6;
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;
/// idiag_timer: that of keepalive, and no other before it.
const TIMER_KEEPALIVE: u8 = 2;
const NESTED: u16 = 0x3fff;
const BUFFER: usize = 64 << 10;

/// One connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub congestion: String,
    pub state: u8,
    /// Probes its peer when nothing has come for long (SO_KEEPALIVE).
    pub is_kept: bool,
    /// Packets.
    pub cwnd: u32,
    pub ssthresh: u32,
    /// Microseconds.
    pub rtt: u32,
    pub rttvar: u32,
    pub min_rtt: u32,
    pub unacked: u32,
    pub lost: u32,
    pub retransmits: u32,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    /// Bytes a second.
    pub pacing: u64,
    pub delivery: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    pub interface: i32,
    pub handle: u32,
    pub parent: u32,
    pub kind: String,
    pub bytes: u64,
    pub packets: u32,
    pub waiting: u32,
    pub waiting_bytes: u32,
    pub drops: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    pub index: i32,
    pub name: String,
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
}

/// Sockets within the network namespace in which they were made.
#[derive(Debug)]
pub struct Asker {
    route: OwnedFd,
    diag: OwnedFd,
}

impl Asker {
    pub fn new() -> nix::Result<Asker> {
        let open = |protocol| {
            socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                protocol,
            )
        };
        Ok(Asker {
            route: open(SockProtocol::NetlinkRoute)?,
            diag: open(SockProtocol::NetlinkSockDiag)?,
        })
    }

    pub fn connections(&self) -> nix::Result<Vec<Connection>> {
        let mut all = Vec::new();
        for family in [AF_INET, AF_INET6] {
            let mut body = vec![0; DIAG_REQUEST];
            body[..3].copy_from_slice(&[
                family,
                IPPROTO_TCP,
                (1 << (INET_DIAG_INFO - 1)) | (1 << (INET_DIAG_CONG - 1)),
            ]);
            body[4..8].copy_from_slice(&STATES.to_ne_bytes());
            dump(&self.diag, SOCK_DIAG_BY_FAMILY, &body, |message| {
                all.extend(connection(message))
            })?;
        }
        Ok(all)
    }

    pub fn queues(&self) -> nix::Result<Vec<Queue>> {
        let mut all = Vec::new();
        dump(&self.route, RTM_GETQDISC, &[0; TCMSG], |message| {
            all.extend(queue(message))
        })?;
        Ok(all)
    }

    /// Whether an interface is up whose carrier the kernel has not yet looked at.
    pub fn is_settling(&self) -> nix::Result<bool> {
        let mut found = false;
        dump(&self.route, RTM_GETLINK, &[0; IFINFOMSG], |message| {
            found |= is_settling(message).unwrap_or(false);
        })?;
        Ok(found)
    }

    pub fn interfaces(&self) -> nix::Result<Vec<Interface>> {
        let mut all = Vec::new();
        dump(&self.route, RTM_GETLINK, &[0; IFINFOMSG], |message| {
            all.extend(interface(message))
        })?;
        Ok(all)
    }
}

/// Asks for all of a kind; `take` gets the body of each answer.
fn dump(fd: &OwnedFd, kind: u16, body: &[u8], mut take: impl FnMut(&[u8])) -> nix::Result<()> {
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    send(fd.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let len = match recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(nix::Error::EINTR) => continue,
            other => other?,
        };
        let mut rest = &buffer[..len];
        while let Some(size) = u32_at(rest, 0).map(|size| size as usize) {
            if size < HEADER || size > rest.len() {
                break;
            }
            match u16_at(rest, 4) {
                Some(NLMSG_DONE) => return Ok(()),
                Some(NLMSG_ERROR) => {
                    let errno = u32_at(rest, HEADER).unwrap_or(0) as i32;
                    return Err(nix::Error::from_raw(-errno));
                }
                _ => take(&rest[HEADER..size]),
            }
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Attributes: type and value.
fn attributes(mut rest: &[u8]) -> Vec<(u16, &[u8])> {
    let mut all = Vec::new();
    while let (Some(size), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let size = usize::from(size);
        let Some(value) = rest.get(4..size) else {
            break;
        };
        all.push((kind & NESTED, value));
        rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
    }
    all
}

fn find<'a>(list: &[(u16, &'a [u8])], kind: u16) -> Option<&'a [u8]> {
    list.iter()
        .find(|(k, _)| *k == kind)
        .map(|(_, value)| *value)
}

fn word(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => Some(IpAddr::from(<[u8; 4]>::try_from(bytes.get(..4)?).ok()?)),
        _ => Some(IpAddr::from(<[u8; 16]>::try_from(bytes.get(..16)?).ok()?)),
    }
}

fn connection(body: &[u8]) -> Option<Connection> {
    let family = *body.first()?;
    let port = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let list = attributes(body.get(DIAG_MSG..)?);
    let info = find(&list, INET_DIAG_INFO)?;
    // Offsets in struct tcp_info.
    let n = |at| u32_at(info, at).unwrap_or(0);
    let m = |at| u64_at(info, at).unwrap_or(0);
    Some(Connection {
        // A socket of IPv6 may have a connection of IPv4, whose address is shown as that.
        local: SocketAddr::new(address(family, body.get(8..)?)?.to_canonical(), port(4)?),
        remote: SocketAddr::new(address(family, body.get(24..)?)?.to_canonical(), port(6)?),
        congestion: find(&list, INET_DIAG_CONG).map(word).unwrap_or_default(),
        state: body[1],
        is_kept: body[2] == TIMER_KEEPALIVE,
        unacked: n(24),
        lost: n(32),
        rtt: n(68),
        rttvar: n(72),
        ssthresh: n(76),
        cwnd: n(80),
        retransmits: n(100),
        pacing: m(104),
        bytes_acked: m(120),
        bytes_received: m(128),
        min_rtt: n(148),
        delivery: m(160),
    })
}

fn queue(body: &[u8]) -> Option<Queue> {
    let list = attributes(body.get(TCMSG..)?);
    let stats = attributes(find(&list, TCA_STATS2)?);
    let basic = find(&stats, TCA_STATS_BASIC)?;
    let waiting = find(&stats, TCA_STATS_QUEUE)?;
    Some(Queue {
        interface: u32_at(body, 4)? as i32,
        handle: u32_at(body, 8)?,
        parent: u32_at(body, 12)?,
        kind: find(&list, TCA_KIND).map(word)?,
        bytes: u64_at(basic, 0)?,
        packets: u32_at(basic, 8)?,
        waiting: u32_at(waiting, 0)?,
        waiting_bytes: u32_at(waiting, 4)?,
        drops: u32_at(waiting, 8)?,
    })
}

fn interface(body: &[u8]) -> Option<Interface> {
    let list = attributes(body.get(IFINFOMSG..)?);
    let stats = find(&list, IFLA_STATS64)?;
    let n = |place: usize| u64_at(stats, 8 * place);
    Some(Interface {
        index: u32_at(body, 4)? as i32,
        name: find(&list, IFLA_IFNAME).map(word)?,
        rx_packets: n(0)?,
        tx_packets: n(1)?,
        rx_bytes: n(2)?,
        tx_bytes: n(3)?,
        rx_dropped: n(6)?,
        tx_dropped: n(7)?,
    })
}

fn is_settling(body: &[u8]) -> Option<bool> {
    let flags = u32_at(body, 8)?;
    let list = attributes(body.get(IFINFOMSG..)?);
    let state = *find(&list, IFLA_OPERSTATE)?.first()?;
    Some(flags & (IFF_UP | IFF_LOOPBACK) == IFF_UP && state != IF_OPER_UP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// This process's own network: a connection over loopback is there, with its numbers.
    #[test]
    fn what_the_kernel_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        nix::sys::socket::setsockopt(&near, nix::sys::socket::sockopt::KeepAlive, &true).unwrap();
        let asker = Asker::new().unwrap();
        let all = asker.connections().unwrap();
        let one = all
            .iter()
            .find(|c| c.local == near.local_addr().unwrap())
            .unwrap();
        assert_eq!(one.remote, near.peer_addr().unwrap());
        let other = all.iter().find(|c| c.remote == one.local).unwrap();
        assert!(one.is_kept && !other.is_kept, "{one:?} {other:?}");
        assert!(
            one.cwnd > 0 && one.state == 1 && !one.congestion.is_empty(),
            "{one:?}"
        );
        let interfaces = asker.interfaces().unwrap();
        let lo = interfaces.iter().find(|i| i.name == "lo").unwrap();
        assert!(lo.tx_packets >= 3 && lo.tx_bytes > 100, "{lo:?}");
        asker.queues().unwrap();
    }

    #[test]
    fn an_interface_without_its_carrier_yet() {
        let body = |flags: u32, state: u8| {
            let mut body = vec![0; 8];
            body.extend(flags.to_ne_bytes());
            body.extend([0; 4]);
            body.extend([5, 0, IFLA_OPERSTATE as u8, 0, state, 0, 0, 0]);
            is_settling(&body)
        };
        assert_eq!(body(IFF_UP, 2), Some(true));
        assert_eq!(body(IFF_UP, IF_OPER_UP), Some(false));
        assert_eq!(body(IFF_UP | IFF_LOOPBACK, 0), Some(false));
        assert_eq!(body(0, 2), Some(false));
    }

    #[test]
    fn short_answers_are_none() {
        assert_eq!(connection(&[2; 80]), None);
        assert_eq!(queue(&[0; 21]), None);
        assert_eq!(interface(&[]), None);
        assert!(attributes(&[3, 0, 1, 0]).is_empty());
    }
}
