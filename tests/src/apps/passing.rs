// SPDX-License-Identifier: GPL-2.0
//! Descriptors of a node between processes: passed over unix sockets, and inherited.

use super::scenario::{SERVED, Scenario};
use super::topology::{Pair, Place};
use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Group};
use crate::node::Node;
use crate::scratch::{self, Scratch};
use crate::{node, paths};
use libtest_mimic::Trial;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "node_cluster",
        programs: &["node", "curl"],
        what: "cluster: the first process passes each connection to one of three workers",
        topologies: SERVED,
        needs_root: None,
        run: cluster_passes_connections,
    },
    Scenario {
        name: "node_cluster_accept",
        programs: &["node", "curl"],
        what: "cluster: three workers get the listening socket and accept themselves",
        topologies: SERVED,
        needs_root: None,
        run: cluster_passes_the_listener,
    },
    Scenario {
        name: "gunicorn_new_master",
        programs: &["gunicorn", "curl"],
        what: "four workers replaced on SIGHUP, a second master that inherits the listener on SIGUSR2",
        topologies: SERVED,
        needs_root: None,
        run: gunicorn,
    },
    Scenario {
        name: "socket_activation",
        programs: &["systemd-socket-activate", "python3", "curl"],
        what: "the first connection starts a server that finds the listener at descriptor 3",
        topologies: SERVED,
        needs_root: None,
        run: socket_activation,
    },
];

pub fn trials() -> Vec<Trial> {
    vec![
        needs_python("passing_python_sockets", python),
        needs_python("passing_outside_a_node", outside),
        needs_python("passing_storm", storm),
        needs_python("passing_abstract", abstract_names),
    ]
}

fn needs_python(name: &str, check: fn() -> Result<(), String>) -> Trial {
    trial(name.into(), move || -> Checked {
        if let Some(why) = missing(&["python3"])? {
            return Ok(Verdict::Ignored(why));
        }
        check().map(|()| Verdict::Passed)
    })
}

fn app(name: &str) -> String {
    let path = paths::root().join("tests/apps").join(name);
    path.to_string_lossy().into_owned()
}

/// The server's connections, and where its processes' threads are: what they wait for by the host's word, and by its kernel's.
fn state(pair: &Pair) -> String {
    let Place::Node(node) = &pair.server else {
        return String::new();
    };
    let threads = format!(
        "for p in $(pgrep -f -- '{}'); do for t in /proc/$p/task/*; do \
         echo $t $(cat $t/comm $t/wchan) $(cat $t/syscall); done; done",
        pair.server4
    );
    let commands = [
        node::ring3(["stat", &node.name]),
        node.command(["ss", "-tanoimp"]),
        node.command(["cat", "/proc/net/softnet_stat", "/proc/net/dev"]),
        node.command(["sh", "-c", &threads]),
    ];
    let said = commands.into_iter().map(|mut command| {
        exec::run(&mut command, node::SHORT).map_or_else(|why| why, |outcome| outcome.stdout)
    });
    said.collect::<Vec<_>>().join("\n")
}

/// Each of `count` requests over a connection of its own; what was answered.
fn ask(pair: &Pair, count: usize) -> Result<Vec<String>, String> {
    let url = format!("http://{}:{}/?[1-{count}]", pair.server4, pair.port(0));
    let text = pair
        .client
        .must(&["curl", "-sS", "-f", "--no-keepalive", &url], LIMIT)
        .map_err(|why| format!("{why}\n{}", state(pair)))?;
    let answers: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure(answers.len() == count, || {
        format!("{} answers to {count} requests:\n{text}", answers.len())
    })?;
    Ok(answers)
}

/// Asks until `count` different answers were seen.
fn ask_until(pair: &Pair, count: usize) -> Result<BTreeSet<String>, String> {
    let mut seen = BTreeSet::new();
    let mut failure = Ok(());
    exec::until(LIMIT, || match ask(pair, 20) {
        Ok(answers) => {
            seen.extend(answers);
            seen.len() >= count
        }
        Err(why) => {
            failure = Err(why);
            true
        }
    });
    failure?;
    ensure(seen.len() >= count, || {
        format!("answers only from {seen:?}")
    })?;
    Ok(seen)
}

fn cluster_passes_connections(pair: &Pair) -> Result<(), String> {
    cluster(pair, "rr")
}

fn cluster_passes_the_listener(pair: &Pair) -> Result<(), String> {
    cluster(pair, "none")
}

