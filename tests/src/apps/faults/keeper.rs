// SPDX-License-Identifier: GPL-2.0
//! The keeper is killed, stopped or late, or cannot wait for several words at once: timers and doorbells go on.

use super::{figures, process, stat};
use crate::apps::topology::{Pair, Place, Topology};
use crate::apps::{Checked, Verdict, ensure, helper};
use crate::exec;
use crate::node::{self, Node, SHORT};
use crate::scratch;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Its number.
const FUTEX_WAITV: &str = "449";

/// The host refuses futex_waitv(): waits take no processor time, and packets come.
pub fn no_waitv() -> Checked {
    let pair = Pair::new(Topology::Link)?;
    let Place::Node(node) = &pair.server else {
        return Err("not a node".into());
    };
    let script = "
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
print('ready', flush=True)
while True:
    data, peer = s.recvfrom(10)
    s.sendto(str(time.process_time()).encode(), peer)
";
    let port = pair.port(0).to_string();
    let server = node.command(["python3", "-c", script, &pair.server4, &port]);
    let mut command = Command::new(helper("deny")?);
    command
        .arg(FUTEX_WAITV)
        .arg(server.get_program())
        .args(server.get_args());
    for (name, value) in server.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let _server = node::background(&mut command)?;
    let client = "
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
def ask():
    for _ in range(40):
        s.sendto(b'x', (sys.argv[1], int(sys.argv[2])))
        try:
            return float(s.recv(50))
        except (TimeoutError, ConnectionRefusedError):
            time.sleep(0.1)
used, slowest = ask(), 0
for _ in range(10):
    time.sleep(0.2)
    start = time.monotonic()
    now = ask()
    slowest = max(slowest, time.monotonic() - start)
print(now - used, slowest)
";
    let said = pair.client.must(
        &["python3", "-c", client, &pair.server4, &port],
        Duration::from_secs(60),
    )?;
    let said = figures(&said);
    ensure(said.len() == 2 && said.iter().all(|it| *it < 0.4), || {
        format!("processor time in 2 s of waiting, and the slowest answer: {said:?}")
    })?;
    Ok(Verdict::Passed)
}

/// The host refuses futex_waitv() to the keeper: it sleeps all the same, packets and timers come, and the doctor knows why.
pub fn no_waitv_keeper() -> Checked {
    let denied = |args: &[&str]| -> Result<Command, String> {
        let mut command = Command::new(helper("deny")?);
        command
            .arg(FUTEX_WAITV)
            .arg(crate::paths::ring3())
            .args(args);
        Ok(command)
    };
    let doctor = exec::run(&mut denied(&["doctor", "--json"])?, SHORT)?;
    let said: Value =
        serde_json::from_str(&doctor.stdout).map_err(|e| format!("{e}: {}", doctor.report()))?;
    let check = said["checks"]
        .as_array()
        .and_then(|all| all.iter().find(|check| check["what"] == "futex_waitv"))
        .ok_or("the doctor does not say")?;
    ensure(
        check["grade"] == "less"
            && check["remedy"]
                .as_str()
                .is_some_and(|it| it.contains("seccomp")),
        || format!("the doctor says {check}"),
    )?;
    let link = scratch::unique("r3");
    let name = scratch::unique("t");
    let port = format!("link:{link},addr=10.7.8.1/24");
    let up = exec::run(&mut denied(&["up", &name, "--port", &port])?, SHORT)?;
    ensure(up.ok(), || up.report())?;
    let node = Node { name };
    let peer = Node::up(&[format!("link:{link},addr=10.7.8.2/24")])?;
    let keeper = process(&stat(&node)?["pid"])?;
    let used = || -> Result<u64, String> {
        let path = format!("/proc/{}/stat", keeper.as_raw_nonzero());
        let stat = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let after = stat.rsplit_once(") ").ok_or("no name")?.1;
        let times = after.split(' ').skip(11).take(2);
        Ok(times.filter_map(|it| it.parse::<u64>().ok()).sum())
    };
    let before = used()?;
    std::thread::sleep(Duration::from_secs(2));
    let ticks = used()? - before;
    // Of 200 in two seconds.
    ensure(ticks < 60, || {
        format!("an idle keeper used {ticks} of 200 ticks")
    })?;
    let pings = peer.output(&["ping", "-c", "5", "-i", "0.2", "-q", "10.7.8.1"])?;
    ensure(pings.contains(" 0% packet loss"), || pings.clone())?;
    Ok(Verdict::Passed)
}

