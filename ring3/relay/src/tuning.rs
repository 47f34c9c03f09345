// SPDX-License-Identifier: GPL-2.0
//! Sizes and times of the relay.

use std::time::Duration;

/// Bytes of one read: what a receive queue typically holds of a fast stream, and more than any datagram.
pub const CHUNK: usize = 256 << 10;
/// Chunks that one connection may pass on before others have their turn.
pub const TURNS: usize = 4;
/// Datagrams that one socket may pass on before others have their turn.
pub const DATAGRAMS: usize = 64;
/// Bytes of a node's socket that gets the first datagram of every flow (SO_RCVBUFFORCE; Linux takes twice that for them and
/// their heads). With net.core.rmem_default, 212992, 592 of 900 clients' datagrams were lost that came at once.
pub const FIRST_DATAGRAMS_BYTES: i32 = 4 << 20;
/// Events of one look at a set.
pub const EVENTS: usize = 256;
/// Connections that may wait to be accepted; net.core.somaxconn is the limit.
pub const BACKLOG: i32 = 4096;
/// A flow without an answer ends after so long without a datagram (nf_conntrack_udp_timeout).
pub const FLOW_IDLE: Duration = Duration::from_secs(30);
/// One that has been answered (nf_conntrack_udp_timeout_stream).
pub const FLOW_IDLE_ANSWERED: Duration = Duration::from_secs(120);
/// How often idle flows are looked for.
pub const SWEEP: Duration = Duration::from_secs(5);
/// Flows at one time; beyond it a datagram of a new one is dropped. Each has a descriptor on either side.
pub const FLOWS_MAX: usize = 16384;
/// Where all flows are taken, so many of the most idle ones end for a new one, those without an answer first.
pub const FLOWS_SHARE: usize = FLOWS_MAX / 16;
/// Connections from outside at one time, and those of one address (of IPv6: of one network of 64 bits); beyond it they are
/// reset. Each has a descriptor on either side.
pub const GUESTS_MAX: u32 = 32768;
pub const GUESTS_OF_ONE: u32 = 16384;
/// A peer that says nothing for so long is asked whether it is there (tcp_keepalive_time is 2 hours) ...
pub const ALIVE_IDLE: Duration = Duration::from_secs(600);
/// ... so often, and given up after so many questions (tcp_keepalive_intvl, tcp_keepalive_probes).
pub const ALIVE_TURN: Duration = Duration::from_secs(75);
pub const ALIVE_TURNS: u32 = 9;
/// Connections that one listener may accept before others have their turn.
pub const ACCEPTS: usize = 64;
/// Addresses of names in rules at one time; beyond it a name's new addresses are not allowed.
pub const NAMED_MAX: usize = 16384;
/// Questions that wait for an answer at one time, each of up to 0.4 KB; beyond it the oldest gets none.
pub const QUESTIONS_MAX: usize = 4096;
/// An address holds at least so long (a resolver's 0 s would be over before the connection begins) and at most so long
/// (BIND's max-cache-ttl is a week).
pub const NAME_LEAST: Duration = Duration::from_secs(10);
pub const NAME_MOST: Duration = Duration::from_secs(86_400);
/// Runs of echo requests at one time, and how long one lasts without a request.
pub const PINGS_MAX: usize = 256;
pub const PING_IDLE: Duration = Duration::from_secs(30);
/// SYNs that may wait for the host's answer; more are accepted first and connected then.
pub const HELD_MAX: u32 = 16384;
/// A connection that the host has made, and whose program never came for it, ends after so long.
pub const UNCLAIMED: Duration = Duration::from_secs(30);
/// Lines about refusals in each second; the rest is counted.
pub const REFUSALS_SAID: u32 = 10;
/// The same in a file of their own: 200 KB a second. Their numbers tell how many were left out.
pub const REFUSALS_FILED: u32 = 1000;
/// Bytes of that file; what comes then is not written, as of a gateway's flows.jsonl (ring3-node's flows.rs).
pub const REFUSALS_BYTES: u64 = 64 << 20;
/// A proxy's sources with an account at one time (some 100 bytes each).
pub const SOURCES_MAX: usize = 65536;
/// How often connections of a proxy are looked at whose target has not answered, or whose client has sent no header ...
pub const OPENINGS_TURN: Duration = Duration::from_millis(100);
/// ... and those that have to wait for their bytes.
pub const BYTES_TURN: Duration = Duration::from_millis(20);
/// A client has so long for its header of the PROXY protocol (HAProxy asks for a time-out of at least 3 s, for a SYN that is
/// sent again).
pub const HEADER_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that all of a proxy's connections together hold for receivers that do not read; beyond it each reads no more than
/// CHUNK_SMALL at once.
pub const HELD_BYTES: usize = 64 << 20;
pub const CHUNK_SMALL: usize = 16 << 10;
/// Datagrams of a flow that wait for its target's socket.
pub const DATAGRAMS_HELD: usize = 16;
/// Bytes of all such; beyond it a datagram is lost. Without a bound 16384 flows could hold 16 GB.
pub const DATAGRAM_BYTES_HELD: usize = 16 << 20;
/// What a proxy's process may take beyond what it has when it begins to serve: bytes of address space.
pub const PROXY_MEMORY: u64 = 1 << 30;
