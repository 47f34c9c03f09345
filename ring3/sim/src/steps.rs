// SPDX-License-Identifier: GPL-2.0
//! What an event of the scenario is made of.

use std::net::IpAddr;

use crate::address::Addresses;
use crate::plan::{Cables, Step, WIRES};
use crate::qdisc;
use crate::scenario::{Action, Scenario, Wire};
use crate::simlink;

const SIGKILL: i32 = 9;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

/// A host that crashes is silent from that instant on: its programs' ends must not be heard.
const SILENCE: &str = "table inet crash
delete table inet crash
table inet crash {
	chain in { type filter hook prerouting priority -400; iif != \"lo\" drop; }
	chain out { type filter hook postrouting priority 400; oif != \"lo\" drop; }
}
";
const SPEECH: &str = "table inet crash\ndelete table inet crash\n";
const HEAL: &str = "table inet partition\ndelete table inet partition\n";

/// The interface of a link's end in `_wires`.
pub fn port(link: usize, side: usize) -> String {
    format!("l{link}{}", ["a", "b"][side])
}

pub fn of(
    action: &Action,
    scenario: &Scenario,
    addresses: &Addresses,
    cables: Cables,
    index: impl Fn(&str) -> usize,
) -> Vec<Step> {
    let link = |name: &str| {
        scenario
            .links
            .iter()
            .position(|link| link.name == name)
            .unwrap_or_default()
    };
    match action {
        Action::LinkDown(name) => vec![set_link(scenario, addresses, cables, link(name), false)],
        Action::LinkUp(name) => vec![set_link(scenario, addresses, cables, link(name), true)],
        Action::LinkSet(name, wires) | Action::LinkFollows(name, wires) => match cables {
            Cables::Simlink => change_cable(scenario, addresses, link(name), wires),
            Cables::Netem => change(scenario, addresses, link(name), wires),
        },
        Action::Partition(groups) => partition(groups, addresses),
        Action::Heal => scenario
            .hosts
            .keys()
            .map(|host| nft(host, HEAL.into()))
            .collect(),
        Action::Crash(name) => vec![
            nft(name, SILENCE.into()),
            Step::SignalHost {
                host: index(name),
                signal: SIGKILL,
            },
            Step::ForgetSockets { host: index(name) },
        ],
        Action::Restart(name) => vec![
            nft(name, SPEECH.into()),
            Step::Restart { host: index(name) },
        ],
        Action::Pause(name) => vec![Step::SignalHost {
            host: index(name),
            signal: SIGSTOP,
        }],
        Action::Resume(name) => vec![Step::SignalHost {
            host: index(name),
            signal: SIGCONT,
        }],
        Action::Loss(name, share) => vec![nft(name, loss(*share))],
        Action::Clock(name, change) => vec![Step::Clock {
            space: name.clone(),
            change: *change,
        }],
        Action::Run(..) => Vec::new(),
    }
}

fn nft(space: &str, script: String) -> Step {
    Step::Nft {
        space: space.to_owned(),
        script,
    }
}

fn set_link(
    scenario: &Scenario,
    addresses: &Addresses,
    cables: Cables,
    link: usize,
    is_up: bool,
) -> Step {
    if cables == Cables::Simlink {
        let dev = &addresses.ends[link][0].interface;
        let state = if is_up { "on" } else { "off" };
        return Step::Ip {
            space: scenario.links[link].ends[0].host.clone(),
            lines: vec![format!("link set {dev} carrier {state}")],
        };
    }
    let state = if is_up { "up" } else { "down" };
    Step::Ip {
        space: WIRES.into(),
        lines: (0..2)
            .map(|side| format!("link set {} {state}", port(link, side)))
            .collect(),
    }
}

/// The queue first: an interface that has a rate and no queue drops what it has no time for.
fn change_cable(
    scenario: &Scenario,
    addresses: &Addresses,
    link: usize,
    wires: &[Wire; 2],
) -> Vec<Step> {
    let mut steps = Vec::new();
    for (side, wire) in wires.iter().enumerate() {
        let space = &scenario.links[link].ends[side].host;
        let dev = &addresses.ends[link][side].interface;
        steps.extend(qdisc::before(dev, wire).map(|line| Step::Tc {
            space: space.clone(),
            lines: vec![line],
        }));
        steps.push(Step::Ip {
            space: space.clone(),
            lines: vec![simlink::set(dev, wire, None)],
        });
    }
    steps
}

fn change(scenario: &Scenario, addresses: &Addresses, link: usize, wires: &[Wire; 2]) -> Vec<Step> {
    let mut steps = Vec::new();
    for (side, wire) in wires.iter().enumerate() {
        let queue = wire.queue.as_deref();
        let dev = &addresses.ends[link][side].interface;
        let lines = qdisc::egress(dev, wire.rate, queue, wire.limit);
        if !lines.is_empty() {
            steps.push(Step::Tc {
                space: scenario.links[link].ends[side].host.clone(),
                lines,
            });
        }
        steps.push(Step::Tc {
            space: WIRES.into(),
            lines: qdisc::wire(&port(link, 1 - side), wire),
        });
    }
    steps
}

/// Each host of a group drops what comes from those of the others.
fn partition(groups: &[Vec<String>], addresses: &Addresses) -> Vec<Step> {
    let mut steps = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let others: Vec<IpAddr> = groups
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != i)
            .flat_map(|(_, other)| other)
            .flat_map(|host| addresses.of(host))
            .collect();
        let mut script = format!("{HEAL}table inet partition {{\n\tchain in {{ type filter hook prerouting priority -400;\n");
        for (word, is) in [
            ("ip", IpAddr::is_ipv4 as fn(&IpAddr) -> bool),
            ("ip6", IpAddr::is_ipv6),
        ] {
            let list: Vec<_> = others
                .iter()
                .filter(|a| is(a))
                .map(IpAddr::to_string)
                .collect();
            if !list.is_empty() {
                script.push_str(&format!(
                    "\t\t{word} saddr {{ {} }} drop\n",
                    list.join(", ")
                ));
            }
        }
        script.push_str("\t}\n}\n");
        steps.extend(group.iter().map(|host| nft(host, script.clone())));
    }
    steps
}

