// SPDX-License-Identifier: GPL-2.0
//! The kernel's unit tests on a node, and beside those of user-mode Linux of the same source.
//!
//! `kunit::passes` needs the image that `make kunit` builds, `kunit::as_on_uml` also the log
//! that tests/kunit/uml makes; without them they are ignored, and say what is missing. Both
//! take RING3_KUNIT_LOG, where there is one, as the log of a node that ran them before.

use crate::exec;
use crate::node::ring3;
use crate::paths;
use libtest_mimic::{Completion, Failed, Trial};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

/// What `ring3 kunit --json` prints.
#[derive(Deserialize)]
struct Report {
    complete: bool,
    passed: usize,
    failed: usize,
    suites: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    name: String,
    status: String,
    #[serde(default)]
    results: Vec<Outcome>,
}

/// A case that differs, or with a `*` at its end all cases that begin so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    case: String,
    uml: String,
    node: String,
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    known: Vec<Known>,
}

impl Known {
    fn matches(&self, case: &str, uml: &str, node: &str) -> bool {
        let name = match self.case.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => case == self.case,
        };
        name && self.uml == uml && self.node == node
    }
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::ignorable_test("kunit::passes", passes),
        Trial::ignorable_test("kunit::as_on_uml", as_on_uml),
    ]
}

fn report(args: &[&str]) -> Result<Report, String> {
    let mut command = ring3(["kunit", "--json"]);
    command.args(args);
    let outcome = exec::run(&mut command, LIMIT)?;
    serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))
}

/// A difference makes no sense where the report ends early.
fn whole(report: Report, whose: &str) -> Result<Report, Failed> {
    match report.complete {
        true => Ok(report),
        false => Err(format!("{whose}: ended after {} suites", report.suites.len()).into()),
    }
}

fn on_node() -> Result<Option<Report>, Failed> {
    if let Some(log) = std::env::var_os("RING3_KUNIT_LOG") {
        let log = report(&["--from", &log.to_string_lossy()])?;
        return Ok(Some(whole(log, "node")?));
    }
    if !paths::root().join("bin/ring3-kunit.image").is_file() {
        return Ok(None);
    }
    Ok(Some(whole(report(&[])?, "node")?))
}

fn passes() -> Result<Completion, Failed> {
    let Some(report) = on_node()? else {
        return Ok(Completion::ignored_with(
            "no bin/ring3-kunit.image: make kunit",
        ));
    };
    let suites: Vec<&str> = report
        .suites
        .iter()
        .filter(|suite| suite.status == "fail")
        .map(|suite| suite.name.as_str())
        .collect();
    match suites.is_empty() && report.failed == 0 && report.passed > 0 {
        true => Ok(Completion::Completed),
        false => Err(format!("{} failed, in {}", report.failed, suites.join(" ")).into()),
    }
}

/// SUITE.CASE[.PARAMETER] and how it went.
fn flatten(outcomes: &[Outcome], prefix: &str, into: &mut BTreeMap<String, String>) {
    for outcome in outcomes {
        let name = format!("{prefix}{}", outcome.name);
        match outcome.results.is_empty() {
            true => {
                into.insert(name, outcome.status.clone());
            }
            false => flatten(&outcome.results, &format!("{name}."), into),
        }
    }
}

fn cases(report: &Report) -> BTreeMap<String, String> {
    let mut cases = BTreeMap::new();
    flatten(&report.suites, "", &mut cases);
    cases
}

fn known(path: &Path) -> Result<Vec<Known>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    match file.known.iter().find(|k| k.reason.trim().is_empty()) {
        Some(k) => Err(format!("{}: '{}' has no reason", path.display(), k.case)),
        None => Ok(file.known),
    }
}

fn as_on_uml() -> Result<Completion, Failed> {
    let log = paths::root().join("build/kernel-uml/uml.ktap");
    if !log.is_file() {
        return Ok(Completion::ignored_with(
            "no build/kernel-uml/uml.ktap: tests/kunit/uml",
        ));
    }
    let Some(node) = on_node()? else {
        return Ok(Completion::ignored_with(
            "no bin/ring3-kunit.image: make kunit",
        ));
    };
    let uml = whole(report(&["--from", &log.to_string_lossy()])?, "UML")?;
    let known = known(&paths::root().join("tests/kunit/known.toml"))?;
    let (uml, node) = (cases(&uml), cases(&node));
    let passed = |cases: &BTreeMap<_, String>| cases.values().filter(|s| *s == "pass").count();
    println!(
        "passed: {} on UML, {} on a node",
        passed(&uml),
        passed(&node)
    );
    let mut used = vec![false; known.len()];
    let mut wrong = Vec::new();
    let absent = String::from("absent");
    let names: std::collections::BTreeSet<&String> = uml.keys().chain(node.keys()).collect();
    for name in names {
        let there = uml.get(name).unwrap_or(&absent);
        let here = node.get(name).unwrap_or(&absent);
        if there == here {
            continue;
        }
        match known.iter().position(|k| k.matches(name, there, here)) {
            Some(at) => used[at] = true,
            None => wrong.push(format!("{name}: UML {there}, node {here}")),
        }
    }
    for (entry, _) in known.iter().zip(&used).filter(|(_, used)| !**used) {
        wrong.push(format!(
            "{}: known.toml tells of a difference that is none",
            entry.case
        ));
    }
    match wrong.is_empty() {
        true => Ok(Completion::Completed),
        false => Err(wrong.join("\n").into()),
    }
}
