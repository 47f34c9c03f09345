// SPDX-License-Identifier: GPL-2.0
//! Help, manual page, completion, doctor: what the command says of itself.

use assert_cmd::Command;

fn ring3(args: &[&str]) -> (i32, String) {
    let dir = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_ring3"))
        .env("XDG_RUNTIME_DIR", dir.path())
        .args(args)
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    (output.status.code().expect("a status"), text)
}

const VERBS: [&str; 19] = [
    "run",
    "up",
    "compose",
    "exec",
    "debug",
    "connect",
    "socks",
    "wait",
    "down",
    "ls",
    "graph",
    "log",
    "stat",
    "metrics",
    "sim",
    "kunit",
    "doctor",
    "completion",
    "man",
];

#[test]
fn help_of_each() {
    let (status, text) = ring3(&["--help"]);
    assert_eq!(status, 0);
    for verb in VERBS {
        assert!(text.contains(&format!("  {verb} ")), "{verb} in {text}");
        let (status, text) = ring3(&[verb, "--help"]);
        assert_eq!(status, 0, "{verb}");
        assert!(text.contains("Usage: ring3"), "{verb}: {text}");
    }
}

#[test]
fn long_help_explains_ports() {
    for verb in ["run", "up"] {
        let (_, text) = ring3(&[verb, "--help"]);
        for word in [
            "link:NAME",
            "tap:INTERFACE",
            "passt",
            "vhost:SOCKET",
            "addr=",
            "gw=",
            "host=",
            "pcap=",
        ] {
            assert!(text.contains(word), "{verb}: {word}");
        }
        let (_, short) = ring3(&[verb, "-h"]);
        assert!(short.len() < text.len());
    }
}

#[test]
fn version() {
    let (status, text) = ring3(&["--version"]);
    assert_eq!(
        (status, text.as_str()),
        (0, concat!("ring3 ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

#[test]
fn the_manual_page_has_everything() {
    let (status, page) = ring3(&["man"]);
    assert_eq!(status, 0);
    for verb in VERBS {
        assert!(page.contains(&format!("ring3 {verb}")), "{verb}");
    }
    for section in ["PORTS", "NODE FILE", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(page.contains(section), "{section}");
    }
}

#[test]
fn the_manual_page_in_docs_is_this_one() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ring3.1");
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        kept == ring3(&["man"]).1,
        "docs/ring3.1 is out of date: run `make man`"
    );
}

#[test]
fn completion_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let (status, script) = ring3(&["completion", shell]);
        assert_eq!(status, 0);
        assert!(script.contains("doctor"), "{shell}");
    }
    assert_eq!(ring3(&["completion", "tcsh"]).0, 2);
}

#[test]
fn the_doctor_speaks_json() {
    let (status, text) = ring3(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let checks = report["checks"].as_array().expect("a list");
    assert!(checks.len() > 15);
    let missing = |check: &serde_json::Value| check["grade"] == "missing";
    assert_eq!(report["usable"], !checks.iter().any(missing));
    assert_eq!(status == 0, report["usable"] == true);
    for check in checks {
        assert!(
            !check["therefore"].as_str().expect("text").is_empty(),
            "{check}"
        );
        if missing(check) {
            assert!(check["remedy"].is_string(), "{check}");
        }
    }
}

#[test]
fn no_nodes_are_an_empty_list() {
    assert_eq!(ring3(&["ls", "--json"]), (0, "[]\n".to_owned()));
    let (status, text) = ring3(&["ls"]);
    assert_eq!(status, 0);
    assert!(text.starts_with("NAME"));
    assert_eq!(text.lines().count(), 1);
}
