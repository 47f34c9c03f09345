// SPDX-License-Identifier: GPL-2.0
//! Mistakes on the command line: one line that names the cause and the remedy, and the status.

use super::kills::Talker;
use super::{Checked, Verdict, ensure, trial};
use crate::exec::{self, End};
use crate::node::{Node, SHORT, ring3};
use crate::scratch::Scratch;
use libtest_mimic::Trial;

/// Name, arguments, exit status, words that the message has to hold.
type Case = (
    &'static str,
    &'static [&'static str],
    i32,
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        "port_kind",
        &["run", "--port", "foo:x", "--", "true"],
        2,
        &["foo", "link, switch, tap"],
    ),
    (
        "port_key",
        &["run", "--port", "link:a,bogus=1", "--", "true"],
        2,
        &["bogus", "addr, gw"],
    ),
    (
        "port_empty",
        &["run", "--port", "", "--", "true"],
        2,
        &["port"],
    ),
    (
        "port_no_name",
        &["run", "--port", "link", "--", "true"],
        2,
        &["link"],
    ),
    (
        "address",
        &["run", "--port", "link:a,addr=1.2.3", "--", "true"],
        2,
        &["1.2.3", "10.0.0.1/24"],
    ),
    (
        "prefix",
        &["run", "--port", "link:a,addr=10.0.0.1/99", "--", "true"],
        2,
        &["prefix"],
    ),
    (
        "gateway",
        &[
            "run",
            "--port",
            "link:a,addr=10.0.0.1/24,gw=x",
            "--",
            "true",
        ],
        2,
        &["gw"],
    ),
    (
        "mtu",
        &["run", "--port", "link:a,mtu=5", "--", "true"],
        2,
        &["mtu", "68"],
    ),
    (
        "mtu_text",
        &["run", "--port", "link:a,mtu=big", "--", "true"],
        2,
        &["mtu"],
    ),
    (
        "mac",
        &["run", "--port", "link:a,mac=zz", "--", "true"],
        2,
        &["mac"],
    ),
    (
        "interface",
        &["run", "--port", "tap:muchtoolonganinterface", "--", "true"],
        2,
        &["too long"],
    ),
    ("mem", &["run", "--mem", "1x", "--", "true"], 2, &["unit"]),
    (
        "sysctl",
        &["run", "--sysctl", "foo", "--", "true"],
        2,
        &["KEY=VALUE"],
    ),
    ("no_command", &["run"], 2, &["CMD"]),
    ("verb", &["bogus"], 2, &["bogus"]),
    ("node_name", &["up", "../x"], 2, &["not allowed"]),
    (
        "exec_no_node",
        &["exec", "nosuchnode", "--", "true"],
        125,
        &["nosuchnode", "ring3 ls"],
    ),
    (
        "down_no_node",
        &["down", "nosuchnode"],
        1,
        &["nosuchnode", "ring3 ls"],
    ),
    ("log_no_node", &["log", "nosuchnode"], 1, &["nosuchnode"]),
    ("stat_no_node", &["stat", "nosuchnode"], 1, &["nosuchnode"]),
    ("not_found", &["run", "--", "/nosuch"], 127, &["/nosuch"]),
    (
        "not_found_in_path",
        &["run", "--", "nosuchprogram"],
        127,
        &["nosuchprogram"],
    ),
    (
        "not_executable",
        &["run", "--", "/etc/passwd"],
        126,
        &["/etc/passwd"],
    ),
    ("folder", &["run", "--", "/etc"], 126, &["/etc"]),
    (
        "image_missing",
        &["run", "--image", "/nosuch", "--", "true"],
        125,
        &["/nosuch", "make"],
    ),
    (
        "image_other",
        &["run", "--image", "/etc/passwd", "--", "true"],
        125,
        &["/etc/passwd", "make"],
    ),
    (
        "sysctl_unknown",
        &["run", "--sysctl", "net.ipv4.nosuch=1", "--", "true"],
        125,
        &["nosuch"],
    ),
    (
        "file_missing",
        &["up", "-f", "/nosuch.toml"],
        2,
        &["/nosuch.toml"],
    ),
];

