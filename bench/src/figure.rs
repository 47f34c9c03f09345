// SPDX-License-Identifier: GPL-2.0
//! One figure: its file in bench/figures.
//!
//! A figure compares series (the first is the host's kernel, the baseline) over the
//! values of x. The words of a command may hold {addr}, {port}, {x}, {seconds},
//! {load}, {bench}, {ring3} and what a series adds in `vars`.

use crate::tool;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub title: String,
    /// Which figure or table of which paper; empty for our own.
    #[serde(default)]
    pub paper: String,
    /// Notes for its reader.
    #[serde(default)]
    pub note: String,
    #[serde(default)]
    pub x: Axis,
    pub load: Load,
    pub series: Vec<Series>,
    pub measure: Vec<Measure>,
    #[serde(default)]
    pub bar: Vec<Bar>,
    #[serde(default)]
    pub plot: Plot,
    /// Unless told otherwise. With 5 of all figures but the longest, a run stays under half an hour.
    #[serde(default = "five")]
    pub rounds: usize,
    /// Measured by `make bench-quick` too.
    #[serde(default)]
    pub quick: bool,
    /// The series of ring3's that the others are compared with, beside the baseline.
    #[serde(default)]
    pub versus: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    #[serde(default)]
    pub name: String,
    pub values: Vec<String>,
    /// The values of a quick run; none: all.
    #[serde(default)]
    pub quick: Vec<String>,
}

impl Default for Axis {
    fn default() -> Axis {
        Axis {
            name: String::new(),
            values: vec![String::new()],
            quick: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// C programs below bench/, compiled before anything runs.
    pub sources: Vec<String>,
    /// The far end; none: the near end does it alone.
    #[serde(default)]
    pub serve: Vec<String>,
    pub ask: Vec<String>,
    /// A command on the host whose last words are the asking end's command.
    #[serde(default)]
    pub around: Vec<String>,
    #[serde(default)]
    pub output: Output,
    /// Seconds of one measurement in a full and in a quick run.
    #[serde(default = "usual")]
    pub seconds: f64,
    #[serde(default = "quarter")]
    pub quick_seconds: f64,
}

fn five() -> usize {
    5
}

fn usual() -> f64 {
    0.7
}

fn quarter() -> f64 {
    0.25
}

/// How the asking end's output is read.
#[derive(Debug, Default, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// A line "KEY VALUE" for each figure.
    #[default]
    Lines,
    /// A number, called "value".
    Number,
    /// The output of wrk --latency.
    Wrk,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    pub name: String,
    pub bed: BedKind,
    /// The peer of build/peers that takes part; where it is missing, the series is left out.
    #[serde(default)]
    pub peer: String,
    /// Options of `ring3 up`.
    #[serde(default)]
    pub node: Vec<String>,
    /// Shell commands run on both ends once they are up.
    #[serde(default)]
    pub setup: Vec<String>,
    /// CPUs the ends are pinned to, keepers of nodes included, as taskset -c takes them; empty:
    /// not pinned.
    #[serde(default)]
    pub near_cpus: String,
    #[serde(default)]
    pub far_cpus: String,
    /// The cgroup.procs file of the cgroup in which all of it runs, keepers included; empty: ours.
    #[serde(skip)]
    pub cgroup: String,
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
}

impl Series {
    /// Whether another stack than ring3 and the host's kernel takes part.
    pub fn is_peer(&self) -> bool {
        !self.peer.is_empty()
            || matches!(self.bed, BedKind::Pasta | BedKind::PastaIn | BedKind::Slirp)
    }
}

#[derive(Debug, Deserialize, Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum BedKind {
    /// Two network namespaces of the host, joined by veth.
    Veth,
    /// The loopback of one namespace of the host.
    Loopback,
    /// Two nodes, joined by a link.
    Link,
    /// The loopback of one node.
    NodeLoopback,
    /// A node asks, a namespace of the host answers, over a TAP.
    TapOut,
    /// A namespace of the host asks, a node answers, over a TAP.
    TapIn,
    /// A node asks, a namespace of the host answers, over a veth: by AF_XDP ...
    XdpOut,
    /// ... and by a packet socket.
    PacketOut,
    /// Three namespaces in a row; the middle one forwards.
    VethForward,
    /// Three nodes in a row; the middle one forwards.
    LinkForward,
    /// A namespace of the host asks, a library's stack answers, over a TAP.
    Peer,
    /// A namespace of the host asks, a User-mode Linux answers, over a TAP.
    UmlTap,
    /// The loopback of one User-mode Linux.
    UmlLoopback,
    /// Two User-mode Linux, joined by TAPs and a bridge of the host.
    UmlPair,
    /// A namespace behind pasta asks, the host answers.
    Pasta,
    /// A namespace behind slirp4netns asks, the host answers.
    #[serde(rename = "slirp4netns")]
    Slirp,
    /// A node behind passt asks, the host answers.
    Passt,
    /// A node with a port `host` asks, the host answers.
    Host,
    /// The host asks, a namespace behind pasta answers at a published port ...
    PastaIn,
    /// ... or a node with a port `host`.
    HostIn,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    pub key: String,
    pub name: String,
    pub unit: String,
    pub better: Better,
    /// Left out of the table where the program does not print it.
    #[serde(default)]
    pub optional: bool,
    /// No ratio: the baseline may well be zero.
    #[serde(default)]
    pub plain: bool,
}

#[derive(Debug, Deserialize, Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Less,
    More,
}

/// A ratio to the baseline that is to be met.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Its promise, in words.
    pub what: String,
    pub measure: String,
    pub series: String,
    #[serde(default)]
    pub x: String,
    /// The series it is compared with; none: the baseline.
    #[serde(default)]
    pub to: String,
    pub ratio: f64,
    /// `ratio` is no ratio but a bar for the measure itself.
    #[serde(default)]
    pub plain: bool,
}

