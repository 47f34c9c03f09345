// SPDX-License-Identifier: GPL-2.0
//! The bed of a measurement: namespaces or nodes, and the way between them.
//!
//! Everything made here carries this process's id in its name and goes when the bed is
//! dropped. All ends have the same TCP settings, so that a host that was tuned is not
//! compared with a node that was not.

use crate::figure::{BedKind, Series};
use crate::peer::{self, Running};
use crate::tool;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Linux's own defaults of a machine with a few GiB; and Reno, the one that every host
/// permits in every namespace: nothing is lost on these paths.
const SETTINGS: [(&str, &str); 5] = [
    ("net.ipv4.tcp_congestion_control", "reno"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    // Many short connections from one address to one port.
    ("net.ipv4.tcp_tw_reuse", "1"),
    ("net.ipv4.ip_local_port_range", "10000 65000"),
];

const NEAR: &str = "10.83.0.1";
const FAR: &str = "10.83.0.2";
/// The asking end's address, where NEAR is the host's.
const SECOND: &str = "10.83.0.3";
/// Beyond a middle that forwards: 10.83.0.0/24 - 10.83.1.0/24.
const MIDDLE: [&str; 2] = ["10.83.0.254", "10.83.1.254"];
const BEYOND: &str = "10.83.1.2";
/// The host, as slirp4netns and the ports passt and host show it to the inside.
const SLIRP: &str = "10.0.2.2";
/// Ports of the host that lead inside: the engine's numbers (engine.rs), for as many measurements as one figure has.
const PUBLISHED: &str = "20000-20199";

/// The end's interface, $dev in a `setup` line.
const DEVICE: &str = "dev=$(ip -o link show up | awk -F'[ :@]+' '$2 != \"lo\" { print $2; exit }')";

/// Where a program runs.
#[derive(Debug, Clone)]
enum End {
    Namespace(String),
    Node(String),
    /// A User-mode Linux whose TAP lies in this namespace, at this address.
    Uml(String, &'static str),
    /// A library's own program, by name, on the TAP in this namespace.
    Library(String, String),
}

impl End {
    fn command(&self, words: &[String]) -> Command {
        let mut command = match self {
            // Not `ip netns exec`: that hides the host's /sys, and with it the counters
            // of system calls.
            End::Namespace(name) => peer::in_namespace(name),
            End::Node(name) => tool::ring3(&["exec", name, "--"]),
            End::Uml(namespace, address) => return peer::call(namespace, address, words),
            End::Library(name, namespace) => {
                let mut command = peer::in_namespace(namespace);
                command.args(peer::library(name, FAR, words));
                return command;
            }
        };
        command.args(words);
        command
    }

    fn shell(&self, line: &str) -> Result<(), String> {
        let words = ["sh", "-c", line].map(String::from);
        tool::output(&mut self.command(&words))
            .map(drop)
            .map_err(|e| format!("{line}: {e}"))
    }
}

pub struct Bed {
    near: End,
    far: End,
    /// The far end's address.
    pub addr: &'static str,
    near_cpus: String,
    far_cpus: String,
    cgroup: String,
    namespaces: Vec<String>,
    nodes: Vec<String>,
    running: Vec<Running>,
}

impl Bed {
    pub fn make(series: &Series) -> Result<Bed, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let tag = format!(
            "r3b{}-{}",
            std::process::id(),
            MADE.fetch_add(1, Ordering::Relaxed)
        );
        let mut bed = Bed {
            near: End::Namespace(String::new()),
            far: End::Namespace(String::new()),
            addr: FAR,
            near_cpus: series.near_cpus.clone(),
            far_cpus: series.far_cpus.clone(),
            cgroup: series.cgroup.clone(),
            namespaces: Vec::new(),
            nodes: Vec::new(),
            running: Vec::new(),
        };
        bed.build(&tag, series)?;
        for end in [&bed.near, &bed.far] {
            if let End::Namespace(_) = end {
                for (key, value) in SETTINGS {
                    end.shell(&format!("sysctl -qw '{key}={value}'"))?;
                }
            }
            for line in &series.setup {
                end.shell(&format!("{DEVICE}; {line}"))?;
            }
        }
        Ok(bed)
    }

    fn build(&mut self, tag: &str, series: &Series) -> Result<(), String> {
        match series.bed {
            BedKind::Veth => {
                let ends = [self.namespace(tag, "a")?, self.namespace(tag, "b")?];
                veth(&ends[0], "eth0", NEAR, &ends[1], "eth0", FAR)?;
                [self.near, self.far] = ends;
            }
            BedKind::Loopback => {
                self.near = self.namespace(tag, "a")?;
                self.far = self.near.clone();
                self.addr = "127.0.0.1";
            }
            BedKind::Link => {
                let port = |addr| format!("link:{tag},addr={addr}/24");
                let cpus = [&series.near_cpus, &series.far_cpus];
                self.near = self.node(tag, "a", &[&port(NEAR)], series, cpus[0], None)?;
                self.far = self.node(tag, "b", &[&port(FAR)], series, cpus[1], None)?;
            }
            BedKind::NodeLoopback => {
                self.near = self.node(tag, "a", &[], series, &series.near_cpus, None)?;
                self.far = self.near.clone();
                self.addr = "127.0.0.1";
            }
            BedKind::TapOut | BedKind::TapIn => {
                let out = series.bed == BedKind::TapOut;
                let (node, host) = if out { (NEAR, FAR) } else { (FAR, NEAR) };
                let namespace = self.namespace(tag, "h")?;
                let port = format!("tap:eth0,addr={node}/24,host={host}/24");
                let cpus = if out {
                    &series.near_cpus
                } else {
                    &series.far_cpus
                };
                let node = self.node(tag, "n", &[&port], series, cpus, Some(&namespace))?;
                [self.near, self.far] = if out {
                    [node, namespace]
                } else {
                    [namespace, node]
                };
            }
            BedKind::XdpOut | BedKind::PacketOut => {
                let kind = if series.bed == BedKind::XdpOut {
                    "xdp"
                } else {
                    "packet"
                };
                let namespace = self.namespace(tag, "h")?;
                // An AF_XDP socket takes no partial checksums, nor gives any.
                namespace.shell(&format!(
                    "ip link add eth0 type veth peer name eth1 && ip addr add {FAR}/24 dev eth0 && \
                     ip link set eth0 up && ip link set eth1 up && \
                     if [ {kind} = xdp ]; then ethtool -K eth0 tx off >/dev/null; fi"
                ))?;
                let port = format!("{kind}:eth1,addr={NEAR}/24");
                let cpus = &series.near_cpus;
                self.near = self.node(tag, "n", &[&port], series, cpus, Some(&namespace))?;
                self.far = namespace;
            }
            BedKind::Peer => {
                let (near, name) = self.with_tap(tag)?;
                self.far = End::Library(series.peer.clone(), name);
                self.near = near;
            }
            BedKind::UmlTap | BedKind::UmlLoopback => {
                let (near, name) = self.with_tap(tag)?;
                self.running
                    .push(peer::uml(&series.peer, &name, peer::TAP, FAR, tag)?);
                self.far = End::Uml(name, FAR);
                self.near = near;
                if series.bed == BedKind::UmlLoopback {
                    self.near = self.far.clone();
                    self.addr = "127.0.0.1";
                }
            }
            BedKind::UmlPair => {
                self.namespace(tag, "h")?;
                let name = format!("{tag}-h");
                let [near, far] = peer::bridge(&name, NEAR)?;
                for (tap, address) in [(near, SECOND), (far, FAR)] {
                    let uml = peer::uml(&series.peer, &name, tap, address, tag)?;
                    self.running.push(uml);
                }
                self.near = End::Uml(name.clone(), SECOND);
                self.far = End::Uml(name, FAR);
            }
            BedKind::Pasta
            | BedKind::PastaIn
            | BedKind::Slirp
            | BedKind::Passt
            | BedKind::Host
            | BedKind::HostIn => {
                self.behind(tag, series)?;
            }
            BedKind::VethForward => {
                let ends = ["a", "f", "b"].map(|end| self.namespace(tag, end));
                let [near, middle, far] = ends;
                let (near, middle, far) = (near?, middle?, far?);
                veth(&near, "eth0", NEAR, &middle, "eth0", MIDDLE[0])?;
                veth(&middle, "eth1", MIDDLE[1], &far, "eth0", BEYOND)?;
                middle.shell("sysctl -qw net.ipv4.ip_forward=1")?;
                near.shell(&format!("ip route add default via {}", MIDDLE[0]))?;
                far.shell(&format!("ip route add default via {}", MIDDLE[1]))?;
                (self.near, self.far, self.addr) = (near, far, BEYOND);
            }
            BedKind::LinkForward => {
                let port = |side, addr| format!("link:{tag}{side},addr={addr}/24");
                let gw = |port: String, gw| format!("{port},gw={gw}");
                let near = gw(port("l", NEAR), MIDDLE[0]);
                let far = gw(port("r", BEYOND), MIDDLE[1]);
                let middle = [port("l", MIDDLE[0]), port("r", MIDDLE[1])];
                let middle = [middle[0].as_str(), middle[1].as_str()];
                let middle = self.node(tag, "f", &middle, series, "", None)?;
                middle.shell("sysctl -qw net.ipv4.ip_forward=1")?;
                self.near = self.node(tag, "a", &[&near], series, &series.near_cpus, None)?;
                self.far = self.node(tag, "b", &[&far], series, &series.far_cpus, None)?;
                self.addr = BEYOND;
            }
        }
        Ok(())
    }

    /// A namespace with a TAP for a peer, and its name.
    fn with_tap(&mut self, tag: &str) -> Result<(End, String), String> {
        let near = self.namespace(tag, "h")?;
        let name = format!("{tag}-h");
        peer::tap(&name, NEAR)?;
        Ok((near, name))
    }

    /// Behind a host's sockets: one end lies inside, the other in the namespace that stands for the host. Its loopback is what the
    /// inside sees as its gateway. A client asks for a published port at the host's address: by its loopback pasta splices
    /// sockets, which no other machine's connection has.
    fn behind(&mut self, tag: &str, series: &Series) -> Result<(), String> {
        let host = self.namespace(tag, "h")?;
        host.shell(&format!(
            "ip link add d0 type veth peer name d1 && ip link set d1 up && ip addr add {FAR}/24 dev d0 && ip link set d0 up && \
             ip route add default via {}",
            MIDDLE[0]
        ))?;
        let host_name = format!("{tag}-h");
        let is_in = matches!(series.bed, BedKind::PastaIn | BedKind::HostIn);
        let port = match series.bed {
            BedKind::Passt => Some("passt,loopback=yes".to_string()),
            BedKind::Host => Some("host,loopback=yes".to_string()),
            BedKind::HostIn => Some(format!("host,tcp={PUBLISHED}")),
            _ => None,
        };
        let inside = match &port {
            Some(port) => {
                let cpus = match is_in {
                    true => &series.far_cpus,
                    false => &series.near_cpus,
                };
                self.node(tag, "n", &[port], series, cpus, Some(&host))?
            }
            None => self.namespace(tag, "i")?,
        };
        self.addr = match series.bed {
            _ if is_in => FAR,
            BedKind::Pasta => MIDDLE[0],
            _ => SLIRP,
        };
        [self.near, self.far] = match is_in {
            true => [host, inside.clone()],
            false => [inside.clone(), host],
        };
        if port.is_some() {
            return Ok(());
        }
        let path = format!("/run/netns/{tag}-i");
        let mut command = peer::in_namespace(&host_name);
        if series.bed == BedKind::Slirp {
            let words = "slirp4netns --configure --mtu=65520 --netns-type=path";
            command.args(words.split(' ')).arg(path).arg("tap0");
        } else {
            let words = "pasta --foreground --quiet --runas 0 --config-net --netns-only";
            command.args(words.split(' '));
            if is_in {
                command.args(["-t", PUBLISHED]);
            }
            command.args(["--netns", &path]);
        }
        self.running.push(peer::start(command)?);
        inside
            .shell("for i in $(seq 100); do ip -o route | grep -q default && exit; sleep 0.05; done; exit 1")
            .map_err(|e| format!("no route came: {e}"))
    }

    fn namespace(&mut self, tag: &str, end: &str) -> Result<End, String> {
        let name = format!("{tag}-{end}");
        tool::output(Command::new("ip").args(["netns", "add", &name]))
            .map_err(|e| format!("{e} (the bench makes network namespaces: run it as root)"))?;
        self.namespaces.push(name.clone());
        let end = End::Namespace(name);
        end.shell("ip link set lo up")?;
        Ok(end)
    }

    /// `cpus`: those of its programs; its keeper has them, too. `within`: the namespace in which
    /// its TAP lies.
    fn node(
        &mut self,
        tag: &str,
        end: &str,
        ports: &[&str],
        series: &Series,
        cpus: &str,
        within: Option<&End>,
    ) -> Result<End, String> {
        let name = format!("{tag}-{end}");
        let ring3 = tool::ring3(&[]);
        let mut words = vec![ring3.get_program().to_string_lossy().into_owned()];
        words.extend(["up".to_string(), name.clone()]);
        for (key, value) in SETTINGS {
            words.extend(["--sysctl".to_string(), format!("{key}={value}")]);
        }
        for port in ports {
            words.extend(["--port".to_string(), port.to_string()]);
        }
        words.extend(series.node.iter().cloned());
        let words = pinned(cpus, &words);
        let command = match within {
            // Its keeper makes the TAP, and looks for it in /sys: `ip netns exec` mounts
            // the namespace's own.
            Some(End::Namespace(namespace)) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).args(&words);
                command
            }
            _ => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        tool::output(&mut tool::within(&series.cgroup, command))?;
        self.nodes.push(name.clone());
        Ok(End::Node(name))
    }

    pub fn near(&self, words: &[String]) -> Command {
        let command = self.near.command(&pinned(&self.near_cpus, words));
        tool::within(&self.cgroup, command)
    }

    pub fn far(&self, words: &[String]) -> Command {
        let command = self.far.command(&pinned(&self.far_cpus, words));
        tool::within(&self.cgroup, command)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.running.clear();
        // The next bed reports a failure of this, if it matters.
        if !self.nodes.is_empty() {
            let mut words = vec!["down"];
            words.extend(self.nodes.iter().map(String::as_str));
            let _ = tool::output(&mut tool::ring3(&words));
        }
        for name in &self.namespaces {
            let _ = tool::output(Command::new("ip").args(["netns", "del", name]));
        }
    }
}

fn pinned(cpus: &str, words: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    if !cpus.is_empty() {
        all.extend(["taskset", "-c", cpus].map(String::from));
    }
    all.extend_from_slice(words);
    all
}

/// A veth between two namespaces, addressed and up at both ends.
fn veth(a: &End, a_if: &str, a_ip: &str, b: &End, b_if: &str, b_ip: &str) -> Result<(), String> {
    let (End::Namespace(a_ns), End::Namespace(b_ns)) = (a, b) else {
        return Err("veth joins namespaces".into());
    };
    let words = format!("link add {a_if} netns {a_ns} type veth peer name {b_if} netns {b_ns}");
    tool::output(Command::new("ip").args(words.split(' ')))?;
    for (end, interface, ip) in [(a, a_if, a_ip), (b, b_if, b_ip)] {
        end.shell(&format!("ip addr add {ip}/24 dev {interface}"))?;
        end.shell(&format!("ip link set {interface} up"))?;
    }
    Ok(())
}