/// The keeper is killed; a program that does no more than wait for 300 ms again and again, which takes no help, learns it.
pub fn keeper_killed_timers() -> Checked {
    let node = Node::up(&[])?;
    let keeper = stat(&node)?["pid"].to_string();
    let script = "
import os, select, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('127.0.0.1', 0))
poll = select.poll()
poll.register(s, select.POLLIN)
poll.poll(300)
os.kill(int(sys.argv[1]), signal.SIGKILL)
end = time.monotonic() + 10
try:
    while time.monotonic() < end:
        poll.poll(300)
    print('nothing')
except OSError as error:
    print(error.errno)
";
    let mut program = node.command(["python3", "-c", script, &keeper]);
    let outcome = exec::run(&mut program, SHORT)?;
    ensure(outcome.stdout == "5\n", || outcome.report())?;
    Ok(Verdict::Passed)
}

/// The keeper is stopped while two processes answer each other, who leave time-outs to it: a wait of 50 ms right after
/// that ends in time.
pub fn keeper_stopped_timers() -> Checked {
    let node = Node::up(&[])?;
    let keeper = stat(&node)?["pid"].to_string();
    let script = "
import os, select, signal, socket, sys, time
keeper = int(sys.argv[1])
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
a.bind(('127.0.0.1', 0))
b.bind(('127.0.0.1', 0))
if os.fork() == 0:
    while True:
        data = b.recv(1)
        b.sendto(data, a.getsockname())
        if data == b'e':
            os._exit(0)
slowest = 0
for turn in range(5):
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        a.sendto(b'x', b.getsockname())
        a.recv(1)
    os.kill(keeper, signal.SIGSTOP)
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        a.sendto(b'x', b.getsockname())
        a.recv(1)
    poll = select.poll()
    poll.register(a, select.POLLIN)
    start = time.monotonic()
    poll.poll(50)
    slowest = max(slowest, time.monotonic() - start)
    os.kill(keeper, signal.SIGCONT)
a.sendto(b'e', b.getsockname())
os.wait()
print(slowest)
";
    let said = node.output(&["python3", "-c", script, &keeper])?;
    let slowest: f64 = said.trim().parse().map_err(|e| format!("{said}: {e}"))?;
    ensure(slowest < 0.4, || format!("50 ms took {slowest} s"))?;
    Ok(Verdict::Passed)
}

/// The keeper has no CPU while a program makes calls that do not wait, so that no timer interrupt comes; then the
/// program waits for 200 ms, of which nothing has passed.
pub fn keeper_late() -> Checked {
    let node = Node::up(&[])?;
    let keeper = stat(&node)?["pid"].to_string();
    let script = "
import os, signal, socket, struct, subprocess, sys, time
keeper = int(sys.argv[1])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((\"127.0.0.1\", 0))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack(\"ll\", 0, 200000))
later = subprocess.Popen([\"sh\", \"-c\", f\"sleep 0.8; kill -CONT {keeper}\"])
time.sleep(0.1)
os.kill(keeper, signal.SIGSTOP)
start = time.monotonic()
while time.monotonic() < start + 0.4:
    s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
start = time.monotonic()
try:
    s.recv(1)
except BlockingIOError:
    print(time.monotonic() - start)
later.wait()
";
    let took = node.output(&["python3", "-c", script, &keeper])?;
    let took: f64 = took.trim().parse().map_err(|e| format!("{took}: {e}"))?;
    ensure(took >= 0.2, || format!("200 ms were over after {took} s"))?;
    Ok(Verdict::Passed)
}

/// All of a node shares one processor with two busy loops: every event comes, by whatever way and to whatever kind of wait.
pub fn crowded_events() -> Checked {
    let events = helper("events")?;
    let on_one = |argv: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).args(argv);
        command
    };
    let busy = || node::background(&mut on_one(&["sh", "-c", "while :; do :; done"]));
    let _busy = (busy()?, busy()?);
    let ring3 = crate::paths::ring3();
    let (ring3, events) = (ring3.to_string_lossy(), events.to_string_lossy());
    let mut command = on_one(&[&*ring3, "run", "--", &*events, "8", "3", "2000"]);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    print!("{}", outcome.stdout);
    ensure(outcome.ok(), || outcome.report())?;
    Ok(Verdict::Passed)
}
