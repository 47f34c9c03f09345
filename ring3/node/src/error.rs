// SPDX-License-Identifier: GPL-2.0
//! Everything that can go wrong with a node's own process, in words that tell the user what to do.
//!
//! Each message is one line: what failed, why, and what to do about it.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use ring3_config::names::Route;

/// A Linux error number, as a node's kernel or the host's returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The host is Linux as well: its messages fit the node's errors.
        let text = io::Error::from_raw_os_error(self.0).to_string();
        match text.find(" (os error") {
            Some(end) => f.write_str(&text[..end]),
            None => f.write_str(&text),
        }
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Errno(errno.raw_os_error())
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no kernel image: looked for {}; build it with `make`, or name it with --image", join(.looked))]
    ImageMissing { looked: Vec<PathBuf> },
    #[error("no kernel image for several vCPUs: looked for {}; build it with `make smp`, or leave --cpus out", join(.looked))]
    ImageSmpMissing { looked: Vec<PathBuf> },
    #[error("{} has one vCPU, not {cpus}: name no image, or the smp one", path.display())]
    ImageOneCpu { path: PathBuf, cpus: u32 },
    #[error("cannot read the kernel image {}: {why}", path.display())]
    ImageUnreadable { path: PathBuf, why: Errno },
    #[error("{} is not a ring3 kernel image ({why}); build it again with `make`", path.display())]
    ImageBad { path: PathBuf, why: &'static str },
    #[error("{} has contract {found:08x}, this ring3 has {wanted:08x}: build both from one source with `make`", path.display())]
    ImageVersion {
        path: PathBuf,
        found: u32,
        wanted: u32,
    },
    #[error("a node of {} MiB is too small for its kernel image of {} MiB: give it more with --mem", size >> 20, image.div_ceil(1 << 20))]
    MemoryTooSmall { size: u64, image: u64 },
    #[error("cannot make a node's memory of {} MiB: {why}; give it less with --mem, or raise {}", size >> 20, limit_of(why))]
    Memory { size: u64, why: Errno },
    #[error("no free address range for another node in this process: {slots} is in use; is this a program with terabytes mapped, or on a node itself?")]
    NoSlot { slots: String },
    #[error("node `{name}` lies where another node of this process does: take `{name}` down and up while fewer than {slots} nodes are up")]
    SameSlot { name: String, slots: u64 },
    #[error("this process has {max} nodes already, as many as it can: start another process")]
    TooManyNodes { max: usize },

    #[error("no runtime folder: {} {why}", path.display())]
    Runtime { path: PathBuf, why: String },
    #[error("the path {} is longer than a unix socket's may be: set XDG_RUNTIME_DIR to a shorter folder", path.display())]
    PathTooLong { path: PathBuf },
    #[error("a node named `{name}` is running already: `ring3 down {name}` ends it")]
    NameTaken { name: String },
    #[error("no node named `{name}` is running: `ring3 ls` lists those that are")]
    NoSuchNode { name: String },
    #[error("node `{name}` is still starting: try again in a moment")]
    Starting { name: String },
    #[error("node `{name}` is going down")]
    Ending { name: String },
    #[error("node `{name}` failed {ago_s} s ago: {why}; `ring3 up` starts it again")]
    Ended {
        name: String,
        ago_s: u64,
        why: String,
    },
    #[error("node `{name}` does not answer: {why}")]
    NoAnswer { name: String, why: String },
    #[error("it was told to end before the node was up")]
    GivenUp,
    #[error("node `{name}` refused: {why}")]
    Refused { name: String, why: String },

    #[error("the node's kernel did not start: {why}")]
    Boot { why: String },
    #[error("the node is poisoned: {why}; start it again")]
    Poisoned { why: String },
    #[error(
        "the node did not end: a program inside its kernel is stopped (`fg` or `kill -CONT` it)"
    )]
    Stuck,
    #[error("the node's kernel refused to {what}: {why}")]
    Node { what: String, why: Errno },
    #[error("cannot {what}: {why}")]
    Host { what: String, why: Errno },

    #[error("a sandboxed node can't have that: {why}")]
    NotConfined { why: &'static str },
    #[error("the sandbox's warden said nothing of use: {why}")]
    Outside { why: String },

    #[error("link `{link}` has two ends and both are taken, by node `{first}` and node `{second}`: choose another name or take one of them down")]
    LinkTaken {
        link: String,
        first: String,
        second: String,
    },
    #[error("link `{link}`: its other end, node `{node}`, is up, and programs of this node cannot have its memory any more: give both a port `switch:NAME` instead")]
    LinkHasMemory { link: String, node: String },
    #[error("{why}")]
    PortSpec { why: ring3_config::ConfigError },
    #[error("a port of kind {kind} can't come to a node that is up, only one of kind switch or link: take the node down, and up with `--port`")]
    PortNotLive { kind: &'static str },
    #[error("no place for a further port: {why}")]
    NoPlace { why: &'static str },
    #[error("no port with the interface `{ifname}` that can be taken away: `ring3 stat` shows the node's ports; those of kind switch and link can be")]
    NoSuchPort { ifname: String },
    #[error("no interface `{ifname}` on the node: `ring3 exec NODE -- ip link` lists them")]
    NoSuchInterface { ifname: String },
    #[error("node `{node}` is no switch: choose another name for the switch, or start it by `ring3 up {node} --switch`")]
    NoSwitch { node: String },
    #[error("no switch `{name}`: {why}")]
    SwitchGone { name: String, why: String },
    #[error("link `{link}`: node `{node}` at its other end does not give the link's memory: {why}; is it stopped (`kill -CONT` it), or of another ring3 version?")]
    LinkSilent {
        link: String,
        node: String,
        why: String,
    },
    #[error("cannot use link {}: {why}", path.display())]
    LinkBad { path: PathBuf, why: &'static str },
    #[error("not permitted to use TAP `{name}`: ask root for `ip tuntap add dev {name} mode tap user {user}{more}`")]
    TapForbidden {
        name: String,
        user: String,
        more: String,
    },
    #[error("not permitted to open /dev/net/tun: ask root for `chmod 666 /dev/net/tun`, which lets users attach to TAPs made for them")]
    TunForbidden,
    #[error("TAP `{name}` was made for another user: choose another name, or ask root for `ip tuntap del dev {name} mode tap && ip tuntap add dev {name} mode tap user {user}{more}`")]
    TapForeign {
        name: String,
        user: String,
        more: String,
    },
    #[error("TAP `{name}` is in use by another program: choose another name or end that program")]
    TapBusy { name: String },
    #[error("`{name}` is an interface of the host but not a TAP: choose another name")]
    TapNotTap { name: String },
    #[error(
        "the host has no /dev/net/tun: load it with `modprobe tun`, or use a link or passt port"
    )]
    TapMissing,
    #[error("not permitted to set up the host's side of TAP `{name}`: ask root for `{remedy}`")]
    TapHostForbidden { name: String, remedy: String },
    #[error("passt is not installed: `apt install passt`, or use a tap or link port")]
    PasstMissing,
    #[error("passt did not start: {why}")]
    PasstFailed { why: String },
    #[error("the host port did not start: {why}")]
    HostPortFailed { why: String },
    #[error("the vhost port did not start: {why}")]
    VhostFailed { why: String },
    #[error("cannot listen on {} for a virtual machine: {why}", path.display())]
    VhostSocket { path: PathBuf, why: String },
    #[error("no interface `{ifname}` on the host: `ip link` lists those there are")]
    PacketNoInterface { ifname: String },
    #[error("not permitted to open a packet port on `{ifname}`: run as root or with CAP_NET_RAW")]
    PacketForbidden { ifname: String },
    #[error("not permitted to open an xdp port on `{ifname}`: run as root")]
    XdpForbidden { ifname: String },
    #[error(
        "`{ifname}` has an XDP program or socket of another's: end that, or use a packet port"
    )]
    XdpBusy { ifname: String },
    #[error("`{ifname}` is the host's own loopback, which an xdp port would take from its programs: use a tap port, or an interface of a veth pair")]
    XdpLoopback { ifname: String },
    #[error("the host has no AF_XDP sockets (CONFIG_XDP_SOCKETS): use a packet port")]
    XdpMissing,

    #[error("cannot set {addr} on {ifname}: {why}")]
    Address {
        addr: IpNet,
        ifname: String,
        why: Errno,
    },
    #[error("cannot use gateway {gw} on {ifname}: {why}; is it inside one of the port's addr= networks?")]
    Gateway {
        gw: IpAddr,
        ifname: String,
        why: Errno,
    },
    #[error("cannot add the route {route}: {why}; its gateway has to be on a network of the node")]
    Route { route: Route, why: Errno },
    #[error("cannot set sysctl {key} to `{value}`: {why}{}", remedy_of_sysctl(.why))]
    Sysctl {
        key: String,
        value: String,
        why: Errno,
    },
    #[error("cannot write the capture {}: {why}", path.display())]
    Capture { path: PathBuf, why: String },
}

fn remedy_of_sysctl(why: &Errno) -> &'static str {
    match why.0 {
        libc::ENOENT => "; `ring3 run -- /usr/sbin/sysctl -a --pattern ^net` lists those of a node",
        _ => "",
    }
}

/// The limit that the host reports: the node's memory is a file to it, too.
fn limit_of(why: &Errno) -> &'static str {
    match why.0 {
        libc::EFBIG => "`ulimit -f`",
        _ => "`ulimit -v` or a container's limit",
    }
}

impl Error {
    /// A host call failed: `what` completes "cannot ...".
    pub(crate) fn host(what: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> Error {
        let what = what.into();
        move |why| Error::Host {
            what,
            why: why.into(),
        }
    }

    /// The same for a call of the standard library.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |why| Error::Host {
            what,
            why: why.into(),
        }
    }

    /// A call on the node failed: `what` completes "refused to ...".
    pub(crate) fn node(what: impl Into<String>) -> impl FnOnce(Errno) -> Error {
        let what = what.into();
        move |why| Error::Node { what, why }
    }
}

fn join(paths: &[PathBuf]) -> String {
    let words: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    words.join(", ")
}
