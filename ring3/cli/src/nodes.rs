// SPDX-License-Identifier: GPL-2.0
//! `ring3 ls`, `ring3 stat`, `ring3 down`: the nodes there are.

use std::time::Duration;

use ring3_config::size;
use ring3_node::client::{self, Calls, Client, Port, State, Status};
use ring3_node::Error;
use serde::Serialize;

use crate::args;
use crate::error::{Failure, Result};
use crate::say;
use crate::table::{self, Cell, Colour};
use crate::{users, watch};

/// Asking a node takes part of a millisecond of its kernel.
const WATCH_MIN: Duration = Duration::from_millis(10);

pub fn print_json<T: Serialize>(value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::host("print")(e.into()))?;
    say::print(text + "\n")
}

pub fn ls(args: &args::Ls) -> Result<()> {
    if args.all_users {
        return ls_all(args.json);
    }
    let nodes = client::list()?;
    if args.json {
        let nodes: Vec<_> = nodes.iter().map(json_entry).collect();
        return print_json(&nodes);
    }
    let rows: Vec<_> = nodes
        .iter()
        .map(|(name, status)| row(name, status))
        .collect();
    table::print(
        &["NAME", "STATE", "PID", "UP", "MEMORY", "PROGRAMS", "PORTS"],
        &rows,
    )
}

/// Every user's, with the user in front.
fn ls_all(json: bool) -> Result<()> {
    let all = users::list()?;
    let with_user = |user: &str, node: &serde_json::Value| {
        let mut node = node.clone();
        node["user"] = user.into();
        node
    };
    let nodes = all
        .iter()
        .flat_map(|it| it.nodes.iter().map(|node| (it.user.as_str(), node)));
    if json {
        let nodes: Vec<_> = nodes.map(|(user, node)| with_user(user, node)).collect();
        return print_json(&nodes);
    }
    let rows: Vec<_> = nodes
        .map(|(user, node)| {
            let name = node["name"].as_str().unwrap_or("?");
            let mut cells = vec![user.into()];
            cells.extend(match users::status(node) {
                Some(status) => row(name, &Ok(status)),
                None => vec![
                    name.into(),
                    node["state"].as_str().unwrap_or("silent").into(),
                ],
            });
            cells
        })
        .collect();
    let head = [
        "USER", "NAME", "STATE", "PID", "UP", "MEMORY", "PROGRAMS", "PORTS",
    ];
    table::print(&head, &rows)
}

fn json_entry((name, status): &(String, ring3_node::Result<Status>)) -> serde_json::Value {
    match status {
        Ok(status) => serde_json::json!(status),
        Err(error) => match state_without_answer(error) {
            Some(state) => serde_json::json!({ "name": name, "state": state }),
            None => serde_json::json!({ "name": name, "error": error.to_string() }),
        },
    }
}

/// The state of a node whose keeper does not listen yet, or no longer.
fn state_without_answer(error: &Error) -> Option<State> {
    match error {
        Error::Starting { .. } => Some(State::Booting),
        Error::Ending { .. } => Some(State::Down),
        _ => None,
    }
}

/// The word for the state of a node that does not answer, and the reason if the word doesn't say it.
pub fn words_without_answer(error: &Error) -> (String, Option<String>) {
    match state_without_answer(error) {
        Some(state) => (state.to_string(), None),
        None => ("silent".to_owned(), Some(error.to_string())),
    }
}

fn row(name: &str, status: &ring3_node::Result<Status>) -> Vec<Cell> {
    match status {
        Ok(status) if status.ended_s.is_some() => vec![
            name.into(),
            state(status.state),
            "".into(),
            duration(status.uptime_ns).into(),
            "".into(),
            "".into(),
            end(status).into(),
        ],
        Ok(status) => vec![
            name.into(),
            state(status.state),
            status.pid.to_string().into(),
            duration(status.uptime_ns).into(),
            memory(status).into(),
            status.procs.len().to_string().into(),
            ports(&status.ports).into(),
        ],
        Err(error) => {
            let (state, words) = match state_without_answer(error) {
                Some(known) => (state(known), String::new()),
                None => (Cell("silent".into(), Colour::Red), error.to_string()),
            };
            let none = || Cell::from("");
            vec![
                name.into(),
                state,
                none(),
                none(),
                none(),
                none(),
                words.into(),
            ]
        }
    }
}

/// How a node ended that is gone.
fn end(status: &Status) -> String {
    let ago = duration(status.ended_s.unwrap_or_default() * 1_000_000_000);
    match &status.poison {
        Some(why) => format!("ended {ago} ago: {why}"),
        None => format!("ended {ago} ago"),
    }
}

