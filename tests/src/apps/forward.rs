// SPDX-License-Identifier: GPL-2.0
//! `ring3 forward`: what comes to the node in the middle goes on to others, past a handler.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::compile::compile_shared;
use crate::exec::{self, End, Group};
use crate::node::{self, Node};
use crate::paths;
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("forward_udp".into(), plain),
        trial("forward_filter".into(), filter),
        trial("forward_rewrite".into(), rewrite),
        trial("forward_duplicate".into(), duplicate),
        trial("forward_tcp".into(), streams),
        trial("forward_tcp_reset".into(), resets),
        trial("forward_own_node".into(), own_node),
        trial("forward_mistakes".into(), mistakes),
        trial("forward_long_datagram".into(), long_datagram),
        trial("forward_tcp_early_end".into(), early_end),
        trial("forward_tcp_late_reset".into(), late_reset),
        trial("forward_tcp_descriptors".into(), descriptors),
        trial("forward_tcp_no_route".into(), no_route),
        trial("forward_tcp_ends".into(), ends),
        trial("forward_real_time".into(), real_time),
        trial("forward_agent_fails".into(), agent_fails),
        trial("forward_end_in_close".into(), || end_anyway("close")),
        trial("forward_end_in_open".into(), || end_anyway("open")),
    ];
    for what in ["loop", "call", "sleep", "fault", "deep", "long"] {
        trials.push(trial(format!("forward_cut_{what}"), move || cut(what)));
    }
    trials
}

const LIMIT: Duration = Duration::from_secs(20);
/// Sends each argument as a datagram, or, as `=COUNT`, COUNT of them.
const SEND: &str = "
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 4321))
s.connect((sys.argv[1], 5000))
for what in sys.argv[2:]:
    if what.startswith('='):
        for i in range(int(what[1:])):
            s.send(b'%06d' % i + b'.' * 1000)
            time.sleep(0.0002)
    else:
        s.send(what.encode())
        time.sleep(0.05)
";
/// Prints datagrams, each on a line, up to `end`.
const HEAR: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.bind(('', 5000))
s.settimeout(40)
print('ready', flush=True)
while True:
    data, peer = s.recvfrom(65535)
    if data.lower().endswith(b'end'):
        break
    print(peer[0], data.decode().replace('\\n', '|')[:60], flush=True)
";

/// a and c, and b between them, which does not forward by itself.
struct Row {
    a: Node,
    b: Node,
    c: Node,
    folder: Scratch,
    slot: u32,
}

impl Row {
    fn new() -> Result<Row, String> {
        let (near, far, slot) = (
            scratch::unique("r3"),
            scratch::unique("r3"),
            scratch::slot(),
        );
        let port =
            |link: &str, net: u32, host: u32| format!("link:{link},addr=10.{net}.{slot}.{host}/24");
        Ok(Row {
            a: Node::up(&[port(&near, 83, 1)])?,
            b: Node::up(&[port(&near, 83, 2), port(&far, 84, 2)])?,
            c: Node::up(&[port(&far, 84, 1)])?,
            folder: Scratch::new()?,
            slot,
        })
    }

    /// Of b, as a sees it.
    fn middle(&self) -> String {
        format!("10.83.{}.2", self.slot)
    }

    fn target(&self) -> String {
        format!("10.84.{}.1:5000", self.slot)
    }

    /// Programs on c that print what comes; their output.
    fn hear(&self, name: &str, program: &str) -> Result<(Group, PathBuf), String> {
        let path = self.folder.file(name);
        let out = std::fs::File::create(&path).map_err(|why| why.to_string())?;
        let mut command = self.c.command(["python3", "-c", program]);
        command.stdin(Stdio::null()).stdout(out);
        let group = Group::spawn(&mut command)?;
        let there = || std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("ready"));
        ensure(exec::until(LIMIT, there), || "nobody hears".into())?;
        Ok((group, path))
    }

    /// `ring3 forward` on b; its output.
    fn forward(&self, listen: &str, words: &[&str]) -> Result<Agent, String> {
        let target = self.target();
        let all = [
            &[
                "forward",
                "--on",
                &self.b.name,
                "--listen",
                listen,
                "--to",
                &target,
            ][..],
            words,
        ]
        .concat();
        Agent::start(&self.folder, &all)
    }

    fn send(&self, what: &[&str]) -> Result<(), String> {
        let to = self.middle();
        self.a
            .output(&[&["python3", "-c", SEND, &to][..], what].concat())
            .map(drop)
    }
}

struct Agent {
    group: Group,
    said: PathBuf,
    complained: PathBuf,
}

