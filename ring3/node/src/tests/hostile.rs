// SPDX-License-Identifier: GPL-2.0
//! Who asks at a node's sockets without knowing how, or without a right to.
//!
//! `RING3_FUZZ_SECONDS` and `RING3_FUZZ_SEED` make the random parts longer, and repeat them.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use ring3_abi::*;
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix, SocketType};

use super::join_client::join;
use super::Place;
use crate::client::{Client, State};
use crate::elf::c_string;
use crate::NodeHandle;

/// Somebody who is not root and not the node's user.
const NOBODY: u32 = 65534;

fn number(variable: &str, otherwise: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

/// xorshift64* (Vigna 2016).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.roll(most)).map(|_| self.roll(256) as u8).collect()
    }
}

/// Sends a packet to the join socket and takes what comes back: status and message.
fn ask(path: &Path, packet: &[u8]) -> Option<(i32, String)> {
    let family = rustix::net::AddressFamily::UNIX;
    let socket = rustix::net::socket(family, SocketType::SEQPACKET, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).ok()?;
    let _ = rustix::net::send(&socket, packet, SendFlags::NOSIGNAL);
    let mut reply = [0; size_of::<ring3_join_reply>()];
    let (len, _) = rustix::net::recv(&socket, &mut reply[..], RecvFlags::empty()).ok()?;
    if len < reply.len() {
        return None;
    }
    let status = i32::from_ne_bytes(reply[12..16].try_into().unwrap());
    Some((status, c_string(&reply[16..176])))
}

/// A request that would be granted, as bytes.
fn request() -> Vec<u8> {
    let mut bytes = RING3_JOIN_MAGIC.to_ne_bytes().to_vec();
    bytes.extend(RING3_ABI.to_ne_bytes());
    bytes.extend((std::process::id() as i32).to_ne_bytes());
    bytes
}

#[test]
fn nonsense_at_the_join_socket() {
    let place = Place::new();
    let node = NodeHandle::start_in(place.fake_node("a"), &place.folder).unwrap();
    let mut dice = Dice(number("RING3_FUZZ_SEED", 7) * 2 + 1);
    let (start, limit) = (Instant::now(), number("RING3_FUZZ_SECONDS", 3));
    let (mut asked, mut refused) = (0, 0);
    while start.elapsed() < Duration::from_secs(limit) {
        let mut packet = request();
        match dice.roll(4) {
            0 => packet = dice.bytes(4096),
            1 => packet.truncate(dice.roll(16)),
            2 => packet.extend([&[1], &dice.bytes(64)[..]].concat()),
            _ => {
                let at = dice.roll(16);
                packet[at] ^= 1 << dice.roll(8);
            }
        }
        asked += 1;
        // An empty packet is the end of a connection: no answer, or one that says so.
        if let Some((status, message)) = ask(node.join_path(), &packet) {
            assert!(status < 0, "let in by {packet:?}");
            assert!(
                !message.is_empty() && !message.contains('\n'),
                "{message:?}"
            );
            refused += 1;
        }
    }
    assert!(
        asked > 100 && refused > asked / 2,
        "{asked} asked, {refused} refused"
    );
    let (reply, _) = join(node.join_path(), RING3_ABI, std::process::id() as i32);
    assert_eq!(reply.status, 0);
    node.down().unwrap();
}

#[test]
fn nonsense_at_the_control_socket() {
    let place = Place::new();
    let node = NodeHandle::start_in(place.fake_node("a"), &place.folder).unwrap();
    let mut dice = Dice(number("RING3_FUZZ_SEED", 8) * 2 + 1);
    let (start, limit) = (Instant::now(), number("RING3_FUZZ_SECONDS", 3));
    let good: [&[u8]; 3] = [
        b"{\"op\":\"status\"}\n",
        b"{\"op\":\"log\",\"from\":0}\n",
        b"{\"op\":\"log\",\"from\":-1}\n",
    ];
    while start.elapsed() < Duration::from_secs(limit) {
        let mut line = good[dice.roll(3)].to_vec();
        match dice.roll(3) {
            0 => line = dice.bytes(4096),
            1 => line.truncate(dice.roll(line.len())),
            _ => {
                let at = dice.roll(line.len());
                line[at] = dice.roll(256) as u8;
            }
        }
        let mut stream = UnixStream::connect(place.folder.control_path("a")).unwrap();
        let _ = stream.write_all(&line);
        if dice.roll(4) > 0 {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    let client = Client::find(place.folder.clone(), "a").unwrap();
    assert_eq!(client.status().unwrap().state, State::Up);
    node.down().unwrap();
}

/// Even if the folders were open to all: the host says who asks.
#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: to be another user needs root");
        return;
    }
    let place = Place::new();
    let node = NodeHandle::start_in(place.fake_node("a"), &place.folder).unwrap();
    let control = place.folder.control_path("a");
    let join = node.join_path().to_owned();
    for path in [&control, &join] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
        for folder in path
            .ancestors()
            .skip(1)
            .take_while(|it| *it != Path::new("/dev/shm"))
        {
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
    let (refusal, status) = std::thread::spawn(move || {
        let uid = Some(rustix::process::Uid::from_raw(NOBODY));
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        let refusal = ask(&join, &request());
        let mut answer = Vec::new();
        if let Ok(mut stream) = UnixStream::connect(control) {
            let _ = stream.write_all(b"{\"op\":\"status\"}\n");
            let _ = stream.read_to_end(&mut answer);
        }
        (refusal, String::from_utf8_lossy(&answer).into_owned())
    })
    .join()
    .unwrap();
    let (errno, message) = refusal.expect("no answer");
    assert_eq!(errno, -libc::EPERM, "{message}");
    assert!(
        message.contains("65534 is not this node's user"),
        "{message}"
    );
    assert!(!status.contains("version"), "{status}");
    node.down().unwrap();
}

/// The folders and sockets as they are: nobody else gets as far as to ask.
#[test]
fn folders_are_private() {
    let place = Place::new();
    let node = NodeHandle::start_in(place.fake_node("a"), &place.folder).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let join = node.join_path();
    assert_eq!(mode(join), 0o600);
    for folder in join.ancestors().skip(1).take(3) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    node.down().unwrap();
}

/// Who connects and says nothing is waited for beside the others, not before them.
#[test]
fn the_silent_hold_nobody_up() {
    let place = Place::new();
    let node = NodeHandle::start_in(place.fake_node("a"), &place.folder).unwrap();
    let family = rustix::net::AddressFamily::UNIX;
    let silent: Vec<_> = (0..6)
        .map(|_| {
            let socket = rustix::net::socket(family, SocketType::SEQPACKET, None).unwrap();
            let address = SocketAddrUnix::new(node.join_path()).unwrap();
            rustix::net::connect(&socket, &address).unwrap();
            socket
        })
        .collect();
    let start = Instant::now();
    let (reply, _) = join(node.join_path(), RING3_ABI, std::process::id() as i32);
    assert_eq!(reply.status, 0);
    assert!(start.elapsed() < Duration::from_millis(900), "it waited");
    // They hear that it was too long.
    for socket in silent {
        let mut reply = [0; size_of::<ring3_join_reply>()];
        let (len, _) = rustix::net::recv(&socket, &mut reply[..], RecvFlags::empty()).unwrap();
        assert_eq!(len, reply.len());
        assert!(c_string(&reply[16..176]).contains("no request within 1 s"));
    }
    assert!(start.elapsed() < Duration::from_secs(4));
    node.down().unwrap();
}
