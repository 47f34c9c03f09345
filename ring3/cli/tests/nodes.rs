// SPDX-License-Identifier: GPL-2.0
//! Nodes that are started: what comes through from the program, what is said of a node
//! that cannot be, and what is left behind. Needs `make image gate`.

mod place;

use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{kill, Signal};
use nix::unistd::{getuid, Pid};

use place::{
    behind, built, eventually, expect_failure, finish, said_until_heard, signal, spawn, started,
    Place,
};

const NOBODY: u32 = 65534;

#[test]
fn the_status_comes_through() {
    let place = Place::new();
    for (script, status) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", 143),
        ("kill -SEGV $$", 139),
    ] {
        let output = place.run(&["run", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}: {output:?}");
    }
    place.is_empty();
}

#[test]
fn so_does_what_is_read_and_written() {
    let place = Place::new();
    let mut child = place
        .command(&["run", "--", "cat", "-", "/nonexistent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("LC_ALL", "C")
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"through and through").expect("write");
    drop(stdin);
    let output = finish(child);
    assert_eq!(output.stdout, b"through and through");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("/nonexistent: No such file"), "{error}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn arguments_folder_and_environment_too() {
    let place = Place::new();
    let output = place
        .command(&[
            "run",
            "--",
            "sh",
            "-c",
            "echo \"$0,$1,$MARK,$PWD\"",
            "-x",
            "a b",
        ])
        .env("MARK", "mark")
        .current_dir("/usr")
        .output()
        .expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "-x,a b,mark,/usr\n"
    );
}

#[test]
fn signals_reach_the_program() {
    let place = Place::new();
    let script = "trap 'exit 5' TERM; trap 'exit 6' INT; echo; read x; exit 9";
    for (number, status) in [(Signal::SIGTERM, 5), (Signal::SIGINT, 6)] {
        let child = started(&place, &["run", "--", "sh", "-c", script]);
        // A shell that is about to read, but does not yet, keeps its trap until it has read:
        // on the host too. Say it until it is heard.
        let output = said_until_heard(child, number);
        assert_eq!(output.status.code(), Some(status), "{number}: {output:?}");
    }
    let child = started(&place, &["run", "--", "sh", "-c", "echo; read x"]);
    signal(&child, Signal::SIGHUP);
    assert_eq!(finish(child).status.code(), Some(129));
}

#[test]
fn a_program_does_not_outlive_its_node() {
    let place = Place::new();
    let mut child = started(
        &place,
        &["run", "-n", "a", "--", "sh", "-c", "echo; read x"],
    );
    let stdin = child.stdin.take();
    let status = place.stat("a");
    let pid = status["procs"][0]["pid"].as_i64().expect("its pid");
    signal(&child, Signal::SIGKILL);
    assert_eq!(finish(child).status.signal(), Some(9));
    let proc = PathBuf::from(format!("/proc/{pid}"));
    eventually("the program is gone", || !proc.exists());
    drop(stdin);
    assert_eq!(place.ok(&["ls", "--json"]).trim(), "[]");
}

#[test]
fn a_daemon_ends_with_its_node() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!";
    let pid = place.ok(&["exec", "a", "--", "sh", "-c", script]);
    let proc = PathBuf::from(format!("/proc/{}/exe", pid.trim()));
    assert!(
        fs::read_link(&proc).is_ok(),
        "{pid} outlives the shell that started it"
    );
    place.ok(&["down", "a"]);
    // A zombie, where nobody reaps, has no program any more.
    eventually("the daemon is gone", || fs::read_link(&proc).is_err());
}

