// SPDX-License-Identifier: GPL-2.0
//! One port: `KIND[:NAME][,key=value]...`.
//!
//! The command line and node.toml both feed a [`Draft`], key by key as text, so
//! that a mistake reads the same in both.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;

use crate::error::{ConfigError, PortError};
use crate::forward::{Publish, Rule};
use crate::name;

/// The kinds, as a person writes them.
pub const KINDS: [&str; 8] = [
    "link", "switch", "tap", "host", "passt", "packet", "xdp", "vhost",
];

/// The keys, as a person writes them.
pub const KEYS: [&str; 12] = [
    "addr", "gw", "host", "mtu", "mac", "loopback", "tcp", "udp", "allow", "deny", "log", "pcap",
];

/// Smallest MTU of IPv4 (RFC 791) and of IPv6 (RFC 8200), largest of an Ethernet device here.
const MTU_MIN: u32 = 68;
const MTU_MIN_IPV6: u32 = 1280;
const MTU_MAX: u32 = 65521;
/// RING3_XDP_MTU_MAX of include/ring3.abi: what fits into a frame of its memory.
pub const MTU_MAX_XDP: u32 = 1770;

/// Where a port leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortKind {
    /// Shared memory to the other node that names the same link.
    Link { name: String },
    /// Shared memory to a switch, which joins all nodes that name it.
    Switch { name: String },
    /// A TAP of the host, which is made if it is not there.
    Tap { name: String },
    /// What the host's own sockets reach, without privilege: a process of the keeper's relays.
    Host,
    /// The internet, without privilege, by the program `passt`.
    Passt,
    /// An interface of the host, raw.
    Packet { ifname: String },
    /// All of an interface of the host, by rings in shared memory.
    Xdp { ifname: String },
    /// A virtual machine's network device, by vhost-user: the socket on which the node waits for it.
    Vhost { socket: String },
}

impl PortKind {
    /// The kind's name, as in [`KINDS`].
    pub fn kind(&self) -> &'static str {
        match self {
            PortKind::Link { .. } => "link",
            PortKind::Switch { .. } => "switch",
            PortKind::Tap { .. } => "tap",
            PortKind::Host => "host",
            PortKind::Passt => "passt",
            PortKind::Packet { .. } => "packet",
            PortKind::Xdp { .. } => "xdp",
            PortKind::Vhost { .. } => "vhost",
        }
    }

    /// What follows the colon.
    pub fn name(&self) -> Option<&str> {
        match self {
            PortKind::Link { name } | PortKind::Switch { name } | PortKind::Tap { name } => {
                Some(name)
            }
            PortKind::Packet { ifname } | PortKind::Xdp { ifname } => Some(ifname),
            PortKind::Vhost { socket } => Some(socket),
            PortKind::Host | PortKind::Passt => None,
        }
    }

    pub(crate) fn new(kind: &str, name: Option<&str>) -> Result<Self, PortError> {
        let needs = |kind, example| {
            name.filter(|name| !name.is_empty())
                .map(str::to_owned)
                .ok_or(PortError::NeedsName { kind, example })
        };
        let without_name = |kind, port| match name {
            None => Ok(port),
            Some(name) => Err(PortError::TakesNoName {
                kind,
                name: name.to_owned(),
            }),
        };
        match kind {
            "link" => {
                let name = needs("link", "NAME, the same in both nodes")?;
                name::link(&name)?;
                Ok(PortKind::Link { name })
            }
            "switch" => {
                let name = needs("switch", "NAME, the same in all of its nodes")?;
                name::link(&name)?;
                Ok(PortKind::Switch { name })
            }
            "tap" => {
                let name = needs("tap", "INTERFACE, for example tap:r3tap0")?;
                name::interface(&name)?;
                Ok(PortKind::Tap { name })
            }
            "packet" => {
                let ifname = needs("packet", "INTERFACE, for example packet:eth0")?;
                name::interface(&ifname)?;
                Ok(PortKind::Packet { ifname })
            }
            "xdp" => {
                let ifname = needs("xdp", "INTERFACE, for example xdp:eth0")?;
                name::interface(&ifname)?;
                Ok(PortKind::Xdp { ifname })
            }
            "vhost" => {
                let socket = needs("vhost", "SOCKET, for example vhost:/run/vm.sock")?;
                name::socket(&socket)?;
                Ok(PortKind::Vhost { socket })
            }
            "host" => without_name("host", PortKind::Host),
            "passt" => without_name("passt", PortKind::Passt),
            other => Err(PortError::UnknownKind(other.to_owned())),
        }
    }
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{}:{name}", self.kind()),
            None => f.write_str(self.kind()),
        }
    }
}

