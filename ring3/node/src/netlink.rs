// SPDX-License-Identifier: GPL-2.0
//! Routing netlink, the same on a node and on the host: only the socket differs.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use ipnet::IpNet;
use netlink_packet_core::{
    DefaultNla, NetlinkBuffer, NetlinkMessage, NetlinkPayload, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL,
    NLM_F_REPLACE, NLM_F_REQUEST,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{netlink, AddressFamily as HostFamily, RecvFlags, SendFlags, SocketFlags};

use crate::calls::SockAddr;
pub use crate::error::Errno;
use crate::image::Thread;

type Result<T> = std::result::Result<T, Errno>;

/// An answer is one acknowledgement: an errno and the request's header.
const ANSWER_MAX: usize = 8192;
/// Of linux/rtnetlink.h.
const TCA_OPTIONS: u16 = 2;

/// A netlink socket: on a node or on the host.
pub trait Wire {
    fn send(&mut self, data: &[u8]) -> Result<()>;
    fn recv(&mut self, data: &mut [u8]) -> Result<usize>;
}

/// A netlink socket of a node; closed with this value.
pub(crate) struct NodeWire<'a> {
    thread: &'a mut Thread,
    fd: i32,
}

impl<'a> NodeWire<'a> {
    pub fn open(thread: &'a mut Thread) -> Result<NodeWire<'a>> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let fd = thread.socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)?;
        Ok(NodeWire { thread, fd })
    }
}

impl Drop for NodeWire<'_> {
    fn drop(&mut self) {
        let _ = self.thread.close(self.fd);
    }
}

impl Wire for NodeWire<'_> {
    fn send(&mut self, data: &[u8]) -> Result<()> {
        self.thread
            .send_to(self.fd, data, &SockAddr::netlink())
            .map(drop)
    }

    fn recv(&mut self, data: &mut [u8]) -> Result<usize> {
        self.thread.recv(self.fd, data, 0)
    }
}

/// A netlink socket of the host; in a process of a node, a socket of the node.
#[derive(Debug)]
pub struct HostWire(OwnedFd);

impl HostWire {
    pub fn open() -> Result<HostWire> {
        let fd = rustix::net::socket_with(
            HostFamily::NETLINK,
            rustix::net::SocketType::RAW,
            SocketFlags::CLOEXEC,
            None, // NETLINK_ROUTE is protocol 0
        )?;
        Ok(HostWire(fd))
    }
}

/// One end of a pair of interfaces: its name, and the namespace that it is in.
#[derive(Debug)]
pub struct VethEnd<'a> {
    name: &'a str,
    /// A descriptor of the process that has the netlink socket.
    namespace: i32,
}

impl<'a> VethEnd<'a> {
    pub fn new(name: &'a str, namespace: i32) -> Self {
        VethEnd { name, namespace }
    }

    fn message(&self, mtu: Option<u32>) -> LinkMessage {
        let mut link = named(self.name, mtu);
        let namespace = LinkAttribute::NetNsFd(self.namespace);
        link.attributes.push(namespace);
        link
    }
}

fn named(name: &str, mtu: Option<u32>) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes.push(LinkAttribute::IfName(name.to_owned()));
    link.attributes.extend(mtu.map(LinkAttribute::Mtu));
    link
}

impl Wire for HostWire {
    fn send(&mut self, data: &[u8]) -> Result<()> {
        let kernel = netlink::SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.0, data, SendFlags::empty(), &kernel)?;
        Ok(())
    }

    fn recv(&mut self, data: &mut [u8]) -> Result<usize> {
        let (bytes, _) = rustix::net::recv(&self.0, data, RecvFlags::empty())?;
        Ok(bytes)
    }
}

#[derive(Debug)]
pub struct Netlink<W> {
    wire: W,
    sequence: u32,
}

impl<W: Wire> Netlink<W> {
    pub fn new(wire: W) -> Self {
        Netlink { wire, sequence: 0 }
    }

    /// The number of an interface in the socket's namespace.
    pub fn index(&mut self, name: &str) -> Result<u32> {
        self.send(RouteNetlinkMessage::GetLink(named(name, None)), 0)?;
        let mut answer = vec![0; ANSWER_MAX];
        let len = self.wire.recv(&mut answer)?;
        let header = NetlinkBuffer::new_checked(&answer[..len.min(ANSWER_MAX)])
            .map_err(|_| Errno(libc::EPROTO))?;
        let word = header.payload().get(4..8).and_then(|it| it.try_into().ok());
        let word = word.ok_or(Errno(libc::EPROTO))?;
        match header.message_type() {
            // struct ifinfomsg: family, type, then the number.
            libc::RTM_NEWLINK => Ok(u32::from_ne_bytes(word)),
            _ => Err(Errno(libc::ENODEV)),
        }
    }

