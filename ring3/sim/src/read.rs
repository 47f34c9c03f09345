// SPDX-License-Identifier: GPL-2.0
//! From a scenario's file to a [`Scenario`]: Shadow's keys, and by way of [`crate::ours`] those
//! that it has not.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Fault};
use crate::events;
use crate::old;
use crate::ours;
use crate::places;
use crate::process;
use crate::scenario::{Action, Event, General, Host, Preemption, Scenario, PREEMPTION_LEAST};
use crate::trace;
use crate::units::{bytes_of, rate_of, time_of};
use crate::yaml::{self, Map, Node, Result, Value};

/// As Shadow: a file written for it has scripts beside it that look there.
const SHADOW_DATA: &str = "shadow.data";
const HEARTBEAT: Duration = Duration::from_secs(1);
const CAPTURE_BYTES: u64 = 65535;

pub const TOP: &[&str] = &[
    "general",
    "network",
    "hosts",
    "host_option_defaults",
    "experimental",
    "links",
    "topology",
    "events",
    "sim",
];
pub const GENERAL: &[&str] = &[
    "stop_time",
    "seed",
    "data_directory",
    "template_directory",
    "heartbeat_interval",
    "model_unblocked_syscall_latency",
    "parallelism",
    "log_level",
    "progress",
    "bootstrap_end_time",
];
pub const HOST: &[&str] = &[
    "network_node_id",
    "ip_addr",
    "ip6_addr",
    "bandwidth_down",
    "bandwidth_up",
    "host_options",
    "processes",
    "sysctls",
    "qdisc",
    "files",
    "router",
    "nat",
    "clock",
];
pub const OPTIONS: &[&str] = &["log_level", "pcap_enabled", "pcap_capture_size"];

/// A key of the file, and what the command line says in its place.
pub type Override = (Vec<String>, Value);

/// The file's text; `-` is standard input.
fn text_of(path: &Path) -> std::result::Result<String, Error> {
    match is_stdin(path) {
        true => std::io::read_to_string(std::io::stdin()).map_err(Error::host("read the scenario")),
        false => {
            std::fs::read_to_string(path).map_err(Error::host(format!("read {}", path.display())))
        }
    }
}

pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a scenario; `search` is the path that programs are looked for in.
pub fn scenario(
    path: &Path,
    search: &str,
    overrides: &[Override],
) -> std::result::Result<(Scenario, Node), Error> {
    let text = text_of(path)?;
    let mut tree = yaml::parse(&text).map_err(|fault| fault.in_file(path))?;
    for (key, value) in overrides {
        tree.set(key, value.clone());
    }
    let mut reader = Reader {
        notes: Vec::new(),
        search: search.to_owned(),
        is_old: old::is_old(&tree),
        graph_file: None,
    };
    let made = reader
        .top(&tree)
        .map_err(|fault| match &reader.graph_file {
            Some(file) => fault.in_file(file),
            None => fault.in_file(path),
        })?;
    Ok((made, tree))
}

/// What host options say of captures.
#[derive(Clone, Copy)]
struct Capture {
    is_on: bool,
    bytes: u32,
}

impl Default for Capture {
    fn default() -> Capture {
        Capture {
            is_on: false,
            bytes: CAPTURE_BYTES as u32,
        }
    }
}

pub struct Reader {
    pub notes: Vec<String>,
    search: String,
    /// The file has keys that Shadow 3 has no more: what it leaves out means what it meant to Shadow 2.
    is_old: bool,
    /// The file that is being read, where it is another than the scenario's.
    pub graph_file: Option<PathBuf>,
}

