// SPDX-License-Identifier: GPL-2.0
//! From what was typed to a node.

use std::path::{Path, PathBuf};

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
    if args.net && node.ports.is_empty() {
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
    /// A node that stays leaves this folder.
    pub fn make_absolute(&mut self) -> Result<()> {
        let paths = self.ro.iter_mut().chain(&mut self.rw);
        for path in paths.chain(&mut self.policy).chain(&mut self.record) {
            *path = std::path::absolute(&*path)
                .map_err(Failure::host(format!("find {}", path.display())))?;
        }
        Ok(())
    }
}

/// What a file of nodes says.
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
    let absolute = |path: &mut PathBuf| {
        *path = std::path::absolute(&*path)
            .map_err(Failure::host(format!("find {}", path.display())))?;
        Ok::<_, Failure>(())
    };
    let flavour = |image: &&mut PathBuf| !matches!(image.to_str(), Some("up" | "smp" | "sim"));
    node.image
        .as_mut()
        .filter(flavour)
        .map(absolute)
        .transpose()?;
    for port in &mut node.ports {
        port.pcap.as_mut().map(absolute).transpose()?;
    }
    Ok(())
}
