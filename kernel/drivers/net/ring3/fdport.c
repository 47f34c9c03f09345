// SPDX-License-Identifier: GPL-2.0-only
/*
 * fdport.c - ports that are one frame for each read or write: tap and packet
 *
 * Theory of operation
 * -------------------
 * A descriptor of the host gives and takes Ethernet frames, each preceded by a virtio_net_hdr: one for each call with a
 * TAP, up to FD_RX_BATCH by one recvmmsg() with a packet socket. A frame is received into memory that becomes an skb;
 * the only copy is the host's. fdsend.c sends.
 *
 * Receive. How large the next frame is, nobody says, and what does not fit is lost. So
 * each read offers room for the largest: an skb whose linear part takes an
 * ordinary frame, and pages for the rest of a 64 KiB segment. What a frame leaves
 * untouched is offered to the next one, so a small packet costs a small buffer.
 *
 * The host says EAGAIN, or gives fewer frames than there was room for, when there is nothing more; the next frame then
 * raises the interrupt.
 *
 * The descriptor's number is that of the process which drives, so it is asked for at
 * each poll. Whatever state there is lives in the region.
 */
#include <linux/if_packet.h>

#include "fdport.h"

/* Bytes of an skb's linear part: with its overhead half a page. */
#define FD_RX_LINEAR	1536U

/*
 * Bytes: frames up to this size are copied out of it. The next one is then read into memory that
 * the processor has at hand, and a socket holds three times as many.
 */
#define FD_RX_COPY	256U

/* Bytes that the pages behind it have to hold. */
#define FD_RX_PAGES	(RING3_FRAME_MAX + 1 - FD_RX_LINEAR)

/* Order of those pages: 32 KiB, the largest that the allocator keeps lists of. */
#define FD_RX_ORDER	PAGE_ALLOC_COSTLY_ORDER

/* Bytes: less than this left of a page is not worth an entry. */
#define FD_RX_REST	2048U

/* Errors in one poll after which the descriptor is left alone till the next interrupt. */
#define FD_RX_REFUSED	3

/* Frames: more than a TAP's queue (500 to 1,000) or a packet socket holds of small ones. */
#define FD_DRAIN_MAX	16384

/* The interface behind the descriptor is gone for good. */
void fd_gone(struct ring3_port *port, struct fd_port *fdp, long err)
{
	if (fdp->gone)
		return;
	fdp->gone = true;
	ring3_irq_unregister(port->index);
	netif_carrier_off(port->dev);
	netdev_err(port->dev, "the host's %s device is gone (error %ld): no carrier until the node is taken down and up\n",
		   port->ops->kind, -err);
}

/*
 * Whether an error of a call for several frames is a filter's, of the process that drives: the relay of a proxy has
 * one, and containers have. Others of the node may make such calls all the same.
 */
bool fd_refused(struct ring3_port *port, struct fd_port *fdp, long err)
{
	if (err != -EPERM && err != -ENOSYS)
		return false;
	if (!fdp->said_refused)
		netdev_info(port->dev, "a process of the node may not make sendmmsg() and recvmmsg() (error %ld): it makes one call a frame\n",
			    -err);
	fdp->said_refused = true;
	return true;
}

/* Receive */

static void fd_add_page(struct fd_slot *slot, struct page *page, unsigned int order)
{
	slot->page[slot->pages++] = (struct fd_page){ .page = page, .size = PAGE_SIZE << order };
	slot->room += PAGE_SIZE << order;
}

/* Makes room for the largest frame. */
static bool fd_refill(struct ring3_port *port, struct fd_slot *slot)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;

	if (!slot->skb)
		slot->skb = napi_alloc_skb(&port->napi, FD_RX_LINEAR);
	if (unlikely(!slot->skb))
		return false;

	while (slot->room < FD_RX_PAGES) {
		unsigned int order = FD_RX_ORDER;
		struct page *page;

		page = alloc_pages(gfp | __GFP_COMP | __GFP_NORETRY, order);
		if (unlikely(!page)) {
			order = 0;
			page = alloc_page(gfp);
		}
		if (unlikely(!page))
			return false;
		fd_add_page(slot, page, order);
	}
	return true;
}

/* For up to `want` frames; for how many there is. */
static unsigned int fd_refill_some(struct ring3_port *port, struct fd_port *fdp, unsigned int want)
{
	unsigned int n = 0;

	while (n < want && fd_refill(port, &fdp->slot[n]))
		n++;
	return n;
}

