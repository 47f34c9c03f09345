// SPDX-License-Identifier: GPL-2.0
//! The command line: verbs, options and their help.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};

use ring3_config::proxy::{Listen, To};
use ring3_config::sandbox;

use crate::help;

/// A package's has the commit: tools/package sets it.
const VERSION: &str = match option_env!("RING3_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Run unmodified programs on a Linux network stack of their own, in user space.
#[derive(Debug, Parser)]
#[command(name = "ring3", version = VERSION, arg_required_else_help = true, after_help = help::TOUR)]
#[command(infer_subcommands = false, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a program on a node of its own, which ends with it
    #[command(override_usage = "ring3 run [OPTIONS] [--] CMD [ARGS]...", after_help = help::RUN, after_long_help = help::RUN_LONG)]
    Run(Run),
    /// Start a node that stays
    #[command(override_usage = "ring3 up [OPTIONS] [NAME] [-- CMD [ARGS]...]", after_help = help::UP, after_long_help = help::UP_LONG)]
    Up(Up),
    /// Start or take down several nodes that one file describes
    #[command(after_help = help::COMPOSE)]
    Compose(Compose),
    /// Run a program on a node that is up
    #[command(override_usage = "ring3 exec NAME [--] CMD [ARGS]...", after_help = help::EXEC)]
    Exec(Exec),
    /// Run a debugger of the host's on a program of a node
    #[command(override_usage = "ring3 debug PID [--] CMD [ARGS]...", after_help = help::DEBUG)]
    Debug(Debug),
    /// Add a port to a node that is up, or take one away
    #[command(after_help = help::PORT)]
    Port(Port),
    /// Take nodes down
    Down(Down),
    /// List the nodes that are up
    Ls(Ls),
    /// Draw nodes, ports and links
    #[command(after_help = help::GRAPH)]
    Graph(Graph),
    /// Connect standard input and output to a TCP port as seen from a node
    #[command(after_help = help::CONNECT)]
    Connect(Connect),
    /// Listen on the host's loopback, and pass connections on to a port of a node
    #[command(after_help = help::PUBLISH)]
    Publish(Publish),
    /// Listen on the host's loopback, and let connections go out from a node: SOCKS5 and HTTP CONNECT
    #[command(after_help = help::SOCKS)]
    Socks(Socks),
    /// Pass connections and datagrams that come to a node on to the host's sockets, other nodes or unix sockets
    #[command(override_usage = "ring3 proxy [OPTIONS] [FILE]\n       ring3 proxy reload NAME", after_help = help::PROXY)]
    Proxy(Proxy),
    /// Move datagrams or connections from a node on to other machines, with a handler of your own on the way
    #[command(override_usage = "ring3 forward --on NODE|--port SPEC... --listen WHERE --to ADDRESS:PORT [OPTIONS]", after_help = help::FORWARD)]
    Forward(Forward),
    /// Wait until a node is up, or until a program listens there
    #[command(override_usage = "ring3 wait [OPTIONS] NAME [tcp|udp PORT]", after_help = help::WAIT)]
    Wait(Wait),
    /// Show the log of a node's kernel
    Log(Log),
    /// Show a node's particulars: memory, ports, processes, where to attach a debugger
    Stat(Stat),
    /// Show what all nodes do, on a screen that renews itself
    #[command(after_help = help::TOP)]
    Top(Top),
    /// Look around in a node's /proc/net, /proc/sys/net and /sys/class/net, and write to them
    #[command(after_help = help::CONSOLE)]
    Console(Console),
    /// Print what the nodes count, for Prometheus
    #[command(after_help = help::METRICS)]
    Metrics(Metrics),
    /// Capture what crosses an interface of a node, as pcap-ng with the owners of the sockets
    #[command(after_help = help::CAPTURE)]
    Capture(Capture),
    /// perf's report with the names of the functions of nodes' kernels
    #[command(override_usage = "ring3 perf [--image FILE] report|script|annotate|diff [ARGS]...", after_help = help::PERF)]
    Perf(Perf),
    /// Run a simulated network: hosts with unmodified programs, links, faults
    #[command(override_usage = "ring3 sim [OPTIONS] FILE.yaml", after_help = help::SIM)]
    Sim(Sim),
    /// A process of a simulation
    #[command(hide = true)]
    SimStage(SimStage),
    /// Run the kernel's own unit tests on a node of their own
    #[command(after_help = help::KUNIT)]
    Kunit(Kunit),
    /// The part of `connect`, `publish`, `socks`, `forward`, `wait` and `console` that runs on the node
    #[command(hide = true, subcommand)]
    OnNode(OnNode),
    /// The process of a `host` port; its keeper starts it
    #[command(hide = true)]
    HostPort,
    /// The process of a `vhost` port; its keeper starts it
    #[command(hide = true)]
    VhostPort,
    /// The process of a proxy that has the clients; `ring3 proxy` starts it
    #[command(hide = true)]
    ProxyRelay,
    /// Show what this host offers and what ring3 will therefore do
    Doctor(Doctor),
    /// Print a completion script for a shell
    #[command(after_help = help::COMPLETION)]
    Completion(Completion),
    /// Show the manual page, or print its source into a pipe
    Man,
}