/// A port of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    pub kind: PortKind,
    /// What the interface is called; none: after the port. No key sets it.
    pub ifname: Option<String>,
    /// Addresses of the node's end.
    pub addrs: Vec<IpNet>,
    /// Default gateways, at most one of each family matters.
    pub gw: Vec<IpAddr>,
    /// Addresses of the host's end of a TAP.
    pub host: Vec<IpNet>,
    pub mtu: Option<u32>,
    pub mac: Option<[u8; 6]>,
    /// host, passt: whether the gateway's address leads to the loopback of the host.
    pub loopback: Option<bool>,
    /// host: ports of the host that lead to the node.
    pub tcp: Vec<Publish>,
    pub udp: Vec<Publish>,
    /// host: what the node may reach; without a rule, all.
    pub allow: Vec<Rule>,
    /// host: what it may not, whatever else says it may.
    pub deny: Vec<Rule>,
    /// host: the file that gets a line of JSON for each refusal.
    pub log: Option<PathBuf>,
    /// Where to capture what crosses the port.
    pub pcap: Option<PathBuf>,
}

impl PortSpec {
    /// A port with nothing but its kind.
    pub fn new(kind: PortKind) -> Self {
        PortSpec {
            kind,
            ifname: None,
            addrs: Vec::new(),
            gw: Vec::new(),
            host: Vec::new(),
            mtu: None,
            mac: None,
            loopback: None,
            tcp: Vec::new(),
            udp: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            log: None,
            pcap: None,
        }
    }

    /// Checks that need more than one key.
    fn check(self) -> Result<Self, PortError> {
        let kind = self.kind.kind();
        if !self.host.is_empty() && kind != "tap" {
            return Err(PortError::Only {
                key: "host",
                of: "tap",
                kind,
            });
        }
        if self.loopback.is_some() && !matches!(kind, "host" | "passt") {
            return Err(PortError::Only {
                key: "loopback",
                of: "host and passt",
                kind,
            });
        }
        let of_host = [
            ("tcp", self.tcp.is_empty()),
            ("udp", self.udp.is_empty()),
            ("allow", self.allow.is_empty()),
            ("deny", self.deny.is_empty()),
            ("log", self.log.is_none()),
        ];
        if let Some((key, _)) = of_host.iter().find(|it| !it.1 && kind != "host") {
            return Err(PortError::Only {
                key,
                of: "host",
                kind,
            });
        }
        for (key, nets) in [("addr", &self.addrs), ("host", &self.host)] {
            if let Some(address) = first_twice(nets.iter().map(IpNet::addr)) {
                return Err(PortError::SameAddress {
                    key,
                    address: address.to_string(),
                });
            }
        }
        if let Some(address) = first_twice(self.gw.iter().copied()) {
            return Err(PortError::SameAddress {
                key: "gw",
                address: address.to_string(),
            });
        }
        let ours = |address: IpAddr| self.addrs.iter().any(|net| net.addr() == address);
        if let Some(both) = self.host.iter().find(|net| ours(net.addr())) {
            return Err(PortError::SameBothEnds(both.addr().to_string()));
        }
        // These have addresses of their own for a node without addr=.
        let learns = matches!(self.kind, PortKind::Host | PortKind::Passt) && self.addrs.is_empty();
        let reachable = |gw: &IpAddr| {
            self.addrs.iter().any(|net| net.contains(gw))
                || matches!(gw, IpAddr::V6(v6) if v6.is_unicast_link_local())
        };
        if let Some(gw) = self.gw.iter().find(|gw| !learns && !reachable(gw)) {
            return Err(PortError::GatewayOffLink(gw.to_string()));
        }
        if let (PortKind::Xdp { .. }, Some(mtu)) = (&self.kind, self.mtu) {
            if mtu > MTU_MAX_XDP {
                return Err(PortError::MtuForXdp {
                    mtu,
                    max: MTU_MAX_XDP,
                });
            }
        }
        let v6 = self.addrs.iter().find(|net| net.addr().is_ipv6());
        match (self.mtu, v6) {
            (Some(mtu), Some(net)) if mtu < MTU_MIN_IPV6 => Err(PortError::MtuForIpv6 {
                mtu,
                address: net.to_string(),
            }),
            _ => Ok(self),
        }
    }
}

