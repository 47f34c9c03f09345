// SPDX-License-Identifier: GPL-2.0
//! Many short connections to a server that forks for each, while random children are killed.
//!
//! Two nodes and a link, `tests/apps/forks.c` on both. The server kills one of twenty children itself; in
//! every other storm one of 500 is killed from outside the node besides. After that the node is
//! alive and holds no socket that it did not hold before; or, but only where somebody outside
//! has killed, it says that it is poisoned and why, and everybody on it has ended. No
//! connection may hang, and no byte may be wrong.
//!
//! Two storms of 1,000 connections, with `--long` 20 of 10,000; `--seed N` repeats the choices.

use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, End, Group, until};
use crate::node::{self, Node, SHORT};
use crate::{Options, scratch};
use libtest_mimic::Trial;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{BufRead, BufReader, Read as _};
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const STORMS: u32 = 2;
const CONNECTIONS: u32 = 1000;
const CONNECTIONS_LONG: u32 = 10_000;
const STORMS_LONG: u32 = 20;
/// Of so many children one is killed from outside the node.
const OUTSIDE: u32 = 500;
const SERVER: &str = "10.231.3.1";
const PORT: &str = "7320";
/// Of one storm; it takes some ten seconds.
const LIMIT: Duration = Duration::from_secs(300);
/// Until what a storm leaves behind is gone: the last bytes of connections whose child was killed.
const SETTLE: Duration = Duration::from_secs(10);
/// Everybody on a poisoned node has to have ended after this long.
const END: Duration = Duration::from_secs(5);
/// forks.c's status for a node that says EIO.
const POISONED: End = End::Exit(5);

pub fn trials(options: Options) -> Vec<Trial> {
    vec![trial("fork_storm".into(), move || run(options))]
}

/// How the server's node ended.
enum After {
    Serving,
    Poisoned(String),
}

/// The processes of a storm's server, as it tells us of them.
struct Server {
    group: Group,
    lines: Receiver<String>,
}

impl Server {
    fn start(node: &Node, seed: u64, outside: u32) -> Result<Server, String> {
        let mut command = node.command([helper("forks")?.as_os_str()]);
        command
            .args(["serve", PORT, &seed.to_string(), &outside.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut group = Group::spawn(&mut command)?;
        let out = group.child().stdout.take().ok_or("no pipe")?;
        // `ring3 exec` becomes the program, so this is the parent of the children.
        let parent = group.child().id();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                match line.strip_prefix("victim ") {
                    Some(pid) => kill_child(pid, parent),
                    None => drop(sender.send(line)),
                }
            }
        });
        let mut server = Server { group, lines };
        let ready = server.line(Duration::from_secs(20));
        ensure(ready.as_deref() == Some("ready"), || {
            format!("the server said {ready:?}, {:?}", server.group.wait(END))
        })?;
        Ok(server)
    }

    fn line(&self, limit: Duration) -> Option<String> {
        self.lines.recv_timeout(limit).ok()
    }
}

/// Kills it if it is still a child of `parent`'s: the number may be another process's by now.
fn kill_child(pid: &str, parent: u32) {
    let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) else {
        return;
    };
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    let ours = std::fs::read_to_string(stat).is_ok_and(|stat| {
        // After the name, which may hold anything: state, parent.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
    });
    if ours {
        // It may have ended, which is as good.
        let _ = pidfd_send_signal(fd, Signal::KILL);
    }
}

/// The sockets of a node; those in TIME_WAIT are not among them.
fn sockets(node: &Node) -> Result<String, String> {
    let text = node.output(&["cat", "/proc/net/sockstat"])?;
    let tcp = |line: &str| line.split(" tw ").next().map(str::to_owned);
    Ok(text
        .lines()
        .take(2)
        .filter_map(tcp)
        .collect::<Vec<_>>()
        .join("; "))
}

/// Why the node is poisoned, if it is.
fn poison(node: &Node) -> Result<Option<String>, String> {
    let outcome = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
    let stat: serde_json::Value =
        serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))?;
    Ok(stat["poison"].as_str().map(str::to_owned))
}

fn read_all(mut out: ChildStdout) -> String {
    let mut text = String::new();
    let _ = out.read_to_string(&mut text);
    text.trim_end().to_owned()
}

