// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: the `host` port, the keeper's half
//!
//! The keeper starts a process, the gateway (`ring3 host-port`), and makes a link with it:
//!
//! ```text
//! program's node ── link ── gateway's node ── relay ── the host's sockets
//! └── keeper ──┘            └───────── gateway ─────────┘
//! ```
//!
//! The gateway keeps a node of its own, whose Linux terminates the program's connections, whatever
//! their destination; the relay joins each with a socket of the host. So the packets of the program
//! reach only a process that can be confined.
//!
//! The two speak over a socket pair, a message each:
//!
//! ```text
//! keeper  -> gateway   the plan (JSON) with the link's memory
//! gateway -> keeper    "+": it serves; "-" and words: it does not
//! keeper  -> gateway   the host's resolver (JSON), when that is another: a confined gateway reads no file
//! ```
//!
//! The gateway writes its messages into a pipe (words.rs). It ends when the keeper's end of the
//! socket is closed. When the gateway ends first, the thread `ring3-host` takes the link's far end
//! down: the interface loses its carrier, and programs see an unreachable network.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use ring3_config::{PortSpec, Publish, Rule};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::{RecvFlags, SendFlags};
use serde::{Deserialize, Serialize};

use crate::drivers::Driver;
use crate::elf;
use crate::error::{Error, Result};
use crate::resolver;
use crate::window::LinkMemory;

use super::confined::{self, Process, MESSAGE_MAX};
use super::given::{self, GivenLink};
use super::words::Words;
use super::{handover, passt};

/// The hidden subcommand that becomes the gateway.
const VERB: &str = "host-port";
/// What a gateway is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The node's name and its port's, for messages.
    pub node: String,
    /// Addresses of the node, and of the gateway on the link.
    pub addrs: Vec<IpNet>,
    pub gateways: Vec<IpNet>,
    /// The gateway's address leads to the host's loopback.
    pub loopback: bool,
    /// Published ports, as ring3_config::Publish is written; rules, as ring3_config::Rule.
    pub tcp: Vec<String>,
    pub udp: Vec<String>,
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// A file for a line of JSON about each refusal.
    pub log: Option<PathBuf>,
    pub image: Option<PathBuf>,
    /// The resolver that the host uses now.
    pub resolver: IpAddr,
}

#[derive(Debug)]
pub(crate) struct HostPort {
    link: GivenLink,
    child: Option<Child>,
    /// Closing it ends the gateway.
    talk: Option<OwnedFd>,
    watch: Option<Driver>,
    leaving: Arc<AtomicBool>,
}

/// Addresses of the node's end, and the gateway's with the prefix of their network.
pub(crate) fn plan(addrs: &[IpNet], gw: &[IpAddr]) -> (passt::Plan, Vec<IpNet>) {
    let ends = passt::plan(addrs, gw);
    let network = |gw: &IpAddr| {
        let net = ends.addrs.iter().find(|net| net.contains(gw));
        let prefix = net.map_or(64, IpNet::prefix_len);
        IpNet::new(*gw, prefix).ok()
    };
    let gateways = ends.gw.iter().filter_map(network).collect();
    (ends, gateways)
}

/// The gateway's addresses of a `host` port.
pub fn gateways(spec: &PortSpec) -> Vec<IpAddr> {
    plan(&spec.addrs, &spec.gw).0.gw
}

impl Plan {
    /// For a port of node `node`, whose ends are these.
    pub(crate) fn new(
        node: &str,
        spec: &PortSpec,
        addrs: &[IpNet],
        gateways: Vec<IpNet>,
        image: Option<&Path>,
    ) -> Plan {
        let strings = |rules: &[Rule]| rules.iter().map(Rule::to_string).collect();
        let published = |list: &[Publish]| list.iter().map(Publish::to_string).collect();
        Plan {
            node: node.to_owned(),
            addrs: addrs.to_vec(),
            gateways,
            loopback: spec.loopback == Some(true),
            tcp: published(&spec.tcp),
            udp: published(&spec.udp),
            allow: strings(&spec.allow),
            deny: strings(&spec.deny),
            log: spec
                .log
                .as_deref()
                .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.into())),
            // It starts with an empty environment.
            image: image.map(Path::to_owned).or_else(elf::image_of_environment),
            resolver: resolver::first(resolver::RESOLV_CONF),
        }
    }
}

impl HostPort {
    /// Starts the gateway, and returns once it serves.
    pub fn start(plan: &Plan) -> Result<HostPort> {
        let link = GivenLink::make(&plan.node)?;
        let Process { child, talk, words } = Process::spawn(VERB, "host port")?;
        let mut port = HostPort {
            link,
            child: Some(child),
            talk: Some(talk),
            watch: None,
            leaving: Arc::default(),
        };
        port.introduce(plan)?;
        port.watch = Some(port.watch_over(&plan.node, words)?);
        Ok(port)
    }

    fn introduce(&self, plan: &Plan) -> Result<()> {
        let failed = |why: String| Error::HostPortFailed { why };
        let Some(talk) = &self.talk else {
            return Err(failed("it is gone".into()));
        };
        let text = serde_json::to_vec(plan).map_err(|why| failed(why.to_string()))?;
        handover::send(talk, &text, self.link.memory())
            .map_err(|why| failed(format!("it does not listen: {why}")))?;
        confined::answer(talk).map_err(failed)
    }

