// SPDX-License-Identifier: GPL-2.0
//! Internet access without privilege: passt(1), started for the node.
//!
//! passt gets one end of a socket pair as its standard input and is told that this is its guest
//! (`--fd 0`); it ends when all copies of the other end are closed. It offers addresses by DHCP,
//! but serves any address that the guest uses, so a node sets them itself, at once:
//!
//! ```text
//! addr, gw given   these
//! addr given       the network's first address that is not addr is the gateway
//! none             10.0.2.15/24 through 10.0.2.2, and fd72:696e:6733::15/64 through ...::2
//! ```
//!
//! Nothing leads to the host's own loopback, unless `loopback=yes`: then the gateway's address
//! does.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rustix::fs::MemfdFlags;
use rustix::net::sockopt;

use super::passt_probe;
use crate::error::{Error, Result};
use crate::sys;

const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// The second address of the network, as in other user-mode networks; the first is often a real
/// router.
const V4_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const V4_PREFIX: u8 = 24;
const V6: Ipv6Addr = Ipv6Addr::new(0xfd72, 0x696e, 0x6733, 0, 0, 0, 0, 0x15);
const V6_GATEWAY: Ipv6Addr = Ipv6Addr::new(0xfd72, 0x696e, 0x6733, 0, 0, 0, 0, 2);
const V6_PREFIX: u8 = 64;
/// passt starts within 100 ms on an idle machine.
const START_PATIENCE: Duration = Duration::from_secs(5);

/// Of the socket to passt: more than a TCP window with passt's defaults.
const BUFFER_BYTES: usize = 4 << 20;
/// The fastest of 64 KiB to 1 MiB, for a socket with the host's default limit (212,992 bytes).
const SHORT_WINDOW: u32 = 256 << 10;

#[derive(Debug)]
pub(crate) struct Passt {
    child: Child,
    socket: UnixStream,
    window: Option<u32>,
}

/// Addresses and gateways of the node's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub addrs: Vec<IpNet>,
    pub gw: Vec<IpAddr>,
}

/// The addresses of the node's end, from the configured ones.
pub(crate) fn plan(addrs: &[IpNet], gw: &[IpAddr]) -> Plan {
    let mut plan = Plan {
        addrs: addrs.to_vec(),
        gw: gw.to_vec(),
    };
    if addrs.is_empty() {
        plan.addrs = [
            Ipv4Net::new(V4, V4_PREFIX).map(IpNet::V4),
            Ipv6Net::new(V6, V6_PREFIX).map(IpNet::V6),
        ]
        .into_iter()
        .flatten()
        .collect();
        if gw.is_empty() {
            plan.gw = vec![V4_GATEWAY.into(), V6_GATEWAY.into()];
        }
    }
    for net in &plan.addrs {
        let is_v4 = net.addr().is_ipv4();
        if !plan.gw.iter().any(|gw| gw.is_ipv4() == is_v4) {
            plan.gw.extend(
                net.hosts()
                    .find(|ip| *ip != net.addr() && !is_network(net, *ip)),
            );
        }
    }
    plan
}

/// hosts() of an IPv6 network starts with the subnet-router anycast address.
fn is_network(net: &IpNet, ip: IpAddr) -> bool {
    net.network() == ip && net.prefix_len() < net.max_prefix_len() - 1
}