/// The first element that occurs again later.
fn first_twice<T: PartialEq>(items: impl Iterator<Item = T> + Clone) -> Option<T> {
    items
        .clone()
        .enumerate()
        .find(|(at, item)| items.clone().skip(at + 1).any(|later| later == *item))
        .map(|(_, item)| item)
}

/// A port that is being written down.
pub(crate) struct Draft(PortSpec);

impl Draft {
    pub(crate) fn new(kind: PortKind) -> Self {
        Draft(PortSpec::new(kind))
    }

    /// One `key=value`.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), PortError> {
        let Some(&key) = KEYS.iter().find(|known| **known == key) else {
            return Err(PortError::UnknownKey(key.to_owned()));
        };
        if value.is_empty() {
            return Err(PortError::NoValue(key));
        }
        let port = &mut self.0;
        match key {
            "addr" => port.addrs.push(interface_address(key, value)?),
            "host" => port.host.push(interface_address(key, value)?),
            "gw" => port.gw.push(gateway(value)?),
            "mtu" => once(key, &mut port.mtu, mtu(value)?)?,
            "mac" => once(key, &mut port.mac, mac(value)?)?,
            "loopback" => once(key, &mut port.loopback, yes_or_no(key, value)?)?,
            "tcp" => port.tcp.extend(publish(key, value)?),
            "udp" => port.udp.extend(publish(key, value)?),
            "allow" => port.allow.push(rule(key, value)?),
            "deny" => port.deny.push(rule(key, value)?),
            "log" => once(key, &mut port.log, PathBuf::from(value))?,
            "pcap" => once(key, &mut port.pcap, PathBuf::from(value))?,
            _ => unreachable!("a key of KEYS"),
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<PortSpec, PortError> {
        self.0.check()
    }
}

fn once<T>(key: &'static str, place: &mut Option<T>, value: T) -> Result<(), PortError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(PortError::Twice(key)),
    }
}

fn publish(key: &'static str, text: &str) -> Result<Option<Publish>, PortError> {
    // pasta's word for no port at all.
    if text == "none" {
        return Ok(None);
    }
    let malformed = |why| PortError::Publish {
        key,
        text: text.to_owned(),
        why,
    };
    text.parse().map(Some).map_err(malformed)
}

fn rule(key: &'static str, text: &str) -> Result<Rule, PortError> {
    text.parse().map_err(|why| PortError::Rule {
        key,
        text: text.to_owned(),
        why,
    })
}

fn yes_or_no(key: &'static str, text: &str) -> Result<bool, PortError> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(PortError::YesOrNo {
            key,
            text: text.to_owned(),
        }),
    }
}

/// `10.0.0.1/24`: an address that an interface can have, with its prefix length.
fn interface_address(key: &'static str, text: &str) -> Result<IpNet, PortError> {
    let error = |why| PortError::Address {
        key,
        text: text.to_owned(),
        why,
        example: "10.0.0.1/24 or fd00::1/64",
    };
    let Some((address, prefix)) = text.split_once('/') else {
        return Err(error(if text.parse::<IpAddr>().is_ok() {
            "its prefix length is missing"
        } else {
            "it is no IP address"
        }));
    };
    let address: IpAddr = address
        .parse()
        .map_err(|_| error("it is no IP address before the /"))?;
    let prefix = Some(prefix)
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|digits| digits.parse::<u8>().ok());
    let net = prefix.and_then(|length| IpNet::new(address, length).ok());
    let net = net.ok_or_else(|| {
        error(match address {
            IpAddr::V4(_) => "its prefix length is not 0 to 32",
            IpAddr::V6(_) => "its prefix length is not 0 to 128",
        })
    })?;
    host_address(address).map_err(error)?;
    match net {
        IpNet::V4(v4)
            if v4.prefix_len() < 31
                && (v4.addr() == v4.network() || v4.addr() == v4.broadcast()) =>
        {
            Err(error("it is the network's or the broadcast address"))
        }
        _ => Ok(net),
    }
}

