// SPDX-License-Identifier: GPL-2.0
//! Ports that are an interface of the host: `packet` and `xdp`, at one end of a veth pair.

use super::ports;
use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Outcome};
use crate::node::{self, Node, ring3};
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("interface_packet".into(), || interface("packet")),
        trial("interface_xdp".into(), || interface("xdp")),
        trial("pcap_packet".into(), || pcap("packet")),
        trial("pcap_xdp".into(), || pcap("xdp")),
        trial("interface_packet_batches".into(), packet_batches),
        trial("interface_packet_refused".into(), packet_refused),
        trial("interface_xdp_taken".into(), xdp_taken),
        trial("interface_xdp_removed".into(), xdp_removed),
    ]
}

const LIMIT: Duration = Duration::from_secs(60);

/// Two interfaces of the host that are joined; the near one has an address.
struct Veth {
    near: String,
    far: String,
    slot: u32,
}

impl Veth {
    fn new() -> Result<Veth, String> {
        let name = scratch::unique("r3");
        let slot = scratch::slot();
        let veth = Veth {
            near: format!("{name}h"),
            far: format!("{name}n"),
            slot,
        };
        let (near, far) = (&veth.near, &veth.far);
        host(&format!(
            "ip link add {near} type veth peer name {far} && \
             ip addr add {}/24 dev {near} && ip link set {near} up && ip link set {far} up && \
             ethtool -K {near} tx off >/dev/null",
            veth.address(1)
        ))?;
        Ok(veth)
    }

    fn address(&self, host: u32) -> String {
        format!("10.{}.{}.{host}", 100 + std::process::id() % 60, self.slot)
    }

    fn port(&self, kind: &str) -> String {
        format!("{kind}:{},addr={}/24", self.far, self.address(2))
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = host(&format!("ip link delete {}", self.near));
    }
}

fn host(script: &str) -> Result<Outcome, String> {
    let mut command = Command::new("sh");
    let outcome = exec::run(command.args(["-c", script]), LIMIT)?;
    ensure(outcome.ok(), || outcome.report())?;
    Ok(outcome)
}

fn obstacle() -> Result<Option<String>, String> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Some("an interface of the host needs root".into()));
    }
    missing(&["ip", "ethtool", "ping", "python3", "curl"])
}

/// Numbers of x86-64's calls.
const SENDMMSG: &str = "307";
const RECVMMSG: &str = "299";

const SERVE: [&str; 5] = ["python3", "-m", "http.server", "--bind", "0.0.0.0"];

/// Pings and files both ways, by several programs of the node at once; afterwards the
/// interface is as it was.
fn interface(kind: &str) -> Checked {
    if let Some(why) = obstacle()? {
        return Ok(Verdict::Ignored(why));
    }
    let veth = Veth::new()?;
    let folder = Scratch::new()?;
    let sent = folder.noise("large", 5 << 20)?;
    let (ours, theirs) = (veth.address(1), veth.address(2));
    let path = folder.path().to_string_lossy();
    let node = Node::up(&[veth.port(kind)])?;
    node.output(&["ping", "-c", "3", "-i", "0.1", &ours])?;
    host(&format!("ping -c 3 -i 0.1 {theirs}"))?;
    // Frames of the full MTU, and 32 fragments at once, more than the host sends in one call.
    node.output(&["ping", "-c", "3", "-i", "0.1", "-s", "45000", &ours])?;

    let port = (22600 + scratch::slot() % 400).to_string();
    let serve = [&SERVE[..], &["-d", &path, &port]].concat();
    let _there = node::background(&mut node.command(&serve))?;
    let _here = node::background(Command::new(serve[0]).args(&serve[1..]))?;
    let fetch = |from: &str, to: &str| {
        format!(
            "curl -sS -f --retry 30 --retry-connrefused --retry-delay 1 -o {} http://{from}:{port}/large",
            folder.file(to).display()
        )
    };
    host(&fetch(&theirs, "from-node"))?;
    let script = format!("{} & {}; wait", fetch(&ours, "to-1"), fetch(&ours, "to-2"));
    node.output(&["sh", "-c", &script])?;
    for got in ["from-node", "to-1", "to-2"] {
        ensure(scratch::same(&sent, &folder.file(got))?, || {
            format!("{got}: other bytes arrived")
        })?;
    }

    let outcome = node.down()?;
    ensure(outcome.ok(), || outcome.report())?;
    let after = host(&format!("ip -d link show {}", veth.far))?;
    ensure(
        !after.stdout.contains("prog/xdp") && after.stdout.contains("promiscuity 0"),
        || after.report(),
    )?;
    Ok(Verdict::Passed)
}

/// The capture has the packets of the port, in both directions.
fn pcap(kind: &str) -> Checked {
    if let Some(why) = obstacle()?.or(missing(&["tcpdump"])?) {
        return Ok(Verdict::Ignored(why));
    }
    let veth = Veth::new()?;
    let folder = Scratch::new()?;
    let file = folder.file("capture.pcap");
    let node = Node::up(&[format!("{},pcap={}", veth.port(kind), file.display())])?;
    node.output(&["ping", "-c", "3", "-i", "0.1", &veth.address(1)])?;
    drop(node);
    ports::has_echoes(&file, 3)?;
    Ok(Verdict::Passed)
}