pub fn trials() -> Vec<Trial> {
    let mut all: Vec<Trial> = CASES
        .iter()
        .map(|&(name, args, status, words)| {
            trial(format!("usage_{name}"), move || {
                refused(args, status, words)?;
                Ok(Verdict::Passed)
            })
        })
        .collect();
    all.push(trial("usage_name_taken".into(), || {
        let node = Node::up(&[])?;
        refused(&["up", &node.name], 1, &[&node.name])
            .or_else(|_| refused(&["up", &node.name], 2, &[&node.name]))?;
        ensure(node.exec(&["true"])?.ok(), || {
            "the first node is gone".into()
        })?;
        Ok(Verdict::Passed)
    }));
    all.push(trial("usage_image_version".into(), || {
        let folder = Scratch::new()?;
        let image = crate::paths::root().join("bin/ring3-up.image");
        let mut bytes = std::fs::read(&image).map_err(|e| format!("{}: {e}", image.display()))?;
        let at = version(&bytes)?;
        bytes[at] ^= 1;
        let other = folder.write("other.image", bytes)?;
        let other = other.to_string_lossy();
        refused(
            &["run", "--image", &other, "--", "true"],
            125,
            &["has contract", "with `make`"],
        )?;
        let text = std::fs::read(&image).map_err(|e| e.to_string())?;
        let short = folder.write("short.image", &text[..text.len() / 2])?;
        let short = short.to_string_lossy();
        refused(&["run", "--image", &short, "--", "true"], 125, &["image"])?;
        Ok(Verdict::Passed)
    }));
    // As after a change of the contract where only one of the two was built anew.
    all.push(trial("usage_gate_version".into(), || {
        let folder = Scratch::new()?;
        let bin = crate::paths::root().join("bin");
        let abi = std::fs::read(bin.join("ring3-up.image")).map_err(|e| e.to_string())?;
        let abi: [u8; 4] = abi[version(&abi)?..][..4].try_into().expect("four");
        let mut gate = std::fs::read(bin.join("ring3-gate")).map_err(|e| e.to_string())?;
        let places: Vec<usize> = gate
            .windows(4)
            .enumerate()
            .filter(|(_, four)| *four == abi)
            .map(|(at, _)| at)
            .collect();
        ensure(!places.is_empty(), || {
            "the gate has another contract than the image".into()
        })?;
        places.iter().for_each(|at| gate[*at] ^= 1);
        let other = folder.write("other-gate", gate)?;
        std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .map_err(|e| e.to_string())?;
        let node = Node::up(&[])?;
        let mut command = ring3(["exec", &node.name, "--", "true"]);
        command.env("RING3_GATE", &other);
        one_line(&mut command, 125, &["the gate has contract", "with `make`"])?;
        ensure(node.exec(&["true"])?.ok(), || "the node is gone".into())?;
        Ok(Verdict::Passed)
    }));
    all.push(trial("usage_node_just_ended".into(), node_just_ended));
    all.push(trial("usage_late_request".into(), late_request));
    all.push(trial("usage_tap_not_permitted".into(), || {
        if !rustix::process::geteuid().is_root() {
            let args = ["run", "--port", "tap:r3nope,addr=10.1.1.1/24", "--", "true"];
            refused(&args, 125, &["tun"])?;
        } else {
            let mut command = std::process::Command::new("setpriv");
            command
                .args(["--reuid=65534", "--regid=65534", "--clear-groups", "env"])
                .arg("XDG_RUNTIME_DIR=/tmp/nosuch-folder")
                .arg(crate::paths::ring3())
                .args(["run", "--port", "tap:r3nope,addr=10.1.1.1/24", "--", "true"]);
            let outcome = exec::run(&mut command, SHORT)?;
            ensure(outcome.end == End::Exit(125), || outcome.report())?;
        }
        Ok(Verdict::Passed)
    }));
    all.push(trial("usage_passt_missing".into(), || {
        let mut command = ring3(["run", "--port", "passt", "--", "/bin/true"]);
        command.env("PATH", "/nonexistent");
        let outcome = exec::run(&mut command, SHORT)?;
        ensure(
            outcome.end == End::Exit(125) && outcome.stderr.contains("passt"),
            || outcome.report(),
        )?;
        Ok(Verdict::Passed)
    }));
    all
}

