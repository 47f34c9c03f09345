// SPDX-License-Identifier: GPL-2.0
//! `graph`, `ls --all-users` and the completion of nodes' names. Needs `make image gate`.

mod place;

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use place::{finish, spawn, Place};

#[test]
fn graph_of_two_nodes() {
    let place = Place::new();
    place.ok(&["up", "a", "--port", "link:ab,addr=192.0.2.1/24"]);
    place.ok(&["up", "b", "--port", "link:ab,addr=192.0.2.2/24"]);
    let text = place.ok(&["graph"]);
    assert!(text.contains("└─ ab 192.0.2.1/24 ── node b\n"), "{text}");
    let picture = place.ok(&["graph", "--svg"]);
    assert_eq!(picture.matches("class='link'").count(), 1, "{picture}");
}

/// A table for each look where there is no terminal.
#[test]
fn top_without_a_terminal() {
    let place = Place::new();
    place.ok(&["up", "a", "--mem", "64M"]);
    place.ok(&["up", "b", "--mem", "64M"]);
    let text = place.ok(&["top", "-n", "2", "--every", "0.3"]);
    assert_eq!(text.matches("NODE").count(), 2, "{text}");
    let rows = text.lines().filter(|line| line.starts_with(['a', 'b']));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 4, "{text}");
    for (row, name) in rows.iter().zip(["a", "b", "a", "b"]) {
        assert_eq!((row[0], row[1], row.len()), (name, "up", 13), "{text}");
        assert!(row[12].parse::<u64>().is_ok_and(|mib| mib > 0), "{text}");
    }
    assert_eq!(place.run(&["top", "-n", "0"]).status.code(), Some(2));

    // It ends when its reader has.
    for format in [
        &["top", "--every", "0.1"][..],
        &["top", "--every", "0.1", "--json"],
    ] {
        let mut child = place
            .command(format)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut some = [0; 1];
        let mut out = child.stdout.take().expect("a pipe");
        std::io::Read::read_exact(&mut out, &mut some).expect("some output");
        drop(out);
        assert!(finish(child).status.success(), "{format:?}");
    }

    let text = place.ok(&["top", "--json", "-n", "2", "--every", "0.3"]);
    let looks: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(looks.len(), 2, "{text}");
    for look in looks {
        let nodes = look.as_array().expect("all nodes");
        assert_eq!(nodes.len(), 2, "{text}");
        for (node, name) in nodes.iter().zip(["a", "b"]) {
            assert_eq!(
                (&node["name"], &node["state"]),
                (&name.into(), &"up".into())
            );
            assert!(node["memory"].as_u64() > Some(0), "{text}");
            for rate in [
                "cpu_percent",
                "received_bytes",
                "tcp_retransmitted",
                "calls",
            ] {
                assert!(node[rate].is_number(), "{rate} in {text}");
            }
        }
    }
}

/// A script of commands: the node's files are read and written, the host's are not there.
#[test]
fn console_by_a_script() {
    let place = Place::new();
    place.ok(&["up", "a", "--mem", "64M"]);
    let script = "cd /proc/sys/net/ipv4\necho 42 > ip_default_ttl\ncat ip_default_ttl\npwd\nls /sys/class/net\n\
        cat /proc/net/dev\nexit\ncat nothing\n";
    let (status, said, _) = typed(&place, script);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.starts_with("42\n/proc/sys/net/ipv4\n") && said.contains("\nlo/\n"),
        "{said}"
    );
    assert!(said.contains("Receive") && said.contains("lo:"), "{said}");
    // The node's own, and not the host's.
    let program = [
        "exec",
        "a",
        "--",
        "cat",
        "/proc/sys/net/ipv4/ip_default_ttl",
    ];
    assert_eq!(place.ok(&program), "42\n");
    let (status, said, complaints) = typed(&place, "cat /etc/passwd\nfrobnicate\npwd\n");
    assert_eq!((status, said.as_str()), (Some(1), "/\n"), "{complaints}");
    assert!(complaints.contains("not the node's"), "{complaints}");
    assert!(
        complaints.contains("no command `frobnicate`"),
        "{complaints}"
    );
}

