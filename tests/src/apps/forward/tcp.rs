// SPDX-License-Identifier: GPL-2.0
//! Streams.

use super::{Agent, LIMIT, Row, heard};
use crate::apps::{Checked, Verdict, ensure, trial};
use crate::exec;
use crate::node::Node;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("forward_tcp".into(), streams),
        trial("forward_tcp_reset".into(), resets),
        trial("forward_tcp_early_end".into(), early_end),
        trial("forward_tcp_late_reset".into(), late_reset),
        trial("forward_tcp_descriptors".into(), descriptors),
        trial("forward_tcp_no_route".into(), no_route),
        trial("forward_tcp_ends".into(), ends),
        trial("forward_tcp_two_targets".into(), two_targets),
        trial("forward_tcp_slow_copy".into(), slow_copy),
        trial("forward_tcp_open_ends".into(), open_ends),
    ]
}

/// Reads to the end, answers with what came in capitals and its sum, and ends.
const SERVE: &str = "
import hashlib, socket
s = socket.create_server(('', 5000))
print('ready', flush=True)
while True:
    c, _ = s.accept()
    sum = hashlib.sha256()
    while data := c.recv(1 << 16):
        sum.update(data)
        c.sendall(data)
    c.sendall(sum.hexdigest().encode())
    c.close()
";

/// Streams at once: each sends noise, ends its direction, reads what comes back meanwhile, and looks at the sums.
const ASK: &str = "
import hashlib, os, socket, sys, threading
def one():
    c = socket.create_connection((sys.argv[1], 5000), 20)
    sent, came = hashlib.sha256(), hashlib.sha256()
    def send():
        for i in range(int(sys.argv[3])):
            data = os.urandom(1 << 16)
            sent.update(data)
            c.sendall(data)
        c.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send)
    t.start()
    tail = b''
    while data := c.recv(1 << 16):
        tail += data
        came.update(tail[:-64])
        tail = tail[-64:]
    t.join()
    assert tail.decode() == sent.hexdigest() == came.hexdigest(), tail
    good.append(1)
good = []
all = [threading.Thread(target=one) for i in range(int(sys.argv[2]))]
[t.start() for t in all]
[t.join() for t in all]
print(len(good))
";

/// Bytes both ways, half-closes, back-pressure: sums of what came.
fn streams() -> Checked {
    let row = Row::new()?;
    let _server = row.hear("served", SERVE)?;
    let agent = row.forward("tcp:5000", &[])?;
    let to = row.middle();
    let good = row.a.output(&["python3", "-c", ASK, &to, "8", "100"])?;
    ensure(good == "8\n", || good)?;
    let said = agent.end()?;
    ensure(said.ends_with(" refused 0 cut 0 streams 8"), || said)?;
    Ok(Verdict::Passed)
}

/// A target that resets, and one that is not there, reset the client; a client that resets does so to the target.
fn resets() -> Checked {
    let serve = "
import socket, struct
s = socket.create_server(('', 5000))
print('ready', flush=True)
c, _ = s.accept()
c.recv(1)
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
c.close()
c, _ = s.accept()
try:
    print('heard', c.recv(1))
    print('heard', c.recv(1))
except ConnectionResetError:
    print('reset', flush=True)
";
    let ask = "
import socket, struct, sys
def connect():
    return socket.create_connection((sys.argv[1], 5000), 20)
def is_reset(c):
    try:
        print(c.recv(1))
    except ConnectionResetError:
        print('reset')
c = connect()
c.send(b'x')
is_reset(c)
c = connect()
c.send(b'x')
import time; time.sleep(0.5)
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
c.close()
time.sleep(0.5)
# The agent may find out before or after it has accepted.
try:
    is_reset(connect())
except ConnectionResetError:
    print('reset')
";
    let row = Row::new()?;
    let server = row.hear("served", serve)?;
    let agent = row.forward("tcp:5000", &[])?;
    let to = row.middle();
    let said = row.a.output(&["python3", "-c", ask, &to])?;
    ensure(said == "reset\nreset\n", || said)?;
    let lines = heard(server)?;
    ensure(lines == ["heard b'x'", "reset"], || format!("{lines:?}"))?;
    agent.end()?;
    Ok(Verdict::Passed)
}

