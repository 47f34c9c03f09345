// SPDX-License-Identifier: GPL-2.0
//! What the host may do to a node: the outcomes that docs/security.md promises.

use super::topology::{Pair, Place, Topology};
use super::{Checked, Verdict, ensure, helper, missing, trial};
use crate::exec::{self, until};
use crate::node::{self, Node, SHORT};
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("fault_stopped".into(), stopped),
        trial("fault_stopped_within".into(), stopped_within),
        trial("fault_stopped_late".into(), stopped_late),
        trial("fault_watcher_stopped".into(), watcher_stopped),
        trial("fault_bystanders".into(), bystanders),
        trial("fault_no_waitv".into(), no_waitv),
        trial("fault_no_waitv_keeper".into(), no_waitv_keeper),
        trial("fault_keeper_killed_timers".into(), keeper_killed_timers),
        trial("fault_crowded_events".into(), crowded_events),
        trial("fault_tap_removed".into(), tap_removed),
        trial("fault_no_descriptors".into(), no_descriptors),
        trial("fault_suspended".into(), suspended),
        trial("fault_link_suspended".into(), link_suspended),
        trial("fault_passt_killed".into(), passt_killed),
        trial("fault_folder_removed".into(), folder_removed),
        trial("fault_clock_step".into(), clock_step),
        trial("fault_clock_other".into(), clock_other),
        trial("fault_keeper_late".into(), keeper_late),
        trial("fault_keeper_stopped_timers".into(), keeper_stopped_timers),
    ]
}

/// A program is stopped, maybe while it has the vCPU: its node waits, and can be asked and taken
/// down meanwhile. When the program goes on, so does the node; nothing is poisoned.
fn stopped() -> Checked {
    let node = Node::up(&[])?;
    let busy = helper("busy")?;
    let mut held = 0;
    let mut program = node::background(&mut node.command([&busy]))?;
    let pid = Pid::from_raw(program.child().id() as i32).ok_or("pid 0")?;
    let signal = |signal| kill_process(pid, signal).map_err(|e| format!("{signal:?}: {e}"));
    std::thread::sleep(Duration::from_millis(300));
    for turn in 0..8_u64 {
        std::thread::sleep(Duration::from_micros(3000 + turn * 1733));
        signal(Signal::STOP)?;
        let probe = exec::run(
            &mut node.command(["cat", "/proc/net/tcp"]),
            Duration::from_millis(700),
        )?;
        held += u32::from(!probe.ok());
        let start = Instant::now();
        let stat = exec::run(&mut node::ring3(["stat", &node.name]), SHORT)?;
        ensure(stat.ok() && stat.stdout.contains("up"), || stat.report())?;
        ensure(start.elapsed() < Duration::from_secs(5), || {
            "stat waits for the stopped program".into()
        })?;
        signal(Signal::CONT)?;
        let again = node.exec(&["cat", "/proc/net/tcp"])?;
        ensure(again.ok(), || {
            format!("after it went on: {}", again.report())
        })?;
    }
    println!("stopped 8 times; {held} times it had the vCPU");
    signal(Signal::STOP)?;
    let down = node.down()?;
    signal(Signal::CONT)?;
    ensure(down.ok(), || {
        format!("down beside a stopped program: {}", down.report())
    })?;
    Ok(Verdict::Passed)
}

