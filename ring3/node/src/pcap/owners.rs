// SPDX-License-Identifier: GPL-2.0
//! Theory of operation: which processes own the socket of a flow
//!
//! Linux remembers of a socket no process, only a number (its inode). So two tables are read, as ss(8) does: the node's sockets with
//! their addresses and numbers (/proc/net/tcp and its like), and the numbers that each process has descriptors of.
//!
//! A flow that no table has is looked for anew, and so is one that begins, since its port may have been another socket's before.
//! Reading takes the longer the more sockets there are. So it may take one part in [`SHARE`] of the time; a frame that comes sooner
//! has the owners that the tables say, or none.
//!
//! A connection that nobody has accepted yet has no number: it is its listener's. One that was closed has none either: its last
//! owners are kept until the port begins another connection.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use super::flow::{Flow, Protocol};

/// Of the time, one part in so many goes into reading tables. Chosen: a capture may cost a busy node some percent.
const SHARE: u32 = 20;
/// And once they have been read, they are not read again for so long.
const PAUSE: Duration = Duration::from_millis(1);
/// Flows whose owners are remembered; more, and all are forgotten.
const KNOWN_MAX: usize = 1 << 16;
/// Processes that are named of a socket that more have, as a server's workers do.
const NAMED_MAX: usize = 4;
/// The tables of raw sockets, and what is the "port" of one that hears replies to pings: IPPROTO_ICMP, IPPROTO_ICMPV6.
const RAW: [(&str, u16); 2] = [("raw", 1), ("raw6", 58)];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: u32,
    pub name: String,
}

/// What the tables are read from: a node's /proc.
pub(super) trait Look {
    /// A file of /proc/net, or nothing.
    fn table(&mut self, name: &str) -> Vec<u8>;
    /// Programs of the node.
    fn processes(&mut self) -> Vec<u32>;
    /// The numbers of the sockets that a process has.
    fn sockets(&mut self, pid: u32) -> Vec<u64>;
    fn name(&mut self, pid: u32) -> String;
}

#[derive(Debug, Clone, Copy)]
struct Socket {
    remote: SocketAddr,
    number: u64,
}

#[derive(Debug)]
pub(super) struct Owners {
    /// By protocol and local address.
    sockets: HashMap<(Protocol, SocketAddr), Vec<Socket>>,
    /// Raw sockets that hear replies to pings, of IPv4 and of IPv6. ping(8) has one of each.
    raw: [Vec<u64>; 2],
    holders: HashMap<u64, Vec<u32>>,
    known: HashMap<Flow, Vec<Process>>,
    /// Tables are not read before.
    next: Instant,
}

impl Owners {
    pub fn new() -> Self {
        Owners {
            sockets: HashMap::new(),
            raw: Default::default(),
            holders: HashMap::new(),
            known: HashMap::new(),
            next: Instant::now(),
        }
    }

    /// Of the flow's socket; empty: none that is known.
    pub fn of(&mut self, look: &mut impl Look, flow: &Flow, is_first: bool) -> &[Process] {
        if is_first {
            self.known.remove(flow);
        }
        if !self.known.contains_key(flow) {
            let mut number = self.number(flow);
            let is_stale = is_first || number.is_none_or(|it| !self.holders.contains_key(&it));
            if is_stale && Instant::now() >= self.next {
                self.read(look);
                number = self.number(flow);
            }
            let pids = number.and_then(|it| self.holders.get(&it));
            let pids = pids.cloned().unwrap_or_default();
            if !pids.is_empty() {
                if self.known.len() >= KNOWN_MAX {
                    self.known.clear();
                }
                let named = pids.into_iter().take(NAMED_MAX);
                let owners = named.map(|pid| Process {
                    pid,
                    name: look.name(pid),
                });
                let owners = owners.collect();
                self.known.insert(*flow, owners);
            }
        }
        self.known.get(flow).map_or(&[], Vec::as_slice)
    }

