// SPDX-License-Identifier: GPL-2.0
//! `pcap=FILE`: everything that crosses a port, as the node's own packet socket sees it.
//!
//! The thread is a process of the node in its own right (it has a task), so that it can
//! sleep in recvmsg like any program. The file is pcap with nanoseconds, flushed whenever there is
//! nothing more to write. It ends with its interface when `stop` is set, or with the node. A file that is such a capture
//! already is continued; any other that holds something is refused: nothing is overwritten.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

use rustix::fs::{fcntl_setfl, flock, FlockOperation, OFlags};

use crate::calls::SockAddr;
use crate::drivers::Driver;
use crate::error::{Errno, Error, Result};
use crate::image::Thread;

/// A 64 KiB segment with its headers fits.
const FRAME_MAX: usize = 128 << 10;
/// Of the packet socket, so that a burst is not lost while the disk is slow.
const SOCKET_BYTES: i32 = 8 << 20;
/// Ancillary data: a time stamp (32 bytes) and what the kernel took off the frame (40); room for what a newer one adds.
const CONTROL_BYTES: usize = 256;
/// <linux/if_packet.h>
const PACKET_AUXDATA: i32 = 8;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
/// Bytes of the two addresses, behind which a VLAN tag lies.
const ADDRESSES: usize = 12;
/// SO_TIMESTAMPNS_OLD, <asm-generic/socket.h>
const SO_TIMESTAMPNS: i32 = 35;

/// Bytes that wait for a write.
const BUFFER_BYTES: usize = 1 << 20;

/// Starts to capture on interface `ifindex` with a task of its own; returns once it does.
pub(crate) fn start(
    mut thread: Thread,
    ifindex: u32,
    path: &Path,
    stop: Arc<AtomicBool>,
) -> Result<Driver> {
    let path = path.to_owned();
    let fail = capture_error(&path);
    let (file, goes_on) = open_file(&path).map_err(&fail)?;
    let out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut file = match goes_on {
        true => PcapFile { out },
        false => PcapFile::start(out).map_err(|error| fail(error.to_string()))?,
    };
    let (tell, told) = mpsc::channel();
    let driver = Driver::start("ring3-pcap", move || {
        let socket = match open(&mut thread, ifindex) {
            Ok(socket) => {
                let _ = tell.send(Ok(()));
                socket
            }
            Err(why) => {
                let _ = tell.send(Err(why));
                return;
            }
        };
        if let Err(error) = capture(&mut thread, socket, &mut file, &stop) {
            log::error!("{}", capture_error(&path)(error.to_string()));
        }
        // Fails when the node is over: then there is nothing to give back.
        let _ = thread.exit_group();
    })?;
    told.recv()
        .unwrap_or(Err(Errno(libc::EIO)))
        .map_err(Error::node("open a packet socket for a capture"))?;
    Ok(driver)
}

/// Opens the file, ours alone, at its end; and whether it is a capture already.
fn open_file(path: &Path) -> Result<(File, bool), String> {
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
    let end = end_of_capture(File::open(path).map_err(words)?).map_err(words)?;
    let end = end.ok_or(
        "it holds something else than a capture of ring3's: give another name, or move it away",
    )?;
    // A record that a killed node left incomplete goes.
    file.set_len(end).map_err(words)?;
    file.seek(SeekFrom::Start(end)).map_err(words)?;
    Ok((file, true))
}

/// Where the last whole record of a capture ends; `None`: it is not one of ours.
fn end_of_capture(file: File) -> std::io::Result<Option<u64>> {
    let len = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut ours = Vec::new();
    PcapFile::start(&mut ours)?;
    let mut head = vec![0; ours.len()];
    if len < head.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut head)?;
    if head != ours {
        return Ok(None);
    }
    let mut end = head.len() as u64;
    let mut record = [0; RECORD_BYTES as usize];
    while len - end >= RECORD_BYTES {
        file.read_exact(&mut record)?;
        let kept = u64::from(word(&record, 8).unwrap_or(u32::MAX));
        if kept > len - end - RECORD_BYTES {
            break;
        }
        file.seek_relative(kept as i64)?;
        end += RECORD_BYTES + kept;
    }
    Ok(Some(end))
}

fn capture_error(path: &Path) -> impl Fn(String) -> Error {
    let path: PathBuf = path.to_owned();
    move |why| Error::Capture {
        path: path.clone(),
        why,
    }
}

fn open(thread: &mut Thread, ifindex: u32) -> Result<i32, Errno> {
    // Protocol 0: nothing arrives before bind() has named the interface.
    let socket = thread.socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    thread.set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, SOCKET_BYTES)?;
    thread.set_option(socket, libc::SOL_SOCKET, SO_TIMESTAMPNS, 1)?;
    thread.set_option(socket, libc::SOL_PACKET, PACKET_AUXDATA, 1)?;
    thread.bind(socket, &SockAddr::packet(ifindex))?;
    Ok(socket)
}

