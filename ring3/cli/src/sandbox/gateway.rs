// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the gateway node of a sandbox
//!
//! ```text
//! program's node ── link ── gateway's node ── the ports that were asked for
//! └─ keeper, confined ─┘    └─ keeper, confined, in a domain of its own ─┘
//! ```
//!
//! A program may have rewritten its node's kernel, so no rule in there binds it. The rules that do are in the gateway's kernel,
//! which the program only sends packets to. The gateway's keeper is confined as the program's is, for packets may be hostile too.
//! No program of the sandbox's is on its node: only nft is, once, before anything is forwarded (rules.rs).
//!
//! ```text
//! gateway's keeper -> warden    as any keeper (mod.rs); then one byte: the rules hold
//! ```
//!
//! The sandbox starts after that byte. If the gateway ends, the sandbox's link loses its carrier.

use std::fs::File;
use std::io::{Read, Seek};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use nix::sys::memfd::{memfd_create, MFdFlags};
use ring3_config::{name, NodeConfig, PortKind, PortSpec};
use ring3_node::outside::{Outside, Trust};
use ring3_node::Folder;
use ring3_sandbox::behalf::Reach;

use super::apart::Writable;
use super::begun::{Begun, Heard};
use super::keeper::{self, Work};
use super::limits::Limits;
use super::room::{DiskReport, DiskWatch};
use super::{files, rules};
use crate::args::SandboxArgs;
use crate::error::{Failure, Result};
use crate::node_args::make_port_absolute;
use crate::program::Program;
use crate::signals::Watch;
use crate::up::Caller;

/// A large list of addresses has a few MiB.
const POLICY_MAX: u64 = 64 << 20;
/// Tables of connection tracking and packets on their way.
const MEM: u64 = 256 << 20;
/// What the interface towards the sandbox is called, and the sandbox's own.
const INSIDE: &str = "sandbox0";
const ETH: &str = "eth0";
/// Networks between a gateway and its sandbox: the first that no port of the gateway is in.
const NETS_V4: [&str; 3] = ["10.0.3.1/30", "10.254.3.1/30", "172.31.254.1/30"];
const NETS_V6: [&str; 2] = ["fd00:3::1/64", "fd00:4::1/64"];
/// A gateway has no programs whose end takes time.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// What a gateway will be.
#[derive(Debug)]
pub struct Plan {
    config: NodeConfig,
    load: Program,
    /// What its program reads.
    policy: File,
    /// Its flows, which the warden reads for `ring3 log`.
    flows: File,
}

/// A gateway that serves. Dropping it ends it.
pub struct Gateway {
    begun: Begun,
    outside: Option<Outside>,
}

/// If `args` ask for one: takes the ports from `node`, which gets the link with the gateway instead.
pub fn plan(
    args: &SandboxArgs,
    writable: &Writable,
    node: &mut NodeConfig,
) -> Result<Option<Plan>> {
    if args.policy.is_none() && args.record.is_none() {
        return Ok(None);
    }
    if node.ports.is_empty() {
        return Err(Failure::GatewayWithoutExit);
    }
    let mut config = NodeConfig::new(format!("{}.gw", node.name));
    name::node(&config.name)?;
    config.mem = MEM;
    config.image.clone_from(&node.image);
    config.grace = Duration::ZERO;
    config.routes = std::mem::take(&mut node.routes);
    let exits = std::mem::take(&mut node.ports);
    let nets = [free(&NETS_V4, &exits), free(&NETS_V6, &exits)];
    let link = PortKind::Link {
        name: config.name.clone(),
    };
    let (inside, eth) = ends(link, &nets);
    if node.dns.is_empty() {
        node.dns = name_servers(&exits);
    }
    node.ports.push(eth);
    config.ports.push(inside);
    config.ports.extend(exits);
    finish(config, 1, args, writable).map(Some)
}

/// A gateway's links to sandboxes that others start.
pub fn served(specs: &[String]) -> Result<Vec<PortSpec>> {
    let parse = |(n, spec): (usize, &String)| {
        let mut port: PortSpec = spec.parse()?;
        if port.addrs.is_empty() || !matches!(port.kind, PortKind::Link { .. }) {
            return Err(Failure::ServeWhat { spec: spec.clone() });
        }
        make_port_absolute(&mut port)?;
        port.ifname = Some(format!("sandbox{n}"));
        Ok(port)
    };
    specs.iter().enumerate().map(parse).collect()
}

