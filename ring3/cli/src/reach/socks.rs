// SPDX-License-Identifier: GPL-2.0
//! A listener of the host's whose connections go out from a node: SOCKS version 5 (RFC 1928, CONNECT
//! without authentication) and HTTP's CONNECT (RFC 9110, 9.3.6), told apart by the first byte.
//!
//! Names are looked up on the node. Whoever speaks neither, or nothing within
//! [`PATIENCE`], is closed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
use std::time::Duration;

use super::copy;

/// How long a client may take to say where it wants to go.
const PATIENCE: Duration = Duration::from_secs(10);
/// An HTTP head longer than this is not a proxy's.
const HEAD_MAX: u64 = 8 << 10;
const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
/// Replies of RFC 1928, section 6.
const SUCCEEDED: u8 = 0;
const FAILURE: u8 = 1;
const NET_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const NO_COMMAND: u8 = 7;
const NO_ADDRESS: u8 = 8;

pub fn attend(client: TcpStream) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(&client);
    let server = match reader.fill_buf()?.first() {
        Some(&VERSION) => socks(&mut reader, &client)?,
        Some(_) => http(&mut reader, &client)?,
        None => None,
    };
    let Some(mut server) = server else {
        return Ok(());
    };
    // Data that the client has sent already, without waiting for an answer.
    server.write_all(reader.buffer())?;
    client.set_read_timeout(None)?;
    copy::both_ways(&client, &server);
    Ok(())
}

fn bytes<const N: usize>(reader: &mut impl Read) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns the connection once the client has been told of it.
fn socks(reader: &mut impl Read, mut client: &TcpStream) -> std::io::Result<Option<TcpStream>> {
    let [_, count] = bytes(reader)?;
    let mut methods = vec![0; count.into()];
    reader.read_exact(&mut methods)?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD])?;
        return Ok(None);
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION])?;
    let [version, command, _, kind] = bytes(reader)?;
    if version != VERSION {
        return Ok(None);
    }
    let host = match kind {
        1 => Some(Ipv4Addr::from(bytes::<4>(reader)?).to_string()),
        3 => {
            let [len] = bytes(reader)?;
            let mut name = vec![0; len.into()];
            reader.read_exact(&mut name)?;
            String::from_utf8(name).ok()
        }
        4 => Some(Ipv6Addr::from(bytes::<16>(reader)?).to_string()),
        _ => None,
    };
    let mut answer = |reply| client.write_all(&[VERSION, reply, 0, 1, 0, 0, 0, 0, 0, 0]);
    let Some(host) = host else {
        answer(NO_ADDRESS)?;
        return Ok(None);
    };
    let port = u16::from_be_bytes(bytes(reader)?);
    if command != CONNECT {
        answer(NO_COMMAND)?;
        return Ok(None);
    }
    match TcpStream::connect((host.as_str(), port)) {
        Ok(server) => answer(SUCCEEDED).map(|()| Some(server)),
        Err(why) => answer(reply_of(&why)).map(|()| None),
    }
}

fn reply_of(why: &std::io::Error) -> u8 {
    match why.raw_os_error() {
        Some(libc::ECONNREFUSED) => REFUSED,
        Some(libc::ENETUNREACH) => NET_UNREACHABLE,
        Some(libc::EHOSTUNREACH | libc::ETIMEDOUT) => HOST_UNREACHABLE,
        // A name that nobody knows has no errno.
        None => HOST_UNREACHABLE,
        Some(_) => FAILURE,
    }
}

fn http(reader: &mut impl BufRead, mut client: &TcpStream) -> std::io::Result<Option<TcpStream>> {
    let mut head = Vec::new();
    let mut limited = reader.take(HEAD_MAX);
    while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        if limited.read_until(b'\n', &mut head)? == 0 {
            client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")?;
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head);
    let Some((host, port)) = target(head.lines().next().unwrap_or_default()) else {
        client.write_all(
            b"HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nConnection: close\r\n\r\n\
              this proxy tunnels only: use CONNECT, or SOCKS5 (curl --proxytunnel, or socks5h://)\n",
        )?;
        return Ok(None);
    };
    match TcpStream::connect((host, port)) {
        Ok(server) => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            Ok(Some(server))
        }
        Err(why) => {
            let text = format!(
                "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\ncannot connect to {host} port {port}: {why}\n"
            );
            client.write_all(text.as_bytes())?;
            Ok(None)
        }
    }
}

/// `CONNECT host:port HTTP/1.1`; an IPv6 address stands in brackets.
fn target(line: &str) -> Option<(&str, u16)> {
    let (host, port) = line
        .strip_prefix("CONNECT ")?
        .split_whitespace()
        .next()?
        .rsplit_once(':')?;
    let host = host
        .strip_prefix('[')
        .and_then(|it| it.strip_suffix(']'))
        .unwrap_or(host);
    Some((host, port.parse().ok()?)).filter(|_| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!(target("CONNECT a:80 HTTP/1.1"), Some(("a", 80)));
        assert_eq!(
            target("CONNECT [fd00::1]:443 HTTP/1.1"),
            Some(("fd00::1", 443))
        );
        for bad in [
            "GET http://a/ HTTP/1.1",
            "CONNECT a HTTP/1.1",
            "CONNECT :80 HTTP/1.1",
            "CONNECT a:x HTTP/1.1",
            "",
        ] {
            assert_eq!(target(bad), None, "{bad}");
        }
    }
}
