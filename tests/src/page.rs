// SPDX-License-Identifier: GPL-2.0
//! docs/compatibility.md: made from the tests themselves, never by hand.
//!
//! `make compat` writes the page. It says what the tests exercise, not how a run of them went: `make test` fails
//! if one of them does. So the page is a function of the sources, and the trial `page::is_current` compares it
//! with what would be written now. CPython's tests and the kernel's selftests take hours; the page has their
//! last recorded results (tests/results).

use crate::apps::{self, Scenario, Topology};
use crate::known::User;
use crate::oracle;
use crate::{paths, sandboxed};
use libtest_mimic::{Failed, Trial};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What `tests/cpython --json` says of a module.
#[derive(Debug, Deserialize)]
struct Module {
    python: String,
    host: BTreeMap<String, u32>,
    node: BTreeMap<String, u32>,
    /// Test, result on the node, reason.
    known: Vec<(String, String, String)>,
    new: Vec<(String, String, String)>,
}

/// What `tests/kselftest/run --merge` says of a test.
#[derive(Debug, Deserialize)]
struct Selftest {
    host: String,
    /// It may have been left out where the host does not pass (`--quick`).
    #[serde(default)]
    node: String,
    #[serde(default)]
    again: bool,
}

/// tests/kselftest/known.toml.
#[derive(Debug, Deserialize)]
struct Selftests {
    known: Vec<KnownSelftest>,
}

#[derive(Debug, Deserialize)]
struct KnownSelftest {
    test: String,
    node: String,
    reason: String,
}

/// tests/limits.toml: what does not work, on purpose or not yet.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    limit: Vec<Limit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    what: String,
    reason: String,
    /// Tests that show it, where there are some.
    #[serde(default)]
    tests: Vec<String>,
}