/// The options that describe a node.
#[derive(Debug, Default, Args)]
pub struct NodeArgs {
    /// A port: KIND[:NAME][,key=value]...; may be repeated
    #[arg(short, long = "port", value_name = "SPEC")]
    pub ports: Vec<String>,
    /// A way out: the port `host`, unless a port is named that leads out
    #[arg(long)]
    pub net: bool,
    /// Set a sysctl of the node; may be repeated
    #[arg(short, long = "sysctl", value_name = "KEY=VALUE")]
    pub sysctls: Vec<String>,
    /// A route: 'NETWORK via GATEWAY' or 'default via GATEWAY'; may be repeated
    #[arg(long = "route", value_name = "ROUTE")]
    pub routes: Vec<String>,
    /// A line of the node's own /etc/hosts, which then takes the place of the host's; may be repeated
    #[arg(long = "add-host", value_name = "NAME=ADDRESS")]
    pub hosts: Vec<String>,
    /// A name server of the node's own /etc/resolv.conf, which then takes the place of the host's; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub dns: Vec<String>,
    /// Memory of the node, for example 64M or 1G [default: 1G]
    #[arg(short, long, value_name = "SIZE")]
    pub mem: Option<String>,
    /// How long a thread polls before it sleeps, in nanoseconds [default: 50000]
    #[arg(long, value_name = "NS")]
    pub spin_ns: Option<u32>,
    /// vCPUs of the node; more than 1 need the smp image (make smp) [default: 1]
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// Let the instruction cpuid go to the processor each time, also where a hypervisor makes it slow
    #[arg(long)]
    pub host_cpuid: bool,
    /// Time between SIGTERM and SIGKILL for programs when the node ends, in seconds [default: 5]
    #[arg(long, value_name = "SECONDS")]
    pub grace: Option<String>,
    /// Add to the kernel's command line
    #[arg(long, value_name = "WORDS")]
    pub cmdline: Option<String>,
    /// Use this kernel image instead of the one beside the command: a file, or up, smp or sim (virtual time)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Option<PathBuf>,
    /// The seed of all randomness, with the image sim [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Read the node from a file; options given beside it come on top
    #[arg(short, long, value_name = "NODE.TOML", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Name of the node [default: run-PID]
    #[arg(short, long = "node", value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub node: NodeArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// The options of a sandbox: what its program may do.
#[derive(Debug, Clone, Default, Args)]
pub struct SandboxArgs {
    /// Confine the program and its node: no network of the host's, no files but the system's programs and libraries
    #[arg(long)]
    pub sandbox: bool,
    /// Let a sandbox read and execute what is at and below this path; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox", value_hint = ValueHint::AnyPath)]
    pub ro: Vec<PathBuf>,
    /// Let a sandbox also write, make and remove there; may be repeated
    #[arg(long, value_name = "PATH", requires = "sandbox", value_hint = ValueHint::AnyPath)]
    pub rw: Vec<PathBuf>,
    /// Give a sandbox an empty folder of its own, which TMPDIR names and which goes with it
    #[arg(long, requires = "sandbox")]
    pub tmp: bool,
    /// Let a sandbox have at most about N processes and threads at a time; for an ordinary user
    #[arg(long, value_name = "N", requires = "sandbox", value_parser = clap::value_parser!(u64).range(sandbox::PIDS))]
    pub pids: Option<u64>,
    /// Let each process of a sandbox have at most so much memory (addresses) beside its node's, for example 512M
    #[arg(long, value_name = "SIZE", requires = "sandbox")]
    pub proc_mem: Option<String>,
    /// Let each process of a sandbox use at most so much CPU time; then it gets SIGXCPU, and SIGKILL a second later
    #[arg(long, value_name = "SECONDS", requires = "sandbox", value_parser = clap::value_parser!(u64).range(sandbox::CPU_TIME_S))]
    pub cpu_time: Option<u64>,
    /// Let each process of a sandbox have at most N descriptors, 1024 or more
    #[arg(long, value_name = "N", requires = "sandbox", value_parser = clap::value_parser!(u64).range(sandbox::FILES))]
    pub files: Option<u64>,
    /// Let no file of a sandbox grow beyond this, files in memory included
    #[arg(long, value_name = "SIZE", requires = "sandbox")]
    pub file_size: Option<String>,
    /// End a sandbox when less than this is free on a file system that it, or its gateway, writes to
    #[arg(long, value_name = "SIZE", requires = "sandbox")]
    pub min_free: Option<String>,
    /// Give a sandbox's ports to a gateway node that enforces these nftables rules; its interfaces are sandbox0 and the ports'
    #[arg(long, value_name = "FILE.nft", requires = "sandbox", value_hint = ValueHint::FilePath)]
    pub policy: Option<PathBuf>,
    /// The same, and write what the gateway lets through and refuses into this folder: flows.jsonl, sandbox.pcap, exit.pcap
    #[arg(long, value_name = "FOLDER", requires = "sandbox", value_hint = ValueHint::DirPath)]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Up {
    /// Name of the node; may come from the file instead
    #[arg(required_unless_present = "file")]
    pub name: Option<String>,
    #[command(flatten)]
    pub node: NodeArgs,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// Make the sandbox a gateway for others, and this a link that leads to one: link:NAME,addr=...; may be repeated
    #[arg(
        long,
        value_name = "SPEC",
        requires = "sandbox",
        conflicts_with = "command"
    )]
    pub serve: Vec<String>,
    /// Print the node's particulars as JSON once it is up
    #[arg(long, conflicts_with = "foreground")]
    pub json: bool,
    /// A network of hosts within it, as the Python package says it: steps in JSON
    #[arg(long, hide = true, value_name = "FILE")]
    pub layout: Option<PathBuf>,
    /// Make it a switch: it joins its ports and those of nodes with a port switch:NAME, and has no programs
    #[arg(long)]
    pub switch: bool,
    /// Start the node again when it fails, and its programs when they end: on-failure, always or no [default: no]
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "on-failure")]
    pub restart: Option<String>,
    /// Return when a program of the node has such a socket: 'tcp PORT' or 'udp PORT', at most 30 s; may be repeated
    #[arg(long, value_name = "SOCKET", conflicts_with = "foreground")]
    pub wait: Vec<String>,
    /// Stay, as a service manager wants it: the node is kept by this process, which fails if the node does
    #[arg(long)]
    pub foreground: bool,
    /// A program that the node starts with, and its arguments; more of them can be in the file
    #[arg(last = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Compose {
    #[command(subcommand)]
    pub verb: ComposeVerb,
}