impl Agent {
    fn start(folder: &Scratch, words: &[&str]) -> Result<Agent, String> {
        let agent = Agent::spawn(folder, node::ring3(words))?;
        let listens = || agent.said().starts_with("forwarding ");
        ensure(exec::until(LIMIT, listens), || {
            format!("it does not listen: {}", agent.complained())
        })?;
        Ok(agent)
    }

    fn spawn(folder: &Scratch, mut command: std::process::Command) -> Result<Agent, String> {
        let (said, complained) = (folder.file("said"), folder.file("complained"));
        let file = |path| std::fs::File::create(path).map_err(|why| why.to_string());
        command
            .stdin(Stdio::null())
            .stdout(file(&said)?)
            .stderr(file(&complained)?);
        Ok(Agent {
            group: Group::spawn(&mut command)?,
            said,
            complained,
        })
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }

    fn complained(&self) -> String {
        std::fs::read_to_string(&self.complained).unwrap_or_default()
    }

    /// SIGTERM; its last line.
    fn end(mut self) -> Result<String, String> {
        self.group.terminate();
        let end = self.group.wait(LIMIT);
        ensure(end == Some(End::Exit(0)), || {
            format!("it ended with {end:?}: {}", self.complained())
        })?;
        Ok(self.said().lines().last().unwrap_or_default().to_owned())
    }
}

/// What was heard, without the first line.
fn heard((mut group, path): (Group, PathBuf)) -> Result<Vec<String>, String> {
    let end = group.wait(Duration::from_secs(60));
    ensure(end == Some(End::Exit(0)), || format!("{end:?}"))?;
    let text = std::fs::read_to_string(path).map_err(|why| why.to_string())?;
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

fn handler(path: &str) -> Result<String, String> {
    let object = compile_shared(&paths::root().join(path))?;
    Ok(object.to_string_lossy().into_owned())
}

fn expect(found: &[String], wanted: &[String]) -> Result<(), String> {
    ensure(found == wanted, || {
        format!("heard {found:?} instead of {wanted:?}")
    })
}

/// Two thousand datagrams, in their order, from b's address; the numbers are right.
fn plain() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let row = Row::new()?;
    let hears = row.hear("heard", HEAR)?;
    let agent = row.forward("udp:5000", &[])?;
    row.send(&["=2000", "end"])?;
    let found = heard(hears)?;
    let from = format!("10.84.{}.2", row.slot);
    let line = |i| format!("{from} {i:06}{}", ".".repeat(54));
    let wanted: Vec<String> = (0..2000).map(line).collect();
    ensure(found == wanted, || {
        format!("{} came: {:?}...", found.len(), found.first())
    })?;
    let said = agent.end()?;
    let wanted = "received 2001 sent 2001 dropped 0 full 0 refused 0 cut 0 streams 0";
    ensure(said == wanted, || said)?;
    Ok(Verdict::Passed)
}

fn filter() -> Checked {
    let row = Row::new()?;
    let hears = row.hear("heard", HEAR)?;
    let object = handler("examples/forward/filter.c")?;
    let agent = row.forward("udp:5000", &["--handler", &object, "--words", "good"])?;
    row.send(&["good 1", "bad 2", "goo", "good 3", "", "good end"])?;
    let line = |text: &str| format!("10.84.{}.2 {text}", row.slot);
    expect(&heard(hears)?, &[line("good 1"), line("good 3")])?;
    let said = agent.end()?;
    ensure(said.contains("received 6 sent 3 dropped 3 "), || said)?;
    Ok(Verdict::Passed)
}

/// A handler changes bytes and the length, and is told who sent them.
fn rewrite() -> Checked {
    let row = Row::new()?;
    let hears = row.hear("heard", HEAR)?;
    let object = handler("examples/forward/rewrite.c")?;
    let agent = row.forward("udp:5000", &["--handler", &object])?;
    row.send(&["some words", "", "end"])?;
    let line = |text: &str| format!("10.84.{}.2 from 4321|{text}", row.slot);
    expect(&heard(hears)?, &[line("SOME WORDS"), line("")])?;
    agent.end()?;
    Ok(Verdict::Passed)
}

/// All to one target, each second one to another.
fn duplicate() -> Checked {
    let row = Row::new()?;
    let hears = row.hear("heard", HEAR)?;
    let other = row.hear("other", &HEAR.replace("('', 5000)", "('', 5001)"))?;
    let object = handler("examples/forward/duplicate.c")?;
    let second = format!("10.84.{}.1:5001", row.slot);
    let words = ["--to", &second, "--handler", &object, "--words", "2"];
    let agent = row.forward("udp:5000", &words)?;
    row.send(&["0", "1", "2", "3", "end"])?;
    let line = |text: &str| format!("10.84.{}.2 {text}", row.slot);
    expect(&heard(hears)?, &["0", "1", "2", "3"].map(line))?;
    expect(&heard(other)?, &["0", "2"].map(line))?;
    let said = agent.end()?;
    ensure(said.contains("received 5 sent 8 dropped 0 "), || said)?;
    Ok(Verdict::Passed)
}

