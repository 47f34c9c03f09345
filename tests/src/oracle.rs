// SPDX-License-Identifier: GPL-2.0
//! Linux is the oracle: each program runs on the host and on a node.
//!
//! Both sides start alike: a fresh network namespace there, a fresh node here,
//! each with `lo` up and nothing else. What the program prints on its standard output, and
//! how it ends, must agree. A program that ends with 77 on the host says that
//! the host's kernel lacks something; then NAME.expected, where it exists, is
//! the oracle, else the test is ignored with the program's reason. `served.rs` shows that the node's run was the node's.

use crate::Options;
use crate::apps::Verdict;
use crate::compile::compile;
use crate::exec::{self, End, Outcome};
use crate::known::{self, Known, User};
use crate::served::{self, Proof};
use crate::{node, paths};
use libtest_mimic::{Completion, Failed, Trial};
use similar::{ChangeTag, TextDiff};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A program that has not ended by then hangs.
/// Most end within a second; `fork_killed` took 32 s, and once over 60, on two processors with a load of 42.
const LIMIT: Duration = Duration::from_secs(180);
/// Exit status of a program whose kernel lacks what it tests.
const LACKING: End = End::Exit(77);

/// The C programs, by name.
pub fn programs() -> Result<Vec<(String, PathBuf)>, String> {
    let folder = paths::oracle();
    let mut sources: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();
    let name_of = |path: &Path| {
        path.file_stem()
            .map(|s| s.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let named = sources.into_iter().map(|source| (name_of(&source), source));
    Ok(named.collect())
}

/// One trial for each C program.
pub fn trials(options: Options) -> Result<Vec<Trial>, String> {
    let known = known::read(&paths::oracle().join("known.toml"))?;
    let listed = served::listed()?;
    let sources = programs()?;
    if let Some(stray) = known
        .iter()
        .find(|k| !sources.iter().any(|(name, _)| *name == k.test))
    {
        return Err(format!("known.toml: no program '{}'", stray.test));
    }
    if let Some(stray) = listed
        .keys()
        .find(|test| !sources.iter().any(|(name, _)| name == *test))
    {
        return Err(format!("hostonly.toml: no program '{stray}'"));
    }
    Ok(sources
        .into_iter()
        .map(|(name, source)| {
            let known = known
                .iter()
                .find(|k| k.test == name && k.user.is_none_or(|user| user == User::current()))
                .cloned();
            let proof = listed.get(&name).copied().unwrap_or(Proof::Network);
            Trial::ignorable_test(format!("oracle::{name}"), move || {
                check(&name, &source, known.as_ref(), proof, options)
            })
        })
        .collect())
}

/// Programs that are known to differ, and why.
pub fn known_reasons() -> Result<Vec<(String, String)>, String> {
    let known = known::read(&paths::oracle().join("known.toml"))?;
    Ok(known.into_iter().map(|k| (k.test, k.reason)).collect())
}

fn check(
    name: &str,
    source: &Path,
    known: Option<&Known>,
    proof: Proof,
    options: Options,
) -> Result<Completion, Failed> {
    let program = compile(source)?;
    for _ in 0..options.repeat {
        let host = on_host(&program)?;
        if host.end == LACKING && options.host_only {
            return Ok(Completion::ignored_with(host.stdout.trim()));
        }
        let host = expected(name, source, host)?;
        let Some(host) = host else {
            return Ok(Completion::ignored_with("this host lacks it"));
        };
        if options.host_only {
            print!("{}", host.stdout);
            let again = on_host(&program)?;
            compare(&host, &again, None).map_err(|e| format!("not deterministic: {e}"))?;
        } else {
            let node = on_node(&program, proof)?;
            let result = compare(&host, &node, known);
            if options.bless && result.is_err() {
                print!("{}", blessing(name, &host, &node));
            }
            result?;
            served::check(&program, &host, proof, LIMIT)?;
        }
    }
    Ok(Completion::Completed)
}

/// The same in a sandbox. Who serves a program there is shown by its run on an ordinary node.
pub fn in_sandbox(name: &str, source: &Path, options: Options) -> Result<Verdict, String> {
    let program = compile(source)?;
    let known = known::read(&paths::oracle().join("known.toml"))?;
    let known = known
        .iter()
        .find(|k| k.test == name && k.user.is_none_or(|user| user == User::current()));
    for _ in 0..options.repeat {
        let Some(host) = expected(name, source, on_host(&program)?)? else {
            return Ok(Verdict::Ignored("this host lacks it".into()));
        };
        let node = on_node(&program, Proof::None)?;
        compare(&host, &node, known)?;
    }
    Ok(Verdict::Passed)
}

/// What the node has to produce; None where nobody can say.
fn expected(name: &str, source: &Path, host: Outcome) -> Result<Option<Outcome>, String> {
    match host.end {
        LACKING => {
            let file = source.with_file_name(format!("{name}.expected"));
            let Ok(stdout) = std::fs::read_to_string(&file) else {
                return Ok(None);
            };
            Ok(Some(Outcome {
                end: End::Exit(0),
                stdout,
                ..host
            }))
        }
        // A program may end by a signal on purpose; 1 is a set-up step that failed.
        End::Exit(0) | End::Signal(_) => Ok(Some(host)),
        _ => Err(format!("on the host: {}", host.report())),
    }
}

/// Runs the program in a fresh network namespace with `lo` up.
fn on_host(program: &Path) -> Result<Outcome, String> {
    exec::run(
        &mut node::in_fresh_network("", &Command::new(program)),
        LIMIT,
    )
}

fn on_node(program: &Path, proof: Proof) -> Result<Outcome, String> {
    let mut command = Command::new(paths::ring3());
    command.args(["run", "--"]).arg(program);
    let mut outcome = exec::run(&mut served::without_host(command, proof)?, LIMIT)?;
    // As a shell does, `ring3 run` reports a signal as 128 + its number.
    if let End::Exit(code @ 129..=192) = outcome.end {
        outcome.end = End::Signal(code - 128);
    }
    Ok(outcome)
}

/// The differing lines alone.
fn difference(host: &str, node: &str) -> String {
    let diff = TextDiff::from_lines(host, node);
    let mut out = String::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => continue,
        };
        out.push(sign);
        out.push_str(change.value().trim_end_matches('\n'));
        out.push('\n');
    }
    out
}