/// A client that ends its direction at once, before the agent is connected to the target, has the target's answer.
fn early_end() -> Checked {
    let serve = "
import socket
s = socket.create_server(('', 5000))
print('ready', flush=True)
for i in range(2):
    c, _ = s.accept()
    assert c.recv(1) == b''
    c.sendall(b'banner')
    c.close()
";
    let ask = "
import socket, sys
for i in range(2):
    c = socket.create_connection((sys.argv[1], 5000), 20)
    c.shutdown(socket.SHUT_WR)
    print(c.recv(100), c.recv(100))
";
    let row = Row::new()?;
    let server = row.hear("served", serve)?;
    let far = "cd /sys/class/net; for i in */; do i=${i%/}; [ $i = lo ] || tc qdisc add dev $i root netem delay 200ms; done";
    row.c.output(&["sh", "-c", far])?;
    let agent = row.forward("tcp:5000", &[])?;
    let said = row.a.output(&["python3", "-c", ask, &row.middle()])?;
    ensure(said == "b'banner' b''\n".repeat(2), || said)?;
    heard(server)?;
    agent.end()?;
    Ok(Verdict::Passed)
}

/// A reset that comes after the client has ended its direction reaches the target, which says nothing meanwhile.
fn late_reset() -> Checked {
    let serve = "
import select, socket
s = socket.create_server(('', 5000))
print('ready', flush=True)
c, _ = s.accept()
print('heard', c.recv(1), flush=True)
p = select.poll()
p.register(c, 0)
print('reset' if p.poll(20000) else 'nothing', flush=True)
";
    let ask = "
import socket, struct, sys, time
c = socket.create_connection((sys.argv[1], 5000), 20)
c.shutdown(socket.SHUT_WR)
time.sleep(0.5)
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
c.close()
";
    let row = Row::new()?;
    let server = row.hear("served", serve)?;
    let agent = row.forward("tcp:5000", &[])?;
    row.a.output(&["python3", "-c", ask, &row.middle()])?;
    let lines = heard(server)?;
    ensure(lines == ["heard b''", "reset"], || format!("{lines:?}"))?;
    agent.end()?;
    Ok(Verdict::Passed)
}

/// Connects ARGV[2] times, keeps all, and has each say a byte and hear it; prints how many did, and the seconds.
const MANY: &str = "
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
start = time.monotonic()
all, good = [], 0
for i in range(int(sys.argv[2])):
    try:
        c = socket.create_connection((sys.argv[1], 5000), 5)
        all.append(c)
        c.send(b'x')
        good += c.recv(1) == b'x'
    except OSError:
        if i - good > 3:
            break
print(good, time.monotonic() - start)
";

/// The soft limit of descriptors is no limit of streams; the hard one is said, once.
fn descriptors() -> Checked {
    let row = Row::new()?;
    let echo = "
import socket, threading
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
s = socket.create_server(('', 5000), backlog=500)
print('ready', flush=True)
def serve(c):
    while data := c.recv(100):
        c.send(data)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
";
    let _server = row.hear("served", echo)?;
    for (limit, is_said) in [("-Sn 1024", 0), ("-n 1024", 1)] {
        let words = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        let ring3 = paths::ring3().display().to_string();
        let (on, to) = (row.b.name.as_str(), row.target());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &words, &ring3, "forward", "--on", on]);
        command.args(["--listen", "tcp:5000", "--to", &to]);
        let agent = Agent::spawn(&row.folder, command)?;
        let said = row
            .a
            .output(&["python3", "-c", MANY, &row.middle(), "600"])?;
        let good: u32 = said
            .split(' ')
            .next()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        ensure((good == 600) == (is_said == 0), || {
            format!("ulimit {limit}: {said}")
        })?;
        let complained = agent.complained();
        let lines = complained.matches("clients wait").count();
        ensure(lines == is_said, || format!("ulimit {limit}: {complained}"))?;
        agent.end()?;
    }
    Ok(Verdict::Passed)
}

