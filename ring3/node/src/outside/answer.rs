// SPDX-License-Identifier: GPL-2.0
//! The control socket of a sandboxed node, served by its warden: answers that need nothing from
//! inside.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ring3_config::NodeConfig;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::{enter, Outside};
use crate::control::{self, Calls, Log, Memory, Port, Proc, Reply, Request, State, Status};
use crate::error::{Error, Result};
use crate::ports::link::far_end;
use crate::runtime::Folder;

/// How often to retry what the host refuses.
const HOST_TROUBLE_TURN: Duration = Duration::from_millis(10);
/// Largest answer with a gateway's log, in bytes: thousands of lines.
const LOG_PIECE: usize = 1 << 20;

/// The first processes of a sandbox; all others are their descendants.
#[derive(Debug, Clone, Copy)]
pub struct First {
    pub reaper: i32,
    pub keeper: i32,
}

impl Outside {
    /// Starts to serve the node's control socket. `flows`: a gateway's record, for `ring3 log`.
    /// `keeper`: the socket by which the keeper is told what to start. `down` is called at a
    /// request for `down`.
    pub fn listen(
        &self,
        config: &NodeConfig,
        folder: &Folder,
        first: First,
        flows: Option<File>,
        keeper: OwnedFd,
        down: impl Fn() + Send + 'static,
    ) -> Result<()> {
        enter::listen(&folder.enter_path(&config.name), keeper)?;
        let path = folder.control_path(&config.name);
        let listener = UnixListener::bind(&path)
            .map_err(Error::io(format!("listen on {}", path.display())))?;
        let facts = Facts {
            name: config.name.clone(),
            folder: folder.clone(),
            mem: config.mem,
            grace: config.grace,
            ports: self.statuses(),
            first,
            flows,
            started: Instant::now(),
        };
        let body = move || loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    if let Err(error) = facts.serve(&stream, &down) {
                        log::debug!("node {}: control: {error}", facts.name);
                    }
                }
                Err(_) => std::thread::sleep(HOST_TROUBLE_TURN),
            }
        };
        std::thread::Builder::new()
            .name("ring3-control".into())
            .spawn(body)
            .map_err(Error::io("start a thread"))?;
        Ok(())
    }

    fn statuses(&self) -> Vec<Port> {
        let ports = self.ports.iter();
        let ports = ports.map(|port| (port.spec(), port.facts(), port.link()));
        ports
            .map(|(spec, facts, link)| Port {
                kind: spec.kind.kind().to_owned(),
                name: spec.kind.name().map(str::to_owned),
                ifname: facts.wanted,
                ifindex: 0,
                addrs: facts.addrs,
                gw: facts.gw,
                mtu: spec.mtu,
                pcap: None,
                made: facts.made,
                pid: facts.pid,
                peer: None,
                link: link.map(str::to_owned),
                guest: None,
            })
            .collect()
    }
}

struct Facts {
    name: String,
    folder: Folder,
    mem: u64,
    grace: Duration,
    ports: Vec<Port>,
    first: First,
    flows: Option<File>,
    started: Instant,
}

impl Facts {
    fn serve(&self, stream: &UnixStream, down: &impl Fn()) -> std::io::Result<()> {
        if !socket_peercred(stream).is_ok_and(|peer| peer.uid == geteuid()) {
            return Ok(());
        }
        stream.set_read_timeout(Some(control::PATIENCE))?;
        stream.set_write_timeout(Some(control::PATIENCE))?;
        let reply = match control::read_line(stream)? {
            Request::Status => Reply::Status(Box::new(self.status())),
            Request::Down => {
                down();
                let grace_ms = self.grace.as_millis() as u64;
                Reply::Down { grace_ms }
            }
            Request::Log { from } if self.flows.is_some() => self.log(from),
            Request::Plug { .. }
            | Request::PortAdd { .. }
            | Request::PortDel { .. }
            | Request::Know { .. } => Reply::Error(
                "it is sandboxed, and has the ports and names that it was made with".into(),
            ),
            Request::Debug { .. } => {
                Reply::Error("it is sandboxed, and does not trace its programs".into())
            }
            Request::Capture { .. } => Reply::Error(
                "it is sandboxed: start it with `--record FOLDER`, which captures what leaves it".into(),
            ),
            Request::Log { .. } | Request::Counters => Reply::Error(
                "it is sandboxed, and what its kernel says is its programs' word; its gateway has its own log, if it has one: `ring3 log NAME.gw`".into(),
            ),
        };
        control::write_line(stream, &reply)
    }