    fn number(&self, flow: &Flow) -> Option<u64> {
        let port = flow.local.port();
        let nowhere = [
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        ];
        let exact = self.at(flow.protocol, flow.local, Some(flow.remote));
        let places = nowhere.map(|address| SocketAddr::new(address, port));
        let open = || {
            let mut places = [flow.local].into_iter().chain(places);
            places.find_map(|place| self.at(flow.protocol, place, None))
        };
        // One raw socket hears all pings; of several it is not known which.
        let of_family = &self.raw[usize::from(flow.local.is_ipv6())];
        let raw = || match (flow.protocol, of_family.as_slice()) {
            (Protocol::Ping, [one]) => Some(*one),
            _ => None,
        };
        exact.or_else(open).or_else(raw)
    }

    /// With `remote`: the socket connected to it. Without: one that is connected to nobody.
    fn at(&self, protocol: Protocol, local: SocketAddr, remote: Option<SocketAddr>) -> Option<u64> {
        let all = self.sockets.get(&(protocol, local))?;
        let mut fits = all.iter().filter(|it| match remote {
            // An echo socket's remote port is 0.
            Some(remote) if protocol == Protocol::Ping => it.remote.ip() == remote.ip(),
            Some(remote) => it.remote == remote,
            None => it.remote.ip().is_unspecified(),
        });
        fits.find(|it| it.number != 0).map(|it| it.number)
    }

    fn read(&mut self, look: &mut impl Look) {
        let start = Instant::now();
        self.sockets.clear();
        self.holders.clear();
        for (name, protocol) in [
            ("tcp", Protocol::Tcp),
            ("tcp6", Protocol::Tcp),
            ("udp", Protocol::Udp),
            ("udp6", Protocol::Udp),
            ("icmp", Protocol::Ping),
            ("icmp6", Protocol::Ping),
        ] {
            let table = look.table(name);
            for (local, remote, number) in lines(&table) {
                let socket = Socket { remote, number };
                self.sockets
                    .entry((protocol, local))
                    .or_default()
                    .push(socket);
            }
        }
        for (raw, (name, protocol)) in self.raw.iter_mut().zip(RAW) {
            let table = look.table(name);
            let pings = lines(&table).filter(|(local, ..)| local.port() == protocol);
            *raw = pings.map(|(.., number)| number).collect();
        }
        for pid in look.processes() {
            for number in look.sockets(pid) {
                let holders = self.holders.entry(number).or_default();
                if !holders.contains(&pid) {
                    holders.push(pid);
                }
            }
        }
        self.next = Instant::now() + PAUSE.max(start.elapsed() * SHARE);
    }
}

/// A table of /proc/net: `0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1234 ...`
fn lines(table: &[u8]) -> impl Iterator<Item = (SocketAddr, SocketAddr, u64)> + '_ {
    table
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| {
            let line = std::str::from_utf8(line).ok()?;
            let mut words = line.split_ascii_whitespace().skip(1);
            let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
            let number = words.nth(6)?.parse().ok()?;
            Some((local, remote, number))
        })
}

