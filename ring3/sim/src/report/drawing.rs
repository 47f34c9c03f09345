// SPDX-License-Identifier: GPL-2.0
//! The network as a picture. Places of nodes come from springs along the links and a force that drives nodes apart
//! (Fruchterman and Reingold, 1991), from a start that is always the same.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::escape;
use crate::plan::{Edge, Plan};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 50.0;
/// Turns of the springs; the picture stands still after some hundred.
const TURNS: usize = 300;
/// With more nodes a picture is a ball of wool.
const NODES: usize = 150;
/// Nodes are large up to here, and small beyond.
const FEW: usize = 40;
/// How far apart several links of the same two hosts are.
const BEND: f64 = 40.0;
/// Parts of a network that no link joins drive each other away up to so many lengths of a link.
const APART: f64 = 2.0;
/// The middle of the network of places.
const NETWORK: &str = "network";

pub fn draw(plan: &Plan) -> String {
    let mut names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    let mut edges: Vec<(&str, &str, &str)> = Vec::new();
    for Edge { from, to, label } in &plan.edges {
        edges.push((from, to.as_deref().unwrap_or(NETWORK), label));
    }
    if edges.iter().any(|(_, to, _)| *to == NETWORK) {
        names.push(NETWORK);
    }
    if names.len() > NODES {
        return format!("<p>{} hosts: too many for a picture.</p>", plan.hosts.len());
    }
    let places = places(&names, &edges);
    let mut out = format!("<svg class=\"net\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"The network\">");
    let mut drawn: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for (from, to, label) in &edges {
        let before = drawn.entry((from.min(to), from.max(to))).or_default();
        let (Some(a), Some(b)) = (places.get(from), places.get(to)) else {
            continue;
        };
        let (from, to) = (from.min(to), from.max(to));
        // A second link of the same two hosts is an arc, the third one on the other side.
        let bend = f64::from(before.div_ceil(2)) * if *before % 2 == 1 { BEND } else { -BEND };
        *before += 1;
        let (near, far) = (places[from], places[to]);
        let (dx, dy) = (far.0 - near.0, far.1 - near.1);
        let length = dx.hypot(dy).max(1.0);
        let middle = (
            (a.0 + b.0) / 2.0 - dy / length * bend,
            (a.1 + b.1) / 2.0 + dx / length * bend,
        );
        // The curve comes half as far as its control point.
        let _ = write!(
            out,
            "<path class=\"link\" d=\"M{:.0} {:.0}Q{:.0} {:.0} {:.0} {:.0}\"><title>{}</title></path>",
            a.0,
            a.1,
            2.0 * middle.0 - (a.0 + b.0) / 2.0,
            2.0 * middle.1 - (a.1 + b.1) / 2.0,
            b.0,
            b.1,
            escape(label)
        );
        // Not where it would lie on other words.
        if edges.len() <= 12 {
            let _ = write!(
                out,
                "<text class=\"label\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                middle.0,
                middle.1 - 4.0,
                escape(label)
            );
        }
    }
    let radius = if names.len() > FEW { 5.0 } else { 9.0 };
    for name in &names {
        let (x, y) = places[name];
        let host = plan.hosts.iter().find(|host| host.name == *name);
        let kind = match host {
            None => "cloud",
            Some(host) if host.router => "router",
            Some(_) => "host",
        };
        let addresses: Vec<String> = host
            .map(|host| host.addresses.iter().map(ToString::to_string).collect())
            .unwrap_or_default();
        let _ = write!(
            out,
            "<g class=\"{kind}\"><circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{radius}\"><title>{} {}</title></circle><text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text></g>",
            escape(name),
            addresses.join(" "),
            y + radius + 15.0,
            escape(name)
        );
    }
    out.push_str("</svg>");
    out
}

/// For each node, one of its part of the network: the same for all that links join.
fn parts(nodes: usize, pairs: &[(usize, usize)]) -> Vec<usize> {
    let mut part: Vec<usize> = (0..nodes).collect();
    for (a, b) in pairs {
        let (from, to) = (part[*a], part[*b]);
        part.iter_mut()
            .filter(|one| **one == from)
            .for_each(|one| *one = to);
    }
    part
}

fn places<'a>(names: &[&'a str], edges: &[(&str, &str, &str)]) -> BTreeMap<&'a str, (f64, f64)> {
    let count = names.len().max(1) as f64;
    let mut at: Vec<(f64, f64)> = (0..names.len())
        .map(|i| {
            let angle = std::f64::consts::TAU * i as f64 / count;
            // Not exactly a circle, on which forces may cancel out.
            (angle.cos() * (1.0 + 0.01 * i as f64), angle.sin())
        })
        .collect();
    let index: BTreeMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (*name, i))
        .collect();
    let pairs: Vec<(usize, usize)> = edges
        .iter()
        .filter_map(|(a, b, _)| Some((*index.get(a)?, *index.get(b)?)))
        .collect();
    let parts = parts(names.len(), &pairs);
    let ideal = 1.0 / count.sqrt();
    for turn in 0..TURNS {
        let mut force = vec![(0.0, 0.0); at.len()];
        let mut push = |i: usize, j: usize, strength: f64, at: &[(f64, f64)]| {
            let (dx, dy) = (at[i].0 - at[j].0, at[i].1 - at[j].1);
            force[i].0 += dx * strength;
            force[i].1 += dy * strength;
            force[j].0 -= dx * strength;
            force[j].1 -= dy * strength;
        };
        let distance = |i: usize, j: usize, at: &[(f64, f64)]| {
            (at[i].0 - at[j].0).hypot(at[i].1 - at[j].1).max(1e-3)
        };
        for i in 0..at.len() {
            for j in 0..i {
                let d = distance(i, j, &at);
                // No spring keeps the parts of a network together: they would fly off, and each be a dot.
                if parts[i] == parts[j] || d < APART * ideal {
                    push(i, j, ideal * ideal / (d * d), &at);
                }
            }
        }
        for (i, j) in &pairs {
            let d = distance(*i, *j, &at);
            push(*i, *j, -d / ideal * 0.5, &at);
        }
        let step = 0.1 * (1.0 - turn as f64 / TURNS as f64);
        for (place, force) in at.iter_mut().zip(&force) {
            let size = force.0.hypot(force.1).max(1e-9);
            place.0 += force.0 / size * size.min(step);
            place.1 += force.1 / size * size.min(step);
        }
    }
    let fit = |values: Vec<f64>, size: f64| -> Vec<f64> {
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        let room = size - 2.0 * MARGIN;
        values
            .iter()
            .map(|value| match most - least {
                span if span < 1e-6 => size / 2.0,
                span => MARGIN + room * (value - least) / span,
            })
            .collect()
    };
    let xs = fit(at.iter().map(|place| place.0).collect(), WIDTH);
    let ys = fit(at.iter().map(|place| place.1).collect(), HEIGHT);
    names
        .iter()
        .zip(xs.into_iter().zip(ys))
        .map(|(name, place)| (*name, place))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_links_stay_in_sight() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let edges = [
            ("a", "b", ""),
            ("c", "d", ""),
            ("e", "f", ""),
            ("g", "h", ""),
        ];
        let places = places(&names, &edges);
        for (a, b, _) in edges {
            let (near, far) = (places[a], places[b]);
            let length = (near.0 - far.0).hypot(near.1 - far.1);
            assert!(length > 40.0, "{a} {near:?} {b} {far:?}");
        }
    }
}
