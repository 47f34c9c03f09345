// SPDX-License-Identifier: GPL-2.0
//! Every mistake on the command line: one line that names the cause and the remedy, and
//! the status that a script can tell it by. No node is started here.

use std::fs;

use assert_cmd::Command;
use tempfile::TempDir;

/// The command with a runtime folder of its own, and a gate that is never started.
fn ring3(dir: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring3"));
    command
        .env("XDG_RUNTIME_DIR", dir.path())
        .env("RING3_GATE", "/bin/true")
        .env_remove("RING3_LOG")
        .env_remove("RING3_NODE");
    command
}

fn dir() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Runs it, checks the status, and that standard error is one line with these words.
#[track_caller]
fn fails(args: &[&str], status: i32, words: &str) {
    let dir = dir();
    fails_in(&dir, args, status, words);
}

#[track_caller]
fn fails_in(dir: &TempDir, args: &[&str], status: i32, words: &str) {
    let output = ring3(dir).args(args).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains(words), "{args:?}: {error}");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {error}");
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    assert!(error.starts_with("ring3: "), "{error}");
    assert!(output.stdout.is_empty(), "nothing on standard output");
}

/// A value that has to stand behind `=` since it may be left out.
#[test]
fn values_by_equals() {
    for (line, tip) in [
        (
            &["up", "a", "--restart", "always", "--", "true"][..],
            "; write --restart=always; `ring3 up --help`",
        ),
        (&["stat", "a", "-w", "0.5"], "; write -w=0.5; "),
        (&["stat", "a", "--watch", "1"], "; write --watch=1; "),
    ] {
        fails(line, 2, tip);
    }
}

/// Each is one line with a remedy, and no tip to write the option behind `--`, where the program's words are.
#[test]
fn options_that_are_none() {
    for (line, words) in [
        (
            &["run", "--spin-ns", "-1", "--", "true"][..],
            "--spin-ns takes no value below zero, as `-1` is; `ring3 run --help`",
        ),
        (
            &["run", "--bogus", "--", "true"],
            "unexpected argument '--bogus' found; `ring3 run --help` lists",
        ),
        (
            &["run", "--meme", "64M", "true"],
            "a similar argument exists: '--mem'; `ring3 run --help`",
        ),
        (
            &["exce", "a"],
            "a similar subcommand exists: 'exec'; `ring3 --help`",
        ),
        (&["wait", "a", "sctp", "80"], "[possible values: tcp, udp]"),
        (&["wait", "a", "tcp", "0"], "0 is not in 1..=65535"),
        (&["publish", "a", "0"], "0 is not in 1..=65535"),
        (&["connect", "a", "b", "0"], "0 is not in 1..=65535"),
        (
            &["up", "a", "--spin-ns"],
            "a value is required for '--spin-ns <NS>'",
        ),
        (
            &["connect", "a"],
            "were not provided: <HOST> <PORT>; `ring3 connect --help`",
        ),
    ] {
        fails(line, 2, words);
    }
}

/// What was asked for was not printed.
#[test]
fn a_full_disk_gets_no_help() {
    for line in [
        &["--help"][..],
        &["run", "--help"],
        &["--version"],
        &["man"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ring3"));
        let output = command.args(line).stdout(full.expect("/dev/full")).output();
        let output = output.expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line:?}: {error}");
        assert!(error.contains("cannot write to standard output"), "{error}");
    }
}

#[test]
fn unknown_port_kind() {
    let words = "unknown kind `tun`; the kinds are link, switch, tap, host, passt, packet";
    fails(&["run", "--port", "tun:x", "--", "true"], 2, words);
    fails(&["up", "a", "--port", "tun:x"], 2, words);
}

#[test]
fn unknown_port_key() {
    fails(
        &["run", "--port", "link:ab,adr=10.0.0.1/24", "--", "true"],
        2,
        "unknown key `adr`; the keys are addr, gw, host, mtu, mac, loopback, tcp, udp, allow, deny, log, pcap",
    );
}

#[test]
fn malformed_address() {
    for (spec, words) in [
        (
            "link:ab,addr=10.0.0.1",
            "malformed address `10.0.0.1` in addr: its prefix length is missing",
        ),
        (
            "link:ab,addr=10.0.0.300/24",
            "malformed address `10.0.0.300/24` in addr",
        ),
        (
            "tap:t,host=nonsense",
            "malformed address `nonsense` in host",
        ),
        (
            "link:ab,addr=10.0.0.1/24,gw=10.0.0",
            "malformed address `10.0.0` in gw",
        ),
    ] {
        fails(&["up", "a", "--port", spec], 2, words);
    }
}

#[test]
fn other_values() {
    for (option, value, words) in [
        (
            "--mem",
            "100T",
            "memory of 100T is out of range: use 32M to ",
        ),
        ("--mem", "1X", "size `1X` has an unknown unit"),
        ("--mem", "1M", "memory of 1M is out of range: use 32M to 2G"),
        ("--sysctl", "net.ipv4.ip_forward", "has no =: use KEY=VALUE"),
        ("--spin-ns", "4000000000", "out of range"),
        (
            "--node",
            "a/b",
            "node name `a/b` has a character that is not allowed",
        ),
    ] {
        fails(&["run", option, value, "--", "true"], 2, words);
    }
}

