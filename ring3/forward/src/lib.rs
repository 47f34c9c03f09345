// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the agent of `ring3 forward`
//!
//! The agent is a program on the node: the command starts itself again behind the gate (`ring3 on-node forward`), so that
//! each socket here is the node's and each call on it a function call into the node's kernel. One thread, the *agent*, does
//! everything to a packet. It waits in the node's recvmmsg() or epoll_wait(); while it waits it polls the node's ports, takes
//! the packet from the wire, and runs the node's Linux up to the socket. Then it calls the handler, and runs Linux down to
//! the next wire. Nothing is scheduled in between.
//!
//! ```text
//! port ── Linux ── recvmmsg ── handler ── sendmmsg ── Linux ── port        one thread, one batch of packets
//! ```
//!
//! The handler is the user's shared object (`include/ring3_forward.h`). A call of it has a budget of time. A second thread,
//! the *watchdog*, looks whether the same call goes on for too long, and has the agent leave it: a signal, whose handler puts
//! the agent back to where it called ([`cut`]). The handler is not called again after that.
//!
//! The same agent runs on the host, as `ring3 on-node forward` without a gate: the bench compares both.
//!
//! | module | concept |
//! | --- | --- |
//! | [`udp`] | datagrams, in batches |
//! | [`tcp`] | streams: who is accepted, and when they end |
//! | [`stream`] | one of them: half-close, reset, back-pressure |
//! | [`handler`] | the shared object |
//! | [`cut`] | the call that can be left |
//! | [`watchdog`] | the budget |
//! | [`batch`] | recvmmsg, sendmmsg |
//! | [`numbers`] | what is counted and said |
//! | [`tuning`] | sizes and times |
//!
//! Unsafe code lies in `batch`, `cut`, `handler` and `leaf`.

mod batch;
mod cut;
mod error;
mod handler;
mod leaf;
mod numbers;
mod stream;
mod tcp;
mod tuning;
mod udp;
mod watchdog;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{mpsc, Arc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use error::{Error, Result};
pub use leaf::run_in_real_time;

use handler::Handler;
use numbers::Numbers;
use watchdog::Watchdog;

/// What becomes of packets once the handler was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterCut {
    Drop,
    Pass,
}

/// What the agent is to do.
#[derive(Debug, Clone)]
pub struct Order {
    pub is_stream: bool,
    pub listen: SocketAddr,
    pub targets: Vec<SocketAddr>,
    pub handler: Option<PathBuf>,
    /// For the handler's open().
    pub words: String,
    pub budget: Duration,
    pub after_cut: AfterCut,
    /// Numbers are said so often; `None`: at the end.
    pub stats: Option<Duration>,
}

/// As many as a handler's verdict has bits.
pub const TARGETS_MAX: usize = 64;
/// Without --budget: some hundred times what a packet takes.
pub const BUDGET: Duration = Duration::from_millis(1);

/// Runs until SIGTERM or SIGINT. `say` is for a person, `out` for the numbers.
pub fn run(order: &Order, say: fn(String), out: fn(String)) -> Result<()> {
    let numbers = Arc::new(Numbers::default());
    // The agent's signals: those that end it are waited for by this thread alone.
    leaf::hold_back_ends()?;
    // Threads of one real-time priority don't interrupt each other: the watchdog and this thread have a higher one.
    let place = leaf::rise_above_agent()?;
    let dog = Arc::new(Watchdog::new(order, numbers.clone(), say));
    let (with, seen, guard) = (order.clone(), numbers.clone(), dog.clone());
    let (tell, told) = mpsc::channel();
    let agent = thread("ring3-forward", move || -> Result<()> {
        leaf::descend(place)?;
        let (handler, sockets) = open(&with, say)?;
        // The other end waits for it.
        let _ = tell.send(());
        let caller = watchdog::Caller::new(handler, guard, with.after_cut, &seen);
        match sockets {
            Sockets::Udp(agent) => agent.run(caller, &seen),
            Sockets::Tcp(agent) => agent.run(caller, &seen),
        }
    })?;
    loop {
        match told.recv_timeout(tuning::OPENING) {
            Ok(()) => break,
            Err(mpsc::RecvTimeoutError::Disconnected) => return joined(agent),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        if leaf::wait_for_end(Duration::ZERO)? {
            say("the handler's open() goes on: ended without it".into());
            leaf::exit_at_once();
        }
    }
    if order.handler.is_some() {
        let dog = dog.clone();
        thread("ring3-budget", move || dog.watch())?;
    }
    out(format!(
        "forwarding {}\n",
        numbers::way(order.is_stream, order.listen, &order.targets)
    ));
    let mut due = order.stats.map(|every| Instant::now() + every);
    while !agent.is_finished() {
        let left = |due: Instant| due.saturating_duration_since(Instant::now());
        if leaf::wait_for_end(due.map_or(tuning::LOOK, left).min(tuning::LOOK))? {
            break;
        }
        if let Some(every) = order
            .stats
            .filter(|_| due.map(left) == Some(Duration::ZERO))
        {
            out(numbers.line());
            due = Some(Instant::now() + every);
        }
    }
    numbers.ends.store(true, Ordering::Release);
    let patience = tuning::END + 2 * order.budget;
    let end = Instant::now() + patience;
    // It may be just before its wait: the signal is repeated until it was seen.
    while !agent.is_finished() {
        if Instant::now() >= end {
            // A call that was cut off may have left a lock of the allocator's, and close() has no budget.
            out(numbers.line());
            say(format!(
                "the agent does not end within {patience:?}: the handler's close() goes on, or holds what the agent waits for"
            ));
            leaf::exit_at_once();
        }
        cut::nudge();
        std::thread::sleep(tuning::NUDGE);
    }
    let done = joined(agent);
    out(numbers.line());
    done
}

fn thread<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(body).map_err(Error::host("start a thread"))
}

fn joined(agent: JoinHandle<Result<()>>) -> Result<()> {
    agent.join().unwrap_or(Err(Error::Panicked))
}

/// By the agent's thread: open() and packet() of a handler are called by one.
fn open(order: &Order, say: fn(String)) -> Result<(Option<Handler>, Sockets)> {
    let handler = order.handler.as_ref().map(|path| {
        let targets = order.targets.len() as u32;
        Handler::open(path, &order.words, targets)
    });
    let handler = handler.transpose()?;
    let sockets = match order.is_stream {
        true => Sockets::Tcp(tcp::Agent::open(order, say)?),
        false => Sockets::Udp(udp::Agent::open(order)?),
    };
    cut::install()?;
    Ok((handler, sockets))
}

/// Calls a handler so often with a packet of 64 bytes: cycles of the TSC, and the time. For examples/upcall.rs.
pub fn calls(path: &std::path::Path, count: u64) -> Result<(u64, Duration)> {
    let mut handler = Handler::open(path, "", 1)?;
    let (mut bytes, name) = ([0; 64], leaf::Name::none());
    let (start, cycles) = (std::time::Instant::now(), leaf::cycles());
    for _ in 0..count {
        let about = handler::About {
            stream: 0,
            is_back: false,
            from: &name,
        };
        cut::begin_call();
        std::hint::black_box(handler.call(&mut bytes, 64, about));
    }
    let done = (leaf::cycles() - cycles, start.elapsed());
    handler.close();
    Ok(done)
}

enum Sockets {
    Udp(udp::Agent),
    Tcp(tcp::Agent),
}