/// The gateway with these; node `config` has its other ports.
pub fn plan_for(args: &SandboxArgs, serve: &[PortSpec], mut config: NodeConfig) -> Result<Plan> {
    if config.ports.is_empty() {
        return Err(Failure::GatewayWithoutExit);
    }
    config.ports.splice(0..0, serve.iter().cloned());
    finish(config, serve.len(), args, &Writable::find(&args.rw)?)
}

/// The first `count` ports lead to sandboxes.
fn finish(
    mut config: NodeConfig,
    count: usize,
    args: &SandboxArgs,
    writable: &Writable,
) -> Result<Plan> {
    let published = |port: &PortSpec| !port.tcp.is_empty() || !port.udp.is_empty();
    if config.ports.iter().any(published) {
        return Err(Failure::GatewayPublishes);
    }
    writable.keep_apart(&mut config)?;
    let policy = match &args.policy {
        Some(path) => rules_of(writable, path)?,
        None => in_memory(c"ring3-policy")?,
    };
    let flows = match &args.record {
        Some(folder) => record(writable, folder, &mut config, count)?,
        None => in_memory(c"ring3-flows")?,
    };
    let mut sandboxes = Vec::new();
    for port in &config.ports[..count] {
        let name = port.ifname.clone().unwrap_or_default();
        // A router asks nobody else for routes, and the one who could answer is not trusted.
        for key in ["accept_ra", "accept_redirects"] {
            let key = format!("net.ipv6.conf.{name}.{key}");
            config.sysctls.push((key, "0".into()));
        }
        sandboxes.push((name, port.addrs.clone()));
    }
    config.check()?;
    let load = load(args.policy.as_deref(), &rules::around(&sandboxes))?;
    Ok(Plan {
        config,
        load,
        policy,
        flows,
    })
}

/// The first network that no port has an address in.
fn free(nets: &[&str], ports: &[PortSpec]) -> Option<IpNet> {
    let mut nets = nets.iter().filter_map(|net| net.parse::<IpNet>().ok());
    let taken = |net: &IpNet| {
        let mut addrs = ports.iter().flat_map(|port| &port.addrs);
        addrs.any(|addr| addr.contains(&net.addr()) || net.contains(&addr.addr()))
    };
    nets.find(|net| !taken(net))
}

/// The gateway's end of the link and the sandbox's, whose address is the next.
fn ends(link: PortKind, nets: &[Option<IpNet>]) -> (PortSpec, PortSpec) {
    let (mut inside, mut eth) = (PortSpec::new(link.clone()), PortSpec::new(link));
    inside.ifname = Some(INSIDE.into());
    eth.ifname = Some(ETH.into());
    for net in nets.iter().flatten() {
        let theirs = match net {
            IpNet::V4(net) => net.hosts().nth(1).map(IpAddr::V4),
            IpNet::V6(net) => net.hosts().nth(2).map(IpAddr::V6),
        };
        let theirs = theirs.and_then(|ip| IpNet::new(ip, net.prefix_len()).ok());
        eth.addrs.extend(theirs);
        eth.gw.push(net.addr());
        inside.addrs.push(*net);
    }
    (inside, eth)
}

/// Who answers for the host's resolver, as seen from behind the gateway.
fn name_servers(exits: &[PortSpec]) -> Vec<IpAddr> {
    let host = exits.iter().find(|port| port.kind == PortKind::Host);
    let mut servers = host.map(ring3_node::gateways).unwrap_or_default();
    servers.truncate(1);
    servers
}

/// The files of `--record`; the one for flows is open.
fn record(
    writable: &Writable,
    folder: &Path,
    config: &mut NodeConfig,
    count: usize,
) -> Result<File> {
    let folder = writable.folder(folder)?;
    for (n, port) in config.ports.iter_mut().enumerate() {
        // The first of a kind has no number.
        let (kind, n) = match n.checked_sub(count) {
            Some(n) => ("exit", n),
            None => ("sandbox", n),
        };
        let name = match n {
            0 => format!("{kind}.pcap"),
            n => format!("{kind}{n}.pcap"),
        };
        if port.pcap.is_none() {
            port.pcap = Some(folder.append(&name)?.1);
        }
    }
    folder.append("flows.jsonl").map(|it| it.0)
}