impl Reader {
    fn top(&mut self, tree: &Node) -> Result<Scenario> {
        let mut top = tree.map("")?;
        let mut general = self.general(top.need("general")?)?;
        let defaults = match top
            .take("host_option_defaults")
            .or(top.take("host_defaults"))
        {
            Some(node) => self.options(node, "host_option_defaults", Capture::default())?,
            None => Capture::default(),
        };
        let mut network = match top.take("network") {
            Some(node) => Some(self.network(node)?),
            None => None,
        };
        if let Some(node) = top.take("experimental") {
            general.preemption = self.experimental(node)?;
        }
        let faults = match top.take("sim") {
            Some(node) => ours::settings(node, &mut general)?,
            None => None,
        };
        let hosts = top.take("hosts");
        let topology = top.take("topology");
        if hosts.is_none() && topology.is_none() {
            return Err(Fault::at(tree.place, "the scenario: `hosts` is missing"));
        }
        let mut hosts = match hosts {
            Some(node) => self.hosts(node, &general, defaults)?,
            None => BTreeMap::new(),
        };
        let mut links = match top.take("links") {
            Some(node) => ours::links(node)?,
            None => Vec::new(),
        };
        if let Some(node) = topology {
            ours::topology(node, &mut hosts, &mut links)?;
        }
        ours::check_links(&links, &hosts)?;
        if let Some(node) = faults {
            general.faults = ours::faults(node, &general, &hosts)?;
        }
        let mut events = match top.take("events") {
            Some(node) => events::read(node, &hosts, &links, &general, &self.search)?,
            None => Vec::new(),
        };
        events.extend(hosts.iter().filter_map(|(name, host)| {
            let what = Action::Clock(name.clone(), host.clock?);
            let at = Duration::ZERO;
            Some(Event { at, what })
        }));
        let follow = trace::events(&links, general.stop_time).map_err(|(link, why)| {
            let words = format!("link {}: trace: {why}", links[link].name);
            Fault::at(links[link].places.of("trace"), words)
        })?;
        events.extend(follow);
        events.sort_by_key(|event| event.at);
        // Keys for anchors, as docker-compose has them.
        let rest: Vec<_> = top.rest();
        if let Some((key, place, _)) = rest.iter().find(|(key, _, _)| !key.starts_with("x-")) {
            let words = format!(
                "the scenario: unknown key `{key}`: known are {}",
                TOP.join(", ")
            );
            return Err(Fault::at(*place, words));
        }
        if let (true, Some(network)) = (self.is_old, &network) {
            old::place(&mut hosts, &links, network);
        }
        places::check(&hosts, &links, &mut network)?;
        Ok(Scenario {
            general,
            network,
            hosts,
            links,
            events,
            notes: std::mem::take(&mut self.notes),
        })
    }

    fn general(&mut self, node: &Node) -> Result<General> {
        let mut map = node.map("general")?;
        let stop = map.need("stop_time")?;
        let stop_time = time_of(stop, "general.stop_time")?;
        if stop_time.is_zero() {
            return Err(Fault::at(
                stop.place,
                "general.stop_time: it must be more than 0",
            ));
        }
        let general = General {
            stop_time,
            seed: opt(&mut map, "seed", |n, p| n.int(p))?.unwrap_or(1),
            data_directory: opt(&mut map, "data_directory", |n, p| {
                n.text(p).map(PathBuf::from)
            })?
            .unwrap_or_else(|| SHADOW_DATA.into()),
            template_directory: opt(&mut map, "template_directory", |n, p| n.text(p).map(home))?,
            sample: heartbeat(&mut map)?,
            ipv6: false,
            routes: true,
            bootstrap_end: opt(&mut map, "bootstrap_end_time", time_of)?.unwrap_or_default(),
            schedule: Duration::ZERO,
            preemption: None,
            faults: Default::default(),
        };
        opt(&mut map, "model_unblocked_syscall_latency", |n, p| {
            n.bool(p)
        })?;
        if let Some(n) = opt(&mut map, "parallelism", |n, p| n.int::<u32>(p))? {
            if n > 1 {
                self.note(
                    "general.parallelism: one simulation runs on one core; --seeds runs several",
                );
            }
        }
        for key in ["log_level", "progress"] {
            opt(&mut map, key, |n, p| n.scalar(p))?;
        }
        map.finish(GENERAL)?;
        Ok(general)
    }

    fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    /// Of Shadow's keys, those about threads that compute have an effect here, too.
    fn experimental(&mut self, node: &Node) -> Result<Option<Preemption>> {
        let mut map = node.map("experimental")?;
        let enabled = opt(&mut map, "native_preemption_enabled", |n, p| n.bool(p))?;
        let real = opt(&mut map, "native_preemption_native_interval", |n, p| {
            let time = time_of(n, p)?;
            if time < PREEMPTION_LEAST {
                let least = PREEMPTION_LEAST.as_millis();
                return Err(Fault::at(n.place, format!("{p}: {least} ms at least")));
            }
            Ok(time)
        })?;
        let sleep = opt(&mut map, "native_preemption_sim_interval", time_of)?;
        let usual = Preemption::default();
        let preemption = Preemption {
            after: real.unwrap_or(usual.after),
            sleep: sleep.unwrap_or(usual.sleep),
        };
        let keys: Vec<String> = map.rest().into_iter().map(|(key, _, _)| key).collect();
        if !keys.is_empty() {
            self.note(format!(
                "experimental: ignored, it is about Shadow itself: {}",
                keys.join(", ")
            ));
        }
        let enabled = enabled.unwrap_or(false);
        if enabled {
            self.note("experimental.native_preemption_enabled: where a thread is when it is preempted depends on the machine, so two runs may differ");
        }
        Ok(enabled.then_some(preemption))
    }

