// SPDX-License-Identifier: GPL-2.0
//! Topologies by name: what links and routers `star`, `dumbbell`, `line` and `fat_tree` stand for.

use std::collections::BTreeMap;

use crate::error::{Fault, Place, Places};
use crate::ours::{default_wires, names, plain_link, wires_of};
use crate::read::opt;
use crate::scenario::{Host, Link, Wire};
use crate::yaml::{Map, Node, Result, Value};

/// More ports of a switch than any that is sold; 48 make 27,648 hosts.
const PORTS: i64 = 48;

struct Making<'a> {
    place: Place,
    hosts: &'a mut BTreeMap<String, Host>,
    links: &'a mut Vec<Link>,
}

impl Making<'_> {
    fn host(&mut self, name: &str) {
        let place = self.place;
        self.hosts.entry(name.to_owned()).or_insert_with(|| Host {
            place,
            places: Places::at(place),
            ..Host::default()
        });
    }

    fn router(&mut self, name: &str) {
        self.host(name);
        if let Some(host) = self.hosts.get_mut(name) {
            host.router = true;
        }
    }

    fn link(&mut self, a: &str, b: &str, wires: &[Wire; 2]) {
        let places = Places::at(self.place);
        self.links.push(plain_link(places, a, b, wires));
    }
}

pub fn read(node: &Node, hosts: &mut BTreeMap<String, Host>, links: &mut Vec<Link>) -> Result<()> {
    let mut map = node.map("topology")?;
    let kind = map.need("type")?;
    let place = node.place;
    let mut making = Making {
        place,
        hosts,
        links,
    };
    match kind.text("topology.type")? {
        "star" => star(map, &mut making),
        "line" => line(map, &mut making),
        "dumbbell" => dumbbell(map, &mut making),
        "fat_tree" => fat_tree(map, &mut making),
        other => {
            let words = format!(
                "topology.type: star, line, dumbbell or fat_tree is needed, this is `{other}`"
            );
            Err(Fault::at(kind.place, words))
        }
    }
}

/// `hosts: 3` (called PREFIX1 and so on) or a list of names.
fn list(map: &mut Map, key: &str, prefix: &str) -> Result<Vec<String>> {
    let path = map.at(key);
    let node = map.need(key)?;
    let list = match node.value {
        Value::Int(_) => {
            let count: u16 = node.int(&path)?;
            (1..=count).map(|i| format!("{prefix}{i}")).collect()
        }
        _ => names(node, &path)?,
    };
    match list.is_empty() {
        true => Err(Fault::at(
            node.place,
            format!("{path}: at least one is needed"),
        )),
        false => Ok(list),
    }
}

fn wires(map: &mut Map, key: &str) -> Result<[Wire; 2]> {
    Ok(opt(map, key, wires_of)?.unwrap_or_else(default_wires))
}

fn star(mut map: Map, making: &mut Making) -> Result<()> {
    let hosts = list(&mut map, "hosts", "h")?;
    let wires = wires(&mut map, "link")?;
    map.finish(&["type", "hosts", "link"])?;
    making.router("hub");
    for host in &hosts {
        making.host(host);
        making.link(host, "hub", &wires);
    }
    Ok(())
}

fn line(mut map: Map, making: &mut Making) -> Result<()> {
    let hosts = list(&mut map, "hosts", "h")?;
    let wires = wires(&mut map, "link")?;
    map.finish(&["type", "hosts", "link"])?;
    for (i, host) in hosts.iter().enumerate() {
        match i == 0 || i + 1 == hosts.len() {
            true => making.host(host),
            false => making.router(host),
        }
    }
    for pair in hosts.windows(2) {
        making.link(&pair[0], &pair[1], &wires);
    }
    Ok(())
}

fn dumbbell(mut map: Map, making: &mut Making) -> Result<()> {
    let left = list(&mut map, "left", "left")?;
    let right = list(&mut map, "right", "right")?;
    let access = wires(&mut map, "access")?;
    let bottleneck = wires(&mut map, "bottleneck")?;
    map.finish(&["type", "left", "right", "access", "bottleneck"])?;
    making.router("r1");
    making.router("r2");
    for host in &left {
        making.host(host);
        making.link(host, "r1", &access);
    }
    making.link("r1", "r2", &bottleneck);
    for host in &right {
        making.host(host);
        making.link("r2", host, &access);
    }
    Ok(())
}

/// Of switches with `ports` each (Al-Fares et al., SIGCOMM 2008): pods of ports/2 edge and ports/2
/// aggregation switches, (ports/2)^2 core switches, ports^3/4 hosts. Switches are routers with equal-cost routes.
fn fat_tree(mut map: Map, making: &mut Making) -> Result<()> {
    let node = map.need("ports")?;
    let ports: i64 = node.int("topology.ports")?;
    if ports % 2 != 0 || !(2..=PORTS).contains(&ports) {
        return Err(Fault::at(
            node.place,
            format!("topology.ports: an even number from 2 to {PORTS} is needed"),
        ));
    }
    let wires = wires(&mut map, "link")?;
    map.finish(&["type", "ports", "link"])?;
    let half = ports / 2;
    for core in 1..=half * half {
        making.router(&format!("core{core}"));
    }
    let mut host = 0;
    for pod in 1..=ports {
        for up in 1..=half {
            let aggregation = format!("agg{pod}-{up}");
            making.router(&aggregation);
            for core in 1..=half {
                making.link(
                    &aggregation,
                    &format!("core{}", (up - 1) * half + core),
                    &wires,
                );
            }
        }
        for edge in 1..=half {
            let name = format!("edge{pod}-{edge}");
            making.router(&name);
            for up in 1..=half {
                making.link(&name, &format!("agg{pod}-{up}"), &wires);
            }
            for _ in 0..half {
                host += 1;
                let leaf = format!("h{host}");
                making.host(&leaf);
                making.link(&leaf, &name, &wires);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(text: &str) -> Result<(BTreeMap<String, Host>, Vec<Link>)> {
        let (mut hosts, mut links) = Default::default();
        read(&crate::yaml::parse(text)?, &mut hosts, &mut links)?;
        Ok((hosts, links))
    }

    #[test]
    fn sizes() {
        let (hosts, links) =
            make("{type: dumbbell, left: 2, right: [x], bottleneck: {rate: 1 Mbit}}").unwrap();
        assert_eq!((hosts.len(), links.len()), (5, 4));
        assert!(hosts["r1"].router && !hosts["x"].router);
        let (hosts, links) = make("{type: fat_tree, ports: 4}").unwrap();
        assert_eq!(hosts.len(), 16 + 8 + 8 + 4);
        assert_eq!(links.len(), 16 * 3);
        let (hosts, links) = make("{type: line, hosts: 4}").unwrap();
        assert_eq!((hosts.len(), links.len()), (4, 3));
        assert!(hosts["h2"].router && !hosts["h4"].router);
        assert_eq!(make("{type: star, hosts: [a, b]}").unwrap().0.len(), 3);
    }

    #[test]
    fn mistakes() {
        assert!(make("{type: ring}").unwrap_err().words.contains("fat_tree"));
        assert!(make("{type: fat_tree, ports: 3}")
            .unwrap_err()
            .words
            .contains("even"));
        assert!(make("{type: star}").unwrap_err().words.contains("`hosts`"));
    }
}
