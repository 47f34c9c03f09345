// SPDX-License-Identifier: GPL-2.0
//! Configures a fresh node: what `ip` and `sysctl` do on a fresh host.

use std::ffi::CString;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use ring3_config::names::Route;
use ring3_config::NodeConfig;

use crate::error::{Errno, Error, Result};
use crate::image::Thread;
use crate::netlink::{Netlink, NodeWire};
use crate::ports::{Port, BRIDGE};
use crate::resolver::{self, Resolver};
use crate::sys;

/// Interface index of the loopback device in every network namespace (LOOPBACK_IFINDEX).
const LOOPBACK: u32 = 1;
/// On an idle host a carrier comes within a millisecond after the interface was set up.
const CARRIER_PATIENCE: Duration = Duration::from_millis(100);
const CARRIER_TURN: Duration = Duration::from_micros(200);

/// The host's file.
const HOSTS: &str = "/etc/hosts";
/// A larger /etc/hosts of a node is not changed. Lists that block advertisements have some 5 MB.
const HOSTS_BYTES_MAX: usize = 16 << 20;

/// Sets the loopback device up.
pub(crate) fn loopback(init: &mut Thread) -> Result<()> {
    let wire = NodeWire::open(init).map_err(Error::node("open a netlink socket"))?;
    Netlink::new(wire)
        .link_up(LOOPBACK, None)
        .map_err(Error::node("set lo up"))
}

/// Makes the interface that joins a switch's ports.
pub(crate) fn bridge(init: &mut Thread) -> Result<()> {
    let fail = || Error::node(format!("make {BRIDGE}"));
    let wire = NodeWire::open(init).map_err(fail())?;
    Netlink::new(wire)
        .bridge_add(BRIDGE, None)
        .map_err(fail())?;
    let index = interface_index(init, BRIDGE)?;
    let wire = NodeWire::open(init).map_err(fail())?;
    Netlink::new(wire).link_up(index, None).map_err(fail())
}

/// Joins a port to the others of a switch.
pub(crate) fn bridge_port(init: &mut Thread, port: &Port) -> Result<()> {
    let bridge = interface_index(init, BRIDGE)?;
    let fail = || Error::node(format!("join {} to {BRIDGE}", port.ifname));
    let wire = NodeWire::open(init).map_err(fail())?;
    Netlink::new(wire)
        .controller_set(port.ifindex, bridge)
        .map_err(fail())
}

/// As /sys shows it.
fn interface_index(init: &mut Thread, name: &str) -> Result<u32> {
    let fail = || Error::node(format!("find {name}"));
    let path = CString::new(format!("/sys/class/net/{name}/ifindex"))
        .map_err(|_| fail()(Errno(libc::EINVAL)))?;
    let fd = init.open(&path, libc::O_RDONLY).map_err(fail())?;
    let mut text = [0; 16];
    let len = init.read(fd, &mut text);
    init.close(fd).map_err(fail())?;
    let digits = String::from_utf8_lossy(&text[..len.map_err(fail())?]).into_owned();
    digits
        .trim()
        .parse()
        .map_err(|_| fail()(Errno(libc::EPROTO)))
}

/// Sets a port's interface up and gives it its addresses and gateways.
pub(crate) fn port(init: &mut Thread, port: &Port) -> Result<()> {
    let wire = NodeWire::open(init).map_err(Error::node("open a netlink socket"))?;
    let mut netlink = Netlink::new(wire);
    let ifname = &port.ifname;
    netlink
        .link_up(port.ifindex, port.spec.mtu)
        .map_err(Error::node(format!("set {ifname} up")))?;
    for addr in &port.addrs {
        netlink
            .address_add(port.ifindex, *addr)
            .map_err(|why| Error::Address {
                addr: *addr,
                ifname: ifname.clone(),
                why,
            })?;
    }
    let window = port.window();
    for gw in &port.gw {
        let fail = |why| Error::Gateway {
            gw: *gw,
            ifname: ifname.clone(),
            why,
        };
        netlink
            .default_route_add(port.ifindex, *gw, window)
            .map_err(fail)?;
        if let Some(window) = window {
            netlink
                .host_route_add(port.ifindex, *gw, window)
                .map_err(fail)?;
        }
    }
    Ok(())
}

