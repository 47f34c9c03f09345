// SPDX-License-Identifier: GPL-2.0
//! Several nodes of one file, and their names for each other. Needs `make image gate`.

mod place;

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use place::{eventually, finish, signal, spawn, with_usual_signals, Place};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/compose")
        .join(name)
}

fn compose(place: &Place, verb: &str, path: &Path) -> String {
    place.ok(&["compose", verb, path.to_str().expect("UTF-8")])
}

/// The log of a node whose programs said something outlives it.
fn nothing_is_up(place: &Place) {
    assert_eq!(place.ok(&["ls", "--json"]).trim(), "[]");
    let left = place.left();
    let logs = left
        .iter()
        .all(|it| it.extension().is_some_and(|e| e == "log"));
    assert!(logs, "{left:?}");
}

/// The name of one node leads to it on another, and to nothing on the host.
#[test]
fn two_nodes_by_name() {
    let place = Place::new();
    let file = example("web.toml");
    compose(&place, "up", &file);
    let page = place.ok(&["exec", "b", "curl", "-sS", "http://a:8000/"]);
    assert!(page.contains("Directory listing"), "{page}");
    let hosts = place.ok(&["exec", "b", "getent", "hosts", "a"]);
    assert!(hosts.starts_with("10.0.0.1"), "{hosts}");
    // By another way to the same file, and in the host's eyes.
    let file_of_b = place.ok(&["exec", "b", "sh", "-c", "cd /etc && cat hosts"]);
    assert!(file_of_b.contains("10.0.0.1 a\n"), "{file_of_b}");
    let of_the_host = fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(!of_the_host.contains("10.0.0.1 a\n"), "{of_the_host}");
    assert_eq!(place.stat("a")["ports"][0]["peer"], "b");
    compose(&place, "down", &file);
    compose(&place, "down", &file);
    nothing_is_up(&place);
}

#[test]
fn a_router_with_routes() {
    let place = Place::new();
    let file = example("router.toml");
    compose(&place, "up", &file);
    let page = place.ok(&["exec", "left", "curl", "-sS", "http://right:8000/"]);
    assert!(page.contains("Directory listing"), "{page}");
    let mirror = place.ok(&["exec", "right", "getent", "hosts", "mirror"]);
    assert!(mirror.starts_with("10.2.0.1"), "{mirror}");
    // No name server is asked for the machine's own name, which the server above wants before it listens: none answers here.
    let own = place.ok(&["exec", "left", "sh", "-c", "getent hosts $(uname -n)"]);
    assert!(own.starts_with("127.0.1.1"), "{own}");
    compose(&place, "down", &file);
    nothing_is_up(&place);
}

/// Which node of which file has the program that is not there; none is started.
#[test]
fn a_program_that_is_not_there() {
    let place = Place::new();
    let file = place.dir.path().join("net.toml");
    let text = "[node.a]\n[node.b]\nprogram = [{ command = ['nosuchprogram'] }]\n";
    fs::write(&file, text).expect("write");
    let path = file.to_str().expect("UTF-8").to_owned();
    let words = format!("{path}: node `b`: nosuchprogram: not found in PATH");
    place.fails(&["compose", "up", &path], 127, &words);
    fs::remove_file(&file).expect("remove");
    nothing_is_up(&place);
}

/// One that fails takes those with it that were started for it.
#[test]
fn all_or_none() {
    let place = Place::new();
    let file = place.dir.path().join("net.toml");
    fs::write(
        &file,
        "[node.a]\n[node.b]\nroute = ['default via 10.9.9.9']\n",
    )
    .expect("write");
    let path = file.to_str().expect("UTF-8").to_owned();
    place.fails(
        &["compose", "up", &path],
        1,
        "cannot add the route 0.0.0.0/0 via 10.9.9.9",
    );
    assert_eq!(place.ok(&["ls", "--json"]).trim(), "[]");
    fs::write(&file, "[node.a]\nport = ['link:ab']\n").expect("write");
    place.fails(
        &["compose", "up", &path],
        2,
        "link `ab` of node `a` has 1 end",
    );
    let output = place.run(&["compose", "up", "/nonexistent.toml"]);
    assert_eq!(output.status.code(), Some(2));
}

/// `--wait` waits for servers of all nodes, those that were up before too. A server that never comes takes down the nodes that were started.
#[test]
fn until_servers_listen() {
    let place = Place::new();
    let file = place.dir.path().join("net.toml");
    let text = "[node.a]\nprogram = [{ command = ['sh', '-c', 'sleep 0.5; exec python3 -m http.server 8000'] }]\n[node.b]\n";
    fs::write(&file, text).expect("write");
    let path = file.to_str().expect("UTF-8").to_owned();
    place.ok(&["compose", "up", "--wait", "a tcp 8000", &path]);
    let page = place.ok(&["exec", "a", "curl", "-sS", "http://127.0.0.1:8000/"]);
    assert!(page.contains("Directory listing"), "{page}");
    place.ok(&["compose", "up", "--wait=a:tcp:8000", &path]);
    compose(&place, "down", &file);
    for (wait, why) in [
        ("tcp 8000", "is nothing to wait for"),
        ("c tcp 8000", "has no node `c`"),
    ] {
        place.fails(&["compose", "up", "--wait", wait, &path], 2, why);
    }
    fs::remove_file(&file).expect("remove");
    nothing_is_up(&place);
}

