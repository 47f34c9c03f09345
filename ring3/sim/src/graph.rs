// SPDX-License-Identifier: GPL-2.0
//! A network as a graph of places: what a packet meets on its way from one to another.
//!
//! Between two places lies the path of least latency, as Shadow has it; from a place to itself its own
//! edge, even where another way is shorter. Without `use_shortest_path` only edges count. Of several edges between two
//! places the shortest way takes the best; where an edge counts by itself, there may be only one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use crate::error::{Fault, Place};
use crate::gml::{self, Entry, Value};
use crate::units::{self, Bare, Rate};

pub type Result<T> = std::result::Result<T, Fault>;

pub const ONE_GBIT_SWITCH: &str = r#"graph [
  directed 0
  node [ id 0 host_bandwidth_up "1 Gbit" host_bandwidth_down "1 Gbit" ]
  edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ]
]"#;

/// What packets meet between two places.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Way {
    pub latency: Duration,
    pub jitter: Duration,
    /// The share of packets that is lost, 0 to 1.
    pub loss: f64,
}

impl Way {
    /// The lowest is the best, as for Shadow. Losses are not negative, so that their bits have their order.
    fn rank(&self) -> (Duration, u64) {
        (self.latency, self.loss.abs().to_bits())
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vertex {
    pub label: Option<String>,
    pub down: Option<Rate>,
    pub up: Option<Rate>,
}

#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub nodes: BTreeMap<i64, Vertex>,
    /// The best between two places.
    edges: BTreeMap<(i64, i64), Way>,
    /// Where there are several.
    several: BTreeSet<(i64, i64)>,
    pub directed: bool,
}

impl Graph {
    pub fn parse(text: &str) -> Result<Graph> {
        let entries = gml::parse(text)?;
        let start = Place { line: 1, column: 1 };
        let graph = entries
            .iter()
            .find(|entry| entry.key == "graph")
            .ok_or_else(|| Fault::at(start, "no `graph [ ... ]`"))?;
        let list = list(graph)?;
        let mut made = Graph::default();
        for entry in list.iter().filter(|entry| entry.key == "directed") {
            made.directed = int(entry)? != 0;
        }
        for entry in list.iter().filter(|entry| entry.key == "node") {
            made.add_node(entry)?;
        }
        for entry in list.iter().filter(|entry| entry.key == "edge") {
            made.add_edge(entry)?;
        }
        match made.nodes.is_empty() {
            true => Err(Fault::at(graph.place, "the graph has no node")),
            false => Ok(made),
        }
    }

    fn add_node(&mut self, entry: &Entry) -> Result<()> {
        let mut id = None;
        let mut node = Vertex::default();
        for field in list(entry)? {
            match field.key.as_str() {
                "id" => id = Some(int(field)?),
                "label" => node.label = Some(text(field)?),
                "host_bandwidth_down" => node.down = Some(rate(field)?),
                "host_bandwidth_up" => node.up = Some(rate(field)?),
                _ => {}
            }
        }
        let id = id.ok_or_else(|| Fault::at(entry.place, "a node without `id`"))?;
        match self.nodes.insert(id, node) {
            Some(_) => Err(Fault::at(
                entry.place,
                format!("a second node with id {id}"),
            )),
            None => Ok(()),
        }
    }

    fn add_edge(&mut self, entry: &Entry) -> Result<()> {
        let (mut source, mut target, mut latency) = (None, None, None);
        let mut jitter = Duration::ZERO;
        let mut loss = 0.0;
        for field in list(entry)? {
            match field.key.as_str() {
                "source" => source = Some(self.known(field)?),
                "target" => target = Some(self.known(field)?),
                "latency" => latency = Some(time(field)?),
                "jitter" => jitter = time(field)?,
                "packet_loss" => loss = share(field)?,
                _ => {}
            }
        }
        let missing = |key: &str| Fault::at(entry.place, format!("an edge without `{key}`"));
        let source = source.ok_or_else(|| missing("source"))?;
        let target = target.ok_or_else(|| missing("target"))?;
        let latency = latency.ok_or_else(|| missing("latency"))?;
        if latency.is_zero() {
            return Err(Fault::at(entry.place, "latency: it must be more than 0"));
        }
        let way = Way {
            latency,
            jitter,
            loss,
        };
        self.join(source, target, way);
        if !self.directed && source != target {
            self.join(target, source, way);
        }
        Ok(())
    }

