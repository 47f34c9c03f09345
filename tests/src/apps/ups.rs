// SPDX-License-Identifier: GPL-2.0
//! Nodes with programs of their own, which are started again; and nodes in the hands of a person at a terminal.

use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, End, Group, until};
use crate::node::{Node, SHORT, ring3};
use crate::paths;
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("up_restart".into(), restart),
        trial("up_foreground".into(), foreground),
        trial("up_interrupted".into(), interrupted),
        trial("up_stopped".into(), stopped),
        trial("run_suspended".into(), suspended),
    ]
}

fn lasting() -> String {
    let script = paths::root().join("tests/apps/lasting.py");
    script.to_string_lossy().into_owned()
}

/// The keeper of a node that is up, and its programs.
fn stat(name: &str) -> Option<(i64, Vec<i64>)> {
    let stat = exec::run(&mut ring3(["stat", name, "--json"]), SHORT).ok()?;
    let stat: Value = serde_json::from_str(&stat.stdout).ok()?;
    let programs = stat["procs"].as_array()?;
    let programs = programs.iter().filter_map(|it| it["pid"].as_i64());
    (stat["state"] == "up").then_some((stat["pid"].as_i64()?, programs.collect()))
}

fn kill(pid: i64, signal: Signal) -> Result<(), String> {
    let pid = Pid::from_raw(pid as i32).ok_or("pid 0")?;
    kill_process(pid, signal).map_err(|e| format!("{signal:?}: {e}"))
}

/// A zombie is not: who inherits orphans may take a while to bury it.
fn is_there(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !(state.is_empty() || state.starts_with(['Z', 'X']))
}

/// A program that is killed comes back; so does the node, with its program, when its keeper is killed and when
/// it is poisoned. `down` is for good.
fn restart() -> Checked {
    let lasting = lasting();
    let options = [
        "--restart",
        "--grace",
        "1",
        "--",
        "python3",
        &lasting,
        "sleeps",
    ];
    let node = Node::up_with(options)?;
    let now = || stat(&node.name).filter(|(_, programs)| programs.len() == 1);
    let mut seen = None;
    let mut changed = |what: &str| -> Result<(i64, i64), String> {
        let mut found = None;
        let came = until(SHORT, || {
            found = now().map(|(keeper, programs)| (keeper, programs[0]));
            found.is_some() && found != seen
        });
        ensure(came, || format!("{what}: {seen:?}, and then {found:?}"))?;
        seen = found;
        found.ok_or_else(|| "gone".into())
    };
    let (first, program) = changed("start")?;
    kill(program, Signal::KILL)?;
    let (keeper, program) = changed("the program was killed")?;
    ensure(keeper == first, || "another keeper".into())?;
    kill(keeper, Signal::KILL)?;
    let (second, _) = changed("the keeper was killed")?;
    ensure(second != first && !is_there(program), || {
        format!("keeper {second}; is the old program {program} still there?")
    })?;
    let poison = helper("poison")?;
    node.exec(&[&poison.to_string_lossy()])?;
    let (third, program) = changed("the node was poisoned")?;
    ensure(third != second, || "the keeper has stayed".into())?;
    let down = node.down()?;
    ensure(down.ok(), || down.report())?;
    std::thread::sleep(Duration::from_millis(500));
    ensure(stat(&node.name).is_none() && !is_there(program), || {
        "it came up again after `down`".into()
    })?;
    Ok(Verdict::Passed)
}

/// The process that was called keeps the node: SIGTERM takes it down, and it fails with its node.
fn foreground() -> Checked {
    let lasting = lasting();
    let start = || -> Result<(Node, Group, i64), String> {
        let node = Node {
            name: scratch::unique("t"),
        };
        let options = [
            "--foreground",
            "--grace",
            "1",
            "--",
            "python3",
            &lasting,
            "deaf",
        ];
        let mut command = ring3(["up", &node.name]);
        command
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(Stdio::null());
        let mut group = Group::spawn(&mut command)?;
        let mut program = None;
        until(SHORT, || {
            program = stat(&node.name).and_then(|(_, programs)| programs.first().copied());
            program.is_some()
        });
        let pid = i64::from(group.child().id());
        let found = stat(&node.name).map(|(keeper, _)| keeper);
        ensure(found == Some(pid), || {
            format!("its keeper is {found:?}, not {pid}")
        })?;
        Ok((node, group, program.ok_or("it has no program")?))
    };
    let (_node, mut group, program) = start()?;
    std::thread::sleep(Duration::from_millis(300));
    kill(i64::from(group.child().id()), Signal::TERM)?;
    let end = group.wait(SHORT);
    ensure(end == Some(End::Exit(0)), || {
        format!("after SIGTERM: {end:?}")
    })?;
    ensure(!is_there(program), || "its program is still there".into())?;
    let (node, mut group, _) = start()?;
    let poison = helper("poison")?;
    node.exec(&[&poison.to_string_lossy()])?;
    let end = group.wait(SHORT);
    ensure(end == Some(End::Exit(1)), || format!("poisoned: {end:?}"))?;
    Ok(Verdict::Passed)
}