/// Adds the routes of the node's configuration.
pub(crate) fn routes(init: &mut Thread, routes: &[Route]) -> Result<()> {
    if routes.is_empty() {
        return Ok(());
    }
    let wire = NodeWire::open(init).map_err(Error::node("open a netlink socket"))?;
    let mut netlink = Netlink::new(wire);
    for route in routes {
        netlink
            .network_route_add(route.to, route.via)
            .map_err(|why| Error::Route { route: *route, why })?;
    }
    Ok(())
}

/// The node's own /etc/resolv.conf; `None`: the host's will do.
fn resolv_conf(config: &NodeConfig, ports: &[Port]) -> Option<String> {
    if !config.dns.is_empty() {
        let lines = config.dns.iter().map(|it| format!("nameserver {it}\n"));
        return Some(lines.collect());
    }
    // The gateway of a host port asks the host's resolvers; the other lines of the host's file hold
    // on the node, too.
    if let Some(gateway) = ports.iter().find_map(Port::name_server) {
        let rest = std::fs::read_to_string(resolver::RESOLV_CONF).unwrap_or_default();
        let rest = rest.lines().filter(|line| {
            ["search ", "domain ", "options "]
                .iter()
                .any(|it| line.starts_with(it))
        });
        let lines = rest.map(|line| format!("{line}\n"));
        return Some(format!(
            "nameserver {gateway}\n{}",
            lines.collect::<String>()
        ));
    }
    if ports.iter().all(|port| port.gw.is_empty()) {
        return None;
    }
    match resolver::host(resolver::RESOLV_CONF, &resolver::UPSTREAM) {
        Resolver::Reachable => None,
        Resolver::Behind(text) => Some(text),
        Resolver::Hidden(address) => {
            log::warn!(
                "node {}: names do not resolve there: the host's resolver is {address}, which \
                 on the node is the node itself: give it another, as in `--dns 192.0.2.53`",
                config.name
            );
            None
        }
    }
}

/// Writes the node's own /etc/hosts and /etc/resolv.conf, which the gate shows to its programs
/// (gate/path/path.c). Without names or name servers there are none, and programs see the host's.
pub(crate) fn names(init: &mut Thread, config: &NodeConfig, ports: &[Port]) -> Result<()> {
    let fail = |path: &str| Error::node(format!("write its {path}"));
    let servers = resolv_conf(config, ports);
    if config.hosts.is_empty() && servers.is_none() {
        return Ok(());
    }
    init.make_folder(c"/etc").map_err(fail("/etc"))?;
    if !config.hosts.is_empty() {
        init.write_file(c"/etc/hosts", hosts(config).as_bytes())
            .map_err(fail("/etc/hosts"))?;
    }
    if let Some(text) = servers {
        init.write_file(c"/etc/resolv.conf", text.as_bytes())
            .map_err(fail("/etc/resolv.conf"))?;
    }
    Ok(())
}

/// Debian's address for the machine's own name, where it has no fixed one.
const THIS_MACHINE: &str = "127.0.1.1";

/// Lines of /etc/hosts.
fn host_lines(name: &str, addresses: &[IpAddr]) -> Vec<String> {
    let line = |address| format!("{address} {name}");
    addresses.iter().map(line).collect()
}

/// Sets the addresses of another node in /etc/hosts. All other lines stay: those of the
/// configuration, those that programs have written, or else those of the host's file.
pub(crate) fn known_name(
    init: &mut Thread,
    config: &NodeConfig,
    name: &str,
    before: &[IpAddr],
    now: &[IpAddr],
) -> Result<()> {
    let fail = |path: &'static str| Error::node(format!("write its {path}"));
    let present = match init.read_file(c"/etc/hosts", HOSTS_BYTES_MAX) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(Errno(libc::ENOENT)) if config.hosts.is_empty() => {
            std::fs::read_to_string(HOSTS).unwrap_or_default()
        }
        Err(Errno(libc::ENOENT)) => hosts(config),
        Err(why) => return Err(Error::node("read its /etc/hosts")(why)),
    };
    let (before, now) = (host_lines(name, before), host_lines(name, now));
    let stays = |line: &&str| !before.iter().any(|it| it == line);
    let lines = present.lines().filter(stays);
    let lines = lines.chain(now.iter().map(String::as_str));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    init.make_folder(c"/etc").map_err(fail("/etc"))?;
    // A concurrent reader sees either the old or the new file as a whole.
    init.write_file(c"/etc/hosts.new", text.as_bytes())
        .map_err(fail("/etc/hosts"))?;
    init.rename(c"/etc/hosts.new", c"/etc/hosts")
        .map_err(fail("/etc/hosts"))
}