#[derive(Debug, Subcommand)]
pub enum ComposeVerb {
    /// Start the nodes, in the file's order; all or none
    Up(ComposeUp),
    /// Take them down, in the opposite order
    Down(ComposeDown),
}

#[derive(Debug, Args)]
pub struct ComposeUp {
    /// The file
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print the nodes' particulars as JSON once all are up
    #[arg(long)]
    pub json: bool,
    /// Return when a program of a node has such a socket: 'NODE tcp PORT' or 'NODE udp PORT', at most 30 s; may be repeated
    #[arg(long, value_name = "SOCKET")]
    pub wait: Vec<String>,
}

#[derive(Debug, Args)]
pub struct ComposeDown {
    /// The file
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Port {
    #[command(subcommand)]
    pub verb: PortVerb,
}

#[derive(Debug, Subcommand)]
pub enum PortVerb {
    /// Add a port; prints the name of its interface
    Add(PortAdd),
    /// Take a port away
    Del(PortDel),
}

#[derive(Debug, Args)]
pub struct PortAdd {
    /// Name of the node
    #[arg(value_name = "NODE")]
    pub name: String,
    /// A port of kind switch or link: KIND:NAME[,key=value]...
    pub spec: String,
}

#[derive(Debug, Args)]
pub struct PortDel {
    /// Name of the node
    #[arg(value_name = "NODE")]
    pub name: String,
    /// Name of the port's interface on the node
    pub interface: String,
}

#[derive(Debug, Args)]
pub struct Exec {
    /// Name of the node
    pub name: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Debug {
    /// Process of a node's program
    pub pid: i32,
    /// The debugger and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Down {
    /// Names of the nodes
    #[arg(required_unless_present = "all", value_name = "NAME")]
    pub names: Vec<String>,
    /// All of this user's nodes
    #[arg(short, long, conflicts_with = "names")]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Ls {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The nodes of all users; for root
    #[arg(long)]
    pub all_users: bool,
}

#[derive(Debug, Args)]
pub struct Graph {
    /// As a picture for a browser, not for the terminal
    #[arg(long)]
    pub svg: bool,
}

#[derive(Debug, Args)]
pub struct Connect {
    /// Say on standard error when the connection is there
    #[arg(short, long)]
    pub verbose: bool,
    /// Name of the node
    pub name: String,
    /// Name or address, looked up on the node
    pub host: String,
    /// TCP port
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
}

#[derive(Debug, Args)]
pub struct Socks {
    /// Name of the node
    pub name: String,
    /// Where to listen on the host's loopback; port 0: one that is free. It is printed
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:1080"
    )]
    pub listen: SocketAddr,
}

