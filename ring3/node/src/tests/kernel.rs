// SPDX-License-Identifier: GPL-2.0
//! The keeper with the real kernel, where `bin/ring3-up.image` is built.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use ring3_config::NodeConfig;

use rustix::time::ClockId;

use super::Place;
use crate::calls::SockAddr;
use crate::clock::nanos;
use crate::node::Node;

/// The image, or a word that the test does nothing.
fn image() -> Option<PathBuf> {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bin/ring3-up.image");
    let path = std::env::var_os("RING3_IMAGE").map_or(built, PathBuf::from);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: no kernel image at {}", path.display());
    None
}

fn config(name: &str, ports: &[&str]) -> Option<NodeConfig> {
    let mut config = NodeConfig::new(name);
    config.image = Some(image()?);
    config.ports = ports.iter().map(|port| port.parse().unwrap()).collect();
    Some(config)
}

#[test]
fn it_boots() {
    let place = Place::new();
    let Some(config) = config("a", &[]) else {
        return;
    };
    let start = Instant::now();
    let node = Node::start(config, &place.folder).unwrap();
    eprintln!("up after {:?}", start.elapsed());
    drop(node);
    eprintln!("gone after {:?}", start.elapsed());
}

/// A UDP socket on a node.
fn udp(node: &mut Node, address: &str) -> (i32, SockAddr) {
    let address: SocketAddr = address.parse().unwrap();
    let domain = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let address = SockAddr::inet(address);
    let init = node.init();
    let fd = init.socket(domain, libc::SOCK_DGRAM, 0).unwrap();
    init.bind(fd, &address).unwrap();
    (fd, address)
}

#[test]
fn lo_is_up_and_sysctls_are_set() {
    let place = Place::new();
    let Some(mut config) = config("a", &[]) else {
        return;
    };
    config.sysctls = vec![("net.ipv4.ip_default_ttl".into(), "42".into())];
    let mut node = Node::start(config, &place.folder).unwrap();
    let (fd, to) = udp(&mut node, "127.0.0.1:7");
    let init = node.init();
    assert_eq!(init.send_to(fd, b"hello", &to), Ok(5));
    let mut data = [0; 16];
    assert_eq!(init.recv(fd, &mut data, 0), Ok(5));
    assert_eq!(&data[..5], b"hello");

    let ttl = init
        .open(c"/proc/sys/net/ipv4/ip_default_ttl", libc::O_RDONLY)
        .unwrap();
    let len = init.read(ttl, &mut data).unwrap();
    assert_eq!(&data[..len], b"42\n");

    let log = node.log(0).unwrap();
    assert!(log.text.contains("Linux version"), "{}", log.text);
    drop(node);
    assert!(place.is_clean());
}

#[test]
fn two_nodes_talk_over_a_link() {
    let place = Place::new();
    let Some(a) = config("a", &["link:ab,addr=10.0.0.1/24,addr=fd00::1/64"]) else {
        return;
    };
    let b = config("b", &["link:ab,addr=10.0.0.2/24,addr=fd00::2/64"]).unwrap();
    let mut a = Node::start(a, &place.folder).unwrap();
    let mut b = Node::start(b, &place.folder).unwrap();
    // b waited for its carrier; a has had one only since b is up.
    a.wait_for_carriers().unwrap();
    for (here, there) in [("10.0.0.1:9", "10.0.0.2:9"), ("[fd00::1]:9", "[fd00::2]:9")] {
        let (from, to_a) = udp(&mut a, here);
        let (at, to_b) = udp(&mut b, there);
        let mut data = [0; 64];
        let start = Instant::now();
        for turn in 0..1000u64 {
            let ping = turn.to_ne_bytes();
            assert_eq!(a.init().send_to(from, &ping, &to_b), Ok(8));
            assert_eq!(b.init().recv(at, &mut data, 0), Ok(8));
            assert_eq!(b.init().send_to(at, &data[..8], &to_a), Ok(8));
            assert_eq!(a.init().recv(from, &mut data, 0), Ok(8));
            assert_eq!(data[..8], ping);
        }
        eprintln!("{here}: {:?} for a round trip", start.elapsed() / 1000);
    }
    drop((a, b));
    assert!(place.is_clean());
}

#[test]
fn its_clocks_are_the_hosts() {
    let place = Place::new();
    let Some(config) = config("a", &[]) else {
        return;
    };
    let mut node = Node::start(config, &place.folder).unwrap();
    let ahead = |node: &mut Node| {
        // The node's clock between two looks at the host's.
        let before = nanos(ClockId::Realtime);
        let there = node.init().clock(libc::CLOCK_REALTIME).unwrap();
        let after = nanos(ClockId::Realtime);
        there as i64 - ((before + after) / 2) as i64
    };
    let at_first = ahead(&mut node);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let later = ahead(&mut node);
    eprintln!("{at_first} ns ahead at first, {later} ns a second later");
}
