// SPDX-License-Identifier: GPL-2.0
//! `ring3 forward`: what comes to the node in the middle goes on to others, past a handler.

mod tcp;

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
        trial("forward_own_node".into(), own_node),
        trial("forward_mistakes".into(), mistakes),
        trial("forward_long_datagram".into(), long_datagram),
        trial("forward_real_time".into(), real_time),
        trial("forward_agent_fails".into(), agent_fails),
        trial("forward_end_in_close".into(), || end_anyway("close")),
        trial("forward_end_in_open".into(), || end_anyway("open")),
    ];
    for what in ["loop", "call", "sleep", "fault", "deep", "long"] {
        trials.push(trial(format!("forward_cut_{what}"), move || cut(what)));
    }
    trials.extend(tcp::trials());
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
