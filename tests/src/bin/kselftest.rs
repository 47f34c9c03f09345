// SPDX-License-Identifier: GPL-2.0
//! The kernel's selftests of its network, each on the host and on a node, side by side.
//!
//! One program at a time, in the manner of netdev's CI: a fresh network namespace on the host, a
//! fresh node, a time limit each. The host's result says what the program makes of this machine's
//! tools; only where it passes there, the node has to pass as well, or known.toml has the reason.
//! What a program leaves running is our child then (a subreaper's), and is killed.

#[path = "../exec.rs"]
#[allow(
    dead_code,
    reason = "shared with the other runner, which needs more of it"
)]
mod exec;
#[path = "../paths.rs"]
#[allow(
    dead_code,
    reason = "shared with the other runner, which needs more of it"
)]
mod paths;

use exec::{End, Group};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const HELP: &str = "\
tests/kselftest/run [OPTIONS] [WORD]...
Runs the selftests whose names contain one of the words, or all.

    --limit SECONDS   for each program and side [default: 60]
    --json FILE       write the results, too
    --list            names only
    --node-only       leave the host out: no comparison, nothing fails
Logs of both sides are in build/kselftest/logs. tests/kselftest/build comes first.";

/// As kselftest has it (ksft_skip).
const SKIP: i32 = 4;
/// Many have a dozen namespaces with their conntrack tables.
const MEM: &str = "1G";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    Fail,
    Skip,
    Timeout,
    /// Its program did not compile here.
    Unbuilt,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Skip => "skip",
            Verdict::Timeout => "timeout",
            Verdict::Unbuilt => "unbuilt",
        })
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    result: Verdict,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    test: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Side>,
    node: Side,
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
    list: bool,
    node_only: bool,
    words: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        limit: Duration::from_secs(60),
        json: None,
        list: false,
        node_only: false,
        words: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--limit" => {
                let n = args.next().unwrap_or_default();
                let n = n
                    .parse()
                    .map_err(|_| format!("--limit: not a number: '{n}'"))?;
                options.limit = Duration::from_secs(n);
            }
            "--json" => options.json = Some(args.next().ok_or("--json: no file")?.into()),
            "--list" => options.list = true,
            "--node-only" => options.node_only = true,
            "--help" | "-h" => return Err(HELP.into()),
            word if word.starts_with('-') => return Err(format!("{word}: unknown\n{HELP}")),
            word => options.words.push(word.into()),
        }
    }
    Ok(options)
}

/// The tests, and the folder they run in.
fn tests(words: &[String]) -> Result<(Vec<String>, PathBuf), String> {
    let at = paths::root().join("build/kselftest");
    let list = at.join("list");
    let text = std::fs::read_to_string(&list)
        .map_err(|e| format!("{}: {e}; run tests/kselftest/build", list.display()))?;
    let tests = text
        .lines()
        .filter(|name| words.is_empty() || words.iter().any(|word| name.contains(word.as_str())))
        .map(str::to_owned)
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

/// In the tests' folder, as their own runner has it.
fn script(at: &Path, test: &str) -> String {
    let run = at.join("run/net");
    format!("cd {} && exec ./{test}", run.display())
}

fn on_host(at: &Path, test: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-nm", "sh", "-c"]).arg(format!(
        "mount -t tmpfs run /run && mount -t sysfs sys /sys && ip link set lo up && {}",
        script(at, test)
    ));
    command
}

fn on_node(at: &Path, test: &str) -> Command {
    let mut command = Command::new(paths::ring3());
    command
        .args(["run", "--mem", MEM, "--", "sh", "-c"])
        .arg(script(at, test));
    command
}

fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<Side, String> {
    let told = |e: std::io::Error| format!("{}: {e}", log.display());
    let out = File::create(log).map_err(told)?;
    command
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(told)?)
        .stderr(out);
    let start = Instant::now();
    let mut group = Group::spawn(command)?;
    let end = group.wait(limit);
    if end.is_none() {
        group.kill();
    }
    drop(group);
    let seconds = start.elapsed().as_secs_f64();
    reap_strays();
    let result = match end {
        None => Verdict::Timeout,
        Some(End::Exit(0)) => Verdict::Pass,
        Some(End::Exit(SKIP)) => Verdict::Skip,
        Some(_) => Verdict::Fail,
    };
    Ok(Side { result, seconds })
}

/// Children of ours that we did not start.
fn strays() -> Vec<rustix::process::Pid> {
    let own = std::process::id();
    let text =
        std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| rustix::process::Pid::from_raw(pid.parse().ok()?))
        .collect()
}

fn reap_strays() {
    use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
    // A stray's children are ours next; ten rounds are more than any test has generations.
    for _ in 0..10 {
        let left = strays();
        if left.is_empty() {
            return;
        }
        for pid in left {
            // It may be gone already, which is as good.
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

fn show(row: &Row) {
    let side = |side: &Side| format!("{:7} {:5.1} s", side.result, side.seconds);
    let host = row.host.as_ref().map(side).unwrap_or_default();
    let word = match (&row.host, &row.reason) {
        (Some(host), _) if host.result == row.node.result => "same",
        (_, Some(reason)) => reason,
        (Some(host), None) if host.result == Verdict::Pass => "DIFFERS",
        _ => "",
    };
    println!(
        "{:38} host {host:15}  node {:15}  {word}",
        row.test,
        side(&row.node)
    );
    let _ = std::io::stdout().flush();
}

fn one(at: &Path, test: &str, options: &Options, known: &[Known]) -> Result<Row, String> {
    if !at.join("run/net").join(test).exists() {
        let unbuilt = Side {
            result: Verdict::Unbuilt,
            seconds: 0.0,
        };
        return Ok(Row {
            test: test.to_owned(),
            host: Some(unbuilt),
            node: unbuilt,
            reason: None,
        });
    }
    let logs = at.join("logs");
    std::fs::create_dir_all(&logs).map_err(|e| format!("{}: {e}", logs.display()))?;
    let log = |side: &str| logs.join(format!("{test}.{side}"));
    let host = match options.node_only {
        true => None,
        false => Some(run(&mut on_host(at, test), &log("host"), options.limit)?),
    };
    let node = run(&mut on_node(at, test), &log("node"), options.limit)?;
    let reason = known
        .iter()
        .find(|k| k.test == test && k.node == node.result)
        .map(|k| k.reason.clone());
    Ok(Row {
        test: test.to_owned(),
        host,
        node,
        reason,
    })
}

/// Whether all is as it should be.
fn sum(rows: &[Row], known: &[Known]) -> bool {
    let host = |row: &&Row| row.host.is_some_and(|h| h.result == Verdict::Pass);
    let node = |row: &&Row| row.node.result == Verdict::Pass;
    let passed: Vec<&Row> = rows.iter().filter(host).collect();
    let both = passed.iter().filter(|row| node(row)).count();
    let only = rows.iter().filter(|row| node(row) && !host(row)).count();
    let differs: Vec<&str> = passed
        .iter()
        .filter(|row| !node(row) && row.reason.is_none())
        .map(|row| row.test.as_str())
        .collect();
    let stale: Vec<&str> = known
        .iter()
        .filter(|k| passed.iter().any(|row| row.test == k.test && node(row)))
        .map(|k| k.test.as_str())
        .collect();
    let percent = match passed.len() {
        0 => 100,
        n => both * 100 / n,
    };
    println!(
        "{} tests: {} pass on the host, {both} of those on a node ({percent} %), {only} on a node only",
        rows.len(),
        passed.len()
    );
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
    let mut rows = Vec::new();
    for test in &tests {
        let row = one(&at, test, options, &known)?;
        show(&row);
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
