// SPDX-License-Identifier: GPL-2.0
//! `ring3 proxy`: clients on one node, the proxy on another, and targets on the host's loopback. Needs `make image gate`.

mod datagrams;
mod ends;
mod headers;
#[path = "../place/mod.rs"]
mod place;
mod reload;
mod streams;
mod targets;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use nix::sys::signal::Signal;
use place::{eventually, expect_failure, finish, signal, spawn, Place};

/// Of TEST-NET-1: no host has it.
const ADDRESS: &str = "192.0.2.1";

/// Two nodes at one link: `a` has the proxy, `b` the clients.
fn nodes() -> Place {
    let place = Place::new();
    place.ok(&["up", "a", "--port", "link:x,addr=192.0.2.1/24"]);
    place.ok(&["up", "b", "--port", "link:x,addr=192.0.2.2/24"]);
    place
}

struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Proxy {
    /// Serves when this returns.
    fn start(place: &Place, args: &[&str], ports: &[&str]) -> Proxy {
        let args = [&["proxy"], args].concat();
        let mut command = place.command(&args);
        let proxy = Proxy(command.stderr(Stdio::piped()).spawn().expect("it starts"));
        for port in ports {
            place.ok(&["wait", "a", "tcp", port]);
        }
        proxy
    }

    /// Until it has ended: what it said.
    fn end(mut self) -> String {
        signal(&self.0, Signal::SIGTERM);
        eventually("the proxy ends", || {
            self.0.try_wait().expect("wait").is_some()
        });
        let mut said = String::new();
        let mut errors = self.0.stderr.take().expect("a pipe");
        errors.read_to_string(&mut said).expect("UTF-8");
        let status = self.0.wait().expect("wait");
        assert!(status.success(), "{status}: {said}");
        said
    }
}

/// Answers each connection with its name, then with all that it says, and ends when it does.
fn target(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || echo(stream.expect("accept"), name));
        }
    });
    address
}

fn echo(mut stream: TcpStream, name: &str) -> std::io::Result<()> {
    stream.write_all(name.as_bytes())?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            len => stream.write_all(&chunk[..len])?,
        }
    }
}

/// One connection of node `b`: says `words`, then nothing more; what came back.
fn says(place: &Place, port: &str, words: &str) -> String {
    let mut child = spawn(
        place
            .command(&["connect", "b", ADDRESS, port])
            .stdin(Stdio::piped()),
    );
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(words.as_bytes()).expect("write");
    drop(input);
    String::from_utf8(finish(child).stdout).expect("UTF-8")
}

/// A file of the proxy's, and the words to start it with.
fn file(place: &Place, text: &str) -> String {
    let path = place.dir.path().join("proxy.toml");
    fs::write(&path, text).expect("write");
    path.to_str().expect("UTF-8").to_owned()
}

/// Runs this on node `b` until it ends; what it printed.
#[track_caller]
fn python(place: &Place, script: &str, args: &[&str]) -> String {
    let head = ["exec", "b", "python3", "-c", script];
    place.ok(&[&head, args].concat())
}

/// A target in a process of its own, which can be killed. It answers with its name and ends.
fn mortal(name: &str) -> (Proxy, String) {
    let script = "
import socket, sys
s = socket.create_server(('127.0.0.1', 0), backlog=100)
print(s.getsockname()[1], flush=True)
while True:
    c = s.accept()[0]
    c.sendall(sys.argv[1].encode())
    c.close()
";
    let mut command = std::process::Command::new("python3");
    let mut guard = Proxy(spawn(
        command.args(["-c", script, name]).stdin(Stdio::null()),
    ));
    let mut lines = BufReader::new(guard.0.stdout.take().expect("a pipe"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    (guard, format!("127.0.0.1:{}", line.trim()))
}

/// So many connections of node `b`, each of which hears a name: how many each name has.
const NAMES: &str = "
import collections, socket, sys
names = collections.Counter()
for _ in range(int(sys.argv[2])):
    with socket.create_connection(('192.0.2.1', int(sys.argv[1])), timeout=30) as s:
        names[(s.makefile('rb').read() or b'nobody').decode()] += 1
print(sorted(names.items()))
";