/// A busy program is stopped by another one of its node, or a thread of a process stops that while others are busy: not in kernel
/// code, so the node serves a third one.
fn stopped_within() -> Checked {
    let script = "
import os, random, select, signal, socket, sys, threading, time
ask, told = os.pipe(), os.pipe()
if not os.fork():
    while os.read(ask[0], 1):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
        os.write(told[1], b'x')
    os._exit(0)
def is_held():
    os.write(ask[1], b'x')
    return not select.select([told[0]], [], [], 3)[0]
def calls():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(('127.0.0.1', 0))
    while True:
        s.sendto(bytes(60000), s.getsockname())
        s.recv(60000)
def stops_itself():
    threading.Thread(target=calls, daemon=True).start()
    while True:
        time.sleep(random.uniform(0, 0.01))
        os.kill(os.getpid(), signal.SIGSTOP)
for stops in calls, stops_itself:
    pid = os.fork()
    if not pid:
        stops()
    held = 0
    time.sleep(0.3)
    for turn in range(20):
        if stops is calls:
            time.sleep(random.uniform(0, 0.01))
            os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        held += is_held()
        os.kill(pid, signal.SIGCONT)
        os.read(told[0], 1)
    print(stops.__name__, 'held', held, flush=True)
    os.kill(pid, signal.SIGKILL)
os._exit(0)
";
    prints(script, 150, "calls held 0\nstops_itself held 0\n")
}

/// A Python program on a node of its own, which ends within so many seconds, prints this.
fn prints(script: &str, seconds: u64, expected: &str) -> Checked {
    let mut command = node::ring3(["run", "--", "python3", "-c", script]);
    let outcome = exec::run(&mut command, Duration::from_secs(seconds))?;
    ensure(outcome.ok() && outcome.stdout == expected, || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}

/// Ctrl-Z for a process of which one thread is in a call that takes seconds and can't be interrupted: it stops when that is over.
fn stopped_late() -> Checked {
    let script = "
import ctypes, os, select, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def bpf(cmd, attr):
    buffer = ctypes.create_string_buffer(attr, 128)
    got = libc.syscall(321, cmd, buffer, 128)
    return got if got >= 0 else sys.exit(f'bpf {cmd}: {os.strerror(ctypes.get_errno())}')
code = ctypes.create_string_buffer(struct.pack('<BBhiBBhi', 0xb7, 0, 0, 0, 0x95, 0, 0, 0))
name = ctypes.create_string_buffer(b'GPL')
packet = ctypes.create_string_buffer(64)
prog = bpf(5, struct.pack('=IIQQ', 1, 2, ctypes.addressof(code), ctypes.addressof(name)))
def run(repeat):
    start = time.monotonic()
    bpf(10, struct.pack('=IIIIQQI', prog, 0, 64, 0, ctypes.addressof(packet), 0, repeat))
    return time.monotonic() - start
ask, told = os.pipe(), os.pipe()
if not os.fork():
    while os.read(ask[0], 1):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()
        os.write(told[1], b'x')
    os._exit(0)
one = min(run(1000000) for _ in range(3))
pid = os.fork()
if not pid:
    os.setpgid(0, 0)
    threading.Thread(target=run, args=(int(3e6 / one),)).start()
    while True:
        time.sleep(0.1)
time.sleep(0.5)
os.kill(pid, signal.SIGTSTP)
start = time.monotonic()
print('stopped', os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]), time.monotonic() - start > 1)
os.write(ask[1], b'x')
print('held', not select.select([told[0]], [], [], 10)[0], flush=True)
os.kill(pid, signal.SIGKILL)
os._exit(0)
";
    prints(script, 90, "stopped True True\nheld False\n")
}

/// A thread that waits for its node's packets and time is stopped, in the end killed, just after it
/// began to: the node's other programs get theirs.
fn watcher_stopped() -> Checked {
    let pair = Pair::new(Topology::Link)?;
    let server = "
import os, select, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[2])))
print(os.getpid(), flush=True)
late = 0
poll = select.poll()
poll.register(s, select.POLLIN)
while True:
    start = time.monotonic()
    if not poll.poll(int(sys.argv[3])):
        late = max(late, time.monotonic() - start - int(sys.argv[3]) / 1000)
        continue
    data, peer = s.recvfrom(100)
    s.sendto(b'%f' % late, peer)
    late = 0