/// Ctrl-C of a `ring3 up` whose node takes its time: there is no node then.
fn interrupted() -> Checked {
    let folder = Scratch::in_memory()?;
    let fake = folder.file("passt");
    std::fs::write(&fake, "#!/bin/sh\nexec cat >/dev/null\n").map_err(|e| e.to_string())?;
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755))
        .map_err(|e| e.to_string())?;
    let path = std::env::var("PATH").unwrap_or_default();
    let node = Node {
        name: scratch::unique("t"),
    };
    let mut command = ring3(["up", &node.name, "--port", "passt"]);
    command.env("PATH", format!("{}:{path}", folder.path().display()));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut group = Group::spawn(&mut command)?;
    let listed =
        || exec::run(&mut ring3(["ls"]), SHORT).is_ok_and(|out| out.stdout.contains(&node.name));
    ensure(until(Duration::from_secs(4), listed), || {
        "it does not start".into()
    })?;
    kill(i64::from(group.child().id()), Signal::INT)?;
    group.wait(SHORT);
    let start = Instant::now();
    let gone = until(Duration::from_secs(3), || !listed());
    ensure(gone, || "the node comes up all the same".into())?;
    ensure(start.elapsed() < Duration::from_secs(3), || "late".into())?;
    Ok(Verdict::Passed)
}

/// The keeper is stopped: `ls` says so at once and what to do, `exec` says so and waits, and `down` ends the node.
fn stopped() -> Checked {
    let node = Node::up(&[])?;
    let (keeper, _) = stat(&node.name).ok_or("it is not up")?;
    stop(keeper)?;
    let start = Instant::now();
    let ls = exec::run(&mut ring3(["ls"]), SHORT)?;
    let took = start.elapsed();
    waits_for_stopped(&node, keeper)?;
    let line = ls.stdout.lines().find(|line| line.contains(&node.name));
    let says = line.is_some_and(|line| line.contains(&format!("kill -CONT {keeper}")));
    let down = node.down()?;
    let _ = kill(keeper, Signal::CONT);
    ensure(says, || ls.report())?;
    ensure(took < exec::patience(Duration::from_secs(1)), || {
        format!("it took {took:?}")
    })?;
    ensure(down.ok() && !is_there(keeper), || down.report())?;
    Ok(Verdict::Passed)
}

/// Stops a process, and returns when it is stopped.
fn stop(pid: i64) -> Result<(), String> {
    kill(pid, Signal::STOP)?;
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('T')
    };
    ensure(until(SHORT, is_stopped), || format!("{pid} does not stop"))
}

/// A program that is to join tells who is stopped, and starts when the keeper goes on.
fn waits_for_stopped(node: &Node, keeper: i64) -> Result<(), String> {
    let folder = Scratch::in_memory()?;
    let said = folder.file("said");
    let file = std::fs::File::create(&said).map_err(|e| e.to_string())?;
    let mut command = ring3(["exec", &node.name, "--", "true"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let mut group = Group::spawn(&mut command)?;
    let remedy = format!("kill -CONT {keeper}");
    let says = || std::fs::read_to_string(&said).is_ok_and(|text| text.contains(&remedy));
    let told = until(SHORT, says);
    kill(keeper, Signal::CONT)?;
    let end = group.wait(SHORT);
    stop(keeper)?;
    ensure(told && end == Some(End::Exit(0)), || {
        format!("told: {told}, then {end:?}")
    })
}

/// `suspend` in `ring3 run -- bash`: the shell outside has the terminal, and can fetch it back.
fn suspended() -> Checked {
    let mut command = Command::new("python3");
    command.arg(paths::root().join("tests/apps/suspend.py"));
    command.arg(paths::ring3());
    let outcome = exec::run(&mut command, Duration::from_secs(60))?;
    ensure(outcome.ok() && outcome.stdout == "well\n", || {
        outcome.report()
    })?;
    Ok(Verdict::Passed)
}
