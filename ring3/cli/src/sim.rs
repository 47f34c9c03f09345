// SPDX-License-Identifier: GPL-2.0
//! `ring3 sim`: from what was typed to a simulation.

use std::path::Path;

use ring3_sim::scenario::Scenario;

use crate::args;
use crate::error::Result;
use crate::say;

/// Where programs of a scenario are looked for, unless the caller has a PATH.
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

pub fn sim(args: &args::Sim) -> Result<u8> {
    let path = args.file.as_path();
    let search = std::env::var("PATH").unwrap_or_else(|_| SEARCH.into());
    let (mut scenario, _tree) = ring3_sim::read::scenario(path, &search)?;
    if let Some(seed) = args.seed {
        scenario.general.seed = seed;
    }
    if let Some(folder) = &args.data_directory {
        scenario.general.data_directory.clone_from(folder);
    }
    for note in &scenario.notes {
        say::complain(format_args!("{}: note: {note}", path.display()));
    }
    summary(path, &scenario)?;
    Ok(0)
}

fn summary(path: &Path, scenario: &Scenario) -> Result<()> {
    let processes: usize = scenario
        .hosts
        .values()
        .map(|host| host.processes.len())
        .sum();
    say::print(format!(
        "{}: {} hosts, {} links, {} processes, {} events, {:?} of virtual time\n",
        path.display(),
        scenario.hosts.len(),
        scenario.links.len(),
        processes,
        scenario.events.len(),
        scenario.general.stop_time,
    ))
}