    fn options(&mut self, node: &Node, path: &str, before: Capture) -> Result<Capture> {
        let mut map = node.map(path)?;
        opt(&mut map, "log_level", |n, p| n.scalar(p))?;
        let enabled = opt(&mut map, "pcap_enabled", |n, p| n.bool(p))?;
        let size = opt(&mut map, "pcap_capture_size", bytes_of)?;
        // Shadow 2 named a folder.
        let folder = opt(&mut map, "pcap_directory", |n, p| {
            n.text(p).map(str::to_owned)
        })?;
        for key in old::OPTIONS {
            map.take(key);
        }
        map.finish(OPTIONS)?;
        Ok(Capture {
            is_on: enabled.unwrap_or(before.is_on || folder.is_some()),
            bytes: size.map_or(before.bytes, |size| size.min(CAPTURE_BYTES) as u32),
        })
    }

    fn hosts(
        &mut self,
        node: &Node,
        general: &General,
        defaults: Capture,
    ) -> Result<BTreeMap<String, Host>> {
        let mut hosts = BTreeMap::new();
        for (name, place, node) in node.map("hosts")?.rest() {
            let (mut host, quantity) = self.host(&name, node, general, defaults)?;
            host.place = place;
            for name in old::names(&name, quantity) {
                places::check_name(&name)
                    .map_err(|why| Fault::at(place, format!("hosts: {why}")))?;
                if hosts.insert(name.clone(), host.clone()).is_some() {
                    let words = format!("hosts: `{name}` is there twice");
                    return Err(Fault::at(place, words));
                }
            }
        }
        match hosts.is_empty() {
            true => Err(Fault::at(node.place, "hosts: at least one is needed")),
            false => Ok(hosts),
        }
    }

    fn host(
        &mut self,
        name: &str,
        node: &Node,
        general: &General,
        defaults: Capture,
    ) -> Result<(Host, u32)> {
        let path = format!("hosts.{name}");
        let mut map = node.map(&path)?;
        let places = map.places();
        let options = map.take("host_options").or(map.take("options"));
        let pcap = match options {
            Some(node) => self.options(node, &format!("{path}.host_options"), defaults)?,
            None => defaults,
        };
        let mut host = Host {
            node: opt(&mut map, "network_node_id", |n, p| n.int(p))?,
            address: opt(&mut map, "ip_addr", address::<std::net::Ipv4Addr>)?,
            address6: opt(&mut map, "ip6_addr", address::<std::net::Ipv6Addr>)?,
            down: opt(&mut map, "bandwidth_down", rate_of)?,
            up: opt(&mut map, "bandwidth_up", rate_of)?,
            pcap: pcap.is_on.then_some(pcap.bytes),
            places,
            ..Host::default()
        };
        ours::host(&mut map, &mut host)?;
        if let Some(list) = map.take("processes") {
            for (i, node) in list.list(&format!("{path}.processes"))?.iter().enumerate() {
                let at = format!("{path}.processes[{i}]");
                let (process, quantity) =
                    process::read(node, &at, general, &self.search, self.is_old)?;
                for _ in 0..quantity {
                    host.processes.push(process.clone());
                }
            }
        }
        let quantity = opt(&mut map, "quantity", old::quantity)?.unwrap_or(1);
        if quantity > 1 && (host.address.is_some() || host.address6.is_some()) {
            let words = format!("{path}.quantity: {quantity} hosts can't have one address");
            return Err(Fault::at(host.places.of("quantity"), words));
        }
        map.finish(HOST)?;
        Ok((host, quantity))
    }
}

/// How often samples are taken; `null` is never.
fn heartbeat(map: &mut Map) -> Result<Duration> {
    match map.take_even_null("heartbeat_interval") {
        None => Ok(HEARTBEAT),
        Some(node) if node.is_null() => Ok(Duration::ZERO),
        Some(node) => time_of(node, "general.heartbeat_interval"),
    }
}

/// `~/` is the user's home folder; nothing else is expanded.
pub fn home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Takes a key and reads it, if it is there.
pub fn opt<T>(
    map: &mut Map,
    key: &str,
    read: impl FnOnce(&Node, &str) -> Result<T>,
) -> Result<Option<T>> {
    let path = map.at(key);
    map.take(key).map(|node| read(node, &path)).transpose()
}

fn address<T: std::str::FromStr + Into<IpAddr>>(node: &Node, path: &str) -> Result<IpAddr> {
    let text = node.text(path)?;
    let address: IpAddr = text
        .parse::<T>()
        .map_err(|_| {
            Fault::at(
                node.place,
                format!("{path}: `{text}` is not such an address"),
            )
        })?
        .into();
    let is_bad = match address {
        IpAddr::V4(ip) => {
            ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || ip.is_broadcast()
        }
        IpAddr::V6(ip) => ip.is_unspecified() || ip.is_loopback() || ip.is_multicast(),
    };
    match is_bad {
        true => Err(Fault::at(
            node.place,
            format!("{path}: {address} can't be a host's address"),
        )),
        false => Ok(address),
    }
}
