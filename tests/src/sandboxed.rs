// SPDX-License-Identifier: GPL-2.0
//! Programs in a sandbox: `tests/run --sandbox`.
//!
//! The oracle programs, and the conversations of programs on two linked nodes, as elsewhere, but each node is a sandbox
//! (tests/ring3-sandbox says with which files). A sandbox refuses some things on purpose. tests/sandbox.toml names the programs that come to another
//! result there, why, and by which words one knows that result. One that is named and passes is an error, and so is one that fails without these
//! words, or without being named. `--short` runs those that tell most, as `make test` does.

use crate::apps::{self, Scenario, Topology, Verdict};
use crate::known::User;
use crate::{Options, oracle, paths};
use libtest_mimic::{Completion, Failed, Trial};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};

/// Programs that come to another result for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Except {
    pub reason: String,
    /// "root" or "ordinary", where only one of them sees it.
    pub user: Option<User>,
    /// They pass now and then, which is no error.
    #[serde(default)]
    pub varies: bool,
    /// Each with words that its report has then.
    pub tests: BTreeMap<String, String>,
}

impl Except {
    pub fn is_for(&self, user: User) -> bool {
        self.user.is_none_or(|it| it == user)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    short: HashSet<String>,
    #[serde(default)]
    except: Vec<Except>,
}

/// tests/sandbox.toml.
fn file() -> Result<File, String> {
    let path = paths::root().join("tests/sandbox.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let fail = |what: &str| Err(format!("{}: {what}", path.display()));
    let known = names()?;
    if let Some(test) = file.short.iter().find(|it| !known.contains(it)) {
        return fail(&format!("no program '{test}'"));
    }
    let mut seen = HashSet::new();
    for except in &file.except {
        if except.reason.trim().is_empty() {
            return fail(&format!("{:?} without a reason", except.tests));
        }
        for (test, words) in &except.tests {
            if !known.contains(test) {
                return fail(&format!("no program '{test}'"));
            }
            if words.trim().is_empty() {
                return fail(&format!("no words of what '{test}' reports"));
            }
            for user in User::ALL.into_iter().filter(|it| except.is_for(*it)) {
                if !seen.insert((test, user)) {
                    return fail(&format!("'{test}' twice"));
                }
            }
        }
    }
    Ok(file)
}

/// Programs that come to another result.
pub fn exceptions() -> Result<Vec<Except>, String> {
    Ok(file()?.except)
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
    let file = file()?;
    let user = User::current();
    let ours = file.except.into_iter().filter(|it| it.is_for(user));
    let mut excepted: BTreeMap<String, Expected> = BTreeMap::new();
    for Except {
        reason,
        tests,
        varies,
        ..
    } in ours
    {
        for (test, words) in tests {
            let reason = reason.clone();
            excepted.insert(
                test,
                Expected {
                    reason,
                    varies,
                    words,
                },
            );
        }
    }
    let mut trials = Vec::new();
    let mut add = |name: String, check: Box<dyn FnOnce() -> Result<Verdict, String> + Send>| {
        if options.short && !file.short.contains(&name) {
            return;
        }
        let excepted = excepted.remove(&name);
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

/// Of a program that comes to another result.
struct Expected {
    reason: String,
    varies: bool,
    words: String,
}

fn judge(
    result: Result<Verdict, String>,
    excepted: Option<&Expected>,
) -> Result<Completion, Failed> {
    match (result, excepted) {
        (Ok(Verdict::Ignored(why)), _) => Ok(Completion::ignored_with(why)),
        (Ok(Verdict::Passed), None | Some(Expected { varies: true, .. })) => {
            Ok(Completion::Completed)
        }
        (Ok(Verdict::Passed), Some(Expected { reason, .. })) => Err(Failed::from(format!(
            "passes, but tests/sandbox.toml expects a difference ({reason}): remove the entry"
        ))),
        (Err(why), Some(Expected { words, .. })) if why.contains(words) => {
            Ok(Completion::Completed)
        }
        (Err(why), Some(Expected { reason, words, .. })) => Err(Failed::from(format!(
            "differs otherwise than tests/sandbox.toml says ({reason}): no words '{words}' in\n{why}"
        ))),
        (Err(why), None) => Err(Failed::from(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An excepted program that fails in another way was taken for one that fails as it should.
    #[test]
    fn another_failure_is_one() {
        let expected = Expected {
            reason: "no capabilities".into(),
            varies: false,
            words: "EPERM".into(),
        };
        let fails = |why: &str| judge(Err(why.into()), Some(&expected));
        assert!(fails("setuid(1) -> EPERM").is_ok());
        assert!(fails("timeout").is_err());
        assert!(judge(Ok(Verdict::Passed), Some(&expected)).is_err());
        assert!(judge(Ok(Verdict::Passed), None).is_ok());
        assert!(judge(Err("EPERM".into()), None).is_err());
    }

    #[test]
    fn the_list_is_right() {
        assert!(file().is_ok());
    }
}
