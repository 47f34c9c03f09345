// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: `ring3 proxy`'s relay
//!
//! A proxy is two processes. The supervisor (crate ring3-proxy) has the configuration; the relay has the clients:
//!
//! ```text
//! client ── node's Linux ── [node's socket | relay | target's socket] ── target
//!                                            │ Want, Over     ▲ a connected socket
//!                                            ▼                │
//!                                       supervisor: targets, weights, health, logs, metrics, reload
//! ```
//!
//! The relay takes part in the node (ring3_node::joined) and makes the node's calls itself. Packets of strangers reach it, so
//! it is confined once it serves: it opens no file, starts nothing, and makes no socket of the host's. Each socket to a
//! target is made by the supervisor, which knows no other addresses than its configuration's. What the two say is in wire.rs.
//!
//! | module | concept |
//! | --- | --- |
//! | [`engine`], [`ends`] | the loop: events; what is over |
//! | [`changes`] | listeners that come and go |
//! | [`clients`], [`opening`] | how connections and flows begin |
//! | [`given`] | what the supervisor gives |
//! | [`header`] | the PROXY protocol |
//! | [`sources`] | limits of one source |
//! | [`others`] | targets on other nodes |
//! | [`tally`] | what is counted |
//! | [`wall`] | the host calls that are left |
//! | [`wire`] | what the two processes say |

mod changes;
mod clients;
mod ends;
mod engine;
mod given;
mod header;
mod opening;
mod others;
mod sources;
mod tally;
pub mod wall;
pub mod wire;

use std::os::fd::{AsFd, OwnedFd};

use nix::sys::signal::{SigSet, Signal};
use ring3_config::NodeConfig;
use ring3_node::inside::Inside;
use ring3_node::joined::Joined;
use ring3_node::outside::Given;
use ring3_node::task::Task;
use rustix::event::{poll, PollFd, PollFlags};

use crate::error::{Error, Result};
use crate::feed::Feed;
use engine::Engine;
use others::Others;
use wire::{FromRelay, Line, Start, ToRelay};

/// Descriptors of a relay that are no connection's.
const OWN_DESCRIPTORS: u64 = 64;

/// The relay's process, from its start until the supervisor is gone. `socket` is its end of the pair.
pub fn relay(socket: OwnedFd) -> Result<()> {
    ring3_node::inside::close_inherited(&socket)?;
    let mut line = Line::new(socket);
    let start = hear_start(&mut line)?;
    match prepare(&start, &line) {
        Ok(ready) => {
            let run = || serve(ready, line);
            // A task belongs to one thread, and this one may be pid 1 of the relay's own node.
            std::thread::scope(|scope| {
                std::thread::Builder::new()
                    .name("ring3-relay".into())
                    .spawn_scoped(scope, run)
                    .map_err(Error::host("start a thread"))?
                    .join()
                    .unwrap_or(Err(Error::Panicked))
            })
        }
        Err(error) => {
            // The supervisor says it, if it hears it.
            let mut said = vec![FromRelay::Failed(error.to_string())];
            match line.say(&mut said, &mut Vec::new(), |_| false) {
                Ok(()) => std::process::exit(1),
                Err(_) => Err(error),
            }
        }
    }
}

fn hear_start(line: &mut Line) -> Result<Start> {
    loop {
        let mut fds = [PollFd::from_borrowed_fd(line.as_fd(), PollFlags::IN)];
        poll(&mut fds, None).map_err(Error::host("wait for the supervisor"))?;
        let heard = line.hear::<ToRelay>();
        let heard = heard.map_err(|why| Error::Supervisor { why })?;
        for it in heard.into_iter().flat_map(|(said, _)| said) {
            if let ToRelay::Start(start) = it {
                return Ok(start);
            }
        }
    }
}

/// The node that listens.
enum Ground {
    /// Another keeper's.
    Joined(Joined),
    /// This process keeps it, and nobody else is on it.
    Own(Box<Inside>),
}

impl Ground {
    fn task(&mut self) -> Result<Task> {
        match self {
            Ground::Joined(node) => node.task().ok_or(Error::Panicked),
            Ground::Own(node) => Ok(node.task()?),
        }
    }
}

/// All that needs the host's files.
struct Ready {
    node: Ground,
    others: Vec<Joined>,
    streams_max: usize,
    sends_messages: bool,
}

fn prepare(start: &Start, line: &Line) -> Result<Ready> {
    let signals = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    // They are for the supervisor, which tells: systemd sends its SIGTERM to both.
    let held: SigSet = signals.into_iter().collect();
    let fail = |why: nix::Error| Error::host("leave signals")(std_errno(why));
    held.thread_block().map_err(fail)?;
    ring3_node::raise_descriptor_limit();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let descriptors = limit.current.unwrap_or(u64::MAX);
    let others = start.others.iter().map(|name| Joined::join(name));
    let others = others.collect::<std::result::Result<Vec<Joined>, _>>()?;
    let given = match start.ports.is_empty() {
        true => None,
        false => Some(receive(start, line)?),
    };
    let joined = match given {
        Some(_) => None,
        None => Some(Joined::join(&start.node)?),
    };
    // A port of the relay's own: what there is to say of a tap is said before.
    let own = start.ports.iter();
    let sends_messages = own
        .map(|it| it.split([':', ',']).next())
        .any(|it| it != Some("tap"))
        || others.iter().chain(&joined).any(Joined::sends_messages);
    wall::limit_memory(given.is_some()).map_err(Error::host("limit the relay's memory"))?;
    ring3_sandbox::drop_capabilities().map_err(Error::Capabilities)?;
    if !ring3_sandbox::fence()? {
        log::info!("this host's kernel has no Landlock: the proxy has only its list of host calls");
    }
    let node = match (joined, given) {
        (Some(node), _) => Ground::Joined(node),
        (None, Some((config, given))) => Ground::Own(Box::new(Inside::own(config, given)?)),
        (None, None) => return Err(Error::Panicked),
    };
    Ok(Ready {
        node,
        others,
        streams_max: descriptors.saturating_sub(OWN_DESCRIPTORS) as usize,
        sends_messages,
    })
}

/// The supervisor has opened the ports of the relay's own node.
fn receive(start: &Start, line: &Line) -> Result<(NodeConfig, Given)> {
    let config = wire::own_node(start).map_err(|why| Error::Rules { why })?;
    let mut given = Given::new(&config)?;
    given.receive(&config, line.socket())?;
    Ok((config, given))
}

fn std_errno(why: nix::Error) -> ring3_node::Errno {
    ring3_node::Errno(why as i32)
}

fn serve(mut ready: Ready, line: Line) -> Result<()> {
    ring3_node::inside::prepare_thread();
    let mut task = ready.node.task()?;
    let feed = Feed::start(&mut task)?;
    let others = Others::start(&mut task, &feed, &mut ready.others)?;
    let mut engine = Engine::new(task, feed, others, line, ready.streams_max)?;
    let node = matches!(ready.node, Ground::Own(_));
    if node {
        engine.task.fix_text()?;
    }
    let messages = ready.sends_messages;
    wall::raise(wall::Needs { node, messages })?;
    engine.say(FromRelay::Serves);
    engine.run()?;
    // What is left goes with the process, as a program's does.
    std::process::exit(0)
}
