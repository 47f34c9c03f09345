// SPDX-License-Identifier: GPL-2.0
//! The confined process that keeps the node, and starts the program as its child.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl;
use nix::sys::resource::{getrlimit, Resource};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{send, sendmsg, ControlMessage, MsgFlags};
use ring3_config::NodeConfig;
use ring3_node::outside::Given;
use ring3_node::{raise_descriptor_limit, NodeHandle};
use ring3_sandbox::Files;

use super::begun::READY;
use super::environment::Environment;
use super::exec;
use super::limits::{Limits, OfProgram};
use crate::error::{Failure, Result};
use crate::program::Program;
use crate::say;
use crate::signals::{shell_status, Watch};

/// ring3's own failure, as in error.rs.
const OWN_FAILURE: i32 = 125;

/// What is done on a node.
pub enum Work<'a> {
    /// The program that nobody trusts.
    Program(&'a Program),
    /// Loads a gateway's rules, which it reads from the first file; what they decide goes into the second.
    Gateway(&'a Program, &'a File, &'a File),
    /// A node that stays, and the programs that it starts with. The first is for its gate.
    Stays(&'a Program, &'a [Program]),
}

/// Files, the folder for temporary ones, limits.
type Bounds = ((Files, Option<PathBuf>), Limits);

/// The keeper's life; its status. `warden` is the socket to that.
pub fn run(config: NodeConfig, work: Work<'_>, bounds: Bounds, warden: &OwnedFd) -> i32 {
    match keep(config, work, bounds, warden) {
        Ok(status) => status.into(),
        // The warden has said why.
        Err(Failure::Node(ring3_node::Error::GivenUp)) => OWN_FAILURE,
        Err(failure) => {
            say::complain(failure);
            OWN_FAILURE
        }
    }
}

fn keep(
    config: NodeConfig,
    work: Work<'_>,
    ((files, tmp), limits): Bounds,
    warden: &OwnedFd,
) -> Result<u8> {
    let fail = |what: &str| {
        let what = what.to_owned();
        move |why: nix::Error| Failure::host(what)(why.into())
    };
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(fail("watch the reaper"))?;
    let mut given = Given::new(&config)?;
    if let Work::Gateway(_, _, flows) = work {
        let copy = flows.try_clone();
        given.flows = Some(copy.map_err(Failure::host("copy a descriptor"))?);
    }
    limits.set()?;
    let mem = config.mem;
    let questions = ring3_sandbox::confine(&files)?;
    let environment = Environment::new(tmp);
    for (name, value) in environment.changes(|name| std::env::var_os(name)) {
        match value {
            Some(value) => std::env::set_var(name, value),
            None => std::env::remove_var(name),
        }
    }
    // From here on nothing is done that the program might not do as well.
    report(warden, &questions).map_err(fail("report to the warden"))?;
    drop(questions);
    given.receive(&config, warden)?;

    let watch = Watch::start()?;
    let descriptors =
        getrlimit(Resource::RLIMIT_NOFILE).map_err(fail("ask for the limit of descriptors"))?;
    raise_descriptor_limit();
    let node = NodeHandle::start_confined(config, given, &[watch.ending()]);
    if let Some(status) = watch.is_to_end() {
        return Ok(status);
    }
    let node = node?;
    limits.set_for_programs()?;
    let starter = Starter {
        node: &node,
        mask: watch.mask_before(),
        descriptors: limits.descriptors(descriptors),
        limits: limits.of_program(mem)?,
        environment,
    };
    let status = starter.live(&work, &watch, warden)?;
    match node.down() {
        Err(error) if status != 0 => {
            say::complain(error);
            Ok(status)
        }
        down => down.map(|()| status).map_err(Failure::from),
    }
}

/// What programs are started with.
struct Starter<'a> {
    node: &'a NodeHandle,
    mask: SigSet,
    descriptors: (u64, u64),
    limits: OfProgram,
    environment: Environment,
}

impl Starter<'_> {
    /// All that is done on the node: the status. The thread that lets others in is there before a program is, which may leave
    /// room for none.
    fn live(&self, work: &Work<'_>, watch: &Watch, warden: &OwnedFd) -> Result<u8> {
        match work {
            Work::Program(program) => {
                self.let_others_in(program, warden)?;
                let mut child = self.start(program, Stdio::inherit())?;
                Ok(shell_status(watch.wait(&mut child)?))
            }
            Work::Gateway(load, policy, _) => {
                let rules = policy.try_clone();
                let rules = rules.map_err(Failure::host("copy a descriptor"))?;
                let mut child = self.start(load, rules.into())?;
                let status = shell_status(watch.wait(&mut child)?);
                if status != 0 {
                    return Ok(status);
                }
                self.let_others_in(load, warden)?;
                serve(watch, warden, &mut [])
            }
            Work::Stays(any, programs) => {
                self.let_others_in(any, warden)?;
                let start = |program| self.start(program, Stdio::null());
                let children = programs.iter().map(start);
                let mut children = children.collect::<Result<Vec<_>>>()?;
                serve(watch, warden, &mut children)
            }
        }
    }

    fn start(&self, program: &Program, input: Stdio) -> Result<Child> {
        let (ours, theirs) = super::pair()?;
        let dress = |command: &mut Command| {
            command.stdin(input);
            self.limits.give(command);
            Ok(())
        };
        let child = program.spawn_within(&theirs, self.mask, self.descriptors, dress)?;
        drop(theirs);
        if let Some(door) = self.node.door() {
            door.admit(ours, child.id() as i32);
        }
        Ok(child)
    }

    /// `ring3 exec`, from now on.
    fn let_others_in(&self, any: &Program, warden: &OwnedFd) -> Result<()> {
        let Some(door) = self.node.door() else {
            return Ok(());
        };
        let host = exec::Host {
            program: any.beside(Vec::new()),
            door,
            mask: self.mask,
            descriptors: self.descriptors,
            limits: self.limits,
            environment: self.environment.clone(),
        };
        let warden = warden.try_clone();
        exec::serve(host, warden.map_err(Failure::host("copy a descriptor"))?)
    }
}

/// The life of a node that stays, until a signal comes.
fn serve(watch: &Watch, warden: &OwnedFd, children: &mut [Child]) -> Result<u8> {
    let sent = send(warden.as_raw_fd(), &[READY], MsgFlags::MSG_NOSIGNAL);
    sent.map_err(|why| Failure::host("report to the warden")(why.into()))?;
    let over = std::cell::Cell::new(None);
    let ended = || {
        // Those that have ended are reaped.
        children.iter_mut().for_each(|child| {
            let _ = child.try_wait();
        });
        Ok(over.get())
    };
    watch.wait_until(ended, |_| over.set(Some(0)))
}

/// Tells the warden that this process is confined, and gives it the questions' descriptor.
fn report(warden: &OwnedFd, questions: &OwnedFd) -> nix::Result<()> {
    let pid = std::process::id().to_ne_bytes();
    let fds = [questions.as_fd().as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&fds)];
    sendmsg::<()>(
        warden.as_raw_fd(),
        &[std::io::IoSlice::new(&pid)],
        &rights,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}
