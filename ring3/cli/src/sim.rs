// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim`: from what was typed to a simulation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ring3_node::Folder;
use ring3_sim::data::{self, Data};
use ring3_sim::plan::{self, Cables};
use ring3_sim::read;
use ring3_sim::run::{self, Report};
use ring3_sim::scenario::{Action, Event, Scenario};
use ring3_sim::stage::{self, Setup};
use ring3_sim::words::{Stuck, Waiting};
use ring3_sim::yaml::Value;
use ring3_sim::{diff, faults, gdb};

use crate::args;
use crate::error::{Failure, Result};
use crate::sim_progress::Progress;
use crate::{nodes, program, say, sim_search};

/// Where programs of a scenario are looked for, unless the caller has a PATH.
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

const SCHEMA: &str = include_str!("../../../docs/sim.schema.json");

/// Threads of a deadlock that are named.
const NAMED: usize = 20;

/// Beside the command, as every image.
const IMAGE: &str = "ring3-sim.image";

/// Whether a simulation is to run; otherwise something is read only.
pub fn starts_one(args: &args::Sim) -> bool {
    args.verb.is_none() && !args.schema && !args.check && !args.show_config
}

pub fn sim(args: &args::Sim) -> Result<u8> {
    if let Some(args::SimVerb::Diff(diff)) = &args.verb {
        return compare(diff);
    }
    if args.schema {
        say::print(SCHEMA)?;
        return Ok(0);
    }
    // Required by the grammar.
    let path = args.file.as_deref().unwrap_or(Path::new(""));
    let search = std::env::var("PATH").unwrap_or_else(|_| SEARCH.into());
    let (mut scenario, tree) = read::scenario(path, &search, &overrides(args))?;
    if args.show_config {
        say::print(tree.to_json())?;
        return Ok(0);
    }
    for note in &scenario.notes {
        say::complain(format_args!("{}: note: {note}", path.display()));
    }
    if args.check {
        summary(path, &scenario, args.json)?;
        return Ok(0);
    }
    if let Some(range) = args.seeds.clone() {
        return sim_search::search(args, path, &scenario, &tree, range);
    }
    let list = match &args.faults_file {
        Some(file) => sim_search::read_faults(file)?,
        None => faults::faults(&scenario, &args.faults, scenario.general.seed),
    };
    if args.real_time && list.iter().any(|fault| !fault.schedule.is_zero()) {
        let words = "the fault `schedule` needs virtual time: leave out --real-time, or that fault";
        return Err(ring3_sim::Error::Said(words.into()).into());
    }
    faults::add(&mut scenario, &list);
    let is_clock = |event: &Event| matches!(event.what, Action::Clock(..));
    if args.real_time && scenario.events.iter().any(is_clock) {
        let words = "a host's clock needs virtual time: leave out --real-time, or `clock`";
        return Err(ring3_sim::Error::Said(words.into()).into());
    }
    let folder = std::path::absolute(&scenario.general.data_directory)
        .map_err(Failure::host("find the data folder"))?;
    let setup_image = match args.real_time {
        true => None,
        false => Some(image()?),
    };
    let cables = match args.real_time {
        true => Cables::Netem,
        false => Cables::Simlink,
    };
    let mut plan = plan::plan(&scenario, folder, cables);
    plan.trace = args.trace;
    plan.gdb = args.gdb;
    if plan.gdb {
        gdb::check(&Data::of(&plan))?;
    }
    let data = Data::make(&plan, scenario.general.template_directory.as_deref())?;
    data::write(&data.path("processed-config.yaml"), &tree.to_json())?;
    let setup = Setup {
        plan: run::write_plan(&plan)?,
        gate: program::gate()?,
        image: setup_image,
        node: format!("sim-{}", std::process::id()),
        runtime: Folder::open()?.root().to_owned(),
        host: None,
    };
    let mut progress = Progress::new(plan.stop, data.path(gdb::SCRIPT));
    let report = run::run(&plan, &setup, &mut progress);
    progress.end();
    let report = report?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ring3_sim::report::write(&plan, &report.outcomes, &name)?;
    show(args, &report)
}

/// What the command line says in the place of the file.
fn overrides(args: &args::Sim) -> Vec<read::Override> {
    let mut list = args.over.0.clone();
    if let Some(seed) = args.seed {
        list.push((
            vec!["general".into(), "seed".into()],
            Value::Int(i64::try_from(seed).unwrap_or(i64::MAX)),
        ));
    }
    if let Some(folder) = &args.data_directory {
        let folder = folder.to_string_lossy().into_owned();
        let at = vec!["general".into(), "data_directory".into()];
        list.push((at, Value::Text(folder)));
    }
    list
}

/// 0: equal, 1: not, as diff(1).
fn compare(args: &args::SimDiff) -> Result<u8> {
    let found = diff::compare(&args.a, &args.b)?;
    if args.json {
        let text = serde_json::to_string_pretty(&found)
            .map_err(|why| Failure::host("print")(why.into()))?;
        say::print(format!("{text}\n"))?;
        return Ok(u8::from(!found.differences.is_empty()));
    }
    let Some(first) = found.differences.first() else {
        say::print(format!("{} files, all equal\n", found.files))?;
        return Ok(0);
    };
    let time = match first.at {
        Some(at) => format!(" at {:.9} s", at as f64 / 1e9),
        None => String::new(),
    };
    let what = match first.file.extension().is_some_and(|e| e == "pcap") {
        true => "packet",
        false => "line",
    };
    say::print(format!(
        "first difference{time}: {}, {what} {}\n  < {}\n  > {}\n{} of {} files differ\n",
        first.file.display(),
        first.number,
        first.first,
        first.second,
        found.differences.len(),
        found.files
    ))?;
    Ok(1)
}

