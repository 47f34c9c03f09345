// SPDX-License-Identifier: GPL-2.0
//! What is counted and said.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Written by the agent, read by others. Datagrams, or chunks of streams.
#[derive(Debug, Default)]
pub struct Numbers {
    /// That came.
    pub received: AtomicU64,
    /// That went, a copy for each target.
    pub sent: AtomicU64,
    /// That the handler let go to no target.
    pub dropped: AtomicU64,
    /// For which there was no room: the target's link or socket was full.
    pub full: AtomicU64,
    /// That a target refused.
    pub refused: AtomicU64,
    /// Lost with the call that was cut off, and all that came after it, where those are dropped.
    pub cut: AtomicU64,
    /// Connections that were accepted.
    pub streams: AtomicU64,
    /// The agent is to end.
    pub ends: AtomicBool,
}

/// By the only thread that writes it.
pub fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Numbers {
    pub fn line(&self) -> String {
        let get = |number: &AtomicU64| number.load(Ordering::Relaxed);
        format!(
            "received {} sent {} dropped {} full {} refused {} cut {} streams {}\n",
            get(&self.received),
            get(&self.sent),
            get(&self.dropped),
            get(&self.full),
            get(&self.refused),
            get(&self.cut),
            get(&self.streams),
        )
    }
}

/// `udp 0.0.0.0:5000 to 10.0.0.2:5000, 10.0.0.3:5000`
pub fn way(is_stream: bool, listen: SocketAddr, targets: &[SocketAddr]) -> String {
    let kind = if is_stream { "tcp" } else { "udp" };
    let targets: Vec<String> = targets.iter().map(SocketAddr::to_string).collect();
    format!("{kind} {listen} to {}", targets.join(", "))
}
