// SPDX-License-Identifier: GPL-2.0
//! `ring3 metrics`, `ring3 stat --watch`: what is counted is what a node's programs did, and it is the right node's. Needs `make image gate`.

mod place;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use place::{finish, signal, spawn, Place};

/// Datagrams to a port of loopback where nobody listens.
const SEND: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])): s.sendto(b'x', ('127.0.0.1', 9))
";

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
}

#[test]
fn each_node_counts_its_own() {
    let place = Place::new();
    assert_eq!(place.ok(&["metrics"]), "");
    for (node, datagrams) in [("a", "5"), ("b", "3")] {
        let port = format!("link:x,addr=192.0.2.{datagrams}/24");
        place.ok(&["up", node, "--port", &port]);
        place.ok(&["exec", node, "--", "python3", "-c", SEND, datagrams]);
    }
    let text = place.ok(&["metrics"]);
    has(&text, "node_netstat_Udp_NoPorts{node=\"a\"} 5");
    has(&text, "node_netstat_Udp_NoPorts{node=\"b\"} 3");
    has(&text, "ring3_node_up{node=\"a\"} 1");
    has(&text, "ring3_node_scrape_success{node=\"b\"} 1");
    let device = "node_network_transmit_bytes_total{node=\"a\",device=\"x\"} ";
    assert!(text.lines().any(|line| line.starts_with(device)), "{text}");
    // Prometheus refuses a text in which a name comes twice.
    let mut types: Vec<_> = text.lines().filter(|it| it.starts_with("# TYPE")).collect();
    let all = types.len();
    types.dedup();
    assert_eq!(types.len(), all);
}

#[test]
fn a_node_that_does_not_answer_costs_the_others_nothing() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    place.ok(&["up", "b"]);
    let keeper = place.stat("b")["pid"].as_i64().expect("a number");
    let keeper = Pid::from_raw(keeper as i32);
    kill(keeper, Signal::SIGSTOP).expect("stop it");
    let text = place.ok(&["metrics"]);
    kill(keeper, Signal::SIGCONT).expect("let it go on");
    has(&text, "ring3_node_scrape_success{node=\"a\"} 1");
    has(&text, "ring3_node_scrape_success{node=\"b\"} 0");
    assert!(!text.contains("node_netstat_Udp_NoPorts{node=\"b\"}"));
}

fn get(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("ask");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn served_by_http() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    let mut child = spawn(&mut place.command(&["metrics", "--listen", "127.0.0.1:0"]));
    let mut said = String::new();
    let out = child.stdout.as_mut().expect("a pipe");
    BufReader::new(out).read_line(&mut said).expect("a line");
    let url = said.trim().strip_prefix("http://").expect("a URL");
    let (address, path) = url.split_once('/').expect("a path");
    let answer = get(address, &format!("GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    has(body, "ring3_node_up{node=\"a\"} 1");
    // One that says nothing does not keep the next from its answer.
    drop(TcpStream::connect(address).expect("it listens"));
    for (request, status) in [
        ("GET /x HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
    ] {
        let answer = get(address, request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    signal(&child, Signal::SIGTERM);
    let output = finish(child);
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// Two nodes of a link: one sends to the other, whose rates show it, until it goes down.
#[test]
fn a_node_is_watched_until_it_goes_down() {
    let place = Place::new();
    place.ok(&["up", "a", "--port", "link:x,addr=192.0.2.1/24"]);
    place.ok(&["up", "b", "--port", "link:x,addr=192.0.2.2/24"]);
    let args = ["stat", "a", "--watch=0.2", "--json"];
    let mut child = spawn(&mut place.command(&args));
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = move || -> Option<serde_json::Value> {
        let line = lines.next()?.expect("text");
        Some(serde_json::from_str(&line).expect("JSON"))
    };
    assert_eq!(next().expect("a line")["tcp_retransmitted"], 0.0);
    let send = SEND.replace("127.0.0.1", "192.0.2.1");
    place.ok(&["exec", "b", "--", "python3", "-c", &send, "2000"]);
    let seen = (0..20).find(|_| next().expect("a line")["received_packets"].as_f64() > Some(100.0));
    assert!(seen.is_some());
    place.ok(&["down", "a"]);
    while next().is_some() {}
    let output = finish(child);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
