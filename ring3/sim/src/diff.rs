// SPDX-License-Identifier: GPL-2.0
//! Where two runs of a simulation differ first.
//!
//! Files of the two data folders are compared pair by pair. In a capture that is the first packet that differs in time or
//! content, in a table or a trace the first line, whose time is its first field; elsewhere the first byte. Of all these the
//! earliest in virtual time is named: what comes later may only follow from it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use serde::Serialize;

use crate::error::{Error, Result};

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Below the data folders.
    pub file: PathBuf,
    /// Virtual time of the first difference, in nanoseconds, where the file tells.
    pub at: Option<u64>,
    /// The packet or line: which, from 1 on.
    pub number: usize,
    pub first: String,
    pub second: String,
}

#[derive(Debug, Serialize)]
pub struct Comparison {
    pub files: usize,
    /// The earliest first; those without a time at the end.
    pub differences: Vec<Difference>,
}

/// What a run says of itself only, or what was there before it.
const NOT_RESULTS: &[&str] = &["network", "world", "processed-config.yaml", "report.html"];

pub fn compare(a: &Path, b: &Path) -> Result<Comparison> {
    let mut files = BTreeSet::new();
    for root in [a, b] {
        if !root.join("result.json").exists() {
            return Err(Error::Said(format!(
                "{} has no result.json: it is no data folder of a simulation that has ended",
                root.display()
            )));
        }
        list(root, Path::new(""), &mut files)?;
    }
    let mut differences = Vec::new();
    for file in &files {
        differences.extend(compare_file(a, b, file)?);
    }
    differences.sort_by_key(|d| (d.at.is_none(), d.at, d.file.clone()));
    Ok(Comparison {
        files: files.len(),
        differences,
    })
}

fn list(root: &Path, below: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let folder = root.join(below);
    let cannot = || Error::host(format!("list {}", folder.display()));
    for entry in std::fs::read_dir(&folder).map_err(|why| cannot()(why))? {
        let entry = entry.map_err(|why| cannot()(why))?;
        let path = below.join(entry.file_name());
        let is_result = !NOT_RESULTS.iter().any(|name| path == Path::new(name));
        match entry.file_type().map_err(|why| cannot()(why))? {
            kind if kind.is_dir() && is_result => list(root, &path, files)?,
            kind if kind.is_file() && is_result => drop(files.insert(path)),
            _ => {}
        }
    }
    Ok(())
}

fn compare_file(a: &Path, b: &Path, file: &Path) -> Result<Option<Difference>> {
    let difference = |at, number, first, second| {
        Some(Difference {
            file: file.to_owned(),
            at,
            number,
            first,
            second,
        })
    };
    let roots = (a, b);
    let (a, b) = (a.join(file), b.join(file));
    let missing = |path: &Path| match path.exists() {
        true => "there".to_owned(),
        false => "no such file".to_owned(),
    };
    if !a.exists() || !b.exists() {
        return Ok(difference(None, 0, missing(&a), missing(&b)));
    }
    let read =
        |path: &Path| std::fs::read(path).map_err(Error::host(format!("read {}", path.display())));
    if file
        .extension()
        .is_some_and(|extension| extension == "pcap")
    {
        let epochs = (epoch_of(roots.0)?, epoch_of(roots.1)?);
        let found = captures(&a, &b, epochs)?;
        return Ok(found.and_then(|(at, number, x, y)| difference(at, number, x, y)));
    }
    let (x, y) = (read(&a)?, read(&b)?);
    if x == y {
        return Ok(None);
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        bytes
            .split(|byte| *byte == b'\n')
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect()
    };
    let (x, y) = (lines(&x), lines(&y));
    let at = x
        .iter()
        .zip(&y)
        .position(|(x, y)| x != y)
        .unwrap_or(x.len().min(y.len()));
    let line = |all: &[String]| all.get(at).cloned().unwrap_or_else(|| "the end".into());
    let (x, y) = (line(&x), line(&y));
    let has_times = file
        .extension()
        .is_some_and(|extension| extension == "csv" || extension == "trace");
    let time = match has_times {
        true => time_of(&x).into_iter().chain(time_of(&y)).min(),
        false => None,
    };
    Ok(difference(time, at + 1, x, y))
}