/// Until the node ends (`Ok`) or the file cannot be written.
fn capture<W: Write>(
    thread: &mut Thread,
    socket: i32,
    file: &mut PcapFile<W>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    let mut frame = vec![0; FRAME_MAX];
    let mut control = [0; CONTROL_BYTES];
    let mut wait = 0;
    loop {
        let flags = libc::MSG_TRUNC | wait;
        // Before the look: what comes between a look at an empty queue and `stop` is wanted too.
        let is_over = stop.load(Ordering::Acquire);
        match thread.recv_msg(socket, &mut frame, &mut control, flags) {
            Ok((len, control_len)) => {
                wait = libc::MSG_DONTWAIT;
                let said = &control[..control_len.min(CONTROL_BYTES)];
                let tag = vlan_tag(said);
                file.write(timestamp(said), len, &frame[..len.min(FRAME_MAX)], tag)?;
            }
            Err(Errno(libc::EAGAIN)) => {
                file.flush()?;
                if is_over {
                    return Ok(());
                }
                // With `stop` set meanwhile the interface is going, which ends a wait.
                wait = 0;
            }
            // The interface goes up and down as its owner likes, and for good with the node;
            // what is queued comes behind this error.
            Err(Errno(libc::ENETDOWN | libc::EINTR)) => wait = libc::MSG_DONTWAIT,
            Err(_) => return file.flush(),
        }
    }
}

/// The control messages: level, type, data. Each is a struct cmsghdr (16 bytes) and its data, padded to 8 bytes.
fn messages(mut control: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let header = control.first_chunk::<16>()?;
        let len = usize::from_ne_bytes(*header.first_chunk()?);
        let data = control.get(16..len)?;
        let message = (word(header, 8)? as i32, word(header, 12)? as i32, data);
        control = control.get(len.next_multiple_of(8)..).unwrap_or_default();
        Some(message)
    })
}

/// Four bytes in this machine's order.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u32::from_ne_bytes)
}

/// The time in a message of type SCM_TIMESTAMPNS: struct timespec.
fn timestamp(control: &[u8]) -> Duration {
    messages(control)
        .filter(|&(level, kind, _)| (level, kind) == (libc::SOL_SOCKET, SO_TIMESTAMPNS))
        .find_map(|(.., data)| {
            let seconds = data.first_chunk().copied().map(u64::from_ne_bytes)?;
            Some(Duration::new(seconds, word(data, 8)?))
        })
        .unwrap_or_default()
}

/// The VLAN tag that the kernel took off before packet sockets saw the frame, as it was on the wire.
/// A message of type PACKET_AUXDATA: struct tpacket_auxdata, with the status first and the tag from byte 16 on.
fn vlan_tag(control: &[u8]) -> Option<[u8; 4]> {
    let (.., data) = messages(control)
        .find(|&(level, kind, _)| (level, kind) == (libc::SOL_PACKET, PACKET_AUXDATA))?;
    let status = word(data, 0)?;
    if status & TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let half = |at: usize| {
        data.get(at..)?
            .first_chunk()
            .copied()
            .map(u16::from_ne_bytes)
    };
    let protocol = match status & TP_STATUS_VLAN_TPID_VALID {
        0 => libc::ETH_P_8021Q as u16,
        _ => half(18)?,
    };
    let ([a, b], [c, d]) = (protocol.to_be_bytes(), half(16)?.to_be_bytes());
    Some([a, b, c, d])
}

/// A pcap file: 24 bytes, then 16 before each frame, in this machine's byte order.
struct PcapFile<W> {
    out: W,
}

/// What stands before each frame.
const RECORD_BYTES: u64 = 16;
/// Magic of a file with nanoseconds.
const PCAP_NANOS: u32 = 0xa1b2_3c4d;
/// Version 2.4.
const PCAP_VERSION: u32 = 2 | 4 << 16;
/// LINKTYPE_ETHERNET
const PCAP_ETHERNET: u32 = 1;

impl<W: Write> PcapFile<W> {
    fn start(out: W) -> std::io::Result<PcapFile<W>> {
        let mut file = PcapFile { out };
        let snaplen = FRAME_MAX as u32;
        file.words(&[PCAP_NANOS, PCAP_VERSION, 0, 0, snaplen, PCAP_ETHERNET])?;
        file.flush()?;
        Ok(file)
    }

    /// One frame of `len` bytes, of which `stored` was kept, with `tag` behind its addresses.
    fn write(
        &mut self,
        time: Duration,
        len: usize,
        stored: &[u8],
        tag: Option<[u8; 4]>,
    ) -> std::io::Result<()> {
        let tag = tag.as_ref().map_or(&[][..], |tag| &tag[..]);
        let (addresses, rest) = stored.split_at(ADDRESSES.min(stored.len()));
        let seconds = time.as_secs() as u32;
        let (kept, len) = ((stored.len() + tag.len()) as u32, (len + tag.len()) as u32);
        self.words(&[seconds, time.subsec_nanos(), kept, len])?;
        self.out.write_all(addresses)?;
        self.out.write_all(tag)?;
        self.out.write_all(rest)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }

