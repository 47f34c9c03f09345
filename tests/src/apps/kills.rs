// SPDX-License-Identifier: GPL-2.0
//! `kill -9` of a program at bad moments.
//!
//! Outside kernel code, or asleep in it: its node goes on and its peers see the connection close.
//! Inside: everybody gets an error within a second. Nothing ever hangs.

use super::topology::{Pair, Place, Topology};
use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, Group, until};
use crate::node::Node;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    let mut all: Vec<Trial> = ["idle", "recv", "poll", "spin"]
        .into_iter()
        .map(|mode| trial(format!("kill_{mode}"), move || holding(mode)))
        .collect();
    all.push(trial("kill_busy".into(), || busy("best")));
    all.push(trial("kill_busy_traced".into(), || busy("trace")));
    all.push(trial("kill_busy_unadopted".into(), || busy("none")));
    all.push(trial("kill_stale_death".into(), stale_death));
    all.push(trial("kill_new_child".into(), new_child));
    all.push(trial("kill_young".into(), young));
    all.push(trial("kill_young_traced".into(), || young_by("trace")));
    all.push(trial("kill_young_unadopted".into(), young_unadopted));
    all.push(trial("kill_reexec".into(), reexec));
    all.push(trial("kill_long_call".into(), long_call));
    all.push(trial("kill_after_signals".into(), after_signals));
    all.push(trial("kill_beside_waiters".into(), beside_waiters));
    all.push(trial("kill_keeper".into(), keeper));
    all.push(trial("kill_link_peer".into(), link_peer));
    all
}

/// A program whose lines come in one by one.
pub(super) struct Talker {
    group: Group,
    lines: Receiver<String>,
}

impl Talker {
    pub(super) fn start(mut command: Command) -> Result<Talker, String> {
        command.stdin(Stdio::null());
        Talker::start_with(command)
    }

    /// With the standard input that it has.
    fn start_with(mut command: Command) -> Result<Talker, String> {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut group = Group::spawn(&mut command)?;
        let out = group.child().stdout.take().ok_or("no pipe")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Talker { group, lines })
    }

    /// The next line, if it comes in time.
    fn line(&self, limit: Duration) -> Option<String> {
        self.lines.recv_timeout(exec::patience(limit)).ok()
    }

    pub(super) fn expect(&self, start: &str) -> Result<String, String> {
        match self.line(Duration::from_secs(10)) {
            Some(line) if line.starts_with(start) => Ok(line),
            other => Err(format!("waited for '{start}', got {other:?}")),
        }
    }
}

/// Kills the process whose number ends the line.
fn kill_named(line: &str) -> Result<(), String> {
    let pid = line
        .split(' ')
        .next_back()
        .and_then(|word| word.parse().ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| format!("no process number in '{line}'"))?;
    kill_process(pid, Signal::KILL).map_err(|e| format!("kill {line}: {e}"))
}

fn kill_keeper(node: &Node) -> Result<(), String> {
    let stat = exec::run(
        &mut crate::node::ring3(["stat", &node.name]),
        crate::node::SHORT,
    )?;
    let line = stat
        .stdout
        .lines()
        .find(|line| line.starts_with("keeper"))
        .ok_or_else(|| stat.report())?;
    kill_named(line)
}

fn works(node: &Node) -> Result<(), String> {
    let outcome = node.exec(&["cat", "/proc/net/tcp"])?;
    ensure(outcome.ok(), || {
        format!("the node no longer works: {}", outcome.report())
    })
}