/// A handler that does not come back, or breaks the rules, is cut off and said; what comes later is dropped, or passes.
fn cut(what: &str) -> Checked {
    let object = handler("tests/apps/handler_bad.c")?;
    let why = match what {
        "fault" | "deep" => "faulted (signal 11)",
        "long" => "left more bytes than it had room for",
        _ => "used up its budget of 500µs",
    };
    // The host gives a stack its pages one by one: 8 MiB take more than 500 us.
    let budget = if what == "deep" { "2s" } else { "500us" };
    let row = Row::new()?;
    for (after, heard_after) in [("drop", &["before"][..]), ("pass", &["before", "after"])] {
        let hears = row.hear("heard", HEAR)?;
        let words = [
            "--handler",
            &object,
            "--budget",
            budget,
            "--after-cut",
            after,
        ];
        let agent = row.forward("udp:5000", &words)?;
        row.send(&["before", what])?;
        let said = format!("{object} {why} at packet 2, and was cut off");
        let is_said = exec::until(LIMIT, || agent.complained().contains(&said));
        ensure(is_said, || format!("not said: {}", agent.complained()))?;
        row.send(&["after"])?;
        let last = agent.end()?;
        let cut = if after == "drop" { 2 } else { 1 };
        ensure(last.contains(&format!(" cut {cut} ")), || last)?;
        // The end comes past no handler.
        let agent = row.forward("udp:5000", &[])?;
        row.send(&["end"])?;
        agent.end()?;
        let line = |text: &&str| format!("10.84.{}.2 {text}", row.slot);
        let wanted: Vec<String> = heard_after.iter().map(line).collect();
        expect(&heard(hears)?, &wanted)?;
    }
    Ok(Verdict::Passed)
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

/// The agent's own node, and its end: SIGTERM to the command.
fn own_node() -> Checked {
    let (near, far, slot) = (
        scratch::unique("r3"),
        scratch::unique("r3"),
        scratch::slot(),
    );
    let folder = Scratch::new()?;
    let port =
        |link: &str, net: u32, host: u32| format!("link:{link},addr=10.{net}.{slot}.{host}/24");
    let (near_port, far_port) = (port(&near, 83, 2), port(&far, 84, 2));
    let target = format!("10.84.{slot}.1:5000");
    let words = [
        "forward",
        "--port",
        &near_port,
        "--port",
        &far_port,
        "--listen",
        "udp:5000",
        "--to",
        &target,
        "--cpu",
        "0",
        "--spin-ns",
        "100000",
        "--stats",
        "0.2",
    ];
    let agent = Agent::start(&folder, &words)?;
    let a = Node::up(&[port(&near, 83, 1)])?;
    let c = Node::up(&[port(&far, 84, 1)])?;
    let hear = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 5000))
s.settimeout(40)
print(s.recv(100))
";
    let heard = std::thread::scope(|scope| {
        let hears = scope.spawn(|| c.output(&["python3", "-c", hear]));
        let send = |_| {
            let to = format!("10.83.{slot}.2");
            a.output(&["python3", "-c", SEND, &to, "words"]).is_ok() && hears.is_finished()
        };
        (0..100).any(send);
        hears.join()
    });
    let heard = heard.map_err(|_| "panicked")??;
    ensure(heard == "b'words'\n", || heard)?;
    let counts = || agent.said().lines().count() > 2;
    ensure(exec::until(LIMIT, counts), || agent.said())?;
    agent.end()?;
    Ok(Verdict::Passed)
}

