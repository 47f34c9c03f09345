// SPDX-License-Identifier: GPL-2.0
//! Headers of the PROXY protocol, versions 1 and 2, as HAProxy's doc/proxy-protocol.txt has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_HEAD: usize = 16;
/// Version 1's longest line, with its end.
const V1_MAX: usize = 107;
/// A header with more of TLVs than this is refused: the longest that is in use has a client's certificate.
pub const HEADER_MAX: usize = 8 << 10;

const VERSION_2: u8 = 0x20;
const LOCAL: u8 = 0;
const PROXY: u8 = 1;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// A client's name and the one it called.
pub type Pair = (SocketAddr, SocketAddr);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// It may go on.
    More,
    /// It ends before this byte; `None`: it names no client (a health check, another family).
    Header(usize, Option<Pair>),
    /// This is none.
    Bad,
}

/// What there is of a header.
pub fn parse(bytes: &[u8]) -> Parsed {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes[..known] == SIGNATURE[..known] {
        return match bytes.len() < V2_HEAD {
            true => Parsed::More,
            false => parse_v2(bytes),
        };
    }
    let known = bytes.len().min(6);
    match bytes[..known] == b"PROXY "[..known] {
        true => parse_v1(bytes),
        false => Parsed::Bad,
    }
}

fn parse_v1(bytes: &[u8]) -> Parsed {
    let line = &bytes[..bytes.len().min(V1_MAX)];
    let Some(end) = line.windows(2).position(|two| two == b"\r\n") else {
        return match bytes.len() < V1_MAX {
            true => Parsed::More,
            false => Parsed::Bad,
        };
    };
    let Ok(text) = std::str::from_utf8(&line[..end]) else {
        return Parsed::Bad;
    };
    let words: Vec<&str> = text.split(' ').collect();
    let pair = match words[..] {
        ["PROXY", "UNKNOWN", ..] => return Parsed::Header(end + 2, None),
        ["PROXY", "TCP4", from, to, from_port, to_port] => {
            let ip = |text: &str| text.parse().map(IpAddr::V4).ok();
            names(ip(from), from_port, ip(to), to_port)
        }
        ["PROXY", "TCP6", from, to, from_port, to_port] => {
            let ip = |text: &str| text.parse().map(IpAddr::V6).ok();
            names(ip(from), from_port, ip(to), to_port)
        }
        _ => None,
    };
    match pair {
        Some(pair) => Parsed::Header(end + 2, Some(pair)),
        None => Parsed::Bad,
    }
}

fn names(from: Option<IpAddr>, from_port: &str, to: Option<IpAddr>, to_port: &str) -> Option<Pair> {
    // Without a sign or a leading zero.
    let port = |text: &str| text.parse::<u16>().ok().filter(|it| it.to_string() == text);
    let from = SocketAddr::new(from?, port(from_port)?);
    Some((from, SocketAddr::new(to?, port(to_port)?)))
}

fn parse_v2(bytes: &[u8]) -> Parsed {
    let len = V2_HEAD + usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    if bytes[12] & 0xf0 != VERSION_2 || len > HEADER_MAX {
        return Parsed::Bad;
    }
    if bytes.len() < len {
        return Parsed::More;
    }
    let body = &bytes[V2_HEAD..len];
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let pair = match (bytes[12] & 0xf, bytes[13]) {
        (LOCAL, _) => None,
        (PROXY, TCP4) if body.len() >= 12 => {
            let ip =
                |at: usize| Ipv4Addr::from([body[at], body[at + 1], body[at + 2], body[at + 3]]);
            Some(((ip(0), port(8)).into(), (ip(4), port(10)).into()))
        }
        (PROXY, TCP6) if body.len() >= 36 => {
            let ip = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&body[at..at + 16]);
                Ipv6Addr::from(octets)
            };
            Some(((ip(0), port(32)).into(), (ip(16), port(34)).into()))
        }
        (PROXY, TCP4 | TCP6) => return Parsed::Bad,
        // Another family, which says nothing here.
        (PROXY, _) => None,
        _ => return Parsed::Bad,
    };
    Parsed::Header(len, pair)
}

/// The header that tells a target who its client is, and whom it called.
pub fn make(version: u8, (from, to): Pair) -> Vec<u8> {
    let (from, to) = same_family(from, to);
    match version {
        1 => make_v1(from, to),
        _ => make_v2(from, to),
    }
}

