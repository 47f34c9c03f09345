// SPDX-License-Identifier: GPL-2.0
//! What device and guest agree on, and the headers of frames that follow from it.

use virtio_bindings::bindings::virtio_config::{VIRTIO_F_ANY_LAYOUT, VIRTIO_F_VERSION_1};
use virtio_bindings::bindings::virtio_net::*;
use virtio_bindings::bindings::virtio_ring::{
    VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC,
};

use crate::chain::Fault;
use crate::link::{Header, HEADER};

/// VHOST_USER_F_PROTOCOL_FEATURES, of the socket's protocol.
const PROTOCOL_FEATURES: u32 = 30;

/// What the device offers.
pub const OFFERED: u64 = bits(&[
    VIRTIO_F_VERSION_1,
    VIRTIO_F_ANY_LAYOUT,
    VIRTIO_RING_F_EVENT_IDX,
    VIRTIO_RING_F_INDIRECT_DESC,
    PROTOCOL_FEATURES,
    VIRTIO_NET_F_MRG_RXBUF,
    // What the guest may send: the node takes all of it.
    VIRTIO_NET_F_CSUM,
    VIRTIO_NET_F_HOST_TSO4,
    VIRTIO_NET_F_HOST_TSO6,
    VIRTIO_NET_F_HOST_ECN,
    VIRTIO_NET_F_HOST_USO,
    // What the guest may take: the node sends all of it.
    VIRTIO_NET_F_GUEST_CSUM,
    VIRTIO_NET_F_GUEST_TSO4,
    VIRTIO_NET_F_GUEST_TSO6,
    VIRTIO_NET_F_GUEST_ECN,
    VIRTIO_NET_F_GUEST_USO4,
    VIRTIO_NET_F_GUEST_USO6,
]);

const fn bits(list: &[u32]) -> u64 {
    let mut all = 0;
    let mut at = 0;
    while at < list.len() {
        all |= 1 << list[at];
        at += 1;
    }
    all
}

/// The places in a header.
const FLAGS: usize = 0;
const GSO_TYPE: usize = 1;
const COUNT: usize = 10;
/// A legacy guest's header without merged buffers has no count.
const SHORT: usize = 10;

pub const NEEDS_CSUM: u8 = VIRTIO_NET_HDR_F_NEEDS_CSUM as u8;
const DATA_VALID: u8 = VIRTIO_NET_HDR_F_DATA_VALID as u8;
const ECN: u8 = VIRTIO_NET_HDR_GSO_ECN as u8;
pub const GSO_NONE: u8 = VIRTIO_NET_HDR_GSO_NONE as u8;
pub const GSO_TCPV4: u8 = VIRTIO_NET_HDR_GSO_TCPV4 as u8;
pub const GSO_TCPV6: u8 = VIRTIO_NET_HDR_GSO_TCPV6 as u8;
pub const GSO_UDP_L4: u8 = VIRTIO_NET_HDR_GSO_UDP_L4 as u8;

/// What was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed(pub u64);

impl Agreed {
    pub fn has(self, feature: u32) -> bool {
        self.0 & (1 << feature) != 0
    }

    pub fn words(self) -> &'static str {
        let segments = self.has(VIRTIO_NET_F_GUEST_TSO4) && self.has(VIRTIO_NET_F_HOST_TSO4);
        match (segments, self.has(VIRTIO_NET_F_GUEST_CSUM)) {
            (true, _) => "with 64 KiB segments",
            (false, true) => "without 64 KiB segments",
            (false, false) => "without 64 KiB segments and checksum offload",
        }
    }

    /// Bytes of the header in the guest's buffers.
    pub fn header_len(self) -> usize {
        match self.has(VIRTIO_F_VERSION_1) || self.merges() {
            true => HEADER,
            false => SHORT,
        }
    }

    /// A frame may be spread over several of the guest's buffers.
    pub fn merges(self) -> bool {
        self.has(VIRTIO_NET_F_MRG_RXBUF)
    }

    /// A header of the guest's, as the node gets it.
    pub fn judge(self, mut header: Header) -> Result<Header, Fault> {
        // That a checksum was found good is for devices to say.
        header[FLAGS] &= NEEDS_CSUM;
        if header[FLAGS] & NEEDS_CSUM != 0 && !self.has(VIRTIO_NET_F_CSUM) {
            return Err(Fault::Header);
        }
        let gso = header[GSO_TYPE];
        let may = match gso & !ECN {
            GSO_NONE => gso == GSO_NONE,
            GSO_TCPV4 => self.has(VIRTIO_NET_F_HOST_TSO4),
            GSO_TCPV6 => self.has(VIRTIO_NET_F_HOST_TSO6),
            GSO_UDP_L4 => self.has(VIRTIO_NET_F_HOST_USO),
            _ => false,
        };
        if !may || (gso & ECN != 0 && !self.has(VIRTIO_NET_F_HOST_ECN)) {
            return Err(Fault::Header);
        }
        header[COUNT..].copy_from_slice(&1u16.to_le_bytes());
        Ok(header)
    }

    /// Whether the guest takes a frame with this header as it is.
    pub fn takes(self, header: &Header) -> bool {
        let gso = header[GSO_TYPE];
        let takes_segments = match gso & !ECN {
            GSO_NONE => true,
            GSO_TCPV4 => self.has(VIRTIO_NET_F_GUEST_TSO4),
            GSO_TCPV6 => self.has(VIRTIO_NET_F_GUEST_TSO6),
            // One bit for both families would not do: they are negotiated together.
            GSO_UDP_L4 => self.has(VIRTIO_NET_F_GUEST_USO4) && self.has(VIRTIO_NET_F_GUEST_USO6),
            _ => false,
        };
        takes_segments
            && (gso & ECN == 0 || self.has(VIRTIO_NET_F_GUEST_ECN))
            && (header[FLAGS] & NEEDS_CSUM == 0 || self.has(VIRTIO_NET_F_GUEST_CSUM))
    }

    /// A header of the node's, as the guest gets it, for a frame in so many buffers.
    pub fn to_guest(self, mut header: Header, buffers: u16) -> Header {
        let known = match self.has(VIRTIO_NET_F_GUEST_CSUM) {
            true => NEEDS_CSUM | DATA_VALID,
            false => 0,
        };
        header[FLAGS] &= known;
        header[COUNT..].copy_from_slice(&buffers.to_le_bytes());
        header
    }
}
