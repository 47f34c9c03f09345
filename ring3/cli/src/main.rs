// SPDX-License-Identifier: GPL-2.0
//! The `ring3` command.
//!
//! | module | concept |
//! | --- | --- |
//! | [`args`], [`help`], [`man`] | what can be typed, and the words about it |
//! | [`node_args`] | from what was typed to a node's configuration |
//! | [`program`] | the program to run, and the gate in front of it |
//! | [`run`], [`up`] | a node for one program; a node that stays |
//! | [`sandbox`] | the same for a program that nobody trusts |
//! | [`compose`] | the nodes of one file |
//! | [`interrupt`] | a start that is interrupted |
//! | [`supervise`] | the programs that a node starts with, and starting them again |
//! | [`proxy`] | clients of a node, for targets elsewhere |
//! | [`forward`] | packets from a node on to other machines |
//! | [`reach`] | from the host into a node: connect, publish, socks, wait, console |
//! | [`capture`] | what crosses an interface |
//! | [`nodes`], [`users`], [`node_log`] | looking at nodes, taking them down |
//! | [`graph`] | nodes and links as a picture |
//! | [`completion`] | scripts for shells |
//! | [`top`] | what all nodes do, on a screen |
//! | [`watch`] | what a node does, as it does it |
//! | [`metrics`] | what the nodes count, for Prometheus |
//! | [`sim`], [`sim_over`], [`sim_progress`], [`sim_search`] | simulated networks |
//! | [`perf`], [`symbols`] | a kernel's functions by name, for perf |
//! | [`kunit`] | the kernel's own tests |
//! | [`doctor`] | what the host offers |
//! | [`say`] | words for people, which nobody has to take |
//! | [`leaf`] | everything unsafe |
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod capture;
mod completion;
mod compose;
mod debug;
mod doctor;
mod error;
mod forward;
mod graph;
mod help;
mod interrupt;
mod kunit;
mod leaf;
mod logger;
mod man;
mod metrics;
mod names;
mod node_args;
mod node_log;
mod nodes;
mod notify;
mod perf;
mod ports;
mod program;
mod proxy;
mod reach;
mod run;
mod sandbox;
mod say;
mod signals;
mod sim;
mod sim_dask;
mod sim_over;
mod sim_progress;
mod sim_search;
mod supervise;
mod symbols;
mod table;
mod top;
mod up;
mod users;
mod watch;

use std::process::ExitCode;

use nix::sys::resource::{getrlimit, Resource};
use nix::sys::signal::SigSet;

use args::Verb;
use error::{Failure, Manner, Result};

/// Below a limit of this many bytes the command needs a stack of its own: reading its arguments takes some 100 KiB. Chosen.
const STACK_SMALL: u64 = 1 << 20;
/// Bytes of that stack. Chosen: as much as most hosts give.
const STACK_OWN: usize = 8 << 20;

/// The limit of `ulimit -s` is meant for the program, which gets it unchanged.
fn main() -> ExitCode {
    let limit = getrlimit(Resource::RLIMIT_STACK);
    if limit.map_or(true, |(soft, _)| soft >= STACK_SMALL) {
        return command();
    }
    let thread = std::thread::Builder::new().stack_size(STACK_OWN);
    match thread.spawn(command) {
        Ok(thread) => {
            // Signals are the other thread's, as they are for a command without this one.
            let _ = SigSet::all().thread_block();
            thread.join().unwrap_or(ExitCode::FAILURE)
        }
        // No memory, or no more threads: it may go well.
        Err(_) => command(),
    }
}

fn command() -> ExitCode {
    let cli = help::parse();
    logger::start();
    let manner = match cli.verb {
        Verb::Run(_) | Verb::Exec(_) | Verb::Debug(_) => Manner::Program,
        _ => Manner::Plain,
    };
    if has_children(&cli.verb) {
        leaf::wait_for_children();
    }
    let status = match refuse_on_node(&cli.verb).and_then(|()| dispatch(cli.verb)) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            if !matches!(failure, Failure::Said) {
                say::complain(&failure);
            }
            ExitCode::from(failure.status(manner))
        }
    };
    say::finish();
    status
}

