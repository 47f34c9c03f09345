// SPDX-License-Identifier: GPL-2.0
//! What the host may do to a node: the outcomes that docs/security.md promises.

use super::topology::{Pair, Place, Topology};
use super::{Checked, Verdict, ensure, helper, trial};
use crate::exec::{self, until};
use crate::node::{self, Node, SHORT};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Command;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("fault_stopped".into(), stopped),
        trial("fault_tap_removed".into(), tap_removed),
        trial("fault_no_descriptors".into(), no_descriptors),
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