/// Status, output and complaints of a console that reads this.
fn typed(place: &Place, script: &str) -> (Option<i32>, String, String) {
    let path = place.dir.path().join("script");
    std::fs::write(&path, script).expect("a file");
    let mut command = place.command(&["console", "a"]);
    command.stdin(std::fs::File::open(path).expect("a file"));
    let output = finish(spawn(&mut command));
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// What bash offers for the last of these words.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let exe = env!("CARGO_BIN_EXE_ring3");
    let folder = std::path::Path::new(exe).parent().expect("a folder");
    let list = words.iter().map(|word| format!("'{word}'"));
    let script = format!(
        "PATH={}:$PATH; source <(ring3 completion bash); COMP_WORDS=({}); COMP_CWORD={}; \
         _ring3_with_nodes ring3 \"${{COMP_WORDS[COMP_CWORD]}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        folder.display(),
        list.collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let mut command = Command::new("bash");
    command
        .args(["-c", &script])
        .env("XDG_RUNTIME_DIR", place.dir.path());
    let output = finish(spawn(&mut command));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_offers_names_of_nodes() {
    let place = Place::new();
    for name in ["left", "lower", "right"] {
        place.ok(&["up", name, "--mem", "64M"]);
    }
    assert_eq!(offered(&place, &["ring3", "exec", "l"]), ["left", "lower"]);
    assert_eq!(offered(&place, &["ring3", "down", "left", "r"]), ["right"]);
    assert_eq!(offered(&place, &["ring3", "stat", "x"]), [""]);
    // The rest is clap's.
    assert!(offered(&place, &["ring3", "stat", "--js"]).contains(&"--json".to_owned()));
    assert!(offered(&place, &["ring3", "comp"]).contains(&"compose".to_owned()));
}

#[test]
fn other_users_nodes() {
    let place = Place::new();
    if !nix::unistd::geteuid().is_root() {
        place.fails(&["ls", "--all-users"], 1, "only root sees");
        return;
    }
    // The node of a user without a session, where such nodes are looked for.
    const USER: u32 = 54_321;
    let folder = std::path::PathBuf::from(format!("/tmp/ring3-{USER}"));
    // The clone may lie where only root comes to.
    let open = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(open.path(), Permissions::from_mode(0o755)).expect("to open it");
    let copy = |from: &OsStr, name: &str| {
        let to = open.path().join(name);
        std::fs::copy(from, &to).expect("a copy");
        to
    };
    let it = place.command(&[]);
    let exe = copy(it.get_program(), "ring3");
    let value = |key: &str| {
        let mut all = it.get_envs();
        all.find(|(name, _)| *name == key)
            .and_then(|(_, value)| value)
    };
    let image = copy(value("RING3_IMAGE").expect("it"), "image");
    let gate = copy(value("RING3_GATE").expect("it"), "gate");
    let as_user = |args: &[&str]| {
        let mut command = Command::new(&exe);
        command
            .args(args)
            .env_remove("XDG_RUNTIME_DIR")
            .env("RING3_IMAGE", &image)
            .env("RING3_GATE", &gate)
            .stdin(Stdio::null())
            .current_dir("/")
            .uid(USER)
            .gid(USER);
        command
    };
    let up = finish(spawn(&mut as_user(&["up", "theirs", "--mem", "64M"])));
    assert!(up.status.success(), "{up:?}");
    let text = place.ok(&["ls", "--all-users"]);
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["ls", "--all-users", "--json"])).expect("JSON");
    // Root's own list does not have it.
    assert!(!place.ok(&["ls"]).contains("theirs"));
    let down = finish(spawn(&mut as_user(&["down", "theirs"])));
    let _ = std::fs::remove_dir_all(&folder);
    assert!(down.status.success(), "{down:?}");
    let line = text.lines().find(|it| it.contains("theirs"));
    let words: Vec<_> = line.unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        words.get(..3),
        Some(&["54321", "theirs", "up"][..]),
        "{text}"
    );
    let nodes = json.as_array().expect("a list");
    let node = nodes.iter().find(|it| it["name"] == "theirs");
    assert_eq!(node.expect("it")["user"], "54321");
}
