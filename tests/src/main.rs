// SPDX-License-Identifier: GPL-2.0
//! The one test runner.
//!
//! `oracle::*` run small C programs on the host and on a node and compare the
//! outputs. `apps::*` run real programs, `kunit::*` the kernel's own tests. Everything is a libtest-mimic trial,
//! so filters, `--list`, `--skip`, `--exact` and `--format json` work as with any
//! Rust test.

mod apps;
mod compile;
mod exec;
mod known;
mod kunit;
mod mutants;
mod names;
mod node;
mod oracle;
mod page;
mod paths;
mod sandboxed;
mod scratch;
mod served;

use libtest_mimic::Arguments;
use std::process::ExitCode;

const HELP: &str = "\
Options of ring3's own (before libtest's, see below):
    --sandbox       The oracle programs, and the programs on two linked nodes, in sandboxes; exceptions are in tests/sandbox.toml
    --short         With --sandbox: only those that tell most
    --host-only     Run the oracle programs on the host alone, print their output
    --only NAME     Run this test, and others that are named so; as often as there are names
    --repeat N      Run each oracle program N times a side; all must agree
    --page          Write docs/compatibility.md: make compat does it
    --bless         Print the entries that tests/oracle/known.toml would need
    --long          Nightly sizes: 1,000 kills in a storm instead of 60, and so on
    --seed N        The seed of what is random; without it each run has its own
";

/// What our own options ask for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub sandbox: bool,
    pub short: bool,
    pub host_only: bool,
    pub repeat: u32,
    pub bless: bool,
    pub long: bool,
    pub seed: Option<u64>,
}

/// What of the command line is not libtest's.
struct Ours {
    options: Options,
    page: bool,
    /// The names of the tests to run; none stands for all.
    only: Vec<String>,
}

fn split_options() -> Result<(Ours, Vec<String>), String> {
    let mut options = Options {
        sandbox: false,
        short: false,
        host_only: false,
        repeat: 1,
        bless: false,
        long: false,
        seed: None,
    };
    let mut page = false;
    let mut only = Vec::new();
    let mut rest = Vec::new();
    let mut args = std::env::args();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--sandbox" => options.sandbox = true,
            "--short" => options.short = true,
            "--host-only" => options.host_only = true,
            "--bless" => options.bless = true,
            "--page" => page = true,
            "--only" => only.push(args.next().ok_or("--only: a test's name is missing")?),
            "--long" => options.long = true,
            "--seed" => {
                let n = args.next().unwrap_or_default();
                let seed = n
                    .parse()
                    .map_err(|_| format!("--seed: not a number: '{n}'"))?;
                options.seed = Some(seed);
            }
            "--repeat" => {
                let n = args.next().unwrap_or_default();
                options.repeat = n
                    .parse()
                    .map_err(|_| format!("--repeat: not a number: '{n}'"))?;
            }
            "--help" | "-h" => {
                println!("{HELP}");
                rest.push(arg);
            }
            _ => rest.push(arg),
        }
    }
    let ours = Ours {
        options,
        page,
        only,
    };
    Ok((ours, rest))
}

fn main() -> ExitCode {
    let (ours, rest) = match split_options() {
        Ok(parsed) => parsed,
        Err(message) => {
            eprintln!("tests: {message}");
            return ExitCode::from(2);
        }
    };
    let options = ours.options;
    let mut args = Arguments::from_iter(rest);
    // Each test keeps about one core busy, and timing-sensitive ones suffer first.
    args.test_threads.get_or_insert(2);

    if options.sandbox {
        paths::use_sandboxes();
    }
    let trials = match options.sandbox {
        true => sandboxed::trials(options),
        false => oracle::trials(options),
    };
    let mut trials = match trials {
        Ok(trials) => trials,
        Err(message) => {
            eprintln!("tests: {message}");
            return ExitCode::from(2);
        }
    };
    if !options.host_only && !options.sandbox {
        trials.extend(kunit::trials());
        trials.extend(apps::trials(options));
        let tests: Vec<String> = trials.iter().map(|t| t.name().to_string()).collect();
        if ours.page {
            return match page::write(&tests) {
                Ok(()) => ExitCode::SUCCESS,
                Err(message) => {
                    eprintln!("tests: {message}");
                    ExitCode::from(2)
                }
            };
        }
        trials.push(page::trial(&tests));
        trials.push(mutants::trial());
        trials.extend(names::trials());
    }
    for name in &ours.only {
        if !trials.iter().any(|t| t.name() == name) {
            eprintln!("tests: --only: there is no test {name}");
            return ExitCode::from(2);
        }
    }
    if !ours.only.is_empty() {
        trials.retain(|t| ours.only.iter().any(|name| t.name() == name));
    }
    libtest_mimic::run(&args, trials).exit_code()
}
