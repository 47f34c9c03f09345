// SPDX-License-Identifier: GPL-2.0
//! Which target a client has.

use super::*;

#[test]
fn others_take_over() {
    let place = nodes();
    let (mut first, one) = mortal("one");
    let (_second, two) = mortal("two");
    let text = format!(
        "on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [{{ to = \"{one}\", weight = 3 }}, \"{two}\"]\n"
    );
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80"]);
    let said = python(&place, NAMES, &["80", "20"]);
    // 15 and 5, but for one that is slow once and rests for that.
    let all = ["one", "two"].iter().all(|it| said.contains(it));
    assert!(all && !said.contains("nobody"), "{said}");
    let first = &mut first.0;
    first.kill().and_then(|()| first.wait()).expect("killed");
    // Nobody notices.
    let said = python(&place, NAMES, &["80", "20"]);
    assert_eq!(said.trim(), "[('two', 20)]");
    assert_eq!(proxy.end(), "");
}

/// One that answers connections and fails its health check has no clients, until it passes.
#[test]
fn health_checks_decide() {
    let place = nodes();
    let is_fine = Arc::new(AtomicBool::new(false));
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let sick = listener.local_addr().expect("an address").to_string();
    let state = is_fine.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accept");
            let word = match state.load(Ordering::Relaxed) {
                true => "200 OK",
                false => "503 Busy",
            };
            // A client says nothing, and hears the same.
            let _ = write!(stream, "HTTP/1.0 {word}\r\n\r\nsick");
        }
    });
    let (_other, well) = mortal("HTTP/1.0 200 OK\r\n\r\nwell");
    let text = format!(
        "on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [\"{sick}\", \"{well}\"]\nhealth = {{ check = \"http\", interval = \"20ms\", timeout = \"10s\", fall = 1, rise = 1 }}\n"
    );
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80"]);
    let heard = || python(&place, NAMES, &["80", "4"]);
    eventually("the sick one has no clients", || !heard().contains("sick"));
    assert!(!heard().contains("sick"));
    is_fine.store(true, Ordering::Relaxed);
    eventually("both have clients", || {
        let heard = heard();
        heard.contains("sick") && heard.contains("well")
    });
    let said = proxy.end();
    assert!(
        said.contains(&format!(
            "target {sick} is down: it answers `HTTP/1.0 503 Busy`"
        )),
        "{said}"
    );
}

#[test]
fn targets_on_other_nodes_and_unix_sockets() {
    let place = nodes();
    place.ok(&["up", "c"]);
    let path = place.dir.path().join("target.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("listen");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accept");
            let mut words = String::new();
            let _ = stream.read_to_string(&mut words);
            let _ = stream.write_all(format!("unix:{words}").as_bytes());
        }
    });
    let script = "
import socket
s = socket.create_server(('127.0.0.1', 7000))
while True:
    c = s.accept()[0]
    c.sendall(b'c:' + c.makefile('rb').read())
    c.close()
";
    let _server = Proxy(
        place
            .command(&["exec", "c", "python3", "-c", script])
            .spawn()
            .expect("it starts"),
    );
    place.ok(&["wait", "c", "tcp", "7000"]);
    let text = format!(
        "on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [\"unix:{}\"]\n[[listener]]\nlisten = \"tcp:81\"\nto = [\"node:c:7000\"]\n[[listener]]\nlisten = \"tcp:82\"\nto = [\"node:c:7001\"]\n",
        path.display()
    );
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80", "81"]);
    assert_eq!(says(&place, "80", "hello"), "unix:hello");
    for turn in 0..5 {
        let words = format!("{turn}").repeat(20_000);
        assert_eq!(says(&place, "81", &words), format!("c:{words}"));
    }
    // Nobody listens there.
    assert_eq!(says(&place, "82", ""), "");
    assert_eq!(proxy.end(), "");
}

/// Connections until there is no room for more.
fn fill(path: &std::path::Path) -> Vec<std::os::fd::OwnedFd> {
    use nix::sys::socket::{connect, socket, AddressFamily, SockFlag, SockType, UnixAddr};
    let to = UnixAddr::new(path).expect("an address");
    let mut all = Vec::new();
    loop {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let made = socket(AddressFamily::Unix, SockType::Stream, flags, None).expect("a socket");
        match connect(std::os::fd::AsRawFd::as_raw_fd(&made), &to) {
            Ok(()) => all.push(made),
            Err(why) => {
                assert_eq!(why, nix::errno::Errno::EAGAIN);
                return all;
            }
        }
    }
}

/// A server that is slow to accept has a full backlog, and clients wait for it.
#[test]
fn a_full_backlog_is_waited_for() {
    let place = nodes();
    let path = place.dir.path().join("target.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("listen");
    let backlog = nix::sys::socket::Backlog::new(1).expect("a backlog");
    nix::sys::socket::listen(&listener, backlog).expect("listen");
    let _others = fill(&path);
    let one = |port: u16, time: &str| {
        format!("[[listener]]\nlisten = \"tcp:{port}\"\nto = [\"unix:{}\"]\nconnect_timeout = \"{time}\"\n", path.display())
    };
    let text = format!("on = \"a\"\n{}{}", one(80, "5m"), one(81, "1ms"));
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80", "81"]);
    let script = "
import socket
all = [socket.create_connection(('192.0.2.1', 80), timeout=120) for _ in range(8)]
print('open', flush=True)
print(b''.join(s.recv(1) for s in all).decode())
";
    let mut child = spawn(&mut place.command(&["exec", "b", "python3", "-c", script]));
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut [0; 5]).expect("a line");
    // One who does not wait comes after all of them: when it has heard its end, the proxy has met the full backlog for each.
    assert_eq!(says(&place, "81", ""), "");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            stream.and_then(|mut it| it.write_all(b"x")).expect("write");
        }
    });
    let mut said = String::new();
    output.read_to_string(&mut said).expect("a line");
    finish(child);
    assert_eq!(said, "xxxxxxxx\n");
    assert_eq!(proxy.end(), "");
}
