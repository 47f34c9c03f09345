// SPDX-License-Identifier: GPL-2.0
//! From a scenario to what is to be done, to the last word: namespaces, addresses, queues, and a list of steps with
//! their times. Whoever carries it out (conduct.rs) decides nothing any more. The same scenario and seed make the same plan.
//!
//! Each host is a network namespace. In virtual time, links join them directly (simlink.rs). Beside them are two that
//! belong to none, the second in real time only:
//!
//! ```text
//!  host eth0 ── c3 ┐                    host eth1 ── l0a ═ l0b ── eth1 host
//!  host eth0 ── c1 ┤ _net: the network          _wires: the links; what comes in
//!  host eth0 ── c2 ┘ of places, routed          on one end goes out on the other
//! ```
//!
//! A queue is where it is in the world: the sender's interface limits the rate and has the queue, the link behind it
//! (the far side's end in `_wires`) delays and loses. In `_net` the interface towards a host delays each packet as the way from its sender's
//! place has it (netem, one for each place), and then waits for the host's downstream rate (htb).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::address::{self, Addresses};
use crate::network;
use crate::route;
use crate::scenario::{
    Action, ClockChange, Expected, Host, Nat, NatKind, Preemption, Scenario, Wire,
};
use crate::steps;

/// The namespace of the network of places; no hostname begins so.
pub const NET: &str = "_net";
/// The namespace of the links.
pub const WIRES: &str = "_wires";

#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    pub seed: u64,
    pub stop: Duration,
    pub sample: Duration,
    /// General::schedule.
    pub schedule: Duration,
    pub preemption: Option<Preemption>,
    /// Each call that the node serves is to be a line of [`crate::stage::TRACE`].
    pub trace: bool,
    /// A debugger is waited for before the first step.
    pub gdb: bool,
    pub data: PathBuf,
    /// Lines for `ip -batch` in the node's first network namespace.
    pub links: Vec<String>,
    pub spaces: Vec<Space>,
    pub hosts: Vec<HostPlan>,
    pub edges: Vec<Edge>,
    pub processes: Vec<ProcessPlan>,
    /// In the order in which they are carried out.
    pub timeline: Vec<Timed>,
}

/// A network namespace and what is done in it before the start, in this order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Space {
    pub name: String,
    pub early: Vec<(String, String)>,
    /// Lines for `ip -batch`.
    pub ip: Vec<String>,
    /// Properties of the host's ends of links; words that `ip` does not know (simlink.rs).
    pub wires: Vec<String>,
    /// Lines for `tc -batch`.
    pub tc: Vec<String>,
    /// A script for `nft -f`.
    pub nft: String,
    /// The scenario's sysctls: after the interfaces, so that they can be about these.
    pub sysctls: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct HostPlan {
    pub name: String,
    pub addresses: Vec<IpAddr>,
    /// Interfaces to capture, and how many bytes of a packet.
    pub captures: Vec<(String, u32)>,
    pub files: Vec<(PathBuf, String)>,
    pub interfaces: Vec<String>,
    pub router: bool,
}

