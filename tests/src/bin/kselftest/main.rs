// SPDX-License-Identifier: GPL-2.0
//! The kernel's selftests of its network, each on the host and on a node, side by side.
//!
//! One program at a time, in the manner of netdev's CI: a fresh network namespace on the host, a
//! fresh node, a time limit each. The host's result says what the program makes of this machine's
//! tools; only where it passes there, the node has to pass as well, or known.toml has the reason.
//! What a program leaves running is our child then (a subreaper's), and is killed.

#[path = "../../exec.rs"]
#[allow(
    dead_code,
    reason = "shared with the other runner, which needs more of it"
)]
mod exec;
#[path = "../../paths.rs"]
#[allow(
    dead_code,
    reason = "shared with the other runner, which needs more of it"
)]
mod paths;

mod nipa;
mod side;

use nipa::Nipa;
use serde::{Deserialize, Serialize};
use side::{Side, Test, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
tests/kselftest/run [OPTIONS] [WORD]...
Runs the selftests whose names (COLLECTION:TEST) contain one of the words, or all.

    --limit SECONDS   for each program and side [default: 60]; a node has three times the host's time
    --json FILE       write the results, too
    --merge FILE      put them in the place of earlier ones there (tests/results/kselftest.json); after
                      each test, so that a run may be ended at any time
    --list            names only
    --node-only       leave the host out: no comparison, nothing fails
    --quick           on a node only what passes on the host
A test that passes on the host only is tried once more on a node, as netdev's CI does.
Logs of both sides are in build/kselftest/logs. tests/kselftest/build comes first.

As an executor of netdev's CI (nodes only; a failure is tried once more):
    --nipa FILE       the manifest of branches: the newest without results is tested
    --results FOLDER  where results.json, results-*.json and logs go
    --url URL         what others reach that folder by [default: .]
    --executor NAME   [default: ring3]
    --prepare COMMAND run by sh first, with the branch in NIPA_BRANCH: it puts that kernel's image
                      into bin/. Without it, the branch is named in the results and no more.";

#[derive(Debug, Serialize)]
struct Row {
    test: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Side>,
    /// It took the node two tries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    test: String,
    node: Verdict,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFile {
    #[serde(default)]
    known: Vec<Known>,
}

#[derive(Debug)]
struct Options {
    limit: Duration,
    json: Option<PathBuf>,
    merge: Option<PathBuf>,
    list: bool,
    node_only: bool,
    quick: bool,
    nipa: Option<Nipa>,
    words: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        limit: Duration::from_secs(60),
        json: None,
        merge: None,
        list: false,
        node_only: false,
        quick: false,
        nipa: None,
        words: Vec::new(),
    };
    let mut nipa = Nipa {
        url: ".".into(),
        executor: "ring3".into(),
        ..Nipa::default()
    };
    let (mut branches, mut results) = (None, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg}: a value is missing"));
        match arg.as_str() {
            "--limit" => {
                let n = value()?;
                let n = n
                    .parse()
                    .map_err(|_| format!("--limit: not a number: '{n}'"))?;
                options.limit = Duration::from_secs(n);
            }
            "--json" => options.json = Some(value()?.into()),
            "--merge" => options.merge = Some(value()?.into()),
            "--list" => options.list = true,
            "--node-only" => options.node_only = true,
            "--quick" => options.quick = true,
            "--nipa" => branches = Some(value()?),
            "--results" => results = Some(value()?),
            "--url" => nipa.url = value()?,
            "--executor" => nipa.executor = value()?,
            "--prepare" => nipa.prepare = Some(value()?),
            "--help" | "-h" => return Err(HELP.into()),
            word if word.starts_with('-') => return Err(format!("{word}: unknown\n{HELP}")),
            word => options.words.push(word.into()),
        }
    }
    options.nipa = match (branches, results) {
        (None, None) => None,
        (Some(branches), Some(results)) => Some(Nipa {
            branches: branches.into(),
            results: results.into(),
            ..nipa
        }),
        _ => return Err("--nipa and --results go together".into()),
    };
    Ok(options)
}

/// The tests, and the folder they run in.
fn tests(words: &[String]) -> Result<(Vec<Test>, PathBuf), String> {
    let at = paths::root().join("build/kselftest");
    let list = at.join("list");
    let text = std::fs::read_to_string(&list)
        .map_err(|e| format!("{}: {e}; run tests/kselftest/build", list.display()))?;
    let tests = text
        .lines()
        .filter(|name| words.is_empty() || words.iter().any(|word| name.contains(word.as_str())))
        .filter_map(Test::parse)
        .collect();
    Ok((tests, at))
}

fn known() -> Result<Vec<Known>, String> {
    let path = paths::root().join("tests/kselftest/known.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file: KnownFile = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    match file.known.iter().find(|k| k.reason.trim().is_empty()) {
        Some(k) => Err(format!("{}: '{}' has no reason", path.display(), k.test)),
        None => Ok(file.known),
    }
}

fn show(row: &Row) {
    let side = |side: Option<Side>| match side {
        Some(side) => format!("{:7} {:5.1} s", side.result, side.seconds),
        None => "-".to_owned(),
    };
    let word = match (row.host, row.node, &row.reason) {
        (Some(host), Some(node), _) if host.result == node.result => match row.again {
            true => "same, at the second try",
            false => "same",
        },
        (_, _, Some(reason)) => reason,
        (Some(host), _, None) if host.result == Verdict::Pass => "DIFFERS",
        _ => "",
    };
    println!(
        "{:48} host {:15}  node {:15}  {word}",
        row.test,
        side(row.host),
        side(row.node)
    );
    let _ = std::io::stdout().flush();
}

