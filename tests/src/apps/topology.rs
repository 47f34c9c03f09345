// SPDX-License-Identifier: GPL-2.0
//! Where the two ends of a conversation run.

use crate::exec::{self, Group, Outcome};
use crate::node::{self, Node};
use crate::{paths, scratch};
use std::process::Command;
use std::time::Duration;

/// How server and client are placed and joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Two nodes and a link.
    Link,
    /// The server on a node, the client on the host.
    TapServer,
    /// The server on the host, the client on a node.
    TapClient,
}

impl Topology {
    pub const ALL: [Topology; 3] = [Topology::Link, Topology::TapServer, Topology::TapClient];

    pub fn name(self) -> &'static str {
        match self {
            Topology::Link => "link",
            Topology::TapServer => "tap_server",
            Topology::TapClient => "tap_client",
        }
    }

    /// Why it can't be had here, if it can't.
    pub fn obstacle(self) -> Option<String> {
        if self != Topology::Link && !rustix::process::geteuid().is_root() {
            return Some("making a TAP needs root".into());
        }
        None
    }
}

/// One end.
pub enum Place {
    Node(Node),
    Host,
}

impl Place {
    pub fn command(&self, argv: &[&str]) -> Command {
        match self {
            Place::Node(node) => node.command(argv),
            Place::Host => {
                let mut command = Command::new(argv[0]);
                command.args(&argv[1..]);
                command
            }
        }
    }

    /// Runs a program to its end.
    pub fn run(&self, argv: &[&str], limit: Duration) -> Result<Outcome, String> {
        exec::run(&mut self.command(argv), limit)
    }

    /// As `run`, but the program has to succeed; its standard output.
    pub fn must(&self, argv: &[&str], limit: Duration) -> Result<String, String> {
        let outcome = self.run(argv, limit)?;
        if !outcome.ok() {
            return Err(format!("{}: {}", argv.join(" "), outcome.report()));
        }
        Ok(outcome.stdout)
    }

    /// Of the calls that the node's programs make during `load`, at least 95 % have to come by a
    /// rewritten site. On the host there is nothing to ask.
    pub fn rewritten<T>(&self, load: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let Place::Node(node) = self else {
            return load();
        };
        // The warden does not map the node's memory, where the gate counts.
        if paths::in_sandboxes() {
            return load();
        }
        let counts = || -> Result<[f64; 2], String> {
            let outcome = exec::run(
                &mut node::ring3(["stat", &node.name, "--json"]),
                Duration::from_secs(10),
            )?;
            let value: serde_json::Value =
                serde_json::from_str(&outcome.stdout).map_err(|e| e.to_string())?;
            let field = |name: &str| {
                value["calls"][name]
                    .as_f64()
                    .ok_or_else(|| format!("ring3 stat: no calls.{name}"))
            };
            Ok([field("rewritten")?, field("trapped")?])
        };
        let before = counts()?;
        let result = load()?;
        let after = counts()?;
        let (rewritten, trapped) = (after[0] - before[0], after[1] - before[1]);
        if rewritten < 1000.0 {
            return Err(format!("no load: {rewritten} calls by rewritten sites"));
        }
        let share = rewritten / (rewritten + trapped);
        if share < 0.95 {
            return Err(format!(
                "{:.1} % of the calls came by rewritten sites: {rewritten}, and {trapped} by traps",
                100.0 * share
            ));
        }
        Ok(result)
    }

    /// Starts a program that goes on until dropped.
    pub fn start(&self, argv: &[&str]) -> Result<Group, String> {
        node::background(&mut self.command(argv))
    }
}

/// Two ends that reach each other.
pub struct Pair {
    // Declared in the order of taking down.
    pub client: Place,
    pub server: Place,
    pub server4: String,
    pub server6: String,
    pub client4: String,
    /// Name of the interface on the node's side.
    pub interface: String,
    first_port: u16,
}

impl Pair {
    pub fn new(topology: Topology) -> Result<Pair, String> {
        let slot = scratch::slot();
        let name = scratch::unique("r3");
        let address = |host: u32| {
            (
                format!("10.{}.{slot}.{host}", 190 + std::process::id() % 60),
                format!("fd{:02x}:{slot:x}::{host}", std::process::id() & 0xff),
            )
        };
        let (server4, server6) = address(1);
        let (client4, client6) = address(2);
        let addresses = |a4: &str, a6: &str, key: &str| format!(",{key}={a4}/24,{key}={a6}/64");
        let (server, client) = match topology {
            Topology::Link => {
                let port =
                    |a4: &str, a6: &str| vec![format!("link:{name}{}", addresses(a4, a6, "addr"))];
                (
                    Place::Node(Node::up(&port(&server4, &server6))?),
                    Place::Node(Node::up(&port(&client4, &client6))?),
                )
            }
            Topology::TapServer => {
                let port = format!(
                    "tap:{name}{}{}",
                    addresses(&server4, &server6, "addr"),
                    addresses(&client4, &client6, "host")
                );
                (Place::Node(Node::up(&[port])?), Place::Host)
            }
            Topology::TapClient => {
                let port = format!(
                    "tap:{name}{}{}",
                    addresses(&client4, &client6, "addr"),
                    addresses(&server4, &server6, "host")
                );
                (Place::Host, Place::Node(Node::up(&[port])?))
            }
        };
        Ok(Pair {
            client,
            server,
            server4,
            server6,
            client4,
            interface: name,
            first_port: (20000 + std::process::id() % 9 * 1220 + slot * 20) as u16,
        })
    }

    /// A port number of this pair's own, since all servers on the host share one space; `n` is
    /// below 20.
    pub fn port(&self, n: u16) -> u16 {
        self.first_port + n
    }

    /// Waits until something listens on the server's TCP port.
    pub fn wait_for_port(&self, port: u16) -> Result<(), String> {
        let wanted = format!(":{port:04X} ");
        let up = exec::until(Duration::from_secs(30), || {
            // Nothing connects: servers that take one client would count that.
            ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|file| {
                self.server
                    .run(&["cat", file], Duration::from_secs(5))
                    .is_ok_and(|outcome| {
                        outcome
                            .stdout
                            .lines()
                            .any(|line| line.contains(&wanted) && line.contains(" 0A "))
                    })
            })
        });
        if up {
            Ok(())
        } else {
            let look = self.server.run(&["ss", "-atnp"], Duration::from_secs(5));
            let look = look.map_or_else(|why| why, |outcome| outcome.report());
            Err(format!(
                "nothing listens on port {port} of the server; there: {look}"
            ))
        }
    }
}
