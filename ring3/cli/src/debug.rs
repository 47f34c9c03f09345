// SPDX-License-Identifier: GPL-2.0
//! `ring3 debug PID -- CMD`: a debugger on the host, for a program of a node.
//!
//! A thread has one tracer, and the node's adopter may have that place. It leaves the process alone for as long as a
//! connection to the keeper lasts; the debugger inherits that, and what it starts.

use std::os::unix::process::CommandExt;
use std::process::Command;

use ring3_node::client::{self, Client};

use crate::args;
use crate::error::{Failure, Result};
use crate::leaf;
use crate::program;

/// Becomes the debugger. Returns only if that fails.
pub fn debug(args: &args::Debug) -> Result<u8> {
    program::check(&args.command[0])?;
    let is_its = |status: &client::Status| status.procs.iter().any(|it| it.pid == args.pid);
    let all = client::list()?;
    let found = all
        .into_iter()
        .find(|(_, status)| status.as_ref().is_ok_and(is_its));
    let Some((name, _)) = found else {
        return Err(Failure::NoProgram { pid: args.pid });
    };
    let connection = Client::open(&name)?.debug(args.pid)?;
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    leaf::keep_open(&mut command, &connection);
    leaf::prepare_exec(&mut command);
    let why = command.exec();
    Err(Failure::Host {
        what: format!("start {}", args.command[0].to_string_lossy()),
        why: why.into(),
    })
}
