// SPDX-License-Identifier: GPL-2.0
//! `ring3 proxy`: clients on one node, the proxy on another, and targets on the host's loopback. Needs `make image gate`.

mod place;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};

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

#[test]
fn one_listener_and_one_target() {
    let place = nodes();
    let to = target("one:").to_string();
    let log = place.dir.path().join("log");
    let words = log.to_str().expect("UTF-8");
    let args = [
        "--on", "a", "--listen", "tcp:80", "--to", &to, "--log", words,
    ];
    let proxy = Proxy::start(&place, &args, &["80"]);
    // The half-close goes through, and the answer comes back after it.
    assert_eq!(says(&place, "80", "hello"), "one:hello");
    // A second one of the name does not start.
    let again = ["proxy", "--on", "a", "--listen", "tcp:81", "--to", &to];
    place.fails(&again, 1, "a proxy named `a` runs already");
    assert_eq!(proxy.end(), "");
    let log = fs::read_to_string(log).expect("a log");
    let line = log.lines().find(|line| line.contains("\"connection\""));
    let line: serde_json::Value = serde_json::from_str(line.expect("a line")).expect("JSON");
    assert_eq!(
        (line["sent"].as_u64(), line["received"].as_u64()),
        (Some(5), Some(9))
    );
    assert_eq!(line["end"], "done", "{line}");
    assert_eq!(line["target"], to, "{line}");
    assert!(
        line["client"]
            .as_str()
            .is_some_and(|it| it.starts_with("192.0.2.2:")),
        "{line}"
    );
}

#[test]
fn what_can_not_be_done_is_said() {
    let place = Place::new();
    let to = "127.0.0.1:1";
    let args = ["proxy", "--on", "a", "--listen", "tcp:80", "--to", to];
    place.fails(&args, 1, "no node named `a` is running");
    place.ok(&["up", "a", "--port", "link:x,addr=192.0.2.1/24"]);
    let args = [
        "proxy",
        "--on",
        "a",
        "--listen",
        "tcp:192.0.2.9:80",
        "--to",
        to,
    ];
    place.fails(
        &args,
        1,
        "cannot listen on tcp:192.0.2.9:80: Cannot assign requested address",
    );
    place.fails(&["proxy", "reload", "a"], 1, "no proxy named `a` runs");
    let file = place.dir.path().join("proxy.toml");
    fs::write(
        &file,
        "on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [1]\n",
    )
    .expect("write");
    let args = ["proxy", "--check", file.to_str().expect("UTF-8")];
    let output = place.run(&args);
    expect_failure(&output, 2, "proxy.toml: line 4, column 7: ");
}