";
    let folder = Scratch::in_memory()?;
    let mut servers = Vec::new();
    let mut start = |n: u16, patience: &str| -> Result<[String; 2], String> {
        let port = pair.port(n).to_string();
        let said = folder.file(&port);
        let run = format!(
            "exec python3 -c \"$0\" {} {port} {patience} > {}",
            pair.server4,
            said.display()
        );
        servers.push(pair.server.start(&["sh", "-c", &run, server])?);
        let there = until(SHORT, || {
            std::fs::read_to_string(&said).is_ok_and(|text| text.ends_with('\n'))
        });
        ensure(there, || "a server does not start".into())?;
        let pid = std::fs::read_to_string(&said).map_err(|e| e.to_string())?;
        Ok([port, pid.trim().to_string()])
    };
    let client = "
import os, signal, socket, sys, time
host, a, b, pid, rest, last = [sys.argv[1]] + [float(it) for it in sys.argv[2:]]
a, b, pid = int(a), int(b), int(pid)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
def ask(port):
    start = time.monotonic()
    s.sendto(b'x', (host, port))
    late = float(s.recv(100))
    return max(late, time.monotonic() - start)
worst = held = 0
usual = []
ask(b)
for turn in range(12):
    for _ in range(40):
        usual.append(ask(a))
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL if last and turn == 11 else signal.SIGSTOP)
    time.sleep(rest)
    try:
        worst = max(worst, ask(b))
    except TimeoutError:
        # Maybe it was stopped while it had the vCPU.
        held += 1
        os.kill(pid, signal.SIGCONT)
        s.recv(100)
        continue
    if not last or turn < 11:
        os.kill(pid, signal.SIGCONT)
