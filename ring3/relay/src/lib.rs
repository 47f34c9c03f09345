// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: a gateway's relay
//!
//! The gateway's node (ring3_node::inside) ends each connection of a program in the name of its destination. The relay
//! opens the same connection with a socket of the host, and passes bytes on, both ways. A datagram's source and
//! destination make a flow, which has a socket on either side, too: so both kinds are a pair of descriptors.
//!
//! ```text
//! program ── TCP ── gateway's Linux ── [node's socket | relay | host's socket] ── TCP ── destination
//! ```
//!
//! One thread does all of it. It makes node calls through its task and host calls as any program does. It sleeps in the
//! node's epoll; a helper thread sleeps in the host's, and makes a proxy file readable that is a member of the node's
//! (feed.rs). All members are edge-triggered: the relay remembers what is ready (stream.rs).
//!
//! | module | concept |
//! | --- | --- |
//! | [`engine`] | the loop: events and ends |
//! | [`begin`], [`hold`] | how programs' connections and flows begin |
//! | [`publish`], [`door`] | how those from outside begin |
//! | [`far`] | the half of a connection that is not the node's |
//! | [`feed`] | the two epoll sets as one |
//! | [`stream`] | one connection: bytes both ways, half-close, reset, back-pressure |
//! | [`flow`] | one flow of datagrams |
//! | [`guests`] | how many streams from outside there may be |
//! | [`frames`] | questions and answers over TCP |
//! | [`names`] | what may be asked of the resolver, and the addresses of names in rules |
//! | [`questions`] | which answer is which question's |
//! | [`inward`] | addresses that a name alone does not open |
//! | [`icmp`] | errors of datagrams, and echoes |
//! | [`sockets`] | those of both sides |
//! | [`slab`] | who an event is for |
//! | [`refusals`] | what was refused, counted and said |
//! | [`route`] | where a destination leads, and what is refused |
//! | [`wall`] | the host calls that are left once it serves |
//! | [`proxy`] | `ring3 proxy`: listeners on a node that is there already |
//! | [`tuning`] | sizes and times |

mod begin;
mod door;
mod engine;
mod error;
mod far;
mod feed;
mod flow;
mod frames;
mod guests;
mod hold;
mod icmp;
mod inward;
mod names;
pub mod proxy;
mod publish;
mod questions;
mod refusals;
mod route;
mod slab;
pub mod sockets;
mod stream;
mod tuning;
pub mod wall;

use std::fs::File;
use std::os::fd::OwnedFd;

use ring3_node::inside::{Inside, Ready};
use ring3_node::task::Task;
use ring3_node::{GivenLink, Plan, Talk};

pub use error::{Error, Result};

use door::Door;
use engine::Engine;

/// The process of a `host` port, from its start until its keeper is gone. `socket` is its end of the talk with the keeper.
pub fn host_port(socket: OwnedFd) -> Result<()> {
    ring3_node::inside::close_inherited(&socket)?;
    let (talk, plan, link) = Talk::hear(socket)?;
    // What fails from here on, the keeper says.
    begin(&talk, &plan, link).inspect_err(|error| talk.answer(Err(&error.to_string())))
}

fn begin(talk: &Talk, plan: &Plan, link: GivenLink) -> Result<()> {
    ring3_node::raise_descriptor_limit();
    let mut doors = Vec::new();
    for (list, is_stream) in [(&plan.tcp, true), (&plan.udp, false)] {
        let opened = door::open(list, is_stream);
        doors.extend(opened.map_err(|(what, why)| Error::Publish { what, why })?);
    }
    ring3_sandbox::drop_capabilities().map_err(Error::Capabilities)?;
    let ready = Ready::new(plan)?;
    let log = plan.log.as_ref().map(|path| {
        let opened = File::options().append(true).create(true).open(path);
        opened.map_err(|why| Error::Log {
            path: path.clone(),
            why,
        })
    });
    let log = log.transpose()?;
    // While the process has one thread: a domain of Landlock is a thread's.
    if !ring3_sandbox::fence()? {
        log::info!(
            "this host's kernel has no Landlock: the gateway has only its list of host calls"
        );
    }
    let mut inside = Inside::start(ready, plan, link)?;
    let task = inside.task()?;
    // A task belongs to one thread, and this one is the node's pid 1.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("ring3-relay".into())
            .spawn_scoped(scope, || serve(task, talk, plan, doors, log))
            .map_err(Error::host("start a thread"))?
            .join()
            .unwrap_or(Err(Error::Panicked))
    })?;
    // The keeper is gone, or wants no gateway any more. What is left of the node goes with the process, which may not
    // even close it in good order: it is confined.
    std::process::exit(0)
}

fn serve(task: Task, talk: &Talk, plan: &Plan, doors: Vec<Door>, log: Option<File>) -> Result<()> {
    // Kernel code needs a stack for its faults.
    ring3_node::inside::prepare_thread();
    let mut engine = Engine::new(task, talk, plan, doors, log)?;
    engine.task.fix_text()?;
    wall::raise()?;
    talk.answer(Ok(()));
    engine.run(talk)
}
