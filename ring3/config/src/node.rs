// SPDX-License-Identifier: GPL-2.0
//! A whole node, and the checks that need the whole.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::ConfigError;
use crate::layout::Step;
use crate::names::{Route, WaitFor};
use crate::port::PortSpec;
use crate::sandbox::Sandbox;
use crate::{name, size, sysctl};

/// Memory of a node that does not say: packet memory and sockets of a busy server.
pub const MEM_DEFAULT: u64 = 1 << 30;
/// The image with everything built in takes 16 MiB; below this it does not boot well.
pub const MEM_MIN: u64 = 32 << 20;
/// RING3_REGION_MAX of include/ring3.abi.
pub const MEM_MAX: u64 = 2 << 30;
/// A node's memory is a multiple of this: huge pages stay possible.
pub const MEM_GRAIN: u64 = 2 << 20;

/// How long a thread polls before it sleeps: about what a futex wake-up costs.
pub const SPIN_DEFAULT_NS: u32 = 50_000;
/// A spin of over a second is a mistake in units.
pub const SPIN_MAX_NS: u32 = 1_000_000_000;

/// Enough for a database to write what it has; a tenth of it is what most programs need.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(5);
/// Who wants to wait for longer than an hour wants something else.
const GRACE_MAX: Duration = Duration::from_secs(3600);

/// RING3_VCPUS_MAX of include/ring3.abi.
pub const CPUS_MAX: u32 = 3;

/// RING3_PORTS_MAX of include/ring3.abi.
pub const PORTS_MAX: usize = 16;
/// cmdline[512] of include/ring3.abi, less the NUL and room for what ring3 adds.
const CMDLINE_MAX: usize = 383;

/// Whether what ends is started again: the node if it fails, its programs if they end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Restart {
    #[default]
    No,
    /// A program that exits with 0 has done what it was for.
    OnFailure,
    Always,
}

impl FromStr for Restart {
    type Err = ConfigError;

    fn from_str(word: &str) -> Result<Restart, ConfigError> {
        match word {
            "no" => Ok(Restart::No),
            "on-failure" => Ok(Restart::OnFailure),
            "always" => Ok(Restart::Always),
            _ => Err(ConfigError::Restart {
                got: word.to_owned(),
            }),
        }
    }
}

/// A grace in seconds: `10`, `0.5`.
pub fn grace(text: &str) -> Result<Duration, ConfigError> {
    let seconds = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|grace| *grace <= GRACE_MAX)
        .ok_or_else(|| ConfigError::Grace {
            got: text.to_owned(),
            max: GRACE_MAX.as_secs(),
        })
}

/// How long a node that is a switch stays up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Until it is taken down.
    Stays,
    /// Until the last node has left it.
    WhileUsed,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    pub name: String,
    /// It joins its ports, and has no programs.
    pub switch: Option<Switch>,
    /// Bytes of the region.
    pub mem: u64,
    pub ports: Vec<PortSpec>,
    /// In the order in which they are to be written.
    pub sysctls: Vec<(String, String)>,
    /// Added once all ports are up.
    pub routes: Vec<Route>,
    /// Lines of the node's own /etc/hosts. None: it has none, and the host's is seen.
    pub hosts: Vec<(String, IpAddr)>,
    /// Name servers of the node's own /etc/resolv.conf. None: as above.
    pub dns: Vec<IpAddr>,
    /// Who starts the node waits for these sockets of its programs.
    pub waits: Vec<WaitFor>,
    /// Cap of idle polling; 0: never poll.
    pub spin_ns: u32,
    /// vCPUs. More than one need the smp image.
    pub cpus: u32,
    /// The instruction `cpuid` of programs always goes to the processor, slow as that may be.
    pub host_cpuid: bool,
    /// What all that is random depends on, if the image is `sim`.
    pub seed: u64,
    /// Added to the kernel's command line.
    pub cmdline: String,
    /// It is made for one program, and ends with that.
    pub for_one: bool,
    /// What programs have between SIGTERM and SIGKILL when the node ends.
    pub grace: Duration,
    /// A network of hosts, laid out once all else is there.
    pub layout: Vec<Step>,
    /// What `ring3 up` starts on the node: each a program and its arguments.
    pub programs: Vec<Vec<OsString>>,
    pub restart: Restart,
    /// Another kernel image than the one beside the command.
    pub image: Option<PathBuf>,
    /// Its programs are trusted by nobody, and may do this.
    pub sandbox: Option<Sandbox>,
}

impl NodeConfig {
    /// A node without ports.
    pub fn new(name: impl Into<String>) -> Self {
        NodeConfig {
            name: name.into(),
            switch: None,
            mem: MEM_DEFAULT,
            ports: Vec::new(),
            sysctls: Vec::new(),
            routes: Vec::new(),
            hosts: Vec::new(),
            dns: Vec::new(),
            waits: Vec::new(),
            spin_ns: SPIN_DEFAULT_NS,
            cpus: 1,
            host_cpuid: false,
            seed: 1,
            cmdline: String::new(),
            for_one: false,
            grace: GRACE_DEFAULT,
            layout: Vec::new(),
            programs: Vec::new(),
            restart: Restart::No,
            image: None,
            sandbox: None,
        }
    }