/// Seconds at the start of a line, as nanoseconds.
fn time_of(line: &str) -> Option<u64> {
    let word = line.split([',', ' ']).next()?;
    let (seconds, part) = word.split_once('.')?;
    let nanos: u64 = format!("{part:0<9}").get(..9)?.parse().ok()?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + nanos)
}

/// The time of the day at time 0.
fn epoch_of(root: &Path) -> Result<Duration> {
    let text = std::fs::read(root.join("result.json")).map_err(Error::host("read result.json"))?;
    let result: serde_json::Value =
        serde_json::from_slice(&text).map_err(Error::host("read result.json"))?;
    Ok(Duration::from_nanos(result["epoch"].as_u64().unwrap_or(0)))
}

type First = (Option<u64>, usize, String, String);

fn open(path: &Path) -> Result<PcapReader<BufReader<File>>> {
    let what = format!("read {}", path.display());
    let file = File::open(path).map_err(Error::host(what.clone()))?;
    PcapReader::new(BufReader::new(file)).map_err(Error::host(what))
}

fn captures(a: &Path, b: &Path, epochs: (Duration, Duration)) -> Result<Option<First>> {
    let (mut x, mut y) = (open(a)?, open(b)?);
    let mut number = 0;
    loop {
        number += 1;
        let (left, right) = (next(&mut x, a, epochs.0)?, next(&mut y, b, epochs.1)?);
        if left == right {
            match left {
                Some(_) => continue,
                None => return Ok(None),
            }
        }
        let time = |packet: &Option<(Duration, Vec<u8>)>| packet.as_ref().map(|(at, _)| *at);
        let at = time(&left).into_iter().chain(time(&right)).min();
        let words = |packet: &Option<(Duration, Vec<u8>)>| match packet {
            Some((at, bytes)) => format!("{:.9} s {}", at.as_secs_f64(), packet_words(bytes)),
            None => "the end".into(),
        };
        let at = at.map(|at| at.as_nanos() as u64);
        return Ok(Some((at, number, words(&left), words(&right))));
    }
}

fn next(
    reader: &mut PcapReader<BufReader<File>>,
    path: &Path,
    epoch: Duration,
) -> Result<Option<(Duration, Vec<u8>)>> {
    let resolution = reader.header().ts_resolution;
    // Not next_packet(), which refuses packets that were longer than what the capture keeps of each.
    let packet = reader
        .next_raw_packet()
        .map(|raw| raw.and_then(|raw| raw.try_into_pcap_packet(resolution, u32::MAX)));
    match packet {
        None => Ok(None),
        Some(Ok(packet)) => {
            let at = packet.timestamp.saturating_sub(epoch);
            Ok(Some((at, packet.data.into_owned())))
        }
        Some(Err(why)) => Err(Error::host(format!("read {}", path.display()))(why)),
    }
}

