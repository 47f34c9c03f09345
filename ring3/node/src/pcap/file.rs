// SPDX-License-Identifier: GPL-2.0
//! A capture's file: pcap with nanoseconds, or pcap-ng with the owners of sockets.
//!
//! pcap-ng has no place for processes that Wireshark 4.0 shows. So a packet's owners are its comment (`frame.comment` in
//! Wireshark's filters), and its direction is in its flags.
//!
//! A file that is such a capture already is continued, in pcap-ng by a section of its own; any other that holds something is
//! refused: nothing is overwritten.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use rustix::fs::{fcntl_setfl, flock, FlockOperation, OFlags};

use super::owners::Process;
use super::{word, FRAME_MAX};

/// Bytes of the two addresses, behind which a VLAN tag lies.
const ADDRESSES: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Pcap,
    PcapNg,
}

impl Format {
    /// By the end of the file's name.
    pub fn of(path: &Path) -> Format {
        match path.extension() {
            Some(it) if it == "pcapng" => Format::PcapNg,
            _ => Format::Pcap,
        }
    }

    /// What each capture of ours begins with.
    fn head(self) -> std::io::Result<Vec<u8>> {
        match self {
            Format::Pcap => {
                let head = [
                    PCAP_NANOS,
                    PCAP_VERSION,
                    0,
                    0,
                    FRAME_MAX as u32,
                    PCAP_ETHERNET,
                ];
                Ok(head.map(u32::to_ne_bytes).concat())
            }
            Format::PcapNg => {
                let writer = PcapNgWriter::with_section_header(Vec::new(), section());
                Ok(writer.map_err(io)?.into_inner())
            }
        }
    }

    /// The length of the record that begins with these bytes, and how many bytes that takes to see.
    fn record(self, head: &[u8; RECORD_BYTES as usize]) -> Option<u64> {
        match self {
            Format::Pcap => Some(RECORD_BYTES + u64::from(word(head, 8)?)),
            Format::PcapNg => word(head, 4).map(u64::from).filter(|len| *len >= BLOCK_MIN),
        }
    }

    /// Bytes of the shortest record.
    fn shortest(self) -> u64 {
        match self {
            Format::Pcap => RECORD_BYTES,
            Format::PcapNg => BLOCK_MIN,
        }
    }
}

/// One frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub time: Duration,
    /// Of the frame, of which `stored` was kept.
    pub len: usize,
    pub stored: &'a [u8],
    /// Belongs behind the addresses.
    pub tag: Option<[u8; 4]>,
    pub is_outgoing: bool,
    pub owners: &'a [Process],
}

/// Opens the file, ours alone, at its end; and whether it is a capture already.
pub(super) fn open_file(path: &Path, format: Format) -> Result<(File, bool), String> {
    let words = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ENXIO) => "it is a pipe that nobody reads: start its reader first".to_owned(),
        Some(libc::EWOULDBLOCK) => {
            "another capture writes to it: give each a file of its own".to_owned()
        }
        _ => error.to_string(),
    };
    // A pipe's reader is not waited for, which could take for ever.
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(words)?;
    // Once it reads, it is.
    fcntl_setfl(&file, OFlags::empty()).map_err(|why| words(why.into()))?;
    if !file.metadata().map_err(words)?.is_file() {
        return Ok((file, false));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|why| words(why.into()))?;
    if file.metadata().map_err(words)?.len() == 0 {
        return Ok((file, false));
    }
    let end = end_of_capture(File::open(path).map_err(words)?, format).map_err(words)?;
    let end = end.ok_or(
        "it holds something else than a capture of ring3's: give another name, or move it away",
    )?;
    // A record that a killed node left incomplete goes.
    file.set_len(end).map_err(words)?;
    file.seek(SeekFrom::Start(end)).map_err(words)?;
    Ok((file, true))
}

/// Where the last whole record of a capture ends; `None`: it is not one of ours.
fn end_of_capture(file: File, format: Format) -> std::io::Result<Option<u64>> {
    let len = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let ours = format.head()?;
    let mut head = vec![0; ours.len()];
    if len < head.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut head)?;
    if head != ours {
        return Ok(None);
    }
    let mut end = head.len() as u64;
    while len - end >= format.shortest() {
        let mut record = [0; RECORD_BYTES as usize];
        let seen = (len - end).min(RECORD_BYTES) as usize;
        file.read_exact(&mut record[..seen])?;
        let Some(bytes) = format.record(&record).filter(|it| *it <= len - end) else {
            break;
        };
        file.seek_relative(bytes as i64 - seen as i64)?;
        end += bytes;
    }
    Ok(Some(end))
}