fn holding(mode: &str) -> Checked {
    let pair = Pair::new(Topology::Link)?;
    let (hold, watch) = (helper("hold")?, helper("watch")?);
    let Place::Node(node) = &pair.server else {
        return Err("not a node".into());
    };
    for turn in 0..3 {
        let port = format!("{}", 7100 + turn);
        let holder = Talker::start(node.command([
            hold.as_os_str(),
            mode.as_ref(),
            pair.server4.as_ref(),
            port.as_ref(),
        ]))?;
        let watcher =
            Talker::start(
                pair.client
                    .command(&[&watch.to_string_lossy(), &pair.server4, &port]),
            )?;
        watcher.expect("connected")?;
        let line = holder.expect("accepted")?;
        std::thread::sleep(Duration::from_millis(100));
        kill_named(&line)?;
        let start = Instant::now();
        let end = watcher.expect("end")?;
        ensure(
            start.elapsed() < exec::patience(Duration::from_secs(3)),
            || format!("the peer saw it after {:?}", start.elapsed()),
        )?;
        ensure(end == "end FIN" || end == "end ECONNRESET", || end.clone())?;
        works(node)?;
    }
    Ok(Verdict::Passed)
}

/// The adopter's state: how it works, how many calls it has continued, and how often it has freed the vCPU; "" without one.
fn adopter(node: &Node) -> Result<(String, u64, u64), String> {
    let stat = exec::run(
        &mut crate::node::ring3(["stat", "--json", &node.name]),
        crate::node::SHORT,
    )?;
    let value: Value =
        serde_json::from_str(&stat.stdout).map_err(|e| format!("{e}: {}", stat.report()))?;
    let it = &value["adopter"];
    let how = it["how"].as_str().unwrap_or_default();
    let number = |name: &str| it[name].as_u64().unwrap_or_default();
    Ok((how.to_owned(), number("adopted"), number("freed")))
}

/// Whether the host tells this process, and so the adopter, of threads that are killed: by programs for its tracepoints, as doctor has it.
fn may_trace_by_bpf() -> Result<bool, String> {
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .ok_or("no CapEff in /proc/self/status")?;
    let has = u64::from_str_radix(line.trim(), 16).map_err(|e| format!("{e}: {line}"))?;
    Ok(has & SYS_ADMIN != 0 || has & PERFMON_AND_BPF == PERFMON_AND_BPF)
}

/// Killed while it is inside kernel code with some probability, many times. Where its registers can be had, an adopter
/// goes on with what it was doing, and the node lives.
fn busy(how: &str) -> Checked {
    let (busy, wait) = (helper("busy")?, helper("wait")?);
    let (mut lived, mut poisoned) = (0, 0);
    let mut node = Node::up_adopted(how, [])?;
    let mut adopted = 0;
    let mut works_by = String::new();
    for turn in 0..40_u64 {
        let mut waiter = Talker::start(node.command([&wait]))?;
        waiter.expect("waiting")?;
        let mut program = Talker::start(node.command([&busy]))?;
        let line = program.expect("busy")?;
        if turn == 0 && how != "none" {
            until(Duration::from_secs(2), || {
                works_by = adopter(&node).map(|(how, ..)| how).unwrap_or_default();
                !works_by.is_empty()
            });
            let wanted = match how {
                "trace" => "traced",
                _ if may_trace_by_bpf()? => "killed",
                _ => "traced",
            };
            ensure(works_by == wanted, || {
                format!("the node's adopter works by '{works_by}', not '{wanted}'")
            })?;
        }
        if works_by == "traced" {
            // A young program is not traced yet.
            let pid = line.rsplit(' ').next().unwrap_or_default();
            let traced = || {
                std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|text| {
                    text.contains("TracerPid:") && !text.contains("TracerPid:\t0")
                })
            };
            ensure(until(Duration::from_secs(5), traced), || {
                "a program is not traced".into()
            })?;
        }
        std::thread::sleep(Duration::from_micros(2000 + turn * 1377 % 20000));
        kill_named(&line)?;
        let end = program.group.wait(Duration::from_secs(3));
        ensure(end.is_some(), || {
            "the killed program does not go away".into()
        })?;
        let start = Instant::now();
        let probe = node.exec(&["cat", "/proc/net/tcp"])?;
        ensure(
            start.elapsed() < exec::patience(Duration::from_secs(2)),
            || {
                format!(
                    "a new program hung for {:?}: {}",
                    start.elapsed(),
                    probe.report()
                )
            },
        )?;
        if probe.ok() {
            lived += 1;
            ensure(waiter.line(Duration::ZERO).is_none(), || {
                "another program's recv() ended, though the node lives".into()
            })?;
            continue;
        }
        poisoned += 1;
        // The node may have ended already.
        let says_why = ["poison", "died inside kernel code", "has just ended"]
            .map(|it| probe.stderr.contains(it));
        ensure(says_why.contains(&true), || {
            format!("no clear error: {}", probe.report())
        })?;
        // The other participant learns of it within a second: its call fails, or SIGTERM comes first.
        let said = waiter.line(Duration::from_secs(1));
        ensure(
            said.is_some_and(|text| text.starts_with('E'))
                || waiter.group.wait(Duration::from_millis(100)) == Some(exec::End::Signal(15)),
            || "another program still sleeps in recv() after a second".into(),
        )?;
        let down = node.down()?;
        ensure(down.ok(), || format!("down: {}", down.report()))?;
        node = Node::up_adopted(how, [])?;
    }
    if how != "none" {
        adopted = adopter(&node)?.1;
        ensure(poisoned == 0 && adopted > 10, || {
            format!("poisoned {poisoned} times; {adopted} calls gone on with")
        })?;
    }
    println!(
        "killed inside kernel code or near it: the node lived {lived} times, was poisoned {poisoned} times; \
         {adopted} calls were gone on with"
    );
    Ok(Verdict::Passed)
}

