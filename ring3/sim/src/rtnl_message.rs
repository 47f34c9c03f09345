// SPDX-License-Identifier: GPL-2.0
//! Words for `ip` and `tc` as messages of rtnetlink.
//!
//! Layouts: linux/rtnetlink.h, if_link.h, if_addr.h, neighbour.h, pkt_sched.h. What iproute2 puts into a message for the same
//! words is what is put into it here; the test `apps::sim_words_same` compares the outcomes.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::simlink;

pub const NLM_F_ACK: u16 = 4;
pub const HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const REPLACE: u16 = 0x400 | 0x100;
const ADD: u16 = 0x400 | 0x200;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const RTM_NEWNEIGH: u16 = 28;
const RTM_NEWQDISC: u16 = 36;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IFF_UP: u32 = 1;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_CARRIER: u16 = 33;
/// struct ifinfomsg
pub const NEWLINK_BYTES: usize = 16;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_F_NODAD: u8 = 2;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;
const RTA_MULTIPATH: u16 = 9;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_BOOT: u8 = 3;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;
const RTNH_F_ONLINK: u32 = 4;
const RTNEXTHOP: usize = 8;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

pub struct Message {
    kind: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: u16, parts: &[&[u8]]) -> Message {
        let body = parts.concat();
        Message { kind, flags, body }
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Message {
        attribute(&mut self.body, kind, value);
        self
    }

    pub fn finish(&self, sequence: u32, ack: u16, out: &mut Vec<u8>) {
        let len = (HEADER + self.body.len()) as u32;
        out.extend(len.to_ne_bytes());
        out.extend(self.kind.to_ne_bytes());
        out.extend((self.flags | NLM_F_REQUEST | ack).to_ne_bytes());
        out.extend(sequence.to_ne_bytes());
        out.extend([0; 4]);
        out.extend(&self.body);
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

pub fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend((4 + value.len() as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// What a line means; None: it is not for here, or an interface or a network namespace in it is not known.
pub fn message(
    line: &str,
    index: impl Fn(&str) -> Option<u32>,
    space: impl Fn(&str) -> Option<i32>,
) -> Option<Message> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["link", "add", name, "netns", near, "address", mac, "type", "simlink", "peer", "name", far_name, "netns", far, "address", far_mac] =>
        {
            let (mac, far_mac) = (mac_of(mac)?, mac_of(far_mac)?);
            let far = (space(far)?, *far_name, far_mac.as_slice());
            let body = simlink::new_pair((space(near)?, name, &mac), far);
            Some(Message::new(RTM_NEWLINK, ADD, &[&body]))
        }
        ["link", "set", dev, rest @ ..] => link(index(dev)?, rest),
        ["addr", "add", net, "dev", dev, rest @ ..] => address(net, index(dev)?, rest),
        ["neigh", "replace", to, "lladdr", mac, "dev", dev, "nud", "permanent"] => {
            neighbour(to, mac, index(dev)?)
        }
        ["route", "add", to, rest @ ..] => route(ADD, to, rest, index),
        ["route", "replace", to, rest @ ..] => route(REPLACE, to, rest, index),
        ["qdisc", "replace", "dev", dev, "root", "handle", "1:", "tbf", "rate", rate, "burst", burst, "limit", limit] => {
            tbf(index(dev)?, rate, burst, limit)
        }
        ["qdisc", "replace", "dev", dev, "root", "handle", "1:", "bfifo", "limit", limit] => {
            // struct tc_fifo_qopt
            let limit: u32 = limit.parse().ok()?;
            let made = root_qdisc(index(dev)?, b"bfifo\0");
            Some(made.with(TCA_OPTIONS, &limit.to_ne_bytes()))
        }
        _ => None,
    }
}

fn link(index: u32, words: &[&str]) -> Option<Message> {
    match words {
        ["type", "simlink", properties @ ..] => {
            let head = [0, index, 0, 0].map(u32::to_ne_bytes).concat();
            let properties = simlink::properties(properties)?;
            return Some(Message::new(RTM_NEWLINK, 0, &[&head, &properties]));
        }
        ["carrier", state @ ("on" | "off")] => {
            let head = [0, index, 0, 0].map(u32::to_ne_bytes).concat();
            let made = Message::new(RTM_NEWLINK, 0, &[&head]);
            return Some(made.with(IFLA_CARRIER, &[u8::from(*state == "on")]));
        }
        _ => {}
    }
    let (is_up, segments) = match words {
        ["up"] => (true, None),
        ["down"] => (false, None),
        ["up", "gso_max_segs", count] => (true, Some(count.parse::<u32>().ok()?)),
        _ => return None,
    };
    let flags = if is_up { IFF_UP } else { 0 };
    let body = [0, index, flags, IFF_UP].map(u32::to_ne_bytes).concat();
    let made = Message::new(RTM_NEWLINK, 0, &[&body]);
    Some(match segments {
        Some(count) => made.with(IFLA_GSO_MAX_SEGS, &count.to_ne_bytes()),
        None => made,
    })
}

fn family(address: &IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => AF_INET,
        IpAddr::V6(_) => AF_INET6,
    }
}

fn bytes(address: &IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn address(net: &str, index: u32, words: &[&str]) -> Option<Message> {
    let net: IpNet = net.parse().ok()?;
    let flags = match words {
        [] => 0,
        ["nodad"] => IFA_F_NODAD,
        _ => return None,
    };
    let ip = net.addr();
    // ip(8) gives addresses of 127.0.0.0/8 the scope of the host; none is given here.
    if ip.is_loopback() {
        return None;
    }
    let head = [family(&ip), net.prefix_len(), flags, RT_SCOPE_UNIVERSE];
    let made = Message::new(RTM_NEWADDR, ADD, &[&head, &index.to_ne_bytes()]);
    let ip = bytes(&ip);
    Some(made.with(IFA_LOCAL, &ip).with(IFA_ADDRESS, &ip))
}

fn mac_of(text: &str) -> Option<Vec<u8>> {
    let parts = text.split(':');
    let bytes = parts.map(|part| u8::from_str_radix(part, 16));
    bytes.collect::<std::result::Result<_, _>>().ok()
}

fn neighbour(to: &str, mac: &str, index: u32) -> Option<Message> {
    let to: IpAddr = to.parse().ok()?;
    let mac = mac_of(mac)?;
    let head = [family(&to), 0, 0, 0];
    let state = NUD_PERMANENT.to_ne_bytes();
    let parts: [&[u8]; 4] = [&head, &index.to_ne_bytes(), &state, &[0, 0]];
    let made = Message::new(RTM_NEWNEIGH, REPLACE, &parts);
    Some(made.with(NDA_DST, &bytes(&to)).with(NDA_LLADDR, &mac))
}

/// `default` or a network; then `via GATEWAY`, `dev DEV`, `onlink`, `src ADDRESS`, or several `nexthop via GATEWAY`.
fn route(
    flags: u16,
    to: &str,
    words: &[&str],
    index: impl Fn(&str) -> Option<u32>,
) -> Option<Message> {
    let to: Option<IpNet> = match to {
        "default" => None,
        net => Some(net.parse().ok()?),
    };
    let (mut hops, mut via, mut dev, mut source, mut onlink) = (Vec::new(), None, None, None, 0);
    let mut rest = words;
    loop {
        rest = match rest {
            [] => break,
            ["nexthop", "via", gateway, rest @ ..] => {
                hops.push(gateway.parse::<IpAddr>().ok()?);
                rest
            }
            ["via", gateway, rest @ ..] => {
                via = Some(gateway.parse::<IpAddr>().ok()?);
                rest
            }
            ["dev", name, rest @ ..] => {
                dev = Some(index(name)?);
                rest
            }
            ["src", address, rest @ ..] => {
                source = Some(address.parse::<IpAddr>().ok()?);
                rest
            }
            ["onlink", rest @ ..] => {
                onlink = RTNH_F_ONLINK;
                rest
            }
            _ => return None,
        };
    }
    let to_ip = to.map(|net| net.addr());
    let first = to_ip.or(via).or_else(|| hops.first().copied())?;
    // A gateway of the other family is an attribute of its own (RTA_VIA).
    let mixed = |ip: &IpAddr| family(ip) != family(&first);
    if hops.iter().chain(&via).chain(&source).any(mixed) || (via.is_some() && !hops.is_empty()) {
        return None;
    }
    let scope = match via.is_none() && hops.is_empty() && first.is_ipv4() {
        true => RT_SCOPE_LINK,
        false => RT_SCOPE_UNIVERSE,
    };
    let head = [
        family(&first),
        to.map_or(0, |net| net.prefix_len()),
        0,
        0,
        RT_TABLE_MAIN,
        RTPROT_BOOT,
        scope,
        RTN_UNICAST,
    ];
    let mut made = Message::new(RTM_NEWROUTE, flags, &[&head, &onlink.to_ne_bytes()]);
    if let Some(ip) = to_ip {
        made = made.with(RTA_DST, &bytes(&ip));
    }
    if let Some(ip) = via {
        made = made.with(RTA_GATEWAY, &bytes(&ip));
    }
    if let Some(index) = dev {
        made = made.with(RTA_OIF, &index.to_ne_bytes());
    }
    if let Some(ip) = source {
        made = made.with(RTA_PREFSRC, &bytes(&ip));
    }
    Some(match hops.is_empty() {
        true => made,
        false => made.with(RTA_MULTIPATH, &multipath(&hops)),
    })
}

fn multipath(hops: &[IpAddr]) -> Vec<u8> {
    let mut all = Vec::new();
    for hop in hops {
        let mut gateway = Vec::new();
        attribute(&mut gateway, RTA_GATEWAY, &bytes(hop));
        all.extend(((RTNEXTHOP + gateway.len()) as u16).to_ne_bytes());
        // No flags, the weight is one, and the kernel finds the interface.
        all.extend([0; 6]);
        all.extend(gateway);
    }
    all
}

/// `rate` in bits a second (`1000bit`), the others in bytes.
fn tbf(index: u32, rate: &str, burst: &str, limit: &str) -> Option<Message> {
    let rate: u64 = rate.strip_suffix("bit")?.parse::<u64>().ok()? / 8;
    let (burst, limit): (u32, u32) = (burst.parse().ok()?, limit.parse().ok()?);
    // struct tc_ratespec: with a kind of link the kernel computes times itself, and needs no table of them.
    let mut spec = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    spec.extend(u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
    let mut parms = spec;
    // No peak rate; then limit, a burst in ticks that TCA_TBF_BURST takes the place of, and mtu.
    parms.extend([0; 12]);
    parms.extend(limit.to_ne_bytes());
    parms.extend([0; 8]);
    let mut options = Vec::new();
    attribute(&mut options, TCA_TBF_PARMS, &parms);
    attribute(&mut options, TCA_TBF_BURST, &burst.to_ne_bytes());
    if rate > u64::from(u32::MAX) {
        attribute(&mut options, TCA_TBF_RATE64, &rate.to_ne_bytes());
    }
    Some(root_qdisc(index, b"tbf\0").with(TCA_OPTIONS, &options))
}

/// 1: at the root.
fn root_qdisc(index: u32, kind: &[u8]) -> Message {
    let head = [0, index, 1 << 16, TC_H_ROOT, 0].map(u32::to_ne_bytes);
    Message::new(RTM_NEWQDISC, REPLACE, &[&head.concat()]).with(TCA_KIND, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_byte_by_byte() {
        let made = message("addr add 10.0.0.1/24 dev eth1", |_| Some(7), |_| None).unwrap();
        let mut out = Vec::new();
        made.finish(3, NLM_F_ACK, &mut out);
        let ip = [10, 0, 0, 1];
        let head = [
            HEADER as u8 + 24,
            0,
            0,
            0,
            20,
            0,
            5,
            6,
            3,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ];
        let body = [AF_INET, 24, 0, 0, 7, 0, 0, 0];
        let local = [8, 0, 2, 0];
        let peer = [8, 0, 1, 0];
        let want = [&head[..], &body, &local, &ip, &peer, &ip].concat();
        assert_eq!(out, want);
    }
}
