// SPDX-License-Identifier: GPL-2.0
//! Nodes that are looked at, or taken down, while they come and go. Needs `make image gate`.

mod place;

use std::io::{BufRead, BufReader};

use place::{eventually, finish, spawn, started, with_silent_passt, Place};

/// A node takes a moment to go down when a program does not end on SIGTERM.
#[test]
fn two_take_a_node_down() {
    let place = Place::new();
    for down in [&["down", "a"][..], &["down", "--all"]] {
        place.ok(&["up", "a"]);
        let script = "trap '' TERM; echo; read x";
        let mut program = started(&place, &["exec", "a", "--", "sh", "-c", script]);
        let first = spawn(&mut place.command(down));
        let state = || {
            let text = place.ok(&["ls", "--json"]);
            let nodes: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert!(nodes[0].get("error").is_none(), "{text}");
            nodes[0]["state"].as_str().map(str::to_owned)
        };
        eventually("it goes down", || state().as_deref() != Some("up"));
        assert_eq!(state().as_deref(), Some("down"));
        assert!(place.ok(&["ls"]).contains("down"));
        place.fails(&["stat", "a"], 1, "node `a` is going down");
        for output in [place.run(down), finish(first)] {
            assert!(output.status.success(), "{down:?}: {output:?}");
        }
        drop(program.stdin.take());
        finish(program);
    }
    place.is_empty();
}

/// A node that starts has its name and no sockets yet.
#[test]
fn a_node_that_starts() {
    let place = Place::new();
    let up = spawn(&mut with_silent_passt(
        &place,
        &["up", "a", "--port", "passt"],
    ));
    let there = place.dir.path().join("bin/there");
    eventually("passt is there", || there.exists());
    let nodes = place.ok(&["ls", "--json"]);
    let nodes: serde_json::Value = serde_json::from_str(&nodes).expect("JSON");
    assert_eq!(nodes[0]["state"], "booting", "{nodes}");
    assert!(place.ok(&["ls"]).contains("booting"));
    let words = "node `a` is still starting";
    place.fails(&["stat", "a"], 1, words);
    place.fails(&["log", "a"], 1, words);
    place.fails(&["exec", "a", "--", "true"], 125, words);
    // It waits for its turn; this start comes to nothing.
    place.ok(&["down", "a"]);
    assert_eq!(finish(up).status.code(), Some(1));
    place.is_empty();
}

#[test]
fn a_log_that_is_followed_ends_with_its_node() {
    let place = Place::new();
    place.ok(&["up", "a"]);
    let mut follow = spawn(&mut place.command(&["log", "-f", "a"]));
    let mut line = String::new();
    let out = follow.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    place.ok(&["down", "a"]);
    place.ok(&["up", "a"]);
    let output = finish(follow);
    assert!(output.status.success(), "{output:?}");
}