print(worst, held / 12, 20 * sorted(usual)[len(usual) // 2])
";
    let [stops, pid] = start(0, "100000")?;
    // KEEP went away 1 or 2 ms after the stop. Packets of one that has no time-out; time-outs of one that has.
    for (n, patience, rest, last) in [(1, "100000", "0.003", "0"), (2, "30", "0.2", "1")] {
        let [port, _] = start(n, patience)?;
        let said = pair.client.must(
            &[
                "python3",
                "-c",
                client,
                &pair.server4,
                &stops,
                &port,
                &pid,
                rest,
                last,
            ],
            Duration::from_secs(60),
        )?;
        let said = figures(&said);
        // KEEP is away for 20 ms at most; the rest is a busy machine's. Who watches itself has no such wait.
        ensure(said.len() == 3 && said.iter().all(|it| *it < 0.2), || {
            format!("the latest, in seconds; how often it had the vCPU; usual, times 20: {said:?}")
        })?;
    }
    Ok(Verdict::Passed)
}

/// Who is asleep on a node sleeps while another program is busy with it.
fn bystanders() -> Checked {
    let node = Node::up(&[])?;
    let script = "
import os, socket, time
pids = []
for _ in range(8):
    pid = os.fork()
    if not pid:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(('127.0.0.1', 0))
        s.recv(1)
        os._exit(0)
    pids.append(pid)
    time.sleep(0.1)
def woken():
    text = [open(f'/proc/{pid}/status').read() for pid in pids]
    return [int(t.split('\\nvoluntary_ctxt_switches:')[1].split()[0]) for t in text]
before = woken()
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a.bind(('127.0.0.1', 0))
end = time.monotonic() + 3
while time.monotonic() < end:
    a.sendto(b'x', a.getsockname())
    a.recv(1)
    time.sleep(0.0002)
print(max(b - a for a, b in zip(before, woken())))
for pid in pids:
    os.kill(pid, 9)
";
    let said = node.output(&["python3", "-c", script])?;
    let most: u32 = said.trim().parse().map_err(|e| format!("{said}: {e}"))?;
    // Woken at each tick it would be some 3,000 times. A new watcher wakes now and then, the more the busier the host is.
    ensure(most < 1000, || {
        format!("one that was asleep for 3 s was woken {most} times")
    })?;
    Ok(Verdict::Passed)
}

/// Its number.
const FUTEX_WAITV: &str = "449";

/// The host refuses futex_waitv(): waits take no processor time, and packets come.
fn no_waitv() -> Checked {
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
fn no_waitv_keeper() -> Checked {
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
fn keeper_killed_timers() -> Checked {
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
fn keeper_stopped_timers() -> Checked {
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
fn keeper_late() -> Checked {
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
fn crowded_events() -> Checked {
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

/// The TAP goes away under traffic: no carrier, a line in the log, and the node lives.
fn tap_removed() -> Checked {
    if let Some(why) = Topology::TapServer.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    let pair = Pair::new(Topology::TapServer)?;
    let Place::Node(node) = &pair.server else {
        return Err("not a node".into());
    };
    let _flood = node::background(Command::new("ping").args(["-f", "-q", &pair.server4]))?;
    std::thread::sleep(Duration::from_millis(300));
    let mut remove = Command::new("ip");
    let removed = exec::run(remove.args(["link", "delete", &pair.interface]), SHORT)?;
    ensure(removed.ok(), || removed.report())?;
    let file = format!("/sys/class/net/{}/carrier", pair.interface);
    let lost = until(Duration::from_secs(5), || {
        node.output(&["cat", &file])
            .is_ok_and(|text| text.trim() == "0")
    });
    ensure(lost, || "the port still has its carrier".into())?;
    let log = exec::run(&mut node::ring3(["log", &node.name]), SHORT)?;
    ensure(log.stdout.contains("the host's tap device is gone"), || {
        "nothing in the log".into()
    })?;
    node.output(&["ping", "-c", "1", "-W", "2", "127.0.0.1"])?;
    let down = node.down()?;
    ensure(down.ok(), || down.report())?;
    Ok(Verdict::Passed)
}

/// The host gives a program no more descriptors: EMFILE, as on the host, and its node serves others.
fn no_descriptors() -> Checked {
    let node = Node::up(&[])?;
    let script = "python3 -c '
import resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = []
try:
    while True:
        kept.append(socket.socket())
except OSError as error:
    print(error.errno, len(kept) > 5)
kept.pop().close()
kept.append(socket.socket())
print(\"again\")
'";
    let said = node.output(&["sh", "-c", script])?;
    ensure(said == "24 True\nagain\n", || said.clone())?;
    node.output(&["cat", "/proc/net/tcp"])?;
    Ok(Verdict::Passed)
}

/// What `ring3 stat --json` says of a node.
fn stat(node: &Node) -> Result<Value, String> {
    let outcome = exec::run(&mut node::ring3(["stat", &node.name, "--json"]), SHORT)?;
    serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))
}

/// The numbers that a program has printed.
fn figures(said: &str) -> Vec<f64> {
    said.split_whitespace()
        .filter_map(|it| it.parse().ok())
        .collect()
}

fn process(pid: &Value) -> Result<Pid, String> {
    let pid = pid.as_i64().and_then(|pid| Pid::from_raw(pid as i32));
    pid.ok_or_else(|| "ring3 stat: no process number".into())
}

fn signal_all(pids: &[Pid], signal: Signal) -> Result<(), String> {
    pids.iter()
        .try_for_each(|pid| kill_process(*pid, signal).map_err(|e| format!("{signal:?}: {e}")))
}

/// All processes of a node stand still for seconds, as when a machine is suspended, and for it the
/// clock jumps. Its peer waits; then a stream goes on where it was, to its last byte, timers
/// that were due come, and the clocks agree.
fn suspended() -> Checked {
    let pair = Pair::new(Topology::Link)?;
    let Place::Node(node) = &pair.server else {
        return Err("not a node".into());
    };
    let folder = Scratch::in_memory()?;
    let sent = folder.noise("sent", 64 << 20)?;
    let (got, port) = (folder.file("got"), pair.port(0).to_string());
    let receive = format!(
        "socat -u TCP-LISTEN:{port},reuseaddr FILE:{}",
        got.display()
    );
    // It takes so long that it is under way when all stops.
    let send = format!(
        "socat -b 16384 -u EXEC:'dd if={} bs=16k' TCP:{}:{port}",
        sent.display(),
        pair.server4
    );
    if let Some(why) = missing(&["socat"])? {
        return Ok(Verdict::Ignored(why));
    }
    std::fs::write(&got, "").map_err(|e| e.to_string())?;
    let mut receiver = pair
        .server
        .start(&["sh", "-c", &format!("exec {receive}")])?;
    pair.wait_for_port(pair.port(0))?;
    let mut sleeper = pair.server.start(&["sleep", "2"])?;
    let mut sender = pair.client.start(&["sh", "-c", &format!("exec {send}")])?;
    until(SHORT, || std::fs::metadata(&got).is_ok_and(|m| m.len() > 0));

    let now = stat(node)?;
    let mut pids = vec![process(&now["pid"])?];
    for it in now["procs"].as_array().ok_or("no processes")? {
        pids.push(process(&it["pid"])?);
    }
    signal_all(&pids, Signal::STOP)?;
    std::thread::sleep(Duration::from_secs(3));
    signal_all(&pids, Signal::CONT)?;

    for (group, what) in [
        (&mut sleeper, "timer"),
        (&mut sender, "sender"),
        (&mut receiver, "receiver"),
    ] {
        let end = group.wait(SHORT);
        ensure(end == Some(exec::End::Exit(0)), || {
            format!("{what}: {end:?}")
        })?;
    }
    ensure(scratch::same(&sent, &got)?, || "other bytes arrived".into())?;
    // The kernel's clock, by a packet's time stamp, against the host's.
    let script = "python3 -c '
import socket, struct, time
def off():
    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    a.setsockopt(socket.SOL_SOCKET, 35, 1)
    a.bind((\"127.0.0.1\", 0))
    a.sendto(b\"x\", a.getsockname())
    data, control, flags, peer = a.recvmsg(10, 100)
    seconds, nanos = struct.unpack(\"ll\", control[0][2])
    return abs(time.time() - seconds - nanos / 1e9)
end = time.time() + 5
while off() > 0.01 and time.time() < end:
    time.sleep(0.2)
print(off() < 0.01)
'";
    let said = node.output(&["sh", "-c", script])?;
    ensure(said == "True\n", || format!("the clocks differ: {said}"))?;
    Ok(Verdict::Passed)
}

/// passt is killed: no carrier, a line in the log, and the node lives.
fn passt_killed() -> Checked {
    if let Some(why) = missing(&["passt"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_passt()?;
    let passt = process(&stat(&node)?["ports"][0]["pid"])?;
    signal_all(&[passt], Signal::KILL)?;
    let lost = until(Duration::from_secs(5), || {
        node.output(&["cat", "/sys/class/net/passt0/carrier"])
            .is_ok_and(|text| text.trim() == "0")
    });
    ensure(lost, || "the port still has its carrier".into())?;
    let log = exec::run(&mut node::ring3(["log", &node.name]), SHORT)?;
    ensure(log.stdout.contains("passt has closed its end"), || {
        log.report()
    })?;
    node.output(&["ping", "-c", "1", "-W", "2", "127.0.0.1"])?;
    let down = node.down()?;
    ensure(down.ok(), || down.report())?;
    Ok(Verdict::Passed)
}

/// The runtime folder is removed under a node: who is on it goes on, nobody finds it any more, its
/// name is free, and SIGTERM to the keeper takes it down.
fn folder_removed() -> Checked {
    let folder = Scratch::in_memory()?;
    let name = scratch::unique("t");
    let ring3 = |args: &[&str]| {
        let mut command = node::ring3(args);
        command.env("XDG_RUNTIME_DIR", folder.path());
        command
    };
    let up = exec::run(&mut ring3(&["up", &name]), SHORT)?;
    ensure(up.ok(), || up.report())?;
    let out = exec::run(&mut ring3(&["stat", &name, "--json"]), SHORT)?;
    let status: Value = serde_json::from_str(&out.stdout).map_err(|e| e.to_string())?;
    let keeper = process(&status["pid"])?;
    let script =
        "while [ -d $1/ring3 ]; do sleep 0.05; done; ping -c 1 127.0.0.1 >$1/said && sleep 100";
    let path = folder.path().to_string_lossy();
    let mut program = node::background(&mut ring3(&[
        "exec", &name, "--", "sh", "-c", script, "sh", &path,
    ]))?;
    std::thread::sleep(Duration::from_millis(300));
    let checked = (|| {
        std::fs::remove_dir_all(folder.file("ring3")).map_err(|e| e.to_string())?;
        let goes_on = until(Duration::from_secs(5), || {
            std::fs::read_to_string(folder.file("said"))
                .is_ok_and(|s| s.contains(" 0% packet loss"))
        });
        ensure(goes_on, || {
            "the program there has no network any more".into()
        })?;
        let out = exec::run(&mut ring3(&["exec", &name, "--", "true"]), SHORT)?;
        ensure(!out.ok() && out.stderr.contains("no node named"), || {
            out.report()
        })?;
        let out = exec::run(&mut ring3(&["run", "--node", &name, "--", "true"]), SHORT)?;
        ensure(out.ok(), || out.report())?;
        // Its name is another node's now, and stays that when the first one ends.
        let up = exec::run(&mut ring3(&["up", &name]), SHORT)?;
        ensure(up.ok(), || up.report())
    })();
    signal_all(&[keeper], Signal::TERM)?;
    let end = program.wait(SHORT);
    ensure(end.is_some(), || "the program there was not ended".into())?;
    let gone = until(Duration::from_secs(5), || {
        rustix::process::test_kill_process(keeper).is_err()
    });
    let exec = exec::run(&mut ring3(&["exec", &name, "--", "true"]), SHORT)?;
    let down = exec::run(&mut ring3(&["down", &name]), SHORT)?;
    checked?;
    ensure(gone, || "the keeper is still there".into())?;
    ensure(exec.ok(), || {
        format!("the node that has the name now: {}", exec.report())
    })?;
    ensure(down.ok(), || down.report())?;
    Ok(Verdict::Passed)
}

/// Each thread of the process is stopped: the signal is on its way for a while.
fn stands_still(pid: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return false;
    };
    threads.flatten().all(|thread| {
        std::fs::read_to_string(thread.path().join("stat"))
            .is_ok_and(|s| s.rsplit(") ").next().is_some_and(|s| s.starts_with('T')))
    })
}

/// A node that stands still reads nothing: its peer puts so many packets into the ring, and asks to be told of room.
/// When the node goes on, it tells.
fn link_suspended() -> Checked {
    /// LINK_DEPTH and LINK_MARK of the driver, and a few that were under way.
    const QUEUED: u64 = 128 + 8 + 8;
    let pair = Pair::new(Topology::Link)?;
    let Place::Node(node) = &pair.server else {
        return Err("not a node".into());
    };
    let (flood, counter) = (helper("flood")?, helper("counter")?);
    let (flood, counter) = (flood.to_string_lossy(), counter.to_string_lossy());
    let count = |place: &Place, name: &str| -> Result<u64, String> {
        let text = place.must(&[&counter, &pair.interface, name], SHORT)?;
        text.trim().parse().map_err(|_| format!("{name}: {text}"))
    };
    let statistics = format!("/sys/class/net/{}/statistics/tx_packets", pair.interface);
    let sent = |place: &Place| -> Result<u64, String> {
        let text = place.must(&["cat", &statistics], SHORT)?;
        text.trim()
            .parse()
            .map_err(|_| format!("tx_packets: {text}"))
    };
    let port = pair.port(0).to_string();
    let mut reader = pair
        .server
        .start(&[&flood, "serve", &pair.server4, &port])?;
    let ask = [&*flood, "send", &pair.server4, &port, "1"];
    pair.client.must(&ask, SHORT)?;
    // The peer also looks by itself, once a second, and may come first.
    for _ in 0..5 {
        let pids = [
            process(&stat(node)?["pid"])?,
            Pid::from_raw(reader.child().id() as i32).ok_or("pid 0")?,
        ];
        let (full, told) = (
            count(&pair.client, "tx_full")?,
            count(&pair.server, "rx_doorbells_rung")?,
        );
        signal_all(&pids, Signal::STOP)?;
        let stands = until(SHORT, || pids.iter().all(|pid| stands_still(*pid)));
        ensure(stands, || "the server's processes do not stop".into())?;
        let before = sent(&pair.client)?;
        let fills = pair
            .client
            .start(&[&flood, "send", &pair.server4, &port, "300000"]);
        let filled = until(SHORT, || {
            count(&pair.client, "tx_full").is_ok_and(|now| now > full)
        });
        std::thread::sleep(Duration::from_secs(1));
        let queued = sent(&pair.client)? - before;
        signal_all(&pids, Signal::CONT)?;
        drop(fills);
        ensure(filled, || "the ring does not fill".into())?;
        // What others send comes after these.
        ensure(queued <= QUEUED, || {
            format!("{queued} packets wait in the ring, {QUEUED} may")
        })?;
        let tells = until(SHORT, || {
            count(&pair.server, "rx_doorbells_rung").is_ok_and(|now| now > told)
        });
        if tells {
            return Ok(Verdict::Passed);
        }
    }
    Err("there is room again, and nobody tells".into())
}

/// The host's wall clock is set, forth and back, while a node is busy: its own follows, and
/// connections and time-outs do not notice.
fn clock_step() -> Checked {
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored(
            "to answer another process's system calls needs root".into(),
        ));
    }
    let program = helper("clock_step")?;
    let folder = Scratch::in_memory()?;
    let offset = folder.file("offset");
    let mut command = Command::new(&program);
    command.arg("under").arg(&offset);
    command.arg(crate::paths::ring3()).args(["run", "--"]);
    command.arg(&program).arg("watch").arg(&offset);
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    print!("{}", outcome.stdout);
    ensure(outcome.ok(), || outcome.report())?;
    Ok(Verdict::Passed)
}

/// A process on a node reads another monotonic clock than the others, as it does in a time namespace (or
/// as all do after a machine was suspended): the node's rate and time-outs stay as they were.
fn clock_other() -> Checked {
    if !rustix::process::geteuid().is_root() {
        return Ok(Verdict::Ignored(
            "a time namespace of its own needs root".into(),
        ));
    }
    let node = Node::up(&[])?;
    // Without a host descriptor: the node's own timer ends this.
    let waits = "import select, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
p = select.poll()
p.register(s, select.POLLIN)
start = time.monotonic()
for i in range(3):
    p.poll(200)
print(0.6 <= time.monotonic() - start < 2)
";
    let calls = "import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 3
while time.monotonic() < end:
    s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
";
    for offset in ["100", "-1"] {
        let mut command = Command::new("unshare");
        command.args(["--time", "--monotonic", offset, "--fork", "--"]);
        command.arg(crate::paths::ring3());
        command.args(["exec", &node.name, "--", "python3", "-c", calls]);
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(outcome.ok(), || outcome.report())?;
        let said = node.output(&["python3", "-c", waits])?;
        ensure(said == "True\n", || {
            format!("{offset} s off: three time-outs of 200 ms did not take 600 ms")
        })?;
    }
    Ok(Verdict::Passed)
}
