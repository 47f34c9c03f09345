// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: from the host into a node, without privilege
//!
//! Only a process on the node can make the node's sockets. So each of these commands becomes a process of the
//! node: the gate starts this very program again as `ring3 on-node ...`, whose inet sockets are the node's and
//! whose pipes, terminals and inherited descriptors are the host's.
//!
//! ```text
//! ring3 connect   standard input and output are the caller's; the connection is the node's
//! ring3 socks     the listener is made on the host before, and inherited as standard input
//! ring3 publish   the same, and all connections go to one port of the node
//! ring3 console   reads and writes the node's files
//! ring3 wait      reads the node's /proc/net until somebody listens
//! ```

mod console;
mod copy;
mod inside;
mod listener;
mod socks;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ring3_node::client::Client;
use ring3_node::Error;

use crate::args;
use crate::error::{Failure, Result};
use crate::program::Program;
use crate::sandbox;
use crate::say;

pub use inside::inside;

/// How often to look whether a node is up or a program listens.
const TURN: Duration = Duration::from_millis(10);
/// How long `wait` gives somebody to start a node again that has failed.
const ENDED_PATIENCE: Duration = Duration::from_secs(2);

/// Becomes `ring3 on-node WORDS` on the node. Returns only if that fails, or its status where it runs in a sandbox.
/// With a limit, it ends by itself in that time.
fn become_inside(
    name: &str,
    node: &Client,
    words: &[&str],
    input: Option<OwnedFd>,
    limit: Option<Duration>,
) -> Result<u8> {
    let exe = std::env::current_exe().map_err(Failure::host("find where ring3 is"))?;
    let mut command = vec![exe.into_os_string(), "on-node".into()];
    command.extend(words.iter().map(Into::into));
    if node.is_sandboxed() {
        return sandbox::enter(name, &command, limit);
    }
    let program = Program::find(&command)?;
    Err(program.exec_with(&node.join_path(), input))
}

fn open(name: &str) -> Result<Client> {
    ring3_config::name::node(name)?;
    let node = Client::open(name)?;
    node.is_up()?;
    Ok(node)
}

/// `[fd00::1]`, as URLs have it, is fd00::1.
fn without_brackets(host: &str) -> &str {
    let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    inner
        .filter(|it| it.parse::<Ipv6Addr>().is_ok())
        .unwrap_or(host)
}

/// `ring3 connect`: returns only if it fails.
pub fn connect(args: &args::Connect) -> Result<u8> {
    let node = open(&args.name)?;
    let port = args.port.to_string();
    let mut words = vec!["connect", &args.name, without_brackets(&args.host), &port];
    if args.verbose {
        words.insert(1, "--verbose");
    }
    become_inside(&args.name, &node, &words, None, None)
}

/// `ring3 socks`: returns only if it fails.
pub fn socks(args: &args::Socks) -> Result<u8> {
    let node = open(&args.name)?;
    if !args.listen.ip().is_loopback() {
        return Err(Failure::NotLoopback {
            address: args.listen,
        });
    }
    if node.is_sandboxed() {
        return Err(Failure::NotIntoSandbox { verb: "socks" });
    }
    let (listener, address) = listen(args.listen)?;
    say::print(format!("{address}\n"))?;
    let words = ["socks", &args.name];
    become_inside(&args.name, &node, &words, Some(listener.into()), None)
}

/// `ring3 publish`: returns only if it fails.
pub fn publish(args: &args::Publish) -> Result<u8> {
    let node = open(&args.name)?;
    let same = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), args.port);
    let wanted = args.listen.unwrap_or(same);
    if !wanted.ip().is_loopback() {
        return Err(Failure::NotLoopback { address: wanted });
    }
    if node.is_sandboxed() {
        return Err(Failure::NotIntoSandbox { verb: "publish" });
    }
    let (listener, address) = listen(wanted)?;
    say::print(format!("{address}\n"))?;
    let port = args.port.to_string();
    let words = ["publish", &args.name, &port];
    become_inside(&args.name, &node, &words, Some(listener.into()), None)
}

/// `ring3 console`: returns only if it fails.
pub fn console(args: &args::Console) -> Result<u8> {
    let node = open(&args.name)?;
    if node.is_sandboxed() {
        return Err(Failure::NotIntoSandbox { verb: "console" });
    }
    become_inside(&args.name, &node, &["console", &args.name], None, None)
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let fail = || Failure::host(format!("listen on {address}"));
    let listener = TcpListener::bind(address).map_err(fail())?;
    let bound = listener.local_addr().map_err(fail())?;
    Ok((listener, bound))
}

/// `ring3 wait`: returns only if it fails, or if nothing but the node was waited for.
pub fn wait(args: &args::Wait) -> Result<u8> {
    ring3_config::name::node(&args.name)?;
    let start = Instant::now();
    let limit = Duration::from_secs_f64(args.timeout);
    let node = loop {
        let up = Client::open(&args.name).and_then(|node| node.is_up().map(|()| node));
        match up {
            Ok(node) => break node,
            // A start that is under way takes the name soon.
            Err(Error::Ended { .. }) if start.elapsed() < limit.min(ENDED_PATIENCE) => {
                std::thread::sleep(TURN);
            }
            Err(Error::NoSuchNode { .. } | Error::Starting { .. }) if start.elapsed() < limit => {
                std::thread::sleep(TURN);
            }
            Err(error) => return Err(error.into()),
        }
    };
    let (Some(protocol), Some(port)) = (args.protocol, args.port) else {
        return Ok(0);
    };
    let left = limit.saturating_sub(start.elapsed());
    let (port, ms) = (port.to_string(), left.as_millis().to_string());
    let words = ["wait", &args.name, protocol.word(), &port, &ms];
    become_inside(&args.name, &node, &words, None, Some(left))
}