#[test]
fn the_same_link_twice() {
    let args = ["up", "a", "--port", "link:x", "--port", "link:x"];
    fails(&args, 2, "two ports are `link:x`: a node may name it once");
}

#[test]
fn options_that_do_not_exist() {
    for args in [
        &["run", "--prot", "link:ab", "--", "true"][..],
        &["fly"],
        &["run"],
        &["exec", "a"],
        &["up"],
        &["down"],
    ] {
        fails(args, 2, "--help` lists what there is");
    }
}

#[test]
fn no_such_node() {
    let words = "no node named `nosuch` is running: `ring3 ls` lists those that are";
    fails(&["exec", "nosuch", "--", "true"], 125, words);
    for verb in ["down", "log", "stat"] {
        fails(&[verb, "nosuch"], 1, words);
    }
    fails(&["stat", "../x"], 2, "node name `../x`");
}

#[test]
fn no_such_program() {
    let words = "nosuchprogram: not found in PATH";
    fails(&["run", "--", "nosuchprogram"], 127, words);
    fails(&["run", "--", "./nosuchprogram"], 127, "no such file");
    fails(&["run", "--", ""], 127, "not found");
}

#[test]
fn a_program_that_cannot_be_executed() {
    fails(
        &["run", "--", "/etc/passwd"],
        126,
        "/etc/passwd: permission denied",
    );
    fails(&["run", "--", "/etc"], 126, "/etc: is a folder");
}

#[test]
fn no_gate() {
    let output = ring3(&dir())
        .env("RING3_GATE", "/nonexistent/gate")
        .args(["run", "--", "true"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(125));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("no gate: looked for /nonexistent/gate"),
        "{error}"
    );
}

#[test]
fn no_image() {
    fails(
        &["run", "--image", "/nonexistent/image", "--", "true"],
        125,
        "/nonexistent/image",
    );
    fails(
        &["up", "a", "--image", "/nonexistent/image"],
        1,
        "/nonexistent/image",
    );
}

#[test]
fn an_image_that_is_none() {
    let dir = dir();
    let image = dir.path().join("x.image");
    fs::write(&image, vec![0x5a; 1 << 16]).expect("a file");
    let image = image.to_str().expect("UTF-8");
    let words = "is not a ring3 kernel image";
    fails_in(&dir, &["run", "--image", image, "--", "true"], 125, words);
}

#[test]
fn node_files() {
    let dir = dir();
    let file = dir.path().join("node.toml");
    let path = file.to_str().expect("UTF-8");
    for (text, words) in [
        (
            "name = 'a'\nport = ['tun:x']\n",
            "line 2: port `tun:x`: unknown kind `tun`",
        ),
        ("name = 'a'\nmen = '64M'\n", "line 2: unknown field `men`"),
        ("[sysctl]\n", "no name: add name"),
        ("name = [\n", "line "),
    ] {
        fs::write(&file, text).expect("a file");
        fails_in(&dir, &["up", "-f", path], 2, words);
    }
    fails_in(
        &dir,
        &["up", "-f", "/nonexistent.toml"],
        2,
        "cannot read /nonexistent.toml",
    );
}

#[test]
fn a_runtime_folder_of_others() {
    use std::os::unix::fs::PermissionsExt;
    let dir = dir();
    let folder = dir.path().join("ring3");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("chmod");
    fails_in(&dir, &["ls"], 1, "can be entered by others: `chmod 700");
}

#[test]
fn nothing_is_left_behind() {
    let dir = dir();
    fails_in(
        &dir,
        &["up", "a", "--image", "/nonexistent/image"],
        1,
        "image",
    );
    let nodes = dir.path().join("ring3/nodes");
    let left: Vec<_> = fs::read_dir(nodes).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_limit_that_no_clock_has() {
    let dir = dir();
    let args = [
        "kunit",
        "--limit",
        "18446744073709551615",
        "--image",
        "/nosuch",
    ];
    let output = ring3(&dir).args(args).output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("is not in 0..=4294967295"), "{error}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_node_file_that_is_no_text() {
    let dir = dir();
    let file = dir.path().join("n.toml");
    fs::write(&file, b"name = 'a'\n# caf\xe9\n").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let words = "n.toml: line 2 is not UTF-8";
    fails_in(&dir, &["up", "-f", file], 2, words);
}

/// As `exec`: 125 for ring3's own failures, 126 and 127 as a shell has them.
#[test]
fn a_debugger_that_is_none() {
    for (line, status, words) in [
        (
            &["debug", "1", "--", "true"][..],
            125,
            "is no program of a node",
        ),
        (&["debug", "1", "--", "/tmp"], 126, "is a folder"),
        (
            &["debug", "1", "--", "no-such-debugger"],
            127,
            "not found in PATH",
        ),
    ] {
        fails(line, status, words);
    }
}
