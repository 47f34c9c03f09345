// SPDX-License-Identifier: GPL-2.0
//! Bytes, ends and resets of connections.

use super::*;

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
