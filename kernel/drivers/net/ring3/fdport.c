// SPDX-License-Identifier: GPL-2.0-only
/*
 * fdport.c - ports that are one frame for each read or write: tap and packet
 *
 * Theory of operation
 * -------------------
 * A descriptor of the host gives and takes one Ethernet frame for each call,
 * preceded by a virtio_net_hdr. A frame is sent straight from its skb, and
 * received into memory that becomes an skb; the only copy is the host's.
 *
 * Receive. How large the next frame is, nobody says, and what does not fit is lost. So
 * each read offers room for the largest: an skb whose linear part takes an
 * ordinary frame, and pages for the rest of a 64 KiB segment. What a frame leaves
 * untouched is offered to the next one, so a small packet costs a small buffer.
 *
 * The host says EAGAIN when there is nothing more; the next frame then raises the interrupt.
 *
 * Send. A TAP takes a frame or loses it; a packet socket says EAGAIN when its
 * buffer is full. Then the frame is kept, the queue stopped, and the interrupt
 * (the descriptor is writable) sends it.
 *
 * The descriptor's number is that of the process which drives, so it is asked for at
 * each poll and each packet. Whatever state there is lives in the region.
 */
#include <linux/if_packet.h>
#include <linux/skbuff.h>


#include "hostio.h"
#include "port.h"

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

struct fd_page {
	struct page *page;
	u32 offset;
	u32 size;		/* of the page */
};

struct fd_port {
	unsigned int hdr_len;	/* 12 with a TAP, 10 with a packet socket */
	bool gone;		/* the host took the interface away; said once */

	struct sk_buff *held;	/* TX lock: refused with EAGAIN */
	atomic64_t missed;	/* packet: frames; the host's own count ends with each look */

	/* NAPI: what the next read fills */
	struct sk_buff *skb;
	struct fd_page page[MAX_SKB_FRAGS];
	unsigned int pages;
	u32 room;		/* bytes in page[] */
};

static struct fd_port *to_fdport(const struct ring3_port *port)
{
	return ring3_port_priv(port);
}

/* The interface behind the descriptor is gone for good. */
static void fd_gone(struct ring3_port *port, struct fd_port *fdp, long err)
{
	if (fdp->gone)
		return;
	fdp->gone = true;
	ring3_irq_unregister(port->index);
	netif_carrier_off(port->dev);
	netdev_err(port->dev, "the host's %s device is gone (error %ld): no carrier until the node is taken down and up\n",
		   port->ops->kind, -err);
}

/* Send */

/* 0, -EAGAIN, or another error: the frame is lost. */
static long fd_send(struct ring3_port *port, struct fd_port *fdp, const struct sk_buff *skb)
{
	struct virtio_net_hdr_mrg_rxbuf hdr = {};
	struct iovec iov[RING3_SKB_IOV];
	unsigned int n;
	long err;

	if (unlikely(virtio_net_hdr_from_skb(skb, &hdr.hdr, true, false, 0)))
		return -EINVAL;

	iov[0].iov_base = (void __force __user *)&hdr;
	iov[0].iov_len = fdp->hdr_len;
	n = 1 + ring3_skb_to_iov(skb, iov + 1);
	ring3_count(port, RING3_TX_BATCHES);
	err = ring3_port_writev(port->index, iov, n);
	return err < 0 ? err : 0;
}

static void fd_sent(struct ring3_port *port, struct fd_port *fdp, struct sk_buff *skb, long err)
{
	if (likely(!err)) {
		ring3_tx_done(port, skb);
		return;
	}
	ring3_count(port, RING3_TX_HOST_ERRORS);
	/* A packet socket says so only to who sends: ENXIO. An interface that is down is ENETDOWN. */
	if (err == -EBADFD || err == -ENXIO)
		fd_gone(port, fdp, err);
	ring3_tx_drop(port, skb);
}

static void fd_xmit(struct ring3_port *port, struct sk_buff *skb, bool more)
{
	struct fd_port *fdp = to_fdport(port);
	long err = fd_send(port, fdp, skb);

	if (unlikely(err == -EAGAIN)) {
		fdp->held = skb;
		ring3_count(port, RING3_TX_FULL);
		netif_tx_stop_queue(ring3_txq(port));
		/* Room may have come in between, and its edge with it. */
		napi_schedule(&port->napi);
		return;
	}
	fd_sent(port, fdp, skb, err);
}

static bool fd_tx_resume(struct ring3_port *port)
{
	struct fd_port *fdp = to_fdport(port);
	struct sk_buff *skb = fdp->held;
	long err;

	if (!skb)
		return true;
	err = fd_send(port, fdp, skb);
	if (err == -EAGAIN)
		return false;
	fdp->held = NULL;
	fd_sent(port, fdp, skb, err);
	return true;
}

/* Receive */

static void fd_add_page(struct fd_port *fdp, struct page *page, unsigned int order)
{
	fdp->page[fdp->pages++] = (struct fd_page){ .page = page, .size = PAGE_SIZE << order };
	fdp->room += PAGE_SIZE << order;
}

/* Makes room for the largest frame. */
static bool fd_refill(struct ring3_port *port, struct fd_port *fdp)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;

	if (!fdp->skb)
		fdp->skb = napi_alloc_skb(&port->napi, FD_RX_LINEAR);
	if (unlikely(!fdp->skb))
		return false;

	while (fdp->room < FD_RX_PAGES) {
		unsigned int order = FD_RX_ORDER;
		struct page *page;

		page = alloc_pages(gfp | __GFP_COMP | __GFP_NORETRY, order);
		if (unlikely(!page)) {
			order = 0;
			page = alloc_page(gfp);
		}
		if (unlikely(!page))
			return false;
		fd_add_page(fdp, page, order);
	}
	return true;
}

