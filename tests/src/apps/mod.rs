// SPDX-License-Identifier: GPL-2.0
//! Real programs on nodes, and what may befall a node.
//!
//! | module | concept |
//! | --- | --- |
//! | [`topology`] | where the two ends of a conversation run |
//! | [`scenario`] | a conversation, over each topology |
//! | [`programs`] | one server, one client |
//! | [`web`] | web servers with workers, reloaded under load |
//! | [`stores`] | databases and caches |
//! | [`transfer`] | files by sendfile() |
//! | [`secrets`] | what the far side of a link may see |
//! | [`languages`] | Node.js, Go, Java, musl |
//! | [`clients`] | static programs, shells, names, captures |
//! | [`ssh`] | OpenSSH |
//! | [`passing`] | descriptors between processes |
//! | [`gateways`] | the `host` port |
//! | [`ports`] | passt, and captures |
//! | [`forward`] | packets moved on, past a handler |
//! | [`guests`] | virtual machines behind `vhost` ports |
//! | [`interfaces`] | ports that are an interface of the host |
//! | [`inspect`] | looking in from a second process |
//! | [`netns`] | network namespaces inside a node |
//! | [`trace`] | gdb, strace, ltrace, valgrind |
//! | [`ups`] | nodes that start programs, and start again; nodes at a terminal |
//! | [`usage`] | mistakes on the command line |
//! | [`leaks`] | what is left behind |
//! | [`kills`] | `kill -9` at bad moments |
//! | [`debug`] | debuggers on a node that traces its programs |
//! | [`ends`] | a node's end is its programs' end |
//! | [`faults`] | what the host may do to a node |
//! | [`shortage`] | a host that is short of something |
//! | [`fuzz`] | random system calls |
//! | [`neighbours`] | one program killed, stopped or kept short, while others are served |
//! | [`space`] | where in the address space a node lies |
//! | [`soak`] | an hour of traffic, and nothing grows |
//! | [`storm`] | SIGKILL at random instants, many times |
//! | [`fork_storm`] | short connections to a forking server, whose children are killed |
//! | [`calls`] | counting host calls |
//! | [`cpuid`] | the instruction, which a node answers from memory |
//! | [`frames`] | corrupt frames, checksums, what children send |
//! | [`sim_cmd`] | simulated networks |
//! | [`sim_links`] | rate, delay, losses and traces of simulated links |
//! | [`sim_nat`] | simulated hosts behind another's address |
//! | [`sim_search`] | planted bugs, found by seed |
//! | [`sim_sees`] | what simulated programs see of the machine; deadlocks |
//! | [`sim_time`] | nodes in virtual time |
//! | [`sim_transports`] | MPTCP, SCTP, DCCP and OSPF in simulated networks |
//! | [`sim_truth`] | simulated throughput and delay against theory |
//! | [`sim_words`] | a simulation's own words and captures beside those of the usual programs |
//! | [`xdp_programs`] | XDP programs in the driver |
//! | [`ordinary`] | all of it without root |

mod calls;
mod clients;
mod cpuid;
mod debug;
mod ends;
mod faults;
mod fork_storm;
mod forward;
mod frames;
mod fuzz;
mod gateways;
mod guests;
mod halves;
mod hostile;
mod inspect;
mod interfaces;
mod kills;
mod languages;
mod leaks;
mod neighbours;
mod netns;
mod ordinary;
mod passing;
mod ports;
mod programs;
mod scenario;
mod secrets;
mod shortage;
mod sim_cmd;
mod sim_links;
mod sim_nat;
mod sim_search;
mod sim_sees;
mod sim_time;
mod sim_transports;
mod sim_truth;
mod sim_words;
mod soak;
mod space;
mod ssh;
mod stores;
mod storm;
mod topology;
mod trace;
mod transfer;
mod ups;
mod usage;
mod web;
mod xdp_programs;

use crate::Options;
use crate::compile::compile;
use crate::paths;
use libtest_mimic::{Completion, Failed, Trial};
use std::path::PathBuf;

