// SPDX-License-Identifier: GPL-2.0
//! `events` of a scenario: what happens to its hosts and links, and when.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Fault;
use crate::ours::{self, names, wires, WIRE};
use crate::process::find_program;
use crate::read::opt;
use crate::scenario::{Action, Event, General, Host, Link};
use crate::units::{share_of, time_of};
use crate::yaml::{Node, Result, Value};

pub const EVENT: &[&str] = &[
    "at",
    "down",
    "up",
    "change",
    "lossy",
    "partition",
    "heal",
    "crash",
    "restart",
    "pause",
    "resume",
    "clock",
    "run",
    "on",
];

pub const CLOCK: &[&str] = &["host", "step", "drift"];

pub fn read(
    node: &Node,
    hosts: &BTreeMap<String, Host>,
    links: &[Link],
    general: &General,
    search: &str,
) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for (i, node) in node.list("events")?.iter().enumerate() {
        let path = format!("events[{i}]");
        let event = event(node, &path, hosts, links)?;
        let places = node.map(&path)?.places();
        if event.at >= general.stop_time {
            let words = format!("{path}.at: it must be before general.stop_time");
            return Err(Fault::at(places.of("at"), words));
        }
        if let Action::Run(_, words) = &event.what {
            find_program(&words[0], search)
                .map_err(|why| Fault::at(places.of("run"), format!("{path}.run: {why}")))?;
        }
        events.push(event);
    }
    // Of one instant: in the order of the file.
    events.sort_by_key(|event| event.at);
    Ok(events)
}

fn event(node: &Node, path: &str, hosts: &BTreeMap<String, Host>, links: &[Link]) -> Result<Event> {
    let mut map = node.map(path)?;
    let at = map.need("at")?;
    let at = time_of(at, &map.at("at"))?;
    let host = |node: &Node, path: &str| known(node, path, "host", |name| hosts.contains_key(name));
    let link = |node: &Node, path: &str| {
        known(node, path, "link", |name| {
            links.iter().any(|l| l.name == name)
        })
    };
    let mut found = Vec::new();
    let mut push = |action: Option<Action>| found.extend(action);
    push(opt(&mut map, "down", link)?.map(Action::LinkDown));
    push(opt(&mut map, "up", link)?.map(Action::LinkUp));
    push(opt(&mut map, "crash", host)?.map(Action::Crash));
    push(opt(&mut map, "restart", host)?.map(Action::Restart));
    push(opt(&mut map, "pause", host)?.map(Action::Pause));
    push(opt(&mut map, "resume", host)?.map(Action::Resume));
    push(opt(&mut map, "partition", |n, p| groups(n, p, hosts))?.map(Action::Partition));
    push(
        opt(&mut map, "heal", |n, p| n.bool(p))?
            .filter(|is| *is)
            .map(|_| Action::Heal),
    );
    push(opt(&mut map, "lossy", |n, p| lossy(n, p, hosts))?);
    push(opt(&mut map, "change", |n, p| change(n, p, links))?);
    push(opt(&mut map, "clock", |n, p| clock(n, p, hosts))?);
    let on = opt(&mut map, "on", host)?;
    let run = opt(&mut map, "run", |n, p| match &n.value {
        Value::Text(text) => shell_words::split(text)
            .map_err(|_| Fault::at(n.place, format!("{p}: a quote is not closed"))),
        _ => names(n, p),
    })?;
    match (run, on) {
        (Some(words), Some(host)) if !words.is_empty() => push(Some(Action::Run(host, words))),
        (None, None) => {}
        _ => {
            return Err(Fault::at(
                node.place,
                format!("{path}: `run: PROGRAM` and `on: HOST` go together"),
            ))
        }
    }
    map.finish(EVENT)?;
    match found.len() {
        1 => Ok(Event {
            at,
            what: found.remove(0),
        }),
        _ => {
            let words = format!(
                "{path}: beside `at`, one of {} is needed",
                EVENT[1..].join(", ")
            );
            Err(Fault::at(node.place, words))
        }
    }
}

fn known(node: &Node, path: &str, kind: &str, is_known: impl Fn(&str) -> bool) -> Result<String> {
    let name = node.text(path)?;
    match is_known(name) {
        true => Ok(name.to_owned()),
        false => Err(Fault::at(
            node.place,
            format!("{path}: there is no {kind} `{name}`"),
        )),
    }
}

fn groups(node: &Node, path: &str, hosts: &BTreeMap<String, Host>) -> Result<Vec<Vec<String>>> {
    let mut groups = Vec::new();
    let mut seen = BTreeSet::new();
    for group in node.list(path)? {
        let place = group.place;
        let group = names(group, path)?;
        for name in &group {
            if !hosts.contains_key(name) {
                return Err(Fault::at(
                    place,
                    format!("{path}: there is no host `{name}`"),
                ));
            }
            if !seen.insert(name.clone()) {
                return Err(Fault::at(
                    place,
                    format!("{path}: `{name}` is in two groups"),
                ));
            }
        }
        groups.push(group);
    }
    match groups.len() {
        0 | 1 => Err(Fault::at(
            node.place,
            format!("{path}: two groups of hosts are needed, or more"),
        )),
        _ => Ok(groups),
    }
}

/// `lossy: {host: NAME, loss: SHARE}`
fn lossy(node: &Node, path: &str, hosts: &BTreeMap<String, Host>) -> Result<Action> {
    let mut map = node.map(path)?;
    let at = map.need("host")?;
    let host = known(at, &map.at("host"), "host", |name| hosts.contains_key(name))?;
    let share = share_of(map.need("loss")?, &map.at("loss"))?;
    map.finish(&["host", "loss"])?;
    Ok(Action::Loss(host, share))
}

/// `clock: {host: NAME, step: TIME, drift: PPM}`
fn clock(node: &Node, path: &str, hosts: &BTreeMap<String, Host>) -> Result<Action> {
    let mut map = node.map(path)?;
    let at = map.need("host")?;
    let host = known(at, &map.at("host"), "host", |name| hosts.contains_key(name))?;
    let change = ours::clock_change(&mut map)?;
    map.finish(CLOCK)?;
    Ok(Action::Clock(host, change))
}

/// `change: {link: NAME, rate: ...}`: what is not said stays as the file had it at first.
fn change(node: &Node, path: &str, links: &[Link]) -> Result<Action> {
    let mut map = node.map(path)?;
    let at = map.need("link")?;
    let name = at.text(&map.at("link"))?;
    let Some(link) = links.iter().find(|link| link.name == name) else {
        return Err(Fault::at(
            at.place,
            format!("{path}.link: there is no link `{name}`"),
        ));
    };
    let places = map.places();
    let wires = wires(&mut map, &link.wires)?;
    let has_trace =
        |wires: &[crate::scenario::Wire; 2]| wires.iter().any(|wire| wire.trace.is_some());
    if has_trace(&wires) {
        let words = match has_trace(&link.wires) {
            true => format!("{path}.link: `{name}` follows a trace, which says its changes"),
            false => format!("{path}.trace: a trace belongs to the link"),
        };
        return Err(Fault::at(places.of("trace"), words));
    }
    map.finish(WIRE)?;
    Ok(Action::LinkSet(link.name.clone(), Box::new(wires)))
}