    /// Sets an interface up, and its MTU if one is given.
    pub fn link_up(&mut self, ifindex: u32, mtu: Option<u32>) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = ifindex;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes.extend(mtu.map(LinkAttribute::Mtu));
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Makes a pair of interfaces, each directly in its namespace.
    pub fn veth_add(&mut self, a: &VethEnd<'_>, b: &VethEnd<'_>, mtu: Option<u32>) -> Result<()> {
        let mut link = a.message(mtu);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(b.message(mtu)))),
        ]));
        self.change(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    pub fn bridge_add(&mut self, name: &str, mtu: Option<u32>) -> Result<()> {
        let mut link = named(name, mtu);
        let kind = vec![LinkInfo::Kind(InfoKind::Bridge)];
        link.attributes.push(LinkAttribute::LinkInfo(kind));
        self.change(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Makes an interface a port of a bridge.
    pub fn controller_set(&mut self, ifindex: u32, bridge: u32) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = ifindex;
        link.attributes.push(LinkAttribute::Controller(bridge));
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// The qdisc of all that an interface sends; `options` are in the form of its kind.
    pub fn root_qdisc_set(&mut self, ifindex: u32, kind: &str, options: Vec<u8>) -> Result<()> {
        let mut qdisc = TcMessage::with_index(ifindex as i32);
        qdisc.header.parent = TcHandle::ROOT;
        qdisc.attributes.push(TcAttribute::Kind(kind.to_owned()));
        let options = DefaultNla::new(TCA_OPTIONS, options);
        qdisc.attributes.push(TcAttribute::Other(options));
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewQueueDiscipline(qdisc), flags)
    }

    pub fn link_del(&mut self, ifindex: u32) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = ifindex;
        self.change(RouteNetlinkMessage::DelLink(link), 0)
    }

    /// Adds an address, without duplicate address detection, which would make an IPv6 address
    /// unusable for a second: the user chose the address.
    pub fn address_add(&mut self, ifindex: u32, net: IpNet) -> Result<()> {
        let mut address = AddressMessage::default();
        address.header.family = family(net.addr());
        address.header.prefix_len = net.prefix_len();
        address.header.flags = AddressHeaderFlags::Nodad;
        address.header.scope = AddressScope::Universe;
        address.header.index = ifindex;
        let attributes = &mut address.attributes;
        attributes.push(AddressAttribute::Local(net.addr()));
        attributes.push(AddressAttribute::Address(net.addr()));
        attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        if let IpNet::V4(v4) = net {
            if v4.prefix_len() < 31 {
                attributes.push(AddressAttribute::Broadcast(v4.broadcast()));
            }
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewAddress(address), flags)
    }

    /// Adds a default route; peers may send `window` bytes at once on it.
    pub fn default_route_add(
        &mut self,
        ifindex: u32,
        gateway: IpAddr,
        window: Option<u32>,
    ) -> Result<()> {
        self.route_add(
            ifindex,
            gateway,
            RouteAttribute::Gateway(gateway.into()),
            window,
        )
    }

    /// Adds a route to a network by way of a gateway.
    pub fn network_route_add(&mut self, to: IpNet, via: IpAddr) -> Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = family(via);
        route.header.table = libc::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.kind = RouteType::Unicast;
        route.header.scope = RouteScope::Universe;
        route.header.destination_prefix_length = to.prefix_len();
        if to.prefix_len() > 0 {
            let network = RouteAttribute::Destination(to.network().into());
            route.attributes.push(network);
        }
        route.attributes.push(RouteAttribute::Gateway(via.into()));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(route), flags)
    }

    /// Makes every address of `any`'s family that has no other route local to this node: `ip route
    /// add local default dev lo`.
    pub fn local_default_add(&mut self, ifindex: u32, any: IpAddr) -> Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = family(any);
        route.header.table = libc::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.kind = RouteType::Local;
        route.header.scope = RouteScope::Host;
        route.attributes.push(RouteAttribute::Oif(ifindex));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(route), flags)
    }

    /// Adds a route to one neighbour, as [`Netlink::default_route_add`].
    pub fn host_route_add(&mut self, ifindex: u32, to: IpAddr, window: u32) -> Result<()> {
        let to_it = RouteAttribute::Destination(to.into());
        self.route_add(ifindex, to, to_it, Some(window))
    }

    fn route_add(
        &mut self,
        ifindex: u32,
        gateway: IpAddr,
        way: RouteAttribute,
        window: Option<u32>,
    ) -> Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = family(gateway);
        route.header.table = libc::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.kind = RouteType::Unicast;
        route.header.scope = RouteScope::Universe;
        if matches!(way, RouteAttribute::Destination(_)) {
            route.header.destination_prefix_length = if gateway.is_ipv4() { 32 } else { 128 };
            route.header.scope = RouteScope::Link;
        }
        route.attributes.push(way);
        route.attributes.push(RouteAttribute::Oif(ifindex));
        if let Some(window) = window {
            let window = RouteMetric::Window(window);
            route.attributes.push(RouteAttribute::Metrics(vec![window]));
        }
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(route), flags)
    }

    fn send(&mut self, request: RouteNetlinkMessage, flags: u16) -> Result<()> {
        self.sequence += 1;
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | flags;
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.wire.send(&bytes)
    }

    /// Sends a request that changes something and waits for its acknowledgement.
    fn change(&mut self, request: RouteNetlinkMessage, flags: u16) -> Result<()> {
        self.send(request, NLM_F_ACK | flags)?;
        let mut answer = vec![0; ANSWER_MAX];
        loop {
            let len = self.wire.recv(&mut answer)?;
            let mut rest = answer.get(..len).ok_or(Errno(libc::EMSGSIZE))?;
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|_| Errno(libc::EPROTO))?;
                // An acknowledgement of an earlier request that was given up is skipped.
                if message.header.sequence_number == self.sequence {
                    if let NetlinkPayload::Error(error) = message.payload {
                        return match error.raw_code() {
                            0 => Ok(()),
                            code => Err(Errno(-code)),
                        };
                    }
                }
                let taken = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(taken.max(16)..).unwrap_or_default();
            }
        }
    }
}

fn family(ip: IpAddr) -> AddressFamily {
    match ip {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