/// Words of 32 bits in this machine's order, in hexadecimal digits; an IPv4 address in IPv6's clothes is one of IPv4.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let address: IpAddr = match address.len() {
        8 => word(0)?.into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, bytes) in bytes.chunks_exact_mut(4).enumerate() {
                bytes.copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100000A:0050 0200000A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 20 4 30 10 -1
   2: 0100000A:0050 0200000A:9C41 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
";
    const UDP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
 1: 00000000000000000000000000000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 13 2 0 0
";

    #[derive(Default)]
    struct Tables {
        tables: HashMap<&'static str, &'static str>,
        reads: usize,
    }

    impl Look for Tables {
        fn table(&mut self, name: &str) -> Vec<u8> {
            self.reads += usize::from(name == "tcp");
            self.tables
                .get(name)
                .map_or_else(Vec::new, |it| it.as_bytes().to_vec())
        }

        fn processes(&mut self) -> Vec<u32> {
            vec![101, 102]
        }

        fn sockets(&mut self, pid: u32) -> Vec<u64> {
            match pid {
                101 => vec![11, 13, 11, 14],
                _ => vec![11, 12],
            }
        }

        fn name(&mut self, pid: u32) -> String {
            format!("p{pid}")
        }
    }

    fn flow(protocol: Protocol, local: &str, remote: &str) -> Flow {
        Flow {
            protocol,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }

    fn pids(owners: &[Process]) -> Vec<u32> {
        owners.iter().map(|it| it.pid).collect()
    }

    #[test]
    fn sockets_by_what_they_are_connected_to() {
        let mut tables = Tables {
            tables: [("tcp", TCP), ("udp6", UDP6)].into(),
            ..Tables::default()
        };
        let mut owners = Owners::new();
        let accepted = flow(Protocol::Tcp, "10.0.0.1:80", "10.0.0.2:40000");
        assert_eq!(pids(owners.of(&mut tables, &accepted, false)), [102]);
        assert_eq!(owners.of(&mut tables, &accepted, false)[0].name, "p102");
        // Not accepted yet: the listener's.
        let waits = flow(Protocol::Tcp, "10.0.0.1:80", "10.0.0.2:40001");
        assert_eq!(pids(owners.of(&mut tables, &waits, false)), [101, 102]);
        // A socket of IPv6 hears IPv4, too.
        let query = flow(Protocol::Udp, "10.0.0.1:53", "10.0.0.2:5000");
        assert_eq!(pids(owners.of(&mut tables, &query, false)), [101]);
        let nobody = flow(Protocol::Udp, "10.0.0.1:54", "10.0.0.2:5000");
        assert_eq!(owners.of(&mut tables, &nobody, false), []);
    }

    #[test]
    fn closed_sockets_keep_their_owner_until_the_port_begins_anew() {
        let mut tables = Tables {
            tables: [("tcp", TCP)].into(),
            ..Tables::default()
        };
        let mut owners = Owners::new();
        let accepted = flow(Protocol::Tcp, "10.0.0.1:80", "10.0.0.2:40000");
        assert_eq!(pids(owners.of(&mut tables, &accepted, true)), [102]);
        tables.tables.clear();
        owners.next = Instant::now();
        assert_eq!(pids(owners.of(&mut tables, &accepted, false)), [102]);
        assert_eq!(pids(owners.of(&mut tables, &accepted, true)), [0; 0]);
    }

    #[test]
    fn tables_are_not_read_for_each_frame() {
        let mut tables = Tables::default();
        let mut owners = Owners::new();
        let nobody = flow(Protocol::Udp, "10.0.0.1:54", "10.0.0.2:5000");
        for _ in 0..1000 {
            owners.of(&mut tables, &nobody, false);
        }
        let most = 2 + (owners.next.elapsed().as_millis() as usize);
        assert!(tables.reads <= most, "{} reads", tables.reads);
    }

    #[test]
    fn one_raw_socket_has_the_pings() {
        const RAW4: &str = "  sl\n   1: 00000000:0001 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 14 2 0 0\n";
        // As ping(8) has it beside that.
        const RAW6: &str = "  sl\n   1: 00000000000000000000000000000000:003A 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 12 2 0 0\n";
        let mut tables = Tables {
            tables: [("raw", RAW4), ("raw6", RAW6)].into(),
            ..Tables::default()
        };
        let mut owners = Owners::new();
        let ping = flow(Protocol::Ping, "10.0.0.1:7", "10.0.0.2:7");
        assert_eq!(pids(owners.of(&mut tables, &ping, false)), [101]);
        let ping6 = flow(Protocol::Ping, "[fd00::1]:7", "[fd00::2]:7");
        assert_eq!(pids(owners.of(&mut tables, &ping6, false)), [102]);
    }

    #[test]
    fn addresses_of_proc() {
        let one = address("0100007F:1F40").unwrap();
        assert_eq!(one, "127.0.0.1:8000".parse().unwrap());
        let mapped = address("0000000000000000FFFF00000100000A:0035").unwrap();
        assert_eq!(mapped, "10.0.0.1:53".parse().unwrap());
        let six = address("00000000000000000000000001000000:0001").unwrap();
        assert_eq!(six, "[::1]:1".parse().unwrap());
        for wrong in ["", ":", "0100007F", "0100007:1", "x100007F:1", "ä:1"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }
}
