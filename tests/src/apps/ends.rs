// SPDX-License-Identifier: GPL-2.0
//! A node's end is its programs' end, however it comes: `down`, a node that failed, a keeper that was killed.

use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, Group, until};
use crate::node::{Node, SHORT, ring3};
use crate::paths;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("end_down".into(), down),
        trial("end_poisoned".into(), || {
            without_down("a test said so", |node| {
                let poison = helper("poison")?;
                // It may be the first to end of it.
                node.exec(&[&poison.to_string_lossy()]).map(drop)
            })
        }),
        trial("end_remembered".into(), || {
            let poison = helper("poison")?;
            remembered("a test said so", |node| {
                node.exec(&[&poison.to_string_lossy()]).map(drop)
            })
        }),
        trial("end_remembered_killed".into(), || {
            remembered("the node's keeper", |node| {
                kill_process(keeper(node)?, Signal::KILL).map_err(|e| e.to_string())
            })
        }),
        trial("end_keeper_killed".into(), || {
            without_down("the node's keeper", |node| {
                kill_process(keeper(node)?, Signal::KILL).map_err(|e| e.to_string())
            })
        }),
        trial("end_by_itself".into(), by_itself),
        trial("end_leaves_others".into(), leaves_others),
        trial("end_many".into(), many),
    ]
}

/// The grace that these nodes have.
const GRACE: Duration = Duration::from_secs(1);
/// Additional time on a busy machine.
const SLACK: Duration = Duration::from_secs(4);

fn node() -> Result<Node, String> {
    Node::up_with(["--grace", "1"])
}

fn keeper(node: &Node) -> Result<Pid, String> {
    let stat = exec::run(&mut ring3(["stat", &node.name, "--json"]), SHORT)?;
    let stat: serde_json::Value =
        serde_json::from_str(&stat.stdout).map_err(|e| format!("{e}: {}", stat.report()))?;
    let pid = stat["pid"].as_i64().ok_or("no keeper")?;
    Pid::from_raw(pid as i32).ok_or_else(|| "pid 0".into())
}

/// A program that lasts, and what it says to standard error.
struct Lasting {
    how: &'static str,
    pid: Pid,
    group: Group,
}

impl Lasting {
    fn start(node: &Node, how: &'static str) -> Result<Lasting, String> {
        let script = paths::root().join("tests/apps/lasting.py");
        let mut command = node.command(["python3".as_ref(), script.as_os_str(), how.as_ref()]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::spawn(&mut command)?;
        let out = group.child().stdout.take().ok_or("no pipe")?;
        let mut line = String::new();
        BufReader::new(out)
            .read_line(&mut line)
            .map_err(|e| e.to_string())?;
        let pid = line.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| format!("{how} does not start: {line}"))?;
        Ok(Lasting { how, pid, group })
    }

    /// Its output before it ended.
    fn said(&mut self) -> Result<String, String> {
        let mut said = String::new();
        let err = self.group.child().stderr.take().ok_or("no pipe")?;
        let mut err = BufReader::new(err);
        err.read_to_string(&mut said).map_err(|e| e.to_string())?;
        Ok(said)
    }
}

fn all(node: &Node) -> Result<Vec<Lasting>, String> {
    let mut hows = vec!["sleeps", "receives", "stopped", "deaf", "spins", "waits"];
    if rustix::process::geteuid().is_root() {
        hows.push("other");
    }
    let programs: Vec<Lasting> = hows
        .into_iter()
        .map(|how| Lasting::start(node, how))
        .collect::<Result<_, _>>()?;
    // In its pipe, where no node's lock is held.
    std::thread::sleep(Duration::from_millis(200));
    for program in programs.iter().filter(|it| it.how == "stopped") {
        kill_process(program.pid, Signal::STOP).map_err(|e| e.to_string())?;
    }
    Ok(programs)
}

/// All end: those that hear SIGTERM before the grace is over, the rest after it.
fn end(programs: &mut [Lasting], since: Instant, slack: Duration) -> Result<(), String> {
    for program in programs {
        let is_deaf = ["deaf", "spins", "waits"].contains(&program.how);
        let left = (GRACE + slack).saturating_sub(since.elapsed());
        let end = program.group.wait(left);
        let wanted = match is_deaf {
            true => exec::End::Signal(9),
            false => exec::End::Signal(15),
        };
        ensure(end == Some(wanted), || {
            format!("{}: {end:?}, not {wanted}", program.how)
        })?;
        ensure(!is_deaf || since.elapsed() > GRACE / 2, || {
            format!("{}: no grace", program.how)
        })?;
    }
    Ok(())
}