fn state(state: State) -> Cell {
    let colour = match state {
        State::Up => Colour::Green,
        State::Booting | State::Down => Colour::Yellow,
        State::Poisoned => Colour::Red,
    };
    Cell(state.to_string(), colour)
}

fn calls(calls: Calls) -> String {
    let all = calls.rewritten + calls.trapped;
    if all == 0 {
        return "none yet".into();
    }
    let share = 100.0 * calls.rewritten as f64 / all as f64;
    format!(
        "{all}: {} by rewritten sites ({share:.1} %), {} by traps; {} passed to the host",
        calls.rewritten, calls.trapped, calls.host
    )
}

fn memory(status: &Status) -> String {
    if is_sandboxed(status) {
        return format!("at most {}", size::format(status.mem.size));
    }
    let mib = status.mem.resident.div_ceil(1 << 20);
    format!("{mib}M of {}", size::format(status.mem.size))
}

fn spec(port: &Port) -> String {
    match &port.name {
        // A link between a node and this switch has a generated name.
        Some(name) if name.contains(':') => "link".into(),
        Some(name) => format!("{}:{name}", port.kind),
        None => port.kind.clone(),
    }
}

fn ports(ports: &[Port]) -> String {
    let words = ports.iter().map(|port| {
        let text = format!("{} {}", spec(port), port.addrs.join(" "));
        let state = match is_alone(port) {
            true => format!(", {}", missing_end(port)),
            false => String::new(),
        };
        format!("{}{state}", text.trim())
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A link that no other node has an end of, a host port whose process has ended, or a vhost port without virtual machine.
fn is_alone(port: &Port) -> bool {
    matches!(port.kind.as_str(), "link" | "switch" | "host" | "vhost") && port.peer.is_none()
}

fn missing_end(port: &Port) -> &'static str {
    match port.kind.as_str() {
        "vhost" => "no virtual machine",
        _ => "no other end",
    }
}

/// Complains of a link of a new node whose name another node's seems to mean.
pub fn look_for_mistyped_links(new: &Status, all: &[&Status]) {
    let alone = |node: &Status| -> Vec<String> {
        let ports = node.ports.iter().filter(|port| is_alone(port));
        let links = ports.filter(|port| port.kind == "link");
        links.filter_map(|port| port.name.clone()).collect()
    };
    let own = alone(new);
    for other in all.iter().filter(|it| it.name != new.name) {
        for link in &own {
            if let Some(theirs) = alone(other).iter().find(|it| looks_like(it, link)) {
                say::complain(format_args!(
                    "link `{link}` has no other end, nor has link `{theirs}` of node `{}`: is one of them mistyped?",
                    other.name
                ));
            }
        }
    }
}

/// The same letters in another order, written with other capitals and dashes, or a letter less. Another letter or digit in a place of
/// one is how links are told apart: `lan-a`, `lan-b`, `lan2`.
fn looks_like(one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.to_lowercase().chars().collect();
        letters.retain(|c| !matches!(c, '-' | '_' | '.'));
        letters
    };
    let sorted = |mut letters: Vec<char>| {
        letters.sort_unstable();
        letters
    };
    let (one_letters, other_letters) = (letters(one), letters(other));
    one != other
        && (lacks_a_letter(&one_letters, &other_letters)
            || lacks_a_letter(&other_letters, &one_letters)
            || sorted(one_letters) == sorted(other_letters))
}

/// Whether the first is the second without one of its letters. A short name has too many neighbours.
fn lacks_a_letter(one: &[char], other: &[char]) -> bool {
    const SHORTEST: usize = 3;
    if one.len() < SHORTEST || one.len() + 1 != other.len() {
        return false;
    }
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    other[same].is_alphabetic() && one[same..] == other[same + 1..]
}

/// `3s`, `4m05s`, `2h03m`, `5d02h`.
pub fn duration(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    match s {
        0..=59 => format!("{s}s"),
        60..=3599 => format!("{}m{:02}s", s / 60, s % 60),
        3600..=86_399 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

pub fn stat(args: &args::Stat) -> Result<()> {
    ring3_config::name::node(&args.name)?;
    if let Some(seconds) = args.watch {
        let every = Duration::from_secs_f64(seconds).max(WATCH_MIN);
        return watch::watch(&args.name, every, args.json);
    }
    let status = client::status(&args.name)?;
    if args.json {
        return print_json(&status);
    }
    say::print(describe(&status))
}

/// Its keeper tells nothing that its programs could forge: no version, and no address.
fn is_sandboxed(status: &Status) -> bool {
    status.ended_s.is_none() && status.version.is_empty()
}

fn describe(status: &Status) -> String {
    let mut out = String::new();
    // What a program or its kernel says is one line, too, whatever is in it.
    let mut line = |key: &str, value: String| {
        out += &format!("{key:<10} {}\n", value.replace(char::is_control, "?"));
    };
    line("node", status.name.clone());
    line("state", status.state.to_string());
    if let Some(why) = &status.poison {
        line("poison", why.clone());
    }
    if status.ended_s.is_some() {
        line("end", end(status));
        line("calls", calls(status.calls));
        return out;
    }
    if is_sandboxed(status) {
        let why = "not asked: it is sandboxed, and its programs could answer in its place";
        line("kernel", why.to_owned());
    } else {
        line("kernel", status.version.clone());
        line("image", status.image.display().to_string());
    }
    line("up for", duration(status.uptime_ns));
    line("memory", memory(status));
    if !is_sandboxed(status) {
        line("calls", calls(status.calls));
    }
    if status.late > 0 {
        line(
            "late",
            format!("{} waits ended by their time limit", status.late),
        );
    }
    line("keeper", format!("process {}", status.pid));
    if !is_sandboxed(status) {
        line("join", status.join.display().to_string());
        line("base", format!("{:#x}", status.base));
    }
    for port in &status.ports {
        let mut words = vec![format!("{} {}", port.ifname, spec(port))];
        words.extend(port.addrs.iter().cloned());
        words.extend(port.peer.iter().map(|node| format!("to {node}")));
        words.extend(is_alone(port).then(|| missing_end(port).to_owned()));
        words.extend(port.gw.iter().map(|gw| format!("gw {gw}")));
        words.extend(port.mtu.map(|mtu| format!("mtu {mtu}")));
        words.extend(port.pcap.iter().map(|p| format!("pcap {}", p.display())));
        line("port", words.join("  "));
    }
    for process in &status.procs {
        let threads = match process.threads {
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        };
        line(
            "program",
            format!("{} {}, {threads}", process.pid, process.command),
        );
    }
    if let Some(it) = &status.adopter {
        line(
            "adopter",
            format!(
                "of programs that are {}: {} calls gone on with, {} given up",
                it.how, it.adopted, it.freed
            ),
        );
    }
    for process in &status.held_up_by {
        line(
            "held up by",
            format!(
                "thread {} {}, which is stopped",
                process.pid, process.command
            ),
        );
    }
    if !is_sandboxed(status) {
        line(
            "debug",
            format!(
                "ring3 debug PID -- gdb -p PID -ex 'add-symbol-file {} -o {:#x}'",
                status.image.display(),
                status.base
            ),
        );
    }
    out
}

pub fn down(args: &args::Down) -> Result<()> {
    let names: Vec<String> = match args.all {
        true => client::list()?.into_iter().map(|(name, _)| name).collect(),
        false => args.names.clone(),
    };
    for name in &names {
        ring3_config::name::node(name)?;
    }
    take_down(names.iter().map(String::as_str), args.all)
}

/// Takes the nodes down, one after the other; complains of each that can't be, and goes on. `may_be_gone`: one that is
/// not there went down by itself, or by another's word.
pub fn take_down<'a>(names: impl Iterator<Item = &'a str>, may_be_gone: bool) -> Result<()> {
    let mut failed = false;
    for name in names {
        match Client::open(name).and_then(|node| node.down()) {
            Ok(()) => {}
            Err(Error::Ended { .. }) => drop(client::forget(name)),
            Err(Error::NoSuchNode { .. }) if may_be_gone => {}
            Err(error) => {
                say::complain(error);
                failed = true;
            }
        }
    }
    match failed {
        true => Err(Failure::Said),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_seem_to_be_one() {
        for (one, other) in [
            ("wan", "wna"),
            ("wan", "WAN"),
            ("lan-a", "lan_a"),
            ("uplink", "uplnk"),
            ("uplink", "uplinks"),
            ("lan", "lann"),
        ] {
            assert!(
                looks_like(one, other) && looks_like(other, one),
                "{one} {other}"
            );
        }
        for (one, other) in [
            ("lan", "lan"),
            ("lan-a", "lan-b"),
            ("lan", "lan2"),
            ("ab", "abc"),
            ("lan", "lanes"),
            ("up", "down"),
        ] {
            assert!(
                !looks_like(one, other) && !looks_like(other, one),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn durations() {
        for (s, text) in [
            (0, "0s"),
            (59, "59s"),
            (65, "1m05s"),
            (3725, "1h02m"),
            (90_000, "1d01h"),
        ] {
            assert_eq!(duration(s * 1_000_000_000), text);
        }
    }
}