/// The node's adopter, a child of its keeper's.
fn adopter_pid(node: &Node) -> Option<Pid> {
    let stat = exec::run(
        &mut crate::node::ring3(["stat", &node.name]),
        crate::node::SHORT,
    )
    .ok()?;
    let keeper = stat
        .stdout
        .lines()
        .find(|line| line.starts_with("keeper"))?
        .split(' ')
        .next_back()?
        .to_owned();
    let threads = std::fs::read_dir(format!("/proc/{keeper}/task")).ok()?;
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|it| it.parse::<i32>().ok())
                .collect::<Vec<_>>()
        })
        .find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|comm| comm.trim() == "ring3-adopt")
        })
        .and_then(Pid::from_raw)
}

/// The adopter hears late of deaths whose number a thread has that lives, and holds the vCPU now and then: it must
/// not take that from it.
fn stale_death() -> Checked {
    let (stale, wait) = (helper("stale")?, helper("wait")?);
    let node = Node::up_adopted("best", [])?;
    let waiter = Talker::start(node.command([&wait]))?;
    waiter.expect("waiting")?;
    until(Duration::from_secs(2), || {
        adopter(&node).is_ok_and(|(how, ..)| !how.is_empty())
    });
    let before = adopter(&node)?;
    ensure(!before.0.is_empty(), || "the node has no adopter".into())?;
    let it = adopter_pid(&node).ok_or("the node's adopter is not found")?;
    kill_process(it, Signal::STOP).map_err(|e| e.to_string())?;
    let program = Talker::start(node.command([stale.as_os_str(), "300".as_ref()]))?;
    program.expect("busy")?;
    std::thread::sleep(Duration::from_millis(300));
    kill_process(it, Signal::CONT).map_err(|e| e.to_string())?;
    program.expect("end")?;
    works(&node)?;
    ensure(waiter.line(Duration::ZERO).is_none(), || {
        "another program's recv() ended".into()
    })?;
    let after = adopter(&node)?;
    ensure(after == before, || {
        format!("threads that live lost the vCPU: {before:?}, then {after:?}")
    })?;
    Ok(Verdict::Passed)
}