    /// Whole lines from byte `from` on.
    fn log(&self, from: u64) -> Reply {
        let mut bytes = vec![0; LOG_PIECE];
        let got = self
            .flows
            .as_ref()
            .map(|file| file.read_at(&mut bytes, from));
        let len = match got.transpose() {
            Ok(len) => len.unwrap_or(0),
            Err(why) => return Reply::Error(format!("what it has written cannot be read: {why}")),
        };
        let lines = bytes[..len].iter().rposition(|&byte| byte == b'\n');
        let len = lines.map_or(0, |at| at + 1);
        // A packet may have taken over the gateway: its output must not control the terminal.
        let is_control = |c: char| c.is_control() && c != '\n';
        Reply::Log(Log {
            text: String::from_utf8_lossy(&bytes[..len]).replace(is_control, "?"),
            next: from + len as u64,
        })
    }

    fn status(&self) -> Status {
        let peer = |port: &Port| match (port.kind.as_str(), &port.name) {
            ("link", Some(link)) => far_end(&self.folder, link, &self.name),
            ("switch", _) => {
                let link = port.link.as_deref().unwrap_or_default();
                far_end(&self.folder, link, &self.name)
            }
            _ => None,
        };
        Status {
            name: self.name.clone(),
            state: State::Up,
            poison: None,
            pid: std::process::id() as i32,
            uptime_ns: self.started.elapsed().as_nanos() as u64,
            version: String::new(),
            image: PathBuf::new(),
            join: PathBuf::new(),
            base: 0,
            mem: Memory {
                size: self.mem,
                resident: 0,
            },
            calls: Calls::default(),
            late: 0,
            ports: self
                .ports
                .iter()
                .map(|port| Port {
                    peer: peer(port),
                    ..port.clone()
                })
                .collect(),
            procs: programs(self.first),
            adopter: None,
            held_up_by: Vec::new(),
            ended_s: None,
        }
    }
}

/// All descendants of the first processes, without those that only serve the node.
fn programs(first: First) -> Vec<Proc> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<Process> = entries
        .filter_map(|entry| Process::of(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let below = below(first.reaper, &all);
    all.iter()
        .filter(|it| below.contains(&it.pid))
        .filter(|it| it.pid != first.keeper && it.command != "ring3-undertake")
        .map(|it| Proc {
            pid: it.pid,
            threads: it.threads,
            command: it.command.clone(),
        })
        .collect()
}

/// The pids of all processes below `top`. Each process is visited once, however long a chain of
/// forks is.
fn below(top: i32, all: &[Process]) -> HashSet<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in all {
        children
            .entry(process.parent)
            .or_default()
            .push(process.pid);
    }
    let mut found = HashSet::new();
    let mut next = vec![top];
    while let Some(pid) = next.pop() {
        // The table may have changed while it was read: a pid may appear twice.
        let new = children.remove(&pid).unwrap_or_default();
        next.extend(new.into_iter().filter(|pid| found.insert(*pid)));
    }
    found
}

struct Process {
    pid: i32,
    parent: i32,
    threads: u32,
    command: String,
}

impl Process {
    /// "PID (NAME) STATE PPID ... THREADS"; NAME is chosen by the program and may contain anything.
    fn of(pid: i32) -> Option<Process> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let (open, close) = (
            stat.iter().position(|&byte| byte == b'(')?,
            stat.iter().rposition(|&byte| byte == b')')?,
        );
        let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let command = String::from_utf8_lossy(stat.get(open + 1..close)?);
        Some(Process {
            pid,
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(20 - 5)?.parse().ok()?,
            command: command.replace(char::is_control, "?"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_forks_takes_no_longer_than_a_crowd() {
        const COUNT: i32 = 200_000;
        let process = |pid, parent| Process {
            pid,
            parent,
            threads: 1,
            command: String::new(),
        };
        let chain: Vec<_> = (2..COUNT).map(|pid| process(pid, pid - 1)).collect();
        assert_eq!(below(1, &chain).len() as i32, COUNT - 2);
        // A cycle, which no table has at one moment.
        let turn = [process(2, 3), process(3, 2), process(4, 1)];
        assert_eq!(below(1, &turn), HashSet::from([4]));
    }

    #[test]
    fn who_is_below() {
        let own = std::process::id() as i32;
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let found = |keeper| {
            programs(First {
                reaper: own,
                keeper,
            })
        };
        assert!(found(0).iter().any(|it| it.pid == pid && it.threads == 1));
        assert!(found(0).iter().all(|it| it.pid != own));
        assert!(found(pid).iter().all(|it| it.pid != pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