/// One line: from where to where, what, how long.
pub fn packet_words(bytes: &[u8]) -> String {
    let len = bytes.len();
    let Ok(packet) = SlicedPacket::from_ethernet(bytes) else {
        return format!("{len} bytes");
    };
    let (from, to) = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => (
            ip.header().source_addr().to_string(),
            ip.header().destination_addr().to_string(),
        ),
        Some(NetSlice::Ipv6(ip)) => (
            ip.header().source_addr().to_string(),
            ip.header().destination_addr().to_string(),
        ),
        _ => return format!("{len} bytes, not IP"),
    };
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let flags: String = [
                (tcp.syn(), 'S'),
                (tcp.fin(), 'F'),
                (tcp.rst(), 'R'),
                (tcp.psh(), 'P'),
                (tcp.ack(), '.'),
            ]
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, letter)| *letter)
            .collect();
            format!(
                "{from}:{} > {to}:{} TCP [{flags}] seq {} ack {}, {} bytes",
                tcp.source_port(),
                tcp.destination_port(),
                tcp.sequence_number(),
                tcp.acknowledgment_number(),
                tcp.payload().len()
            )
        }
        Some(TransportSlice::Udp(udp)) => format!(
            "{from}:{} > {to}:{} UDP, {} bytes",
            udp.source_port(),
            udp.destination_port(),
            udp.payload().len()
        ),
        Some(TransportSlice::Icmpv4(_) | TransportSlice::Icmpv6(_)) => {
            format!("{from} > {to} ICMP, {len} bytes")
        }
        _ => format!("{from} > {to}, {len} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter, RawPcapPacket};

    fn folder(lines: &str, packets: &[(u64, u16)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("hosts/a")).unwrap();
        std::fs::create_dir_all(dir.path().join("network")).unwrap();
        std::fs::write(
            dir.path().join("network/plan.json"),
            dir.path().to_string_lossy().as_bytes(),
        )
        .unwrap();
        std::fs::write(dir.path().join("result.json"), "{}").unwrap();
        std::fs::write(dir.path().join("tcp.csv"), format!("time,x\n{lines}")).unwrap();
        let file = File::create(dir.path().join("hosts/a/eth0.pcap")).unwrap();
        let mut writer = PcapWriter::new(file).unwrap();
        for (micros, port) in packets {
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .udp(*port, 53);
            let mut bytes = Vec::new();
            builder.write(&mut bytes, b"hello").unwrap();
            let packet =
                PcapPacket::new(Duration::from_micros(*micros), bytes.len() as u32, &bytes);
            writer.write_packet(&packet).unwrap();
        }
        dir
    }

    #[test]
    fn equal_runs() {
        let (a, b) = (folder("1.5,x\n", &[(7, 1)]), folder("1.5,x\n", &[(7, 1)]));
        let found = compare(a.path(), b.path()).unwrap();
        assert_eq!((found.files, found.differences.len()), (3, 0));
    }

    #[test]
    fn the_earliest_comes_first() {
        let a = folder("0.5,x\n1.5,x\n", &[(7, 1), (1_000_000, 2)]);
        let b = folder("0.5,x\n1.5,y\n", &[(7, 1), (1_000_000, 3)]);
        let found = compare(a.path(), b.path()).unwrap().differences;
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].file, Path::new("hosts/a/eth0.pcap"));
        assert_eq!((found[0].at, found[0].number), (Some(1_000_000_000), 2));
        assert_eq!(
            found[0].first,
            "1.000000000 s 10.0.0.1:2 > 10.0.0.2:53 UDP, 5 bytes"
        );
        assert_eq!((found[1].at, found[1].number), (Some(1_500_000_000), 3));
    }

    /// What `pcap_capture_size` leaves: packets that were longer than what is kept of each.
    #[test]
    fn cut_packets() {
        let [a, b] = [1, 2].map(|last| {
            let dir = folder("", &[]);
            let file = File::create(dir.path().join("hosts/a/eth0.pcap")).unwrap();
            let header = PcapHeader {
                snaplen: 4,
                ..PcapHeader::default()
            };
            let mut writer = PcapWriter::with_header(file, header).unwrap();
            let packet = RawPcapPacket {
                ts_sec: 1,
                ts_frac: 0,
                incl_len: 4,
                orig_len: 900,
                data: vec![0, 0, 0, last].into(),
            };
            writer.write_raw_packet(&packet).unwrap();
            dir
        });
        let found = compare(a.path(), b.path()).unwrap().differences;
        assert_eq!((found.len(), found[0].at), (1, Some(1_000_000_000)));
    }

    #[test]
    fn shorter_and_missing() {
        let (a, b) = (folder("", &[(7, 1)]), folder("", &[]));
        std::fs::write(b.path().join("hosts/a/sh.1000.stdout"), "x").unwrap();
        let found = compare(a.path(), b.path()).unwrap().differences;
        assert_eq!(found[0].second, "the end");
        assert_eq!(
            (found[1].first.as_str(), found[1].at),
            ("no such file", None)
        );
        std::fs::remove_file(a.path().join("result.json")).unwrap();
        assert!(compare(a.path(), b.path())
            .unwrap_err()
            .to_string()
            .contains("no data folder"));
    }
}
