// SPDX-License-Identifier: GPL-2.0
//! The process outside of a sandbox.

use ring3_config::NodeConfig;
use ring3_node::outside::{Outside, Trust};
use ring3_node::Folder;

use super::begun::{Begun, Heard};
use super::gateway::{self, Gateway};
use super::keeper::Work;
use super::{files, keeper, limits};
use crate::args;
use crate::error::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::node_args;
use crate::ports;
use crate::program::Program;
use crate::say;
use crate::signals::Watch;

/// ring3's own failure, as in error.rs.
const OWN_FAILURE: u8 = 125;

/// `ring3 run --sandbox`: the program's status.
pub fn run(args: &args::Run) -> Result<u8> {
    let fallback = format!("run-{}", std::process::id());
    let mut config = node_args::node(&args.node, args.name.as_deref(), &fallback)?;
    if !config.programs.is_empty() {
        return Err(Failure::ProgramsForRun);
    }
    let program = Program::find(&args.command)?;
    let view = files::view(&args.sandbox, &program)?;
    let limits = limits::of(&args.sandbox)?;
    let plan = gateway::plan(&args.sandbox, &mut config)?;
    let folder = Folder::open()?;
    ports::need_switches(&config, &Interrupt::hold_back()?)?;
    // While there is one thread.
    let gateway = plan.as_ref().map(gateway::Plan::start).transpose()?;
    let sandbox = Begun::start(&[], |warden| {
        let bounds = (view.lent(), limits);
        keeper::run(config.clone(), Work::Program(&program), bounds, warden)
    })?;
    let watch = Watch::start()?;
    let gateway = match (&plan, gateway) {
        (Some(plan), Some(begun)) => match plan.serve(begun, &folder, &watch) {
            // It has said why.
            Err(Failure::Node(ring3_node::Error::GivenUp)) => {
                return Ok(watch.is_to_end().unwrap_or(OWN_FAILURE))
            }
            gateway => Some(gateway?),
        },
        _ => None,
    };
    watch_over(&config, &folder, sandbox, gateway, &watch)
}

fn watch_over(
    config: &NodeConfig,
    folder: &Folder,
    mut sandbox: Begun,
    mut gateway: Option<Gateway>,
    watch: &Watch,
) -> Result<u8> {
    let mut outside = Outside::claim(config, folder, Trust::Strangers)?;
    outside.open(config, folder)?;
    if sandbox.hear(&outside)? == Heard::Confined {
        let (first, keeper) = (sandbox.first(), sandbox.copy_talk()?);
        outside.listen(config, folder, first, None, keeper, sandbox.end())?;
    }
    // It is asked for signals while its end is looked for.
    let sandbox = std::cell::RefCell::new(sandbox);
    let ended = || {
        if gateway.as_mut().is_some_and(Gateway::is_gone) {
            gateway = None;
            say::complain("the sandbox's gateway has ended: it has no network any more");
        }
        sandbox.borrow_mut().ended()
    };
    watch.wait_until(ended, |signal| sandbox.borrow().ask(signal))
}