/// Children killed at once, or soon after fork(): they may die inside kernel code, but nothing that
/// they held may stay open for ever.
fn new_child() -> Checked {
    let program = helper("forkkill")?;
    for delay in ["0", "50", "100", "300", "1000", "20000"] {
        let mut command = crate::node::ring3(["run", "--"]);
        command.arg(&program).arg(delay);
        let outcome = exec::run(&mut command, crate::node::SHORT)?;
        let said = outcome.stdout.trim();
        let poisoned = outcome.stderr.contains("poisoned");
        ensure(poisoned || said == "fine 20 hung 0", || {
            format!("killed {delay} us after fork: {}", outcome.report())
        })?;
    }
    Ok(Verdict::Passed)
}

fn has_adopter(node: &Node) -> Result<(), String> {
    let there = until(Duration::from_secs(5), || {
        adopter(node).is_ok_and(|(how, ..)| !how.is_empty())
    });
    ensure(there, || "the node has no adopter".into())
}

fn young() -> Checked {
    young_by("best")
}

/// Children that are killed as soon as they make calls: their registers can be had from the first instruction on.
fn young_by(how: &str) -> Checked {
    const CHILDREN: usize = 60;
    let (young, wait) = (helper("young")?, helper("wait")?);
    let node = Node::up_adopted(how, [])?;
    let waiter = Talker::start(node.command([&wait]))?;
    waiter.expect("waiting")?;
    has_adopter(&node)?;
    let program = Talker::start(node.command([young.as_os_str(), CHILDREN.to_string().as_ref()]))?;
    for turn in 0..CHILDREN as u64 {
        let line = program.expect("busy")?;
        std::thread::sleep(Duration::from_micros(turn % 6 * 300));
        kill_named(&line)?;
    }
    program.expect("end")?;
    works(&node)?;
    let adopted = adopter(&node)?.1;
    ensure(adopted > 5, || format!("{adopted} calls were gone on with"))?;
    Ok(Verdict::Passed)
}

/// The same without an adopter. A child may have the vCPU when it is killed, before the keeper has heard of it: the node is
/// poisoned, and its programs end.
fn young_unadopted() -> Checked {
    let young = helper("young")?;
    for _ in 0..6 {
        let node = Node::up_adopted("none", [])?;
        let mut program = Talker::start(node.command([young.as_os_str(), "10".as_ref()]))?;
        for turn in 0..10 {
            let Some(line) = program.line(Duration::from_secs(3)) else {
                break;
            };
            std::thread::sleep(Duration::from_micros(turn % 6 * 300));
            if line.starts_with("busy") {
                kill_named(&line)?;
            }
        }
        // The keeper may send SIGTERM first.
        ensure(program.group.wait(Duration::from_secs(3)).is_some(), || {
            "a program waits for ever for the vCPU of a killed child".into()
        })?;
    }
    Ok(Verdict::Passed)
}

/// A process that has several threads, and is traced, executes a program by one that is not its first: each exec comes to
/// its end, while other processes come and a debugger looks.
fn reexec() -> Checked {
    let program = helper("reexec")?;
    let node = Node::up_adopted("trace", [])?;
    let mut first = Talker::start(node.command([program.as_os_str(), "60".as_ref()]))?;
    let second = Talker::start(node.command([program.as_os_str(), "60".as_ref()]))?;
    let pid = first
        .line(Duration::from_secs(10))
        .ok_or("it says nothing")?;
    second
        .line(Duration::from_secs(10))
        .ok_or("it says nothing")?;
    while first.group.wait(Duration::from_millis(50)).is_none() {
        // The adopter lets go of all threads, and takes them again.
        let mut debug = crate::node::ring3(["debug", &pid, "--", "true"]);
        exec::run(&mut debug, crate::node::SHORT)?;
        works(&node)?;
    }
    first.expect("end")?;
    second.expect("end")?;
    works(&node)?;
    Ok(Verdict::Passed)
}

