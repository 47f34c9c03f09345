// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: ICMP
//!
//! An error that the host heard for a datagram is a socket's error here; the relay makes an ICMP message of it again, in the
//! destination's name, so that the program's socket gets the same error. An echo request is held like a SYN (hold.rs), and
//! goes out by a socket of the host's for that (`ping_group_range` of icmp(7) says who may have one); the answer is
//! written in the name of who gave it. Where the host gives no such socket, the request is refused as prohibited.
//!
//! Messages leave by two raw sockets of the gateway's node, which take whole packets with any source.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Instant;

use ring3_node::task::{Fd, Task};
use ring3_node::Errno;
use rustix::net::{ipproto, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::sockets::IPV6_TRANSPARENT;
use crate::stream::Next;
use crate::tuning::DATAGRAMS;

const UDP: u8 = libc::IPPROTO_UDP as u8;
const ICMP4: u8 = libc::IPPROTO_ICMP as u8;
const ICMP6: u8 = libc::IPPROTO_ICMPV6 as u8;
/// Types, of IPv4 and IPv6 (RFC 792, RFC 4443).
const UNREACHABLE: [u8; 2] = [3, 1];
const ECHO: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];
const HOPS: u8 = 64;
/// Of an ICMP message, and of IP's two.
const HEAD: usize = 8;
const HEAD4: usize = 20;
const HEAD6: usize = 40;
/// A raw socket cuts no packet: what every link takes (RFC 8200's 1280) less IP's head.
const WHOLE_MAX: usize = 1280 - HEAD6;

/// Why a datagram did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    Network,
    Host,
    Port,
    Prohibited,
}

impl Problem {
    /// `None`: nothing that a wire would report.
    pub fn of(why: Errno) -> Option<Problem> {
        match why.0 {
            libc::ENETUNREACH => Some(Problem::Network),
            libc::EHOSTUNREACH | libc::EHOSTDOWN => Some(Problem::Host),
            libc::ECONNREFUSED => Some(Problem::Port),
            libc::EACCES | libc::EPERM => Some(Problem::Prohibited),
            _ => None,
        }
    }

    /// The codes of "destination unreachable", of IPv4 and IPv6.
    fn codes(self) -> [u8; 2] {
        match self {
            Problem::Network => [0, 0],
            Problem::Host => [1, 3],
            Problem::Port => [3, 4],
            Problem::Prohibited => [13, 1],
        }
    }
}

/// The gateway's node's raw sockets, of IPv4 and IPv6.
#[derive(Debug)]
pub struct Icmp([Fd; 2]);

impl Icmp {
    pub fn open(task: &mut Task) -> Result<Icmp, Errno> {
        let mut open = |family| task.socket(family, libc::SOCK_RAW, libc::IPPROTO_RAW);
        Ok(Icmp([open(libc::AF_INET)?, open(libc::AF_INET6)?]))
    }

    /// Tells a program of a datagram of its own. What a queue does not take is lost, as on any wire.
    pub fn tell(&self, task: &mut Task, (from, to): (SocketAddr, SocketAddr), problem: Problem) {
        let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
        let head = [&ports[..], &(HEAD as u16).to_be_bytes(), &[0, 0]].concat();
        self.report(task, (from.ip(), to.ip()), UDP, &head, problem);
    }

    /// Tells a program of a packet of its own that began so.
    fn report(
        &self,
        task: &mut Task,
        (from, to): (IpAddr, IpAddr),
        protocol: u8,
        began: &[u8],
        problem: Problem,
    ) {
        let v6 = usize::from(to.is_ipv6());
        let Some(lost) = packet(from, to, protocol, began) else {
            return;
        };
        let mut message = vec![UNREACHABLE[v6], problem.codes()[v6], 0, 0, 0, 0, 0, 0];
        message.extend(lost);
        self.send(task, to, from, message);
    }

    /// An ICMP message whose checksum is to be filled in.
    fn send(&self, task: &mut Task, from: IpAddr, to: IpAddr, mut message: Vec<u8>) {
        let v6 = usize::from(to.is_ipv6());
        set_checksum(&mut message, from, to);
        if message.len() > WHOLE_MAX {
            if let Err(why) = send_in_parts(task, from, to, &message) {
                log::debug!("an answer to an echo request was not passed on: {why}");
            }
            return;
        }
        if let Some(packet) = packet(from, to, [ICMP4, ICMP6][v6], &message) {
            let _ = task.send_to(self.0[v6], &packet, SocketAddr::new(to, 0));
        }
    }