    fn join(&mut self, from: i64, to: i64, way: Way) {
        if let Some(other) = self.edges.get(&(from, to)) {
            self.several.insert((from, to));
            if way.rank() >= other.rank() {
                return;
            }
        }
        self.edges.insert((from, to), way);
    }

    fn known(&self, field: &Entry) -> Result<i64> {
        let id = int(field)?;
        match self.nodes.contains_key(&id) {
            true => Ok(id),
            false => Err(Fault::at(
                field.place,
                format!("{}: no node has the id {id}", field.key),
            )),
        }
    }

    /// From each of `from` to each other and to itself; an error names two places without a way.
    pub fn ways(
        &self,
        used: &[i64],
        shortest: bool,
    ) -> std::result::Result<BTreeMap<(i64, i64), Way>, String> {
        let mut ways = BTreeMap::new();
        for &from in used {
            let all = match shortest {
                true => self.shortest(from),
                false => BTreeMap::new(),
            };
            for &to in used {
                let way = match shortest && from != to {
                    true => all.get(&to),
                    false if self.several.contains(&(from, to)) => {
                        return Err(format!(
                            "node {from} has several edges to {}, and only one can count",
                            match from == to {
                                true => "itself".to_owned(),
                                false => format!("node {to} without use_shortest_path"),
                            }
                        ));
                    }
                    false => self.edges.get(&(from, to)),
                };
                let way = way.ok_or_else(|| match from == to {
                    true => format!(
                        "node {from} has no edge to itself, which hosts at the same node need"
                    ),
                    false => format!("no way leads from node {from} to node {to}"),
                })?;
                ways.insert((from, to), *way);
            }
        }
        Ok(ways)
    }

