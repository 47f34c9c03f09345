// SPDX-License-Identifier: GPL-2.0
//! From what was typed to a node.

use std::path::{Path, PathBuf};

use ring3_config::sandbox::Sandbox;
use ring3_config::{names, size, sysctl, NodeConfig, PortKind, PortSpec};

use crate::args::{NodeArgs, SandboxArgs};
use crate::error::{Failure, Result};

/// The node that `args` describe. `fallback` names it if neither `name` nor the file does.
pub fn node(args: &NodeArgs, name: Option<&str>, fallback: &str) -> Result<NodeConfig> {
    let mut node = match &args.file {
        Some(path) => from_file(path, name)?,
        None => NodeConfig::new(name.unwrap_or(fallback)),
    };
    for spec in &args.ports {
        node.ports.push(spec.parse()?);
    }
    // Links and switches lead to other nodes only.
    let leads_out =
        |port: &PortSpec| !matches!(port.kind, PortKind::Link { .. } | PortKind::Switch { .. });
    if args.net && !node.ports.iter().any(leads_out) {
        node.ports.push(PortSpec::new(PortKind::Host));
    }
    for pair in &args.sysctls {
        node.sysctls.push(sysctl::parse(pair)?);
    }
    for route in &args.routes {
        node.routes.push(route.parse()?);
    }
    for host in &args.hosts {
        node.hosts.push(names::host(host)?);
    }
    for address in &args.dns {
        node.dns.push(names::dns(address)?);
    }
    if let Some(mem) = &args.mem {
        node.mem = size::parse(mem)?;
    }
    if let Some(spin_ns) = args.spin_ns {
        node.spin_ns = spin_ns;
    }
    if let Some(cpus) = args.cpus {
        node.cpus = cpus;
    }
    if args.host_cpuid {
        node.host_cpuid = true;
    }
    if let Some(seconds) = &args.grace {
        node.grace = ring3_config::grace(seconds)?;
    }
    if let Some(words) = &args.cmdline {
        node.cmdline = format!("{} {words}", node.cmdline).trim().to_owned();
    }
    if let Some(image) = &args.image {
        node.image = Some(image.clone());
    }
    if let Some(seed) = args.seed {
        node.seed = seed;
    }
    node.check()?;
    make_absolute(&mut node)?;
    Ok(node)
}

fn from_file(path: &Path, name: Option<&str>) -> Result<NodeConfig> {
    Ok(NodeConfig::from_toml(path, &text(path)?, name)?)
}

impl SandboxArgs {
    /// These, and what the node's file says: one of both is enough for a sandbox; where both name a limit, it is this one.
    pub fn beside(&self, file: Option<Sandbox>) -> SandboxArgs {
        let mut all = self.clone();
        let Some(file) = file else {
            return all;
        };
        all.sandbox = true;
        all.ro.extend(file.ro);
        all.rw.extend(file.rw);
        all.tmp |= file.tmp;
        all.pids = all.pids.or(file.pids);
        all.proc_mem = all.proc_mem.or(file.proc_mem);
        all.cpu_time = all.cpu_time.or(file.cpu_time);
        all.files = all.files.or(file.files);
        all.file_size = all.file_size.or(file.file_size);
        all.min_free = all.min_free.or(file.min_free);
        all.policy = all.policy.or(file.policy);
        all.record = all.record.or(file.record);
        all
    }

    /// A node that stays leaves this folder.
    pub fn make_absolute(&mut self) -> Result<()> {
        let paths = self.ro.iter_mut().chain(&mut self.rw);
        let mut paths = paths.chain(&mut self.policy).chain(&mut self.record);
        paths.try_for_each(absolute)
    }
}

/// The text of a file of nodes.
pub fn text(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).map_err(|why| Failure::NodeFile {
        path: path.to_owned(),
        why: why.into(),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Failure::NodeFileNoText {
            path: path.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
        }
    })
}

/// A node that stays leaves this folder: what it opens later must not depend on it.
pub fn make_absolute(node: &mut NodeConfig) -> Result<()> {
    let flavour = |image: &&mut PathBuf| !matches!(image.to_str(), Some("up" | "smp" | "sim"));
    node.image
        .as_mut()
        .filter(flavour)
        .map(absolute)
        .transpose()?;
    node.ports.iter_mut().try_for_each(make_port_absolute)
}

/// The same, of a port's files.
pub fn make_port_absolute(port: &mut PortSpec) -> Result<()> {
    if let PortKind::Vhost { socket } = &mut port.kind {
        let mut path = PathBuf::from(&*socket);
        absolute(&mut path)?;
        *socket = path.to_string_lossy().into_owned();
    }
    let mut paths = port.pcap.iter_mut().chain(&mut port.log);
    paths.try_for_each(absolute)
}

fn absolute(path: &mut PathBuf) -> Result<()> {
    *path =
        std::path::absolute(&*path).map_err(Failure::host(format!("find {}", path.display())))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_comes_beside_links_and_once() {
        for (ports, kinds) in [
            (&[][..], &["host"][..]),
            (&["link:ab", "switch:s"], &["link", "switch", "host"]),
            (&["link:ab", "host,deny=*"], &["link", "host"]),
            (&["passt"], &["passt"]),
        ] {
            let args = NodeArgs {
                net: true,
                ports: ports.iter().map(ToString::to_string).collect(),
                ..NodeArgs::default()
            };
            let made = node(&args, Some("a"), "a").unwrap().ports;
            let made: Vec<_> = made.iter().map(|it| it.kind.kind()).collect();
            assert_eq!(made, kinds);
        }
    }

    #[test]
    fn a_port_s_files_do_not_depend_on_the_folder() {
        let mut node = NodeConfig::new("a");
        let spec = "host,allow=192.0.2.1,log=refused.json,pcap=a.pcap";
        node.ports.push(spec.parse().unwrap());
        make_absolute(&mut node).unwrap();
        let here = std::env::current_dir().unwrap();
        assert_eq!(node.ports[0].log, Some(here.join("refused.json")));
        assert_eq!(node.ports[0].pcap, Some(here.join("a.pcap")));
    }
}