/// A line of the picture of the network.
#[derive(Debug, Serialize, Deserialize)]
pub struct Edge {
    pub from: String,
    /// None: the network of places.
    pub to: Option<String>,
    pub label: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct ProcessPlan {
    pub host: usize,
    /// Name and number in the files of the data folder, as Shadow numbers them.
    pub label: String,
    pub program: PathBuf,
    pub name: String,
    pub args: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub expected: Expected,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Timed {
    pub at: Duration,
    /// For people; empty: no event of the scenario.
    pub label: String,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Ip {
        space: String,
        lines: Vec<String>,
    },
    Tc {
        space: String,
        lines: Vec<String>,
    },
    Nft {
        space: String,
        script: String,
    },
    Start {
        process: usize,
    },
    Signal {
        process: usize,
        signal: i32,
    },
    /// To all processes of a host.
    SignalHost {
        host: usize,
        signal: i32,
    },
    /// Ends the host's connections without a word to the far side.
    ForgetSockets {
        host: usize,
    },
    /// Of the clock of the day: ns forward, and ns that it gains in a second.
    Clock {
        space: String,
        change: ClockChange,
    },
    /// Starts again what had been started before.
    Restart {
        host: usize,
    },
}

/// Linux's, with twice the maximum: each packet is a buffer of its own here, 2,304 bytes for 1,448 (no GSO). With 4 MiB
/// a flow over 1 Gbit/s and 20 ms came to 724 Mbit/s; it fills the link with this.
const WRITE_MEMORY: &str = "4096 16384 8388608";

/// The first number in names of a process's files (Shadow's).
const FIRST_NUMBER: u32 = 1000;

/// What links are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cables {
    /// Virtual time: one pair of interfaces, whose driver has rate, delay and losses (simlink.rs).
    Simlink,
    /// Real time: two pairs and Linux's queues, as any kernel has them.
    Netem,
}

pub fn plan(scenario: &Scenario, data: PathBuf, cables: Cables) -> Plan {
    let addresses = Addresses::assign(scenario);
    let mut made = Plan {
        seed: scenario.general.seed,
        stop: scenario.general.stop_time,
        sample: scenario.general.sample,
        schedule: scenario.general.schedule,
        preemption: scenario.general.preemption,
        trace: false,
        gdb: false,
        data,
        links: Vec::new(),
        spaces: Vec::new(),
        hosts: Vec::new(),
        edges: edges(scenario),
        processes: Vec::new(),
        timeline: Vec::new(),
    };
    let mut spaces: BTreeMap<String, Space> = BTreeMap::new();
    for (name, host) in &scenario.hosts {
        let plan = host_plan(name, host, scenario, &addresses);
        let mut space = host_space(&plan, host, &addresses);
        if let Some(nat) = &host.nat {
            space.nft = nat_rules(name, nat, scenario, &addresses);
        }
        spaces.insert(name.clone(), space);
        made.hosts.push(plan);
    }
    if let Some(network) = &scenario.network {
        let late = network::places(scenario, network, &addresses, &mut spaces, &mut made.links);
        made.timeline.extend(late);
    }
    match cables {
        Cables::Simlink => network::cables(scenario, &addresses, &mut spaces, &mut made.links),
        Cables::Netem => network::wires(scenario, &addresses, &mut spaces, &mut made.links),
    }
    let routes = match scenario.general.routes {
        true => route::routes(scenario, &addresses),
        false => BTreeMap::new(),
    };
    for (name, lines) in routes {
        if let Some(space) = spaces.get_mut(&name) {
            space.ip.extend(lines);
        }
    }
    let adds = spaces.keys().map(|name| format!("netns add {name}"));
    made.links.splice(0..0, adds);
    made.spaces = spaces.into_values().collect();
    add_events(scenario, &addresses, &mut made, cables);
    add_processes(scenario, &mut made);
    // Of one instant: the network's changes, then the ends of processes, then starts, as they were added.
    made.timeline.sort_by_key(|timed| timed.at);
    made
}

fn host_space(plan: &HostPlan, host: &Host, addresses: &Addresses) -> Space {
    let name = plan.name.as_str();
    let mut early = Vec::new();
    let mut set = |key: &str, value: &str| early.push((key.to_owned(), value.to_owned()));
    // Nothing is said that no program asked for: neither duplicate addresses nor routers are looked for.
    let scopes = ["all", "default"];
    let interfaces = plan.interfaces.iter().map(String::as_str);
    match addresses.has_ipv6(name) {
        // `all` is for those that are there, `default` for those that a program makes. `lo` keeps ::1, which /etc/hosts calls localhost.
        false => [("all", "1"), ("default", "1"), ("lo", "0")]
            .iter()
            .for_each(|(scope, is)| set(&format!("net.ipv6.conf.{scope}.disable_ipv6"), is)),
        true => scopes.into_iter().chain(interfaces).for_each(|scope| {
            for key in ["accept_dad", "accept_ra", "router_solicitations"] {
                set(&format!("net.ipv6.conf.{scope}.{key}"), "0");
            }
        }),
    }
    set("net.ipv4.tcp_wmem", WRITE_MEMORY);
    if host.router {
        set("net.ipv4.ip_forward", "1");
        set("net.ipv6.conf.all.forwarding", "1");
        set("net.ipv4.fib_multipath_hash_policy", "1");
        set("net.ipv6.fib_multipath_hash_policy", "1");
    }
    Space {
        name: name.to_owned(),
        early,
        ip: vec!["link set lo up".into()],
        sysctls: host.sysctls.clone(),
        ..Space::default()
    }
}

/// Who is behind the host has its address outside, and is called from there by published ports only.
fn nat_rules(name: &str, nat: &Nat, scenario: &Scenario, addresses: &Addresses) -> String {
    let outside = scenario.links.iter().enumerate().find_map(|(i, link)| {
        let side = link.ends.iter().position(|end| end.host == name)?;
        (link.name == nat.link).then(|| addresses.ends[i][side].interface.clone())
    });
    // Checked when the scenario was read.
    let outside = outside.unwrap_or_default();
    let mut publish = String::new();
    for (port, host, inner) in &nat.publish {
        for address in addresses.of(host) {
            let (family, to) = match address {
                IpAddr::V4(ip) => ("ip", format!("{ip}:{inner}")),
                IpAddr::V6(ip) => ("ip6", format!("[{ip}]:{inner}")),
            };
            publish.push_str(&format!(
                "\t\tiifname \"{outside}\" meta l4proto {{ tcp, udp }} th dport {port} dnat {family} to {to}\n"
            ));
        }
    }
    let (maps, inbound, learn) = cones(nat.kind, &outside);
    let masquerade = match nat.kind {
        // Each connection gets a port of its own, whatever it had.
        NatKind::Symmetric => "masquerade fully-random",
        _ => "masquerade",
    };
    format!(
        "table inet nat {{\n{maps}\
         \tchain in {{ type nat hook prerouting priority dstnat;\n{publish}{inbound}\t}}\n{learn}\
         \tchain out {{ type nat hook postrouting priority srcnat; oifname \"{outside}\" {masquerade}; }}\n\
         \tchain pass {{ type filter hook forward priority filter; \
         iifname \"{outside}\" ct state new ct status ! dnat drop; }}\n}}\n"
    )
}

/// What nft has to remember of who has sent from which port, and whom it lets in then. A port outside is the one inside, unless two
/// behind have the same: then the second has none.
fn cones(kind: NatKind, outside: &str) -> (String, String, String) {
    if !matches!(kind, NatKind::FullCone | NatKind::Restricted) {
        return Default::default();
    }
    let (mut maps, mut inbound, mut learn) = (String::new(), String::new(), String::new());
    // nft 1.0.6 has no registers for the same of IPv6, which nobody translates so: there a cone is port-restricted.
    let (family, address) = ("ip", "ipv4_addr");
    for proto in ["tcp", "udp"] {
        let name = format!("{family}_{proto}");
        maps += &format!(
            "\tmap cone_{name} {{ type inet_service : {address} . inet_service; flags dynamic; size 65535; }}\n\
             \tset peers_{name} {{ type inet_service . {address}; flags dynamic; size 65535; }}\n"
        );
        let from = match kind {
            NatKind::Restricted => format!("{proto} dport . {family} saddr @peers_{name} "),
            _ => String::new(),
        };
        inbound += &format!(
            "\t\tiifname \"{outside}\" {from}dnat {family} addr . port to {proto} dport map @cone_{name}\n"
        );
        let original = format!("\t\toifname \"{outside}\" ct direction original");
        learn += &format!(
            "{original} add @cone_{name} {{ {proto} sport : {family} saddr . {proto} sport }}\n\
             {original} add @peers_{name} {{ {proto} sport . {family} daddr }}\n"
        );
    }
    let learn = format!(
        "\tchain learn {{ type filter hook postrouting priority srcnat - 1;\n{learn}\t}}\n"
    );
    (maps, inbound, learn)
}

fn host_plan(name: &str, host: &Host, scenario: &Scenario, addresses: &Addresses) -> HostPlan {
    let mut interfaces = Vec::new();
    if host.node.is_some() {
        interfaces.push(address::ETH0.to_owned());
    }
    for (i, link) in scenario.links.iter().enumerate() {
        for (side, end) in link
            .ends
            .iter()
            .enumerate()
            .filter(|(_, end)| end.host == name)
        {
            let _ = end;
            interfaces.push(addresses.ends[i][side].interface.clone());
        }
    }
    let captures = match host.pcap {
        Some(bytes) => ["lo".to_owned()]
            .iter()
            .chain(&interfaces)
            .map(|interface| (interface.clone(), bytes))
            .collect(),
        None => Vec::new(),
    };
    HostPlan {
        name: name.to_owned(),
        addresses: addresses.of(name),
        captures,
        files: host.files.clone(),
        interfaces,
        router: host.router,
    }
}

fn edges(scenario: &Scenario) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (name, host) in scenario
        .hosts
        .iter()
        .filter(|(_, host)| host.node.is_some())
    {
        edges.push(Edge {
            from: name.clone(),
            to: None,
            label: host
                .node
                .map(|id| format!("at node {id}"))
                .unwrap_or_default(),
        });
    }
    for link in &scenario.links {
        let words = |wire: &Wire| {
            let rate = wire
                .rate
                .map(|rate| format!("{rate}, "))
                .unwrap_or_default();
            format!("{rate}{:?}", wire.delay)
        };
        let (there, back) = (words(&link.wires[0]), words(&link.wires[1]));
        edges.push(Edge {
            from: link.ends[0].host.clone(),
            to: Some(link.ends[1].host.clone()),
            label: match there == back {
                true => there,
                false => format!("{there} / {back}"),
            },
        });
    }
    edges
}