fn one(at: &Path, test: &Test, options: &Options, known: &[Known]) -> Result<Row, String> {
    let name = test.to_string();
    if !test.built(at) {
        let unbuilt = Side {
            result: Verdict::Unbuilt,
            seconds: 0.0,
        };
        return Ok(Row {
            test: name,
            host: Some(unbuilt),
            node: Some(unbuilt),
            again: false,
            reason: None,
        });
    }
    let host = match options.node_only {
        true => None,
        false => Some(side::run(
            &mut test.on_host(at),
            &test.log(at, "host"),
            options.limit,
        )?),
    };
    // A test that takes long is not to fail because of what else the machine does.
    let limit = options
        .limit
        .max(host.map_or(Duration::ZERO, |host| 3 * host.time()));
    let on_node = |log: &str| side::run(&mut test.on_node(at), &test.log(at, log), limit);
    let mut node = match options.quick && !passes(host) {
        true => None,
        false => Some(on_node("node")?),
    };
    let is_known = |node: Option<Side>| {
        known
            .iter()
            .find(|k| k.test == name && node.is_some_and(|node| node.result == k.node))
    };
    let again = passes(host) && !passes(node) && is_known(node).is_none();
    if again {
        node = Some(on_node("node-again")?);
    }
    let reason = is_known(node).map(|k| k.reason.clone());
    Ok(Row {
        test: name,
        host,
        node,
        again,
        reason,
    })
}

fn passes(side: Option<Side>) -> bool {
    side.is_some_and(|side| side.result == Verdict::Pass)
}

fn figures(name: &str, rows: &[&Row]) {
    let host = rows.iter().filter(|row| passes(row.host)).count();
    let node = |row: &&&Row| passes(row.node);
    let both = rows
        .iter()
        .filter(|row| passes(row.host))
        .filter(node)
        .count();
    let only = rows.iter().filter(node).count() - both;
    let percent = match host {
        0 => 100.0,
        n => both as f64 * 100.0 / n as f64,
    };
    println!(
        "{name}: {} tests, {host} pass on the host, {both} of those on a node ({percent:.1} %), {only} on a node only",
        rows.len(),
    );
}

/// Whether all is as it should be.
fn sum(rows: &[Row], known: &[Known]) -> bool {
    let differs: Vec<&str> = rows
        .iter()
        .filter(|row| passes(row.host) && !passes(row.node) && row.reason.is_none())
        .map(|row| row.test.as_str())
        .collect();
    let stale: Vec<&str> = known
        .iter()
        .filter(|k| {
            rows.iter()
                .any(|row| row.test == k.test && passes(row.host) && passes(row.node))
        })
        .map(|k| k.test.as_str())
        .collect();
    let collection = |row: &Row| row.test.split(':').next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = rows.iter().map(collection).collect();
    if names.len() > 1 {
        for name in &names {
            let its: Vec<&Row> = rows.iter().filter(|row| collection(row) == *name).collect();
            figures(name, &its);
        }
    }
    figures("all", &rows.iter().collect::<Vec<_>>());
    if !differs.is_empty() {
        println!(
            "fail on a node without a known reason: {}",
            differs.join(" ")
        );
    }
    if !stale.is_empty() {
        println!(
            "pass in spite of known.toml, remove there: {}",
            stale.join(" ")
        );
    }
    differs.is_empty() && stale.is_empty()
}

/// Test → how it went, without times: what is committed changes only where a result does.
#[derive(Debug, Deserialize, Serialize)]
struct Outcome {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<Verdict>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<Verdict>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    again: bool,
}

/// Several runs may write to one file.
fn merge(path: &Path, row: &Row) -> Result<(), String> {
    let told = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(told)?;
    file.lock().map_err(told)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(told)?;
    let mut results: BTreeMap<String, Outcome> = match text.is_empty() {
        true => BTreeMap::new(),
        false => serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?,
    };
    // A side that was left out is what it was.
    let before = results.get(&row.test);
    let outcome = Outcome {
        host: row.host.map(|host| host.result).or_else(|| before?.host),
        node: row.node.map(|node| node.result).or_else(|| before?.node),
        again: row.again,
    };
    results.insert(row.test.clone(), outcome);
    let text = serde_json::to_string_pretty(&results).map_err(|e| e.to_string())? + "\n";
    file.set_len(0).map_err(told)?;
    file.rewind().map_err(told)?;
    file.write_all(text.as_bytes()).map_err(told)
}

fn all(options: &Options) -> Result<bool, String> {
    let (tests, at) = tests(&options.words)?;
    if options.list {
        tests.iter().for_each(|test| println!("{test}"));
        return Ok(true);
    }
    if tests.is_empty() {
        return Err("no such test".into());
    }
    if !rustix::process::geteuid().is_root() {
        return Err("the selftests ask for root".into());
    }
    let known = known()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|e| format!("become a subreaper: {e}"))?;
    if let Some(nipa) = &options.nipa {
        nipa::all(&at, &tests, options, nipa)?;
        return Ok(true);
    }
    let mut rows = Vec::new();
    for test in &tests {
        let row = one(&at, test, options, &known)?;
        show(&row);
        if let Some(path) = &options.merge {
            merge(path, &row)?;
        }
        rows.push(row);
    }
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&rows).map_err(|e| e.to_string())?;
        std::fs::write(path, text + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(sum(&rows, &known) || options.node_only)
}

fn main() -> ExitCode {
    match options().and_then(|options| all(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