    /// The gateway answers for itself.
    pub fn answer(&self, task: &mut Task, echo: &Echo<'_>) {
        let mut message = echo.message.to_vec();
        message[0] = ECHO_REPLY[usize::from(echo.to.is_ipv6())];
        self.send(task, echo.to, echo.from, message);
    }
}

/// By a socket that has the source's name, whose packets the kernel cuts to the link's size.
fn send_in_parts(task: &mut Task, from: IpAddr, to: IpAddr, message: &[u8]) -> Result<(), Errno> {
    let (family, protocol, level, option) = match to.is_ipv6() {
        false => (libc::AF_INET, ICMP4, libc::SOL_IP, libc::IP_TRANSPARENT),
        true => (libc::AF_INET6, ICMP6, libc::SOL_IPV6, IPV6_TRANSPARENT),
    };
    let fd = task.socket(family, libc::SOCK_RAW, protocol.into())?;
    let done = task
        .set_option(fd, level, option, 1)
        .and_then(|()| task.bind(fd, SocketAddr::new(from, 0)))
        .and_then(|()| task.send_to(fd, message, SocketAddr::new(to, 0)));
    task.close(fd).and(done.map(drop))
}

/// A whole packet; `None`: the ends are not of one family.
fn packet(from: IpAddr, to: IpAddr, protocol: u8, data: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Vec::with_capacity(HEAD6 + data.len());
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let len = ((HEAD4 + data.len()) as u16).to_be_bytes();
            packet.extend([0x45, 0, len[0], len[1], 0, 0, 0, 0, HOPS, protocol, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
            let sum = checksum(&packet).to_be_bytes();
            packet[10..12].copy_from_slice(&sum);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let len = (data.len() as u16).to_be_bytes();
            packet.extend([0x60, 0, 0, 0, len[0], len[1], protocol, HOPS]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        _ => return None,
    }
    packet.extend(data);
    Some(packet)
}

/// Internet's checksum (RFC 1071).
fn checksum(data: &[u8]) -> u16 {
    let sum: u64 = data
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn set_checksum(message: &mut [u8], from: IpAddr, to: IpAddr) {
    message[2..4].fill(0);
    let sum = match (from, to) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let len = (message.len() as u32).to_be_bytes();
            let ends = [from.octets(), to.octets()].concat();
            checksum(&[&ends[..], &len, &[0, 0, 0, ICMP6], message].concat())
        }
        _ => checksum(message),
    };
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// An echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    pub ident: u16,
    message: &'a [u8],
}

impl Echo<'_> {
    /// Of a packet that begins with its IP header.
    pub fn parse(packet: &[u8]) -> Option<Echo<'_>> {
        let bytes = |at: usize, len: usize| packet.get(at..at + len);
        let half = |at: usize| bytes(at, 2).map(|it| u16::from_be_bytes([it[0], it[1]]));
        let (from, to, at, end, v6) = match packet.first()? >> 4 {
            // Not a fragment.
            4 if packet.get(9) == Some(&ICMP4) && half(6)? & 0x3fff == 0 => {
                let ip = |at| Some(IpAddr::from(<[u8; 4]>::try_from(bytes(at, 4)?).ok()?));
                let at = usize::from(packet[0] & 15) * 4;
                (ip(12)?, ip(16)?, at.max(HEAD4), half(2)?.into(), 0)
            }
            6 if packet.get(6) == Some(&ICMP6) => {
                let ip = |at| Some(IpAddr::from(<[u8; 16]>::try_from(bytes(at, 16)?).ok()?));
                (ip(8)?, ip(24)?, HEAD6, HEAD6 + usize::from(half(4)?), 1)
            }
            _ => return None,
        };
        let message = packet.get(at..end)?;
        let is_echo = message.len() >= HEAD && message[..2] == [ECHO[v6], 0];
        is_echo.then(|| Echo {
            from,
            to,
            ident: u16::from_be_bytes([message[4], message[5]]),
            message,
        })
    }
}

/// A program's echo requests of one number to one destination.
#[derive(Debug)]
pub struct Ping {
    pub host: OwnedFd,
    from: IpAddr,
    to: IpAddr,
    ident: u16,
    pub last: Instant,
}