fn cluster(pair: &Pair, policy: &str) -> Result<(), String> {
    let port = pair.port(0).to_string();
    let script = app("cluster.js");
    let _server = pair
        .server
        .start(&["node", &script, policy, &pair.server4, &port])?;
    pair.wait_for_port(pair.port(0))?;
    // Where all of them may accept, the host's scheduler decides which one does.
    let wanted = if policy == "rr" { 3 } else { 1 };
    ask_until(pair, wanted)?;
    let url = format!("http://{}:{port}/end", pair.server4);
    let ended = pair.client.must(&["curl", "-sS", "-f", &url], LIMIT)?;
    let pid = ended.trim().trim_start_matches("worker ");
    let is_gone = || !std::path::Path::new("/proc").join(pid).exists();
    ensure(exec::until(LIMIT, is_gone), || format!("{ended} stays"))?;
    // The one that took its place serves, too.
    if policy == "rr" {
        let seen = ask_until(pair, 3)?;
        ensure(!seen.contains(ended.trim()), || {
            format!("{ended} has ended, and still answers")
        })?;
    }
    ask(pair, 20).map(drop)
}

fn python() -> Result<(), String> {
    let node = Node::up(&[])?;
    let script = app("pass_python.py");
    let outcome = exec::run(&mut node.command(["python3", &script]), LIMIT)?;
    let mut wanted = String::from("send_fds\n");
    for method in ["fork", "spawn", "forkserver"] {
        for test in ["handles", "queues", "arguments"] {
            wanted += &format!("{method} {test}\n");
        }
    }
    ensure(outcome.ok() && outcome.stdout == wanted, || {
        outcome.report()
    })
}

/// A process outside of the node gets a plain socket, and the sender an error.
fn outside() -> Result<(), String> {
    let (node, other) = (Node::up(&[])?, Node::up(&[])?);
    let mut command = Command::new("python3");
    command.arg(app("pass_outside.py")).arg(paths::ring3());
    command.args([&node.name, &other.name]);
    let outcome = exec::run(&mut command, LIMIT)?;
    let wanted = "\
a name, and a server outside
Operation not supported
host descriptor sent
stderr: ring3: SCM_RIGHTS: process PID is not on this node, it can't get a descriptor of the node's
1 received
a pair
AF_UNIX b''
ConnectionResetError
ConnectionResetError
closed unused
ConnectionResetError
passed on, twice
received AF_INET
from the far side
1 descriptors
0 descriptors
stderr: ring3: SCM_RIGHTS: this descriptor of the node was received before; a process outside the node can pass it on only once
end
received AF_UNIX
1 descriptors
ConnectionResetError
";
    ensure(outcome.ok() && outcome.stdout == wanted, || {
        outcome.report()
    })?;
    let log = exec::run(&mut node::ring3(["stat", &node.name]), LIMIT)?;
    ensure(log.ok(), || log.report())
}

/// A program that goes on, once it has said "ready".
fn ready(mut command: Command) -> Result<Group, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut group = Group::spawn(&mut command)?;
    let output = group.child().stdout.take().ok_or("no output")?;
    let line = BufReader::new(output).lines().next();
    ensure(matches!(&line, Some(Ok(line)) if line == "ready"), || {
        format!("{command:?}: {line:?}")
    })?;
    Ok(group)
}

/// An abstract name is known to the programs of one network: of a node, of a namespace in it, of the host.
fn abstract_names() -> Result<(), String> {
    let (node, other) = (Node::up(&[])?, Node::up(&[])?);
    let (program, name) = (app("abstract.py"), scratch::unique("abstract"));
    let serve = ["python3", &program, "serve", &name];
    let ask = ["python3", &program, "ask", &name];
    let host = |argv: &[&str]| {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]);
        command
    };
    let inner = |argv: &[&str]| {
        let mut command = node.command(["ip", "netns", "exec", "inner"]);
        command.args(argv);
        command
    };
    node.output(&["ip", "netns", "add", "inner"])?;
    let answers = |wanted: [&str; 4]| -> Result<(), String> {
        let commands = [
            node.command(ask),
            inner(&ask),
            other.command(ask),
            host(&ask),
        ];
        for (mut command, wanted) in commands.into_iter().zip(wanted) {
            let outcome = exec::run(&mut command, LIMIT)?;
            ensure(outcome.ok() && outcome.stdout.trim() == wanted, || {
                format!("{wanted} wanted: {}", outcome.report())
            })?;
        }
        Ok(())
    };
    let (yes, no) = ("hello", "Connection refused");
    answers([no, no, no, no])?;
    let first = ready(node.command(serve))?;
    answers([yes, no, no, no])?;
    let second = ready(inner(&serve))?;
    let third = ready(host(&serve))?;
    answers([yes, yes, no, yes])?;
    drop(first);
    answers([no, yes, no, yes])?;
    drop((second, third));
    Ok(())
}

