// SPDX-License-Identifier: GPL-2.0
//! XDP programs in the driver of a node's ports: what they drop, answer and send elsewhere never becomes a packet of its stack.

use super::{Checked, Verdict, ensure, helper, missing, trial};
use crate::exec::{self, Group};
use crate::node::Node;
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use std::process::{Command, Stdio};
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("xdp_drop".into(), drop),
        trial("xdp_answer".into(), answer),
        trial("xdp_redirect".into(), redirect),
        trial("xdp_object_file".into(), object_file),
    ]
}

const LIMIT: Duration = Duration::from_secs(20);
const UDP: &str = "17";
const SEND: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for size in 0, 1, 50, 1400, 1472:
    s.sendto(b'x' * size, (sys.argv[1], int(sys.argv[2])))
";
const SENT: u64 = 5;

/// Three nodes in a row; the one in the middle does not forward.
struct Row {
    left: Node,
    middle: Node,
    right: Node,
    near: String,
    far: String,
    slot: u32,
}

impl Row {
    fn new() -> Result<Row, String> {
        let (near, far, slot) = (
            scratch::unique("r3"),
            scratch::unique("r3"),
            scratch::slot(),
        );
        let port =
            |link: &str, net: u32, host: u32| format!("link:{link},addr=10.{net}.{slot}.{host}/24");
        let row = Row {
            left: Node::up(&[port(&near, 81, 1)])?,
            middle: Node::up(&[port(&near, 81, 2), port(&far, 82, 2)])?,
            right: Node::up(&[port(&far, 82, 1)])?,
            near,
            far,
            slot,
        };
        for (node, net) in [(&row.left, 81), (&row.right, 82)] {
            let via = row.address(net, 2);
            node.output(&["ip", "route", "add", "default", "via", &via])?;
            node.output(&["ping", "-c", "1", "-W", "10", &via])?;
        }
        Ok(row)
    }

    fn address(&self, net: u32, host: u32) -> String {
        format!("10.{net}.{}.{host}", self.slot)
    }

    /// A counter of the middle's.
    fn counter(&self, link: &str, name: &str) -> Result<u64, String> {
        let all = self.middle.output(&["ethtool", "-S", link])?;
        all.lines()
            .filter_map(|line| line.trim().split_once(": "))
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.parse().ok())
            .ok_or_else(|| format!("no {name}: {all}"))
    }

    /// A program on the middle's near port, in the driver, until this is dropped.
    fn program(&self, what: &[&str]) -> Result<Group, String> {
        let program = helper("xdp_prog")?;
        let program = program.to_string_lossy();
        let words = [&[&program, self.near.as_str(), "native"], what].concat();
        let mut command = self.middle.command(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let group = Group::spawn(&mut command)?;
        let there = || {
            let link = self.middle.output(&["ip", "link", "show", &self.near]);
            link.is_ok_and(|link| link.contains("prog/xdp") && !link.contains("xdpgeneric"))
        };
        ensure(exec::until(LIMIT, there), || {
            "the program is not there".into()
        })?;
        Ok(group)
    }
}

/// Datagrams are dropped; a stream, whose segments are too large to be seen before they are packets, passes as it was.
fn drop() -> Checked {
    let row = Row::new()?;
    let folder = Scratch::new()?;
    let sent = folder.noise("large", 5 << 20)?;
    let (to, port) = (row.address(81, 2), "9000");
    let _program = row.program(&["drop", UDP])?;
    row.left.output(&["python3", "-c", SEND, &to, port])?;
    let dropped = || row.counter(&row.near, "rx_xdp_drops") == Ok(SENT);
    ensure(exec::until(LIMIT, dropped), || {
        format!("dropped: {:?}", row.counter(&row.near, "rx_xdp_drops"))
    })?;
    let path = folder.path().to_string_lossy();
    let serve = ["python3", "-m", "http.server", "-d", &path, port];
    let _server = crate::node::background(&mut row.left.command(serve))?;
    let got = folder.file("got");
    let from = format!("http://{}:{port}/large", row.address(81, 1));
    let got_path = got.to_string_lossy();
    let again = ["--retry", "30", "--retry-connrefused", "--retry-delay", "1"];
    let fetch = [&["curl", "-sS", "-f", "-o", &got_path, &from][..], &again].concat();
    row.middle.output(&fetch)?;
    ensure(scratch::same(&sent, &got)?, || "other bytes arrived".into())?;
    Ok(Verdict::Passed)
}

/// A program answers pings in the place of a stack that ignores them.
fn answer() -> Checked {
    let row = Row::new()?;
    let to = row.address(81, 2);
    let ignore = "net.ipv4.icmp_echo_ignore_all=1";
    row.middle.output(&["sysctl", "-q", "-w", ignore])?;
    let ping = [
        "ping", "-q", "-c", "5", "-i", "0.1", "-s", "1000", "-W", "5", &to,
    ];
    {
        let _program = row.program(&["answer"])?;
        row.left.output(&ping)?;
    }
    let answered = row.counter(&row.near, "rx_xdp_tx")?;
    ensure(answered == 5, || format!("the program answered {answered}"))?;
    let off = || {
        let link = row.middle.output(&["ip", "link", "show", &row.near]);
        link.is_ok_and(|link| !link.contains("xdp"))
    };
    ensure(exec::until(LIMIT, off), || "the program stays".into())?;
    let ignored = row.left.exec(&["ping", "-q", "-c", "1", "-W", "1", &to])?;
    ensure(!ignored.ok(), || ignored.report())?;
    Ok(Verdict::Passed)
}

