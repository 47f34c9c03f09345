// SPDX-License-Identifier: GPL-2.0
//! Who served an oracle program: its node, or the host behind the node's back?
//!
//! Host and node give the same answers, so equal outputs alone would hold for a gate that passes each call to the
//! host. So the node's run is one for which the host has no network (`tests/apps/netless.c`). The same
//! program is run so on the bare host, too, and must come to another result there: then what agreed on the node was the
//! node's. `tests/oracle/hostonly.toml` names the programs that come to the same, and why.

use crate::compile::compile;
use crate::exec::{self, Outcome};
use crate::known::User;
use crate::{node, paths};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Without a network some programs wait for what never comes. That is another result; a longer wait shows nothing more.
const BARE_LIMIT: Duration = Duration::from_secs(10);

/// How the test of an oracle program shows who served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its result on a host without a network is another.
    Network,
    /// It is the same: a listed program.
    Same,
    /// The program would see that it has none: a listed program.
    None,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    tests: Vec<String>,
    reason: String,
    #[serde(default)]
    sees: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    programs: Vec<Listed>,
}

/// `hostonly.toml`: programs by name.
pub fn listed() -> Result<HashMap<String, Proof>, String> {
    let path = paths::oracle().join("hostonly.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut proofs = HashMap::new();
    for listed in file.programs {
        if listed.reason.trim().is_empty() {
            return Err(format!(
                "{}: {:?} without a reason",
                path.display(),
                listed.tests
            ));
        }
        let proof = if listed.sees {
            Proof::None
        } else {
            Proof::Same
        };
        proofs.extend(listed.tests.into_iter().map(|test| (test, proof)));
    }
    Ok(proofs)
}

/// Only root can take the network from a program so that it does not see it (no_new_privs): an ordinary user's run proves nothing.
fn can_prove() -> bool {
    User::current() == User::Root
}

/// `command` for which the host has no network.
fn netless(command: &Command) -> Result<Command, String> {
    let mut netless = Command::new(compile(&paths::root().join("tests/apps/netless.c"))?);
    netless.arg(command.get_program()).args(command.get_args());
    Ok(netless)
}

/// The command that runs the program on a node, as the proof needs it.
pub fn without_host(command: Command, proof: Proof) -> Result<Command, String> {
    if can_prove() && proof != Proof::None {
        netless(&command)
    } else {
        Ok(command)
    }
}

/// Fails where the result on the bare host, without a network, is `expected` (that of the node's run), and the list does not say so; or the
/// other way round.
pub fn check(
    program: &Path,
    expected: &Outcome,
    proof: Proof,
    limit: Duration,
) -> Result<(), String> {
    if !can_prove() || proof == Proof::None {
        return Ok(());
    }
    let alone = netless(&Command::new(program))?;
    let limit = match proof {
        Proof::Network => BARE_LIMIT,
        _ => limit,
    };
    let bare = exec::run(
        &mut node::in_fresh_network("ip link set lo down", &alone),
        limit,
    )?;
    match (bare.stdout == expected.stdout && bare.end == expected.end, proof) {
        (true, Proof::Network) => Err("the result on a host without a network is the same, so nothing shows that the \
             node served it: have the program use a socket, or give tests/oracle/hostonly.toml a reason"
            .to_owned()),
        (false, Proof::Same) => Err(format!(
            "remove it from tests/oracle/hostonly.toml: the result on a host without a network is another: {}",
            bare.report()
        )),
        _ => Ok(()),
    }
}