/// How many descriptors a process has.
fn descriptors(pid: &str) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Messages that nobody receives, and processes killed over them: the node keeps no socket, its
/// keeper no descriptor.
fn storm() -> Result<(), String> {
    let node = Node::up(&[])?;
    let stat = exec::run(&mut node::ring3(["stat", "--json", &node.name]), LIMIT)?;
    let keeper = stat
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"pid\": ")?.strip_suffix(','))
        .ok_or_else(|| stat.report())?;
    let before = descriptors(keeper);
    ensure(before > 0, || format!("keeper {keeper} has no descriptors"))?;
    let mut command = node.command(["python3", &app("pass_storm.py"), "120"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut number = || -> Result<i64, String> {
        let line = lines.next().ok_or("no line")?.map_err(|e| e.to_string())?;
        line.parse().map_err(|_| format!("'{line}'"))
    };
    let sockets = number()?;
    // Two more: the pidfds of the program and of the adopter, which comes with the first program.
    let mut now = 0;
    let settled = exec::until(LIMIT, || {
        now = descriptors(keeper);
        now <= before + 2
    });
    drop(child.stdin.take());
    let after = number()?;
    child.wait().map_err(|e| e.to_string())?;
    ensure(settled, || {
        format!("the keeper has {now} descriptors, {before} before")
    })?;
    ensure(sockets == after, || {
        format!("{after} sockets on the node, {sockets} before")
    })
}

fn socket_activation(pair: &Pair) -> Result<(), String> {
    let listen = format!("--listen={}:{}", pair.server4, pair.port(0));
    let script = "import os, socket, sys\n\
        assert os.environ['LISTEN_FDS'] == '1' and int(os.environ['LISTEN_PID']) == os.getpid()\n\
        s = socket.socket(fileno=3)\n\
        while True:\n    \
            c, _ = s.accept()\n    \
            c.recv(1000)\n    \
            c.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nactivated\\n')\n    \
            c.close()\n";
    let _server =
        pair.server
            .start(&["systemd-socket-activate", &listen, "python3", "-c", script])?;
    pair.wait_for_port(pair.port(0))?;
    let answers = ask(pair, 5)?;
    ensure(answers.iter().all(|a| a == "activated"), || {
        format!("{answers:?}")
    })
}

fn signal(place: &Pair, signal: &str, pid_file: &str) -> Result<(), String> {
    let command = format!("kill -{signal} $(cat {pid_file})");
    place.server.must(&["sh", "-c", &command], LIMIT).map(drop)
}

/// Workers of a forking server, a reload, and a new master that inherits the listener.
fn gunicorn(pair: &Pair) -> Result<(), String> {
    let folder = Scratch::new()?;
    folder.write(
        "app.py",
        "import os\n\
         def app(environ, start):\n    \
             start('200 OK', [('Connection', 'close')])\n    \
             return [b'worker %d of %d\\n' % (os.getpid(), os.getppid())]\n",
    )?;
    let bind = format!("{}:{}", pair.server4, pair.port(0));
    let path = folder.path().to_string_lossy();
    let pid_file = folder.file("pid");
    let pid_file = pid_file.to_string_lossy();
    let _server = pair.server.start(&[
        "gunicorn", "-w", "4", "-b", &bind, "--chdir", &path, "-p", &pid_file, "app:app",
    ])?;
    pair.wait_for_port(pair.port(0))?;
    let before = ask_until(pair, 2)?;
    signal(pair, "HUP", &pid_file)?;
    let replaced = |before: &BTreeSet<String>| {
        let mut failure = Ok(());
        let new = exec::until(LIMIT, || match ask(pair, 10) {
            Ok(answers) => answers.iter().all(|a| !before.contains(a)),
            Err(why) => {
                failure = Err(why);
                true
            }
        });
        failure?;
        ensure(new, || "the old workers still answer".into())
    };
    replaced(&before)?;
    let before = ask_until(pair, 2)?;
    // A new master, which execs; then the old one goes.
    let old = std::fs::read_to_string(folder.file("pid")).map_err(|e| e.to_string())?;
    signal(pair, "USR2", &pid_file)?;
    let second = folder.file("pid.2");
    ensure(exec::until(LIMIT, || second.exists()), || {
        "no second master".into()
    })?;
    pair.server.must(&["kill", "-TERM", old.trim()], LIMIT)?;
    replaced(&before)
}