/* Gives the first len bytes of the pages to skb and keeps the rest. */
static void fd_take_pages(struct fd_slot *slot, struct sk_buff *skb, u32 len)
{
	unsigned int used = 0;

	while (len) {
		struct fd_page *p = &slot->page[used];
		u32 n = min(len, p->size - p->offset);
		u32 step = ALIGN(n, SMP_CACHE_BYTES);
		u32 rest = p->size - p->offset - step;

		if (rest >= FD_RX_REST) {
			get_page(p->page);
			skb_add_rx_frag(skb, used, p->page, p->offset, n, step);
			p->offset += step;
			slot->room -= step;
			break;
		}
		skb_add_rx_frag(skb, used, p->page, p->offset, n, step + rest);
		slot->room -= step + rest;
		used++;
		len -= n;
	}
	if (used) {
		slot->pages -= used;
		memmove(slot->page, slot->page + used, slot->pages * sizeof(slot->page[0]));
	}
}

static unsigned int fd_slot_iov(struct fd_port *fdp, struct fd_slot *slot, struct iovec *iov)
{
	unsigned int i;

	iov[0].iov_base = (void __force __user *)&slot->hdr;
	iov[0].iov_len = fdp->hdr_len;
	iov[1].iov_base = (void __force __user *)slot->skb->data;
	iov[1].iov_len = FD_RX_LINEAR;
	for (i = 0; i < slot->pages; i++) {
		const struct fd_page *p = &slot->page[i];

		iov[2 + i].iov_base = (void __force __user *)(page_address(p->page) + p->offset);
		iov[2 + i].iov_len = p->size - p->offset;
	}
	return 2 + i;
}

/* Reads up to n frames: how many, or why none. rx_msg[].msg_len is then what was read. last: there was no other. */
static long fd_read(struct ring3_port *port, struct fd_port *fdp, unsigned int n, bool *last)
{
	struct mmsghdr *msg = fdp->rx_msg;
	unsigned int i;
	long ret;

	for (i = 0; i < n; i++)
		msg[i] = (struct mmsghdr){
			.msg_hdr.msg_iov = (struct iovec __force __user *)fdp->rx_iov[i],
			.msg_hdr.msg_iovlen = fd_slot_iov(fdp, &fdp->slot[i], fdp->rx_iov[i]),
		};
	ring3_count(port, RING3_RX_CALLS);
	if (fdp->many) {
		ret = ring3_port_recvmmsg(port->index, msg, n);
		*last = ret < (long)n;
		if (likely(ret >= 0) || !fd_refused(port, fdp, ret))
			return ret ?: -EAGAIN;
	}
	*last = false;
	ret = ring3_port_readv(port->index, fdp->rx_iov[0], msg[0].msg_hdr.msg_iovlen);
	msg[0].msg_len = ret;
	return ret < 0 ? ret : 1;
}

static void fd_frame(struct ring3_port *port, struct fd_slot *slot, u32 len)
{
	const struct virtio_net_hdr *hdr = &slot->hdr.hdr;
	struct sk_buff *skb = slot->skb;
	u32 linear = min(len, FD_RX_LINEAR);

	if (!ring3_rx_len_ok(port, len, hdr->gso_type))
		return;		/* the buffers are as good as new */
	if (ring3_has_prog(port) && len <= FD_RX_LINEAR && ring3_prog_bytes(port, skb->data, len, hdr))
		return;
	if (len <= FD_RX_COPY) {
		struct sk_buff *copy = napi_alloc_skb(&port->napi, len);

		if (likely(copy)) {
			skb_put_data(copy, skb->data, len);
			ring3_receive(port, copy, hdr);
			return;
		}
	}
	skb_put(skb, linear);
	fd_take_pages(slot, skb, len - linear);
	slot->skb = NULL;
	ring3_receive(port, skb, hdr);
}

/* Frames that lie in the first n slots; their bytes. */
static u32 fd_frames(struct ring3_port *port, struct fd_port *fdp, unsigned int n)
{
	u32 bytes = 0, largest = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		u32 len = fdp->rx_msg[i].msg_len;

		bytes += len;
		largest = max(largest, len);
		if (unlikely(len < fdp->hdr_len))
			ring3_rx_fault(port, RING3_FAULT_RUNT);
		else
			fd_frame(port, &fdp->slot[i], len - fdp->hdr_len);
	}
	/* A flood of small frames is worth the room for more; segments are no fewer bytes a call. */
	if (largest > FD_RX_LINEAR)
		fdp->batch = FD_RX_BATCH_MIN;
	else if (n == fdp->batch)
		fdp->batch = min(2 * n, FD_RX_BATCH);
	return bytes;
}