#[test]
fn a_node_that_stays() {
    let place = Place::new();
    assert_eq!(
        place.ok(&["up", "a", "--port", "link:x,addr=10.0.0.1/24"]),
        ""
    );
    let nodes: serde_json::Value =
        serde_json::from_str(&place.ok(&["ls", "--json"])).expect("JSON");
    assert_eq!(nodes[0]["name"], "a");
    assert_eq!(nodes[0]["state"], "up");
    assert!(place.ok(&["ls"]).contains("link:x 10.0.0.1/24"));
    assert!(place.ok(&["stat", "a"]).contains("add-symbol-file"));
    assert!(place.ok(&["log", "a"]).contains("Linux version 6.12"));
    assert!(place.ok(&["log", "-l", "0", "a"]).is_empty());
    place.ok(&["exec", "a", "--", "true"]);
    assert_eq!(
        place
            .run(&["exec", "a", "--", "sh", "-c", "exit 3"])
            .status
            .code(),
        Some(3)
    );
    place.fails(
        &["exec", "a", "--", "nosuchprogram"],
        127,
        "not found in PATH",
    );
    place.fails(
        &["up", "a"],
        1,
        "a node named `a` is running already: `ring3 down a` ends it",
    );
    place.fails(&["run", "-n", "a", "--", "true"], 125, "is running already");
    assert_eq!(place.ok(&["down", "a"]), "");
    place.fails(
        &["exec", "a", "--", "true"],
        125,
        "no node named `a` is running",
    );
    place.is_empty();
}

#[test]
fn a_node_from_a_file() {
    let place = Place::new();
    let file = place.dir.path().join("node.toml");
    let text = "name = 'web'\nmem = '64M'\n[[port]]\nkind = 'link'\nname = 'x'\naddr = '10.0.0.1/24'\nmtu = 9000\n";
    fs::write(&file, text).expect("a file");
    let printed = place.ok(&["up", "--json", "-f", file.to_str().expect("UTF-8")]);
    let status: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(status["name"], "web");
    assert_eq!(status["mem"]["size"], 64 << 20);
    assert_eq!(status["ports"][0]["mtu"], 9000);
    place.ok(&["down", "--all"]);
    place.is_empty();
}

#[test]
fn a_killed_node_frees_its_name() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    let pid = place.stat("a")["pid"].as_i64().expect("its pid");
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("kill");
    eventually("its end is told", || {
        place.ok(&["ls", "--json"]).contains("\"ended_s\"")
    });
    place.ok(&["up", "a"]);
    place.ok(&["down", "a"]);
}

#[test]
fn a_link_has_two_ends() {
    let place = Place::new();
    place.ok(&["up", "a", "--port", "link:x"]);
    place.ok(&["up", "b", "--port", "link:x"]);
    place.fails(
        &["up", "c", "--port", "link:x"],
        1,
        "link `x` has two ends and both are taken",
    );
    assert!(!place.ok(&["ls"]).contains("\nc "));
    place.ok(&["down", "a", "b"]);
    place.is_empty();
}

#[test]
fn a_kernel_log_outlives_its_node() {
    let place = Place::new();
    let kept = place.dir.path().join("kernel.log");
    for name in ["first", "second"] {
        let mut command = place.command(&["run", "--node", name, "--", "true"]);
        let output = finish(spawn(command.env("RING3_KERNEL_LOG", &kept)));
        assert!(output.status.success(), "{output:?}");
    }
    let log = fs::read_to_string(&kept).expect("the log");
    let (first, second) = log.split_once("== node second\n").expect("two nodes");
    assert!(first.starts_with("== node first\n"), "{log}");
    for part in [first, second] {
        assert!(part.contains("Linux version"), "{log}");
    }
}

#[test]
fn a_sysctl_that_does_not_exist() {
    let place = Place::new();
    let words = "cannot set sysctl net.nosuch.thing to `1`";
    place.fails(
        &["run", "-s", "net.nosuch.thing=1", "--", "true"],
        125,
        words,
    );
    place.fails(&["up", "a", "-s", "net.nosuch.thing=1"], 1, words);
    place.is_empty();
}

/// The kernel takes a list as long as this in pieces, a page at a time.
#[test]
fn a_sysctl_longer_than_a_page() {
    let place = Place::new();
    let ports: Vec<_> = (1001..9000).step_by(2).map(|n| n.to_string()).collect();
    let list = ports.join(",");
    let key = "net.ipv4.ip_local_reserved_ports";
    let pair = format!("{key}={list}");
    let path = "/proc/sys/net/ipv4/ip_local_reserved_ports";
    let printed = place.ok(&["run", "-s", &pair, "--", "cat", path]);
    assert_eq!(printed.trim_end(), list);
}

