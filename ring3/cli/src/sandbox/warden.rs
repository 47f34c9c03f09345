// SPDX-License-Identifier: GPL-2.0
//! The process outside of a sandbox.

use std::os::fd::AsFd;

use ring3_config::{NodeConfig, PortSpec};
use ring3_node::outside::{Outside, Trust};
use ring3_node::Folder;
use ring3_sandbox::behalf::Reach;

use super::apart::Writable;
use super::begun::{Begun, Heard};
use super::files::{self, View};
use super::gateway::{self, Gateway};
use super::keeper::{self, Work};
use super::limits::{self, Limits};
use super::room::Room;
use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::names;
use crate::notify;
use crate::program::Program;
use crate::say;
use crate::signals::Watch;
use crate::up::Caller;

/// ring3's own failure, as in error.rs.
const OWN_FAILURE: u8 = 125;
/// A sandbox that SIGTERM has ended, as a shell has it.
const ENDED: u8 = 128 + 15;

/// `ring3 run --sandbox`: the program's status.
pub fn run(args: &SandboxArgs, program: &Program, config: NodeConfig) -> Result<u8> {
    let bounds = Bounds::of(args, &[program], config)?;
    let status = bounds.keep(Work::Program(program), &mut None);
    // Its folders go before a word is said, which may be the last thing this process has time for.
    drop(bounds);
    let status = status?;
    if let Some(words) = limits::ended_by(args, status) {
        say::complain(words);
    }
    Ok(status)
}

/// `ring3 up --sandbox`: the life of the process that stays, and its status. `caller` hears when the node is up, or why not.
pub fn stay(
    args: &SandboxArgs,
    serve: &[PortSpec],
    config: NodeConfig,
    mut caller: Option<Caller>,
) -> i32 {
    let status = match serve {
        [] => stay_as_sandbox(args, config, &mut caller),
        serve => stay_as_gateway(args, serve, config, &mut caller),
    };
    let status = match (status, caller) {
        // `ring3 down` ends it by SIGTERM.
        (Ok(0 | ENDED), _) => 0,
        (Ok(_), _) => 1,
        (Err(failure), Some(caller)) => {
            caller.failed(&failure);
            1
        }
        // It has said why, or nobody is there to hear it.
        (Err(Failure::Node(ring3_node::Error::GivenUp)), None) => 1,
        (Err(failure), None) => {
            say::complain(failure);
            1
        }
    };
    say::finish();
    status
}

/// Tells whoever waits for node `config`. `Err(GivenUp)`: the caller was interrupted, and nobody wants the node.
fn say_ready(config: &NodeConfig, caller: &mut Option<Caller>) -> Result<()> {
    match caller.take().map(Caller::ready) {
        Some(true) => {}
        Some(false) => return Err(ring3_node::Error::GivenUp.into()),
        // In the foreground. Its neighbours are told its names, as by `ring3 up`.
        None => {
            if names::has_neighbours(config) {
                names::introduce(&config.name);
            }
            notify::ready();
        }
    }
    Ok(())
}

fn stay_as_sandbox(
    args: &SandboxArgs,
    mut config: NodeConfig,
    caller: &mut Option<Caller>,
) -> Result<u8> {
    let programs = std::mem::take(&mut config.programs);
    let programs = programs.iter().map(|command| Program::find(command));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    let any = Program::none()?;
    let all: Vec<&Program> = programs.iter().chain([&any]).collect();
    let bounds = Bounds::of(args, &all, config)?;
    bounds.keep(Work::Stays(&any, &programs), caller)
}