    /// Watches the gateway: when it ends, so does the link's far end.
    fn watch_over(&self, node: &str, mut words: Words) -> Result<Driver> {
        let copy = |fd: &OwnedFd| fd.try_clone().map_err(Error::io("copy a descriptor"));
        let Some(talk) = self.talk.as_ref().map(copy).transpose()? else {
            return Err(Error::HostPortFailed {
                why: "it is gone".into(),
            });
        };
        let window = LinkMemory::map(self.link.memory())?;
        let (leaving, node) = (self.leaving.clone(), node.to_owned());
        Driver::start("ring3-host", move || {
            attend(&talk, &mut words);
            window.leave(given::GATEWAY);
            words.last();
            if !leaving.load(Ordering::Acquire) {
                log::error!(
                    "node {node}: its host port's process has ended: the port is down; `ring3 down` and start the node again"
                );
            }
        })
    }

    pub fn link(&self) -> &GivenLink {
        &self.link
    }

    pub fn pid(&self) -> Option<i32> {
        self.child.as_ref().map(|child| child.id() as i32)
    }
}

impl Drop for HostPort {
    fn drop(&mut self) {
        self.leaving.store(true, Ordering::Release);
        // The gateway sees the end, takes its node down and ends; the watching thread sees that.
        if let Some(talk) = self.talk.take() {
            let _ = rustix::net::shutdown(&talk, rustix::net::Shutdown::Both);
        }
        if let Some(mut child) = self.child.take() {
            confined::end(&mut child);
        }
        self.watch.take().map(Driver::end);
    }
}

/// Tells the gateway of changed resolvers, and logs its messages, until it ends.
fn attend(talk: &OwnedFd, words: &mut Words) {
    let mut told = resolver::first(resolver::RESOLV_CONF);
    let mut looked = Instant::now();
    loop {
        let mut fds = vec![PollFd::new(talk, PollFlags::IN)];
        fds.extend(
            words
                .fd()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        if poll(&mut fds, Some(&RESOLVER_TURN)).is_err() {
            continue;
        }
        if !fds[0].revents().is_empty() {
            return;
        }
        drop(fds);
        words.hear();
        if words.is_flooded() {
            std::thread::sleep(FLOOD_PAUSE);
        }
        if looked.elapsed() < RESOLVER_PAUSE {
            continue;
        }
        looked = Instant::now();
        let now = resolver::first(resolver::RESOLV_CONF);
        if now == told {
            continue;
        }
        if let Ok(message) = serde_json::to_vec(&now) {
            // A gateway that does not read is told the next time.
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            if rustix::net::send(talk, &message, flags).is_ok() {
                told = now;
            }
        }
    }
}

/// How often the keeper checks whether the host uses another resolver: a laptop that has changed
/// its network.
const RESOLVER_TURN: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};
/// How long the messages of a gateway that writes too many are not read.
const FLOOD_PAUSE: Duration = Duration::from_millis(50);
/// Shortest time between two of these checks: messages of the gateway wake the keeper in between.
const RESOLVER_PAUSE: Duration = Duration::from_secs(4);
/// What a keeper has said to a gateway that serves.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct News {
    /// The host uses another resolver.
    pub resolver: Option<IpAddr>,
    /// The keeper has ended, or asks the gateway to end.
    pub is_gone: bool,
}

/// The gateway's end of the talk.
#[derive(Debug)]
pub struct Talk(pub(super) OwnedFd);

impl Talk {
    /// Receives the plan, and the link's end, over the descriptor that the keeper has left.
    pub fn hear(socket: OwnedFd) -> Result<(Talk, Plan, GivenLink)> {
        let failed = |why: String| Error::HostPortFailed { why };
        let mut message = vec![0; MESSAGE_MAX];
        let (len, memory) = handover::take(&socket, &mut message)
            .map_err(|why| failed(format!("no keeper gave it a link ({why})")))?;
        let plan =
            serde_json::from_slice(&message[..len]).map_err(|why| failed(why.to_string()))?;
        Ok((Talk(socket), plan, GivenLink::take(memory)?))
    }

    /// All messages since the last call: one edge may stand for several messages and the end.
    pub fn news(&self) -> News {
        let mut news = News::default();
        let mut message = [0; 256];
        loop {
            match rustix::net::recv(&self.0, &mut message[..], RecvFlags::DONTWAIT) {
                Ok((len, _)) if len > 0 => {
                    let resolver = serde_json::from_slice(&message[..len.min(256)]).ok();
                    news.resolver = resolver.or(news.resolver);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return news,
                Ok(_) | Err(_) => {
                    news.is_gone = true;
                    return news;
                }
            }
        }
    }

    /// Reports the result of the start to the keeper.
    pub fn answer(&self, outcome: Result<(), &str>) {
        let message = confined::message(outcome);
        // A keeper that is gone is seen by the end of the socket.
        let _ = rustix::net::send(&self.0, &message, SendFlags::NOSIGNAL);
    }
}

/// Readable when the keeper is gone.
impl AsFd for Talk {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    use super::*;

    /// A gateway that read only the first message of an edge would have outlived its keeper.
    #[test]
    fn the_end_may_come_with_news() {
        let flags = SocketFlags::CLOEXEC;
        let kind = SocketType::SEQPACKET;
        let (keeper, gateway) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        let talk = Talk(gateway);
        assert_eq!(talk.news(), News::default());
        for address in ["\"192.0.2.1\"", "nonsense", "\"192.0.2.2\"", "{}"] {
            rustix::net::send(&keeper, address.as_bytes(), SendFlags::empty()).unwrap();
        }
        drop(keeper);
        let news = talk.news();
        assert_eq!(news.resolver, Some("192.0.2.2".parse().unwrap()));
        assert!(news.is_gone);
    }

    #[test]
    fn the_gateway_is_on_the_node_s_network() {
        let (ends, gateways) = plan(&["192.0.2.7/25".parse().unwrap()], &[]);
        assert_eq!(ends.gw, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(gateways, ["192.0.2.1/25".parse::<IpNet>().unwrap()]);
        let (_, gateways) = plan(&[], &[]);
        assert_eq!(gateways.len(), 2);
    }
}