static int fd_poll(struct ring3_port *port, int budget)
{
	struct fd_port *fdp = to_fdport(port);
	int done = 0, refused = 0;
	u32 bytes = 0;

	if (unlikely(ring3_port_fd(port->index) < 0 || fdp->gone))
		return 0;

	while (done < budget) {
		unsigned int want = fdp->many ? min_t(unsigned int, fdp->batch, budget - done) : 1;
		unsigned int room = fd_refill_some(port, fdp, want);
		bool last;
		long n;

		if (unlikely(!room)) {
			/* Stay scheduled: memory comes back, the edge does not. */
			ring3_count(port, RING3_RX_NO_MEMORY);
			return budget;
		}
		n = fd_read(port, fdp, room, &last);
		if (unlikely(n < 0)) {
			if (n == -EBADFD || n == -ENODEV)
				fd_gone(port, fdp, n);
			if (n == -EAGAIN || fdp->gone)
				break;
			/* ENETDOWN and such are news, told once; frames may follow. */
			DEV_STATS_INC(port->dev, rx_errors);
			if (++refused == FD_RX_REFUSED) {
				ring3_rest(port);	/* no edge comes for what is left */
				break;
			}
			continue;
		}
		done += n;
		bytes += fd_frames(port, fdp, n);
		if (last)
			break;
		if (ring3_rx_batch_full(bytes))
			return budget;
	}
	return done;
}

/* Up and down */

static void fd_drop_buffers(struct fd_port *fdp)
{
	struct fd_slot *slot;

	for (slot = fdp->slot; slot < fdp->slot + FD_RX_BATCH; slot++) {
		kfree_skb(slot->skb);
		slot->skb = NULL;
		while (slot->pages)
			put_page(slot->page[--slot->pages].page);
		slot->room = 0;
	}
	fdp->batch = FD_RX_BATCH_MIN;
}

/* Frames that came while the interface was down are dropped: the descriptor has kept them, however old they are. */
static void fd_drain(struct ring3_port *port)
{
	u8 byte[64];
	struct iovec iov = { .iov_base = (void __force __user *)byte, .iov_len = sizeof(byte) };
	int frames, refused = 0;
	long len;

	for (frames = 0; frames < FD_DRAIN_MAX && refused < FD_RX_REFUSED; frames++) {
		len = ring3_port_readv(port->index, &iov, 1);
		if (len == -EAGAIN)
			break;
		refused += len < 0;
	}
}

static int fd_open(struct ring3_port *port)
{
	struct fd_port *fdp = to_fdport(port);

	if (ring3_port_fd(port->index) < 0) {
		netdev_err(port->dev, "no descriptor for this port in the process that sets it up\n");
		return -EBADF;
	}
	fdp->gone = false;
	fd_drain(port);
	netif_carrier_on(port->dev);
	return 0;
}

static void fd_stop(struct ring3_port *port)
{
	fd_tx_drop(port);
	fd_drop_buffers(to_fdport(port));
}

static u64 packet_missed(struct ring3_port *port)
{
	struct fd_port *fdp = to_fdport(port);
	struct tpacket_stats stats;
	u32 size = sizeof(stats);

	if (!ring3_port_getsockopt(port->index, SOL_PACKET, PACKET_STATISTICS, &stats, &size))
		atomic64_add(stats.tp_drops, &fdp->missed);
	return atomic64_read(&fdp->missed);
}

static int fd_init(struct ring3_port *port, const struct ring3_port_config *cfg)
{
	struct fd_port *fdp = to_fdport(port);

	/*
	 * PACKET_VNET_HDR means the short header; a TAP is set to the long
	 * one, which vhost and links have too.
	 */
	fdp->many = cfg->kind == RING3_PORT_PACKET;
	fdp->hdr_len = fdp->many ? sizeof(struct virtio_net_hdr) : RING3_VNET_HDR;
	fdp->batch = FD_RX_BATCH_MIN;
	return 0;
}

const struct ring3_port_ops ring3_tap_ops = {
	.kind = "tap",
	.mtu = ETH_DATA_LEN,
	.priv_size = sizeof(struct fd_port),
	.init = fd_init,
	.open = fd_open,
	.stop = fd_stop,
	.xmit = fd_xmit,
	.flush = fd_tx_flush,
	.tx_resume = fd_tx_resume,
	.poll = fd_poll,
	.later = ring3_rest,
	.share = 1,
};

const struct ring3_port_ops ring3_packet_ops = {
	.kind = "packet",
	.mtu = ETH_DATA_LEN,
	.priv_size = sizeof(struct fd_port),
	.init = fd_init,
	.open = fd_open,
	.stop = fd_stop,
	.xmit = fd_xmit,
	.flush = fd_tx_flush,
	.tx_resume = fd_tx_resume,
	.poll = fd_poll,
	.later = ring3_rest,
	.missed = packet_missed,
	.share = 1,
};
