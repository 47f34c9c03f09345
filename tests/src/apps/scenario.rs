// SPDX-License-Identifier: GPL-2.0
//! A scenario: what programs do with each other, whatever lies between them.

use super::topology::{Pair, Topology};
use super::{Checked, Verdict, missing, trial};
use crate::exec::Outcome;
use crate::scratch::{self, Scratch};
use libtest_mimic::Trial;
use std::time::Duration;

/// What a conversation may take.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Servers: on a node, driven from another node and from the host.
pub const SERVED: &[Topology] = &[Topology::Link, Topology::TapServer];

/// One conversation.
pub struct Scenario {
    /// The tests are called NAME_TOPOLOGY.
    pub name: &'static str,
    /// The programs that have to be installed; the first is the one that is tested.
    pub programs: &'static [&'static str],
    /// What is exercised, for docs/compatibility.md.
    pub what: &'static str,
    pub topologies: &'static [Topology],
    /// Why an ordinary user can't.
    pub needs_root: Option<&'static str>,
    pub run: fn(&Pair) -> Result<(), String>,
}

/// One trial for each scenario and topology.
pub fn trials(scenarios: &'static [Scenario]) -> Vec<Trial> {
    let each = |scenario: &'static Scenario| {
        scenario
            .topologies
            .iter()
            .map(move |&topology| trial(scenario.test(topology), move || run(scenario, topology)))
    };
    scenarios.iter().flat_map(each).collect()
}

impl Scenario {
    /// The test's name below `apps::`.
    pub fn test(&self, topology: Topology) -> String {
        format!("{}_{}", self.name, topology.name())
    }
}

/// One scenario.
pub fn run(scenario: &Scenario, topology: Topology) -> Checked {
    if let Some(why) = topology.obstacle() {
        return Ok(Verdict::Ignored(why));
    }
    if let (Some(why), false) = (scenario.needs_root, rustix::process::geteuid().is_root()) {
        return Ok(Verdict::Ignored(why.into()));
    }
    if let Some(why) = missing(scenario.programs)? {
        return Ok(Verdict::Ignored(why));
    }
    let pair = Pair::new(topology)?;
    (scenario.run)(&pair)?;
    Ok(Verdict::Passed)
}

/// A folder with a large and a small file.
pub fn site() -> Result<Scratch, String> {
    let folder = Scratch::new()?;
    folder.noise("large", 20 << 20)?;
    folder.write("small", "hello\n")?;
    Ok(folder)
}

/// Fetches a site's files by curl, IPv4 and IPv6, one after another and at once.
pub fn fetch(pair: &Pair, folder: &Scratch, port: u16) -> Result<(), String> {
    fetch4(pair, folder, port)?;
    fetch_large(pair, folder, &format!("http://[{}]:{port}", pair.server6))
}

/// Fetches a site's files by curl, IPv4.
pub fn fetch4(pair: &Pair, folder: &Scratch, port: u16) -> Result<(), String> {
    let base = format!("http://{}:{port}", pair.server4);
    fetch_large(pair, folder, &base)?;
    let url = format!("{base}/small?[1-50]");
    let text = pair.client.must(&["curl", "-sS", "-f", &url], LIMIT)?;
    super::ensure(text == "hello\n".repeat(50), || {
        format!("fifty requests over one connection: {} bytes", text.len())
    })?;
    let text = pair.client.must(
        &["curl", "-sS", "-f", "-Z", "--parallel-max", "10", &url],
        LIMIT,
    )?;
    super::ensure(text == "hello\n".repeat(50), || {
        format!("fifty requests, ten at once: {} bytes", text.len())
    })
}

fn fetch_large(pair: &Pair, folder: &Scratch, base: &str) -> Result<(), String> {
    let got = folder.file("got");
    let url = format!("{base}/large");
    pair.client.must(
        &["curl", "-sS", "-f", "-o", &got.to_string_lossy(), &url],
        LIMIT,
    )?;
    super::ensure(scratch::same(&got, &folder.file("large"))?, || {
        format!("{url}: other bytes arrived")
    })
}

/// `ab ARGS`: how many requests were answered. One that failed fails the test.
pub fn load(pair: &Pair, args: &[&str]) -> Result<u64, String> {
    let argv: Vec<&str> = ["ab", "-q"].iter().chain(args).copied().collect();
    let outcome = pair.client.run(&argv, LIMIT)?;
    let report = || format!("{}: {}", argv.join(" "), Outcome::report(&outcome));
    let number = |label: &str| -> Option<u64> {
        let line = outcome.stdout.lines().find(|l| l.starts_with(label))?;
        line.split_whitespace().last()?.parse().ok()
    };
    let complete = number("Complete requests:").ok_or_else(report)?;
    let failed = number("Failed requests:").ok_or_else(report)?;
    let other = number("Non-2xx responses:").unwrap_or(0);
    super::ensure(
        outcome.ok() && complete > 0 && failed == 0 && other == 0,
        report,
    )?;
    Ok(complete)
}