    /// Dijkstra's algorithm, by latency; of equal ways the one with less loss, then with fewer edges, then the lower ids.
    fn shortest(&self, from: i64) -> BTreeMap<i64, Way> {
        let mut next: BTreeMap<i64, Vec<(i64, Way)>> = BTreeMap::new();
        for (&(a, b), &way) in &self.edges {
            next.entry(a).or_default().push((b, way));
        }
        let start = Way {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
        };
        let mut best = BTreeMap::from([(from, (start.rank(), 0))]);
        let mut ways = BTreeMap::from([(from, start)]);
        let mut heap = BinaryHeap::from([Reverse((start.rank(), 0, from))]);
        while let Some(Reverse((rank, hops, at))) = heap.pop() {
            if best.get(&at) != Some(&(rank, hops)) {
                continue;
            }
            let here = ways[&at];
            for (to, edge) in next.get(&at).into_iter().flatten() {
                let way = Way {
                    latency: here.latency + edge.latency,
                    jitter: here.jitter + edge.jitter,
                    loss: here.loss + edge.loss - here.loss * edge.loss,
                };
                let reached = (way.rank(), hops + 1);
                if best.get(to).is_some_and(|known| *known <= reached) {
                    continue;
                }
                best.insert(*to, reached);
                ways.insert(*to, way);
                heap.push(Reverse((reached.0, reached.1, *to)));
            }
        }
        ways
    }
}

fn list(entry: &Entry) -> Result<&[Entry]> {
    match &entry.value {
        Value::List(list) => Ok(list),
        _ => Err(Fault::at(
            entry.place,
            format!("{}: brackets are needed", entry.key),
        )),
    }
}

fn int(entry: &Entry) -> Result<i64> {
    match &entry.value {
        Value::Int(int) => Ok(*int),
        _ => Err(Fault::at(
            entry.place,
            format!("{}: a whole number is needed", entry.key),
        )),
    }
}

fn text(entry: &Entry) -> Result<String> {
    match &entry.value {
        Value::Text(text) => Ok(text.clone()),
        Value::Int(int) => Ok(int.to_string()),
        Value::Float(float) => Ok(float.to_string()),
        Value::List(_) => Err(Fault::at(
            entry.place,
            format!("{}: text is needed", entry.key),
        )),
    }
}

fn rate(entry: &Entry) -> Result<Rate> {
    units::rate(&text(entry)?).ok_or_else(|| {
        Fault::at(
            entry.place,
            format!("{}: a rate such as \"100 Mbit\" is needed", entry.key),
        )
    })
}

fn time(entry: &Entry) -> Result<Duration> {
    units::time(&text(entry)?, Bare::Seconds).ok_or_else(|| {
        Fault::at(
            entry.place,
            format!("{}: a time such as \"10 ms\" is needed", entry.key),
        )
    })
}

fn share(entry: &Entry) -> Result<f64> {
    units::share(&text(entry)?).ok_or_else(|| {
        Fault::at(
            entry.place,
            format!("{}: a number from 0 to 1 is needed", entry.key),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triangle(directed: u8) -> Graph {
        let text = format!(
            r#"graph [ directed {directed}
            node [ id 0 host_bandwidth_up "1 Mbit" ] node [ id 1 ] node [ id 2 ]
            edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ]
            edge [ source 0 target 1 latency "10 ms" packet_loss 0.1 ]
            edge [ source 1 target 2 latency "10 ms" packet_loss 0.5 ]
            edge [ source 0 target 2 latency "50 ms" packet_loss 0.0 ] ]"#
        );
        Graph::parse(&text).unwrap()
    }

    #[test]
    fn the_shortest_way_adds_up() {
        let ways = triangle(0).ways(&[0, 2], true);
        assert!(ways.unwrap_err().contains("node 2 has no edge to itself"));
        let graph = triangle(0);
        let ways = graph.shortest(0);
        assert_eq!(ways[&2].latency, Duration::from_millis(20));
        assert!((ways[&2].loss - 0.55).abs() < 1e-12);
        assert_eq!(graph.nodes[&0].up, Some(Rate(1_000_000)));
    }

    #[test]
    fn directed_graphs_lead_one_way() {
        let graph = triangle(1);
        assert!(graph.shortest(2).len() == 1);
        assert!(graph.ways(&[0], true).is_ok());
    }

    #[test]
    fn without_shortest_path_edges_count() {
        let graph = triangle(0);
        let words = graph.ways(&[0, 1], false).unwrap_err();
        assert!(words.contains("node 1"), "{words}");
        let ways = graph.ways(&[0], false).unwrap();
        assert_eq!(ways[&(0, 0)].latency, Duration::from_millis(1));
    }

    #[test]
    fn of_several_edges_the_best_counts() {
        let text = |directed: u8| {
            format!(
                r#"graph [ directed {directed} node [ id 0 ] node [ id 1 ]
                edge [ source 0 target 0 latency "1 ms" ]
                edge [ source 1 target 1 latency "1 ms" ] edge [ source 1 target 1 latency "2 ms" ]
                edge [ source 0 target 1 latency "20 ms" packet_loss 0.0 ]
                edge [ source 1 target 0 latency "10 ms" packet_loss 0.5 ]
                edge [ source 0 target 1 latency "10 ms" packet_loss 0.1 ] ]"#
            )
        };
        let graph = Graph::parse(&text(0)).unwrap();
        assert_eq!(graph.shortest(1)[&0].loss, 0.1);
        assert_eq!(graph.shortest(0)[&1].latency, Duration::from_millis(10));
        let words = graph.ways(&[0, 1], true).unwrap_err();
        assert!(words.contains("several edges to itself"), "{words}");
        let words = graph.ways(&[0, 1], false).unwrap_err();
        assert!(words.contains("several edges to node 1"), "{words}");
        let graph = Graph::parse(&text(1)).unwrap();
        assert_eq!(graph.shortest(1)[&0].loss, 0.5);
    }

    #[test]
    fn of_equal_ways_the_one_with_less_loss_counts() {
        let text = r#"graph [ node [ id 0 ] node [ id 1 ] node [ id 2 ]
            edge [ source 0 target 2 latency "20 ms" packet_loss 0.2 ]
            edge [ source 0 target 1 latency "10 ms" ] edge [ source 1 target 2 latency "10 ms" ] ]"#;
        assert_eq!(Graph::parse(text).unwrap().shortest(0)[&2].loss, 0.0);
    }

    #[test]
    fn the_switch() {
        let graph = Graph::parse(ONE_GBIT_SWITCH).unwrap();
        let ways = graph.ways(&[0], true).unwrap();
        assert_eq!(ways[&(0, 0)].latency, Duration::from_millis(1));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("graph [ ]", "no node"),
            ("graph [ node [ ] ]", "without `id`"),
            (
                "graph [ node [ id 0 ] edge [ source 0 target 1 latency \"1 ms\" ] ]",
                "no node has the id 1",
            ),
            (
                "graph [ node [ id 0 ] edge [ source 0 target 0 latency \"0 ms\" ] ]",
                "more than 0",
            ),
            (
                "graph [ node [ id 0 ] edge [ source 0 target 0 latency \"x\" ] ]",
                "a time such as",
            ),
            ("graph [ node [ id 0 ] node [ id 0 ] ]", "second node"),
        ] {
            let fault = Graph::parse(text).unwrap_err();
            assert!(fault.words.contains(words), "{text}: {}", fault.words);
        }
    }
}