/* Gives the first len bytes of the pages to skb and keeps the rest. */
static void fd_take_pages(struct fd_port *fdp, struct sk_buff *skb, u32 len)
{
	unsigned int used = 0;

	while (len) {
		struct fd_page *p = &fdp->page[used];
		u32 n = min(len, p->size - p->offset);
		u32 step = ALIGN(n, SMP_CACHE_BYTES);
		u32 rest = p->size - p->offset - step;

		if (rest >= FD_RX_REST) {
			get_page(p->page);
			skb_add_rx_frag(skb, used, p->page, p->offset, n, step);
			p->offset += step;
			fdp->room -= step;
			break;
		}
		skb_add_rx_frag(skb, used, p->page, p->offset, n, step + rest);
		fdp->room -= step + rest;
		used++;
		len -= n;
	}
	if (used) {
		fdp->pages -= used;
		memmove(fdp->page, fdp->page + used, fdp->pages * sizeof(fdp->page[0]));
	}
}

static long fd_read(struct ring3_port *port, struct fd_port *fdp,
		    struct virtio_net_hdr_mrg_rxbuf *hdr)
{
	struct iovec iov[2 + MAX_SKB_FRAGS];
	unsigned int i;

	iov[0].iov_base = (void __force __user *)hdr;
	iov[0].iov_len = fdp->hdr_len;
	iov[1].iov_base = (void __force __user *)fdp->skb->data;
	iov[1].iov_len = FD_RX_LINEAR;
	for (i = 0; i < fdp->pages; i++) {
		const struct fd_page *p = &fdp->page[i];

		iov[2 + i].iov_base = (void __force __user *)(page_address(p->page) + p->offset);
		iov[2 + i].iov_len = p->size - p->offset;
	}
	ring3_count(port, RING3_RX_CALLS);
	return ring3_port_readv(port->index, iov, 2 + i);
}

static void fd_frame(struct ring3_port *port, struct fd_port *fdp, u32 len,
		     const struct virtio_net_hdr *hdr)
{
	struct sk_buff *skb = fdp->skb;
	u32 linear = min(len, FD_RX_LINEAR);

	if (!ring3_rx_len_ok(port, len, hdr->gso_type))
		return;		/* the buffers are as good as new */
	if (len <= FD_RX_COPY) {
		struct sk_buff *copy = napi_alloc_skb(&port->napi, len);

		if (likely(copy)) {
			skb_put_data(copy, skb->data, len);
			ring3_receive(port, copy, hdr);
			return;
		}
	}
	skb_put(skb, linear);
	fd_take_pages(fdp, skb, len - linear);
	fdp->skb = NULL;
	ring3_receive(port, skb, hdr);
}

static int fd_poll(struct ring3_port *port, int budget)
{
	struct fd_port *fdp = to_fdport(port);
	int done = 0, refused = 0;
	u32 bytes = 0;

	if (unlikely(ring3_port_fd(port->index) < 0 || fdp->gone))
		return 0;

	while (done < budget) {
		struct virtio_net_hdr_mrg_rxbuf hdr;
		long len;

		if (unlikely(!fd_refill(port, fdp))) {
			/* Stay scheduled: memory comes back, the edge does not. */
			ring3_count(port, RING3_RX_NO_MEMORY);
			return budget;
		}
		len = fd_read(port, fdp, &hdr);
		if (unlikely(len < 0)) {
			if (len == -EBADFD || len == -ENODEV)
				fd_gone(port, fdp, len);
			if (len == -EAGAIN || fdp->gone)
				break;
			/* ENETDOWN and such are news, told once; frames may follow. */
			DEV_STATS_INC(port->dev, rx_errors);
			if (++refused == FD_RX_REFUSED) {
				ring3_rest(port);	/* no edge comes for what is left */
				break;
			}
			continue;
		}
		done++;
		bytes += len;
		if (unlikely(len < fdp->hdr_len))
			ring3_rx_fault(port, RING3_FAULT_RUNT);
		else
			fd_frame(port, fdp, len - fdp->hdr_len, &hdr.hdr);
		if (ring3_rx_batch_full(bytes))
			return budget;
	}
	return done;
}

/* Up and down */

static void fd_drop_buffers(struct fd_port *fdp)
{
	kfree_skb(fdp->skb);
	fdp->skb = NULL;
	while (fdp->pages)
		put_page(fdp->page[--fdp->pages].page);
	fdp->room = 0;
}

/* What came while the interface was down is not received, however old; the descriptor has kept it. */
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
	struct fd_port *fdp = to_fdport(port);

	if (fdp->held)
		ring3_tx_drop(port, fdp->held);
	fdp->held = NULL;
	fd_drop_buffers(fdp);
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
	/*
	 * PACKET_VNET_HDR means the short header; a TAP is set to the long
	 * one, which vhost and links have too.
	 */
	to_fdport(port)->hdr_len = cfg->kind == RING3_PORT_PACKET ?
				   sizeof(struct virtio_net_hdr) : RING3_VNET_HDR;
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
	.tx_resume = fd_tx_resume,
	.poll = fd_poll,
	.later = ring3_rest,
	.missed = packet_missed,
	.share = 1,
};
