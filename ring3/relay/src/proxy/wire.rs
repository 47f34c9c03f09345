// SPDX-License-Identifier: GPL-2.0
//! What a proxy's two processes say to each other. Each message of the socket pair is a list (JSON), with the descriptors
//! that it speaks of, in its order.
//!
//! The relay is the one that packets of strangers reach. So what it says is no more than a wish: the other answers with
//! sockets that its own configuration names, whatever the relay asks.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ring3_config::{NodeConfig, PortSpec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Bytes of one message; less than a socket's buffer takes by default (net.core.wmem_default).
const MESSAGE_MAX: usize = 128 << 10;
/// Things that are said in one message. A connection's are below 1 KB.
const BATCH: usize = 64;
/// Descriptors of one message (SCM_MAX_FD is 253).
const FDS_MAX: usize = BATCH;

/// The number of a listener, and of one of its targets: no other has it later.
pub type ListenerId = u32;
pub type TargetId = u32;
/// Of a connection, or of a flow, that the relay asks for.
pub type Ask = u64;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The node that listens.
    pub node: String,
    /// Its ports, if it is the relay's own: their descriptors come in a message of their own (ring3_node::outside).
    pub ports: Vec<String>,
    /// Nodes that targets are on.
    pub others: Vec<String>,
}

/// A proxy's own node.
pub fn own_node(start: &Start) -> Result<NodeConfig, &'static str> {
    let mut config = NodeConfig::new(start.node.clone());
    let ports = start.ports.iter().map(|text| text.parse::<PortSpec>());
    config.ports = ports
        .collect::<Result<_, _>>()
        .map_err(|_| "a port makes no sense")?;
    config.sysctls = vec![("net.ipv4.tcp_syncookies".into(), "1".into())];
    Ok(config)
}

/// A listener, as the relay has to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    pub id: ListenerId,
    pub is_stream: bool,
    pub address: Option<IpAddr>,
    pub port: u16,
    /// Clients begin with a header of the PROXY protocol.
    pub proxy_in: bool,
    /// Targets are told so, in this version: 1 or 2.
    pub proxy_out: Option<u8>,
    pub connect_ms: u64,
    pub idle_ms: Option<u64>,
    /// Of each source: at one time, new ones in a second, bytes in a second.
    pub connections: Option<u32>,
    pub rate: Option<u32>,
    pub bytes: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToRelay {
    Start(Start),
    /// These listeners, and no others.
    Listen(Vec<Listen>),
    /// A socket that connects to a target comes with this; or it is another node's, by its number in [`Start::others`].
    Take {
        ask: Ask,
        target: TargetId,
        node: Option<(usize, SocketAddr)>,
    },
    /// No target is left.
    Nothing {
        ask: Ask,
    },
    /// How much has there been?
    Tell,
    /// No more clients.
    Drain,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum FromRelay {
    Serves,
    /// It does not, and ends.
    Failed(String),
    /// The listeners are as was said, but for these.
    Listening(Vec<String>),
    Want {
        ask: Ask,
        listener: ListenerId,
        client: SocketAddr,
        /// Targets that have not answered.
        tried: Vec<TargetId>,
    },
    /// The client has gone before the socket to this target came.
    Unused {
        ask: Ask,
        target: TargetId,
    },
    Over(Over),
    Told(Box<Told>),
    /// Nothing is left.
    Empty,
}

/// A connection or flow that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Over {
    pub ask: Ask,
    pub listener: ListenerId,
    pub target: Option<TargetId>,
    pub client: SocketAddr,
    /// Bytes from the client, and from the target.
    pub sent: u64,
    pub received: u64,
    pub ms: u64,
    pub end: End,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Both sides have said their last byte.
    Done,
    /// One side failed, and the other was reset.
    Reset,
    Idle,
    /// No target answered.
    NoTarget,
    /// The client went before a target answered.
    ClientGone,
    /// No header of the PROXY protocol.
    BadHeader,
    /// More than one source may.
    Connections,
    Rate,
    /// The proxy has as many as it can have.
    Full,
}

impl End {
    pub const ALL: [End; 9] = [
        End::Done,
        End::Reset,
        End::Idle,
        End::NoTarget,
        End::ClientGone,
        End::BadHeader,
        End::Connections,
        End::Rate,
        End::Full,
    ];

    /// As logs and metrics have it.
    pub fn word(self) -> &'static str {
        match self {
            End::Done => "done",
            End::Reset => "reset",
            End::Idle => "idle",
            End::NoTarget => "no_target",
            End::ClientGone => "client_gone",
            End::BadHeader => "bad_header",
            End::Connections => "connections",
            End::Rate => "rate",
            End::Full => "full",
        }
    }
}

/// Of all listeners together or of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub listeners: Vec<(ListenerId, Counts)>,
    /// Round trips of clients' connections as they ended, by TCP_INFO's tcpi_rtt: (at most so many us, how many), the
    /// last without a bound; and their sum in us.
    pub rtt: Vec<u64>,
    pub rtt_sum: u64,
    /// Segments that such connections sent again.
    pub retransmits: Vec<u64>,
    pub retransmits_sum: u64,
}

