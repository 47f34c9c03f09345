// SPDX-License-Identifier: GPL-2.0
//! The keeper with the real kernel, where `bin/ring3-up.image` is built.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ring3_config::NodeConfig;

use rustix::time::ClockId;

use super::Place;
use crate::calls::SockAddr;
use crate::clock::nanos;
use crate::error::Error;
use crate::node::Node;
use crate::sys;

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
    // The node's clock between two looks at the host's, which are to be close together.
    let ahead = |node: &mut Node| {
        let looks = (0..20).map(|_| {
            let before = nanos(ClockId::Realtime);
            let there = node.init().clock(libc::CLOCK_REALTIME).unwrap();
            let after = nanos(ClockId::Realtime);
            (after - before, there as i64 - ((before + after) / 2) as i64)
        });
        looks.min().unwrap().1
    };
    let at_first = ahead(&mut node);
    std::thread::sleep(Duration::from_secs(1));
    let later = ahead(&mut node);
    eprintln!("{at_first} ns ahead at first, {later} ns a second later");
    // What the keeper measured over 3 ms was refined meanwhile.
    assert!(at_first.abs() < 20_000);
    assert!(later.abs() < 20_000);
}

/// Sends a datagram to the host through a port and gets the answer.
fn ping_pong(node: &mut Node, from: &str, host: &UdpSocket) {
    let (fd, _) = udp(node, from);
    let to = SockAddr::inet(host.local_addr().unwrap());
    host.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let big = vec![7; 9000];
    assert_eq!(node.init().send_to(fd, &big, &to), Ok(big.len()));
    let mut data = vec![0; 10_000];
    let (len, peer) = host.recv_from(&mut data).unwrap();
    assert_eq!(data[..len], big);
    host.send_to(b"pong", peer).unwrap();
    assert_eq!(node.init().recv(fd, &mut data, 0), Ok(4));
    assert_eq!(&data[..4], b"pong");
}

#[test]
fn a_tap_leads_to_the_host_and_goes_with_the_node() {
    let place = Place::new();
    let spec = "tap:r3test,addr=10.254.77.2/30,host=10.254.77.1/30";
    let Some(config) = config("a", &[spec]) else {
        return;
    };
    let mut node = match Node::start(config, &place.folder) {
        Ok(node) => node,
        Err(error @ (Error::TapForbidden { .. } | Error::TunForbidden | Error::TapMissing)) => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let host = UdpSocket::bind("10.254.77.1:0").unwrap();
    ping_pong(&mut node, "10.254.77.2:77", &host);
    assert!(sys::interface_index("r3test").is_some());
    drop(node);
    assert!(sys::interface_index("r3test").is_none());
}

#[test]
fn passt_leads_to_the_host_and_goes_with_the_node() {
    let place = Place::new();
    let Some(config) = config("a", &["passt,loopback=yes"]) else {
        return;
    };
    let mut node = match Node::start(config, &place.folder) {
        Ok(node) => node,
        Err(error @ (Error::PasstMissing | Error::PasstFailed { .. })) => {
            eprintln!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let pid = node.passt_pid().unwrap();
    let proc = PathBuf::from(format!("/proc/{pid}"));
    assert!(proc.exists());
    // With loopback=yes the gateway's address is the host's loopback.
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = SocketAddr::from(([10, 0, 2, 2], host.local_addr().unwrap().port()));
    let init = node.init();
    let fd = init.socket(libc::AF_INET, libc::SOCK_STREAM, 0).unwrap();
    init.connect(fd, &SockAddr::inet(gateway)).unwrap();
    assert_eq!(init.write(fd, b"ping"), Ok(4));
    let (mut stream, _) = host.accept().unwrap();
    let mut data = [0; 4];
    stream.read_exact(&mut data).unwrap();
    assert_eq!(&data, b"ping");
    drop(node);
    assert!(!proc.exists());
}

#[test]
fn a_capture_has_both_directions_and_true_times() {
    let place = Place::new();
    let file = place.path("a.pcap");
    let spec = format!("link:ab,addr=10.0.0.1/24,pcap={}", file.display());
    let Some(a) = config("a", &[&spec]) else {
        return;
    };
    let start = nanos(ClockId::Realtime);
    let mut a = Node::start(a, &place.folder).unwrap();
    let b = config("b", &["link:ab,addr=10.0.0.2/24"]).unwrap();
    let mut b = Node::start(b, &place.folder).unwrap();
    a.wait_for_carriers().unwrap();
    let (from, to_a) = udp(&mut a, "10.0.0.1:9");
    let (at, to_b) = udp(&mut b, "10.0.0.2:9");
    let mut data = [0; 64];
    a.init().send_to(from, b"there", &to_b).unwrap();
    b.init().recv(at, &mut data, 0).unwrap();
    b.init().send_to(at, b"and back", &to_a).unwrap();
    a.init().recv(from, &mut data, 0).unwrap();
    drop((a, b));
    let end = nanos(ClockId::Realtime);

    let bytes = std::fs::read(&file).unwrap();
    let mut reader = pcap_file::pcap::PcapReader::new(&*bytes).unwrap();
    let (mut there, mut back) = (0, 0);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let time = packet.timestamp.as_nanos() as u64;
        assert!((start..end).contains(&time), "{start} < {time} < {end}");
        there += usize::from(packet.data.ends_with(b"there"));
        back += usize::from(packet.data.ends_with(b"and back"));
    }
    assert_eq!((there, back), (1, 1));
}