fn add_events(scenario: &Scenario, addresses: &Addresses, made: &mut Plan, cables: Cables) {
    let index = |name: &str| {
        scenario
            .hosts
            .keys()
            .position(|host| host == name)
            .unwrap_or_default()
    };
    for event in &scenario.events {
        let steps = match &event.what {
            Action::Run(host, words) => {
                let process = made.processes.len();
                made.processes.push(run(index(host), words));
                vec![Step::Start { process }]
            }
            other => steps::of(other, scenario, addresses, cables, index),
        };
        made.timeline.push(Timed {
            at: event.at,
            label: steps::label(&event.what),
            steps,
        });
    }
}

/// A program of an event: its outcome is not judged.
fn run(host: usize, words: &[String]) -> ProcessPlan {
    let search = std::env::var("PATH").unwrap_or_default();
    let program = crate::process::find_program(&words[0], &search)
        .unwrap_or_else(|_| PathBuf::from(&words[0]));
    ProcessPlan {
        host,
        label: String::new(),
        name: words[0].clone(),
        program,
        args: words[1..].to_vec(),
        environment: Vec::new(),
        expected: Expected::Any,
    }
}

fn add_processes(scenario: &Scenario, made: &mut Plan) {
    let mut starts = Vec::new();
    for (host, spec) in scenario.hosts.values().enumerate() {
        for process in &spec.processes {
            let number = made.processes.len();
            made.processes.push(ProcessPlan {
                host,
                label: String::new(),
                program: process.program.clone(),
                name: process.name.clone(),
                args: process.args.clone(),
                environment: process.environment.clone(),
                expected: process.expected,
            });
            if let Some((at, signal)) = process.shutdown {
                made.timeline.push(Timed {
                    at,
                    label: String::new(),
                    steps: vec![Step::Signal {
                        process: number,
                        signal,
                    }],
                });
            }
            starts.push((process.start, number));
        }
    }
    for (at, process) in starts {
        made.timeline.push(Timed {
            at,
            label: String::new(),
            steps: vec![Step::Start { process }],
        });
    }
    number(made);
}

/// Shadow numbers the processes of a host in the order of their starts.
fn number(made: &mut Plan) {
    made.timeline.sort_by_key(|timed| timed.at);
    let mut next: BTreeMap<usize, u32> = BTreeMap::new();
    for step in made.timeline.iter().flat_map(|timed| &timed.steps) {
        if let Step::Start { process } = step {
            let process = &mut made.processes[*process];
            let number = next.entry(process.host).or_insert(FIRST_NUMBER);
            let name = process
                .program
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            process.label = format!("{name}.{number}");
            *number += 1;
        }
    }
}
