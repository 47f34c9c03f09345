// SPDX-License-Identifier: GPL-2.0
//! Debuggers on a node that traces its programs itself, since it must survive when one is killed (adopt_trace.c of the
//! image): the place of the tracer is theirs when they want it, and the node takes it back.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Group, until};
use crate::node::{Node, SHORT, ring3};
use crate::paths;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("debug_outside".into(), outside),
        trial("debug_inside".into(), inside),
        trial("debug_refused".into(), refused),
        trial("debug_next_adopter".into(), next_adopter),
        trial("debug_killed".into(), killed),
        trial("debug_headless".into(), headless),
    ]
}

const SOON: Duration = Duration::from_secs(5);

struct Program {
    pid: String,
    _group: Group,
}

impl Program {
    fn start(node: &Node, how: &str) -> Result<Program, String> {
        let script = paths::root().join("tests/apps/lasting.py");
        let mut command = node.command(["python3".as_ref(), script.as_os_str(), how.as_ref()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut group = Group::spawn(&mut command)?;
        let out = group.child().stdout.take().ok_or("no pipe")?;
        let mut pid = String::new();
        BufReader::new(out)
            .read_line(&mut pid)
            .map_err(|e| e.to_string())?;
        let pid = pid.trim().to_owned();
        Ok(Program { pid, _group: group })
    }

    /// The process that traces it; none: "0".
    fn tracer_pid(&self) -> String {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:\t"))
            .unwrap_or("0")
            .to_owned()
    }

    /// Its name; none: "".
    fn tracer(&self) -> String {
        let pid = self.tracer_pid();
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    fn is_traced(&self) -> Checked {
        ensure(until(SOON, || self.tracer() == "ring3-adopt"), || {
            format!("'{}' traces the program, not the adopter", self.tracer())
        })?;
        Ok(Verdict::Passed)
    }
}

/// What attaches, looks and detaches.
fn attach(pid: &str) -> [&str; 6] {
    ["gdb", "-batch", "-p", pid, "-ex", "info registers rip"]
}

fn outside() -> Checked {
    if let Some(why) = missing(&["gdb", "python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_adopted("trace", [])?;
    let program = Program::start(&node, "receives")?;
    program.is_traced()?;

    let words = attach(&program.pid);
    let refused = exec::run(Command::new(words[0]).args(&words[1..]), SHORT)?;
    ensure(refused.stderr.contains("not permitted"), || {
        format!("without `ring3 debug': {}", refused.report())
    })?;
    for _ in 0..3 {
        let let_in = exec::run(ring3(["debug", &program.pid, "--"]).args(words), SHORT)?;
        ensure(let_in.ok() && let_in.stdout.contains("rip"), || {
            let_in.report()
        })?;
        program.is_traced()?;
    }
    // It has the place for as long as it runs, and its status is ours.
    let mut busy = ring3(["debug", &program.pid, "--", "sh", "-c", "sleep 1; exit 7"]);
    let mut busy = Group::spawn(busy.stdout(Stdio::null()))?;
    ensure(until(SOON, || program.tracer().is_empty()), || {
        "the adopter does not let go".into()
    })?;
    std::thread::sleep(Duration::from_millis(300));
    ensure(program.tracer().is_empty(), || {
        "the adopter came back early".into()
    })?;
    let end = busy.wait(SOON);
    ensure(end == Some(exec::End::Exit(7)), || format!("{end:?}"))?;
    program.is_traced()?;
    let nobody = exec::run(&mut ring3(["debug", "1", "--", "true"]), SHORT)?;
    ensure(nobody.stderr.contains("no program"), || nobody.report())?;
    Ok(Verdict::Passed)
}

fn inside() -> Checked {
    if let Some(why) = missing(&["gdb", "strace", "python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_adopted("trace", [])?;
    let program = Program::start(&node, "receives")?;
    for _ in 0..3 {
        program.is_traced()?;
        let looked = node.exec(&attach(&program.pid))?;
        ensure(looked.ok() && looked.stdout.contains("rip"), || {
            looked.report()
        })?;
    }
    program.is_traced()?;
    // A child that asks to be traced is old enough for the adopter to have it.
    let late = "import ctypes, os, time\n\
        pid = os.fork()\n\
        if not pid:\n\
        \ttime.sleep(0.5)\n\
        \tos._exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) and 1)\n\
        print(os.waitpid(pid, 0)[1], flush=True)";
    let said = node.output(&["python3", "-c", late])?;
    ensure(said == "0\n", || {
        format!("PTRACE_TRACEME is refused: {said}")
    })?;
    let tree =
        "for i in 1 2 3; do (sleep 0.1; cat /proc/net/tcp >/dev/null) & done; wait; echo all";
    let traced = node.exec(&["strace", "-f", "-o", "/dev/null", "sh", "-c", tree])?;
    ensure(traced.ok() && traced.stdout == "all\n", || traced.report())?;
    let run = node.exec(&[
        "gdb",
        "-batch",
        "-ex",
        "run",
        "--args",
        "cat",
        "/proc/net/tcp",
    ])?;
    ensure(run.stdout.contains("exited normally"), || run.report())?;
    program.is_traced()
}

/// An adopter that was killed has a successor, which traces the programs of before.
fn next_adopter() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_adopted("trace", [])?;
    let program = Program::start(&node, "receives")?;
    program.is_traced()?;
    let killed = program.tracer_pid();
    let pid = killed
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .ok_or("no tracer")?;
    kill_process(pid, Signal::KILL).map_err(|e| e.to_string())?;
    ensure(until(SOON, || program.tracer_pid() != killed), || {
        "it traces on".into()
    })?;
    program.is_traced()
}

/// A debugger is killed while it waits for the adopter to let go of its program: the adopter takes that back.
fn killed() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_adopted("trace", [])?;
    let program = Program::start(&node, "receives")?;
    program.is_traced()?;
    let seize = "import ctypes, sys\n\
        print('now', flush=True)\n\
        ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None)";
    let adopter = program.tracer_pid().parse().ok().and_then(Pid::from_raw);
    let adopter = adopter.ok_or("no tracer")?;
    kill_process(adopter, Signal::STOP).map_err(|e| e.to_string())?;
    let mut debugger = node.command(["python3", "-c", seize, &program.pid]);
    let mut debugger = Group::spawn(debugger.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let out = debugger.child().stdout.take().ok_or("no pipe")?;
    BufReader::new(out)
        .read_line(&mut String::new())
        .map_err(|e| e.to_string())?;
    // It waits for a second.
    std::thread::sleep(Duration::from_millis(300));
    debugger.kill();
    drop(debugger);
    kill_process(adopter, Signal::CONT).map_err(|e| e.to_string())?;
    std::thread::sleep(Duration::from_millis(1500));
    program.is_traced()
}

/// The first thread has ended, the others have not: the place for a debugger is given up at once.
fn headless() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_adopted("trace", [])?;
    let program = Program::start(&node, "headless")?;
    let state = || {
        let stat = format!("/proc/{}/stat", program.pid);
        std::fs::read_to_string(stat).unwrap_or_default()
    };
    ensure(until(SOON, || state().contains(") Z ")), || {
        format!("the first thread has not ended: {}", state())
    })?;
    let debugged = exec::run(&mut ring3(["debug", &program.pid, "--", "true"]), SHORT)?;
    ensure(debugged.ok(), || debugged.report())?;
    Ok(Verdict::Passed)
}

/// A program that nobody may trace runs, and the keeper says what that means.
fn refused() -> Checked {
    if rustix::process::geteuid().is_root() {
        return super::ordinary::as_nobody("apps::debug_refused");
    }
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = Node::up_adopted("trace", [])?;
    // The adopter may have the first thread already.
    let hide = "import ctypes, os, threading, time\n\
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
        threading.Thread(target=time.sleep, args=(2,)).start()\n\
        print(os.getpid(), flush=True); time.sleep(2)";
    let pid = node.output(&["python3", "-c", hide])?;
    let log = paths::runtime().join(format!("{}.log", node.name));
    let said = std::fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let wanted = format!(
        "process {} is killed in kernel code, the node fails: the host refuses",
        pid.trim()
    );
    ensure(said.contains(&wanted), || format!("no word of it: {said}"))?;
    Ok(Verdict::Passed)
}
