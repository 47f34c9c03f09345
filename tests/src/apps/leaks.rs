// SPDX-License-Identifier: GPL-2.0
//! Nodes that are gone leave nothing behind.
//!
//! Other nodes may come and go beside this test, so it marks its own by a variable
//! in their environment, and by their names.

use super::topology::Topology;
use super::{Verdict, ensure, trial};
use crate::exec::{self, End};
use crate::node::{SHORT, ring3};
use crate::paths;
use crate::scratch;
use libtest_mimic::Trial;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const MARK: &str = "RING3_TEST_MARK";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("leaks_300_runs".into(), || {
            repeat(300, &[], &["true"], End::Exit(0))
        }),
        trial("leaks_killed_programs".into(), || {
            repeat(20, &[], &["sh", "-c", "kill -9 $$"], End::Exit(137))
        }),
        trial("leaks_link_runs".into(), || {
            repeat(30, &["link:{},addr=10.5.0.1/24"], &["true"], End::Exit(0))
        }),
        trial("leaks_tap_runs".into(), || {
            if let Some(why) = Topology::TapServer.obstacle() {
                return Ok(Verdict::Ignored(why));
            }
            repeat(
                20,
                &["tap:{},addr=10.189.0.2/24,host=10.189.0.1/24"],
                &["true"],
                End::Exit(0),
            )
        }),
        trial("leaks_killed_command".into(), killed_command),
        trial("leaks_up_down".into(), up_down),
    ]
}

/// Processes with our mark in their environment.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(environ) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        if environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.push(format!("process {:?} {line}", entry.file_name()));
        }
    }
    found
}

/// Files of these folders, by path, whose path holds the text.
fn files(folder: &Path, text: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.to_string_lossy().contains(text) {
            found.push(path.display().to_string());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files(&path, text, found);
        }
    }
}

/// Whatever there is that has to do with the mark or the name.
fn left(mark: &str, name: &str) -> Vec<String> {
    let mut found = marked(mark);
    for folder in [paths::runtime().as_path(), Path::new("/dev/shm")] {
        files(folder, name, &mut found);
    }
    for (what, file) in [("mount", "/proc/mounts"), ("interface", "/proc/net/dev")] {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        found.extend(
            text.lines()
                .filter(|line| line.contains(name))
                .map(|line| format!("{what} {line}")),
        );
    }
    found
}

/// Nothing may be left, a moment later.
fn nothing_left(mark: &str, name: &str) -> Result<(), String> {
    let mut found = Vec::new();
    exec::until(Duration::from_secs(3), || {
        found = left(mark, name);
        found.is_empty()
    });
    ensure(found.is_empty(), || {
        format!("left behind:\n{}", found.join("\n"))
    })
}

fn repeat(times: u32, ports: &[&str], argv: &[&str], wanted: End) -> super::Checked {
    let name = scratch::unique("lk");
    let before: BTreeSet<String> = left(&name, &name).into_iter().collect();
    ensure(before.is_empty(), || format!("there before: {before:?}"))?;
    for turn in 0..times {
        let mut command = ring3(["run", "--node", &format!("{name}-{turn}")]);
        for port in ports {
            command.args(["--port", &port.replace("{}", &name)]);
        }
        command.arg("--").args(argv).env(MARK, &name);
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(outcome.end == wanted, || {
            format!("run {turn}: {}", outcome.report())
        })?;
    }
    nothing_left(&name, &name)?;
    Ok(Verdict::Passed)
}

/// `ring3 run` itself killed: its node and its program go with it.
fn killed_command() -> super::Checked {
    let name = scratch::unique("lk");
    for turn in 0..5 {
        let mut command = ring3([
            "run",
            "--node",
            &format!("{name}-{turn}"),
            "--",
            "sleep",
            "100",
        ]);
        command.env(MARK, &name);
        let mut group = crate::node::background(&mut command)?;
        std::thread::sleep(Duration::from_millis(50 + 100 * turn));
        group.child().kill().map_err(|e| format!("kill: {e}"))?;
        group.wait(Duration::from_secs(2));
        // Not the group's end: that would hide what the command left.
        let mut found = Vec::new();
        exec::until(Duration::from_secs(4), || {
            found = marked(&name);
            found.is_empty()
        });
        ensure(found.is_empty(), || {
            format!("`ring3 run` was killed, but: {}", found.join("\n"))
        })?;
    }
    // The next of that name must not stumble over what is left of the folder.
    for turn in 0..5 {
        let mut command = ring3(["run", "--node", &format!("{name}-{turn}"), "--", "true"]);
        command.env(MARK, &name);
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(outcome.ok(), || outcome.report())?;
    }
    nothing_left(&name, &name)?;
    Ok(Verdict::Passed)
}

fn up_down() -> super::Checked {
    let name = scratch::unique("lk");
    for _ in 0..20 {
        let port = format!("link:{name},addr=10.6.0.1/24");
        let mut command = ring3(["up", &name, "--port", &port]);
        command.env(MARK, &name);
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(outcome.ok(), || outcome.report())?;
        let outcome = exec::run(&mut ring3(["down", &name]), SHORT)?;
        ensure(outcome.ok(), || outcome.report())?;
    }
    nothing_left(&name, &name)?;
    Ok(Verdict::Passed)
}