/// Nothing has the node's memory any more.
fn is_unmapped(node: &Node) -> bool {
    let name = format!("memfd:ring3:{} ", node.name);
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    !processes
        .flatten()
        .filter_map(|process| std::fs::read_to_string(process.path().join("maps")).ok())
        .any(|maps| maps.lines().any(|line| line.contains(&name)))
}

fn down() -> Checked {
    let node = node()?;
    let keeper = keeper(&node)?;
    ensure(!is_unmapped(&node), || {
        "the node's memory has another name: this test sees nothing".into()
    })?;
    let mut programs = all(&node)?;
    let start = Instant::now();
    let outcome = node.down()?;
    ensure(outcome.ok() && outcome.stderr.is_empty(), || {
        outcome.report()
    })?;
    let left: Vec<&str> = programs
        .iter()
        .filter(|it| !is_over(it.pid))
        .map(|it| it.how)
        .collect();
    ensure(left.is_empty(), || {
        format!("`down` is back before these have ended: {left:?}")
    })?;
    ensure(is_over(keeper), || {
        "`down` is back before the keeper has ended".into()
    })?;
    ensure(is_unmapped(&node), || {
        "the node's memory is still mapped".into()
    })?;
    end(&mut programs, start, SLACK)?;
    Ok(Verdict::Passed)
}

/// A process that nobody has waited for yet is over, too.
fn is_over(pid: Pid) -> bool {
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    std::fs::read_to_string(stat).map_or(true, |stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
    })
}

/// The node ends without a word to its keeper: all programs do too, and each says why.
fn without_down(why: &str, cause: impl FnOnce(&Node) -> Result<(), String>) -> Checked {
    let node = node()?;
    let mut programs = all(&node)?;
    cause(&node)?;
    end(&mut programs, Instant::now(), SLACK)?;
    for program in &mut programs {
        let said = program.said()?;
        let lines: Vec<&str> = said.lines().collect();
        // One that ignores SIGTERM and makes no call on the node has nothing to say it with.
        let is_mute = program.how == "deaf" && lines.is_empty();
        ensure(
            is_mute
                || matches!(lines[..], [line] if line.starts_with("ring3: node ") && line.contains(why)),
            || format!("{} said: {said}", program.how),
        )?;
    }
    // The undertaker goes last.
    ensure(
        until(SLACK, || is_unmapped(&node)) || keeper(&node).is_ok(),
        || "the node's memory is still mapped".into(),
    )?;
    Ok(Verdict::Passed)
}

/// A poisoned node goes by itself, keeper and all. What became of it is told until its name is used again or forgotten.
fn remembered(why: &str, end: impl Fn(&Node) -> Result<(), String>) -> Checked {
    let node = node()?;
    let log = paths::runtime().join(format!("{}.log", node.name));
    let fail = || -> Result<(), String> {
        let keeper = keeper(&node)?;
        end(&node)?;
        // The undertaker of one that was killed leaves its word once all programs have ended.
        let is_told = || {
            exec::run(&mut ring3(["ls"]), SHORT).is_ok_and(|ls| {
                ls.stdout
                    .lines()
                    .any(|line| line.contains(&node.name) && line.contains("poisoned"))
            })
        };
        ensure(until(GRACE + SLACK, is_told), || {
            "`ls` does not tell of it".into()
        })?;
        ensure(until(GRACE + SLACK, || is_over(keeper)), || {
            "the keeper of a poisoned node stays".into()
        })
    };
    let says = |verb: &[&str], words: &[&str]| -> Result<(), String> {
        let outcome = exec::run(&mut ring3(verb.iter().copied()), SHORT)?;
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        ensure(words.iter().all(|word| said.contains(word)), || {
            format!("{verb:?}: {}", outcome.report())
        })
    };
    fail()?;
    let name = node.name.as_str();
    let told = format!("s ago: {why}");
    let words = [told.as_str()];
    says(&["ls"], &[name, "poisoned", words[0]])?;
    says(&["stat", name], &["poisoned", words[0]])?;
    says(&["ls", "--json"], &["\"ended_s\"", why])?;
    let start = Instant::now();
    says(&["wait", "--timeout", "60", name], &words)?;
    ensure(start.elapsed() < Duration::from_secs(10), || {
        format!("wait took {:?}", start.elapsed())
    })?;
    ensure(log.exists(), || format!("{}: gone", log.display()))?;
    says(&["exec", name, "--", "true"], &words)?;
    says(&["log", name], &words)?;
    let mut up = ring3(["up", name, "--grace", "1"]);
    let outcome = exec::run(&mut up, SHORT)?;
    ensure(outcome.ok(), || {
        format!("its name is taken: {}", outcome.report())
    })?;
    says(&["stat", name], &["state      up"])?;
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    ensure(!said.contains(why), || {
        format!("the log has the words of the node before: {said}")
    })?;
    fail()?;
    let outcome = node.down()?;
    ensure(outcome.ok(), || outcome.report())?;
    says(&["exec", name, "--", "true"], &["no node named"])?;
    ensure(!log.exists(), || format!("{} is left", log.display()))?;
    Ok(Verdict::Passed)
}