/// A process between the command and the programs.
pub fn stage(args: &args::SimStage) -> Result<u8> {
    let setup = Setup {
        plan: args.plan.clone(),
        gate: args.gate.clone(),
        image: args.image.clone(),
        node: args.node.clone(),
        runtime: args.runtime.clone(),
        host: args.host.clone(),
    };
    Ok(stage::run(&args.stage, &setup)?)
}

fn image() -> Result<PathBuf> {
    let exe = std::env::current_exe().map_err(Failure::host("find where ring3 is"))?;
    let folder = exe.parent().unwrap_or(Path::new("/"));
    let looked = [folder.join(IMAGE), folder.join("../lib/ring3").join(IMAGE)];
    looked
        .iter()
        .find(|path| path.is_file())
        .cloned()
        .ok_or_else(|| {
            Failure::Sim(ring3_sim::Error::Said(format!(
                "no kernel with virtual time: looked for {}; run in real time with --real-time",
                looked
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            )))
        })
}

fn show(args: &args::Sim, report: &Report) -> Result<u8> {
    let outcomes = &report.outcomes;
    if args.json {
        let text = serde_json::to_string_pretty(outcomes)
            .map_err(|why| Failure::host("print")(why.into()))?;
        say::print(format!("{text}\n"))?;
    } else {
        for process in outcomes.processes.iter().filter(|process| !process.ok) {
            say::complain(format_args!(
                "{}: {} was to be `{}` and is `{}`",
                process.host, process.process, process.expected, process.state
            ));
        }
        if let Some(stuck) = &outcomes.stuck {
            complain_stuck(stuck);
        }
        if let Some(first) = outcomes.preempted.iter().min_by_key(|one| one.first) {
            let count: u32 = outcomes.preempted.iter().map(|one| one.count).sum();
            say::complain(format_args!(
                "{count} times a program was preempted while it computed, first {} (process {}) on {} at {:.6} s: another run may differ from there on",
                first.program,
                first.process,
                first.host,
                first.first as f64 / 1e9
            ));
        }
        let virtual_time = Duration::from_nanos(outcomes.stop);
        // The set-up is the same for a minute and for a day.
        let wall = (report.wall - report.set_up).as_secs_f64();
        let times = match args.real_time {
            true => format!("{virtual_time:?} of real time"),
            false => format!(
                "{virtual_time:?} of virtual time in {wall:.2} s ({} times as fast)",
                speed(virtual_time.as_secs_f64() / wall)
            ),
        };
        say::complain(format_args!(
            "{times}, set up in {:.2} s, {} of {} processes as expected",
            report.set_up.as_secs_f64(),
            outcomes
                .processes
                .iter()
                .filter(|process| process.ok)
                .count(),
            outcomes.processes.len(),
        ));
    }
    Ok(u8::from(!outcomes.ok))
}

/// Which programs wait, and in what.
fn complain_stuck(stuck: &Stuck) {
    let at = stuck.at as f64 / 1e9;
    let first = match stuck.deadlock {
        true => "all programs wait for each other, and nothing else is to come: a deadlock",
        false => "the stop time, and these have not ended",
    };
    say::complain(format_args!("{at} s: {first}"));
    for thread in stuck.threads.iter().take(NAMED) {
        let Waiting {
            host,
            program,
            process,
            call,
            since,
        } = thread;
        let since = *since as f64 / 1e9;
        say::complain(format_args!(
            "  host {host}: {program} (process {process}) waits in {call} since {since:.9} s"
        ));
    }
    if stuck.threads.len() > NAMED {
        let more = stuck.threads.len() - NAMED;
        say::complain(format_args!("  and {more} more threads: see result.json"));
    }
}

/// With one decimal where that tells something.
fn speed(times: f64) -> String {
    match times < 10.0 {
        true => format!("{times:.1}"),
        false => format!("{times:.0}"),
    }
}

/// What `--check` says of a scenario.
#[derive(Debug, serde::Serialize)]
struct Summary<'a> {
    file: &'a Path,
    hosts: usize,
    links: usize,
    processes: usize,
    events: usize,
    stop_time_s: f64,
}

fn summary(path: &Path, scenario: &Scenario, json: bool) -> Result<()> {
    let it = Summary {
        file: path,
        hosts: scenario.hosts.len(),
        links: scenario.links.len(),
        processes: scenario
            .hosts
            .values()
            .map(|host| host.processes.len())
            .sum(),
        events: scenario.events.len(),
        stop_time_s: scenario.general.stop_time.as_secs_f64(),
    };
    if json {
        return nodes::print_json(&it);
    }
    say::print(format!(
        "{}: {} hosts, {} links, {} processes, {} events, {} s of virtual time\n",
        path.display(),
        it.hosts,
        it.links,
        it.processes,
        it.events,
        it.stop_time_s,
    ))
}