    /// Everything that no single part can see. Called once the node is complete.
    pub fn check(&self) -> Result<(), ConfigError> {
        name::node(&self.name)?;
        check_mem(self.mem)?;
        check_cmdline(&self.cmdline)?;
        self.sandbox.as_ref().map_or(Ok(()), Sandbox::check)?;
        if self.spin_ns > SPIN_MAX_NS {
            return Err(ConfigError::Spin {
                got: self.spin_ns,
                max: SPIN_MAX_NS,
            });
        }
        if self.programs.iter().any(Vec::is_empty) {
            return Err(ConfigError::NoProgram);
        }
        if !(1..=CPUS_MAX).contains(&self.cpus) {
            return Err(ConfigError::Cpus {
                got: self.cpus,
                max: CPUS_MAX,
            });
        }
        for (key, value) in &self.sysctls {
            sysctl::pair(key, value)?;
        }
        check_ports(&self.ports)
    }
}

fn check_mem(mem: u64) -> Result<(), ConfigError> {
    if (MEM_MIN..=MEM_MAX).contains(&mem) && mem.is_multiple_of(MEM_GRAIN) {
        return Ok(());
    }
    Err(ConfigError::Memory {
        got: size::format(mem),
        min: size::format(MEM_MIN),
        max: format!(
            "{} in steps of {}",
            size::format(MEM_MAX),
            size::format(MEM_GRAIN)
        ),
    })
}

fn check_cmdline(cmdline: &str) -> Result<(), ConfigError> {
    let why = if cmdline.len() > CMDLINE_MAX {
        "is too long: at most 383 bytes"
    } else if cmdline.chars().any(char::is_control) {
        "has a control character: take it out"
    } else {
        return Ok(());
    };
    Err(ConfigError::Cmdline { why })
}

fn check_ports(ports: &[PortSpec]) -> Result<(), ConfigError> {
    if ports.len() > PORTS_MAX {
        return Err(ConfigError::TooManyPorts {
            count: ports.len(),
            max: PORTS_MAX,
        });
    }
    for (at, port) in ports.iter().enumerate() {
        for earlier in &ports[..at] {
            if port.kind.name().is_some() && port.kind == earlier.kind {
                return Err(ConfigError::SamePort {
                    kind: port.kind.kind(),
                    name: port.kind.name().unwrap_or_default().to_owned(),
                });
            }
            if let Some(path) = port.pcap.as_ref().filter(|_| port.pcap == earlier.pcap) {
                return Err(ConfigError::SamePcap { path: path.clone() });
            }
            let same =
                |net: &&ipnet::IpNet| earlier.addrs.iter().any(|other| other.addr() == net.addr());
            if let Some(net) = port.addrs.iter().find(same) {
                return Err(ConfigError::SameAddress {
                    address: net.addr().to_string(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ports: &[&str]) -> NodeConfig {
        let mut node = NodeConfig::new("a");
        node.ports = ports.iter().map(|spec| spec.parse().unwrap()).collect();
        node
    }

    #[test]
    fn defaults_are_fine() {
        let node = NodeConfig::new("a");
        assert_eq!(node.check(), Ok(()));
        assert_eq!((node.mem, node.spin_ns), (1 << 30, 50_000));
    }

    #[test]
    fn memory() {
        for (mem, fine) in [
            (MEM_MIN, true),
            (MEM_MAX, true),
            (64 << 20, true),
            (MEM_MIN - MEM_GRAIN, false),
            (MEM_MAX + MEM_GRAIN, false),
            ((64 << 20) + 4096, false),
            (0, false),
        ] {
            let mut node = NodeConfig::new("a");
            node.mem = mem;
            assert_eq!(node.check().is_ok(), fine, "{mem}");
        }
        let mut node = NodeConfig::new("a");
        node.mem = 1 << 20;
        assert_eq!(
            node.check().unwrap_err().to_string(),
            "memory of 1M is out of range: use 32M to 2G in steps of 2M"
        );
    }

    #[test]
    fn ports_against_each_other() {
        assert_eq!(node(&["link:a", "link:b", "tap:a"]).check(), Ok(()));
        for (ports, words) in [
            (&["link:a", "link:a"][..], "two ports are `link:a`"),
            (&["tap:a", "link:a", "tap:a"], "two ports are `tap:a`"),
            (
                &["link:a,addr=10.0.0.1/24", "tap:b,addr=10.0.0.1/16"],
                "two ports have the address 10.0.0.1",
            ),
            (
                &["link:a,pcap=x", "link:b,pcap=y", "link:c,pcap=x"],
                "two ports have pcap=x: give each a file of its own",
            ),
            (&["passt"; 17], "17 ports are too many"),
        ] {
            let error = node(ports).check().unwrap_err().to_string();
            assert!(error.contains(words), "{ports:?}: {error}");
        }
    }

    #[test]
    fn the_rest() {
        let mut node = NodeConfig::new("a");
        node.spin_ns = SPIN_MAX_NS + 1;
        assert!(node.check().is_err());
        let mut node = NodeConfig::new("a");
        node.cmdline = "x".repeat(384);
        assert!(node.check().is_err());
        node.cmdline = "a\nb".into();
        assert!(node.check().is_err());
        node.cmdline = "loglevel=7".into();
        assert_eq!(node.check(), Ok(()));
        node.sysctls.push(("x".into(), "1".into()));
        assert!(node.check().is_err());
    }
}