/// A listener for both families has IPv4 addresses in IPv6's clothes.
fn same_family(from: SocketAddr, to: SocketAddr) -> Pair {
    let plain = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
    let (from, to) = (plain(from), plain(to));
    let mapped = |it: SocketAddr| match it.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), it.port()),
        IpAddr::V6(_) => it,
    };
    match from.is_ipv4() == to.is_ipv4() {
        true => (from, to),
        false => (mapped(from), mapped(to)),
    }
}

fn make_v1(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let kind = if from.is_ipv4() { "TCP4" } else { "TCP6" };
    let (a, b) = (from.port(), to.port());
    format!("PROXY {kind} {} {} {a} {b}\r\n", from.ip(), to.ip()).into_bytes()
}

fn make_v2(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut body = Vec::new();
    for ip in [from.ip(), to.ip()] {
        match ip {
            IpAddr::V4(v4) => body.extend(v4.octets()),
            IpAddr::V6(v6) => body.extend(v6.octets()),
        }
    }
    body.extend(from.port().to_be_bytes());
    body.extend(to.port().to_be_bytes());
    let kind = if from.is_ipv4() { TCP4 } else { TCP6 };
    let mut header = SIGNATURE.to_vec();
    header.extend([VERSION_2 | PROXY, kind]);
    header.extend((body.len() as u16).to_be_bytes());
    header.extend(body);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(from: &str, to: &str) -> Pair {
        (from.parse().unwrap(), to.parse().unwrap())
    }

    /// The examples of HAProxy's document, whole and cut anywhere.
    #[test]
    fn headers_may_come_in_parts() {
        let four = pair("192.0.2.1:56324", "198.51.100.1:443");
        let six = pair("[2001:db8::1]:56324", "[2001:db8::2]:443");
        for pair in [four, six] {
            for version in [1, 2] {
                let mut bytes = make(version, pair);
                let len = bytes.len();
                bytes.extend(b"GET / HTTP/1.1\r\n");
                for cut in 0..len {
                    assert_eq!(parse(&bytes[..cut]), Parsed::More, "v{version} {cut}");
                }
                assert_eq!(parse(&bytes), Parsed::Header(len, Some(pair)));
            }
        }
        let line = make(1, four);
        assert_eq!(line, b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n");
        assert_eq!(parse(b"PROXY UNKNOWN\r\nx"), Parsed::Header(15, None));
    }

    #[test]
    fn what_is_no_header() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXY TCP4 192.0.2.1 198.51.100.1 056324 443\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n",
            b"PROXY TCP4 2001:db8::1 198.51.100.1 1 443\r\n",
            b"PROXY TCP6 192.0.2.1 198.51.100.1 1 443\r\n",
            b"PROXY TCP4 192.0.2.1 198.51.100.1 1\r\n",
            b"PROXY UDP4 192.0.2.1 198.51.100.1 1 443\r\n",
            &[b"PROXY ".to_vec(), vec![b'x'; 120]].concat(),
            // Version 1 in a version 2 header; a body that is too short; command 2; one that is too long.
            &[&SIGNATURE[..], &[0x11, TCP4, 0, 12], &[0; 12]].concat(),
            &[&SIGNATURE[..], &[0x21, TCP4, 0, 11], &[0; 11]].concat(),
            &[&SIGNATURE[..], &[0x22, TCP4, 0, 12], &[0; 12]].concat(),
            &[&SIGNATURE[..], &[0x21, TCP4, 0xff, 0xff]].concat(),
        ] {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(parse(bytes), Parsed::Bad, "{text}");
        }
    }

    #[test]
    fn a_health_check_names_nobody() {
        let local = [&SIGNATURE[..], &[0x20, 0, 0, 2], &[1, 2], b"rest"].concat();
        assert_eq!(parse(&local), Parsed::Header(18, None));
        let unix = [&SIGNATURE[..], &[0x21, 0x31, 0, 1], &[9]].concat();
        assert_eq!(parse(&unix), Parsed::Header(17, None));
    }

    #[test]
    fn one_family() {
        let mixed = pair("[::ffff:192.0.2.1]:1", "10.0.0.1:2");
        assert_eq!(make(1, mixed), b"PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\n");
        let mixed = pair("192.0.2.1:1", "[2001:db8::1]:2");
        assert_eq!(
            make(1, mixed),
            b"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::1 1 2\r\n"
        );
    }
}