impl Bar {
    /// Whether it is one of those for five times what a User-mode Linux does.
    pub fn is_beside_uml(&self) -> bool {
        self.to.starts_with("UML")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// "line", "bars" or "stacked": measures on top of each other, in one bar for each series.
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
    /// Keys of the measures to draw; none: all that are not plain.
    #[serde(default)]
    pub measures: Vec<String>,
}

fn folder() -> PathBuf {
    tool::root().join("bench/figures")
}

/// The figures that there are, sorted.
pub fn all() -> Result<Vec<String>, String> {
    let folder = folder();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .flatten()
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".toml")?
                    .to_string(),
            )
        })
        .collect();
    names.sort();
    Ok(names)
}

pub fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.toml"))
}

/// Reads a figure and checks what the types can't say.
pub fn read(name: &str) -> Result<Figure, String> {
    let path = path(name);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut figure: Figure =
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    check(&figure).map_err(|e| format!("{}: {e}", path.display()))?;
    figure.bar.extend(beside_uml(&figure));
    Ok(figure)
}

/// On the same work ring3 is to be so many times better than User-mode Linux.
const UML_TIMES: f64 = 5.0;

/// The bars of that, one for each User-mode Linux, x and measure, but for those that the figure
/// says in words of its own.
fn beside_uml(figure: &Figure) -> Vec<Bar> {
    let mut bars = Vec::new();
    let is_uml = |series: &&Series| series.peer.starts_with("uml-");
    for uml in figure.series.iter().filter(is_uml) {
        for x in &figure.x.values {
            for measure in figure.measure.iter().filter(|measure| !measure.plain) {
                let is_said = |bar: &Bar| {
                    bar.to == uml.name
                        && bar.series == figure.versus
                        && bar.measure == measure.key
                        && bar.x == *x
                };
                if figure.versus.is_empty() || figure.bar.iter().any(is_said) {
                    continue;
                }
                let at = if x.is_empty() { "" } else { ", " };
                bars.push(Bar {
                    what: format!(
                        "{}: {}{at}{x}, ring3 / {}",
                        figure.title, measure.name, uml.name
                    ),
                    measure: measure.key.clone(),
                    series: figure.versus.clone(),
                    x: x.clone(),
                    to: uml.name.clone(),
                    ratio: match measure.better {
                        Better::Less => 1.0 / UML_TIMES,
                        Better::More => UML_TIMES,
                    },
                    plain: false,
                });
            }
        }
    }
    bars
}

fn check(figure: &Figure) -> Result<(), String> {
    if figure.series.is_empty() || figure.x.values.is_empty() || figure.measure.is_empty() {
        return Err("needs a series, a value of x and a measure".into());
    }
    let known = |name: &str| figure.series.iter().any(|series| series.name == name);
    if !figure.versus.is_empty() && !known(&figure.versus) {
        return Err(format!("versus: no series '{}'", figure.versus));
    }
    for bar in &figure.bar {
        if !bar.to.is_empty() && !known(&bar.to) {
            return Err(format!("bar '{}': no series '{}'", bar.what, bar.to));
        }
        if !known(&bar.series) {
            return Err(format!("bar '{}': no series '{}'", bar.what, bar.series));
        }
        if !figure
            .measure
            .iter()
            .any(|m| m.key == bar.measure && m.plain == bar.plain)
        {
            return Err(format!("bar '{}': no measure '{}'", bar.what, bar.measure));
        }
        if !figure.x.values.contains(&bar.x) {
            return Err(format!("bar '{}': '{}' is no value of x", bar.what, bar.x));
        }
    }
    if let Some(x) = figure.x.quick.iter().find(|x| !figure.x.values.contains(x)) {
        return Err(format!("quick: '{x}' is no value of x"));
    }
    Ok(())
}

/// Replaces {name}; a name that is not known is an error.
pub fn fill(word: &str, vars: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        let end = rest[start..]
            .find('}')
            .map(|end| start + end)
            .ok_or_else(|| format!("'{word}': '{{' without '}}'"))?;
        let name = &rest[start + 1..end];
        let value = vars
            .get(name)
            .ok_or_else(|| format!("'{word}': nothing is known as '{name}'"))?;
        out.push_str(&rest[..start]);
        out.push_str(value);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills() {
        let vars = BTreeMap::from([("x".to_string(), "64".to_string())]);
        assert_eq!(fill("a{x}b{x}", &vars), Ok("a64b64".into()));
        assert!(fill("{y}", &vars).is_err());
        assert!(fill("{x", &vars).is_err());
    }

    #[test]
    fn each_line_beside_uml_has_a_bar() {
        let figure = read("peers-stream").unwrap();
        for uml in ["UML 6.1", "UML 6.12"] {
            for (measure, ratio) in [("gbit", 5.0), ("cpu_ns_per_kib", 0.2)] {
                for x in ["to", "back"] {
                    let is_it = |bar: &&Bar| bar.to == uml && bar.measure == measure && bar.x == x;
                    let found: Vec<_> = figure.bar.iter().filter(is_it).collect();
                    assert_eq!(found.len(), 1, "{uml} {measure} {x}");
                    assert_eq!((found[0].ratio, &*found[0].series), (ratio, "ring3, tap"));
                }
            }
        }
        assert_eq!(figure.bar.len(), 8);
        let slirp = read("peers-slirp-rr").unwrap();
        assert!(!slirp.bar.iter().any(Bar::is_beside_uml));
    }

    #[test]
    fn every_figure_reads() {
        let names = all().unwrap();
        assert!(!names.is_empty());
        for name in names {
            read(&name).unwrap();
        }
    }
}
