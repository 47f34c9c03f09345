// SPDX-License-Identifier: GPL-2.0
//! How the command fails: one line for a person, one status for a script.

use std::io;
use std::path::PathBuf;

use ring3_config::ConfigError;
use ring3_node::Errno;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The status of a failure of ring3's own in `run`, `exec` and `debug`, where every other status
/// is the program's: as env(1), nohup(1) and docker have it.
const OWN_FAILURE: u8 = 125;
const CANNOT_EXECUTE: u8 = 126;
const NOT_FOUND: u8 = 127;
const USAGE: u8 = 2;
const FAILURE: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),

    #[error("cannot read {}: {why}", path.display())]
    NodeFile { path: PathBuf, why: Errno },

    #[error("process {pid} is no program of a node of yours that is up: `ring3 stat NAME` lists a node's")]
    NoProgram { pid: i32 },

    #[error("{}: line {line} is not UTF-8: save the file in that encoding", path.display())]
    NodeFileNoText { path: PathBuf, line: usize },

    #[error(transparent)]
    Node(#[from] ring3_node::Error),

    #[error(transparent)]
    Relay(#[from] ring3_relay::Error),

    #[error(transparent)]
    Vhost(#[from] ring3_vhost::Error),

    #[error(transparent)]
    Proxy(#[from] ring3_proxy::Error),

    #[error(transparent)]
    Forward(#[from] ring3_forward::Error),

    #[error("no node to forward on: give --on NODE, or --port SPEC for one of its own")]
    ForwardWhere,

    #[error(
        "{count} targets: a handler's verdict has bits for {}",
        ring3_forward::TARGETS_MAX
    )]
    ForwardTargets { count: usize },

    #[error("{0}")]
    ProxyWords(String),

    #[error(transparent)]
    Sandbox(#[from] ring3_sandbox::Error),

    #[error("{}: cannot be shown to the sandbox: {why}", path.display())]
    SandboxPath { path: PathBuf, why: Errno },

    #[error("--pids does not hold for root, whose processes the host does not count: run it as an ordinary user")]
    PidsOfRoot,

    #[error("--policy and --record are for a way out, and there is none: add --net or --port")]
    GatewayWithoutExit,

    #[error("--serve {spec}: a gateway's link to a sandbox, as in link:NAME,addr=10.0.3.1/30")]
    ServeWhat { spec: String },

    #[error("a sandbox is not started again, and has no switch: leave out --restart and --switch")]
    NotInSandbox,

    #[error(
        "the sandbox of node `{name}` has ended, or has no descriptors left for another program"
    )]
    SandboxOver { name: String },

    /// With the signal that ended the wait.
    #[error("the sandbox of node `{name}` does not answer: it is stopped, or its programs have taken it over; `ring3 down {name}` ends it")]
    SandboxSilent { name: String, signal: Option<u8> },

    #[error("{} is in reach of the sandbox's programs, which may write to {}: name another place for it, or a smaller folder for --rw", path.display(), folder.display())]
    InReach { path: PathBuf, folder: PathBuf },

    #[error("{} has a second name (a hard link), which the sandbox's programs may reach: name a copy of it", path.display())]
    SecondName { path: PathBuf },

    #[error("less than {least} (--min-free) is left on a file system that the sandbox writes to, or few of its inodes")]
    NoRoom { least: String },

    #[error("little of /dev/shm is left, by the sandbox or by other programs, which need it: give the sandbox a limit (--min-free), or have it keep its files elsewhere (--tmp)")]
    NoMemory,

    #[error("{}: a policy is a file of at most {} MiB", path.display(), max >> 20)]
    NoPolicy { path: PathBuf, max: u64 },

    #[error("what a port publishes (tcp=, udp=) would end at the gateway, where nothing listens: leave it out, or leave out --policy and --record")]
    GatewayPublishes,

    #[error(
        "`ring3 {verb}` does not go into a sandbox: it would give that a socket of the host's"
    )]
    NotIntoSandbox { verb: &'static str },

    #[error("the sandbox's processes are not confined: the host lets them send signals outside")]
    NotEnclosed,

    #[error(transparent)]
    Sim(#[from] ring3_sim::Error),

    #[error("not from within a node: `ring3 {verb}` needs a process that is on none, such as a shell that `ring3 exec` did not start")]
    OnNode { verb: &'static str },

    #[error("cannot read the layout {}: {why}", path.display())]
    Layout {
        path: PathBuf,
        why: serde_json::Error,
    },

    /// A node's process said this before it ended.
    #[error("{0}")]
    Child(String),

    #[error("node `{name}` ended while it started, without a word; its output is in {}", log.display())]
    Silent { name: String, log: PathBuf },

    #[error("no gate: looked for {}; build it with `make`", looked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
    GateMissing { looked: Vec<PathBuf> },

    #[error("no kernel with tests: looked for {}; build it with `make kunit`", looked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
    KunitImageMissing { looked: Vec<PathBuf> },

    #[error("the kernel ended in suite {suite} of {of}: {words}; `--log` shows what it said")]
    KunitEnded {
        suite: usize,
        of: usize,
        words: String,
    },

    #[error("no test was run: no suite matches, or the kernel has none")]
    KunitNothing,

    #[error("{command}: not found in PATH")]
    CommandNotFound { command: String },

    /// A node of a file that describes several.
    #[error("{}: node `{node}`: {failure}", path.display())]
    OfFile {
        path: PathBuf,
        node: String,
        failure: Box<Failure>,
    },

    #[error("--wait: {} has no node `{node}`", path.display())]
    WaitForNobody { path: PathBuf, node: String },

    #[error("{command}: no such file")]
    FileNotFound { command: String },

    #[error("{command}: {why}")]
    CommandNotExecutable { command: String, why: String },

    #[error("cannot {what}: {why}")]
    Host { what: String, why: Errno },

    #[error(
        "the node's file lists programs, which `ring3 up` starts: leave them out, or use that"
    )]
    ProgramsForRun,

    #[error("{address} is not on the loopback: use 127.0.0.1 or [::1], since everybody who reaches it uses the node")]
    NotLoopback { address: std::net::SocketAddr },

    #[error("nothing listens on {protocol} port {port} of node `{node}`: `ring3 exec {node} -- ss -tuln` shows what does")]
    NobodyListens {
        node: String,
        protocol: &'static str,
        port: u16,
    },

    #[error("{host}: {why}; `ring3 exec {node} -- getent hosts {host}` asks the node as well")]
    NoSuchHost {
        node: String,
        host: String,
        why: io::Error,
    },

    #[error("`ring3 perf {verb}`: it stands in front of report, script, annotate and diff alone; record by `perf record`")]
    PerfVerb { verb: String },

    #[error("no node's kernel in {}: record a program of a node, `perf record -p PID`", inputs.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
    PerfNoNode { inputs: Vec<PathBuf> },

    #[error("node `{node}` is not up any more, and no image is installed: name the one that it had by --image")]
    PerfNoImage { node: String },

    #[error("{}: not an image with symbols", path.display())]
    NoSymbols { path: PathBuf },

    #[error("a capture is no text for a terminal: name a file by -w, or a reader, as in `ring3 capture ... | tshark -r -`")]
    CaptureOnTerminal,

    #[error("a filter is compiled by tcpdump, which is not found in PATH: install it, or capture without a filter")]
    NoTcpdump,

    #[error("filter `{filter}`: {why}")]
    CaptureFilter { filter: String, why: String },

    #[error("only root sees other users' nodes: leave out --all-users")]
    NotRoot,

    /// A signal ended the start; what was started is taken down again.
    #[error("interrupted: what was started is taken down again")]
    Interrupted { status: u8 },

    /// Everything was said already; only the status is left.
    #[error("")]
    Said,
}

