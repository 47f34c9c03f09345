// SPDX-License-Identifier: GPL-2.0
//! The kernel's unit tests on a node. Needs the image that `make kunit` builds; without it
//! the test is ignored, and says so.

use crate::exec;
use crate::node::ring3;
use crate::paths;
use libtest_mimic::{Completion, Failed, Trial};
use serde::Deserialize;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

/// What `ring3 kunit --json` prints.
#[derive(Deserialize)]
struct Report {
    complete: bool,
    passed: usize,
    failed: usize,
    suites: Vec<Suite>,
}

#[derive(Deserialize)]
struct Suite {
    name: String,
    status: String,
}

pub fn trials() -> Vec<Trial> {
    vec![Trial::ignorable_test("kunit::passes", passes)]
}

fn passes() -> Result<Completion, Failed> {
    if !paths::root().join("bin/ring3-kunit.image").is_file() {
        return Ok(Completion::ignored_with(
            "no bin/ring3-kunit.image: make kunit",
        ));
    }
    let outcome = exec::run(&mut ring3(["kunit", "--json"]), LIMIT)?;
    let report: Report =
        serde_json::from_str(&outcome.stdout).map_err(|e| format!("{e}: {}", outcome.report()))?;
    let failed: Vec<&str> = report
        .suites
        .iter()
        .filter(|suite| suite.status == "fail")
        .map(|suite| suite.name.as_str())
        .collect();
    match outcome.ok() && report.complete && report.failed == 0 && report.passed > 0 {
        true => Ok(Completion::Completed),
        false => Err(format!(
            "{}, {} suites, {} cases failed: {}",
            outcome.end,
            report.suites.len(),
            report.failed,
            failed.join(" ")
        )
        .into()),
    }
}