/// The adopter goes on with a call that takes seconds: what it traces is served meanwhile.
fn long_call() -> Checked {
    let script = "
import ctypes, os, signal, struct, sys, time
os.dup2(1, 2)
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
one = min(run(1000000) for _ in range(3))
pid = os.fork()
if not pid:
    run(int(3e6 / one))
    os._exit(0)
time.sleep(0.5)
came = []
signal.signal(signal.SIGUSR1, lambda *_: came.append(time.monotonic()))
print('busy', pid, flush=True)
sys.stdin.read(1)
worst = 0
for _ in range(20):
    start = time.monotonic()
    os.kill(os.getpid(), signal.SIGUSR1)
    while not came:
        time.sleep(0.001)
    worst = max(worst, came.pop() - start)
    time.sleep(0.02)
print('worst', worst, flush=True)
";
    let node = Node::up_adopted("trace", [])?;
    let waiter = Talker::start(node.command([helper("wait")?]))?;
    waiter.expect("waiting")?;
    has_adopter(&node)?;
    let mut command = node.command(["python3", "-c", script]);
    command.stdin(Stdio::piped());
    let mut program = Talker::start_with(command)?;
    let line = program.expect("busy")?;
    kill_named(&line)?;
    drop(program.group.child().stdin.take());
    let said = program.expect("worst")?;
    let worst: f64 = said[6..].parse().map_err(|e| format!("{said}: {e}"))?;
    ensure(worst < 0.5, || {
        format!("a signal took {worst:.2} s beside a call that the adopter went on with")
    })?;
    ensure(adopter(&node)?.1 > 0, || "nothing was gone on with".into())?;
    works(&node)?;
    Ok(Verdict::Passed)
}

/// A program that got very many signals is not traced for a while, and then again.
fn after_signals() -> Checked {
    let script = "
import os, signal, time
signal.signal(signal.SIGUSR1, lambda *_: None)
print(os.getpid(), flush=True)
time.sleep(0.5)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    os.kill(os.getpid(), signal.SIGUSR1)
print('calm', flush=True)
time.sleep(60)
";
    let node = Node::up_adopted("trace", [])?;
    let program = Talker::start(node.command(["python3", "-c", script]))?;
    let pid = program
        .line(Duration::from_secs(10))
        .ok_or("it says nothing")?;
    let traced = || {
        std::fs::read_to_string(format!("/proc/{pid}/status"))
            .is_ok_and(|text| text.contains("TracerPid:") && !text.contains("TracerPid:\t0"))
    };
    program.expect("calm")?;
    ensure(!traced(), || {
        "each of its signals goes by way of the adopter".into()
    })?;
    // The pause is 10 s.
    ensure(until(Duration::from_secs(13), traced), || {
        "it is not traced again".into()
    })?;
    Ok(Verdict::Passed)
}

/// The processor time that KEEP, a thread of the keeper, has used so far, in seconds. Not from its stat: those are ticks of 10 ms.
fn used_by_keep(keeper: i64) -> Result<f64, String> {
    let threads = std::fs::read_dir(format!("/proc/{keeper}/task")).map_err(|e| e.to_string())?;
    let keep = threads
        .flatten()
        .map(|it| it.path())
        .find(|it| {
            std::fs::read_to_string(it.join("comm")).is_ok_and(|name| name == "ring3-keep\n")
        })
        .ok_or("the keeper has no thread KEEP")?;
    let text = std::fs::read_to_string(keep.join("schedstat")).map_err(|e| e.to_string())?;
    let ns = text.split(' ').next().and_then(|it| it.parse::<f64>().ok());
    ns.map(|ns| ns / 1e9).ok_or(format!("schedstat: {text}"))
}

