// SPDX-License-Identifier: GPL-2.0
//! Samples of connections, queues and interfaces over time, as CSV. A row is written where something has changed.
//!
//! To ask a namespace for its connections costs a walk over the hash table that all share. So nobody is asked while no
//! packet has moved anywhere since the sample before: an idle hour of many hosts costs nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::netlink::{Asker, Connection, Interface, Queue};

const TCP: &str = "time,host,local,remote,congestion,state,cwnd,ssthresh,rtt_us,rttvar_us,min_rtt_us,unacked,lost,retransmits,bytes_acked,bytes_received,pacing_bytes_s,delivery_bytes_s";
const QUEUES: &str =
    "time,host,interface,qdisc,handle,parent,bytes,packets,waiting,waiting_bytes,drops";
const INTERFACES: &str =
    "time,host,interface,rx_packets,tx_packets,rx_bytes,tx_bytes,rx_dropped,tx_dropped";

const SOFTNET: &str = "/proc/net/softnet_stat";

struct Space {
    name: String,
    asker: Asker,
    queues: BTreeMap<(i32, u32, u32), Queue>,
    interfaces: BTreeMap<i32, Interface>,
}

struct Files {
    tcp: BufWriter<File>,
    queues: BufWriter<File>,
    interfaces: BufWriter<File>,
}

/// Empty where nothing is sampled.
pub struct Sampler {
    files: Option<Files>,
    spaces: Vec<Space>,
    /// Packets that the kernel had received at the last sample, in all namespaces.
    received: Option<u64>,
}

/// The first column of softnet_stat (net/core/net-procfs.c), of all CPUs: what all interfaces together have received.
fn received() -> Result<u64> {
    let text = std::fs::read_to_string(SOFTNET).map_err(Error::host(format!("read {SOFTNET}")))?;
    text.lines()
        .map(|line| u64::from_str_radix(line.split(' ').next().unwrap_or_default(), 16))
        .sum::<std::result::Result<u64, _>>()
        .map_err(Error::host(format!("understand {SOFTNET}")))
}

fn open(data: &Data, name: &str, header: &str) -> Result<BufWriter<File>> {
    let path = data.path(name);
    let cannot = || Error::host(format!("write {}", path.display()));
    let mut file = BufWriter::new(File::create(&path).map_err(|why| cannot()(why))?);
    writeln!(file, "{header}").map_err(|why| cannot()(why))?;
    Ok(file)
}

impl Sampler {
    pub fn new(data: &Data, is_on: bool) -> Result<Sampler> {
        let files = match is_on {
            true => Some(Files {
                tcp: open(data, "tcp.csv", TCP)?,
                queues: open(data, "queues.csv", QUEUES)?,
                interfaces: open(data, "interfaces.csv", INTERFACES)?,
            }),
            false => None,
        };
        Ok(Sampler {
            files,
            spaces: Vec::new(),
            received: None,
        })
    }

    /// The network namespace that we are in.
    pub fn add(&mut self, name: &str) -> Result<()> {
        if self.files.is_some() {
            self.spaces.push(Space {
                name: name.to_owned(),
                asker: Asker::new()
                    .map_err(Error::host(format!("ask {name} for its connections")))?,
                queues: BTreeMap::new(),
                interfaces: BTreeMap::new(),
            });
        }
        Ok(())
    }

    pub fn take(&mut self, at: Duration) -> Result<()> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        let received = received()?;
        if self.received.replace(received) == Some(received) {
            return Ok(());
        }
        let at = format!("{}.{:06}", at.as_secs(), at.subsec_micros());
        for space in &mut self.spaces {
            let name = space.name.clone();
            space
                .take(&at, files)
                .map_err(Error::host(format!("sample {name}")))?;
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Result<()> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        for file in [&mut files.tcp, &mut files.queues, &mut files.interfaces] {
            file.flush().map_err(Error::host("write the samples"))?;
        }
        Ok(())
    }
}

impl Space {
    fn take(&mut self, at: &str, files: &mut Files) -> std::io::Result<()> {
        let name = &self.name;
        let mut connections = self.asker.connections()?;
        connections.sort_by_key(|c| (c.local, c.remote));
        for c in &connections {
            tcp_row(&mut files.tcp, at, name, c)?;
        }
        for interface in self.asker.interfaces()? {
            if self.interfaces.get(&interface.index) == Some(&interface) {
                continue;
            }
            let i = &interface;
            writeln!(
                files.interfaces,
                "{at},{name},{},{},{},{},{},{},{}",
                i.name,
                i.rx_packets,
                i.tx_packets,
                i.rx_bytes,
                i.tx_bytes,
                i.rx_dropped,
                i.tx_dropped
            )?;
            self.interfaces.insert(interface.index, interface);
        }
        for queue in self.asker.queues()? {
            let key = (queue.interface, queue.parent, queue.handle);
            let is_silent = queue.packets == 0 && queue.waiting == 0 && queue.drops == 0;
            if is_silent || self.queues.get(&key) == Some(&queue) {
                continue;
            }
            let q = &queue;
            let unknown = String::new();
            let interface = self
                .interfaces
                .get(&q.interface)
                .map_or(&unknown, |i| &i.name);
            writeln!(
                files.queues,
                "{at},{name},{interface},{},{:x}:,{:x}:{:x},{},{},{},{},{}",
                q.kind,
                q.handle >> 16,
                q.parent >> 16,
                q.parent & 0xffff,
                q.bytes,
                q.packets,
                q.waiting,
                q.waiting_bytes,
                q.drops
            )?;
            self.queues.insert(key, queue);
        }
        Ok(())
    }
}

fn tcp_row(
    file: &mut BufWriter<File>,
    at: &str,
    host: &str,
    c: &Connection,
) -> std::io::Result<()> {
    write!(
        file,
        "{at},{host},{},{},{},{},",
        c.local, c.remote, c.congestion, c.state
    )?;
    write!(
        file,
        "{},{},{},{},{},",
        c.cwnd, c.ssthresh, c.rtt, c.rttvar, c.min_rtt
    )?;
    write!(file, "{},{},{},", c.unacked, c.lost, c.retransmits)?;
    writeln!(
        file,
        "{},{},{},{}",
        c.bytes_acked, c.bytes_received, c.pacing, c.delivery
    )
}
