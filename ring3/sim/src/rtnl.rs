// SPDX-License-Identifier: GPL-2.0
//! The words for `ip` and `tc` that each host needs, said to the kernel over rtnetlink.
//!
//! A program for each of them costs its start, on a node more than on the host: with a thousand hosts that was most of
//! the set-up. So what [`address`](crate::address), [`route`](crate::route) and [`qdisc`](crate::qdisc) write for a host is
//! translated here; it means what it means to the programs. Other words are theirs: what a scenario says for `tc`,
//! and what is done once for the whole network (one start for all lines).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    recv, send, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType,
};

use crate::error::{Error, Result};
use crate::netlink::Asker;
use crate::rtnl_message::{message, HEADER, NLM_F_ACK};

const NLMSG_ERROR: u16 = 2;
/// Messages that are sent at once. Only the last one is acknowledged, so that the answers fit into any socket.
const AT_ONCE: usize = 64;
const BUFFER: usize = 32 << 10;

type Names = BTreeMap<String, u32>;

/// Says these lines in the network namespace that the caller is in, in their order. `otherwise` gets those that are not
/// for here, as many at a time as follow each other.
pub fn say(
    tool: &str,
    lines: &[String],
    mut otherwise: impl FnMut(&[String]) -> Result<()>,
) -> Result<()> {
    let mut names: Option<Names> = None;
    let mut rest = lines;
    while !rest.is_empty() {
        let is_ours = |line: &String| is_known(tool, line);
        let count = rest.iter().take_while(|line| is_ours(line)).count();
        if count > 0 {
            let names = match &names {
                Some(names) => names,
                None => names.insert(interfaces()?),
            };
            send_all(&rest[..count], names)?;
            rest = &rest[count..];
        }
        let count = rest.iter().take_while(|line| !is_ours(line)).count();
        if count > 0 {
            otherwise(&rest[..count])?;
            // It may have made interfaces.
            names = None;
            rest = &rest[count..];
        }
    }
    Ok(())
}

fn interfaces() -> Result<Names> {
    let list = Asker::new()
        .and_then(|asker| asker.interfaces())
        .map_err(Error::host("ask for interfaces"))?;
    let entries = list.into_iter().map(|one| (one.name, one.index as u32));
    Ok(entries.collect())
}

/// Any name will do for the question whether a line is for here.
fn is_known(tool: &str, line: &str) -> bool {
    let is_tools = line.starts_with("qdisc ") == (tool == "tc");
    is_tools && message(line, |_| Some(1), |_| Some(1)).is_some()
}

fn send_all(lines: &[String], names: &Names) -> Result<()> {
    let fd = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )
    .map_err(Error::host("open a socket of rtnetlink"))?;
    for some in lines.chunks(AT_ONCE) {
        send_some(&fd, some, names)?;
    }
    Ok(())
}

fn send_some(fd: &OwnedFd, lines: &[String], names: &Names) -> Result<()> {
    let mut bytes = Vec::new();
    // Open until the message is sent.
    let spaces: RefCell<Vec<File>> = RefCell::default();
    let space = |name: &str| {
        let file = File::open(format!("/run/netns/{name}")).ok()?;
        let fd = file.as_raw_fd();
        spaces.borrow_mut().push(file);
        Some(fd)
    };
    for (i, line) in lines.iter().enumerate() {
        let made = message(line, |name| names.get(name).copied(), space);
        let why = || Error::Said(format!("no such interface or namespace: {line}"));
        let made = made.ok_or_else(why)?;
        let ack = match i + 1 == lines.len() {
            true => NLM_F_ACK,
            false => 0,
        };
        made.finish(i as u32, ack, &mut bytes);
    }
    send(fd.as_raw_fd(), &bytes, MsgFlags::empty()).map_err(Error::host("send to rtnetlink"))?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let len = match recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Err(nix::Error::EINTR) => continue,
            other => other.map_err(Error::host("hear from rtnetlink"))?,
        };
        // Errors come one by one, in the order of the messages; the last message has an answer in any case.
        let (sequence, errno) = answer(&buffer[..len])
            .ok_or_else(|| Error::Said("rtnetlink has sent what is no answer".into()))?;
        let line = lines.get(sequence as usize).map_or("", String::as_str);
        if errno != 0 {
            let why = nix::Error::from_raw(-errno);
            return Err(Error::Said(format!(
                "the kernel refuses `{line}`: {}",
                why.desc()
            )));
        }
        if sequence as usize + 1 == lines.len() {
            return Ok(());
        }
    }
}

/// Which message is answered, and with which error.
fn answer(bytes: &[u8]) -> Option<(u32, i32)> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some((word(8)?, word(HEADER)? as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(tool: &str, line: &str) -> bool {
        is_known(tool, line)
    }

    #[test]
    fn which_words_are_for_here() {
        for line in [
            "link set lo up",
            "link set l0a down",
            "link set eth1 up gso_max_segs 1",
            "addr add 10.0.0.1/24 dev eth1",
            "addr add fd00::1/64 dev eth1 nodad",
            "neigh replace fe80::1 lladdr 02:00:01:00:00:07 dev eth0 nud permanent",
            "route add default via 169.254.0.1 dev eth0 onlink src 11.0.0.1",
            "route add 11.0.0.1/32 dev c0",
            "route replace 10.128.0.0/30 via 10.128.0.5",
            "route replace fd10::/64 nexthop via fd10::1 nexthop via fd10::5",
            "link add eth1 netns a address 02:01:00:00:00:00 type simlink peer name eth0 netns b address 02:01:01:00:00:00",
            "link set eth1 type simlink rate 8000 delay 10 jitter 0 loss 4 seed 99",
            "link set eth1 carrier off",
        ] {
            assert!(known("ip", line) && !known("tc", line), "{line}");
        }
        let tbf = "qdisc replace dev eth1 root handle 1: tbf rate 1000000bit burst 3028 limit 9000";
        assert!(known("tc", tbf) && !known("ip", tbf));
        let bfifo = "qdisc replace dev eth1 root handle 1: bfifo limit 9000";
        assert!(known("tc", bfifo) && !known("ip", bfifo));
        for line in [
            "netns add a",
            "link add eth0 netns a type veth peer name c0",
            "link set eth1 mtu 9000",
            "addr add 127.0.0.2/8 dev lo",
            "addr add fd00::1/64 dev eth1 noprefixroute",
            "route add default via 10.0.0.1 metric 7",
            "route add 10.0.0.0/8 via fe80::1 dev eth0",
            "qdisc replace dev eth1 parent 1:1 handle 10: fq_codel",
            "qdisc replace dev eth1 root handle 1: tbf rate 1mbit burst 3028 limit 9000",
            "",
        ] {
            assert!(!known("ip", line) && !known("tc", line), "{line}");
        }
    }

    #[test]
    fn an_answer_names_its_message() {
        let mut bytes = vec![0; HEADER + 20];
        bytes[4] = NLMSG_ERROR as u8;
        bytes[8] = 9;
        bytes[HEADER..HEADER + 4].copy_from_slice(&(-17i32).to_ne_bytes());
        assert_eq!(answer(&bytes), Some((9, -17)));
        bytes[4] = 3;
        assert_eq!(answer(&bytes), None);
        assert_eq!(answer(&[]), None);
    }
}