pub(super) enum CaptureFile<W: Write> {
    /// 24 bytes, then 16 before each frame, in this machine's byte order.
    Pcap(W),
    PcapNg(PcapNgWriter<W>),
}

/// What stands before each frame of a pcap file.
const RECORD_BYTES: u64 = 16;
/// Magic of a file with nanoseconds.
const PCAP_NANOS: u32 = 0xa1b2_3c4d;
/// Version 2.4.
const PCAP_VERSION: u32 = 2 | 4 << 16;
/// LINKTYPE_ETHERNET
const PCAP_ETHERNET: u32 = 1;
/// Bytes of a pcap-ng block without a body.
const BLOCK_MIN: u64 = 12;
/// Of a pcap-ng interface's times: 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Flags of a pcap-ng packet: its direction.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
fn section() -> SectionHeaderBlock<'static> {
    SectionHeaderBlock {
        endianness: Endianness::native(),
        options: vec![SectionHeaderOption::UserApplication("ring3".into())],
        ..SectionHeaderBlock::default()
    }
}

fn io(error: PcapError) -> std::io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => std::io::Error::other(other),
    }
}

impl<W: Write> CaptureFile<W> {
    /// `goes_on`: behind what the file holds already.
    pub fn start(out: W, format: Format, goes_on: bool, ifname: &str) -> std::io::Result<Self> {
        let mut file = match format {
            Format::Pcap => {
                let mut out = out;
                if !goes_on {
                    out.write_all(&format.head()?)?;
                }
                CaptureFile::Pcap(out)
            }
            Format::PcapNg => {
                let mut writer = PcapNgWriter::with_section_header(out, section()).map_err(io)?;
                let interface = InterfaceDescriptionBlock {
                    linktype: DataLink::ETHERNET,
                    snaplen: FRAME_MAX as u32,
                    options: vec![
                        InterfaceDescriptionOption::IfName(ifname.to_owned().into()),
                        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                    ],
                };
                let block = Block::InterfaceDescription(interface);
                writer.write_block(&block).map_err(io)?;
                CaptureFile::PcapNg(writer)
            }
        };
        file.flush()?;
        Ok(file)
    }

    pub fn write(&mut self, record: Record) -> std::io::Result<()> {
        let tag = record.tag.as_ref().map_or(&[][..], |tag| &tag[..]);
        let stored = record.stored;
        let (addresses, rest) = stored.split_at(ADDRESSES.min(stored.len()));
        let (kept, len) = (stored.len() + tag.len(), record.len + tag.len());
        match self {
            CaptureFile::Pcap(out) => {
                let (seconds, nanos) = (record.time.as_secs() as u32, record.time.subsec_nanos());
                for word in [seconds, nanos, kept as u32, len as u32] {
                    out.write_all(&word.to_ne_bytes())?;
                }
                out.write_all(addresses)?;
                out.write_all(tag)?;
                out.write_all(rest)
            }
            CaptureFile::PcapNg(writer) => {
                let direction = match record.is_outgoing {
                    true => OUTBOUND,
                    false => INBOUND,
                };
                let mut options = vec![EnhancedPacketOption::Flags(direction)];
                if !record.owners.is_empty() {
                    let comment = names(record.owners).into();
                    options.push(EnhancedPacketOption::Comment(comment));
                }
                let data = match tag {
                    [] => stored.into(),
                    tag => [addresses, tag, rest].concat().into(),
                };
                let packet = EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp: record.time,
                    original_len: len as u32,
                    data,
                    options,
                };
                let block = Block::EnhancedPacket(packet);
                writer.write_block(&block).map(drop).map_err(io)
            }
        }
    }

    pub fn flush(&mut self) -> std::io::Result<()> {
        match self {
            CaptureFile::Pcap(out) => out.flush(),
            CaptureFile::PcapNg(writer) => writer.get_mut().flush(),
        }
    }
}

