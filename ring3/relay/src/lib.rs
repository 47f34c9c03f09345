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
//! | [`engine`] | the loop: events, new connections, ends |
//! | [`feed`] | the two epoll sets as one |
//! | [`stream`] | one connection: bytes both ways, half-close, reset, back-pressure |
//! | [`flow`] | one flow of datagrams |
//! | [`slab`] | who an event is for |
//! | [`route`] | where a destination leads, and what is refused |
//! | [`tuning`] | sizes and times |

mod engine;
mod error;
mod feed;
mod flow;
mod route;
mod slab;
mod stream;
mod tuning;

use std::os::fd::OwnedFd;

use ring3_node::inside::Inside;

pub use error::{Error, Result};

use engine::Engine;

/// The process of a `host` port, from its start until its keeper is gone. `socket` is its end of the talk with the keeper.
pub fn host_port(socket: OwnedFd) -> Result<()> {
    ring3_node::raise_descriptor_limit();
    let (mut inside, talk, plan) = Inside::start(socket)?;
    let started = inside
        .task()
        .map_err(Error::from)
        .and_then(|task| Engine::new(task, &talk, plan));
    let mut engine = match started {
        Ok(engine) => engine,
        Err(error) => {
            talk.answer(Err(&error.to_string()));
            return Err(error);
        }
    };
    talk.answer(Ok(()));
    // A task belongs to one thread, and this one is the node's pid 1.
    let relay = std::thread::Builder::new()
        .name("ring3-relay".into())
        .spawn(move || inside_thread(|| engine.run()))
        .map_err(Error::host("start a thread"))?;
    relay.join().unwrap_or(Err(Error::Panicked))
}

/// Kernel code needs a stack for its faults.
fn inside_thread<T>(body: impl FnOnce() -> T) -> T {
    ring3_node::inside::prepare_thread();
    body()
}
