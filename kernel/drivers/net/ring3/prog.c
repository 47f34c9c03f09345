// SPDX-License-Identifier: GPL-2.0-only
/*
 * prog.c - XDP programs on ports, before there is an skb
 *
 * Theory of operation
 * -------------------
 * A frame of the far side is copied into a page of ours, with room in front and behind, and the program sees that: a far
 * side may change what lies in its own memory after the program has judged it. What the program drops costs the copy
 * alone, and the next frame gets the same bytes. What it passes on becomes an skb around the page, without another copy.
 *
 * A program sees checksums that are right. A far side may leave one to whoever puts the frame on a wire (NEEDS_CSUM); it
 * is made before the program runs, which may change the packet, or send it where nobody makes it.
 *
 * Segments to be cut, and frames that are larger than a page with that room, become skbs first. Linux's generic XDP runs
 * the program on these (ring3_prog_skb()), as the tun driver does.
 *
 * XDP_TX and redirected frames go into the batch of the poll that they come from: see main.c.
 */
#include <linux/bpf_trace.h>
#include <linux/filter.h>
#include <net/checksum.h>
#include <net/xdp.h>

#include "port.h"

/* Send */

/* One frame of plain bytes; under the TX lock, while the queue is not stopped. */
static bool prog_xmit(struct ring3_port *port, const void *data, u32 len, bool more)
{
	struct sk_buff *skb;

	if (port->ops->xmit_bytes)
		return port->ops->xmit_bytes(port, data, len, more);
	skb = netdev_alloc_skb(port->dev, len);
	if (unlikely(!skb))
		return false;
	skb_put_data(skb, data, len);
	port->ops->xmit(port, skb, more);
	return true;
}

static bool prog_tx(struct ring3_port *port, const struct xdp_buff *xdp)
{
	struct netdev_queue *txq = ring3_txq(port);
	bool sent = false;

	__netif_tx_lock(txq, smp_processor_id());
	if (likely(!netif_xmit_frozen_or_drv_stopped(txq)))
		sent = prog_xmit(port, xdp->data, xdp->data_end - xdp->data, ring3_batch_add(port));
	__netif_tx_unlock(txq);
	return sent;
}

/* Frames that a program of another interface has sent here. Those that are not taken are the caller's still. */
int ring3_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames, u32 flags)
{
	struct ring3_port *port = netdev_priv(dev);
	struct netdev_queue *txq = ring3_txq(port);
	int sent;

	if (unlikely(flags & ~XDP_XMIT_FLAGS_MASK))
		return -EINVAL;
	if (unlikely(!netif_running(dev) || !netif_carrier_ok(dev)))
		return -ENETDOWN;

	__netif_tx_lock(txq, smp_processor_id());
	for (sent = 0; sent < n && !netif_xmit_frozen_or_drv_stopped(txq); sent++) {
		struct xdp_frame *frame = frames[sent];

		if (unlikely(xdp_frame_has_frags(frame) || !prog_xmit(port, frame->data, frame->len, true)))
			break;
		ring3_count(port, RING3_TX_XDP);
		xdp_return_frame_rx_napi(frame);
	}
	if ((flags & XDP_XMIT_FLUSH) && !ring3_batch_add(port) && !netif_xmit_frozen_or_drv_stopped(txq))
		port->ops->flush(port);
	__netif_tx_unlock(txq);
	return sent;
}

/* Receive */

/* Makes the checksum that the far side has left to us. False: the header makes no sense. */
static bool prog_checksum(void *data, u32 len, const struct virtio_net_hdr *hdr)
{
	u32 start = __virtio16_to_cpu(true, hdr->csum_start);
	u32 at = start + __virtio16_to_cpu(true, hdr->csum_offset);
	__sum16 sum;

	if (start < ETH_HLEN || at + sizeof(sum) > len)
		return false;
	sum = csum_fold(csum_partial(data + start, len - start, 0)) ?: CSUM_MANGLED_0;
	memcpy(data + at, &sum, sizeof(sum));
	return true;
}

static void prog_pass(struct ring3_port *port, struct xdp_buff *xdp, const struct virtio_net_hdr *hdr)
{
	struct virtio_net_hdr now = {};
	u32 meta = xdp->data - xdp->data_meta;
	struct page_frag *frag = &port->prog_frag;
	struct sk_buff *skb = napi_build_skb(xdp->data_hard_start, xdp->frame_sz);

	if (unlikely(!skb)) {
		ring3_rx_fault(port, RING3_FAULT_MEMORY);
		return;
	}
	get_page(frag->page);
	frag->offset += xdp->frame_sz;
	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	skb_put(skb, xdp->data_end - xdp->data);
	if (meta)
		skb_metadata_set(skb, meta);
	if (hdr->flags & (VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID))
		now.flags = VIRTIO_NET_HDR_F_DATA_VALID;
	ring3_deliver(port, skb, &now);
}