/// The longest datagram that a sender has, by IPv6, is one as any other.
fn long_datagram() -> Checked {
    let row = Row::new()?;
    let hears = row.hear("heard", HEAR)?;
    let object = handler("examples/forward/filter.c")?;
    let agent = row.forward("udp:5000", &["--handler", &object, "--words", "good"])?;
    let send = "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
s.connect(('::1', 5000))
for length in 65527, 65508, 65507:
    s.send(b'x' * length)
s.send(b'good end')
";
    row.b.output(&["python3", "-c", send])?;
    expect(&heard(hears)?, &[])?;
    let said = agent.end()?;
    ensure(
        said.starts_with("received 4 sent 1 dropped 3 full 0 refused 0 cut 0 "),
        || said,
    )?;
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

/// In real time on one CPU, where the agent's thread lets no equal one run: a handler's loop is cut off as well.
fn real_time() -> Checked {
    let may = exec::run(
        std::process::Command::new("chrt").args(["-f", "51", "true"]),
        LIMIT,
    );
    if !may.is_ok_and(|outcome| outcome.ok()) {
        return Ok(Verdict::Ignored("no real time here".into()));
    }
    let object = handler("tests/apps/handler_bad.c")?;
    let row = Row::new()?;
    let hears = row.hear("heard", HEAR)?;
    let words = ["--handler", &object, "--after-cut", "pass"];
    let words = [&words[..], &["--real-time", "50", "--cpu", "0"]].concat();
    let agent = row.forward("udp:5000", &words)?;
    row.send(&["before", "loop"])?;
    let said = format!("{object} used up its budget of 1ms at packet 2");
    let is_said = exec::until(LIMIT, || agent.complained().contains(&said));
    ensure(is_said, || format!("not said: {}", agent.complained()))?;
    row.send(&["after", "end"])?;
    agent.end()?;
    let line = |text: &str| format!("10.84.{}.2 {text}", row.slot);
    expect(&heard(hears)?, &["before", "after"].map(line))?;
    Ok(Verdict::Passed)
}

/// What ends the agent is known within seconds, however seldom numbers are wanted.
fn agent_fails() -> Checked {
    let object = handler("tests/apps/handler_bad.c")?;
    let row = Row::new()?;
    let words = ["--handler", &object, "--stats", "3600"];
    let mut agent = row.forward("udp:5000", &words)?;
    row.send(&["sockets"])?;
    let end = agent.group.wait(LIMIT);
    let complained = agent.complained();
    ensure(
        end == Some(End::Exit(1)) && complained.contains("cannot receive datagrams"),
        || format!("{end:?}: {complained}"),
    )?;
    Ok(Verdict::Passed)
}

/// SIGTERM ends an agent whose handler's open() or close() does not return; a line says so.
fn end_anyway(what: &str) -> Checked {
    let object = handler("tests/apps/handler_bad.c")?;
    let row = Row::new()?;
    let words = ["--handler", &object, "--words", what];
    let mut agent = match what {
        "open" => {
            let (on, to) = (row.b.name.as_str(), row.target());
            let on = ["forward", "--on", on, "--listen", "udp:5000", "--to", &to];
            let agent = Agent::spawn(&row.folder, node::ring3([&on[..], &words].concat()))?;
            let begun = exec::until(LIMIT, || agent.complained().contains("in open()"));
            ensure(begun, || format!("not begun: {}", agent.complained()))?;
            agent
        }
        _ => row.forward("udp:5000", &words)?,
    };
    agent.group.terminate();
    let end = agent.group.wait(LIMIT);
    let complained = agent.complained();
    ensure(
        end == Some(End::Exit(1)) && complained.contains(&format!("{what}() goes on")),
        || format!("{end:?}: {complained}"),
    )?;
    Ok(Verdict::Passed)
}

/// Each is one line that says what to do.
fn mistakes() -> Checked {
    let node = Node::up(&[])?;
    let folder = Scratch::new()?;
    let no_object = folder
        .write("no.so", "no object")?
        .to_string_lossy()
        .into_owned();
    let filter = handler("examples/forward/filter.c")?;
    let long = "x".repeat(300);
    let many = ["--to", "127.0.0.1:1"].repeat(64);
    let many = [&["--listen", "udp:1"][..], &many].concat();
    let on = ["--on", &node.name, "--to", "127.0.0.1:1"];
    for (words, why) in [
        (
            &["--listen", "udp:1", "--handler", &no_object][..],
            "cannot load the handler",
        ),
        (
            &[
                "--listen",
                "udp:1",
                "--handler",
                "/lib/x86_64-linux-gnu/libm.so.6",
            ],
            "no symbol ring3_handler",
        ),
        (
            &["--listen", "udp:1", "--handler", &filter, "--words", &long],
            "its open() answers 1",
        ),
        (
            &["--listen", "udp:192.0.2.1:1"],
            "cannot listen on 192.0.2.1:1",
        ),
        (&["--listen", "sctp:1"], "is no listener"),
        (
            &["--listen", "udp:1", "--handler", &filter, "--budget", "1ns"],
            "10us to 10s",
        ),
        (&many, "65 targets: a handler's verdict has bits for 64"),
        (
            &["--listen", "udp:1", "--stats", "0"],
            "0.1 to 86400 seconds",
        ),
    ] {
        let all = [&["forward"][..], &on, words].concat();
        let outcome = exec::run(&mut node::ring3(&all), LIMIT)?;
        ensure(!outcome.ok() && outcome.stderr.contains(why), || {
            outcome.report()
        })?;
    }
    Ok(Verdict::Passed)
}
