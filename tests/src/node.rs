// SPDX-License-Identifier: GPL-2.0
//! Nodes, by way of the `ring3` command.

use crate::exec::{self, Group, Outcome};
use crate::paths;
use crate::scratch;
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Who takes longer hangs. At a load of 40 on two processors, what takes 5 s took 20.
pub const SHORT: Duration = Duration::from_secs(60);

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

/// Makes a fresh network namespace like one of a host where nobody has set anything: a namespace has its settings
/// from the host's first one, and where containers run that forwards.
pub const UNSET: &str = "
    cd /proc/sys/net/ipv4 || exit 1
    echo 0 >ip_forward
    for i in all default lo; do
        set_to() { [ ! -w conf/$i/$1 ] || echo $2 >conf/$i/$1; }
        for key in rp_filter accept_local arp_announce arp_filter arp_ignore arp_notify arp_accept \\
            proxy_arp route_localnet log_martians src_valid_mark mc_forwarding bc_forwarding force_igmp_version \\
            disable_policy disable_xfrm ignore_routes_with_linkdown promote_secondaries; do
            set_to $key 0
        done
        for key in accept_redirects secure_redirects send_redirects shared_media; do
            set_to $key 1
        done
        set_to accept_source_route $([ $i = all ] && echo 0 || echo 1)
        set_to disable_xfrm $([ $i = lo ] && echo 1 || echo 0)
        set_to disable_policy $([ $i = lo ] && echo 1 || echo 0)
    done
    cd /proc/sys/net/ipv6/conf 2>/dev/null || exit 0
    for i in all default lo; do
        echo 0 >$i/disable_ipv6
    done
";

/// `unshare ARGS sh -c '(set up); exec PROGRAM'` for a program in such a namespace.
pub fn in_fresh_network(set_up: &str, program: &Command) -> Command {
    let mut command = Command::new("unshare");
    command.arg(if rustix::process::geteuid().is_root() {
        "-n"
    } else {
        "-rn"
    });
    command.args([
        "sh",
        "-c",
        &format!("({UNSET}) && (ip link set lo up\n{set_up}) && exec \"$0\" \"$@\""),
    ]);
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// For [`in_fresh_network`]: a way to everywhere, which nobody is at the end of. passt wants one.
pub const DEFAULT_ROUTE: &str = "
    ip link add outside type veth peer name nobody
    ip addr add 198.51.100.2/24 dev outside
    ip link set outside up
    ip link set nobody up
    ip route add default via 198.51.100.1
";

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
        Node::up_by(options, |command| command)
    }

    /// With a passt port, whose host has a network of its own.
    pub fn up_passt() -> Result<Node, String> {
        Node::up_by(["--port", "passt"], |command| {
            in_fresh_network(DEFAULT_ROUTE, &command)
        })
    }

    /// With an adopter that works in this way.
    pub fn up_adopted<'a>(
        how: &str,
        options: impl IntoIterator<Item = &'a str>,
    ) -> Result<Node, String> {
        Node::up_by(options, |mut command| {
            command.env("RING3_ADOPTER", how);
            command
        })
    }

    fn up_by<'a>(
        options: impl IntoIterator<Item = &'a str>,
        wrap: impl FnOnce(Command) -> Command,
    ) -> Result<Node, String> {
        let name = scratch::unique("t");
        let mut command = ring3(["up", &name]);
        command.args(options);
        let mut command = wrap(command);
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
