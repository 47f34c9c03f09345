// SPDX-License-Identifier: GPL-2.0
//! `ring3 compose`: the nodes of one file, started in its order and taken down in the other.

use std::path::Path;

use ring3_config::names::WaitForNode;
use ring3_config::{compose, NodeConfig};
use ring3_node::client::{Client, Status};
use ring3_node::Folder;

use crate::args::{self, ComposeVerb};
use crate::error::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::program::Program;
use crate::{node_args, nodes, say, up};

pub fn compose(args: &args::Compose) -> Result<()> {
    match &args.verb {
        ComposeVerb::Up(args) => start(args),
        ComposeVerb::Down(args) => down(&read(&args.file)?),
    }
}

fn read(path: &Path) -> Result<Vec<NodeConfig>> {
    let mut all = compose::from_toml(path, &node_args::text(path)?)?;
    for node in &mut all {
        node_args::make_absolute(node)?;
    }
    Ok(all)
}

/// Mistakes are reported before any node is made.
fn find_programs(path: &Path, all: &[NodeConfig]) -> Result<()> {
    for node in all {
        let mut programs = node.programs.iter();
        programs
            .try_for_each(|command| Program::find(command).map(drop))
            .map_err(|failure| Failure::OfFile {
                path: path.to_owned(),
                node: node.name.clone(),
                failure: Box::new(failure),
            })?;
    }
    Ok(())
}

/// The servers of the nodes of the file that the command line waits for.
fn waits(path: &Path, words: &[String], all: &[NodeConfig]) -> Result<Vec<WaitForNode>> {
    let mut waits = Vec::new();
    for text in words {
        let wait: WaitForNode = text.parse()?;
        if !all.iter().any(|node| node.name == wait.node) {
            return Err(Failure::WaitForNobody {
                path: path.to_owned(),
                node: wait.node,
            });
        }
        waits.push(wait);
    }
    Ok(waits)
}

/// The first failure is what matters.
fn give_up(started: &[Client], failure: Failure) -> Failure {
    started.iter().rev().for_each(|node| drop(node.down()));
    failure
}

/// All, or none: what was started before a failure or an interruption is taken down again. Nodes that are up stay as
/// they are.
fn start(args: &args::ComposeUp) -> Result<()> {
    let all = read(&args.file)?;
    let waits = waits(&args.file, &args.wait, &all)?;
    find_programs(&args.file, &all)?;
    let folder = Folder::open()?;
    let interrupt = Interrupt::hold_back()?;
    let mut started: Vec<Client> = Vec::new();
    for node in &all {
        if folder.is_running(&node.name) {
            say::complain(format_args!(
                "node `{}` is up already: left as it is",
                node.name
            ));
            continue;
        }
        let start = |started: &mut Vec<Client>| {
            started.push(up::start(node, &interrupt)?);
            up::wait(node, &interrupt)
        };
        if let Err(failure) = start(&mut started) {
            return Err(give_up(&started, failure));
        }
    }
    // Of nodes that were up before, too.
    for it in &waits {
        if let Err(failure) = up::wait_for(&it.node, &it.wait, &interrupt) {
            return Err(give_up(&started, failure));
        }
    }
    if args.json {
        let statuses: Vec<Status> = all
            .iter()
            .map(|node| Client::open(&node.name)?.status())
            .collect::<ring3_node::Result<_>>()?;
        return nodes::print_json(&statuses);
    }
    Ok(())
}

fn down(all: &[NodeConfig]) -> Result<()> {
    nodes::take_down(all.iter().rev().map(|node| node.name.as_str()), true)
}