/* False: no. */
static bool prog_redirect(struct ring3_port *port, struct bpf_prog *prog, struct xdp_buff *xdp)
{
	struct page_frag *frag = &port->prog_frag;

	get_page(frag->page);
	if (unlikely(xdp_do_redirect(port->dev, xdp, prog))) {
		put_page(frag->page);
		return false;
	}
	frag->offset += xdp->frame_sz;
	port->prog_redirected = true;
	return true;
}

static void prog_run(struct ring3_port *port, struct bpf_prog *prog, struct xdp_buff *xdp,
		     const struct virtio_net_hdr *hdr)
{
	struct net_device *dev = port->dev;
	u32 len = xdp->data_end - xdp->data;
	u32 act = bpf_prog_run_xdp(prog, xdp);
	bool taken = false;

	switch (act) {
	case XDP_PASS:
		if (unlikely(xdp->data_end - xdp->data < ETH_HLEN))
			ring3_rx_fault(port, RING3_FAULT_RUNT);
		else
			prog_pass(port, xdp, hdr);
		return;
	case XDP_TX:
		ring3_count(port, RING3_RX_XDP_TX);
		taken = prog_tx(port, xdp);
		break;
	case XDP_REDIRECT:
		ring3_count(port, RING3_RX_XDP_REDIRECTS);
		taken = prog_redirect(port, prog, xdp);
		break;
	case XDP_DROP:
		ring3_count(port, RING3_RX_XDP_DROPS);
		taken = true;
		break;
	default:
		bpf_warn_invalid_xdp_action(dev, prog, act);
		fallthrough;
	case XDP_ABORTED:
		break;
	}
	dev_sw_netstats_rx_add(dev, len);
	if (unlikely(!taken)) {
		trace_xdp_exception(dev, prog, act);
		DEV_STATS_INC(dev, rx_dropped);
	}
}

/* Runs the port's program on a frame whose length was found good. False: that is for ring3_prog_skb(). */
bool ring3_prog_bytes(struct ring3_port *port, const void *data, u32 len, const struct virtio_net_hdr *hdr)
{
	u32 room = SKB_DATA_ALIGN(XDP_PACKET_HEADROOM + len) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct page_frag *frag = &port->prog_frag;
	struct bpf_prog *prog;
	struct xdp_buff xdp;
	void *start;

	if (hdr->gso_type != VIRTIO_NET_HDR_GSO_NONE || room > PAGE_SIZE)
		return false;
	if (unlikely(!skb_page_frag_refill(room, frag, GFP_ATOMIC | __GFP_NOWARN))) {
		ring3_rx_fault(port, RING3_FAULT_MEMORY);
		return true;
	}
	start = page_address(frag->page) + frag->offset;
	memcpy(start + XDP_PACKET_HEADROOM, data, len);
	if ((hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) && !prog_checksum(start + XDP_PACKET_HEADROOM, len, hdr)) {
		ring3_rx_fault(port, RING3_FAULT_HEADER);
		return true;
	}
	xdp_init_buff(&xdp, room, &port->rxq);
	xdp_prepare_buff(&xdp, start, XDP_PACKET_HEADROOM, len, true);
	rcu_read_lock();
	prog = rcu_dereference(port->prog);
	if (likely(prog))
		prog_run(port, prog, &xdp, hdr);
	else
		prog_pass(port, &xdp, hdr);	/* it was taken off just now */
	rcu_read_unlock();
	return true;
}

/* The same for a frame that is an skb already, in front of the stack. False: the program has taken it. */
bool ring3_prog_skb(struct ring3_port *port, struct sk_buff **skb)
{
	bool passed;

	rcu_read_lock();
	passed = do_xdp_generic(rcu_dereference(port->prog), skb) == XDP_PASS;
	rcu_read_unlock();
	return passed;
}

/* The end of a poll. */
void ring3_prog_flush(struct ring3_port *port)
{
	if (!port->prog_redirected)
		return;
	port->prog_redirected = false;
	xdp_do_flush();
}

/* Up and down */

int ring3_prog_open(struct ring3_port *port)
{
	int err = xdp_rxq_info_reg(&port->rxq, port->dev, 0, port->napi.napi_id);

	if (err)
		return err;
	err = xdp_rxq_info_reg_mem_model(&port->rxq, MEM_TYPE_PAGE_SHARED, NULL);
	if (err)
		xdp_rxq_info_unreg(&port->rxq);
	return err;
}

void ring3_prog_stop(struct ring3_port *port)
{
	xdp_rxq_info_unreg(&port->rxq);
	ring3_rx_copy_end(&port->prog_frag);
}

int ring3_bpf(struct net_device *dev, struct netdev_bpf *bpf)
{
	struct ring3_port *port = netdev_priv(dev);
	struct bpf_prog *old;

	if (bpf->command != XDP_SETUP_PROG)
		return -EINVAL;
	old = rtnl_dereference(port->prog);
	rcu_assign_pointer(port->prog, bpf->prog);
	if (old)
		bpf_prog_put(old);
	return 0;
}
