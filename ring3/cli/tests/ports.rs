// SPDX-License-Identifier: GPL-2.0
//! Switches, and ports of nodes that are up. Needs `make image gate`.

mod place;

use place::{eventually, Place};

fn reaches(place: &Place, node: &str, address: &str) -> bool {
    let line = ["exec", node, "ping", "-c", "1", "-W", "2", address];
    place.run(&line).status.success()
}

fn names(place: &Place) -> Vec<String> {
    let all: serde_json::Value = serde_json::from_str(&place.ok(&["ls", "--json"])).expect("JSON");
    let all = all.as_array().expect("a list").iter();
    let mut names: Vec<_> = all
        .map(|node| node["name"].as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

/// The refusal of a program is in the switch's log, which outlives it.
fn is_empty_but_logs(place: &Place) {
    eventually("nothing is left behind", || {
        let left = place.left();
        left.iter()
            .all(|it| it.extension().is_some_and(|e| e == "log"))
    });
}

fn up(place: &Place, node: &str, port: &str) {
    place.ok(&["up", node, "--port", port]);
}

/// Three nodes reach each other; the switch came with the first and goes with the last, and what dies leaves its port.
#[test]
fn three_nodes_at_a_switch() {
    let place = Place::new();
    for (node, address) in [("a", "10.0.0.1"), ("b", "10.0.0.2"), ("c", "10.0.0.3")] {
        up(
            &place,
            node,
            &format!("switch:lan,addr={address}/24,mtu=9000"),
        );
    }
    assert_eq!(names(&place), ["a", "b", "c", "lan"]);
    for (node, address) in [("a", "10.0.0.2"), ("b", "10.0.0.3"), ("c", "10.0.0.1")] {
        assert!(reaches(&place, node, address), "{node} to {address}");
    }
    // By name, whichever came first; beside what the host's own file says.
    for (node, name) in [("a", "b"), ("b", "a"), ("c", "a"), ("a", "c")] {
        assert!(reaches(&place, node, name), "{node} to {name}");
    }
    let hosts = place.ok(&["exec", "a", "cat", "/etc/hosts"]);
    assert!(hosts.contains("10.0.0.3 c\n"), "{hosts}");
    let of_the_host = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(hosts.starts_with(of_the_host.trim_end()), "{hosts}");
    assert!(!of_the_host.contains("10.0.0.3 c\n"), "{of_the_host}");
    assert_eq!(place.stat("b")["ports"][0]["kind"], "switch");
    assert_eq!(place.stat("b")["ports"][0]["peer"], "lan");
    let interfaces = |node: &str| -> Vec<String> {
        let status = place.stat(node);
        let ports = status["ports"].as_array().expect("ports").iter();
        ports
            .map(|port| port["ifname"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(interfaces("lan"), ["a", "b", "c"]);
    place.fails(&["exec", "lan", "true"], 125, "is a switch");
    place.ok(&["down", "b"]);
    eventually("the switch has given the port back", || {
        interfaces("lan") == ["a", "c"]
    });
    // What a program has written into the file is there after the next introduction; what ring3 wrote of a node goes.
    let own = "echo 192.0.2.7 mirror >>/etc/hosts";
    place.ok(&["exec", "a", "sh", "-c", own]);
    up(&place, "d", "switch:lan,addr=10.0.0.4/24");
    assert!(reaches(&place, "d", "10.0.0.3"));
    up(&place, "b", "switch:lan,addr=10.0.0.5/24");
    assert!(reaches(&place, "a", "b"));
    let hosts = place.ok(&["exec", "a", "cat", "/etc/hosts"]);
    for (line, count) in [
        ("192.0.2.7 mirror", 1),
        ("10.0.0.4 d", 1),
        ("10.0.0.5 b", 1),
        ("10.0.0.2 b", 0),
    ] {
        let found = hosts.lines().filter(|it| *it == line).count();
        assert_eq!(found, count, "{line} in:\n{hosts}");
    }
    place.ok(&["down", "b"]);
    place.ok(&["down", "a", "c", "d"]);
    eventually("the switch is gone", || names(&place).is_empty());
    is_empty_but_logs(&place);
}

/// A switch that somebody has started stays; a node of another kind is none.
#[test]
fn a_switch_by_name() {
    let place = Place::new();
    place.ok(&["up", "lan", "--switch"]);
    up(&place, "a", "switch:lan,addr=10.0.0.1/24");
    place.ok(&["down", "a"]);
    eventually("the port is given back", || {
        place.stat("lan")["ports"] == serde_json::json!([])
    });
    assert_eq!(names(&place), ["lan"]);
    place.ok(&["up", "plain"]);
    place.fails(
        &["up", "b", "--port", "switch:plain"],
        1,
        "node `plain` is no switch",
    );
    place.ok(&["down", "--all"]);
    is_empty_but_logs(&place);
}

/// A program that was there before the port came uses it.
#[test]
fn ports_of_a_node_that_is_up() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    up(&place, "b", "switch:lan,addr=10.0.0.2/24");
    let server = "import socket\ns = socket.socket(); s.bind(('', 8000)); s.listen()\nwhile True:\n c, _ = s.accept(); c.sendall(b'hello'); c.close()";
    let mut early = place
        .command(&["exec", "a", "python3", "-c", server])
        .spawn()
        .expect("ring3");
    place.ok(&["wait", "a", "tcp", "8000"]);
    // What fails takes no place: another interface has the name.
    place.ok(&["exec", "a", "ip", "link", "add", "bad", "type", "dummy"]);
    for _ in 0..3 {
        let bad = "link:bad,addr=10.9.0.1/24";
        place.fails(&["port", "add", "a", bad], 1, "make interface bad");
    }
    let added = place.ok(&["port", "add", "a", "switch:lan,addr=10.0.0.1/24"]);
    assert_eq!(added, "lan\n");
    let read = "import socket; s = socket.create_connection(('10.0.0.1', 8000), 10); print(s.recv(9).decode())";
    let ask = || place.run(&["exec", "b", "python3", "-c", read]);
    // The server's thread sleeps in the kernel, and is driven into the link by what comes.
    for _ in 0..5 {
        let said = ask();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "hello\n", "{said:?}");
    }
    assert_eq!(place.stat("a")["ports"][0]["peer"], "lan");
    // A link whose far end comes later; whose far end is there is another matter.
    place.ok(&["port", "add", "a", "link:ac,addr=10.1.0.1/24"]);
    up(&place, "c", "link:ac,addr=10.1.0.2/24");
    assert!(reaches(&place, "c", "10.1.0.1"));
    assert!(reaches(&place, "c", "a"));
    assert!(reaches(&place, "a", "c"));
    place.fails(
        &["port", "add", "a", "link:more"],
        1,
        "no place for a further port",
    );
    up(&place, "d", "link:de");
    place.fails(&["port", "add", "b", "link:de"], 1, "switch:NAME");
    place.fails(&["port", "add", "b", "tap:r3x"], 1, "of kind tap");
    place.ok(&["port", "del", "a", "lan"]);
    assert!(!ask().status.success());
    let links = place.ok(&["exec", "a", "ls", "/sys/class/net"]);
    assert!(links.contains("ac") && !links.contains("lan"), "{links}");
    place.fails(
        &["port", "del", "a", "lan"],
        1,
        "no port with the interface",
    );
    early.kill().expect("the server is ours");
    early.wait().expect("the server is ours");
    place.ok(&["down", "a", "b", "c", "d"]);
    eventually("all are gone", || names(&place).is_empty());
    is_empty_but_logs(&place);
}

/// A service manager hears when programs may join, not before.
#[test]
fn readiness() {
    let place = Place::new();
    let path = place.dir.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    socket
        .set_read_timeout(Some(place::PATIENCE))
        .expect("a time limit");
    let mut node = place
        .command(&["up", "a", "--foreground"])
        .env("NOTIFY_SOCKET", &path)
        .spawn()
        .expect("ring3");
    let mut said = [0; 64];
    let len = socket.recv(&mut said).expect("a word");
    assert_eq!(&said[..len], b"READY=1\n");
    place.ok(&["exec", "a", "true"]);
    place.ok(&["down", "a"]);
    assert!(node.wait().expect("the node is ours").success());
}
