// SPDX-License-Identifier: GPL-2.0
//! From the host into a node: `connect`, `socks`, `wait`. The host of these tests has nothing at the addresses
//! that are reached, so what answers is the node. Needs `make image gate`.

mod place;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sys::signal::Signal;
use place::{finish, signal, spawn, Place};

/// Of TEST-NET-1: no host has it.
const ADDRESS: &str = "192.0.2.1";
const PORT: &str = "link:x,addr=192.0.2.1/24";

/// Answers each line with itself in capitals, and ends with its client.
const SERVER: &str = "
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(('192.0.2.1', 7777), Echo).serve_forever()
";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node with the server; both are there when this returns.
fn served(place: &Place) -> Server {
    place.ok(&["up", "a", "--port", PORT]);
    let server = Server(spawn(
        &mut place.command(&["exec", "a", "python3", "-c", SERVER]),
    ));
    place.ok(&["wait", "a", "tcp", "7777"]);
    server
}

#[test]
fn connect_joins_two_pipes_and_a_port() {
    let place = Place::new();
    let server = served(&place);
    let mut child = place
        .command(&["connect", "a", ADDRESS, "7777"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    for word in ["first\n", "second\n"] {
        stdin.write_all(word.as_bytes()).expect("write");
        let mut line = String::new();
        lines.read_line(&mut line).expect("read");
        assert_eq!(line, word.to_uppercase());
    }
    // The end goes through, and the server's comes back.
    drop(stdin);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    drop(server);
}

#[test]
fn connect_says_why_not() {
    let place = Place::new();
    place.fails(
        &["connect", "a", ADDRESS, "1"],
        1,
        "no node named `a` is running",
    );
    place.ok(&["up", "a", "--port", PORT]);
    place.fails(&["connect", "a", ADDRESS, "1"], 1, "from node `a`: ");
    // As URLs have it.
    let refused = "cannot connect to ::1 port 1 from node `a`: ";
    place.fails(&["connect", "a", "[::1]", "1"], 1, refused);
    // Not that it is there.
    place.fails(
        &["connect", "-v", "a", ADDRESS, "1"],
        1,
        "cannot connect to",
    );
}

/// The address that a listener says.
fn socks(place: &Place) -> (Server, String) {
    let mut child = place
        .command(&["socks", "a", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe"))
        .read_line(&mut line)
        .expect("a line");
    (Server(child), line.trim().to_owned())
}

fn says(mut stream: &TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("write");
}

fn hears(mut stream: &TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).expect("an answer");
    assert_eq!(bytes, expected, "{:?}", String::from_utf8_lossy(&bytes));
}

#[test]
fn socks_and_http_connect() {
    let place = Place::new();
    let server = served(&place);
    let (listener, at) = socks(&place);
    let open = || {
        let stream = TcpStream::connect(&at).expect("connect");
        stream.set_read_timeout(Some(place::PATIENCE)).expect("set");
        stream
    };
    let target = [
        5,
        1,
        0,
        1,
        192,
        0,
        2,
        1,
        7777u16.to_be_bytes()[0],
        7777u16.to_be_bytes()[1],
    ];
    let granted = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

    let stream = open();
    says(&stream, &[5, 1, 0]);
    hears(&stream, &[5, 0]);
    says(&stream, &target);
    hears(&stream, &granted);
    says(&stream, b"one\n");
    hears(&stream, b"ONE\n");

    // By name, and all at once.
    let stream = open();
    let mut all = vec![5, 1, 0, 5, 1, 0, 3, 9];
    all.extend(b"192.0.2.1\x1e\x61two\n");
    says(&stream, &all);
    hears(&stream, &[5, 0]);
    hears(&stream, &granted);
    hears(&stream, b"TWO\n");

    let stream = open();
    says(
        &stream,
        b"CONNECT 192.0.2.1:7777 HTTP/1.1\r\nHost: x\r\n\r\nthree\n",
    );
    hears(&stream, b"HTTP/1.1 200 Connection established\r\n\r\n");
    hears(&stream, b"THREE\n");

    // A port where nobody listens; a command that there is not; a method; another protocol.
    let stream = open();
    says(&stream, &[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 1]);
    hears(&stream, &[5, 0, 5, 5, 0, 1]);
    let stream = open();
    says(&stream, &[5, 1, 0, 5, 2, 0, 1, 192, 0, 2, 1, 0, 1]);
    hears(&stream, &[5, 0, 5, 7, 0, 1]);
    let stream = open();
    says(&stream, &[5, 1, 2]);
    hears(&stream, &[5, 0xff]);
    let stream = open();
    says(&stream, b"GET http://192.0.2.1/ HTTP/1.1\r\n\r\n");
    hears(&stream, b"HTTP/1.1 405 ");
    drop((listener, server));
}

#[test]
fn socks_stays_on_the_loopback_and_ends_with_the_node() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    place.fails(
        &["socks", "a", "--listen", "0.0.0.0:0"],
        2,
        "is not on the loopback",
    );
    let (mut listener, _) = socks(&place);
    place.ok(&["down", "a"]);
    listener.0.wait().expect("its end");
    place.is_empty();
}

#[test]
fn wait_for_a_node_and_for_ports() {
    let place = Place::new();
    let waiting = spawn(&mut place.command(&["wait", "a"]));
    std::thread::sleep(std::time::Duration::from_millis(100));
    place.ok(&["up", "a"]);
    assert!(finish(waiting).status.success());

    place.fails(
        &["wait", "a", "tcp", "80", "--timeout", "0.2"],
        1,
        "nothing listens on tcp port 80 of node `a`",
    );
    place.fails(
        &["wait", "b", "--timeout", "0"],
        1,
        "no node named `b` is running",
    );
    let waiting = spawn(&mut place.command(&["wait", "a", "udp", "53"]));
    let bound = spawn(&mut place.command(&[
        "exec",
        "a",
        "--",
        "python3",
        "-c",
        "
import socket, time
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::', 53)); time.sleep(60)",
    ]));
    assert!(finish(waiting).status.success());
    signal(&bound, Signal::SIGKILL);
    finish(bound);
}