    fn words(&mut self, words: &[u32]) -> std::io::Result<()> {
        words
            .iter()
            .try_for_each(|word| self.out.write_all(&word.to_ne_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_reads_it() {
        let mut file = PcapFile::start(Vec::new()).unwrap();
        let time = Duration::new(1_700_000_000, 123_456_789);
        file.write(time, 9000, b"frame", None).unwrap();
        let tagged = b"addresses...type";
        file.write(time, 16, tagged, Some([0x81, 0, 0x60, 5]))
            .unwrap();
        let bytes = file.out;
        let mut reader = pcap_file::pcap::PcapReader::new(&*bytes).unwrap();
        assert_eq!(reader.header().datalink, pcap_file::DataLink::ETHERNET);
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.timestamp, packet.orig_len), (time, 9000));
        assert_eq!(&*packet.data, b"frame");
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!(packet.orig_len, 20);
        assert_eq!(&*packet.data, b"addresses...\x81\0\x60\x05type");
        assert!(reader.next_packet().is_none());
    }

    #[test]
    fn a_capture_goes_on_and_nothing_else_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.pcap");
        for (frame, goes_on) in [(&b"first"[..], false), (b"second", true)] {
            let (out, was_there) = open_file(&path).unwrap();
            assert_eq!(was_there, goes_on);
            let mut file = match goes_on {
                true => PcapFile { out },
                false => PcapFile::start(out).unwrap(),
            };
            file.write(Duration::ZERO, frame.len(), frame, None)
                .unwrap();
            // A node that is killed leaves the beginning of a record.
            file.words(&[1, 2, 3]).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        let mut reader = pcap_file::pcap::PcapReader::new(&*bytes).unwrap();
        let mut frame = || reader.next_packet().unwrap().unwrap().data.into_owned();
        assert_eq!((frame(), frame()), (b"first".to_vec(), b"second".to_vec()));
        std::fs::write(&path, "notes of somebody's, longer than a header").unwrap();
        let why = open_file(&path).unwrap_err();
        assert!(why.contains("something else"), "{why}");
        assert!(std::fs::read(&path).unwrap().starts_with(b"notes"));
    }

    #[test]
    fn a_time_stamp_is_found_and_nothing_else_is_one() {
        let mut control = [0; 32];
        control[..8].copy_from_slice(&32u64.to_ne_bytes());
        control[8..12].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        control[12..16].copy_from_slice(&SO_TIMESTAMPNS.to_ne_bytes());
        control[16..24].copy_from_slice(&5u64.to_ne_bytes());
        control[24..].copy_from_slice(&7u64.to_ne_bytes());
        assert_eq!(timestamp(&control), Duration::new(5, 7));
        assert_eq!(vlan_tag(&control), None);
        control[12] = 1;
        assert_eq!(timestamp(&control), Duration::ZERO);
        assert_eq!(timestamp(&[]), Duration::ZERO);
    }

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut all = (16 + data.len()).to_ne_bytes().to_vec();
        all.extend([level.to_ne_bytes(), kind.to_ne_bytes()].concat());
        all.extend(data);
        all.resize(all.len().next_multiple_of(8), 0);
        all
    }

    #[test]
    fn a_tag_that_the_kernel_took_off_is_found_beside_the_time() {
        let mut aux = [0; 20];
        aux[0] = (TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID) as u8;
        aux[16..18].copy_from_slice(&0x6005u16.to_ne_bytes());
        aux[18..].copy_from_slice(&0x88a8u16.to_ne_bytes());
        let time = [7u64.to_ne_bytes(), 9u64.to_ne_bytes()].concat();
        let control = [
            message(libc::SOL_PACKET, PACKET_AUXDATA, &aux),
            message(libc::SOL_SOCKET, SO_TIMESTAMPNS, &time),
        ]
        .concat();
        assert_eq!(vlan_tag(&control), Some([0x88, 0xa8, 0x60, 5]));
        assert_eq!(timestamp(&control), Duration::new(7, 9));
        aux[0] = TP_STATUS_VLAN_VALID as u8;
        let control = message(libc::SOL_PACKET, PACKET_AUXDATA, &aux);
        assert_eq!(vlan_tag(&control), Some([0x81, 0, 0x60, 5]));
        aux[0] = 0;
        let control = message(libc::SOL_PACKET, PACKET_AUXDATA, &aux);
        assert_eq!(vlan_tag(&control), None);
        // Cut short, or a length that leads nowhere.
        assert_eq!(vlan_tag(&control[..20]), None);
        assert_eq!(vlan_tag(&[0; 40]), None);
    }
}
