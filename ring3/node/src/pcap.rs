// SPDX-License-Identifier: GPL-2.0
//! What crosses an interface, as the node's own packet socket sees it: `pcap=FILE`, and `ring3 capture`.
//!
//! The thread is a process of the node in its own right (it has a task), so that it can
//! sleep in recvmsg like any program. The file is flushed whenever there is nothing more to write: [`file`] has its formats,
//! [`owners`] the processes whose packets they are. A capture ends with its interface when `stop` is set, or with the node; a live
//! one also when the pipe that it writes to has no reader any more.

mod file;
mod flow;
mod owners;

use std::ffi::CString;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fcntl_setfl, OFlags};

use crate::calls::{Frame, Instruction, SockAddr};
use crate::drivers::Driver;
use crate::error::{Errno, Error, Result};
use crate::image::Thread;

use file::{open_file, CaptureFile, Format, Record};
use owners::{Look, Owners};

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
/// SO_TIMESTAMPNS_OLD, <asm-generic/socket.h>
const SO_TIMESTAMPNS: i32 = 35;

/// Bytes that wait for a write.
const BUFFER_BYTES: usize = 1 << 20;
/// How often a live capture looks whether somebody still reads. Chosen: a node that is captured wakes up so often.
const TURN: Duration = Duration::from_millis(200);
const TURN_SPEC: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
/// Bytes of a table of sockets; some 200,000 have lines in it.
const TABLE_MAX: usize = 32 << 20;

/// Where to capture, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    pub ifindex: u32,
    pub ifname: String,
    /// What has to be as it is in the file.
    pub path: PathBuf,
    /// Which frames; empty: all.
    pub filter: Vec<Instruction>,
    /// Ends when nobody reads the file, which is a pipe; the node goes on without.
    pub is_live: bool,
    pub stop: Arc<AtomicBool>,
}

/// Starts to capture with a task of its own; returns once it does.
pub(crate) fn start(mut thread: Thread, plan: Plan) -> Result<Driver> {
    let fail = capture_error(&plan.path);
    let format = match plan.is_live {
        true => Format::PcapNg,
        false => Format::of(&plan.path),
    };
    let (file, goes_on) = open_file(&plan.path, format).map_err(&fail)?;
    let pipe = match plan.is_live {
        true => {
            let words = |why: rustix::io::Errno| fail(why.to_string());
            fcntl_setfl(&file, OFlags::NONBLOCK).map_err(words)?;
            Some(file.try_clone().map_err(|why| fail(why.to_string()))?)
        }
        false => None,
    };
    let stop = plan.stop.clone();
    let out = BufWriter::with_capacity(BUFFER_BYTES, Out { file, stop });
    let file = CaptureFile::start(out, format, goes_on, &plan.ifname)
        .map_err(|error| fail(error.to_string()))?;
    let (tell, told) = mpsc::channel();
    let driver = Driver::start("ring3-pcap", move || {
        let socket = match open(&mut thread, &plan) {
            Ok(socket) => {
                let _ = tell.send(Ok(()));
                socket
            }
            Err(why) => {
                let _ = tell.send(Err(why));
                return;
            }
        };
        let owners = (format == Format::PcapNg).then(Owners::new);
        let mut capture = Capture {
            socket,
            file,
            owners,
            pipe,
            stop: &plan.stop,
        };
        match capture.run(&mut thread) {
            // Its reader has what it wanted.
            Err(error) if plan.is_live && error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => log::error!("{}", capture_error(&plan.path)(error.to_string())),
            Ok(()) => {}
        }
        // Fails if the node is over: then there is nothing to free.
        let _ = thread.exit_group();
    })?;
    told.recv()
        .unwrap_or(Err(Errno(libc::EIO)))
        .map_err(Error::node("open a packet socket for a capture"))?;
    Ok(driver)
}

fn capture_error(path: &Path) -> impl Fn(String) -> Error {
    let path: PathBuf = path.to_owned();
    move |why| Error::Capture {
        path: path.clone(),
        why,
    }
}

fn open(thread: &mut Thread, plan: &Plan) -> Result<i32, Errno> {
    // Protocol 0: nothing arrives before bind() has named the interface.
    let socket = thread.socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    thread.set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, SOCKET_BYTES)?;
    thread.set_option(socket, libc::SOL_SOCKET, SO_TIMESTAMPNS, 1)?;
    thread.set_option(socket, libc::SOL_PACKET, PACKET_AUXDATA, 1)?;
    if !plan.filter.is_empty() {
        thread.attach_filter(socket, &plan.filter)?;
    }
    if plan.is_live {
        thread.set_receive_timeout(socket, TURN)?;
    }
    thread.bind(socket, &SockAddr::packet(plan.ifindex))?;
    Ok(socket)
}