pub type PingKey = (IpAddr, IpAddr, u16);

impl Ping {
    /// `EACCES`: the host lets this user send none.
    pub fn new(echo: &Echo<'_>) -> Result<Ping, Errno> {
        let (family, protocol) = match echo.to {
            IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let host = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(protocol))?;
        crate::flow::hear_errors(&host, echo.to.is_ipv6())?;
        rustix::net::connect(&host, &SocketAddr::new(echo.to, 0))?;
        Ok(Ping {
            host,
            from: echo.from,
            to: echo.to,
            ident: echo.ident,
            last: Instant::now(),
        })
    }

    pub fn key(&self) -> PingKey {
        (self.from, self.to, self.ident)
    }

    pub fn send(&mut self, task: &mut Task, icmp: &Icmp, echo: &Echo<'_>) {
        self.last = Instant::now();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        for _ in 0..2 {
            // An error of an earlier one is reported once, and this one not sent.
            match rustix::net::send(&self.host, echo.message, flags) {
                Ok(_) => return,
                Err(why) => self.fail(task, icmp, why.into()),
            }
        }
    }

    fn fail(&self, task: &mut Task, icmp: &Icmp, why: Errno) {
        crate::flow::forget_errors(&self.host);
        let Some(problem) = Problem::of(why) else {
            return;
        };
        let v6 = usize::from(self.to.is_ipv6());
        let ident = self.ident.to_be_bytes();
        let began = [ECHO[v6], 0, 0, 0, ident[0], ident[1], 0, 0];
        let protocol = [ICMP4, ICMP6][v6];
        icmp.report(task, (self.from, self.to), protocol, &began, problem);
    }

    /// Passes on the answers.
    pub fn pump(&mut self, task: &mut Task, icmp: &Icmp, chunk: &mut [u8]) -> Next {
        for _ in 0..DATAGRAMS {
            match rustix::net::recv(&self.host, &mut *chunk, RecvFlags::DONTWAIT) {
                Ok((len, _)) => {
                    let v6 = usize::from(self.to.is_ipv6());
                    if len < HEAD || chunk[0] != ECHO_REPLY[v6] {
                        continue;
                    }
                    let mut message = chunk[..len].to_vec();
                    message[4..6].copy_from_slice(&self.ident.to_be_bytes());
                    icmp.send(task, self.to, self.from, message);
                }
                Err(rustix::io::Errno::AGAIN) => return Next::Wait,
                Err(why) => self.fail(task, icmp, why.into()),
            }
        }
        Next::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(from: &str, to: &str) -> (IpAddr, IpAddr) {
        (from.parse().unwrap(), to.parse().unwrap())
    }

    #[test]
    fn echoes_of_both_families() {
        for ((from, to), kind, protocol) in [
            (ends("10.0.2.15", "192.0.2.1"), 8, ICMP4),
            (ends("fd00::15", "2001:db8::1"), 128, ICMP6),
        ] {
            let message = [kind, 0, 0, 0, 1, 2, 0, 1, b'x'];
            let whole = packet(from, to, protocol, &message).unwrap();
            let echo = Echo::parse(&whole).unwrap();
            assert_eq!((echo.from, echo.to, echo.ident), (from, to, 0x102));
            assert_eq!(echo.message, message);
            for len in 0..whole.len() {
                assert_eq!(Echo::parse(&whole[..len]), None, "{len}");
            }
            let mut other = whole.clone();
            let at = whole.len() - message.len();
            other[at] = 0;
            assert_eq!(Echo::parse(&other), None);
        }
        let mut fragment = packet(
            "10.0.2.15".parse().unwrap(),
            "192.0.2.1".parse().unwrap(),
            ICMP4,
            &[8, 0, 0, 0, 0, 1, 0, 1],
        )
        .unwrap();
        fragment[6] = 0x20;
        assert_eq!(Echo::parse(&fragment), None);
    }

    #[test]
    fn checksums() {
        // RFC 1071's example, and an odd length.
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), 0x220d);
        assert_eq!(checksum(&[1]), !0x100);
        let (from, to) = ends("fd00::15", "2001:db8::1");
        let mut message = vec![128, 0, 9, 9, 1, 2, 0, 1];
        set_checksum(&mut message, from, to);
        let sum = [message[2], message[3]];
        set_checksum(&mut message, from, to);
        assert_eq!(sum, [message[2], message[3]]);
    }
}
