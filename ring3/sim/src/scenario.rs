// SPDX-License-Identifier: GPL-2.0
//! What a scenario says, with its defaults, and nothing of how it is carried out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::error::{Place, Places};
use crate::graph::Graph;
use crate::units::Rate;

#[derive(Debug, Clone)]
pub struct Scenario {
    pub general: General,
    /// Shadow's network: places in a graph. None where all hosts are joined by links.
    pub network: Option<Network>,
    /// In the order of their names.
    pub hosts: BTreeMap<String, Host>,
    pub links: Vec<Link>,
    pub events: Vec<Event>,
    /// What the file says that has no effect here; for people.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct General {
    pub stop_time: Duration,
    pub seed: u64,
    pub data_directory: PathBuf,
    pub template_directory: Option<PathBuf>,
    /// How often connections, queues and links are sampled; zero: never.
    pub sample: Duration,
    /// Whether hosts and links get IPv6 addresses by themselves.
    pub ipv6: bool,
    /// Whether hosts that are joined by links get routes; false: a program on them finds its own.
    pub routes: bool,
    /// Until then hosts have no limit of rate and nothing is lost.
    pub bootstrap_end: Duration,
    /// Some calls cost up to so much more, at random by the seed; zero: none does.
    pub schedule: Duration,
    /// Of threads that compute; None: they compute until they make a call.
    pub preemption: Option<Preemption>,
    pub faults: FaultPlan,
}

/// A thread that computes for so long sleeps, and others run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preemption {
    /// Of real time, as the processor spends it on the thread's process.
    pub after: Duration,
    /// Of virtual time.
    pub sleep: Duration,
}

/// A program's start takes up to some ms, in which nobody may preempt it (gate/process/exec.c).
pub const PREEMPTION_LEAST: Duration = Duration::from_millis(20);

/// As Shadow has them.
impl Default for Preemption {
    fn default() -> Preemption {
        Preemption {
            after: Duration::from_millis(100),
            sleep: Duration::from_millis(10),
        }
    }
}

/// What a search may do to a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultPlan {
    /// Whom faults befall; empty: each host that has programs.
    pub hosts: Vec<String>,
    /// Faults begin not before, and are over by then; None: parts of the stop time.
    pub from: Option<Duration>,
    pub to: Option<Duration>,
    /// So many befall a run at most.
    pub most: u64,
}

impl Default for FaultPlan {
    fn default() -> FaultPlan {
        FaultPlan {
            hosts: Vec::new(),
            from: None,
            to: None,
            most: 5,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Network {
    /// Of its graph.
    pub place: Place,
    pub graph: Graph,
    pub shortest: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Host {
    pub place: Place,
    /// Of its keys.
    pub places: Places,
    pub node: Option<i64>,
    pub address: Option<IpAddr>,
    pub address6: Option<IpAddr>,
    pub down: Option<Rate>,
    pub up: Option<Rate>,
    /// Bytes of each packet to keep in the capture; None: no capture.
    pub pcap: Option<u32>,
    pub sysctls: Vec<(String, String)>,
    /// The queue of its interface to the network: words for `tc`.
    pub qdisc: Option<String>,
    /// Files of its own: path on the host, contents.
    pub files: Vec<(PathBuf, String)>,
    pub router: bool,
    pub nat: Option<Nat>,
    /// What its clock of the day is wrong by from the start.
    pub clock: Option<ClockChange>,
    pub processes: Vec<Process>,
}

/// What is behind a host has its address on this link.
#[derive(Debug, Clone, PartialEq)]
pub struct Nat {
    pub link: String,
    pub kind: NatKind,
    /// A port of the host's on that link, the host that serves it, and its port.
    pub publish: Vec<(u16, String, u16)>,
}

/// Which packets from outside come in by a port that somebody behind has sent from; RFC 4787 and RFC 3489 have the names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NatKind {
    /// Those of everybody.
    FullCone,
    /// Those of a host that was sent to from there.
    Restricted,
    /// Those of a host's port that was sent to from there: what Linux does.
    #[default]
    PortRestricted,
    /// The same, and each port outside is seen by another port.
    Symmetric,
}

#[derive(Debug, Clone)]
pub struct Process {
    pub place: Place,
    /// What it is called as: its argument 0.
    pub name: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub start: Duration,
    pub shutdown: Option<(Duration, i32)>,
    pub expected: Expected,
}

/// How a process has to have ended when the simulation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    Exited(i32),
    Signaled(i32),
    Running,
    /// Exited with 0, or running (Shadow 2's default).
    NotFailed,
    Any,
}

/// One direction of a link, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    pub rate: Option<Rate>,
    pub delay: Duration,
    pub jitter: Duration,
    pub loss: f64,
    pub corrupt: f64,
    pub duplicate: f64,
    pub reorder: f64,
    /// What waits where the rate is less than what comes: words for `tc`, such as `fq_codel`.
    pub queue: Option<String>,
    /// Bytes that the default queue holds.
    pub limit: Option<u64>,
    /// A file that says how rate, delay and losses change (trace.rs).
    pub trace: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Link {
    /// Of its keys.
    pub places: Places,
    pub name: String,
    pub ends: [End; 2],
    /// From the first end to the second, and back.
    pub wires: [Wire; 2],
}

#[derive(Debug, Clone)]
pub struct End {
    pub host: String,
    pub interface: Option<String>,
    pub addresses: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub at: Duration,
    pub what: Action,
}

/// What becomes of a host's clock of the day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockChange {
    /// ns forward.
    pub step: i64,
    /// ns that it gains in a second from now on; None: as before.
    pub drift: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    LinkDown(String),
    LinkUp(String),
    /// A link's new properties in both directions.
    LinkSet(String, Box<[Wire; 2]>),
    /// The same by the link's trace: nothing that a report names.
    LinkFollows(String, Box<[Wire; 2]>),
    /// Hosts of different groups no longer reach each other; who is in no group reaches all.
    Partition(Vec<Vec<String>>),
    /// Ends every partition.
    Heal,
    /// All processes of a host get SIGKILL.
    Crash(String),
    /// What had been started on a host before its crash is started again.
    Restart(String),
    /// All processes of a host stand still, or go on.
    Pause(String),
    Resume(String),
    /// A host loses this share of what comes to it; 0 ends that.
    Loss(String, f64),
    /// A host's clock of the day.
    Clock(String, ClockChange),
    /// A program on a host, its output beside that of the host's processes.
    Run(String, Vec<String>),
}
