// SPDX-License-Identifier: GPL-2.0
//! `ring3 kunit` on logs of kernels that ran their tests: what it prints, how it ends.

use assert_cmd::Command;

const PASSED: &str = "\
KTAP version 1
1..2
    KTAP version 1
    # Subtest: a
    1..2
    ok 1 one
    ok 2 two # SKIP not here
ok 1 a
NET: something else
ok 2 b
    /init
";

fn kunit(log: &str, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ring3"))
        .args(["kunit", "--from", "-"])
        .args(args)
        .write_stdin(log)
        .output()
        .expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code().expect("a status"),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn all_passed() {
    let (status, out, err) = kunit(PASSED, &[]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(out.contains("    ok 1 one\n"), "{out}");
    assert!(!out.contains("NET:") && !out.contains("/init"), "{out}");
    assert!(
        out.ends_with("2 suites: 2 passed, 0 failed, 1 skipped\n"),
        "{out}"
    );
    let (_, out, _) = kunit(PASSED, &["--quiet"]);
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn one_failed() {
    let log = PASSED.replace("ok 2 b", "not ok 2 b");
    let (status, out, err) = kunit(&log, &["--quiet"]);
    assert_eq!((status, err.as_str()), (1, ""));
    assert!(out.starts_with("failed: b\n"), "{out}");
}

#[test]
fn the_kernel_ended() {
    let (status, _, err) = kunit(&PASSED.replace("ok 2 b\n", ""), &[]);
    assert_eq!(status, 1);
    assert!(err.contains("in suite 2 of 2"), "{err}");
    let (status, _, err) = kunit("", &[]);
    assert_eq!(status, 1);
    assert!(err.contains("no test was run"), "{err}");
}

#[test]
fn json() {
    let (status, out, _) = kunit(PASSED, &["--json"]);
    assert_eq!(status, 0);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["passed"], 2);
    assert_eq!(report["complete"], true);
    assert_eq!(report["suites"][0]["results"][1]["status"], "skip");
    assert_eq!(report["suites"][0]["results"][1]["why"], "not here");
}

#[test]
fn a_filter_is_one_word() {
    let output = Command::new(env!("CARGO_BIN_EXE_ring3"))
        .args(["kunit", "--suite", "a b"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}