/// Sends `number` to a start that waits for what never comes: the command alone, or its `ring3 wait` too, as a
/// terminal does.
fn interrupt(place: &Place, args: &[&str], last: &str, number: Signal) {
    use std::os::unix::process::CommandExt;
    let mut command = with_usual_signals(&place.command(args));
    let child = spawn(command.process_group(0));
    let joined = || {
        let stat = place.run(&["stat", last, "--json"]).stdout;
        let stat: serde_json::Value = serde_json::from_slice(&stat).unwrap_or_default();
        !stat["procs"].as_array().is_none_or(Vec::is_empty)
    };
    eventually("it waits for the port", joined);
    match number {
        Signal::SIGINT => {
            let group = nix::unistd::Pid::from_raw(child.id() as i32);
            nix::sys::signal::killpg(group, number).expect("killpg");
        }
        _ => signal(&child, number),
    }
    let output = finish(child);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + number as i32), "{said}");
    assert!(said.contains("interrupted"), "{said}");
}

#[test]
fn an_interrupted_start_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("net.toml");
    fs::write(&file, "[node.a]\n[node.b]\nwait = ['tcp 9']\n").expect("write");
    let file = file.to_str().expect("UTF-8");
    for number in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let place = Place::new();
        interrupt(&place, &["compose", "up", file], "b", number);
        nothing_is_up(&place);
        interrupt(&place, &["up", "a", "--wait", "tcp:9"], "a", number);
        nothing_is_up(&place);
    }
}

/// The same for a server of the command line. Its node was up before: that stays, and what this start has made goes.
#[test]
fn an_interrupted_wait_leaves_what_was_up() {
    let place = Place::new();
    let file = place.dir.path().join("net.toml");
    fs::write(&file, "[node.a]\n[node.b]\n").expect("write");
    let path = file.to_str().expect("UTF-8");
    for number in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let words = ["compose", "up", "--wait", "a tcp 9", path];
        interrupt(&place, &words, "a", number);
        nothing_is_up(&place);
        place.ok(&["up", "a"]);
        interrupt(&place, &words, "a", number);
        assert_eq!(
            place.ok(&["ls"]).lines().count(),
            2,
            "a alone, and the head"
        );
        let waits = || place.stat("a")["procs"].as_array().map(Vec::len) != Some(0);
        eventually("its wait has ended", || !waits());
        place.ok(&["down", "a"]);
    }
}

#[test]
fn names_and_routes_of_one_node() {
    let place = Place::new();
    place.ok(&[
        "up",
        "a",
        "--port",
        "link:x,addr=10.0.0.1/24",
        "--route",
        "10.7.0.0/16 via 10.0.0.2",
        "--add-host",
        "db=10.0.0.9",
        "--dns",
        "10.0.0.3",
    ]);
    let route = place.ok(&["exec", "a", "ip", "route"]);
    assert!(route.contains("10.7.0.0/16 via 10.0.0.2"), "{route}");
    let resolv = place.ok(&["exec", "a", "cat", "/etc/resolv.conf"]);
    assert_eq!(resolv, "nameserver 10.0.0.3\n");
    let db = place.ok(&["exec", "a", "getent", "hosts", "db"]);
    assert!(db.starts_with("10.0.0.9"), "{db}");
    // A node without names of its own has the host's.
    place.ok(&["up", "b"]);
    let hosts = place.ok(&["exec", "b", "cat", "/etc/hosts"]);
    assert_eq!(hosts, fs::read_to_string("/etc/hosts").expect("the host's"));
}

/// A link without its other end says so; one whose name looks mistyped is named at once.
#[test]
fn a_mistyped_link() {
    let place = Place::new();
    place.ok(&["up", "a", "--port", "link:wan"]);
    assert!(place.ok(&["ls"]).contains("link:wan, no other end"));
    assert!(place.ok(&["stat", "a"]).contains("no other end"));
    let output = place.run(&["up", "b", "--port", "link:wna"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("link `wna` has no other end") && said.contains("link `wan`"),
        "{said}"
    );
    place.ok(&["down", "b"]);
    let output = place.run(&["up", "b", "--port", "link:want"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("link `want` has no other end"), "{said}");
    place.ok(&["down", "b"]);
    let output = place.run(&["up", "b", "--port", "link:wan"]);
    assert!(output.stderr.is_empty(), "{output:?}");
    assert!(place.ok(&["stat", "a"]).contains("to b"));
}
