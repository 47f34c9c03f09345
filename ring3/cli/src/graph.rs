// SPDX-License-Identifier: GPL-2.0
//! `ring3 graph`: nodes, ports and links, drawn in the terminal or as SVG.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use ring3_node::client::{self, Port, Status};

use crate::args;
use crate::error::Result;
use crate::say;

/// Units of the picture (pixels at its natural size).
const BOX: (f64, f64) = (120.0, 44.0);
const MARGIN: f64 = 150.0;
/// Of the circle on which nodes stand, by each.
const ROOM: f64 = 60.0;
/// From a node to what a port that is no link leads to.
const STUB: f64 = 110.0;
/// Between lines of the same two nodes: two lines of text.
const GAP: f64 = 36.0;
/// And from the words of one to those of the next, of the line's length.
const STAGGER: f64 = 0.18;

pub fn graph(args: &args::Graph) -> Result<()> {
    let nodes: Vec<Status> = client::list()?
        .into_iter()
        .filter_map(|(_, status)| status.ok())
        .collect();
    say::print(match args.svg {
        true => svg(&nodes),
        false => text(&nodes),
    })
}

/// The far end of a port, in words; for a link the other node.
fn far(port: &Port) -> String {
    let name = port.name.as_deref().unwrap_or("");
    match port.kind.as_str() {
        "link" => match &port.peer {
            Some(node) => format!("node {node}"),
            None => "nobody".into(),
        },
        "switch" => format!("switch {name}"),
        "passt" | "host" => format!("the host's sockets ({})", port.kind),
        "vhost" => port
            .peer
            .clone()
            .unwrap_or_else(|| "no virtual machine".into()),
        kind => format!("host {kind} {name}"),
    }
}

/// `up, 1 program`
fn state(node: &Status) -> String {
    match node.procs.len() {
        1 => format!("{}, 1 program", node.state),
        n => format!("{}, {n} programs", node.state),
    }
}

/// Each node with a line for each port, as tree(1) draws folders.
fn text(nodes: &[Status]) -> String {
    let mut out = String::new();
    for node in nodes {
        let _ = writeln!(out, "{}  {}", node.name, state(node));
        for (number, port) in (1..).zip(&node.ports) {
            let branch = if number == node.ports.len() {
                "└"
            } else {
                "├"
            };
            let addrs = match port.addrs.is_empty() {
                true => String::new(),
                false => format!(" {}", port.addrs.join(" ")),
            };
            let _ = writeln!(out, "{branch}─ {}{addrs} ── {}", port.ifname, far(port));
        }
    }
    out
}

struct Spot {
    x: f64,
    y: f64,
    /// The way out of the circle, where stubs go.
    angle: f64,
}

/// Nodes on a circle, the first on top.
fn spots(count: usize) -> (Vec<Spot>, f64) {
    let radius = match count {
        0 | 1 => 0.0,
        n => (ROOM * n as f64).max(110.0),
    };
    let middle = radius + MARGIN;
    let spots = (0..count).map(|number| {
        let angle = TAU * number as f64 / count as f64 - TAU / 4.0;
        Spot {
            x: middle + radius * angle.cos(),
            y: middle + radius * angle.sin(),
            angle,
        }
    });
    (spots.collect(), 2.0 * middle)
}

/// The node at the other end of a port, if it is drawn.
fn peer(nodes: &[Status], port: &Port) -> Option<usize> {
    let name = port.peer.as_ref()?;
    nodes.iter().position(|it| it.name == *name)
}

/// The ends of a port's line, and its place among several between the same two nodes: these lie side by side, around 0.
fn beside(node: &Status, port: &Port, from: &Spot, to: &Spot) -> ((f64, f64), (f64, f64), f64) {
    let is_beside = |it: &&Port| it.peer == port.peer;
    let mut all: Vec<&Port> = node.ports.iter().filter(is_beside).collect();
    // In the same order from either end.
    all.sort_by_key(|it| &it.name);
    let number = all.iter().position(|it| it.ifname == port.ifname);
    let place = number.unwrap_or(0) as f64 - (all.len() - 1) as f64 / 2.0;
    // And on the same side.
    let is_first = port.peer.as_ref() > Some(&node.name);
    let side = if is_first { GAP } else { -GAP };
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy).max(1.0);
    let (x, y) = (-dy / length * place * side, dx / length * place * side);
    ((from.x + x, from.y + y), (to.x + x, to.y + y), place)
}