fn stay_as_gateway(
    args: &SandboxArgs,
    serve: &[PortSpec],
    config: NodeConfig,
    caller: &mut Option<Caller>,
) -> Result<u8> {
    let plan = gateway::plan_for(args, serve, config)?;
    let folder = Folder::open()?;
    let room = Room::of(args)?;
    let disks = room.watch(&Writable::default(), None, None, Some(plan.config()))?;
    let begun = plan.start(Some(disks))?;
    let watch = Watch::start()?;
    say::go_on();
    match plan.serve(begun, &folder, &watch, caller.as_ref()) {
        Err(Failure::Node(ring3_node::Error::GivenUp)) => Ok(OWN_FAILURE),
        gateway => {
            let gateway = gateway?;
            say_ready(plan.config(), caller)?;
            gateway.stay(&watch)
        }
    }
}

/// A sandbox that is about to be.
struct Bounds {
    config: NodeConfig,
    room: Room,
    view: View,
    limits: Limits,
    plan: Option<gateway::Plan>,
    folder: Folder,
}

impl Bounds {
    fn of(args: &SandboxArgs, programs: &[&Program], mut config: NodeConfig) -> Result<Bounds> {
        let view = files::view(args, programs)?;
        view.writable.keep_apart(&mut config)?;
        // What lies there is trusted: the locks, links and logs of the user's nodes, and sandboxes' sockets.
        let folder = Folder::open()?;
        view.writable.keeps_off(folder.root())?;
        Ok(Bounds {
            plan: gateway::plan(args, &view.writable, &mut config)?,
            limits: limits::of(args)?,
            room: Room::of(args)?,
            view,
            folder,
            config,
        })
    }

    /// From its start to its end: the status. While this process has one thread.
    fn keep(&self, work: Work<'_>, caller: &mut Option<Caller>) -> Result<u8> {
        let (plan, folder) = (self.plan.as_ref(), &self.folder);
        let tmp = self.view.tmp.as_ref().map(files::Tmp::fd);
        let memory = self.view.memory.as_ref().map(files::Tmp::fd);
        let captured = plan.map(gateway::Plan::config);
        let disks = self
            .room
            .watch(&self.view.writable, tmp, memory, captured)?;
        let gateway = plan.map(|plan| plan.start(None)).transpose()?;
        let stays = matches!(work, Work::Stays(..));
        let shown: Vec<_> = self.view.fds().map(AsFd::as_fd).collect();
        let mut sandbox = Begun::start(&shown, Some(disks), |warden| {
            let bounds = (self.view.lent(), self.limits);
            keeper::run(self.config.clone(), work, bounds, warden)
        })?;
        // Its programs have the limit of before.
        ring3_node::raise_descriptor_limit();
        let watch = Watch::start()?;
        // Its programs have the same standard error.
        say::go_on();
        let gateway = match (plan, gateway) {
            (Some(plan), Some(begun)) => match plan.serve(begun, folder, &watch, caller.as_ref()) {
                // It has said why.
                Err(Failure::Node(ring3_node::Error::GivenUp)) => {
                    return Ok(watch.is_to_end().unwrap_or(OWN_FAILURE))
                }
                gateway => Some(gateway?),
            },
            _ => None,
        };
        let mut outside = Outside::claim(&self.config, folder, Trust::Strangers)?;
        outside.open(&self.config, folder)?;
        if sandbox.hear(&outside, self.reach(&outside, &sandbox)?)? == Heard::Confined {
            let (first, keeper) = (sandbox.first(), sandbox.copy_talk()?);
            outside.listen(&self.config, folder, first, None, keeper, sandbox.end())?;
            if stays && sandbox.wait_ready(&watch, caller.as_ref())? {
                say_ready(&self.config, caller)?;
            }
        }
        watch_over(sandbox, gateway, &watch)
    }

    fn reach(&self, outside: &Outside, sandbox: &Begun) -> Result<Reach> {
        let disks = sandbox.disks();
        self.view.reach(outside.sockets(), move || {
            disks.as_ref().map_or(Ok(()), |it| it.begin_memory())
        })
    }
}

fn watch_over(sandbox: Begun, mut gateway: Option<Gateway>, watch: &Watch) -> Result<u8> {
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