/// Where the target has no route, clients are refused at once, however many there are.
fn no_route() -> Checked {
    let node = Node::up(&[])?;
    let folder = Scratch::new()?;
    let on = ["forward", "--on", &node.name, "--listen", "tcp:5000"];
    let words = [&on[..], &["--to", "198.51.100.1:1"]].concat();
    let agent = Agent::start(&folder, &words)?;
    let ask = "
import select, socket, time
all = []
for i in range(500):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(('127.0.0.1', 5000))
    all.append(c)
start = time.monotonic()
p = select.poll()
for c in all:
    p.register(c, 0)
while all and time.monotonic() < start + 20:
    for fd, _ in p.poll(1000):
        p.unregister(fd)
        all.remove(next(c for c in all if c.fileno() == fd))
print(len(all), time.monotonic() - start)
";
    let said = node.output(&["python3", "-c", ask])?;
    let last = agent.end()?;
    let words: Vec<f64> = said.split_whitespace().flat_map(str::parse).collect();
    // 64 a second would take 7 s.
    ensure(
        words.len() == 2 && words[0] == 0.0 && words[1] < 4.0,
        || format!("left, and seconds: {said}; {last}"),
    )?;
    ensure(last.contains(" refused 500 "), || last)?;
    Ok(Verdict::Passed)
}

/// The agent's end is no end of a stream: both sides see a reset.
fn ends() -> Checked {
    let serve = "
import socket
s = socket.create_server(('', 5000))
print('ready', flush=True)
c, _ = s.accept()
try:
    print('heard', c.recv(1), flush=True)
    print('heard', c.recv(1))
except ConnectionResetError:
    print('reset', flush=True)
";
    let ask = "
import socket, sys
c = socket.create_connection((sys.argv[1], 5000), 20)
c.send(b'x')
try:
    print(c.recv(1))
except ConnectionResetError:
    print('reset')
";
    let row = Row::new()?;
    let server = row.hear("served", serve)?;
    let agent = row.forward("tcp:5000", &[])?;
    let path = server.1.clone();
    let said = std::thread::scope(|scope| {
        let asks = scope.spawn(|| row.a.output(&["python3", "-c", ask, &row.middle()]));
        let is_there = || std::fs::read_to_string(&path).is_ok_and(|it| it.contains("heard"));
        let is_there = exec::until(LIMIT, is_there);
        let ended = agent.end();
        ensure(is_there, || "nothing came".into())?;
        ended?;
        asks.join().map_err(|_| "panicked".to_owned())?
    })?;
    ensure(said == "reset\n", || said)?;
    let lines = heard(server)?;
    ensure(lines == ["heard b'x'", "reset"], || format!("{lines:?}"))?;
    Ok(Verdict::Passed)
}

