// SPDX-License-Identifier: GPL-2.0
//! `ring3 run` and `ring3 exec`: a program on a node.

use std::time::Duration;

use nix::sys::resource::{getrlimit, Resource};
use nix::unistd::{getsid, Pid};
use ring3_node::client::Client;
use ring3_node::{raise_descriptor_limit, NodeHandle};

use crate::args;
use crate::error::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::names;
use crate::node_args;
use crate::ports;
use crate::program::Program;
use crate::sandbox;
use crate::say;
use crate::signals::{shell_status, Watch};

/// How often, and after what time, to look for what a program has left.
const LEAVE_LOOKS: u32 = 10;
const LEAVE_TURN: Duration = Duration::from_millis(10);

/// A node kept by this process for one program, which is our child.
pub fn run(args: &args::Run) -> Result<u8> {
    let fallback = format!("run-{}", std::process::id());
    let mut config = node_args::node(&args.node, args.name.as_deref(), &fallback)?;
    if !config.programs.is_empty() {
        return Err(Failure::ProgramsForRun);
    }
    config.for_one = true;
    let program = Program::find(&args.command)?;
    ports::need_switches(&config, &Interrupt::hold_back()?)?;
    let bounds = args.sandbox.beside(config.sandbox.take());
    if bounds.sandbox {
        return sandbox::run(&bounds, &program, config);
    }
    let watch = Watch::start()?;
    // The raised limit is for the keeper; the program gets its own back.
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|why| Failure::host("ask for the limit of descriptors")(why.into()))?;
    raise_descriptor_limit();
    let has_neighbours = names::has_neighbours(&config);
    let node = NodeHandle::start_unless(config, &[watch.ending()]);
    // Also where the start failed: what is typed may have ended what it waited for.
    if let Some(status) = watch.is_to_end() {
        return Ok(status);
    }
    let node = node?;
    if has_neighbours {
        names::introduce(node.name());
    }
    let mut child = program.spawn(node.join_path(), watch.mask_before(), descriptors)?;
    let status = watch.wait(&mut child)?;
    let status = shell_status(status);
    if status == 0 {
        say_what_is_left(&node, &args.command[0].to_string_lossy());
    }
    match node.down() {
        // The program decides how it ends on a poisoned node; the message says why the node was poisoned.
        Err(error) if status != 0 => {
            say::complain(error);
            Ok(status)
        }
        down => down.map(|()| status).map_err(Failure::from),
    }
}

/// A program that has put itself into the background (a session of its own) ends with the node, which ends with the
/// program that was asked for. Whoever meant to start a server would see nothing at all.
fn say_what_is_left(node: &NodeHandle, command: &str) {
    let Ok(node) = Client::open(node.name()) else {
        return;
    };
    let own = getsid(None);
    for _ in 0..LEAVE_LOOKS {
        let Ok(status) = node.status() else { return };
        let sessions: Vec<_> = status
            .procs
            .iter()
            .filter_map(|process| getsid(Some(Pid::from_raw(process.pid))).ok())
            .collect();
        if sessions.is_empty() {
            return;
        }
        if sessions.iter().any(|&session| Ok(session) != own) {
            say::complain(format!(
                "{command} has gone to the background and ends with its node: keep it in the foreground, or use `ring3 up` and `ring3 exec`"
            ));
            return;
        }
        // It may be about to: its first process ends before its second makes a session.
        std::thread::sleep(LEAVE_TURN);
    }
}

/// Becomes the program; the node is kept elsewhere. Returns only if that fails, or the program's status where that runs
/// in a sandbox.
pub fn exec(args: &args::Exec) -> Result<u8> {
    ring3_config::name::node(&args.name)?;
    let node = Client::open(&args.name)?;
    if node.is_sandboxed() {
        return sandbox::enter(&args.name, &args.command, None);
    }
    node.is_up()?;
    let program = Program::find(&args.command)?;
    Err(program.exec(&node.join_path()))
}