/// How the command ends: `run`, `exec` and `debug` have exit codes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Program,
    Plain,
}

impl Failure {
    pub fn host(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        let what = what.into();
        move |why| Failure::Host {
            what,
            why: why.into(),
        }
    }

    pub fn status(&self, manner: Manner) -> u8 {
        match self {
            Failure::Sim(error) if error.is_usage() => USAGE,
            Failure::Proxy(ring3_proxy::Error::Config(_)) => USAGE,
            Failure::Config(_)
            | Failure::ProxyWords(_)
            | Failure::ForwardWhere
            | Failure::ForwardTargets { .. }
            | Failure::NodeFile { .. }
            | Failure::NodeFileNoText { .. }
            | Failure::WaitForNobody { .. }
            | Failure::NotLoopback { .. }
            | Failure::ProgramsForRun
            | Failure::ServeWhat { .. }
            | Failure::PerfVerb { .. }
            | Failure::CaptureOnTerminal
            | Failure::CaptureFilter { .. }
            | Failure::NotInSandbox
            | Failure::InReach { .. }
            | Failure::SecondName { .. }
            | Failure::GatewayPublishes
            | Failure::GatewayWithoutExit => USAGE,
            Failure::OfFile { failure, .. } => failure.status(manner),
            Failure::Interrupted { status } => *status,
            Failure::SandboxSilent {
                signal: Some(signal),
                ..
            } => 128 + signal,
            Failure::CommandNotFound { .. } | Failure::FileNotFound { .. } => NOT_FOUND,
            Failure::CommandNotExecutable { .. } => CANNOT_EXECUTE,
            _ if manner == Manner::Program => OWN_FAILURE,
            _ => FAILURE,
        }
    }
}
