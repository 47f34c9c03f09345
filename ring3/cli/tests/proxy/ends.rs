// SPDX-License-Identifier: GPL-2.0
//! Drain, limits, a node of the proxy's own.

use super::*;

/// Numbers of this process's children.
fn children(parent: u32) -> Vec<i32> {
    let is_child = |pid: &i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        let own = format!("PPid:\t{parent}");
        status.is_ok_and(|text| text.lines().any(|line| line == own))
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let found: Vec<i32> = all
        .filter_map(|it| it.file_name().to_str()?.parse().ok())
        .filter(is_child)
        .collect();
    assert!(!found.is_empty(), "{parent} has no children");
    found
}

#[test]
fn sigterm_drains() {
    let place = nodes();
    let to = target("x").to_string();
    let args = ["--on", "a", "--listen", "tcp:80", "--to", &to];
    let mut proxy = Proxy::start(&place, &args, &["80"]);
    let mut client = spawn(
        place
            .command(&["connect", "b", ADDRESS, "80"])
            .stdin(Stdio::piped()),
    );
    let mut output = client.stdout.take().expect("a pipe");
    let mut input = client.stdin.take().expect("a pipe");
    output.read_exact(&mut [0]).expect("its name");
    // As systemd does: one to each process of the service. The relay's first, which it leaves to the supervisor.
    for relay in children(proxy.0.id()) {
        let relay = nix::unistd::Pid::from_raw(relay);
        nix::sys::signal::kill(relay, Signal::SIGTERM).expect("signal");
    }
    assert_eq!(says(&place, "80", ""), "x");
    signal(&proxy.0, Signal::SIGTERM);
    eventually("nobody new is let in", || {
        let refused = place.run(&["connect", "b", ADDRESS, "80"]);
        String::from_utf8_lossy(&refused.stderr).contains("refused")
    });
    input.write_all(b"still here").expect("write");
    let mut words = [0; 10];
    output.read_exact(&mut words).expect("an answer");
    assert_eq!(&words, b"still here");
    assert!(proxy.0.try_wait().expect("wait").is_none());
    drop(input);
    eventually("it ends with its last connection", || {
        proxy.0.try_wait().expect("wait").is_some()
    });
    assert!(proxy.0.wait().expect("wait").success());
    drop(finish(client));
    // With a grace it ends though there is one.
    let args = [&args[..], &["--grace", "200ms"]].concat();
    let proxy = Proxy::start(&place, &args, &["80"]);
    let mut client = spawn(
        place
            .command(&["connect", "b", ADDRESS, "80"])
            .stdin(Stdio::piped()),
    );
    let mut output = client.stdout.take().expect("a pipe");
    output.read_exact(&mut [0]).expect("its name");
    proxy.end();
    drop(client.stdin.take());
    drop(finish(client));
}

#[test]
fn limits_of_one_source_and_numbers() {
    let place = nodes();
    let to = target("x").to_string();
    let text = format!(
        "on = \"a\"\nlog = \"log\"\n[[listener]]\nname = \"few\"\nlisten = \"tcp:80\"\nto = [\"{to}\"]\nlimit = {{ connections = 2 }}\n[[listener]]\nname = \"slow\"\nlisten = \"tcp:81\"\nto = [\"{to}\"]\nlimit = {{ bytes = \"1M\" }}\n"
    );
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80", "81"]);
    let script = "
import socket, time
def start(port=80):
    # The reset may come before connect() has returned.
    try:
        s = socket.create_connection(('192.0.2.1', port), timeout=30)
        return s, s.recv(1)
    except ConnectionResetError: return None, None
a, b, c = start(), start(), start()
assert (a[1], b[1], c[1]) == (b'x', b'x', None), (a, b, c)
a[0].close()
while True:
    # The end of the first is seen a moment later.
    d = start()
    if d[1] == b'x': break
# A second's worth is free, and of three million bytes and their echoes the rest takes a time.
s, _ = start(81)
start, left = time.monotonic(), 1500000
s.sendall(b'y' * left)
while left: left -= len(s.recv(100000))
took = time.monotonic() - start
assert took > 1.5, took
";
    python(&place, script, &[]);
    assert_eq!(proxy.end(), "");
    let log = fs::read_to_string(place.dir.path().join("log")).expect("a log");
    assert!(
        log.contains("\"end\":\"connections\",\"event\":\"connection\",\"listener\":\"few\""),
        "{log}"
    );
}

/// The node is the proxy's own: what a hostile packet meets is the confined process alone.
#[test]
fn a_node_of_its_own() {
    let place = Place::new();
    let to = target("own:").to_string();
    let log = place.dir.path().join("log");
    let words = log.to_str().expect("UTF-8");
    let args = [
        "proxy",
        "--on",
        "edge",
        "--port",
        "link:x,addr=192.0.2.1/24",
        "--listen",
        "tcp:80",
        "--to",
        &to,
        "--log",
        words,
    ];
    let proxy = Proxy(
        place
            .command(&args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts"),
    );
    eventually("it serves", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("\"serves\""))
    });
    // A link whose far end comes later.
    place.ok(&["up", "b", "--port", "link:x,addr=192.0.2.2/24"]);
    for turn in 0..5 {
        let words = format!("{turn}").repeat(20_000);
        assert_eq!(says(&place, "80", &words), format!("own:{words}"));
    }
    // Nobody else comes to its node.
    let output = place.run(&["exec", "edge", "true"]);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(proxy.end(), "");
}
