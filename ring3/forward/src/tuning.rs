// SPDX-License-Identifier: GPL-2.0
//! Sizes and times.

use std::time::Duration;

/// Datagrams of one turn: NAPI's budget, since more can't have come at once.
pub const BATCH: usize = 64;
/// The longest datagram that UDP over IPv6 carries (RFC 8200: 65535 - 8), more than IPv4's.
pub const DATAGRAM: usize = 65527;
/// From one buffer to the next: an odd number of cache lines, so that the heads of datagrams don't share cache sets.
pub const STRIDE: usize = 65536 + 64;
/// Bytes of a socket's queue: some 10 ms at 3 Gbit/s. As root; others get what net.core.rmem_max allows.
pub const QUEUE: i32 = 4 << 20;
/// Bytes of a stream that are read at once: a segment of 64 KiB.
pub const CHUNK: usize = 65536;
/// What a handler may add to a chunk.
pub const CHUNK_ROOM: usize = CHUNK + 4096;
/// Clients that wait to be accepted.
pub const BACKLOG: i32 = 1024;
/// Clients that are accepted, and chunks of one stream that are moved, before others have their turn.
pub const ACCEPTS: usize = 64;
pub const TURNS: usize = 16;
/// Events that are taken at once.
pub const EVENTS: usize = 256;
/// Connections at one time: with one target two descriptors each, below the usual hard limit of 2^20.
pub const STREAMS: usize = 200_000;
/// The watchdog sleeps after so many turns without a call.
pub const QUIET_TURNS: u32 = 100;
/// A call that waits for the host uses no time of the processor; after so many budgets it is cut off as well.
pub const ASLEEP: u32 = 100;
/// How often the agent is looked after.
pub const LOOK: Duration = Duration::from_secs(1);
pub const NUDGE: Duration = Duration::from_millis(5);
/// How often a handler's open() is looked after.
pub const OPENING: Duration = Duration::from_millis(10);
/// The time that an agent has for its end, beside two budgets. Without a handler it takes less than 10 ms.
pub const END: Duration = Duration::from_secs(5);
/// A target behind the first may take nothing while others wait for it, and go on after all else of its stream is over: as long
/// as Linux keeps half-closed connections that nobody has open (net.ipv4.tcp_fin_timeout).
pub const LINGER: Duration = Duration::from_secs(60);