/// A program sends datagrams on, whose sender has left their checksums to the port.
fn redirect() -> Checked {
    let row = Row::new()?;
    let (to, port) = (row.address(82, 1), "9000");
    row.middle
        .output(&["sysctl", "-q", "-w", "net.ipv4.ip_forward=0"])?;
    let address = format!("/sys/class/net/{}/address", row.far);
    let mac = row.right.output(&["cat", &address])?;
    let receive = format!(
        "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('0.0.0.0', {port}))
s.settimeout(30)
got = [s.recv(2000) for i in range({SENT})]
assert all(set(it) <= set(b'x') for it in got)
print([len(it) for it in got])
"
    );
    let mut command = row.right.command(["python3", "-c", &receive]);
    command.stdout(Stdio::piped());
    let receiver = std::thread::spawn(move || exec::run(&mut command, Duration::from_secs(60)));
    let bound = || {
        let sockets = row.right.output(&["ss", "-uln"]);
        sockets.is_ok_and(|it| it.contains(":9000"))
    };
    ensure(exec::until(LIMIT, bound), || "nobody receives".into())?;
    let _program = row.program(&["redirect", UDP, &row.far, mac.trim()])?;
    row.left.output(&["python3", "-c", SEND, &to, port])?;
    let got = receiver.join().map_err(|_| "a panic")??;
    ensure(got.stdout.trim() == "[0, 1, 50, 1400, 1472]", || {
        got.report()
    })?;
    let (out, sent) = (
        row.counter(&row.near, "rx_xdp_redirects")?,
        row.counter(&row.far, "tx_xdp_frames")?,
    );
    ensure(out == SENT && sent == SENT, || {
        format!("{out} redirected, {sent} sent")
    })?;
    Ok(Verdict::Passed)
}

/// XDP_DROP, as a compiler for BPF lays it out.
const DROP: &str = "
    .section xdp, \"ax\"
    .globl drop
    .type drop, @function
drop: .quad 0x1000000b7, 0x95
    .size drop, . - drop
    .section license, \"aw\"
    .asciz \"GPL\"
";
const EM_BPF: [u8; 2] = 247_u16.to_le_bytes();
/// Of a 64-bit ELF file: e_machine.
const MACHINE: usize = 18;

/// What ip(8) loads from a file goes into the node and its bpffs: it neither needs the host's bpffs nor mounts one there.
fn object_file() -> Checked {
    if let Some(why) = missing(&["cc", "ip"])? {
        return Ok(Verdict::Ignored(why));
    }
    let folder = Scratch::new()?;
    let (source, object) = (folder.file("drop.s"), folder.file("drop.o"));
    std::fs::write(&source, DROP).map_err(|e| e.to_string())?;
    let mut compiler = Command::new("cc");
    compiler.arg("-c").arg(&source).arg("-o").arg(&object);
    let compiled = exec::run(&mut compiler, LIMIT)?;
    ensure(compiled.ok(), || compiled.report())?;
    let mut bytes = std::fs::read(&object).map_err(|e| e.to_string())?;
    bytes[MACHINE..MACHINE + EM_BPF.len()].copy_from_slice(&EM_BPF);
    std::fs::write(&object, bytes).map_err(|e| e.to_string())?;

    let mounts = || std::fs::read_to_string("/proc/self/mounts").map_err(|e| e.to_string());
    let before = mounts()?;
    let node = Node::up(&[])?;
    let file = object.to_string_lossy();
    node.output(&["ip", "link", "add", "x", "type", "dummy"])?;
    node.output(&["ip", "link", "set", "x", "xdp", "obj", &file, "sec", "xdp"])?;
    let link = node.output(&["ip", "link", "show", "x"])?;
    ensure(link.contains("prog/xdp"), || link)?;
    // Folders and links, which ip(8) and tc(8) make for maps that have a name.
    let names = "cd /tmp; mkdir /sys/fs/bpf/f; ln -s /sys/fs/bpf/f /sys/fs/bpf/l; readlink /sys/fs/bpf/l; ls -d /sys/fs/bpf/l/";
    let said = node.output(&["sh", "-ec", names])?;
    ensure(said == "/sys/fs/bpf/f\n/sys/fs/bpf/l/\n", || said)?;
    ensure(mounts()? == before, || {
        "the host's mounts are others".into()
    })?;
    ensure(!std::path::Path::new("/sys/fs/bpf/f").exists(), || {
        "on the host".into()
    })?;
    Ok(Verdict::Passed)
}