/// Neither keeper nor undertaker is left: a program that makes calls ends by its own gate.
fn by_itself() -> Checked {
    let node = node()?;
    let keeper = keeper(&node)?;
    let mut programs = vec![
        Lasting::start(&node, "spins")?,
        Lasting::start(&node, "waits")?,
        Lasting::start(&node, "receives")?,
    ];
    let children = format!("/proc/{0}/task/{0}/children", keeper.as_raw_nonzero());
    let threads = format!("/proc/{}/task", keeper.as_raw_nonzero());
    let mut undertakers: Vec<i32> = Vec::new();
    for thread in std::fs::read_dir(threads).map_err(|e| format!("{children}: {e}"))? {
        let path = thread.map_err(|e| e.to_string())?.path().join("children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        undertakers.extend(
            text.split_whitespace()
                .filter_map(|it| it.parse::<i32>().ok())
                // The adopter is another child, and ends with the keeper.
                .filter(|pid| {
                    std::fs::read_to_string(format!("/proc/{pid}/comm"))
                        .is_ok_and(|comm| comm.trim() != "ring3-adopt")
                }),
        );
    }
    ensure(undertakers.len() == 1, || {
        format!("children of the keeper: {undertakers:?}")
    })?;
    let undertaker = Pid::from_raw(undertakers[0]).ok_or("pid 0")?;
    // The keeper can't start another, nor say anything, when it is dead.
    for pid in [undertaker, keeper] {
        kill_process(pid, Signal::KILL).map_err(|e| e.to_string())?;
    }
    // A thread that sleeps in the kernel checks for its keeper once a second.
    end(
        &mut programs,
        Instant::now(),
        SLACK + Duration::from_secs(2),
    )?;
    Ok(Verdict::Passed)
}

/// Programs of another node, and of none, are left alone.
/// 3,000 processes and 1,500 threads that use the node at once; then all processes are killed, and the node lets go
/// of them. A call of each process shows that the node has it.
const MANY: &str = "
import os, signal, socket, sys, threading
report, child = socket.socketpair()
pids = []
for _ in range(3000):
    pid = os.fork()
    if pid == 0:
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.bind(('127.0.0.1', 0))
        child.send(b'.')
        signal.pause()
    pids.append(pid)
came = 0
while came < len(pids):
    came += len(report.recv(4096))
for pid in pids:
    os.kill(pid, signal.SIGKILL)
for pid in pids:
    os.waitpid(pid, 0)
threading.stack_size(65536)
lock, bound = threading.Lock(), []
def thread():
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(('127.0.0.1', 0))
    with lock:
        bound.append(own.getsockname())
        if len(bound) == 1500:
            child.send(b'!')
    own.recv(1)
for _ in range(1500):
    threading.Thread(target=thread, daemon=True).start()
report.recv(1)
print(came, len(bound), flush=True)
os._exit(0)
";

fn many() -> Checked {
    let node = Node::up_with(["--mem", "512M"])?;
    let mut command = node.command(["python3", "-c", MANY]);
    let outcome = exec::run(&mut command, Duration::from_secs(120))?;
    ensure(outcome.ok() && outcome.stdout.trim() == "3000 1500", || {
        outcome.report()
    })?;
    let empty = || {
        let stat = exec::run(&mut ring3(["stat", &node.name, "--json"]), SHORT).ok()?;
        let stat: serde_json::Value = serde_json::from_str(&stat.stdout).ok()?;
        Some(stat["procs"].as_array()?.is_empty())
    };
    let gone = until(Duration::from_secs(20), || empty() == Some(true));
    ensure(gone, || "the node still has processes".into())?;
    Ok(Verdict::Passed)
}

fn leaves_others() -> Checked {
    let node = node()?;
    let other = Node::up(&[])?;
    let mut theirs = Lasting::start(&other, "sleeps")?;
    let mut host = Group::spawn(std::process::Command::new("sleep").arg("100"))?;
    let mut ours = vec![Lasting::start(&node, "sleeps")?];
    kill_process(keeper(&node)?, Signal::KILL).map_err(|e| e.to_string())?;
    end(&mut ours, Instant::now(), SLACK)?;
    for group in [&mut theirs.group, &mut host] {
        let end = group.wait(Duration::from_millis(300));
        ensure(end.is_none(), || {
            format!("a process that is not the node's: {end:?}")
        })?;
    }
    ensure(test_kill_process(theirs.pid).is_ok(), || "gone".into())?;
    Ok(Verdict::Passed)
}