/// Another interface of the host may have the address that `host=` names.
#[test]
fn a_tap_whose_address_another_interface_has() {
    if !getuid().is_root() || !Path::new("/dev/net/tun").exists() {
        return;
    }
    let place = Place::new();
    let script = "ip link set lo up && ip address add 10.98.0.1/24 dev lo && \
         \"$0\" up a --port tap:r3t0,addr=10.98.0.2/24,host=10.98.0.1/24 && \
         ip -o address show dev r3t0; \"$0\" down a";
    let unshare = ["--net", "sh", "-c", script];
    let output = finish(spawn(&mut behind(&place.command(&[]), "unshare", &unshare)));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("10.98.0.1/24"), "{output:?}");
}

#[test]
fn passt_missing() {
    let place = Place::new();
    let output = place
        .command(&["run", "--port", "passt", "--", "/bin/true"])
        .env("PATH", "/nonexistent")
        .output()
        .expect("it runs");
    expect_failure(&output, 125, "passt is not installed: `apt install passt`");
}

#[test]
fn a_tap_that_is_not_permitted() {
    let place = Place::new();
    let bin = tempfile::tempdir().expect("a folder");
    let port = "tap:r3test0,addr=10.99.0.2/24,host=10.99.0.1/24";
    let mut command = place.command(&["run", "--port", port, "--", "true"]);
    if getuid().is_root() {
        // Nobody may be unable to reach the clone, and memory may be mounted noexec.
        let copy = |from: &Path, name: &str| {
            let to = bin.path().join(name);
            fs::copy(from, &to).expect("a copy");
            to
        };
        let image = copy(&built("RING3_IMAGE", "ring3-up.image"), "image");
        let gate = copy(&built("RING3_GATE", "ring3-gate"), "gate");
        let ring3 = copy(Path::new(env!("CARGO_BIN_EXE_ring3")), "ring3-command");
        for dir in [place.dir.path(), bin.path()] {
            std::os::unix::fs::chown(dir, Some(NOBODY), Some(NOBODY)).expect("chown");
        }
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        command = Command::new(ring3);
        command
            .args(args)
            .env("XDG_RUNTIME_DIR", place.dir.path())
            .env("RING3_IMAGE", image)
            .env("RING3_GATE", gate)
            .uid(NOBODY)
            .gid(NOBODY);
    }
    let output = finish(spawn(&mut command));
    // Which of the two is missing depends on the host: the device's mode, or the TAP.
    expect_failure(&output, 125, "ring3: not permitted to ");
    expect_failure(&output, 125, ": ask root for `");
}

#[test]
fn an_image_of_another_version() {
    let place = Place::new();
    let mut bytes = fs::read(built("RING3_IMAGE", "ring3-up.image")).expect("the image");
    let magic = 0x3367_006e_6967_6572_u64.to_le_bytes(); // RING3_MAGIC of include/ring3.abi
    let at = bytes
        .windows(8)
        .position(|window| window == magic)
        .expect("a magic number");
    bytes[at + 8..at + 12].copy_from_slice(&99_u32.to_le_bytes());
    let image = place.dir.path().join("other.image");
    fs::write(&image, bytes).expect("a file");
    let image = image.to_str().expect("UTF-8");
    let words = "has contract 00000063, this ring3 has";
    place.fails(&["run", "--image", image, "--", "true"], 125, words);
    place.fails(&["up", "a", "--image", image], 1, words);
}

/// A node's programs have one node, and its gate leaves no room for another's.
#[test]
fn no_node_within_a_node() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    place.ok(&["up", "b"]);
    let ring3 = env!("CARGO_BIN_EXE_ring3");
    let words = "not from within a node";
    for (args, status) in [
        (&["run", "--", "true"][..], 125),
        (&["exec", "b", "--", "true"], 125),
        (&["up", "c"], 1),
        (&["doctor"], 1),
    ] {
        let args = [&["exec", "a", "--", ring3], args].concat();
        place.fails(&args, status, words);
    }
    // Looking and taking down need no node.
    place.ok(&["exec", "a", "--", ring3, "down", "b"]);
    // The variable alone is no node.
    let mut command = place.command(&["run", "--", "true"]);
    let output = finish(spawn(command.env("RING3_NODE", "/nosuch")));
    assert!(output.status.success(), "{output:?}");
}