/// A counter of `ethtool -S` on the node.
fn counter(node: &Node, interface: &str, name: &str) -> Result<u64, String> {
    let all = node.output(&["ethtool", "-S", interface])?;
    all.lines()
        .filter_map(|line| line.trim().split_once(": "))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.parse().ok())
        .ok_or_else(|| format!("no {name}: {all}"))
}

/// Frames that have come while the node did not run are read several with one host call, and what it answers leaves so.
fn packet_batches() -> Checked {
    const SENT: u64 = 128;
    if let Some(why) = obstacle()? {
        return Ok(Verdict::Ignored(why));
    }
    let veth = Veth::new()?;
    let node = Node::up(&[veth.port("packet")])?;
    let (ours, theirs, far) = (veth.address(1), veth.address(2), &veth.far);
    node.output(&["ping", "-c", "1", &ours])?;
    let stat = exec::run(&mut ring3(["stat", &node.name, "--json"]), LIMIT)?;
    let stat: serde_json::Value = serde_json::from_str(&stat.stdout).map_err(|e| e.to_string())?;
    let keeper = stat["pid"].as_i64().ok_or("no keeper")?;
    let counters = || -> Result<(u64, u64), String> {
        let of = |name| counter(&node, far, name);
        Ok((of("rx_host_calls")?, of("tx_batches")?))
    };
    let before = counters()?;
    host(&format!(
        "kill -STOP {keeper}
         ping -q -c {SENT} -l {SENT} -i 0.01 -W 20 {theirs} >/dev/null & ping=$!
         sleep 0.5; kill -CONT {keeper}; wait $ping"
    ))?;
    let after = counters()?;
    let (reads, writes) = (after.0 - before.0, after.1 - before.1);
    // By eight and by sixteen; some for what else comes meanwhile.
    ensure(reads < SENT / 3 && writes < SENT / 3, || {
        format!("{SENT} frames were read by {reads} host calls, and answered by {writes}")
    })?;
    Ok(Verdict::Passed)
}

/// The host refuses sendmmsg(), or recvmmsg(), to the keeper, as filters of sandboxes do: frames come and go one by one, and the
/// node's log says so.
fn packet_refused() -> Checked {
    if let Some(why) = obstacle()? {
        return Ok(Verdict::Ignored(why));
    }
    for call in [SENDMMSG, RECVMMSG] {
        let veth = Veth::new()?;
        let name = scratch::unique("t");
        let mut command = Command::new(super::helper("deny")?);
        command.arg(call).arg(crate::paths::ring3());
        command.args(["up", &name, "--port", &veth.port("packet")]);
        let up = exec::run(&mut command, LIMIT)?;
        let node = Node { name };
        ensure(up.ok(), || up.report())?;
        // A burst, for which the keeper alone has a batch to send.
        let (theirs, pings) = (veth.address(2), 100);
        host(&format!(
            "ping -q -c {pings} -l {pings} -i 0.01 -W 20 {theirs} | grep -q ' {pings} received'"
        ))?;
        let log = exec::run(&mut ring3(["log", &node.name]), LIMIT)?;
        ensure(log.stdout.contains("one call a frame"), || log.report())?;
    }
    Ok(Verdict::Passed)
}

/// An interface that has its XDP socket is refused, and said to be taken.
fn xdp_taken() -> Checked {
    if let Some(why) = obstacle()? {
        return Ok(Verdict::Ignored(why));
    }
    let veth = Veth::new()?;
    let _node = Node::up(&[veth.port("xdp")])?;
    let port = format!("xdp:{}", veth.far);
    let outcome = exec::run(&mut ring3(["run", "--port", &port, "true"]), LIMIT)?;
    ensure(
        !outcome.ok() && outcome.stderr.contains("of another's"),
        || outcome.report(),
    )?;
    Ok(Verdict::Passed)
}

/// The interface is removed: the port has no carrier, and the node is as good as before for
/// what does not need it, also to programs that come later.
fn xdp_removed() -> Checked {
    if let Some(why) = obstacle()? {
        return Ok(Verdict::Ignored(why));
    }
    let veth = Veth::new()?;
    let node = Node::up(&[veth.port("xdp")])?;
    let ours = veth.address(1);
    let _busy = node::background(&mut node.command(["ping", "-q", "-i", "0.01", &ours]))?;
    node.output(&["ping", "-c", "3", "-i", "0.1", &ours])?;
    let far = veth.far.clone();
    drop(veth);
    let gone = exec::until(Duration::from_secs(10), || {
        node.output(&["cat", &format!("/sys/class/net/{far}/carrier")])
            .is_ok_and(|carrier| carrier.trim() == "0")
    });
    ensure(gone, || "the port still has a carrier".into())?;
    node.output(&["ping", "-c", "1", "127.0.0.1"])?;
    let again = node.exec(&[
        "sh",
        "-c",
        &format!("ip link set {far} down; ip link set {far} up"),
    ])?;
    ensure(!again.ok() && again.stderr.contains("down"), || {
        again.report()
    })?;
    Ok(Verdict::Passed)
}