fn storm(
    server: &Node,
    caller: &Node,
    connections: u32,
    seed: u64,
    outside: u32,
) -> Result<After, String> {
    let before = sockets(server)?;
    let mut serving = Server::start(server, seed, outside)?;
    let program = helper("forks")?;
    let mut command = caller.command([program.as_os_str()]);
    command
        .args([
            "call",
            SERVER,
            PORT,
            &connections.to_string(),
            &seed.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut calling = Group::spawn(&mut command)?;
    let out = calling.child().stdout.take().ok_or("no pipe")?;

    let start = Instant::now();
    let mut called = None;
    let mut ended = None;
    until(LIMIT, || {
        called = called.or_else(|| calling.wait(Duration::ZERO));
        ended = ended.or_else(|| serving.group.wait(Duration::ZERO));
        called.is_some() || ended.is_some()
    });
    if ended == Some(POISONED) {
        // Nobody on it may go on; the caller, on another node, sees connections end or time out.
        calling.kill();
        let why = poison(server)?.ok_or("EIO, but the node is not poisoned")?;
        ensure(until(END, || !any_left(&mut serving.group)), || {
            "children go on, on a poisoned node".into()
        })?;
        return Ok(After::Poisoned(why));
    }
    ensure(ended.is_none(), || {
        let words: Vec<String> = serving.lines.try_iter().collect();
        format!("the server ended by itself: {ended:?} {words:?}")
    })?;
    let words = read_all(out);
    ensure(called == Some(End::Exit(0)), || {
        let took = start.elapsed().as_secs();
        format!("the caller ended after {took} s with {called:?}: {words}")
    })?;
    serving.group.terminate();
    let sum = serving.line(Duration::from_secs(20));
    let end = serving.group.wait(END);
    let wanted = format!("forked {connections}, crashed 0, descriptors left 0");
    ensure(
        end == Some(End::Exit(0)) && sum.as_ref() == Some(&wanted),
        || format!("the server ended with {end:?}: {sum:?}"),
    )?;
    let mut after = String::new();
    until(SETTLE, || {
        after = sockets(server).unwrap_or_else(|e| e);
        after == before
    });
    ensure(after == before, || {
        format!("sockets are left, before: {before}, after: {after}")
    })?;
    println!("{words}, {:.1} s", start.elapsed().as_secs_f64());
    Ok(After::Serving)
}

/// Is there a process of this group that is not a zombie?
fn any_left(group: &mut Group) -> bool {
    let id = group.child().id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_ascii_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.nth(1) == Some(id.as_str())
    })
}

fn run(options: Options) -> Checked {
    let (storms, connections) = if options.long {
        (STORMS_LONG, CONNECTIONS_LONG)
    } else {
        (STORMS, CONNECTIONS)
    };
    let first = options.seed.unwrap_or(u64::from(std::process::id()));
    let link = scratch::unique("fs");
    let server = || Node::up(&[format!("link:{link},addr={SERVER}/24")]);
    let mut serving = server()?;
    let caller = Node::up(&[format!("link:{link},addr=10.231.3.2/24")])?;
    // By whether somebody outside killed: serving, poisoned.
    let mut tally = [[0; 2]; 2];
    for n in 0..storms {
        let seed = first + u64::from(n);
        let outside = if n % 2 == 0 { 0 } else { OUTSIDE };
        let after = storm(&serving, &caller, connections, seed, outside)
            .map_err(|e| format!("storm {n}, seed {seed}: {e}"))?;
        let row = &mut tally[usize::from(outside != 0)];
        match after {
            After::Serving => row[0] += 1,
            After::Poisoned(why) => {
                println!("storm {n}: poisoned: {why}");
                ensure(outside != 0, || {
                    format!("seed {seed}: kills from within poisoned the node: {why}")
                })?;
                row[1] += 1;
                drop(serving);
                serving = server()?;
            }
        }
    }
    for (who, [alive, poisoned]) in ["the server", "the server and somebody outside"]
        .into_iter()
        .zip(tally)
    {
        println!(
            "storms of {connections} connections, {who} killing: \
             {alive} left the node serving, {poisoned} poisoned it"
        );
    }
    Ok(Verdict::Passed)
}
