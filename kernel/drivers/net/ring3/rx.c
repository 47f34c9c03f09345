// SPDX-License-Identifier: GPL-2.0-only
/*
 * rx.c - makes an skb of bytes that an untrusted peer wrote
 *
 * Shared by all kinds: a frame's length is checked before it is copied, and its offload header on the copy. Refused
 * frames are counted, as other Ethernet drivers do, and dropped.
 */
#include "port.h"

/* Bytes: frames up to this size become linear skbs; a 1500-byte MTU's do. */
#define RX_LINEAR	1600U

/* Bytes of a larger frame that are copied to the linear part: its headers ... */
#define RX_HEAD_MIN	64U
#define RX_HEAD_MAX	256U
/* ... if the far side does not say how long they are. */
#define RX_HEAD		128U

void ring3_rx_fault(struct ring3_port *port, enum ring3_rx_fault why)
{
	struct net_device *dev = port->dev;

	switch (why) {
	case RING3_FAULT_RUNT:
		ring3_count(port, RING3_RX_RUNTS);
		DEV_STATS_INC(dev, rx_length_errors);
		break;
	case RING3_FAULT_GIANT:
		ring3_count(port, RING3_RX_GIANTS);
		DEV_STATS_INC(dev, rx_length_errors);
		break;
	case RING3_FAULT_HEADER:
		ring3_count(port, RING3_RX_BAD_HEADER);
		DEV_STATS_INC(dev, rx_frame_errors);
		break;
	case RING3_FAULT_MEMORY:
		/* Not the frame's fault: counted as dropped, not as an error. */
		ring3_count(port, RING3_RX_NO_MEMORY);
		DEV_STATS_INC(dev, rx_dropped);
		return;
	}
	DEV_STATS_INC(dev, rx_errors);
}

/*
 * Checks a frame's length before any of it is copied. Like other Ethernet drivers, the port accepts its MTU plus
 * VLAN tags; segments to be cut may be larger.
 */
bool ring3_rx_len_ok(struct ring3_port *port, unsigned int len, u8 gso_type)
{
	unsigned int max = READ_ONCE(port->dev->mtu) + ETH_HLEN + 2 * VLAN_HLEN;

	if (unlikely(len < ETH_HLEN)) {
		ring3_rx_fault(port, RING3_FAULT_RUNT);
		return false;
	}
	if (gso_type != VIRTIO_NET_HDR_GSO_NONE)
		max = RING3_FRAME_MAX;
	if (unlikely(len > max)) {
		ring3_rx_fault(port, RING3_FAULT_GIANT);
		return false;
	}
	return true;
}

/* Copies len bytes at data into fragments of skb. */
static bool rx_fill_frags(struct sk_buff *skb, struct page_frag *frag, const void *data, u32 len)
{
	int i = 0;

	while (len) {
		u32 n = min_t(u32, len, PAGE_SIZE);

		if (unlikely(i == MAX_SKB_FRAGS ||
			     !skb_page_frag_refill(n, frag, GFP_ATOMIC | __GFP_NOWARN)))
			return false;
		n = min(len, frag->size - frag->offset);
		memcpy(page_address(frag->page) + frag->offset, data, n);
		get_page(frag->page);
		skb_add_rx_frag(skb, i++, frag->page, frag->offset, n, ALIGN(n, SMP_CACHE_BYTES));
		frag->offset += ALIGN(n, SMP_CACHE_BYTES);
		data += n;
		len -= n;
	}
	return true;
}

/*
 * Copies a frame whose length has been checked. NULL, and counted, if there is no memory. hdr_len: the length of
 * its headers, as the far side says, or 0. A 64 KiB segment becomes one skb, packed into large pages; frag keeps
 * the rest of a page for the next frame.
 */
struct sk_buff *ring3_rx_copy(struct ring3_port *port, struct page_frag *frag,
			      const void *data, u32 len, u32 hdr_len)
{
	u32 head = len;
	struct sk_buff *skb;

	if (len > RX_LINEAR)
		head = hdr_len ? clamp(hdr_len, RX_HEAD_MIN, RX_HEAD_MAX) : RX_HEAD;
	skb = napi_alloc_skb(&port->napi, head);
	if (unlikely(!skb))
		goto fault;
	skb_put_data(skb, data, head);
	if (likely(rx_fill_frags(skb, frag, data + head, len - head)))
		return skb;
	kfree_skb(skb);
fault:
	ring3_rx_fault(port, RING3_FAULT_MEMORY);
	return NULL;
}

void ring3_rx_copy_end(struct page_frag *frag)
{
	if (frag->page)
		put_page(frag->page);
	frag->page = NULL;
}

static bool rx_prepare(struct ring3_port *port, struct sk_buff *skb, const struct virtio_net_hdr *hdr)
{
	struct net_device *dev = port->dev;

	if ((hdr->flags & VIRTIO_NET_HDR_F_DATA_VALID) && (dev->features & NETIF_F_RXCSUM))
		skb->ip_summed = CHECKSUM_UNNECESSARY;

	if (unlikely(virtio_net_hdr_to_skb(skb, hdr, true))) {
		ring3_rx_fault(port, RING3_FAULT_HEADER);
		kfree_skb(skb);
		return false;
	}
	dev_sw_netstats_rx_add(dev, skb->len);
	skb_record_rx_queue(skb, 0);
	skb->protocol = eth_type_trans(skb, dev);
	return true;
}

/* To the stack. */
void ring3_deliver(struct ring3_port *port, struct sk_buff *skb, const struct virtio_net_hdr *hdr)
{
	if (likely(rx_prepare(port, skb, hdr)))
		napi_gro_receive(&port->napi, skb);
}

/* To the port's program, if there is one, and to the stack. */
void ring3_receive(struct ring3_port *port, struct sk_buff *skb, const struct virtio_net_hdr *hdr)
{
	if (unlikely(!rx_prepare(port, skb, hdr)))
		return;
	if (ring3_has_prog(port) && !ring3_prog_skb(port, &skb))
		return;
	napi_gro_receive(&port->napi, skb);
}

/* The same for a frame that a stranger's memory holds, whose length was found good. hdr_len: see ring3_rx_copy(). */
void ring3_rx_frame(struct ring3_port *port, struct page_frag *frag, const void *data, u32 len,
		    u32 hdr_len, const struct virtio_net_hdr *hdr)
{
	struct sk_buff *skb;

	if (ring3_has_prog(port) && ring3_prog_bytes(port, data, len, hdr))
		return;
	skb = ring3_rx_copy(port, frag, data, len, hdr_len);
	if (likely(skb))
		ring3_receive(port, skb, hdr);
}