/// Programs ask for their own machine's name as they start (Python's http.server does), which is the host's. Where it is not in
/// this file a name server is asked, and one that the node does not reach takes 5 s.
fn hosts(config: &NodeConfig) -> String {
    let own = config.ports.iter().flat_map(|port| port.addrs.first());
    let own = own.map(|net| net.addr()).next();
    let own = own.unwrap_or(std::net::Ipv4Addr::LOCALHOST.into());
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    text += &format!("{own} {}\n", config.name);
    let machine = sys::host_name();
    let is_known = |name: &str| name == config.name || config.hosts.iter().any(|it| it.0 == name);
    let is_word = !machine.is_empty() && !machine.contains(|c: char| c.is_whitespace() || c == '#');
    if is_word && !is_known(&machine) {
        text += &format!("{THIS_MACHINE} {machine}\n");
    }
    for (name, address) in &config.hosts {
        text += &format!("{address} {name}\n");
    }
    text
}

/// Waits for a carrier that is about to come: without it the first packet, an ARP request, would be
/// dropped, and the next would follow only after a second.
pub(crate) fn wait_for_carrier(init: &mut Thread, port: &Port) -> Result<()> {
    let what = || Error::node(format!("say whether {} has a carrier", port.ifname));
    let path = format!("/sys/class/net/{}/operstate", port.ifname);
    let path = CString::new(path).map_err(|_| what()(Errno(libc::EINVAL)))?;
    let start = Instant::now();
    while port.expects_carrier() && start.elapsed() < CARRIER_PATIENCE {
        let mut state = [0; 16];
        let fd = init.open(&path, libc::O_RDONLY).map_err(what())?;
        let len = init.read(fd, &mut state);
        init.close(fd).map_err(what())?;
        if state[..len.map_err(what())?] == *b"up\n" {
            break;
        }
        std::thread::sleep(CARRIER_TURN);
    }
    Ok(())
}

/// Writes one sysctl, as sysctl(8) would. The kernel may take a long value in pieces (lists, a page
/// at a time). A rest that it does not take is an error, except for blanks.
pub(crate) fn sysctl(init: &mut Thread, key: &str, value: &str) -> Result<()> {
    let fail = |why| Error::Sysctl {
        key: key.to_owned(),
        value: value.to_owned(),
        why,
    };
    let path = CString::new(sysctl_path(key)).map_err(|_| fail(Errno(libc::EINVAL)))?;
    let fd = init.open(&path, libc::O_WRONLY).map_err(fail)?;
    let line = format!("{value}\n");
    let mut rest = line.as_bytes();
    let mut written = Ok(());
    while written.is_ok() && !rest.trim_ascii().is_empty() {
        written = match init.write(fd, rest) {
            Ok(len) if len > 0 => {
                rest = rest.get(len..).unwrap_or_default();
                Ok(())
            }
            Ok(_) => Err(Errno(libc::EINVAL)),
            Err(why) => Err(why),
        };
    }
    init.close(fd).map_err(fail)?;
    written.map_err(fail)
}

/// `a.b/c` is /proc/sys/a/b.c; if the first separator of a key is a slash, the key is a path.
fn sysctl_path(key: &str) -> String {
    let is_path = key
        .find(['.', '/'])
        .is_some_and(|at| key.as_bytes()[at] == b'/');
    let tail: String = if is_path {
        key.to_owned()
    } else {
        key.chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            })
            .collect()
    };
    format!("/proc/sys/{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_paths() {
        for (key, path) in [
            ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
            ("net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_forward"),
            (
                "net.ipv4.conf.eth0/100.rp_filter",
                "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
            ),
            (
                "net/ipv4/conf/eth0.100/rp_filter",
                "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
            ),
        ] {
            assert_eq!(sysctl_path(key), path);
        }
    }
}