fn compare(host: &Outcome, node: &Outcome, known: Option<&Known>) -> Result<(), String> {
    let lines = difference(&host.stdout, &node.stdout);
    let same = lines.is_empty() && host.end == node.end;
    let unified = || {
        TextDiff::from_lines(&host.stdout, &node.stdout)
            .unified_diff()
            .context_radius(2)
            .header("host", "node")
            .to_string()
    };
    let Some(known) = known else {
        if same {
            return Ok(());
        }
        return Err(format!(
            "host: {}, node: {}\n{}--- node's stderr\n{}",
            host.end,
            node.end,
            exec::tail(&unified(), 60),
            exec::tail(&node.stderr, 20)
        ));
    };
    let end = match &known.end {
        Some(end) => end.clone(),
        None => host.end.to_string(),
    };
    if same {
        return Err(format!(
            "passes, but known.toml expects a difference ({}): remove the entry",
            known.reason
        ));
    }
    if lines.trim() != known.diff.trim() || node.end.to_string() != end {
        return Err(format!(
            "differs otherwise than known.toml says ({}): node: {}\n{}",
            known.reason,
            node.end,
            exec::tail(&unified(), 60)
        ));
    }
    Ok(())
}

/// The entry that would make this difference a known one.
fn blessing(name: &str, host: &Outcome, node: &Outcome) -> String {
    let mut text = format!("\n[[known]]\ntest = \"{name}\"\nreason = \"\"\n");
    if node.end != host.end {
        text.push_str(&format!("end = \"{}\"\n", node.end));
    }
    text.push_str(&format!(
        "diff = '''\n{}'''\n",
        difference(&host.stdout, &node.stdout)
    ));
    text
}