/// The rules as they are now: a file that nobody can change, which nft reads from its beginning.
fn rules_of(writable: &Writable, path: &Path) -> Result<File> {
    let fail = |why: std::io::Error| Failure::host(format!("read {}", path.display()))(why);
    let file = writable.read(path)?;
    let max = POLICY_MAX;
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() || meta.len() > max {
        let path = path.to_owned();
        return Err(Failure::NoPolicy { path, max });
    }
    let mut rules = in_memory(c"ring3-policy")?;
    std::io::copy(&mut file.take(max), &mut rules).map_err(fail)?;
    rules.rewind().map_err(fail)?;
    Ok(rules)
}

fn in_memory(name: &std::ffi::CStr) -> Result<File> {
    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC);
    let file = file.map_err(|why| Failure::host("make a file in memory")(why.into()))?;
    Ok(file.into())
}

/// The one program of a gateway, which reads the policy, if there is one.
fn load(policy: Option<&Path>, around: &str) -> Result<Program> {
    let policy = policy.map(|path| path.as_os_str().to_owned());
    let words = ["/bin/sh", "-c", rules::LOAD, "ring3-gateway"];
    let mut command: Vec<std::ffi::OsString> = words.map(Into::into).to_vec();
    command.push(policy.unwrap_or_default());
    command.push(around.into());
    Program::find(&command)
}

impl Plan {
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Starts its processes. While this one has one thread.
    pub fn start(&self, disks: Option<(DiskWatch, DiskReport)>) -> Result<Begun> {
        let mut view = files::system(&[&self.load]);
        let captures = self
            .config
            .ports
            .iter()
            .filter_map(|port| port.pcap.clone());
        view.write.extend(captures);
        let bounds = ((view, None), Limits::default());
        let files = [self.flows.as_fd(), self.policy.as_fd()];
        Begun::start(&files, disks, |warden| {
            let work = Work::Gateway(&self.load, &self.policy, &self.flows);
            keeper::run(self.config.clone(), work, bounds, warden)
        })
    }

    /// Opens its ports; returns once its rules hold. `Err(GivenUp)`: a signal came, or it has said why it does not.
    pub fn serve(
        &self,
        mut begun: Begun,
        folder: &Folder,
        watch: &Watch,
        caller: Option<&Caller>,
    ) -> Result<Gateway> {
        let mut outside = Outside::claim(&self.config, folder, Trust::Gateway)?;
        outside.open(&self.config, folder)?;
        if begun.hear(&outside, Reach::default())? == Heard::Nothing {
            return Err(ring3_node::Error::GivenUp.into());
        }
        if !begun.wait_ready(watch, caller)? {
            return Err(ring3_node::Error::GivenUp.into());
        }
        let flows = self.flows.try_clone();
        let flows = flows.map_err(Failure::host("copy a descriptor"))?;
        outside.listen(
            &self.config,
            folder,
            begun.first(),
            Some(flows),
            begun.copy_talk()?,
            begun.asks()?,
        )?;
        Ok(Gateway {
            begun,
            outside: Some(outside),
        })
    }
}

impl Gateway {
    /// Until it is taken down: the status.
    pub fn stay(mut self, watch: &Watch) -> Result<u8> {
        let begun = std::cell::RefCell::new(&mut self.begun);
        watch.wait_until(
            || begun.borrow_mut().ended(),
            |_| begun.borrow().ask(nix::sys::signal::Signal::SIGTERM),
        )
    }

    /// Whether its processes have ended.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.begun.ended(), Ok(None))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // In good order, so that what was captured is written.
        self.begun.ask(nix::sys::signal::Signal::SIGTERM);
        self.begun.wait_for_end(END_PATIENCE);
        drop(self.outside.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_s_network_is_nobody_else_s() {
        let exit = |spec: &str| spec.parse::<PortSpec>().unwrap();
        let net = |exits: &[PortSpec]| free(&NETS_V4, exits).map(|net| net.to_string());
        assert_eq!(net(&[exit("host")]).unwrap(), "10.0.3.1/30");
        let taken = exit("link:x,addr=10.0.0.1/8");
        assert_eq!(net(&[taken]).unwrap(), "172.31.254.1/30");
        let nets = ["10.0.3.1/30", "fd00:3::1/64"].map(|net| net.parse().ok());
        let link = PortKind::Link { name: "x".into() };
        let (inside, eth) = ends(link, &nets);
        assert_eq!(inside.addrs, nets.map(Option::unwrap));
        let theirs = eth.addrs.iter().map(ToString::to_string);
        assert_eq!(theirs.collect::<Vec<_>>(), ["10.0.3.2/30", "fd00:3::2/64"]);
    }
}