/// Upper bounds of [`Told::rtt`]'s parts, us; the last part has none.
pub const RTT_BOUNDS: [u64; 9] = [50, 100, 250, 500, 1000, 5000, 25_000, 100_000, 500_000];
/// The same of [`Told::retransmits`], segments.
pub const RETRANSMIT_BOUNDS: [u64; 5] = [0, 1, 4, 16, 64];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Accepted, or flows that began.
    pub began: u64,
    pub active: u64,
    pub sent: u64,
    pub received: u64,
}

/// One end of the pair.
#[derive(Debug)]
pub struct Line {
    socket: OwnedFd,
    /// What the socket has not taken.
    waits: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    /// Room for what is heard.
    text: Vec<u8>,
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A list of things that are said, and the descriptors that came with it.
pub type Heard<T> = (Vec<T>, Vec<OwnedFd>);

/// The other end is gone, or says what nobody understands.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("the other end has gone")]
    Gone,
    #[error("what it said makes no sense: {0}")]
    Nonsense(String),
}

impl Line {
    pub fn new(socket: OwnedFd) -> Line {
        Line {
            socket,
            waits: VecDeque::new(),
            text: vec![0; MESSAGE_MAX],
        }
    }

    /// For a message that is none of these.
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Messages that wait for the other end to listen.
    pub fn waiting(&self) -> usize {
        self.waits.len()
    }

    /// Says all that is in `said`, in as few messages as will do; `fds` are those of it, in order.
    pub fn say<T: Serialize>(
        &mut self,
        said: &mut Vec<T>,
        fds: &mut Vec<OwnedFd>,
        has_fd: impl Fn(&T) -> bool,
    ) -> Result<(), Broken> {
        let mut fds = fds.drain(..);
        for part in said.chunks(BATCH) {
            let text = serde_json::to_vec(part).map_err(|why| Broken::Nonsense(why.to_string()))?;
            let count = part.iter().filter(|it| has_fd(it)).count();
            let own = fds.by_ref().take(count).collect();
            self.waits.push_back((text, own));
        }
        said.clear();
        self.flush()
    }

    /// Says what waits. Fine if the other end does not listen now.
    pub fn flush(&mut self) -> Result<(), Broken> {
        while let Some((text, fds)) = self.waits.front() {
            let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let sent = match fds.is_empty() {
                // The relay has no sendmsg() (wall.rs).
                true => rustix::net::send(&self.socket, text, flags),
                false => send_with(&self.socket, text, &fds, flags),
            };
            match sent {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::TOOMANYREFS) => return Ok(()),
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    return Err(Broken::Gone)
                }
                Err(why) => return Err(Broken::Nonsense(why.to_string())),
            }
            self.waits.pop_front();
        }
        Ok(())
    }

    /// One message, if there is one. Descriptors that did not fit into this process are missing at the end of the list.
    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<Option<Heard<T>>, Broken> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = rustix::net::recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut self.text)],
            &mut ancillary,
            flags,
        );
        let len = match got {
            Ok(got) if got.bytes == 0 => return Err(Broken::Gone),
            Ok(got) => got.bytes,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(None),
            Err(rustix::io::Errno::CONNRESET) => return Err(Broken::Gone),
            Err(why) => return Err(Broken::Nonsense(why.to_string())),
        };
        let fds = ancillary
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        let said = serde_json::from_slice(&self.text[..len]);
        let said = said.map_err(|why| Broken::Nonsense(why.to_string()))?;
        Ok(Some((said, fds)))
    }
}

/// One message with descriptors.
fn send_with(
    to: &OwnedFd,
    text: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(fds));
    rustix::net::sendmsg(to, &[IoSlice::new(text)], &mut ancillary, flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    fn pair() -> (Line, Line) {
        let flags = SocketFlags::CLOEXEC;
        let kind = SocketType::SEQPACKET;
        let (a, b) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        (Line::new(a), Line::new(b))
    }

    #[test]
    fn descriptors_come_with_their_messages() {
        let (mut from, mut to) = pair();
        let mut said: Vec<ToRelay> = (0..100)
            .flat_map(|ask| {
                let (target, node) = (7, None);
                [
                    ToRelay::Take { ask, target, node },
                    ToRelay::Nothing { ask },
                ]
            })
            .collect();
        let mut fds: Vec<OwnedFd> = (0..100)
            .map(|_| rustix::io::dup(from.as_fd()).unwrap())
            .collect();
        let has_fd = |it: &ToRelay| matches!(it, ToRelay::Take { .. });
        from.say(&mut said, &mut fds, has_fd).unwrap();
        assert!(said.is_empty() && fds.is_empty());
        let mut heard = 0;
        while let Some((said, fds)) = to.hear::<ToRelay>().unwrap() {
            assert_eq!(said.iter().filter(|it| has_fd(it)).count(), fds.len());
            heard += fds.len();
        }
        assert_eq!(heard, 100);
        drop(from);
        assert_eq!(to.hear::<ToRelay>().unwrap_err(), Broken::Gone);
    }

    #[test]
    fn nonsense_is_an_error() {
        let (from, mut to) = pair();
        rustix::net::send(&from, b"[{\"Nothing\":{}}]", SendFlags::empty()).unwrap();
        assert!(matches!(to.hear::<ToRelay>(), Err(Broken::Nonsense(_))));
    }
}
