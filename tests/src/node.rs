// SPDX-License-Identifier: GPL-2.0
//! Nodes, by way of the `ring3` command.

use crate::exec::{self, Group, Outcome};
use crate::paths;
use crate::scratch;
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a command that only looks at something may take.
pub const SHORT: Duration = Duration::from_secs(20);

/// `ring3 ARGS`
pub fn ring3<I, S>(args: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(paths::ring3());
    command.args(args);
    command
}

/// A node that is up; dropping it takes it down.
pub struct Node {
    pub name: String,
}

impl Node {
    pub fn up(ports: &[String]) -> Result<Node, String> {
        let ports = ports.iter().flat_map(|port| ["--port", port.as_str()]);
        Node::up_with(ports)
    }

    /// With any options of `ring3 up`.
    pub fn up_with<'a>(options: impl IntoIterator<Item = &'a str>) -> Result<Node, String> {
        let name = scratch::unique("t");
        let mut command = ring3(["up", &name]);
        command.args(options);
        let node = Node { name };
        let outcome = exec::run(&mut command, SHORT)?;
        if !outcome.ok() {
            return Err(format!("ring3 up {}: {}", node.name, outcome.report()));
        }
        Ok(node)
    }

    /// `ring3 exec NODE -- ARGV`
    pub fn command<I, S>(&self, argv: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = ring3(["exec", &self.name, "--"]);
        command.args(argv);
        command
    }

    /// Runs a program on the node to its end.
    pub fn exec(&self, argv: &[&str]) -> Result<Outcome, String> {
        exec::run(&mut self.command(argv), SHORT)
    }

    /// Runs a program that has to succeed; its standard output.
    pub fn output(&self, argv: &[&str]) -> Result<String, String> {
        let outcome = self.exec(argv)?;
        if !outcome.ok() {
            return Err(format!("{}: {}", argv.join(" "), outcome.report()));
        }
        Ok(outcome.stdout)
    }

    pub fn down(&self) -> Result<Outcome, String> {
        exec::run(&mut ring3(["down", &self.name]), SHORT)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may be down or poisoned already.
        let _ = self.down();
    }
}

/// Starts a program that goes on until it is dropped; it says nothing to our terminal.
pub fn background(command: &mut Command) -> Result<Group, String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Group::spawn(command)
}
