// SPDX-License-Identifier: GPL-2.0
//! The `host` port: what the host's own sockets carry and what a node's program sees of it are the same.

use super::{Checked, Verdict, ensure, missing, trial};
use crate::exec::{self, Outcome};
use crate::node;
use crate::paths;
use crate::scratch::Scratch;
use libtest_mimic::Trial;
use std::process::Command;
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("host_port_ipv4".into(), || same_answers("192.0.2.1")),
        trial("host_port_ipv6".into(), || same_answers("2001:db8::1")),
    ]
}

/// Addresses of the host that stand for others'.
const SET_UP: &str = "ip addr add 192.0.2.1/32 dev lo; ip addr add 2001:db8::1/128 dev lo nodad";

/// $1: ring3, $2: the folder of helpers, $3: this test's folder; `ordinary` starts a program as a user who may nothing.
const PRELUDE: &str = "
    ring3=$1 helpers=$2 folder=$3
    case $(id -u) in
    0)
        chown 65534:65534 \"$folder\"; chmod 700 \"$folder\"
        cp \"$helpers/gateway.py\" \"$folder\"
        ordinary='setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs' ;;
    *) cp \"$helpers/gateway.py\" \"$folder\" ;;
    esac
    cd \"$folder\" || exit 9
    export XDG_RUNTIME_DIR=$folder
    (sleep 100 | python3 gateway.py serve 192.0.2.1 2001:db8::1 >ready) &
    trap 'kill $!' EXIT
    for i in $(seq 100); do [ -s ready ] && break; sleep 0.1; done
";

/// Runs a script on a host with a network of its own.
fn on_host(script: &str, args: &[&str]) -> Result<Outcome, String> {
    let folder = Scratch::new()?;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{PRELUDE}\n{script}"), "sh"]);
    command.arg(paths::ring3());
    command.arg(paths::root().join("tests/apps"));
    command.arg(folder.path()).args(args);
    let mut command = node::in_fresh_network(SET_UP, &command);
    exec::run(&mut command, Duration::from_secs(100))
}

/// An ordinary user's node, without a capability: the host's answers are the expected ones.
fn same_answers(address: &str) -> Checked {
    if let Some(why) = missing(&["python3", "setpriv"])? {
        return Ok(Verdict::Ignored(why));
    }
    let script = "
        python3 gateway.py ask $4 >host || exit 8
        on_node='grep -q host0: /proc/net/dev && exec python3 gateway.py ask $0'
        $ordinary \"$ring3\" run --port host -- sh -c \"$on_node\" $4 >node || exit 7
        diff host node && cat node";
    let outcome = on_host(script, &[address])?;
    ensure(outcome.ok(), || outcome.report())?;
    ensure(outcome.stdout.lines().count() >= 6, || outcome.report())?;
    Ok(Verdict::Passed)
}
