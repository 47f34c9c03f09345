// SPDX-License-Identifier: GPL-2.0
//! Programs in a sandbox: `tests/run --sandbox`.
//!
//! The oracle programs, and the conversations of programs on two linked nodes, as elsewhere, but each node is a sandbox
//! (tests/ring3-sandbox says with which files). A sandbox refuses some things on purpose. tests/sandbox.toml names the programs that come to another
//! result there, and why. One that is named and passes is an error, and so is one that fails and is not named.

use crate::apps::{self, Scenario, Topology, Verdict};
use crate::{Options, oracle, paths};
use libtest_mimic::{Completion, Failed, Trial};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Programs that come to another result for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Except {
    pub tests: Vec<String>,
    pub reason: String,
    /// It passes now and then: neither is an error.
    #[serde(default)]
    pub varies: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    except: Vec<Except>,
}

/// tests/sandbox.toml.
pub fn exceptions() -> Result<Vec<Except>, String> {
    let path = paths::root().join("tests/sandbox.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let fail = |what: &str| Err(format!("{}: {what}", path.display()));
    let known = names()?;
    let mut seen = BTreeMap::new();
    for except in &file.except {
        if except.reason.trim().is_empty() {
            return fail(&format!("{:?} without a reason", except.tests));
        }
        for test in &except.tests {
            if !known.contains(test) {
                return fail(&format!("no program '{test}'"));
            }
            if seen.insert(test, ()).is_some() {
                return fail(&format!("'{test}' twice"));
            }
        }
    }
    Ok(file.except)
}

/// All that is run in sandboxes: `oracle::NAME`, `apps::NAME`.
pub fn names() -> Result<Vec<String>, String> {
    let programs = oracle::programs()?.into_iter();
    let programs = programs.map(|(name, _)| format!("oracle::{name}"));
    let linked = scenarios().map(|it| format!("apps::{}", it.name));
    Ok(programs.chain(linked).collect())
}

fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    apps::scenarios().filter(|it| it.topologies.contains(&Topology::Link))
}

/// One trial for each: `sandbox::oracle::NAME`, `sandbox::apps::NAME`.
pub fn trials(options: Options) -> Result<Vec<Trial>, String> {
    let mut excepted: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for except in exceptions()? {
        let reason = (except.reason, except.varies);
        excepted.extend(except.tests.into_iter().map(|it| (it, reason.clone())));
    }
    let mut trials = Vec::new();
    let mut add = |name: String, check: Box<dyn FnOnce() -> Result<Verdict, String> + Send>| {
        let excepted = excepted.get(&name).cloned();
        trials.push(Trial::ignorable_test(
            format!("sandbox::{name}"),
            move || judge(check(), excepted.as_ref()),
        ));
    };
    for (name, source) in oracle::programs()? {
        let test = format!("oracle::{name}");
        add(
            test,
            Box::new(move || oracle::in_sandbox(&name, &source, options)),
        );
    }
    for scenario in scenarios() {
        let test = format!("apps::{}", scenario.name);
        add(
            test,
            Box::new(|| apps::run_scenario(scenario, Topology::Link)),
        );
    }
    Ok(trials)
}

fn judge(
    result: Result<Verdict, String>,
    excepted: Option<&(String, bool)>,
) -> Result<Completion, Failed> {
    match (result, excepted) {
        (Ok(Verdict::Ignored(why)), _) => Ok(Completion::ignored_with(why)),
        (Ok(Verdict::Passed), Some((reason, false))) => Err(Failed::from(format!(
            "passes, but tests/sandbox.toml expects a difference ({reason}): remove the entry"
        ))),
        (Ok(Verdict::Passed), _) | (Err(_), Some(_)) => Ok(Completion::Completed),
        (Err(why), None) => Err(Failed::from(why)),
    }
}
