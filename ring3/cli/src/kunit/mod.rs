// SPDX-License-Identifier: GPL-2.0
//! `ring3 kunit`: the kernel's own unit tests, on a node.
//!
//! The suites run while their kernel boots, before anything could join. So this boots a
//! node whose kernel writes its log as it goes, in a process of its own (`ring3 run`), and
//! reads along: a kernel that ends in the middle of a test ends that process only.

mod ktap;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::args;
use crate::error::{Failure, Result};
use crate::say;
use ktap::{Counts, Outcome, Parser, Status};

const IMAGE: &str = "ring3-kunit.image";
/// Tests of allocators and maps want more than a plain node has.
const MEM: &str = "512M";

#[derive(Debug, Serialize)]
struct Report<'a> {
    /// All suites that were announced have a result.
    complete: bool,
    #[serde(flatten)]
    counts: Counts,
    suites: &'a [Outcome],
}

pub fn kunit(args: &args::Kunit) -> Result<()> {
    let mut parser = Parser::default();
    let show = !args.json && !args.quiet;
    let mut out = std::io::stdout();
    let mut line = |text: &str| {
        let ours = parser.line(text);
        if show && (ours || args.log) {
            // Nobody reads any more: the status is still of use.
            let _ = writeln!(out, "{}", text.trim_end());
        }
    };
    let end = match &args.from {
        Some(path) => read(path, &mut line).map(|()| None)?,
        None => boot(args, &mut line)?,
    };
    if args.json {
        let report = Report {
            complete: parser.complete(),
            counts: parser.counts(),
            suites: parser.suites(),
        };
        crate::nodes::print_json(&report)?;
    } else {
        summary(&parser)?;
    }
    verdict(&parser, end)
}

fn read(path: &Path, line: &mut dyn FnMut(&str)) -> Result<()> {
    let text = match path.as_os_str() == "-" {
        true => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map(|_| text)
        }
        false => std::fs::read(path),
    };
    let text = text.map_err(Failure::host(format!("read {}", path.display())))?;
    String::from_utf8_lossy(&text).lines().for_each(line);
    Ok(())
}

/// Boots the node; how that ended, where it did not end well.
fn boot(args: &args::Kunit, line: &mut dyn FnMut(&str)) -> Result<Option<String>> {
    let mut words = String::from("ring3_console loglevel=8 kunit.enable=1");
    if let Some(glob) = &args.suite {
        words.push_str(" kunit.filter_glob=");
        words.push_str(glob);
    }
    let exe = std::env::current_exe().map_err(Failure::host("find where ring3 is"))?;
    let mut child = Command::new(&exe)
        .args(["run", "--node", &format!("kunit-{}", std::process::id())])
        .args(["--mem", args.mem.as_deref().unwrap_or(MEM)])
        .args(["--cmdline", &words])
        .arg("--image")
        .arg(image(args, &exe)?)
        .args(["--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::host("start a node"))?;
    let (status, last) = follow(&mut child, Duration::from_secs(args.limit), line)
        .map_err(Failure::host("follow the node's log"))?;
    Ok(match status {
        Some(status) if status.success() => None,
        Some(_) => Some(last),
        None => Some(format!(
            "no end after {} s: the node was stopped",
            args.limit
        )),
    })
}

/// Reads the child's standard error to its end; None: it was stopped for taking too long.
fn follow(
    child: &mut Child,
    limit: Duration,
    line: &mut dyn FnMut(&str),
) -> std::io::Result<(Option<ExitStatus>, String)> {
    let stderr = child.stderr.take().expect("it was asked for");
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut reader = BufReader::new(stderr);
        let mut text = Vec::new();
        while reader.read_until(b'\n', &mut text).is_ok_and(|n| n > 0) {
            if sender
                .send(String::from_utf8_lossy(&text).into_owned())
                .is_err()
            {
                return;
            }
            text.clear();
        }
    });
    let end = Instant::now() + limit;
    let mut last = String::new();
    let in_time = loop {
        let left = end.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(text) => {
                line(&text);
                if let Some(words) = text.strip_prefix("ring3: ") {
                    last = words.trim_end().to_owned();
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break true,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => break false,
        }
    };
    if !in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    // It has sent its last line, or lost its pipe with the child.
    let _ = reader.join();
    Ok((in_time.then_some(status), last))
}

fn image(args: &args::Kunit, exe: &Path) -> Result<PathBuf> {
    if let Some(image) = &args.image {
        return Ok(image.clone());
    }
    let folder = exe.parent().unwrap_or(Path::new("/"));
    let looked = vec![folder.join(IMAGE), folder.join("../lib/ring3").join(IMAGE)];
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(Failure::KunitImageMissing { looked }),
    }
}

fn summary(parser: &Parser) -> Result<()> {
    let suites = parser.suites();
    let Counts {
        passed,
        failed,
        skipped,
    } = parser.counts();
    for suite in suites.iter().filter(|suite| suite.status == Status::Fail) {
        say::print(format!("failed: {}\n", suite.name))?;
    }
    let (n, plural) = (suites.len(), if suites.len() == 1 { "" } else { "s" });
    say::print(format!(
        "{n} suite{plural}: {passed} passed, {failed} failed, {skipped} skipped\n"
    ))
}

fn verdict(parser: &Parser, end: Option<String>) -> Result<()> {
    if let Some(words) = end {
        if parser.planned() == 0 {
            return Err(Failure::Child(words));
        }
        return Err(Failure::KunitEnded {
            suite: parser.suites().len() + 1,
            of: parser.planned(),
            words,
        });
    }
    if parser.suites().is_empty() {
        return Err(Failure::KunitNothing);
    }
    if !parser.complete() {
        return Err(Failure::KunitEnded {
            suite: parser.suites().len() + 1,
            of: parser.planned(),
            words: "the report ends there".into(),
        });
    }
    // A suite can fail though none of its cases did: when its set-up does.
    match parser.suites().iter().any(|s| s.status == Status::Fail) {
        true => Err(Failure::Said),
        false => Ok(()),
    }
}