pub use scenario::{Scenario, run as run_scenario};
pub use topology::Topology;

/// All conversations.
const SCENARIOS: &[&[Scenario]] = &[
    programs::SCENARIOS,
    web::SCENARIOS,
    stores::SCENARIOS,
    transfer::SCENARIOS,
    secrets::SCENARIOS,
    languages::SCENARIOS,
    clients::SCENARIOS,
    ssh::SCENARIOS,
    passing::SCENARIOS,
];

pub fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    SCENARIOS.iter().copied().flatten()
}

/// `make test` leaves it out: it runs with --long alone.
pub fn is_long(test: &str) -> bool {
    test == "apps::soak"
}

pub fn trials(options: Options) -> Vec<Trial> {
    let mut all = Vec::new();
    for scenarios in SCENARIOS {
        all.extend(scenario::trials(scenarios));
    }
    all.extend(ports::trials());
    all.extend(space::trials());
    all.extend(gateways::trials());
    all.extend(forward::trials());
    all.extend(guests::trials());
    all.extend(halves::trials(options));
    all.extend(hostile::trials(options));
    all.extend(interfaces::trials());
    all.extend(xdp_programs::trials());
    all.extend(passing::trials());
    all.extend(inspect::trials());
    all.extend(netns::trials());
    all.extend(trace::trials());
    all.extend(usage::trials());
    all.extend(leaks::trials());
    all.extend(kills::trials());
    all.extend(debug::trials());
    all.extend(storm::trials(options));
    all.extend(fork_storm::trials(options));
    all.extend(neighbours::trials(options));
    all.extend(soak::trials(options));
    all.extend(fuzz::trials(options));
    all.extend(ends::trials());
    all.extend(ups::trials());
    all.extend(faults::trials());
    all.extend(shortage::trials());
    all.extend(calls::trials());
    all.extend(cpuid::trials());
    all.extend(frames::trials());
    all.extend(ordinary::trials());
    all.extend(sim_cmd::trials());
    all.extend(sim_links::trials());
    all.extend(sim_nat::trials());
    all.extend(sim_search::trials());
    all.extend(sim_sees::trials());
    all.extend(sim_time::trials());
    all.extend(sim_transports::trials());
    all.extend(sim_truth::trials());
    all.extend(sim_words::trials());
    all
}

/// The result of a test other than success or failure.
pub enum Verdict {
    Passed,
    /// It can't run here, and why.
    Ignored(String),
}

type Checked = Result<Verdict, String>;

/// A trial from a function of ours.
fn trial(name: String, check: impl FnOnce() -> Checked + Send + 'static) -> Trial {
    Trial::ignorable_test(format!("apps::{name}"), move || match check() {
        Ok(Verdict::Passed) => Ok(Completion::Completed),
        Ok(Verdict::Ignored(why)) => Ok(Completion::ignored_with(why)),
        Err(why) => Err(Failed::from(why)),
    })
}

/// A helper program of tests/apps, compiled.
fn helper(name: &str) -> Result<PathBuf, String> {
    compile(&paths::root().join("tests/apps").join(format!("{name}.c")))
}

/// Fails with a message unless the condition holds.
fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message()) }
}

/// Why a test can't run for want of a program; where everything has been installed
/// (`tools/setup`, `CI=true`) that is a failure.
fn missing(programs: &[&str]) -> Result<Option<String>, String> {
    let Some(program) = programs.iter().find(|program| !installed(program)) else {
        return Ok(None);
    };
    let why = format!("{program} is not installed: see tools/setup");
    if std::env::var_os("CI").is_some() {
        return Err(why);
    }
    Ok(Some(why))
}

/// Is the program installed?
fn installed(program: &str) -> bool {
    path_of(program).is_some()
}

/// Where the program is.
pub fn path_of(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .map(|path| path.to_string_lossy().into_owned())
        .or_else(|| stores::postgresql_program(program))
}