fn file() -> PathBuf {
    paths::root().join("docs/compatibility.md")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn limits() -> Result<Vec<Limit>, String> {
    let path = paths::root().join("tests/limits.toml");
    let limits: Limits =
        toml::from_str(&read(&path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(limits.limit)
}

/// The trial that compares the page with what would be written.
pub fn trial(tests: &[String]) -> Trial {
    let tests = tests.to_vec();
    Trial::test("page::is_current", move || {
        current(&tests).map_err(Failed::from)
    })
}

fn current(tests: &[String]) -> Result<(), String> {
    let (text, wanted) = (read(&file())?, page(tests)?);
    let Some((line, (is, should))) = (1..)
        .zip(text.lines().zip(wanted.lines()))
        .find(|(_, (is, should))| is != should)
    else {
        return match text.len() == wanted.len() {
            true => Ok(()),
            false => Err("docs/compatibility.md is stale: write it anew by `make compat`".into()),
        };
    };
    Err(format!(
        "docs/compatibility.md is stale: write it anew by `make compat`. Line {line} is\n{is}\n\
         and would be\n{should}"
    ))
}

/// What stands for a test on the page: a scenario has one row for all of its topologies.
fn row(test: &str) -> String {
    for scenario in apps::scenarios() {
        for &topology in scenario.topologies {
            if test == format!("apps::{}", scenario.test(topology)) {
                return format!("apps::{}", scenario.name);
            }
        }
    }
    test.to_string()
}

/// Results of suites that take hours, as `tests/cpython` and `tests/kselftest/run` record them.
fn results_file(name: &str) -> PathBuf {
    paths::root().join("tests/results").join(name)
}

/// Writes the page. `tests` are all there are.
pub fn write(tests: &[String]) -> Result<(), String> {
    std::fs::write(file(), page(tests)?).map_err(|e| format!("{}: {e}", file().display()))
}

fn page(tests: &[String]) -> Result<String, String> {
    let mut page = String::from(
        "# Compatibility\n\n\
         Which programs and behaviours does ring3 test? `make compat` writes this page from the tests; nobody edits \
         it. `make test` runs the tests named here and fails if one fails; those marked *long* run by `make test-long` alone.\n",
    );
    programs(&mut page);
    others(&mut page, tests);
    semantics(&mut page, tests)?;
    sandboxes(&mut page)?;
    python(&mut page, &results_file("cpython.json"))?;
    selftests(&mut page, &results_file("kselftest.json"))?;
    limitations(&mut page)?;
    calls(&mut page)?;
    Ok(page)
}

/// Who serves each system call: the words that gate/entry/calls.tbl has for it.
const OWNERS: &[(&str, &str)] = &[
    (
        "fd",
        "the owner of its descriptor, or of the one that it makes",
    ),
    ("path", "the owner of its path"),
    ("both", "node and host, each its part"),
    ("gate", "the gate, with the help of either"),
    ("host", "the host, as it comes"),
    ("none", "refused: `ENOSYS`"),
];

fn calls(page: &mut String) -> Result<(), String> {
    let table = read(&paths::root().join("gate/entry/calls.tbl"))?;
    let mut by_owner = BTreeMap::<&str, Vec<String>>::new();
    for row in table.lines().filter(|row| !row.starts_with('#')) {
        let words: Vec<_> = row.split_whitespace().collect();
        let &[_, name, owner, _, _, support, _, _, _] = words.as_slice() else {
            return Err(format!("gate/entry/calls.tbl: what is '{row}'?"));
        };
        let mark = if support == "part" { " (in part)" } else { "" };
        by_owner
            .entry(owner)
            .or_default()
            .push(format!("{name}{mark}"));
    }
    page.push_str(
        "\n## System calls\n\nFrom `gate/entry/calls.tbl`. *In part*: the table above says what is missing.\n\n\
         | who serves it | calls |\n| --- | --- |\n",
    );
    for (owner, what) in OWNERS {
        let calls = by_owner.remove(owner).unwrap_or_default();
        let _ = writeln!(page, "| {what} | {} |", calls.join(", "));
    }
    match by_owner.keys().next() {
        Some(owner) => Err(format!(
            "gate/entry/calls.tbl: no owner is called '{owner}'"
        )),
        None => Ok(()),
    }
}

fn programs(page: &mut String) {
    page.push_str(
        "\n## Programs, unmodified, as Debian 12 has them\n\n\
         *link*: both sides on nodes, joined by shared memory. *Serves the host*: the server on a \
         node, the client on the host, over a TAP. *Uses the host*: the other way round.\n\n\
         | program | what is exercised | link | serves the host | uses the host | tests |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for Scenario {
        name,
        programs,
        what,
        topologies,
        ..
    } in apps::scenarios()
    {
        let cell = |topology: Topology| match topologies.contains(&topology) {
            true => "tested",
            false => "-",
        };
        let _ = writeln!(
            page,
            "| {} | {what} | {} | {} | {} | `apps::{name}` |",
            programs[0],
            cell(Topology::Link),
            cell(Topology::TapServer),
            cell(Topology::TapClient),
        );
    }
}

/// A test's name, and whether `make test` leaves it out.
fn named(test: &str) -> String {
    match apps::is_long(test) {
        true => format!("`{test}` (long)"),
        false => format!("`{test}`"),
    }
}

/// The other tests with programs, together by the first word of their names.
fn others(page: &mut String, tests: &[String]) {
    page.push_str("\n## Tools, mistakes, ends\n\n| about | tests |\n| --- | --- |\n");
    let mut groups: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for test in tests {
        let Some(name) = test.strip_prefix("apps::") else {
            continue;
        };
        if row(test) == *test {
            let group = name.split('_').next().unwrap_or(name);
            groups.entry(group).or_default().push(test);
        }
    }
    for (group, tests) in groups {
        let names: Vec<String> = tests.iter().map(|t| named(t)).collect();
        let _ = writeln!(page, "| {group} | {} |", names.join(" "));
    }
}

/// The programs that run on the host and on a node.
fn semantics(page: &mut String, tests: &[String]) -> Result<(), String> {
    page.push_str(
        "\n## The same answers as Linux\n\n\
         Each program runs on the host and on a node; what it prints and how it ends is equal, but for \
         the lines that its reason excuses.\n\n\
         | what | node and host | reason of a difference | program |\n| --- | --- | --- | --- |\n",
    );
    let known = oracle::known_reasons()?;
    for test in tests {
        let Some(name) = test.strip_prefix("oracle::") else {
            continue;
        };
        let source = read(&paths::oracle().join(format!("{name}.c")))?;
        let reason = known
            .iter()
            .filter(|(test, _)| test == name)
            .map(|(_, reason)| line(reason))
            .collect::<Vec<_>>()
            .join(" ");
        let result = match reason.is_empty() {
            true => "equal",
            false => "differs as known",
        };
        let _ = writeln!(
            page,
            "| {} | {result} | {reason} | `{test}` |",
            about(&source)
        );
    }
    Ok(())
}

/// What comes to another result in a sandbox.
fn sandboxes(page: &mut String) -> Result<(), String> {
    let (all, exceptions) = (sandboxed::names()?.len(), sandboxed::exceptions()?);
    let [root, ordinary] = User::ALL.map(|user| {
        let ours = exceptions.iter().filter(|it| it.is_for(user));
        let same = all - ours.map(|it| it.tests.len()).sum::<usize>();
        format!("{same} ({} %)", same * 100 / all)
    });
    let _ = write!(
        page,
        "\n## In a sandbox\n\n`tests/run --sandbox` runs the programs of the last table, and those of the first on linked nodes, each in a sandbox: {all} in \
         all. An ordinary user's sandbox gives {ordinary} of them the result that they have elsewhere (some say on both sides that they are for root), root's {root}. The others, from \
         tests/sandbox.toml:\n\n| reason | programs |\n| --- | --- |\n",
    );
    for it in exceptions {
        let user = match it.user {
            Some(User::Root) => "root: ",
            Some(User::Ordinary) => "an ordinary user: ",
            None => "",
        };
        let tests: Vec<String> = it.tests.keys().map(|test| format!("`{test}`")).collect();
        let _ = writeln!(page, "| {user}{} | {} |", line(&it.reason), tests.join(" "));
    }
    Ok(())
}

/// The comment that a program begins with.
fn about(source: &str) -> String {
    let comment = source
        .split_once("/*")
        .and_then(|(_, rest)| Some(rest.split_once("*/")?.0))
        .unwrap_or_default();
    let words: Vec<&str> = comment.split_whitespace().filter(|w| *w != "*").collect();
    line(&words.join(" "))
}

/// One cell of a table.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

fn python(page: &mut String, path: &Path) -> Result<(), String> {
    let modules: BTreeMap<String, Module> =
        serde_json::from_str(&read(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    let versions: BTreeSet<&str> = modules.values().map(|m| m.python.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let _ = write!(
        page,
        "\n## CPython's own tests\n\n\
         Python {}; `tests/cpython` compares. Tests that fail on the host too don't count.\n\n\
         | module | pass on the host | pass on a node | skipped there | pass on the host only |\n\
         | --- | --- | --- | --- | --- |\n",
        versions.join(", ")
    );
    let mut reasons = String::new();
    for (name, module) in &modules {
        let count = |side: &BTreeMap<String, u32>, what: &str| side.get(what).copied().unwrap_or(0);
        let _ = writeln!(
            page,
            "| {name} | {} | {} | {} | {} |",
            count(&module.host, "ok"),
            count(&module.node, "ok"),
            count(&module.node, "skip"),
            module.known.len() + module.new.len(),
        );
        for (test, result, why) in module.known.iter().chain(&module.new) {
            let _ = writeln!(reasons, "- `{test}`: {result}. {}", line(why));
        }
    }
    if !reasons.is_empty() {
        let _ = write!(page, "\n{reasons}");
    }
    Ok(())
}

fn selftests(page: &mut String, path: &Path) -> Result<(), String> {
    let results: BTreeMap<String, Selftest> =
        serde_json::from_str(&read(path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    let path = paths::root().join("tests/kselftest/known.toml");
    let known: Selftests =
        toml::from_str(&read(&path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    let known = |test: &str, node: &str| {
        known
            .known
            .iter()
            .find(|known| known.test == test && known.node == node)
    };
    page.push_str(
        "\n## The kernel's own selftests\n\n\
         `tests/kselftest/run` runs each on the host and on a node. One that fails, or is skipped, on the host as well \
         says something of the host; those that pass there have to pass on a node, or their reason is below. \
         *Again*: at the second try, after one that failed. A folder that was not run to its end has fewer than it could.\n\n\
         | folder | run | pass on the host | of those on a node | | again | explained | not explained | on a node only |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut folders: BTreeMap<&str, Vec<(&String, &Selftest)>> = BTreeMap::new();
    for (test, result) in &results {
        let folder = test.split(':').next().unwrap_or(test);
        folders.entry(folder).or_default().push((test, result));
    }
    let mut reasons = String::new();
    for (folder, tests) in folders {
        let host = tests.iter().filter(|(_, r)| r.host == "pass");
        let (good, bad): (Vec<_>, Vec<_>) = host.partition(|(_, r)| r.node == "pass");
        let explained = bad.iter().filter(|(t, r)| known(t, &r.node).is_some());
        let explained = explained.count();
        let count = good.len() + bad.len();
        let only = |(_, r): &&(&String, &Selftest)| r.host != "pass" && r.node == "pass";
        let _ = writeln!(
            page,
            "| {folder} | {} | {count} | {} | {} | {} | {explained} | {} | {} |",
            tests.len(),
            good.len(),
            match count {
                0 => "-".to_string(),
                count => format!("{} %", good.len() * 100 / count),
            },
            good.iter().filter(|(_, r)| r.again).count(),
            bad.len() - explained,
            tests.iter().filter(only).count(),
        );
        for (test, result) in bad {
            let reason = match known(test, &result.node) {
                Some(known) => line(&known.reason),
                None => "**not explained**".to_string(),
            };
            let _ = writeln!(reasons, "- `{test}`: {}. {reason}", result.node);
        }
    }
    let _ = write!(page, "\n{reasons}");
    Ok(())
}

fn limitations(page: &mut String) -> Result<(), String> {
    page.push_str("\n## Known limitations\n\n| what | why | shown by |\n| --- | --- | --- |\n");
    for limit in limits()? {
        let shown: Vec<String> = limit.tests.iter().map(|t| format!("`{t}`")).collect();
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            line(&limit.what),
            line(&limit.reason),
            shown.join(" ")
        );
    }
    Ok(())
}
