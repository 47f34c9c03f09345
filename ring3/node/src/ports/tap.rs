// SPDX-License-Identifier: GPL-2.0
//! A TAP of the host: made if it does not exist and this process may, used if it exists.
//!
//! Only a TAP that was made here is removed. It would vanish with its last descriptor, but programs
//! of the node hold descriptors too and may outlive the node: so it is removed by name when the
//! node goes down.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use ipnet::IpNet;
use ring3_abi::{RING3_PORT_CSUM, RING3_PORT_TSO, RING3_PORT_USO};
use rustix::fs::{Mode, OFlags};

use crate::error::{Errno, Error, Result};
use crate::netlink::{HostWire, Netlink};
use crate::sys;

/// sizeof(struct virtio_net_hdr_v1): what the node's driver puts before each frame.
const HEADER_BYTES: i32 = 12;

/* TUN_F_* of <linux/if_tun.h> */
const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;
const TUN_F_USO4: u32 = 0x20;
const TUN_F_USO6: u32 = 0x40;
const OFFLOAD: u32 = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
/// Since Linux 6.2.
const OFFLOAD_USO: u32 = OFFLOAD | TUN_F_USO4 | TUN_F_USO6;

#[derive(Debug)]
pub(crate) struct Tap {
    name: String,
    file: File,
    ifindex: u32,
    made: bool,
    flags: u32,
}

impl Tap {
    /// Attaches to TAP `name`; sets `host` on the host's side.
    pub fn open(name: &str, host: &[IpNet]) -> Result<Tap> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open("/dev/net/tun", flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(why) => return Err(open_error(why)),
        };
        let existed = sys::interface_index(name).is_some();
        if existed && !is_tap(name) {
            return Err(Error::TapNotTap {
                name: name.to_owned(),
            });
        }
        sys::tap_attach(file.as_fd(), name)
            .map_err(|why| attach_error(name, host, existed, why))?;
        let mut tap = Tap {
            name: name.to_owned(),
            ifindex: sys::interface_index(name).unwrap_or_default(),
            file,
            made: !existed,
            flags: 0,
        };
        tap.set_offload()?;
        tap.set_host_side(host)?;
        Ok(tap)
    }

    fn set_offload(&mut self) -> Result<()> {
        let fail = |why| Error::Host {
            what: format!("set up TAP `{}`", self.name),
            why,
        };
        sys::tap_set_header(self.file.as_fd(), HEADER_BYTES).map_err(fail)?;
        // The host always segments large packets that it gets: these are the ones that it may send.
        self.flags = RING3_PORT_CSUM | RING3_PORT_TSO;
        match sys::tap_set_offload(self.file.as_fd(), OFFLOAD_USO) {
            Ok(()) => self.flags |= RING3_PORT_USO,
            Err(Errno(libc::EINVAL)) => {
                log::info!("TAP `{}`: this host has no UDP segmentation", self.name);
                sys::tap_set_offload(self.file.as_fd(), OFFLOAD).map_err(fail)?;
            }
            Err(why) => return Err(fail(why)),
        }
        Ok(())
    }

    /// Sets the requested addresses and `up`, as far as they are not set.
    fn set_host_side(&self, host: &[IpNet]) -> Result<()> {
        if host.is_empty() && !self.made {
            return Ok(());
        }
        let forbidden = || Error::TapHostForbidden {
            name: self.name.clone(),
            remedy: host_remedy(&self.name, host),
        };
        let fail = |why: Errno| match why {
            Errno(libc::EPERM) => forbidden(),
            why => Error::Host {
                what: format!("set up the host's side of TAP `{}`", self.name),
                why,
            },
        };
        let mut netlink = Netlink::new(HostWire::open().map_err(fail)?);
        for net in host {
            match netlink.address_add(self.ifindex, *net) {
                Ok(()) | Err(Errno(libc::EEXIST)) => {}
                // Root has set the address already.
                Err(Errno(libc::EPERM)) if sys::has_address(&self.name, net.addr()) => {}
                Err(why) => return Err(fail(why)),
            }
        }
        if is_up(&self.name) {
            return Ok(());
        }
        netlink.link_up(self.ifindex, None).map_err(fail)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// RING3_PORT_* of the far side.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    pub fn made(&self) -> bool {
        self.made
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if !self.made {
            return;
        }
        let Ok(wire) = HostWire::open() else {
            return;
        };
        match Netlink::new(wire).link_del(self.ifindex) {
            Ok(()) | Err(Errno(libc::ENODEV)) => {}
            Err(why) => log::warn!("TAP `{}` stays: {why}", self.name),
        }
    }
}

fn is_tap(name: &str) -> bool {
    std::path::Path::new(&format!("/sys/class/net/{name}/tun_flags")).exists()
}

fn is_up(name: &str) -> bool {
    let flags = std::fs::read_to_string(format!("/sys/class/net/{name}/flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    flags & libc::IFF_UP as u32 != 0
}

fn open_error(why: rustix::io::Errno) -> Error {
    match why.into() {
        Errno(libc::EPERM | libc::EACCES) => Error::TunForbidden,
        Errno(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Error::TapMissing,
        why => Error::Host {
            what: "open /dev/net/tun".into(),
            why,
        },
    }
}

fn attach_error(name: &str, host: &[IpNet], existed: bool, why: Errno) -> Error {
    let name = name.to_owned();
    let user = user_name();
    match why {
        Errno(libc::EPERM | libc::EACCES) => {
            let more = format!(" && {}", host_remedy(&name, host));
            match existed {
                true => Error::TapForeign { name, user, more },
                false => Error::TapForbidden { name, user, more },
            }
        }
        Errno(libc::EBUSY) => Error::TapBusy { name },
        // A TUN, or one with several queues.
        Errno(libc::EINVAL) => Error::TapNotTap { name },
        why => Error::Host {
            what: format!("attach to TAP `{name}`"),
            why,
        },
    }
}

fn host_remedy(name: &str, host: &[IpNet]) -> String {
    let mut words: Vec<String> = host
        .iter()
        .map(|net| format!("ip addr add {net} dev {name}"))
        .collect();
    words.push(format!("ip link set {name} up"));
    words.join(" && ")
}

fn user_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    passwd
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
        .unwrap_or_else(|| uid.to_string())
}