#[derive(Debug, Args)]
pub struct Publish {
    /// Name of the node
    pub name: String,
    /// TCP port of the node
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// Where to listen on the host's loopback; port 0: one that is free. It is printed [default: 127.0.0.1, the same port]
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Proxy {
    #[command(subcommand)]
    pub verb: Option<ProxyVerb>,
    /// Listeners and targets (TOML)
    #[arg(value_hint = ValueHint::FilePath, required_unless_present_any = ["listen"], conflicts_with_all = ["listen", "to", "log", "metrics", "grace"])]
    pub file: Option<PathBuf>,
    /// The node that listens; overrules the file's
    #[arg(long, value_name = "NODE")]
    pub on: Option<String>,
    /// A port of a node of the proxy's own, which the confined process keeps: --on is that node's name then
    #[arg(short, long, value_name = "SPEC", conflicts_with = "file")]
    pub port: Vec<String>,
    /// Where to listen on the node: tcp:80, udp:53, tcp:10.0.0.1:80
    #[arg(short, long, value_name = "PROTOCOL:[ADDRESS:]PORT", requires = "to")]
    pub listen: Vec<Listen>,
    /// Where to: ADDRESS:PORT or NAME:PORT as the host reaches it, unix:/PATH, node:NAME:[ADDRESS:]PORT
    #[arg(short, long, value_name = "TARGET", requires = "listen")]
    pub to: Vec<To>,
    /// Its name for `ring3 proxy reload`; by default the node's
    #[arg(short, long)]
    pub name: Option<String>,
    /// Add a line of JSON for each connection to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log: Option<PathBuf>,
    /// Answer Prometheus at this address of the host
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// How long connections may go on after SIGTERM: 500ms, 30s, 5m
    #[arg(long, value_name = "TIME", value_parser = ring3_config::proxy::time)]
    pub grace: Option<Duration>,
    /// Look whether the file is right, and do no more
    #[arg(long, requires = "file")]
    pub check: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProxyVerb {
    /// Have a proxy read its file again; no connection is lost
    Reload {
        /// The proxy's name: its node's, or what --name said
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct Forward {
    /// The node; with --port: the name of the agent's own
    #[arg(long, value_name = "NODE", required_unless_present = "port")]
    pub on: Option<String>,
    /// A port of a node of the agent's own: KIND[:NAME][,key=value]...; may be repeated
    #[arg(short, long, value_name = "SPEC")]
    pub port: Vec<String>,
    #[command(flatten)]
    pub way: Way,
    /// Run in real time with this priority (SCHED_FIFO): the agent, and its own node with it
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=98))]
    pub real_time: Option<u8>,
    /// Stay on this CPU: the agent, and its own node with it
    #[arg(long, value_name = "CPU", value_parser = help::cpu)]
    pub cpu: Option<usize>,
    /// How long the agent polls before it sleeps, in nanoseconds, on a node of its own [default: 50000]
    #[arg(long, value_name = "NS", requires = "port")]
    pub spin_ns: Option<u32>,
}

/// What comes, and where to.
#[derive(Debug, Args)]
pub struct Way {
    /// Where to listen on the node: udp:5000, tcp:80, udp:10.0.0.1:5000
    #[arg(short, long, value_name = "PROTOCOL:[ADDRESS:]PORT")]
    pub listen: Listen,
    /// Where to, as the node reaches it; each of several gets a copy
    #[arg(short, long, value_name = "ADDRESS:PORT", required = true)]
    pub to: Vec<SocketAddr>,
    /// A shared object that sees each packet (ring3_forward.h)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub handler: Option<PathBuf>,
    /// For the handler's open()
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        hide_default_value = true,
        requires = "handler",
        allow_hyphen_values = true
    )]
    pub words: String,
    /// How long one call of the handler may take before it is cut off: 50us, 1ms
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = help::budget)]
    pub budget: Duration,
    /// What becomes of packets once the handler was cut off
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = AfterCut::Drop)]
    pub after_cut: AfterCut,
    /// Print the numbers so often, not at the end alone
    #[arg(long, value_name = "SECONDS", value_parser = help::interval)]
    pub stats: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AfterCut {
    Drop,
    Pass,
}

