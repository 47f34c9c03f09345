// SPDX-License-Identifier: GPL-2.0
//! A program is stopped, or starved: where it stands, and what others of its node and of other nodes have of that.

use super::{figures, prints};
use crate::apps::topology::{Pair, Topology};
use crate::apps::{Checked, Verdict, ensure, helper};
use crate::exec::{self, until};
use crate::node::{self, Node, SHORT};
use crate::scratch::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// A program is stopped, maybe while it has the vCPU: the adopter has it let go of that, and its node serves others. When the
/// program goes on nothing is poisoned, and the node can be taken down beside it.
pub fn stopped() -> Checked {
    stopped_beside("best")
}

/// The same where the adopter traces the program all the time.
pub fn stopped_traced() -> Checked {
    stopped_beside("trace")
}

fn stopped_beside(adopter: &str) -> Checked {
    let node = Node::up_adopted(adopter, [])?;
    let busy = helper("busy")?;
    let mut held = 0;
    let mut program = node::background(&mut node.command([&busy]))?;
    let pid = Pid::from_raw(program.child().id() as i32).ok_or("pid 0")?;
    let signal = |signal| kill_process(pid, signal).map_err(|e| format!("{signal:?}: {e}"));
    std::thread::sleep(Duration::from_millis(300));
    let turns = if adopter == "trace" { 40 } else { 8 };
    for turn in 0..turns {
        std::thread::sleep(Duration::from_micros(3000 + turn * 1733 % 20_000));
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
    println!("stopped {turns} times; {held} times it had the vCPU");
    ensure(held == 0, || {
        format!("the node waited {held} times for a stopped program")
    })?;
    signal(Signal::STOP)?;
    let down = node.down()?;
    signal(Signal::CONT)?;
    ensure(down.ok(), || {
        format!("down beside a stopped program: {}", down.report())
    })?;
    Ok(Verdict::Passed)
}

/// A program that is stopped in kernel code runs until it has released the vCPU, and is not stopped on its way there again and
/// again: each of those stops is a switch of the host's.
pub fn stopped_once() -> Checked {
    for adopter in ["best", "trace"] {
        let node = Node::up_adopted(adopter, [])?;
        let mut program = node::background(&mut node.command([helper("busy")?]))?;
        let id = program.child().id();
        let pid = Pid::from_raw(id as i32).ok_or("pid 0")?;
        let signal = |signal| kill_process(pid, signal).map_err(|e| format!("{signal:?}: {e}"));
        let switches = || -> Result<u64, String> {
            let status =
                std::fs::read_to_string(format!("/proc/{id}/status")).map_err(|e| e.to_string())?;
            let line = status
                .lines()
                .find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|it| it.trim().parse().ok())
                .ok_or(format!("no count of switches:\n{status}"))
        };
        let mut counts = Vec::new();
        std::thread::sleep(Duration::from_millis(300));
        for turn in 0..60 {
            std::thread::sleep(Duration::from_micros(3000 + turn * 1733 % 20_000));
            signal(Signal::STOP)?;
            let before = switches()?;
            std::thread::sleep(Duration::from_millis(40));
            counts.push(switches()? - before);
            signal(Signal::CONT)?;
        }
        println!("{adopter}: {counts:?}");
        // One or two to stop it, as many for each time that it has been made to run.
        ensure(counts.iter().all(|it| *it < 40), || {
            format!("switches of a stopped program, adopter {adopter}: {counts:?}")
        })?;
    }
    Ok(Verdict::Passed)
}

/// A program that is stopped in kernel code, and gets a signal each 2 ms: what it gets on its way out does not make it go on.
pub fn stopped_signals() -> Checked {
    /// It runs for some microseconds.
    const TICKS: u64 = 3;
    for adopter in ["best", "trace"] {
        let node = Node::up_adopted(adopter, [])?;
        let mut program =
            node::background(&mut node.command([helper("busy")?.as_os_str(), "2000".as_ref()]))?;
        let id = program.child().id();
        let pid = Pid::from_raw(id as i32).ok_or("pid 0")?;
        let signal = |signal| kill_process(pid, signal).map_err(|e| format!("{signal:?}: {e}"));
        // In ticks of 10 ms.
        let ran = || -> Result<u64, String> {
            let stat =
                std::fs::read_to_string(format!("/proc/{id}/stat")).map_err(|e| e.to_string())?;
            let (_, words) = stat.rsplit_once(')').ok_or("no name")?;
            let words: Vec<&str> = words.split_whitespace().collect();
            let number = |at: usize| words.get(at).and_then(|it| it.parse::<u64>().ok());
            number(11)
                .zip(number(12))
                .map(|(user, system)| user + system)
                .ok_or(format!("no times: {stat}"))
        };
        let mut times = Vec::new();
        std::thread::sleep(Duration::from_millis(300));
        for turn in 0..60 {
            std::thread::sleep(Duration::from_micros(3000 + turn * 1733 % 20_000));
            signal(Signal::STOP)?;
            std::thread::sleep(Duration::from_millis(40));
            let before = ran()?;
            std::thread::sleep(Duration::from_millis(80));
            times.push(ran()? - before);
            signal(Signal::CONT)?;
        }
        println!("{adopter}: {times:?}");
        ensure(times.iter().all(|it| *it < TICKS), || {
            format!(
                "ticks of the processor that a stopped program got, adopter {adopter}: {times:?}"
            )
        })?;
    }
    Ok(Verdict::Passed)
}

/// A program that gets so many signals that the adopter has let it go for some time is stopped in kernel code: others go on.
pub fn stopped_alone() -> Checked {
    /// The adopter comes back to such a program after 10 s.
    const LIMIT: Duration = Duration::from_secs(3);
    let node = Node::up_adopted("trace", [])?;
    let command = [helper("busy")?.into_os_string(), "300".into()];
    let mut program = node::background(&mut node.command(command))?;
    let pid = Pid::from_raw(program.child().id() as i32).ok_or("pid 0")?;
    let signal = |signal| kill_process(pid, signal).map_err(|e| format!("{signal:?}: {e}"));
    std::thread::sleep(Duration::from_millis(1500));
    let mut times = Vec::new();
    for turn in 0..6 {
        std::thread::sleep(Duration::from_micros(3000 + turn * 1733));
        signal(Signal::STOP)?;
        let start = Instant::now();
        node.output(&["ip", "-br", "addr"])?;
        times.push(start.elapsed());
        signal(Signal::CONT)?;
    }
    println!("{times:?}");
    ensure(times.iter().all(|it| *it < LIMIT), || {
        format!("beside a stopped program another took {times:?}")
    })?;
    Ok(Verdict::Passed)
}

/// A busy program is stopped by another one of its node, or a thread of a process stops that while others are busy: not in kernel
/// code, so the node serves a third one.
pub fn stopped_within() -> Checked {
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

/// Ctrl-Z for a process of which one thread is in a call that takes seconds and can't be interrupted: it stops when that is over.
pub fn stopped_late() -> Checked {
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
pub fn watcher_stopped() -> Checked {
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

/// A program that sleeps on a node is not woken while another program is busy there.
pub fn bystanders() -> Checked {
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
