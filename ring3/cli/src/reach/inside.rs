// SPDX-License-Identifier: GPL-2.0
//! `ring3 on-node`: what the commands of this module do on the node.

use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::args;
use crate::error::{Failure, Result};
use crate::forward;
use crate::say;

use super::listener::{self, Attend};
use super::{console, copy, socks, TURN};

/// State of /proc/net/tcp: TCP_LISTEN of <net/tcp_states.h>.
const LISTEN: &str = "0A";

pub fn inside(args: &args::OnNode) -> Result<u8> {
    match args {
        args::OnNode::Connect {
            verbose,
            node,
            host,
            port,
        } => connect(*verbose, node, host, *port),
        args::OnNode::Socks { node } => serve(node, socks::attend),
        args::OnNode::Publish { node, port } => {
            let port = *port;
            serve(node, move |client| to_port(&client, port))
        }
        args::OnNode::Console { node } => console::run(node),
        args::OnNode::Forward(way) => forward::inside(way),
        args::OnNode::Wait {
            node,
            protocol,
            port,
            ms,
        } => wait(node, *protocol, *port, Duration::from_millis(*ms)),
    }
}

fn connect(verbose: bool, node: &str, host: &str, port: u16) -> Result<u8> {
    // A name that nobody knows has no errno, so it is looked up apart.
    let addresses: Vec<_> = (host, port)
        .to_socket_addrs()
        .map_err(|why| Failure::NoSuchHost {
            node: node.to_owned(),
            host: host.to_owned(),
            why,
        })?
        .collect();
    let stream = TcpStream::connect(addresses.as_slice()).map_err(Failure::host(format!(
        "connect to {host} port {port} from node `{node}`"
    )))?;
    if verbose {
        say::complain(format_args!("connected to {host} port {port}"));
    }
    let output = stream
        .try_clone()
        .map_err(Failure::host("copy a descriptor"))?;
    // It may wait for a terminal for ever: the process ends without it.
    std::thread::spawn(move || {
        if copy::one_way(std::io::stdin(), &output).is_ok() {
            let _ = output.shutdown(Shutdown::Write);
        }
    });
    copy::one_way(&stream, std::io::stdout()).map_err(Failure::host(format!(
        "pass on what {host} port {port} says"
    )))?;
    Ok(0)
}

fn serve(node: &str, attend: impl Attend) -> Result<u8> {
    let listener = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(Failure::host("take the listener over"))?;
    listener::serve(&TcpListener::from(listener), node, attend)
}

/// A server that listens on either loopback, or on all addresses, is found. One that is not there ends the connection.
fn to_port(client: &TcpStream, port: u16) -> std::io::Result<()> {
    let places = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ];
    copy::both_ways(client, &TcpStream::connect(&places[..])?);
    Ok(())
}

fn wait(node: &str, protocol: args::Protocol, port: u16, limit: Duration) -> Result<u8> {
    let start = Instant::now();
    loop {
        if is_open(protocol, port)? {
            return Ok(0);
        }
        if start.elapsed() >= limit {
            return Err(Failure::NobodyListens {
                node: node.to_owned(),
                protocol: protocol.word(),
                port,
            });
        }
        std::thread::sleep(TURN);
    }
}

/// Whether a socket of this port takes connections (TCP) or datagrams (UDP), whatever its address.
fn is_open(protocol: args::Protocol, port: u16) -> Result<bool> {
    for name in [protocol.word().to_owned(), format!("{}6", protocol.word())] {
        let path = format!("/proc/net/{name}");
        let text = std::fs::read_to_string(&path).map_err(Failure::host(format!("read {path}")))?;
        if text
            .lines()
            .skip(1)
            .any(|line| is_match(line, protocol, port))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `  0: 0100007F:1F40 00000000:0000 0A ...`
fn is_match(line: &str, protocol: args::Protocol, port: u16) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let local = words.next().and_then(|word| word.rsplit_once(':'));
    let state = words.nth(1);
    let is_port = local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
    is_port && (protocol == args::Protocol::Udp || state == Some(LISTEN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use args::Protocol::{Tcp, Udp};

    #[test]
    fn lines_of_proc() {
        let listening = "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000";
        let connected = "   1: 0100007F:1F40 0100007F:9C40 01 00000000:00000000 00:00000000";
        let six =
            "   0: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07";
        assert!(is_match(listening, Tcp, 8000));
        assert!(!is_match(listening, Tcp, 8001));
        assert!(!is_match(connected, Tcp, 8000));
        assert!(is_match(six, Udp, 53));
        assert!(!is_match("", Tcp, 0));
    }
}