/// True for verbs that start processes and wait for them. `exec` becomes its program, and waits for none.
fn has_children(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Run(_)
            | Verb::Up(_)
            | Verb::Compose(_)
            | Verb::Doctor(_)
            | Verb::Kunit(_)
            | Verb::Perf(_)
            | Verb::Capture(_)
            | Verb::HostPort
            | Verb::Proxy(_)
            | Verb::Forward(_)
            | Verb::Man
            | Verb::Ls(_)
            | Verb::Sim(_)
            | Verb::SimStage(_)
    )
}

/// A process on a node has its gate, which keeps the places of other nodes and of other gates free.
fn refuse_on_node(verb: &Verb) -> Result<()> {
    let verb = match verb {
        Verb::Run(_) => "run",
        Verb::Exec(_) => "exec",
        Verb::Up(_) => "up",
        Verb::Compose(_) => "compose",
        Verb::Connect(_) => "connect",
        Verb::Socks(_) => "socks",
        Verb::Publish(_) => "publish",
        Verb::Console(_) => "console",
        Verb::Wait(_) => "wait",
        Verb::Port(_) => "port",
        Verb::Proxy(_) => "proxy",
        Verb::Forward(_) => "forward",
        // It would find what the gate has taken, and blame the host.
        Verb::Doctor(_) => "doctor",
        Verb::Kunit(args) if args.from.is_none() => "kunit",
        // Its hosts are namespaces, which the host refuses to a process of a node.
        Verb::Sim(args) if sim::starts_one(args) => "sim",
        _ => return Ok(()),
    };
    match program::is_on_node() {
        true => Err(Failure::OnNode { verb }),
        false => Ok(()),
    }
}

/// Standard input is the talk with the process that has started this one.
fn inherited() -> Result<std::os::fd::OwnedFd> {
    use std::os::fd::AsFd;
    let input = std::io::stdin();
    let copy = input.as_fd().try_clone_to_owned();
    copy.map_err(Failure::host("hear the process that started this one"))
}

fn dispatch(verb: Verb) -> Result<u8> {
    let done = match verb {
        Verb::Run(args) => return run::run(&args),
        Verb::Exec(args) => return run::exec(&args),
        Verb::Up(args) => up::up(&args),
        Verb::Compose(args) => compose::compose(&args),
        Verb::Connect(args) => return reach::connect(&args),
        Verb::Socks(args) => return reach::socks(&args),
        Verb::Publish(args) => return reach::publish(&args),
        Verb::Console(args) => return reach::console(&args),
        Verb::Capture(args) => capture::capture(&args),
        Verb::Wait(args) => return reach::wait(&args),
        Verb::OnNode(args) => return reach::inside(&args),
        Verb::Debug(args) => return debug::debug(&args),
        Verb::Port(args) => ports::port(&args),
        Verb::Down(args) => nodes::down(&args),
        Verb::Ls(args) => nodes::ls(&args),
        Verb::Graph(args) => graph::graph(&args),
        Verb::Stat(args) => nodes::stat(&args),
        Verb::Top(args) => top::top(&args),
        Verb::Metrics(args) => metrics::metrics(&args),
        Verb::Log(args) => node_log::log(&args),
        Verb::HostPort => Ok(ring3_relay::host_port(inherited()?)?),
        Verb::VhostPort => Ok(ring3_vhost::vhost_port(inherited()?)?),
        Verb::Proxy(args) => proxy::proxy(&args),
        Verb::Forward(args) => return forward::forward(&args),
        Verb::ProxyRelay => Ok(ring3_relay::proxy::relay(inherited()?)?),
        Verb::Perf(args) => return perf::perf(&args),
        Verb::Sim(args) => return sim::sim(&args),
        Verb::SimStage(args) => return sim::stage(&args),
        Verb::Kunit(args) => kunit::kunit(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::Completion(args) => completion::completion(&args),
        Verb::Man => man::man(),
    };
    done.map(|()| 0)
}