/// On a node: each of twenty clients says two bytes; the second target answers one and ends. No descriptor of the agent's is left.
fn two_targets() -> Checked {
    let program = r#"
import os, socket, subprocess, sys, threading, time
def serve(port, ends):
    s = socket.create_server(('127.0.0.1', port))
    def one(c):
        while c.recv(1):
            c.sendall(b'y')
            if ends:
                break
        c.close()
    while True:
        threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
for it in (5001, False), (5002, True):
    threading.Thread(target=serve, args=it, daemon=True).start()
agent = subprocess.Popen([sys.argv[1], 'on-node', 'forward', '--listen', 'tcp:127.0.0.1:5000',
                          '--to', '127.0.0.1:5001', '--to', '127.0.0.1:5002'], stdout=subprocess.PIPE)
agent.stdout.readline()
count = lambda: len(os.listdir(f'/proc/{agent.pid}/fd'))
before = count()
for _ in range(20):
    c = socket.create_connection(('127.0.0.1', 5000), 20)
    for _ in range(2):
        c.sendall(b'x')
        c.recv(1)
        time.sleep(0.05)
    c.shutdown(1)
    c.recv(1)
    c.close()
until = time.monotonic() + 10
while count() != before and time.monotonic() < until:
    time.sleep(0.05)
print(count() - before)
agent.terminate()
"#;
    let node = Node::up(&[])?;
    let ring3 = paths::ring3().display().to_string();
    let left = node.output(&["python3", "-c", program, &ring3])?;
    ensure(left == "0\n", || format!("{left} descriptors are left"))?;
    Ok(Verdict::Passed)
}

/// On a node: the second target never ends its direction. One client after the other is answered at once, though the agent has
/// descriptors for a few such connections only.
fn open_ends() -> Checked {
    let program = r#"
import resource, socket, subprocess, sys, threading, time
def first():
    s = socket.create_server(('127.0.0.1', 5001))
    def one(c):
        while c.recv(100):
            pass
        c.sendall(b'y')
        c.close()
    while True:
        threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
held = []
def second():
    s = socket.create_server(('127.0.0.1', 5002))
    while True:
        held.append(s.accept()[0])
for it in first, second:
    threading.Thread(target=it, daemon=True).start()
agent = subprocess.Popen([sys.argv[1], 'on-node', 'forward', '--listen', 'tcp:127.0.0.1:5000',
                          '--to', '127.0.0.1:5001', '--to', '127.0.0.1:5002'], stdout=subprocess.PIPE,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
agent.stdout.readline()
good = 0
for _ in range(120):
    start = time.monotonic()
    c = socket.create_connection(('127.0.0.1', 5000), 20)
    c.sendall(b'x')
    c.shutdown(1)
    good += c.recv(10) == b'y' and time.monotonic() - start < 10
    c.close()
print(good)
agent.terminate()
"#;
    let node = Node::up(&[])?;
    let ring3 = paths::ring3().display().to_string();
    let good = node.output(&["python3", "-c", program, &ring3])?;
    ensure(good == "120\n", || {
        format!("{good} of 120 clients were answered")
    })?;
    Ok(Verdict::Passed)
}

/// The second target takes its copy slowly and says a word meanwhile; the first has answered and gone.
fn slow_copy() -> Checked {
    let serve = "
import socket, threading, time
first = socket.create_server(('', 5000))
second = socket.socket()
second.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
second.bind(('', 5001))
second.listen()
print('ready', flush=True)
def answer():
    c, _ = first.accept()
    while c.recv(1 << 16):
        pass
    c.sendall(b'y')
    c.close()
threading.Thread(target=answer).start()
c, _ = second.accept()
time.sleep(1)
c.send(b'h')
time.sleep(0.5)
bytes = 0
try:
    while more := c.recv(1000):
        bytes += len(more)
    print(bytes, flush=True)
except OSError as why:
    print(bytes, why, flush=True)
";
    let ask = "
import socket, sys
c = socket.create_connection((sys.argv[1], 5000), 20)
c.sendall(bytes(20_000))
c.shutdown(socket.SHUT_WR)
print(c.recv(10), c.recv(10))
";
    let row = Row::new()?;
    let server = row.hear("served", serve)?;
    let copy = row.target().replace(":5000", ":5001");
    let agent = row.forward("tcp:5000", &["--to", &copy])?;
    let said = row.a.output(&["python3", "-c", ask, &row.middle()])?;
    ensure(said == "b'y' b''\n", || said)?;
    let lines = heard(server)?;
    ensure(lines == ["20000"], || format!("{lines:?}"))?;
    agent.end()?;
    Ok(Verdict::Passed)
}
