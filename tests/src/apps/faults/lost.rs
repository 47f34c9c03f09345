// SPDX-License-Identifier: GPL-2.0
//! Things of the host that a node uses go: a device, passt, its folder, descriptors.

use super::{process, signal_all, stat};
use crate::apps::topology::{Pair, Place, Topology};
use crate::apps::{Checked, Verdict, ensure, missing};
use crate::exec::{self, until};
use crate::node::{self, Node, SHORT};
use crate::scratch::{self, Scratch};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// The TAP goes away under traffic: no carrier, a line in the log, and the node lives.
pub fn tap_removed() -> Checked {
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
pub fn no_descriptors() -> Checked {
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

/// passt is killed: no carrier, a line in the log, and the node lives.
pub fn passt_killed() -> Checked {
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
pub fn folder_removed() -> Checked {
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
