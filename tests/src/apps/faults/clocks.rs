// SPDX-License-Identifier: GPL-2.0
//! Time stands still for all processes of a node, or the host's clock is set.

use super::{process, signal_all, stat};
use crate::apps::topology::{Pair, Place, Topology};
use crate::apps::{Checked, Verdict, ensure, helper, missing};
use crate::exec::{self, until};
use crate::node::{Node, SHORT};
use crate::scratch::{self, Scratch};
use rustix::process::{Pid, Signal};
use std::process::Command;
use std::time::Duration;

/// All processes of a node stand still for seconds, as when a machine is suspended, and for it the
/// clock jumps. Its peer waits; then a stream goes on where it was, to its last byte, timers
/// that were due come, and the clocks agree.
pub fn suspended() -> Checked {
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
pub fn link_suspended() -> Checked {
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
        // Packets of other senders come after these.
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
pub fn clock_step() -> Checked {
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
pub fn clock_other() -> Checked {
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
