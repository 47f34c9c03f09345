// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim --seeds`: bugs planted in real programs are found, their faults shortened, and the runs repeated.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, End, Outcome};
use crate::node::ring3;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::path::PathBuf;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sim_search_lost_update".into(), lost_update),
        trial("sim_search_lease".into(), lease),
        trial("sim_search_lost_ack".into(), lost_ack),
    ]
}

/// Far more than a search takes on a busy machine: it is there to end one that hangs.
const LIMIT: Duration = Duration::from_secs(600);

fn example(name: &str) -> PathBuf {
    paths::root()
        .join("examples/sim")
        .join(format!("{name}.yaml"))
}

/// A run in the folder of the scratch; its results are in the one of the given name.
fn run(scratch: &Scratch, words: &[&str], data: &str) -> Result<Outcome, String> {
    let mut command = ring3(words);
    command
        .arg("--data-directory")
        .arg(scratch.file(data))
        .current_dir(scratch.path());
    exec::run(&mut command, LIMIT)
}

/// Without faults the example goes well. Of the seeds some fail, and not all; the shortened list of one's faults fails in the
/// same way each time, with equal results.
fn finds(name: &str, seeds: &str, faults: &str, label: &str) -> Checked {
    let scratch = Scratch::new()?;
    let file = example(name).display().to_string();
    let plain = run(&scratch, &["sim", &file], "plain")?;
    ensure(plain.ok(), || plain.report())?;
    let words = [
        "sim",
        &file,
        "--seeds",
        seeds,
        "--faults",
        faults,
        "--minimize",
    ];
    let found = run(&scratch, &words, "found")?;
    ensure(found.end == End::Exit(1), || found.report())?;
    let last = found.stdout.lines().last().unwrap_or_default();
    let (bad, all) = last.split_once(" of ").ok_or_else(|| found.report())?;
    ensure(!all.starts_with(&format!("{bad} ")), || {
        format!("all seeds fail: {last}")
    })?;
    ensure(found.stdout.contains(label), || found.report())?;
    let again = found
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("again: ring3 "))
        .ok_or_else(|| found.report())?;
    let words: Vec<&str> = again.split(' ').collect();
    for data in ["first", "again"] {
        let repeated = run(&scratch, &words, "repeated")?;
        std::fs::rename(scratch.file("repeated"), scratch.file(data))
            .map_err(|why| why.to_string())?;
        ensure(
            repeated.end == End::Exit(1) && repeated.stderr.contains("was to be `exited: 0`"),
            || repeated.report(),
        )?;
    }
    let mut diff = ring3(["sim", "diff"]);
    diff.args([scratch.file("first"), scratch.file("again")]);
    let same = exec::run(&mut diff, LIMIT)?;
    ensure(same.ok() && same.stdout.contains("all equal"), || {
        same.report()
    })?;
    Ok(Verdict::Passed)
}

fn lost_update() -> Checked {
    if let Some(why) = missing(&["python3"])? {
        return Ok(Verdict::Ignored(why));
    }
    finds(
        "lost-update",
        "1..8",
        "schedule",
        "another order of wake-ups",
    )
}

fn lease() -> Checked {
    if let Some(why) = missing(&["python3", "redis-server", "redis-cli"])? {
        return Ok(Verdict::Ignored(why));
    }
    finds("lease", "1..6", "slow", " stands still")
}

fn lost_ack() -> Checked {
    if let Some(why) = missing(&["python3", "memcached"])? {
        return Ok(Verdict::Ignored(why));
    }
    finds("lost-ack", "1..20", "loss", " loses ")
}