/// `nginx (101), nginx (102)`
fn names(owners: &[Process]) -> String {
    let words = owners.iter().map(|it| format!("{} ({})", it.name, it.pid));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(stored: &[u8]) -> Record<'_> {
        Record {
            time: Duration::new(1_700_000_000, 123_456_789),
            len: stored.len(),
            stored,
            tag: None,
            is_outgoing: true,
            owners: &[],
        }
    }

    #[test]
    fn another_program_reads_it() {
        let mut file = CaptureFile::start(Vec::new(), Format::Pcap, false, "ab").unwrap();
        let long = Record {
            len: 9000,
            ..record(b"frame")
        };
        file.write(long).unwrap();
        let tagged = Record {
            tag: Some([0x81, 0, 0x60, 5]),
            ..record(b"addresses...type")
        };
        file.write(tagged).unwrap();
        let CaptureFile::Pcap(bytes) = file else {
            panic!("not the format that was asked for");
        };
        let mut reader = pcap_file::pcap::PcapReader::new(&*bytes).unwrap();
        assert_eq!(reader.header().datalink, DataLink::ETHERNET);
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.timestamp, packet.orig_len), (long.time, 9000));
        assert_eq!(&*packet.data, b"frame");
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!(packet.orig_len, 20);
        assert_eq!(&*packet.data, b"addresses...\x81\0\x60\x05type");
        assert!(reader.next_packet().is_none());
    }

    #[test]
    fn packets_name_their_owners() {
        let mut file = CaptureFile::start(Vec::new(), Format::PcapNg, false, "ab").unwrap();
        let process = |pid, name: &str| Process {
            pid,
            name: name.into(),
        };
        let both = [process(7, "nginx"), process(8, "nginx")];
        file.write(record(b"nobody's")).unwrap();
        for _ in 0..2 {
            let owned = Record {
                owners: &both,
                is_outgoing: false,
                tag: Some([0x81, 0, 0x60, 5]),
                ..record(b"addresses...type")
            };
            file.write(owned).unwrap();
        }
        let CaptureFile::PcapNg(writer) = file else {
            panic!("not the format that was asked for");
        };
        let bytes = writer.into_inner();
        let mut reader = pcap_file::pcapng::PcapNgReader::new(&*bytes).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            let block = block.unwrap().into_owned();
            packets.extend(block.into_enhanced_packet());
        }
        assert_eq!(packets.len(), 3);
        assert_eq!(packets[0].options, [EnhancedPacketOption::Flags(OUTBOUND)]);
        assert_eq!(packets[0].timestamp, record(b"").time);
        assert_eq!(&*packets[1].data, b"addresses...\x81\0\x60\x05type");
        let comment = EnhancedPacketOption::Comment("nginx (7), nginx (8)".into());
        assert!(packets[2].options.contains(&comment));
        assert!(packets[2]
            .options
            .contains(&EnhancedPacketOption::Flags(INBOUND)));
    }

    #[test]
    fn a_capture_goes_on_and_nothing_else_is_overwritten() {
        for name in ["c.pcap", "c.pcapng"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            let format = Format::of(&path);
            for (frame, goes_on) in [(&b"first"[..], false), (b"second", true)] {
                let (mut out, was_there) = open_file(&path, format).unwrap();
                assert_eq!(was_there, goes_on);
                let copy = out.try_clone().unwrap();
                let mut file = CaptureFile::start(copy, format, goes_on, "ab").unwrap();
                file.write(record(frame)).unwrap();
                // A node that is killed leaves the beginning of a record.
                out.write_all(&[1, 2, 100].map(u32::to_ne_bytes).concat())
                    .unwrap();
            }
            // Both are there, and what was cut behind the second alone.
            let bytes = std::fs::read(&path).unwrap();
            let mut frames = Vec::new();
            match format {
                Format::Pcap => {
                    let mut reader = pcap_file::pcap::PcapReader::new(&*bytes).unwrap();
                    while let Some(Ok(packet)) = reader.next_packet() {
                        frames.push(packet.data.into_owned());
                    }
                }
                Format::PcapNg => {
                    let mut reader = pcap_file::pcapng::PcapNgReader::new(&*bytes).unwrap();
                    while let Some(Ok(block)) = reader.next_block() {
                        let packet = block.into_enhanced_packet();
                        frames.extend(packet.map(|it| it.data.into_owned()));
                    }
                }
            }
            assert_eq!(frames, [b"first".to_vec(), b"second".to_vec()]);
            std::fs::write(&path, "notes of somebody's, longer than a header".repeat(3)).unwrap();
            let why = open_file(&path, format).unwrap_err();
            assert!(why.contains("something else"), "{why}");
            assert!(std::fs::read(&path).unwrap().starts_with(b"notes"));
        }
    }
}