fn gateway(text: &str) -> Result<IpAddr, PortError> {
    let error = |why| PortError::Address {
        key: "gw",
        text: text.to_owned(),
        why,
        example: "10.0.0.254 or fd00::ff",
    };
    let address: IpAddr = text.parse().map_err(|_| {
        error(if text.contains('/') {
            "a gateway has no prefix length"
        } else {
            "it is no IP address"
        })
    })?;
    host_address(address).map_err(error)?;
    Ok(address)
}

/// Can a host on a wire have this address?
fn host_address(address: IpAddr) -> Result<(), &'static str> {
    if address.is_unspecified() {
        Err("it is the unspecified address")
    } else if address.is_multicast() {
        Err("it is a multicast address")
    } else if address.is_loopback() {
        Err("it is a loopback address")
    } else {
        Ok(())
    }
}

fn mtu(text: &str) -> Result<u32, PortError> {
    let error = |why| PortError::Mtu {
        text: text.to_owned(),
        why,
        min: MTU_MIN,
        max: MTU_MAX,
    };
    let bytes: u32 = text.parse().map_err(|_| error("is no number"))?;
    if (MTU_MIN..=MTU_MAX).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(error("is out of range"))
    }
}

fn mac(text: &str) -> Result<[u8; 6], PortError> {
    let error = |why| PortError::Mac {
        text: text.to_owned(),
        why,
    };
    let mut bytes = [0; 6];
    let mut pairs = text.split(':');
    for byte in &mut bytes {
        let pair = pairs.next().ok_or_else(|| error("is too short"))?;
        if pair.len() != 2 || !pair.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error("is malformed"));
        }
        *byte = u8::from_str_radix(pair, 16).map_err(|_| error("is malformed"))?;
    }
    if pairs.next().is_some() {
        Err(error("is too long"))
    } else if bytes[0] & 1 != 0 {
        Err(error("is a multicast address"))
    } else if bytes == [0; 6] {
        Err(error("is all zero"))
    } else {
        Ok(bytes)
    }
}

/// The parts between commas. A comma that is written twice is one of a part's own.
fn split(spec: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = spec.chars().peekable();
    while let Some(c) = chars.next() {
        if c == ',' && chars.next_if_eq(&',').is_none() {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// As split() takes it for one part.
fn whole(part: &str) -> String {
    part.replace(',', ",,")
}

fn parse(spec: &str) -> Result<PortSpec, PortError> {
    let parts = split(spec);
    let (head, parts) = parts.split_first().ok_or(PortError::Empty)?;
    if head.is_empty() {
        return Err(PortError::Empty);
    }
    let (kind, name) = match head.split_once(':') {
        Some((kind, name)) => (kind, Some(name)),
        None => (head.as_str(), None),
    };
    let mut draft = Draft::new(PortKind::new(kind, name)?);
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| PortError::NotKeyValue(part.to_owned()))?;
        draft.set(key, value)?;
    }
    draft.finish()
}

impl FromStr for PortSpec {
    type Err = ConfigError;

    fn from_str(spec: &str) -> Result<Self, ConfigError> {
        parse(spec).map_err(|cause| ConfigError::Port {
            spec: spec.to_owned(),
            cause,
        })
    }
}

/// The SPEC that gives this port again.
impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&whole(&self.kind.to_string()))?;
        for net in &self.addrs {
            write!(f, ",addr={net}")?;
        }
        for address in &self.gw {
            write!(f, ",gw={address}")?;
        }
        for net in &self.host {
            write!(f, ",host={net}")?;
        }
        if let Some(mtu) = self.mtu {
            write!(f, ",mtu={mtu}")?;
        }
        if let Some(mac) = self.mac {
            let pairs = mac.map(|byte| format!("{byte:02x}"));
            write!(f, ",mac={}", pairs.join(":"))?;
        }
        if let Some(loopback) = self.loopback {
            write!(f, ",loopback={}", if loopback { "yes" } else { "no" })?;
        }
        for (key, list) in [("tcp", &self.tcp), ("udp", &self.udp)] {
            for it in list {
                write!(f, ",{key}={it}")?;
            }
        }
        for (key, list) in [("allow", &self.allow), ("deny", &self.deny)] {
            for it in list {
                write!(f, ",{key}={it}")?;
            }
        }
        if let Some(log) = &self.log {
            write!(f, ",log={}", whole(&log.display().to_string()))?;
        }
        if let Some(pcap) = &self.pcap {
            write!(f, ",pcap={}", whole(&pcap.display().to_string()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