fn svg(nodes: &[Status]) -> String {
    let (spots, size) = spots(nodes.len());
    let mut lines = String::new();
    let mut labels = String::new();
    for (node, spot) in nodes.iter().zip(&spots) {
        let is_stub = |port: &&Port| peer(nodes, port).is_none();
        let stubs: Vec<&Port> = node.ports.iter().filter(is_stub).collect();
        for (number, port) in stubs.iter().enumerate() {
            let turn = (number as f64 - (stubs.len() - 1) as f64 / 2.0) * 0.7;
            let (x, y) = (
                spot.x + STUB * (spot.angle + turn).cos(),
                spot.y + STUB * (spot.angle + turn).sin(),
            );
            line(&mut lines, (spot.x, spot.y), (x, y), "stub");
            label(&mut labels, (x, y), &[far(port), port.addrs.join(" ")]);
        }
        for port in &node.ports {
            let Some(peer) = peer(nodes, port) else {
                continue;
            };
            let (from, to, place) = beside(node, port, spot, &spots[peer]);
            // A third of the way: what is written for one end stays away from what is written for the other, and
            // from what is written beside it.
            let part = (1.0 / 3.0 + STAGGER * place).clamp(0.15, 0.45);
            let at = (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
            label(
                &mut labels,
                at,
                &[port.ifname.clone(), port.addrs.join(" ")],
            );
            if nodes[peer].name > node.name {
                line(&mut lines, from, to, "link");
            }
        }
    }
    for (node, spot) in nodes.iter().zip(&spots) {
        let (x, y) = (spot.x - BOX.0 / 2.0, spot.y - BOX.1 / 2.0);
        let _ = writeln!(
            labels,
            "<rect x='{x:.1}' y='{y:.1}' width='{}' height='{}' rx='6' class='{}'/>",
            BOX.0, BOX.1, node.state
        );
        label(
            &mut labels,
            (spot.x, spot.y),
            &[node.name.clone(), state(node)],
        );
    }
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {size:.0} {size:.0}' width='{size:.0}' height='{size:.0}'>\n\
         <style>line{{stroke:#666}}.link{{stroke-width:2}}.stub{{stroke-dasharray:4}}rect{{fill:#eef;stroke:#335}}\
         .poisoned{{fill:#fdd}}text{{font:12px sans-serif;text-anchor:middle;\
         paint-order:stroke;stroke:#fff;stroke-width:4px}}</style>\n{lines}{labels}</svg>\n"
    )
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let _ = writeln!(
        out,
        "<line x1='{:.1}' y1='{:.1}' x2='{:.1}' y2='{:.1}' class='{class}'/>",
        from.0, from.1, to.0, to.1
    );
}

/// Lines of text around a point.
fn label(out: &mut String, at: (f64, f64), lines: &[String]) {
    for (number, text) in lines.iter().filter(|it| !it.is_empty()).enumerate() {
        let y = at.1 + 15.0 * number as f64 - 3.0;
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(out, "<text x='{:.1}' y='{y:.1}'>{text}</text>", at.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ring3 stat --json` says them.
    fn node(name: &str, ports: &str) -> Status {
        let text = format!(
            r#"{{"name":"{name}","state":"up","poison":null,"pid":1,"uptime_ns":0,"version":"","image":"","join":"","base":0,
            "mem":{{"size":0,"resident":0}},"calls":{{"rewritten":0,"trapped":0,"host":0}},"late":0,"ports":[{ports}],"procs":[],
            "adopter":null,"held_up_by":[]}}"#
        );
        serde_json::from_str(&text).expect("a status")
    }

    fn port(kind: &str, name: &str, addr: &str, peer: &str) -> String {
        format!(
            r#"{{"kind":"{kind}","name":"{name}","ifname":"{name}","ifindex":2,"addrs":["{addr}"],"gw":[],"mtu":null,
            "pcap":null,"made":false,"pid":null,"peer":{peer}}}"#
        )
    }

    fn network() -> Vec<Status> {
        let passt = port("passt", "p", "10.0.2.15/24", "null");
        let mistyped = port("link", "a<b", "10.9.0.1/24", "null");
        vec![
            node(
                "a",
                &[port("link", "ab", "10.0.0.1/24", r#""b""#), passt].join(","),
            ),
            node(
                "b",
                &[port("link", "ab", "10.0.0.2/24", r#""a""#), mistyped].join(","),
            ),
        ]
    }

    #[test]
    fn in_the_terminal() {
        assert_eq!(
            text(&network()),
            "a  up, 0 programs\n├─ ab 10.0.0.1/24 ── node b\n└─ p 10.0.2.15/24 ── the host's sockets (passt)\n\
             b  up, 0 programs\n├─ ab 10.0.0.2/24 ── node a\n└─ a<b 10.9.0.1/24 ── nobody\n"
        );
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn all_ports_are_in_the_picture_and_none_covers_another() {
        let both = |peer: &str, end: u8| {
            let peer = format!("\"{peer}\"");
            let one = port("link", "l1", &format!("10.1.0.{end}/24"), &peer);
            let two = port("link", "l2", &format!("10.2.0.{end}/24"), &peer);
            match end {
                1 => [one, two].join(","),
                _ => [two, one].join(","),
            }
        };
        let way_out = port("host", "", "10.0.2.15/24", r#""the host""#);
        let nodes = [
            node("a", &[both("b", 1), way_out].join(",")),
            node("b", &both("a", 2)),
        ];
        let picture = svg(&nodes);
        let lines: Vec<_> = picture.lines().filter(|it| it.contains("'link'")).collect();
        assert_eq!(lines.len(), 2);
        assert_ne!(lines[0], lines[1]);
        assert!(picture.contains("sockets (host)"), "{picture}");
        // Labels of one link are written beside the same line.
        let place = |address: &str| {
            let text = picture.lines().find(|it| it.contains(address)).unwrap();
            text.split_once("x='")
                .unwrap()
                .1
                .split_once('\'')
                .unwrap()
                .0
                .to_owned()
        };
        assert_eq!(place("10.1.0.1/24"), place("10.1.0.2/24"));
        assert_ne!(place("10.1.0.1/24"), place("10.2.0.1/24"));
    }

    #[test]
    fn as_svg() {
        let picture = svg(&network());
        assert_eq!(picture.matches("class='link'").count(), 1, "{picture}");
        assert_eq!(picture.matches("class='stub'").count(), 2);
        assert_eq!(picture.matches("<rect ").count(), 2);
        assert!(picture.contains(">10.0.0.2/24</text>"));
        assert!(!picture.contains("a<b"));
        assert!(svg(&[]).contains("<svg"));
    }
}