#[derive(Debug, Args)]
pub struct Wait {
    /// Name of the node
    pub name: String,
    /// The kind of socket to wait for
    #[arg(requires = "port")]
    pub protocol: Option<Protocol>,
    /// Its port
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Give up after so many seconds
    #[arg(short, long, value_name = "SECONDS", default_value_t = 30.0, value_parser = help::seconds)]
    pub timeout: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// As in /proc/net.
    pub fn word(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }
}

/// Arguments that another ring3 has made.
#[derive(Debug, Subcommand)]
pub enum OnNode {
    Connect {
        #[arg(long)]
        verbose: bool,
        node: String,
        host: String,
        port: u16,
    },
    Socks {
        node: String,
    },
    Publish {
        node: String,
        port: u16,
    },
    Console {
        node: String,
    },
    Forward(Way),
    Wait {
        node: String,
        protocol: Protocol,
        port: u16,
        ms: u64,
    },
}

#[derive(Debug, Args)]
pub struct Log {
    /// Name of the node
    pub name: String,
    /// Go on as the log grows, until the node goes down
    #[arg(short, long)]
    pub follow: bool,
    /// Show only lines of this kernel log level or more urgent (0 to 7)
    #[arg(short, long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub level: Option<u8>,
}

#[derive(Debug, Args)]
pub struct Stat {
    /// Name of the node
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Show rates, sockets and memory, a line each so many seconds [default: 1], until the node goes down
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = help::interval)]
    pub watch: Option<f64>,
}

#[derive(Debug, Args)]
pub struct Top {
    /// How often to look
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0, value_parser = help::seconds)]
    pub every: f64,
    /// Print so many tables instead, and end; without a terminal there are tables until a signal comes
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Print JSON: a line for each look, with all nodes
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Console {
    /// Name of the node
    pub name: String,
}