/// Many want the vCPU, and one of them sends SIGKILL all the time: no wait for the vCPU or a result ends by its
/// time limit. KEEP has nothing to do there, and sleeps.
fn beside_waiters() -> Checked {
    /// Of the processor, in the 3 s: KEEP comes with each tick, and waits again. 0.03 s, mostly.
    const KEEP_S: f64 = 0.12;
    /// With several vCPUs: KEEP is kicked for interrupts from the others, too, 5,000 times a second. 0.13 to 0.28 s on a busy machine;
    /// one that spins takes 3 s.
    const KEEP_SMP_S: f64 = 0.6;
    let node = Node::up(&[])?;
    let stat = exec::run(
        &mut crate::node::ring3(["stat", &node.name, "--json"]),
        crate::node::SHORT,
    )?;
    let value: Value = serde_json::from_str(&stat.stdout).map_err(|e| format!("{e}: {stat:?}"))?;
    let keeper = value["pid"].as_i64().ok_or("no keeper")?;
    let before = used_by_keep(keeper)?;
    let said = node.output(&[&helper("contend")?.to_string_lossy(), "3"])?;
    let spent = used_by_keep(keeper)? - before;
    let has_several = value["version"]
        .as_str()
        .is_some_and(|it| it.ends_with(" smp"));
    let most = if has_several { KEEP_SMP_S } else { KEEP_S };
    ensure(spent < most, || {
        format!("KEEP used {spent:.2} s of the processor beside waiters, of 3 s")
    })?;
    let kills: u32 = said.trim().parse().map_err(|e| format!("{e}: {said}"))?;
    ensure(kills > 10, || format!("{kills} were killed in 3 s"))?;
    let stat = exec::run(
        &mut crate::node::ring3(["stat", &node.name, "--json"]),
        crate::node::SHORT,
    )?;
    let value: Value = serde_json::from_str(&stat.stdout).map_err(|e| format!("{e}: {stat:?}"))?;
    let late = value["late"].as_u64().ok_or("no count")?;
    ensure(late == 0, || {
        format!("{late} wake-ups were lost, {kills} were killed")
    })?;
    Ok(Verdict::Passed)
}

/// The node's own process killed: its programs get an error, the name is free again.
fn keeper() -> Checked {
    let node = Node::up(&[])?;
    let wait = helper("wait")?;
    let waiter = Talker::start(node.command([&wait]))?;
    waiter.expect("waiting")?;
    kill_keeper(&node)?;
    let said = waiter.line(Duration::from_secs(2));
    ensure(
        said.as_deref().is_none_or(|text| text.starts_with('E')),
        || format!("said {said:?}"),
    )?;
    let mut waiter = waiter;
    ensure(
        said.is_some() || waiter.group.wait(Duration::from_secs(1)).is_some(),
        || "a program of the dead node still sleeps in recv() after three seconds".into(),
    )?;
    let start = Instant::now();
    let outcome = node.exec(&["true"])?;
    ensure(
        !outcome.ok() && start.elapsed() < exec::patience(Duration::from_secs(2)),
        || outcome.report(),
    )?;
    let again = exec::run(
        &mut crate::node::ring3(["up", &node.name]),
        crate::node::SHORT,
    )?;
    ensure(again.ok(), || {
        format!("the name is not free: {}", again.report())
    })?;
    Ok(Verdict::Passed)
}

/// A node is killed that has a link: the node at the other end loses its carrier, and works on.
fn link_peer() -> Checked {
    let pair = Pair::new(Topology::Link)?;
    let (Place::Node(killed), Place::Node(node)) = (&pair.server, &pair.client) else {
        return Err("not nodes".into());
    };
    let file = format!("/sys/class/net/{}/carrier", pair.interface);
    ensure(node.output(&["cat", &file])?.trim() == "1", || {
        "no carrier at the beginning".into()
    })?;
    kill_keeper(killed)?;
    // It is looked for once a second.
    let gone = until(Duration::from_secs(10), || {
        node.output(&["cat", &file])
            .is_ok_and(|text| text.trim() == "0")
    });
    ensure(gone, || {
        "ten seconds after the far side's death its carrier is still there".into()
    })?;
    works(node)?;
    Ok(Verdict::Passed)
}