/// Of the packets that come to a host from others, a share is dropped at random.
fn loss(share: f64) -> String {
    let none = "table inet loss\ndelete table inet loss\n";
    // In parts of a million.
    match (share * 1e6) as u32 {
        0 => none.into(),
        parts => format!(
            "{none}table inet loss {{\n\tchain in {{ type filter hook prerouting priority -400; \
             iif != \"lo\" numgen random mod 1000000 < {parts} drop; }}\n}}\n"
        ),
    }
}

/// One line for people.
pub fn label(action: &Action) -> String {
    match action {
        Action::LinkDown(name) => format!("link {name} down"),
        Action::LinkUp(name) => format!("link {name} up"),
        Action::LinkSet(name, _) => format!("link {name} changes"),
        Action::LinkFollows(..) => String::new(),
        Action::Partition(groups) => {
            let groups: Vec<_> = groups.iter().map(|group| group.join(" ")).collect();
            format!("partition: {}", groups.join(" | "))
        }
        Action::Heal => "partitions end".into(),
        Action::Crash(host) => format!("{host} crashes"),
        Action::Restart(host) => format!("{host} starts again"),
        Action::Pause(host) => format!("{host} stands still"),
        Action::Resume(host) => format!("{host} goes on"),
        Action::Loss(host, share) if *share == 0.0 => format!("{host} loses nothing"),
        Action::Loss(host, share) => format!("{host} loses {:.2} % of what comes", share * 100.0),
        Action::Clock(host, change) => {
            let step = change.step as f64 / 1e9;
            match (change.step, change.drift) {
                (_, None) => format!("{host}'s clock steps by {step} s"),
                (0, Some(drift)) => format!("{host}'s clock gains {} ppm", drift as f64 / 1e3),
                (_, Some(drift)) => format!(
                    "{host}'s clock steps by {step} s and gains {} ppm",
                    drift as f64 / 1e3
                ),
            }
        }
        Action::Run(host, words) => format!("{host} runs {}", words.join(" ")),
    }
}
