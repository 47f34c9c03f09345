// SPDX-License-Identifier: GPL-2.0
//! Captures of a host's interfaces: one process for each host that is captured, a program on the node like all others.
//!
//! One packet socket sees every interface of the namespace; each packet goes to the file of its interface, with the
//! node's time. The process says [`LISTENING`] when it has begun. Files are written when no more packets wait, so that it can be killed. It
//! needs no right but that of its namespace: tcpdump changes its user, which a user namespace of one user refuses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    recvmsg, setsockopt, socket, sockopt, AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags,
    SockFlag, SockProtocol, SockType,
};
use nix::sys::time::TimeSpec;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

use crate::data::Data;
use crate::error::{Error, Result};
use crate::netlink::Asker;
use crate::plan::Plan;

/// What is said on standard output when packets are seen.
pub const LISTENING: &str = "listening";

/// What waits while other programs have the turn: as much as the largest burst of a scenario's rate.
const WAITING_BYTES: usize = 64 << 20;
/// linux/if_packet.h: what this host sends.
const PACKET_OUTGOING: u8 = 4;
const LOOPBACK: &str = "lo";

struct Port {
    is_loopback: bool,
    file: Shared,
    packets: PcapWriter<Shared>,
}

/// The writer of packets keeps its file to itself, and cannot be told to flush it.
#[derive(Clone)]
struct Shared(Rc<RefCell<BufWriter<File>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

struct Capture {
    host: String,
    socket: OwnedFd,
    ports: BTreeMap<usize, Port>,
    buffer: Vec<u8>,
    /// Packets that found no room; the kernel counts them.
    lost: u32,
}

/// Captures the interfaces that the plan says of this host, until it is killed. The caller is in the host's network namespace.
pub fn capture(plan: &Plan, name: &str) -> Result<()> {
    let host = plan
        .hosts
        .iter()
        .find(|host| host.name == name)
        .ok_or_else(|| Error::Said(format!("no host is called {name}")))?;
    let what = format!("capture packets of {name}");
    let cannot = || Error::host(what.clone());
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )
    .map_err(|why| cannot()(why))?;
    setsockopt(&socket, sockopt::RcvBufForce, &WAITING_BYTES).map_err(|why| cannot()(why))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|why| cannot()(why))?;
    setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(|why| cannot()(why))?;
    let known = Asker::new()
        .and_then(|asker| asker.interfaces())
        .map_err(|why| cannot()(why))?;
    let data = Data::of(plan);
    let (mut ports, mut most) = (BTreeMap::new(), 0);
    for (interface, bytes) in &host.captures {
        let Some(found) = known.iter().find(|one| one.name == *interface) else {
            return Err(Error::Said(format!("{name} has no interface {interface}")));
        };
        most = most.max(*bytes);
        let path = data.host(name).join(format!("{interface}.pcap"));
        let file = File::create(&path).map_err(Error::host(format!("write {}", path.display())))?;
        let file = Shared(Rc::new(RefCell::new(BufWriter::new(file))));
        let packets = PcapWriter::with_header(file.clone(), header(*bytes))
            .map_err(Error::host(what.clone()))?;
        let port = Port {
            is_loopback: interface == LOOPBACK,
            file,
            packets,
        };
        ports.insert(found.index as usize, port);
    }
    let mut capture = Capture {
        host: name.to_owned(),
        socket,
        ports,
        buffer: vec![0; most as usize],
        lost: 0,
    };
    capture.flush()?;
    let mut out = std::io::stdout();
    writeln!(out, "{LISTENING}").map_err(Error::host(what))?;
    capture.run()
}

fn header(snaplen: u32) -> PcapHeader {
    PcapHeader {
        version_major: 2,
        version_minor: 4,
        ts_correction: 0,
        ts_accuracy: 0,
        snaplen,
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::NanoSecond,
        endianness: Endianness::native(),
    }
}

impl Capture {
    fn run(&mut self) -> Result<()> {
        loop {
            let mut set = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match nix::poll::poll(&mut set, PollTimeout::NONE) {
                Ok(_) | Err(nix::Error::EINTR) => {}
                Err(why) => return Err(Error::host("wait for packets")(why)),
            }
            self.take_all()?;
            if self.lost > 0 {
                return Err(Error::Said(format!(
                    "{} packets of {} found no room",
                    self.lost, self.host
                )));
            }
        }
    }

    /// All that waits; then the files are as new as the packets.
    fn take_all(&mut self) -> Result<()> {
        while self.take()? {}
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        for port in self.ports.values_mut() {
            port.file
                .flush()
                .map_err(Error::host(format!("write captures of {}", self.host)))?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<bool> {
        let mut control = nix::cmsg_space!(TimeSpec, u32);
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let fd = self.socket.as_raw_fd();
        let (address, len, at, lost) =
            match recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), flags) {
                Ok(message) => {
                    let (mut at, mut lost) = (Duration::ZERO, 0);
                    let list = message.cmsgs().map_err(Error::host("receive packets"))?;
                    for control in list {
                        match control {
                            ControlMessageOwned::ScmTimestampns(time) => at = time.into(),
                            ControlMessageOwned::RxqOvfl(count) => lost = count,
                            _ => {}
                        }
                    }
                    (message.address, message.bytes, at, lost)
                }
                Err(nix::Error::EAGAIN) => return Ok(false),
                // An interface went down: others may go on.
                Err(nix::Error::EINTR | nix::Error::ENETDOWN) => return Ok(true),
                Err(why) => return Err(Error::host("receive packets")(why)),
            };
        self.lost = self.lost.max(lost);
        let Some(address) = address else {
            return Ok(true);
        };
        if let Some(port) = self.ports.get_mut(&address.ifindex()) {
            // On loopback each packet is seen as sent, and as received.
            if port.is_loopback && address.pkttype() == PACKET_OUTGOING {
                return Ok(true);
            }
            let bytes = &self.buffer[..len.min(self.buffer.len())];
            port.packets
                .write_packet(&PcapPacket::new(at, len as u32, bytes))
                .map_err(Error::host(format!("write captures of {}", self.host)))?;
        }
        Ok(true)
    }
}
