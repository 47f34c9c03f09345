// SPDX-License-Identifier: GPL-2.0
//! `ring3 proxy`: clients on one node, the proxy on another, and targets on the host's loopback. Needs `make image gate`.

mod place;

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

/// Connections of four kinds, of which the first byte says which, and then eight its size: an echo whose client says its
/// end first; bytes whose sender says its end first, and an answer after it; a reset by the server; one by the client.
const KINDS: &str = "
import os, random, socket, struct, sys, threading
address, port, count, size, seed = sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:6])
LINGER = struct.pack('ii', 1, 0)
failed = []
def pattern(n): return (bytes(range(251)) * (n // 251 + 1))[:n]
def read(s):
    parts = []
    while True:
        part = s.recv(1 << 16)
        if not part: return b''.join(parts)
        parts.append(part)
def one(kind, n, rng):
    with socket.create_connection((address, port), timeout=60) as s:
        s.sendall(struct.pack('<BQ', kind, n))
        if kind == 0:
            data = rng.randbytes(n)
            def send():
                at = 0
                while at < n:
                    step = rng.randrange(1, 100000)
                    s.sendall(data[at:at + step]); at += step
                s.shutdown(socket.SHUT_WR)
            t = threading.Thread(target=send); t.start()
            got = read(s); t.join()
            assert got == data, (len(got), n)
        elif kind == 1:
            assert read(s) == pattern(n)
            s.sendall(pattern(n)); s.shutdown(socket.SHUT_WR)
        elif kind == 2:
            try: got = read(s)
            except ConnectionResetError: got = None
            assert got is None, 'no reset'
        else:
            s.sendall(pattern(min(n, 20000)))
            assert s.recv(1) == b'k'
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
def some(rng, kinds):
    for kind in kinds:
        try: one(kind, rng.randrange(size // 2, size), rng)
        except Exception as e: failed.append((kind, repr(e)))
rng = random.Random(seed)
kinds = [i % 4 for i in range(count)]
rng.shuffle(kinds)
threads = [threading.Thread(target=some, args=(random.Random(seed + i), kinds[i::8])) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(failed), failed[:3])
";

/// The server of these: how many of each kind went as they should.
fn kinds() -> (SocketAddr, Arc<[AtomicUsize; 4]>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("an address");
    let counts: Arc<[AtomicUsize; 4]> = Arc::default();
    let fine = counts.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, fine) = (stream.expect("accept"), fine.clone());
            std::thread::spawn(move || {
                if let Ok(kind) = serve_kind(stream) {
                    fine[kind].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (address, counts)
}

fn serve_kind(mut stream: TcpStream) -> std::io::Result<usize> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let size = u64::from_le_bytes(head[1..].try_into().expect("8 bytes")) as usize;
    let pattern = |len: usize| (0..len).map(|at| (at % 251) as u8).collect::<Vec<_>>();
    let wrong = || std::io::Error::other("other bytes");
    match head[0] {
        0 => {
            let mut chunk = vec![0; 64 << 10];
            loop {
                match stream.read(&mut chunk)? {
                    0 => break,
                    len => stream.write_all(&chunk[..len])?,
                }
            }
        }
        1 => {
            stream.write_all(&pattern(size))?;
            stream.shutdown(Shutdown::Write)?;
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard)?;
            if heard != pattern(size) {
                return Err(wrong());
            }
        }
        2 => {
            stream.write_all(&pattern(size / 2))?;
            resets_at_close(&stream)?;
        }
        _ => {
            stream.read_exact(&mut vec![0; size.min(20_000)])?;
            stream.write_all(b"k")?;
            match stream.read(&mut [0]) {
                Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => {}
                _ => return Err(wrong()),
            }
        }
    }
    Ok(head[0].into())
}

/// Its close is a reset.
fn resets_at_close(stream: &TcpStream) -> std::io::Result<()> {
    let linger = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &linger)?;
    Ok(())
}

/// 24 million bytes and more, in 80 connections: half-closes of either side, resets of either side.
#[test]
fn bytes_ends_and_resets_are_as_they_were() {
    let place = nodes();
    let (to, counts) = kinds();
    let args = ["--on", "a", "--listen", "tcp:80", "--to", &to.to_string()];
    let proxy = Proxy::start(&place, &args, &["80"]);
    let said = python(&place, KINDS, &[ADDRESS, "80", "80", "600000", "7"]);
    assert_eq!(said.trim(), "0 []");
    eventually("each server has seen its end", || {
        let counts: Vec<_> = counts.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        counts == [20, 20, 20, 20]
    });
    assert_eq!(proxy.end(), "");
}

#[test]
fn a_reload_loses_no_connection() {
    let place = nodes();
    let targets = [target("x").to_string(), target("x").to_string()];
    let text = |to: &str, more: &str| {
        format!("on = \"a\"\n[[listener]]\nlisten = \"tcp:80\"\nto = [{to}]\n{more}")
    };
    let one = format!("\"{}\"", targets[0]);
    let two = format!(
        "\"{}\", {{ to = \"{}\", weight = 3 }}",
        targets[0], targets[1]
    );
    let more = format!("[[listener]]\nlisten = \"tcp:81\"\nto = [{one}]\n");
    let path = file(&place, &text(&one, ""));
    let proxy = Proxy::start(&place, &[&path], &["80"]);
    // Connections one after the other, and one for the whole time, until it is told to stop.
    let script = "
import select, socket, sys
def say(s, text):
    s.sendall(text)
    got = b''
    while len(got) < len(text): got += s.recv(100) or sys.exit('the end came early')
    assert got == text, got
def start():
    s = socket.create_connection(('192.0.2.1', 80), timeout=30)
    assert s.recv(1) == b'x'
    return s
long, count = start(), 0
print('ready', flush=True)
while not select.select([0], [], [], 0)[0]:
    with start() as s: say(s, b'hello %d' % count)
    say(long, b'long %d' % count)
    count += 1
print(count)
";
    let mut child = spawn(
        place
            .command(&["exec", "b", "python3", "-c", script])
            .stdin(Stdio::piped()),
    );
    let mut ready = [0; 6];
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut ready).expect("a line");
    for (to, more) in [(&two, ""), (&one, &more[..]), (&two, &more), (&one, "")].repeat(3) {
        fs::write(&path, text(to, more)).expect("write");
        place.ok(&["proxy", "reload", "a"]);
    }
    // What is wrong changes nothing.
    fs::write(&path, text("\"nonsense\"", "")).expect("write");
    place.fails(
        &["proxy", "reload", "a"],
        1,
        "line 4, column 7: `nonsense` is no target",
    );
    // Nor does what the node can't have.
    let impossible = "[[listener]]\nlisten = \"tcp:203.0.113.9:82\"\nto = [\"127.0.0.1:1\"]\n";
    let other = format!(
        "on = \"a\"\n{impossible}{}",
        impossible.replace("203.0.113.9:82", "81")
    );
    fs::write(&path, other).expect("write");
    place.fails(&["proxy", "reload", "a"], 1, "203.0.113.9:82");
    let refused = place.run(&["connect", "b", ADDRESS, "81"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("refused"), "{said}");
    drop(child.stdin.take());
    let mut count = String::new();
    output.read_to_string(&mut count).expect("a line");
    let ended = finish(child);
    assert!(ended.status.success(), "{ended:?}");
    assert!(count.trim().parse::<u32>().expect("a number") > 0);
    let said = proxy.end();
    assert!(said.contains("the configuration is as it was"), "{said}");
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

/// Sources on node `b`, two listeners, one answer for each word: it comes to the one who has asked, from where it asked.
#[test]
fn datagrams_come_to_whom_they_are_for() {
    let place = nodes();
    let server = |name: &'static str| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
        let address = socket.local_addr().expect("an address");
        std::thread::spawn(move || {
            let mut words = [0; 2048];
            while let Ok((len, from)) = socket.recv_from(&mut words) {
                let answer = [name.as_bytes(), &words[..len]].concat();
                let _ = socket.send_to(&answer, from);
            }
        });
        address
    };
    let (one, two) = (server("one "), server("two "));
    let text = format!(
        "on = \"a\"\n[[listener]]\nlisten = \"udp:53\"\nto = [\"{one}\"]\n[[listener]]\nlisten = \"udp:54\"\nto = [\"{two}\"]\n[[listener]]\nlisten = \"tcp:80\"\nto = [\"{one}\"]\n"
    );
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80"]);
    let script = "
import socket
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(30)]
answers = {}
for turn in range(2):
    for i, s in enumerate(sockets):
        port, name = ((53, b'one '), (54, b'two '))[i % 2]
        word = b'%d %d' % (turn, i)
        # A datagram may be lost, as on any wire: then it is said again. What comes is right.
        s.settimeout(2)
        for _ in range(10):
            s.sendto(word, ('192.0.2.1', port))
            try: answer, source = s.recvfrom(100)
            except TimeoutError: continue
            while answer != name + word:
                assert answer.startswith(name) and answer.endswith(b' %d' % i), (answer, word)
                answer, source = s.recvfrom(100)
            assert source == ('192.0.2.1', port), source
            answers[word] = True
            break
print(len(answers))
";
    assert_eq!(python(&place, script, &[]).trim(), "60");
    assert_eq!(proxy.end(), "");
}

/// HAProxy and nginx say whom a header names; HAProxy makes headers.
#[test]
fn headers_of_the_proxy_protocol() {
    let place = nodes();
    let path = |name: &str| {
        place
            .dir
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let (haproxy, nginx) = (path("haproxy.sock"), path("nginx.sock"));
    let config = format!(
        "defaults\n mode http\n timeout client 30s\n timeout server 30s\n timeout connect 30s\nfrontend f\n bind unix@{haproxy} accept-proxy\n http-request return status 200 content-type text/plain lf-string haproxy=%[src]:%[dst_port]\n"
    );
    fs::write(path("haproxy.cfg"), config).expect("write");
    let config = format!(
        "daemon off; master_process off; pid {pid}; error_log stderr; events {{}}\nhttp {{ access_log off; client_body_temp_path {tmp}1; proxy_temp_path {tmp}2; fastcgi_temp_path {tmp}3; uwsgi_temp_path {tmp}4; scgi_temp_path {tmp}5;\nserver {{ listen unix:{nginx} proxy_protocol; location / {{ return 200 nginx=$proxy_protocol_addr:$proxy_protocol_server_port; }} }} }}\n",
        pid = path("nginx.pid"), tmp = path("tmp")
    );
    fs::write(path("nginx.conf"), config).expect("write");
    let server = |program: &str, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        Proxy(
            command
                .args(args)
                .stdin(Stdio::null())
                .spawn()
                .expect("it starts"),
        )
    };
    let _haproxy = server("haproxy", &["-db", "-f", &path("haproxy.cfg")]);
    let _nginx = server("nginx", &["-p", &path(""), "-c", &path("nginx.conf")]);
    for socket in [&haproxy, &nginx] {
        eventually("a server listens", || {
            std::os::unix::net::UnixStream::connect(socket).is_ok()
        });
    }
    let mut text = "on = \"a\"\n".to_owned();
    // Ports 80 to 83: without headers of clients; 90 to 93: with them.
    for (base, named) in [(80, false), (90, true)] {
        for (at, (to, version)) in [(&haproxy, 1), (&haproxy, 2), (&nginx, 1), (&nginx, 2)]
            .into_iter()
            .enumerate()
        {
            let port = base + at;
            text += &format!("[[listener]]\nlisten = \"tcp:{port}\"\nto = [\"unix:{to}\"]\nproxy_out = \"v{version}\"\nproxy_in = {named}\n");
        }
    }
    let proxy = Proxy::start(&place, &[&file(&place, &text)], &["80", "93"]);
    // HAProxy on node b, whose clients come by its loopback.
    let senders: String = (0..4)
        .map(|at| {
            let version = ["send-proxy", "send-proxy-v2"][at % 2];
            format!(
                "listen l{at}\n bind 127.0.0.1:{}\n server s {ADDRESS}:{} {version}\n",
                100 + at,
                90 + at
            )
        })
        .collect();
    fs::write(path("sender.cfg"), format!("defaults\n mode tcp\n timeout client 30s\n timeout server 30s\n timeout connect 30s\n{senders}")).expect("write");
    let mut sender = place.command(&["exec", "b", "haproxy", "-db", "-f", &path("sender.cfg")]);
    let _sender = Proxy(sender.spawn().expect("it starts"));
    place.ok(&["wait", "b", "tcp", "103"]);
    let script = "
import sys, urllib.request
for port in sys.argv[2:]:
    with urllib.request.urlopen(f'http://{sys.argv[1]}:{port}/', timeout=30) as answer: print(answer.read().decode().strip())
";
    let said = python(&place, script, &[ADDRESS, "80", "81", "82", "83"]);
    let expected = [
        "haproxy=192.0.2.2:80",
        "haproxy=192.0.2.2:81",
        "nginx=192.0.2.2:82",
        "nginx=192.0.2.2:83",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let said = python(&place, script, &["127.0.0.1", "100", "101", "102", "103"]);
    let expected = [
        "haproxy=127.0.0.1:100",
        "haproxy=127.0.0.1:101",
        "nginx=127.0.0.1:102",
        "nginx=127.0.0.1:103",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    // A client that sends none where one is asked for is not let in.
    assert_eq!(says(&place, "90", "GET / HTTP/1.0\r\n\r\n"), "");
    drop(proxy);
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