struct Capture<'a> {
    socket: i32,
    file: CaptureFile<BufWriter<Out>>,
    owners: Option<Owners>,
    /// A live one's.
    pipe: Option<File>,
    stop: &'a AtomicBool,
}

impl Capture<'_> {
    /// Until the node ends or nobody reads (`Ok`), or the file cannot be written.
    fn run(&mut self, thread: &mut Thread) -> std::io::Result<()> {
        let mut frame = vec![0; FRAME_MAX];
        let mut control = [0; CONTROL_BYTES];
        let mut wait = 0;
        loop {
            let flags = libc::MSG_TRUNC | wait;
            // Before the look: what comes between a look at an empty queue and `stop` is wanted too.
            let is_over = self.stop.load(Ordering::Acquire);
            match thread.recv_frame(self.socket, &mut frame, &mut control, flags) {
                Ok(got) => {
                    wait = libc::MSG_DONTWAIT;
                    let stored = &frame[..got.len.min(FRAME_MAX)];
                    let said = &control[..got.control.min(CONTROL_BYTES)];
                    self.write(thread, got, stored, said)?;
                }
                Err(Errno(libc::EAGAIN)) => {
                    self.file.flush()?;
                    if is_over || self.pipe.as_ref().is_some_and(is_unread) {
                        return Ok(());
                    }
                    // With `stop` set meanwhile the interface is going, which ends a wait; a live one's ends by itself.
                    wait = 0;
                }
                // The interface goes up and down as its owner likes, and for good with the node;
                // what is queued comes behind this error.
                Err(Errno(libc::ENETDOWN | libc::EINTR)) => wait = libc::MSG_DONTWAIT,
                Err(_) => return self.file.flush(),
            }
        }
    }

    fn write(
        &mut self,
        thread: &mut Thread,
        got: Frame,
        stored: &[u8],
        said: &[u8],
    ) -> std::io::Result<()> {
        let mut owners = &[][..];
        if let Some(all) = &mut self.owners {
            if let Some((flow, is_first)) = flow::of(stored, got.is_outgoing) {
                owners = all.of(&mut Procs(thread), &flow, is_first);
            }
        }
        self.file.write(Record {
            time: timestamp(said),
            len: got.len,
            stored,
            tag: vlan_tag(said),
            is_outgoing: got.is_outgoing,
            owners,
        })
    }
}

/// The node's /proc, as a task of the node sees it, and the host's for names.
struct Procs<'a>(&'a mut Thread);

impl Look for Procs<'_> {
    fn table(&mut self, name: &str) -> Vec<u8> {
        // Without IPv6 there is no tcp6; a table that is too long has no owners.
        let path = CString::new(format!("/proc/net/{name}"));
        let table = path.map(|it| self.0.read_file(&it, TABLE_MAX));
        table.ok().and_then(|it| it.ok()).unwrap_or_default()
    }

    fn processes(&mut self) -> Vec<u32> {
        let own = std::process::id();
        let all = self.0.region().procs().map(|entry| entry.pid as u32);
        all.filter(|pid| *pid != 0 && *pid != own).collect()
    }

    fn sockets(&mut self, pid: u32) -> Vec<u64> {
        let folder = format!("/proc/{pid}/fd");
        // A process that has ended has none.
        let names = CString::new(folder.as_str()).map(|it| self.0.names_in(&it));
        let names = names.ok().and_then(|it| it.ok()).unwrap_or_default();
        let number = |name: Vec<u8>| {
            let path = CString::new([folder.as_bytes(), b"/", &name].concat()).ok()?;
            let link = String::from_utf8(self.0.read_link(&path).ok()?).ok()?;
            link.strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        };
        names.into_iter().filter_map(number).collect()
    }

    fn name(&mut self, pid: u32) -> String {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.map_or_else(|_| "?".to_owned(), |it| it.trim_end().to_owned())
    }
}

/// A file or a pipe. A pipe whose reader is slow does not hold up the end of the node.
#[derive(Debug)]
struct Out {
    file: File,
    stop: Arc<AtomicBool>,
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.stop.load(Ordering::Acquire) {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let _ = poll(
                &mut [PollFd::new(&self.file, PollFlags::OUT)],
                Some(&TURN_SPEC),
            );
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether the reader of this pipe has gone.
fn is_unread(pipe: &File) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::empty())];
    let _ = poll(&mut fds, Some(&Timespec::default()));
    fds[0].revents().contains(PollFlags::ERR)
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // Truncated, or with a length beyond the end.
        assert_eq!(vlan_tag(&control[..20]), None);
        assert_eq!(vlan_tag(&[0; 40]), None);
    }
}
