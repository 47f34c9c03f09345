// SPDX-License-Identifier: GPL-2.0
//! As an executor of netdev's CI (NIPA): a manifest of branches in, a file of results out.
//!
//! NIPA's collector fetches `results.json`, a list of `{url, branch, executor}` whose `url` is null while
//! the branch is under test, and what the urls name. Getting the manifest of branches and
//! publishing the folder is the business of whatever calls this: curl and a web server.

use crate::Options;
use crate::side::{self, Test, Verdict};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug, Default)]
pub struct Nipa {
    /// The manifest of branches.
    pub branches: PathBuf,
    /// Where results go.
    pub results: PathBuf,
    /// What others reach that folder by.
    pub url: String,
    pub executor: String,
    /// A shell command that puts the branch's kernel into bin/.
    pub prepare: Option<String>,
}

/// What NIPA says of a branch, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Branch {
    branch: String,
    date: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    url: Option<String>,
    branch: String,
    executor: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Nested {
    test: String,
    result: Verdict,
}

#[derive(Debug, Serialize)]
struct Outcome {
    test: String,
    group: String,
    result: Verdict,
    link: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Verdict>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    crashes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<Nested>,
}

#[derive(Debug, Serialize)]
struct Report {
    executor: String,
    branch: String,
    start: String,
    end: String,
    link: String,
    results: Vec<Outcome>,
}

/// Names as NIPA writes them: whatever is neither letter nor digit is one dash.
fn namify(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c.is_ascii_alphanumeric() {
            true => out.push(c),
            false if out.ends_with('-') => {}
            false => out.push('-'),
        }
    }
    out.strip_suffix('-').unwrap_or(&out).to_owned()
}

/// The lines of a test's own protocol (KTAP), where it has one.
fn nested(log: &str) -> Vec<Nested> {
    log.lines()
        .filter_map(|line| {
            let (failed, rest) = match line.strip_prefix("not ok ") {
                Some(rest) => (true, rest),
                None => (false, line.strip_prefix("ok ")?),
            };
            let (number, rest) = rest.split_once(' ')?;
            number.parse::<u32>().ok()?;
            let rest = rest.strip_prefix("- ").unwrap_or(rest);
            let (name, comment) = rest.split_once('#').unwrap_or((rest, ""));
            let skipped = comment.trim_start().to_lowercase().starts_with("skip");
            let result = match (failed, skipped) {
                (_, true) => Verdict::Skip,
                (true, _) => Verdict::Fail,
                (false, _) => Verdict::Pass,
            };
            Some(Nested {
                test: namify(name.trim()),
                result,
            })
        })
        .collect()
}

/// What a node's end leaves in a program's log.
fn crashes(log: &str) -> Vec<String> {
    log.lines()
        .filter(|line| line.starts_with("ring3: node ") && line.contains(" has failed"))
        .map(str::to_owned)
        .take(1)
        .collect()
}

/// NIPA knows no time-outs, and nothing that did not compile.
fn verdict(result: Verdict) -> Verdict {
    match result {
        Verdict::Timeout => Verdict::Fail,
        Verdict::Unbuilt => Verdict::Skip,
        other => other,
    }
}

