// SPDX-License-Identifier: GPL-2.0
//! The protocol of the control socket: one request and one reply, each a line of JSON.
//!
//! The connection is a unix stream; the server answers and closes. Only processes of the node's own
//! user are served (the folder is 0700, and the peer's credentials are checked).

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::calls::Instruction;

/// Longest line that is accepted.
const LINE_MAX: u64 = 16 << 20;
/// How long either side waits for the other's line.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    Status,
    /// Kernel log records from sequence number `from` on; 0: from the beginning.
    Log {
        from: u64,
    },
    /// The counters of the node's kernel.
    Counters,
    /// To a switch: a node has one end of this link, and asks the switch to take the other.
    Plug {
        link: String,
    },
    /// Adds a port, while programs run.
    PortAdd {
        spec: String,
    },
    /// Another node's name and addresses, for /etc/hosts.
    Know {
        name: String,
        addresses: Vec<String>,
    },
    /// What crosses an interface, as pcap-ng into this pipe for as long as somebody reads it.
    Capture {
        ifname: String,
        path: PathBuf,
        /// Classic BPF; empty: all frames.
        filter: Vec<Instruction>,
    },
    /// For as long as the connection lasts a debugger outside of the node may have this process of the node's.
    Debug {
        pid: i32,
    },
    /// Removes the port with this interface.
    PortDel {
        ifname: String,
    },
    Down,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Status(Box<Status>),
    Log(Log),
    Counters(Box<Counters>),
    /// `Know`: written down.
    Known,
    /// `Capture`: it has begun.
    Captures,
    /// `Debug`: the adopter does not trace the process now.
    Free,
    /// `PortAdd`, `PortDel`, `Plug`: the port that came or went.
    Port(Box<Port>),
    /// `down`: accepted; the node is gone when its lock is. Its programs may take so long.
    Down {
        grace_ms: u64,
    },
    /// The node goes down, and answers nothing any more.
    Ending,
    Error(String),
}

/// What a node says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    pub name: String,
    pub state: State,
    /// Why it is poisoned.
    pub poison: Option<String>,
    /// The keeper's process.
    pub pid: i32,
    pub uptime_ns: u64,
    /// The kernel, as the image calls itself.
    pub version: String,
    pub image: PathBuf,
    /// The socket by which programs join (`RING3_NODE`).
    pub join: PathBuf,
    /// Address of the region in every process.
    pub base: u64,
    pub mem: Memory,
    pub calls: Calls,
    /// Waits that only their time limit ended: wake-ups that were lost. See ring3_stat.h.
    pub late: u64,
    pub ports: Vec<Port>,
    pub procs: Vec<Proc>,
    /// What goes on with the kernel code of programs that are killed in there.
    pub adopter: Option<Adopter>,
    /// Programs that hold the node up: they are stopped while they run its kernel's code.
    pub held_up_by: Vec<Proc>,
    /// Seconds since the node has failed and its keeper ended; this is what was left of it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_s: Option<u64>,
}

/// See `ring3_abi`'s RING3_ADOPTS_*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adopter {
    /// "killed": it hears of each death from the host; "traced": by ptrace().
    pub how: String,
    /// Calls that were gone on with.
    pub adopted: u32,
    /// vCPUs that were merely taken back.
    pub freed: u32,
}

/// System calls of the node's programs; what the last few dozen of each thread were, is not in yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// By a site that was rewritten.
    pub rewritten: u64,
    /// By a trap.
    pub trapped: u64,
    /// Of both: passed to the host as they came.
    pub host: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Booting,
    Up,
    Poisoned,
    Down,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            State::Booting => "booting",
            State::Up => "up",
            State::Poisoned => "poisoned",
            State::Down => "down",
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes the region may use.
    pub size: u64,
    /// Bytes of host memory in use now.
    pub resident: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Port {
    /// `link`, `switch`, `tap`, `host`, `passt`, `packet`, `xdp`, `vhost`.
    pub kind: String,
    /// The part after the colon in the port's specification.
    pub name: Option<String>,
    /// The interface's name and index on the node.
    pub ifname: String,
    pub ifindex: u32,
    pub addrs: Vec<String>,
    pub gw: Vec<String>,
    pub mtu: Option<u32>,
    pub pcap: Option<PathBuf>,
    /// Host side: the TAP was made by this node, passt's or the host port's process.
    pub made: bool,
    pub pid: Option<i32>,
    /// A link's other end: the node that has it now. A host port's: `the host`, unless its process has ended. A vhost port's:
    /// what state the virtual machine is in, in words.
    #[serde(default)]
    pub peer: Option<String>,
    /// The link by which it is joined, where that is known to the node alone.
    #[serde(skip)]
    pub(crate) link: Option<String>,
    /// Of a vhost port.
    #[serde(skip)]
    pub(crate) guest: Option<crate::ports::vhost::State>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Proc {
    /// The host's number of the process.
    pub pid: i32,
    pub threads: u32,
    /// Its name, from the host's /proc.
    pub command: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Log {
    /// Lines as `<prio>[ssss.uuuuuu] text`.
    pub text: String,
    /// The `from` of the next request.
    pub next: u64,
}

/// Files of the node's /proc/net, unchanged; empty: the node has no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub dev: String,
    pub snmp: String,
    pub snmp6: String,
    pub netstat: String,
    pub sockstat: String,
    pub sockstat6: String,
}

/// Sends one value as a line.
pub(crate) fn write_line<T: Serialize>(mut stream: &UnixStream, value: &T) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Receives one line.
pub(crate) fn read_line<T: for<'a> Deserialize<'a>>(stream: &UnixStream) -> std::io::Result<T> {
    let mut line = String::new();
    BufReader::new(stream).take(LINE_MAX).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}