impl Passt {
    pub fn spawn(plan: &Plan, loopback: bool) -> Result<Passt> {
        let (socket, theirs) = UnixStream::pair().map_err(Error::io("make a socket pair"))?;
        let window = buffers(&socket, &theirs);
        // A file, not a pipe: it needs no reader, and passt cannot block on it.
        let messages = rustix::fs::memfd_create("ring3-passt", MemfdFlags::CLOEXEC)
            .map_err(Error::host("make a file in memory"))?;
        let mut messages = File::from(messages);
        let stderr = messages
            .try_clone()
            .map_err(Error::io("copy a descriptor"))?;
        let mut command = command(plan, loopback);
        // A process group of its own: the terminal is for the program. The keeper's threads block
        // all signals; passt must not inherit that.
        command.process_group(0);
        sys::block_none_in(&mut command);
        let mut child = command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Error::PasstMissing,
                _ => Error::PasstFailed {
                    why: error.to_string(),
                },
            })?;
        // It has passt's end of the socket: while that is open here, passt's end would not be
        // noticed.
        drop(command);
        wait_until_it_serves(&mut child, &socket, &mut messages)?;
        socket
            .set_nonblocking(true)
            .map_err(Error::io("make a socket non-blocking"))?;
        Ok(Passt {
            child,
            socket,
            window,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Whether a guest that writes the loopback's address into its packets reaches the host's, whatever the gateway's
    /// address leads to. To be asked before the node has the socket.
    pub fn leads_to_loopback(&self) -> Result<bool> {
        let fail = || Error::io("see what passt leads to");
        self.socket.set_nonblocking(false).map_err(fail())?;
        let found = passt_probe::leads_to_loopback(&self.socket, (V4, V4_GATEWAY), V6);
        self.socket.set_nonblocking(true).map_err(fail())?;
        found.map_err(fail())
    }

    /// The number of bytes that a TCP peer may send at once, if passt's queue to the node is short.
    pub fn window(&self) -> Option<u32> {
        self.window
    }
}

impl Drop for Passt {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Packets that do not fit into passt's queue are dropped, and (by Debian 12's passt) sent again
/// after two seconds: the default queue holds three 64 KiB frames. Sets sizes above the host's
/// limit if this process may; otherwise the limit silently applies, and windows have to be small.
fn buffers(ours: &UnixStream, theirs: &UnixStream) -> Option<u32> {
    let set = |socket| {
        sockopt::set_socket_send_buffer_size_force(socket, BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_send_buffer_size(socket, BUFFER_BYTES))
    };
    let _ = set(ours);
    let _ = set(theirs);
    let is_short = sockopt::socket_send_buffer_size(theirs).map_or(true, |got| got < BUFFER_BYTES);
    is_short.then_some(SHORT_WINDOW)
}

fn command(plan: &Plan, loopback: bool) -> Command {
    let mut command = Command::new("passt");
    command.args(["--foreground", "--quiet", "--fd", "0"]);
    if !loopback {
        command.arg("--no-map-gw");
    }
    for net in &plan.addrs {
        command.arg("--address").arg(net.addr().to_string());
        if let IpNet::V4(v4) = net {
            command.arg("--netmask").arg(v4.prefix_len().to_string());
        }
    }
    for gw in &plan.gw {
        command.arg("--gateway").arg(gw.to_string());
    }
    command
}

/// passt does not report that it is ready. It answers every ARP request, so one is sent; after the
/// answer, the stream is between two frames, as the node's driver expects it.
fn wait_until_it_serves(child: &mut Child, socket: &UnixStream, messages: &mut File) -> Result<()> {
    let result = socket
        .set_read_timeout(Some(START_PATIENCE))
        .and_then(|()| passt_probe::ask(socket, V4, V4_GATEWAY));
    if result.is_ok() {
        return Ok(());
    }
    let why = match result {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            format!("it does not answer within {START_PATIENCE:?}")
        }
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    let _ = child.kill();
    let _ = child.wait();
    let mut said = String::new();
    let _ = messages.seek(SeekFrom::Start(0));
    let _ = messages.read_to_string(&mut said);
    Err(Error::PasstFailed {
        why: reason(&said).unwrap_or(why),
    })
}

/// passt's message in one line, with a remedy if one is known.
fn reason(said: &str) -> Option<String> {
    if said.contains("External interface not usable") {
        return Some("the host has no default route, which passt needs (`ip route`)".into());
    }
    let line = said.lines().map(str::trim).rfind(|line| {
        !line.is_empty() && !line.contains("syslog") && !line.starts_with("Don't run as root")
    })?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(list: &[&str]) -> Vec<IpNet> {
        list.iter().map(|net| net.parse().unwrap()).collect()
    }

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    #[test]
    fn more_than_three_segments_fit() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let window = buffers(&ours, &theirs);
        let got = sockopt::socket_send_buffer_size(&theirs).unwrap();
        // The host's limit may be below or above the requested size.
        assert_eq!(window.is_none(), got >= BUFFER_BYTES);
        assert!(window.is_none_or(|window| window <= got as u32));
    }

    #[test]
    fn addresses_that_nobody_gave() {
        let plan = plan(&[], &[]);
        assert_eq!(plan.addrs, nets(&["10.0.2.15/24", "fd72:696e:6733::15/64"]));
        assert_eq!(plan.gw, ips(&["10.0.2.2", "fd72:696e:6733::2"]));
    }

    #[test]
    fn a_gateway_is_found_in_the_network() {
        let case = |addr, gw| assert_eq!(plan(&nets(&[addr]), &[]).gw, ips(&[gw]), "{addr}");
        case("192.0.2.7/24", "192.0.2.1");
        case("192.0.2.1/24", "192.0.2.2");
        case("fd00::5/64", "fd00::1");
        case("fd00::1/64", "fd00::2");
    }

    #[test]
    fn a_gateway_that_was_given_stays() {
        let plan = plan(&nets(&["192.0.2.7/24"]), &ips(&["192.0.2.254"]));
        assert_eq!(plan.gw, ips(&["192.0.2.254"]));
    }

    #[test]
    fn its_words() {
        let said = "Don't run as root. Changing to nobody...\nExternal interface not usable\n\n";
        assert!(reason(said).unwrap().contains("default route"));
        assert_eq!(reason("foo\n bar \n").unwrap(), "bar");
        assert_eq!(reason(""), None);
    }
}