#[derive(Debug, Args)]
pub struct Metrics {
    /// Serve them by HTTP at this address instead, until a signal comes; port 0: one that is free. It is printed
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub struct Capture {
    /// Where to write; `-`: standard output
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub write: PathBuf,
    /// Name of the node
    pub name: String,
    /// Name of the interface on the node
    pub interface: String,
    /// Which packets, in tcpdump's words (pcap-filter(7)), which tcpdump compiles
    #[arg(trailing_var_arg = true)]
    pub filter: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Perf {
    /// The image of nodes that are not up any more [default: ring3-up.image beside the command]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Option<PathBuf>,
    /// A verb of perf's that reads symbols, and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "VERB"
    )]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct Kunit {
    /// Run only suites, or SUITE.CASE, that match
    #[arg(short, long, value_name = "GLOB", value_parser = help::glob)]
    pub suite: Option<String>,
    /// Print the results as JSON, once all are there
    #[arg(long, conflicts_with_all = ["quiet", "log"])]
    pub json: bool,
    /// Print the sum only
    #[arg(short, long, conflicts_with = "log")]
    pub quiet: bool,
    /// Print all that the kernel says, not the report alone
    #[arg(short, long)]
    pub log: bool,
    /// Memory of the node [default: 512M]
    #[arg(short, long, value_name = "SIZE")]
    pub mem: Option<String>,
    /// Stop the node after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(0..=u32::MAX as u64))]
    pub limit: u64,
    /// Use this kernel image instead of ring3-kunit.image beside the command
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Option<PathBuf>,
    /// Read the log of another kernel that ran its tests, or - for standard input; no node is made
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["suite", "mem", "image"])]
    pub from: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Sim {
    #[command(subcommand)]
    pub verb: Option<SimVerb>,
    /// The scenario: a configuration file of Shadow's, or with keys of ring3's own; `-` is standard input
    #[arg(required_unless_present = "schema", value_name = "FILE.yaml", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The seed of all randomness, in place of the file's general.seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Where output goes; over the file's general.data_directory. It must not exist yet
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data_directory: Option<PathBuf>,
    /// Only read the scenario and say what is wrong with it
    #[arg(long)]
    pub check: bool,
    /// Print the scenario as it would be run, aliases resolved and options put in, as YAML
    #[arg(long, conflicts_with_all = ["check", "seeds"])]
    pub show_config: bool,
    /// Print the JSON schema of scenarios, for editors and checkers
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// Run many seeds, both ends included, and say which of them fail
    #[arg(long, value_name = "FROM..TO", value_parser = crate::sim_search::seeds, conflicts_with_all = ["seed", "check", "faults_file"])]
    pub seeds: Option<std::ops::RangeInclusive<u64>>,
    /// Faults that depend on the seed: crash, partition, loss, slow, clock, schedule (another order of wake-ups)
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = crate::sim_search::kind)]
    pub faults: Vec<ring3_sim::faults::Kind>,
    /// Faults from a file that a search with --minimize has written
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "faults")]
    pub faults_file: Option<PathBuf>,
    /// A program that judges a run that went as expected: it gets the data directory, and fails if the run does
    #[arg(long, value_name = "COMMAND", requires = "seeds")]
    pub judge: Option<String>,
    /// Leave out faults of a seed that fails, one after the other, as long as it still does
    #[arg(long, requires = "seeds")]
    pub minimize: bool,
    /// Runs at a time [default: as many as there are CPUs]
    #[arg(short, long, value_name = "N", requires = "seeds")]
    pub jobs: Option<usize>,
    /// Run the seeds on the workers of a Dask cluster, which see the same folders; ADDRESS is its scheduler's
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "seeds",
        conflicts_with = "real_time"
    )]
    pub dask: Option<String>,
    /// Run on an ordinary node: time is real, and nothing repeats exactly
    #[arg(long)]
    pub real_time: bool,
    /// Write each call that the node serves to calls.trace in the data directory
    #[arg(long, conflicts_with_all = ["real_time", "seeds"])]
    pub trace: bool,
    /// Wait for gdb, which sees the kernel of all hosts as one program: breakpoints, and time stands still there
    #[arg(long, conflicts_with_all = ["real_time", "seeds"])]
    pub gdb: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub over: crate::sim_over::Overrides,
}

#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Name the first packet, sample or line in which two runs differ
    Diff(SimDiff),
}

#[derive(Debug, Args)]
pub struct SimDiff {
    /// Data directory of one run
    #[arg(value_hint = ValueHint::DirPath)]
    pub a: PathBuf,
    /// Data directory of the other
    #[arg(value_hint = ValueHint::DirPath)]
    pub b: PathBuf,
    /// Print all differences as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct SimStage {
    pub stage: String,
    pub plan: PathBuf,
    pub gate: PathBuf,
    pub node: String,
    pub runtime: PathBuf,
    pub image: Option<PathBuf>,
    #[arg(long)]
    pub host: Option<String>,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound() {
        super::Cli::command().debug_assert();
    }
}