/// 2026-11-21 09:05:00+00:00, as Python prints it.
fn date(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Years that begin in March, in eras of 400 of them, so that leap days come last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = match month < 10 {
        true => (month + 3, 0),
        false => (month - 9, 1),
    };
    format!(
        "{:04}-{month:02}-{day:02} {:02}:{:02}:{:02}+00:00",
        era * 400 + year + later,
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string(value).map_err(|e| e.to_string())?;
    let new = path.with_extension("new");
    // The collector may come at any time: it sees the old file or the new one.
    std::fs::write(&new, text + "\n")
        .and_then(|()| std::fs::rename(&new, path))
        .map_err(|e| format!("{}: {e}", path.display()))
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// The newest branch that has no results yet.
fn choose(branches: Vec<Branch>, done: &[Entry]) -> Option<Branch> {
    let newest = branches.into_iter().max_by(|a, b| a.date.cmp(&b.date))?;
    let tested = |e: &Entry| e.branch == newest.branch && e.url.is_some();
    (!done.iter().any(tested)).then_some(newest)
}

fn note(manifest: &Path, entries: &mut Vec<Entry>, entry: Entry) -> Result<(), String> {
    entries.retain(|e| e.branch != entry.branch || e.executor != entry.executor);
    entries.push(entry);
    write(manifest, entries)
}

fn one(
    at: &Path,
    test: &Test,
    limit: Duration,
    folder: &Path,
    link: &str,
) -> Result<Outcome, String> {
    let name = namify(&test.name);
    let file = format!("{}-{name}", namify(&test.collection));
    let log = folder.join(&file);
    let mut outcome = Outcome {
        test: name,
        group: format!("selftests-{}", namify(&test.collection)),
        result: verdict(Verdict::Unbuilt),
        link: format!("{link}/{file}"),
        time: None,
        retry: None,
        crashes: Vec::new(),
        results: Vec::new(),
    };
    if !test.built(at) {
        return Ok(outcome);
    }
    let first = side::run(&mut test.on_node(at), &log, limit)?;
    let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned();
    outcome.result = verdict(first.result);
    outcome.time = Some(first.seconds);
    outcome.crashes = crashes(&text);
    outcome.results = nested(&text);
    if outcome.result == Verdict::Fail {
        let again = folder.join(format!("{file}-retry"));
        outcome.retry = Some(verdict(
            side::run(&mut test.on_node(at), &again, limit)?.result,
        ));
    }
    Ok(outcome)
}

fn prepared(nipa: &Nipa, branch: &Branch, log: &Path) -> Result<bool, String> {
    let Some(command) = &nipa.prepare else {
        return Ok(true);
    };
    let out = std::fs::File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let err = out.try_clone().map_err(|e| e.to_string())?;
    let status = Command::new("sh")
        .args(["-c", command])
        .env("NIPA_BRANCH", &branch.branch)
        .stdout(out)
        .stderr(err)
        .status()
        .map_err(|e| format!("cannot start sh: {e}"))?;
    Ok(status.success())
}

/// Tests the newest branch unless it has been; true if there was one.
pub fn all(at: &Path, tests: &[Test], options: &Options, nipa: &Nipa) -> Result<bool, String> {
    std::fs::create_dir_all(&nipa.results)
        .map_err(|e| format!("{}: {e}", nipa.results.display()))?;
    let manifest = nipa.results.join("results.json");
    let mut entries: Vec<Entry> = match manifest.exists() {
        true => read(&manifest)?,
        false => Vec::new(),
    };
    let Some(branch) = choose(read(&nipa.branches)?, &entries) else {
        println!("no new branch");
        return Ok(false);
    };
    println!("testing {} of {}", branch.branch, branch.date);
    let mut entry = |url| {
        note(
            &manifest,
            &mut entries,
            Entry {
                url,
                branch: branch.branch.clone(),
                executor: nipa.executor.clone(),
            },
        )
    };
    entry(None)?;
    let start = now();
    let cookie = (start.as_secs() / 60 % 1_000_000).to_string();
    let folder = nipa.results.join(&cookie);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let link = format!("{}/{cookie}", nipa.url);
    let mut results = Vec::new();
    if prepared(nipa, &branch, &folder.join("build"))? {
        for test in tests {
            let outcome = one(at, test, options.limit, &folder, &link)?;
            println!("{:45} {}", test, outcome.result);
            results.push(outcome);
        }
    } else {
        results.push(Outcome {
            test: "build".into(),
            group: "selftests-net".into(),
            result: Verdict::Fail,
            link: format!("{link}/build"),
            time: None,
            retry: None,
            crashes: Vec::new(),
            results: Vec::new(),
        });
    }
    let file = format!("results-{cookie}.json");
    let report = Report {
        executor: nipa.executor.clone(),
        branch: branch.branch.clone(),
        start: date(start),
        end: date(now()),
        link,
        results,
    };
    write(&nipa.results.join(&file), &report)?;
    entry(Some(format!("{}/{file}", nipa.url)))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(namify("bind_bhash.sh"), "bind-bhash-sh");
        assert_eq!(namify("net/tcp_ao"), "net-tcp-ao");
        assert_eq!(namify("a (b)"), "a-b");
    }

    #[test]
    fn dates() {
        assert_eq!(date(Duration::ZERO), "1970-01-01 00:00:00+00:00");
        let leap = Duration::from_secs(1_709_210_096);
        assert_eq!(date(leap), "2024-02-29 12:34:56+00:00");
    }

    #[test]
    fn ktap() {
        let log = "TAP version 13\n1..3\nok 1 ping4\nnot ok 2 - ping 6 # exit 1\nok 3 x # SKIP no\nokay\n";
        let got: Vec<(String, Verdict)> = nested(log)
            .into_iter()
            .map(|n| (n.test, n.result))
            .collect();
        assert_eq!(
            got,
            [
                ("ping4".to_owned(), Verdict::Pass),
                ("ping-6".to_owned(), Verdict::Fail),
                ("x".to_owned(), Verdict::Skip),
            ]
        );
    }

    #[test]
    fn newest_once() {
        let branches = || -> Vec<Branch> {
            serde_json::from_str(
                r#"[{"branch":"b","date":"2026-01-02T00:00:00+00:00","url":"git://x","base":"y"},
                    {"branch":"a","date":"2026-01-01T00:00:00+00:00"}]"#,
            )
            .unwrap()
        };
        let entry = |url: Option<&str>| Entry {
            url: url.map(str::to_owned),
            branch: "b".into(),
            executor: "ring3".into(),
        };
        assert_eq!(choose(branches(), &[]).unwrap().branch, "b");
        // Begun, and not ended: again.
        assert_eq!(choose(branches(), &[entry(None)]).unwrap().branch, "b");
        assert!(choose(branches(), &[entry(Some("u"))]).is_none());
    }
}