/// A node that ends while a program comes to it: its socket is gone already, or has no listener, or it ends before it has taken the
/// request, or after that. The test plays the node.
fn node_just_ended() -> Checked {
    const NODE: &str = "\
import os, socket, sys
path, when = sys.argv[1:]
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if when != 'gone':
    door.bind(path)
if when in ('amid', 'after'):
    door.listen()
print('there', flush=True)
if when in ('amid', 'after'):
    peer = door.accept()[0]
    peer.recv(1, socket.MSG_PEEK)
    if when == 'after':
        peer.recv(4096)
    peer.close()
";
    let folder = Scratch::new()?;
    for when in ["gone", "before", "amid", "after"] {
        let path = folder.path().join(when);
        let mut command = std::process::Command::new("python3");
        command.args(["-c", NODE]).arg(&path).arg(when);
        let node = Talker::start(command)?;
        node.expect("there")?;
        let mut gate = std::process::Command::new(crate::paths::root().join("bin/ring3-gate"));
        gate.env("RING3_NODE", &path).arg("/bin/true");
        one_line(&mut gate, 125, &["has just ended", "ring3 ls"])
            .map_err(|why| format!("{when}: {why}"))?;
    }
    Ok(Verdict::Passed)
}

/// A program that is held up for longer than the node's process waits for its request: it asks anew.
fn late_request() -> Checked {
    if let Some(why) = super::missing(&["strace"])? {
        return Ok(Verdict::Ignored(why));
    }
    let node = crate::node::Node::up(&[])?;
    let folder = Scratch::new()?;
    let join = crate::paths::runtime()
        .join("nodes")
        .join(&node.name)
        .join("join");
    let calls = folder.path().join("calls");
    let mut command = std::process::Command::new("strace");
    command
        .args(["-e", "trace=connect,sendto"])
        .args(["-e", "inject=sendto:delay_enter=1500000:when=1", "-o"])
        .arg(&calls)
        .arg(crate::paths::root().join("bin/ring3-gate"))
        .args(["/bin/echo", "joined"])
        .env("RING3_NODE", join);
    let outcome = exec::run(&mut command, SHORT)?;
    ensure(outcome.ok() && outcome.stdout == "joined\n", || {
        outcome.report()
    })?;
    let calls = std::fs::read_to_string(&calls).map_err(|e| e.to_string())?;
    let late = calls.contains("EPIPE") && calls.matches("connect(").count() == 2;
    ensure(late, || format!("the request was not late:\n{calls}"))?;
    Ok(Verdict::Passed)
}

/// Where an image has the contract's number: behind the magic number.
fn version(image: &[u8]) -> Result<usize, String> {
    let magic = 0x3367_006e_6967_6572_u64.to_le_bytes();
    let at = image.windows(8).position(|window| window == magic);
    at.map(|at| at + 8)
        .ok_or_else(|| "the image has no magic number".into())
}

/// The command fails with that status and a message that holds the words. What clap says of the
/// grammar has a usage under it; every other message is one line.
fn refused(args: &[&str], status: i32, words: &[&str]) -> Result<(), String> {
    one_line(&mut ring3(args), status, words)
}

fn one_line(
    command: &mut std::process::Command,
    status: i32,
    words: &[&str],
) -> Result<(), String> {
    let outcome = exec::run(command, SHORT)?;
    ensure(outcome.end == End::Exit(status), || {
        format!("wanted exit {status}: {}", outcome.report())
    })?;
    if let Some(word) = words.iter().find(|word| !outcome.stderr.contains(**word)) {
        return Err(format!("no '{word}' in: {}", outcome.stderr));
    }
    ensure(outcome.stdout.is_empty(), || {
        format!("on standard output: {}", outcome.stdout)
    })?;
    let lines = outcome.stderr.trim_end().lines().count();
    ensure(lines == 1 || outcome.stderr.starts_with("error: "), || {
        format!("{lines} lines: {}", outcome.stderr)
    })
}
