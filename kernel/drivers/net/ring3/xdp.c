// SPDX-License-Identifier: GPL-2.0-only
/*
 * xdp.c - a port that shares rings with an interface of the host: AF_XDP
 *
 * Theory of operation
 * -------------------
 * The host writes the frames that arrive at an interface to memory of the node (the UMEM), and sends frames from
 * there. Four rings say which chunks of it:
 *
 * fill        node -> host  chunks to receive into
 * RX          host -> node  chunks with a frame
 * TX          node -> host  chunks to be sent
 * completion  host -> node  chunks that were sent
 *
 * The lower half of the UMEM's chunks circulates between fill and RX; the upper half is in free[] or with the host.
 * There are as many chunks as a ring has entries, so a ring that the node fills is never full. A frame is copied to
 * and from the UMEM: an experiment with links showed that this does not limit packets per second.
 *
 * Receiving takes no host call: the idle loop and the way out of calls look at the RX ring as they look at a
 * link's, and a sleeping node is woken by the descriptor's readiness. Sending takes one for each burst, if the host
 * asks for it.
 *
 * The rings are mappings of the socket at the same address in every process (include/ring3.abi, enum
 * ring3_xdp_ring). The UMEM is region memory. The host uses it until the last process has closed the socket, which
 * the node cannot see: so it is never freed.
 *
 * The host is trusted, as everywhere. Its values are checked only so that a mistake of the host would not damage
 * other memory of the node.
 */
#include <linux/timer.h>
#include <uapi/linux/if_xdp.h>

#include <asm/ring3_poll.h>
#include <ring3/ring3.h>

#include "hostio.h"
#include "port.h"

#define XDP_MASK	(RING3_XDP_ENTRIES - 1)
#define XDP_UMEM_BYTES	(2 * RING3_XDP_ENTRIES * RING3_XDP_CHUNK)

/* The host sends 32 frames in one call, then asks to be called again. */
#define XDP_KICKS	(RING3_XDP_ENTRIES / 32 + 1)

/* Jiffies before a host that could not send is asked again. */
#define XDP_RETRY	1

/* One ring; the host has its other end. */
struct xdp_end {
	u32 *producer, *consumer, *flags;
	void *entry;
	u32 at;			/* private position, ahead of the shared one until it is published */
};

struct xdp_port {
	struct ring3_port *port;
	u8 *umem;

	/* TX lock */
	struct xdp_end tx, completion;
	u32 free_count;
	u16 free[RING3_XDP_ENTRIES];	/* chunks, counted from the start of the UMEM */
	struct timer_list retry;

	/* NAPI */
	struct xdp_end rx, fill;
	struct page_frag frag;
	unsigned long checked;		/* jiffies */

	u64 missed;			/* the host's last value */
	bool gone;			/* never reset; the first to find it reports it */

	/* The two words that the idle loop needs of a port; the host wakes by the descriptor instead. */
	u32 armed, doorbell;
};

static struct xdp_port *to_xdp(const struct ring3_port *port)
{
	return ring3_port_priv(port);
}

static u32 xdp_load(const u32 *word)
{
	return smp_load_acquire(word);
}

static bool xdp_wants_call(const struct xdp_end *end)
{
	return READ_ONCE(*end->flags) & XDP_RING_NEED_WAKEUP;
}

static struct xdp_desc *xdp_desc(const struct xdp_end *end, u32 at)
{
	return (struct xdp_desc *)end->entry + (at & XDP_MASK);
}

static u64 *xdp_addr(const struct xdp_end *end, u32 at)
{
	return (u64 *)end->entry + (at & XDP_MASK);
}

/*
 * The interface is gone for good, and with it the host's end of the rings. A process that joins later can't map
 * them, and has zeroed pages in their place: they must not be used any more.
 */
static void xdp_gone(struct ring3_port *port, struct xdp_port *xdp, long err)
{
	if (xdp->gone)
		return;
	xdp->gone = true;
	ring3_poll_del(port->index);
	netif_carrier_off(port->dev);
	netdev_err(port->dev, "the host's interface is gone (error %ld): no carrier until the node is taken down and up\n",
		   -err);
}

/* An interrupt without input: perhaps an error. Asks the host, at most once a jiffy. */
static void xdp_check(struct ring3_port *port, struct xdp_port *xdp)
{
	unsigned long now = jiffies;
	u32 error = 0, size = sizeof(error);

	if (now == xdp->checked)
		return;
	xdp->checked = now;
	ring3_port_getsockopt(port->index, SOL_SOCKET, SO_ERROR, &error, &size);
	/* Reported once. ENETDOWN: the device is being removed; setting it down raises no error. */
	if (error)
		xdp_gone(port, xdp, -(long)error);
}

/* Send */

static void xdp_reclaim(struct xdp_port *xdp)
{
	struct xdp_end *end = &xdp->completion;
	u32 producer = xdp_load(end->producer);

	while (end->at != producer && xdp->free_count < RING3_XDP_ENTRIES) {
		u64 chunk = READ_ONCE(*xdp_addr(end, end->at)) / RING3_XDP_CHUNK;

		end->at++;
		if (likely(chunk - RING3_XDP_ENTRIES < RING3_XDP_ENTRIES))
			xdp->free[xdp->free_count++] = chunk;
	}
	smp_store_release(end->consumer, end->at);
}

/* Publishes the TX ring to the host. */
static void xdp_kick(struct ring3_port *port, struct xdp_port *xdp)
{
	unsigned int calls;
	long err = 0;

	smp_store_release(xdp->tx.producer, xdp->tx.at);
	ring3_count(port, RING3_TX_BATCHES);
	for (calls = 0; calls < XDP_KICKS; calls++) {
		/* The flag must be read after the producer is written: the host does the reverse. */
		smp_mb();
		if (!xdp_wants_call(&xdp->tx) || READ_ONCE(*xdp->tx.consumer) == xdp->tx.at)
			return;
		ring3_count(port, RING3_TX_DOORBELLS);
		err = ring3_port_kick_tx(port->index);
		if (err && err != -EAGAIN)
			break;
		xdp_reclaim(xdp);
	}
	/* -EBUSY: the device's queue is full. -ENOBUFS: a frame was lost there. */
	if (err && err != -EAGAIN && err != -EBUSY && err != -ENOBUFS) {
		ring3_count(port, RING3_TX_HOST_ERRORS);
		if (err == -ENXIO)
			xdp_gone(port, xdp, err);
	}
	if (!xdp->gone)
		mod_timer(&xdp->retry, jiffies + XDP_RETRY);
}

static void xdp_retry(struct timer_list *timer)
{
	struct xdp_port *xdp = from_timer(xdp, timer, retry);
	struct ring3_port *port = xdp->port;
	struct netdev_queue *txq = ring3_txq(port);

	if (xdp->gone)
		return;
	__netif_tx_lock(txq, smp_processor_id());
	xdp_reclaim(xdp);
	if (READ_ONCE(*xdp->tx.consumer) != xdp->tx.at)
		xdp_kick(port, xdp);
	__netif_tx_unlock(txq);
	/* The poll restarts a stopped queue. */
	napi_schedule(&port->napi);
}

/* Where a frame of len bytes is to be written, which is then sent; NULL: there is no room. */
static void *xdp_tx_chunk(struct xdp_port *xdp, u32 len)
{
	u64 at;

	if (unlikely(!xdp->free_count || len > RING3_XDP_CHUNK))
		return NULL;
	at = (u64)xdp->free[--xdp->free_count] * RING3_XDP_CHUNK;
	*xdp_desc(&xdp->tx, xdp->tx.at++) = (struct xdp_desc){ .addr = at, .len = len };
	return xdp->umem + at;
}

/* After each frame, sent or not. */
static void xdp_tx_end(struct ring3_port *port, struct xdp_port *xdp, bool more)
{
	if (!more || !xdp->free_count)
		xdp_kick(port, xdp);
	xdp_reclaim(xdp);
	if (unlikely(!xdp->free_count)) {
		ring3_count(port, RING3_TX_FULL);
		netif_tx_stop_queue(ring3_txq(port));
		/* The host does not report when a frame has been sent. */
		mod_timer(&xdp->retry, jiffies + XDP_RETRY);
	}
}

static void xdp_xmit(struct ring3_port *port, struct sk_buff *skb, bool more)
{
	struct xdp_port *xdp = to_xdp(port);
	void *chunk;

	if (unlikely(xdp->gone)) {
		ring3_tx_drop(port, skb);
		return;
	}
	chunk = xdp_tx_chunk(xdp, skb->len);
	if (likely(chunk)) {
		skb_copy_bits(skb, 0, chunk, skb->len);
		ring3_tx_done(port, skb);
	} else {
		ring3_tx_drop(port, skb);
	}
	xdp_tx_end(port, xdp, more);
}

static bool xdp_xmit_bytes(struct ring3_port *port, const void *data, u32 len, bool more)
{
	struct xdp_port *xdp = to_xdp(port);
	void *chunk;

	if (unlikely(xdp->gone))
		return false;
	chunk = xdp_tx_chunk(xdp, len);
	if (likely(chunk)) {
		memcpy(chunk, data, len);
		dev_sw_netstats_tx_add(port->dev, 1, len);
	}
	xdp_tx_end(port, xdp, more);
	return chunk;
}

static void xdp_flush(struct ring3_port *port)
{
	struct xdp_port *xdp = to_xdp(port);

	if (likely(!xdp->gone))
		xdp_kick(port, xdp);
}

static bool xdp_tx_resume(struct ring3_port *port)
{
	struct xdp_port *xdp = to_xdp(port);

	if (xdp->gone)
		return false;
	xdp_reclaim(xdp);
	if (!xdp->free_count)
		mod_timer(&xdp->retry, jiffies + XDP_RETRY);
	return xdp->free_count;
}

/* Receive */

static void xdp_frame(struct ring3_port *port, struct xdp_port *xdp, u64 at, u32 len)
{
	const struct virtio_net_hdr none = {};

	if (ring3_rx_len_ok(port, len, none.gso_type))
		ring3_rx_frame(port, &xdp->frag, xdp->umem + at, len, 0, &none);
}

/* Publishes which chunks were taken, and which the host may fill. */
static void xdp_rx_release(struct ring3_port *port, struct xdp_port *xdp)
{
	smp_store_release(xdp->rx.consumer, xdp->rx.at);
	smp_store_release(xdp->fill.producer, xdp->fill.at);
	smp_mb();
	if (xdp_wants_call(&xdp->fill)) {
		ring3_count(port, RING3_RX_CALLS);
		ring3_port_kick_rx(port->index);
	}
}

/* Returns a chunk to the host; the caller publishes that. */
static void xdp_refill(struct xdp_port *xdp, u64 at)
{
	*xdp_addr(&xdp->fill, xdp->fill.at++) = round_down(at, RING3_XDP_CHUNK);
}

static int xdp_poll(struct ring3_port *port, int budget)
{
	struct xdp_port *xdp = to_xdp(port);
	u32 producer = xdp_load(xdp->rx.producer);
	u32 bytes = 0;
	int done = 0;

	if (unlikely(producer - xdp->rx.at > RING3_XDP_ENTRIES))
		xdp_gone(port, xdp, -ENETDOWN);
	if (unlikely(xdp->gone))
		return 0;

	while (done < budget && xdp->rx.at != producer) {
		const struct xdp_desc *desc = xdp_desc(&xdp->rx, xdp->rx.at++);
		u64 at = READ_ONCE(desc->addr);
		u32 len = READ_ONCE(desc->len);

		done++;
		bytes += len;
		if (unlikely(at >= XDP_UMEM_BYTES / 2 ||
			     len > RING3_XDP_CHUNK - at % RING3_XDP_CHUNK)) {
			/* Not a chunk of the fill ring: there is none to return. */
			ring3_count(port, RING3_RX_BROKEN);
			continue;
		}
		xdp_frame(port, xdp, at, len);
		xdp_refill(xdp, at);
		if (ring3_rx_batch_full(bytes)) {
			done = budget;
			break;
		}
	}
	/* Also with nothing received: the idle loop compares the two words. */
	xdp_rx_release(port, xdp);
	if (!done)
		xdp_check(port, xdp);
	return done;
}

/* Remaining frames are polled like those that arrive while the node is awake. */
static void xdp_later(struct ring3_port *port)
{
	WRITE_ONCE(to_xdp(port)->armed, 0);
	ring3_poll_later();
}

/* Up and down */

/* Frames that arrived while the interface was down are dropped. */
static void xdp_drain(struct ring3_port *port, struct xdp_port *xdp)
{
	u32 producer = xdp_load(xdp->rx.producer);

	if (producer - xdp->rx.at > RING3_XDP_ENTRIES)
		return;		/* xdp_poll() reports it */
	while (xdp->rx.at != producer) {
		u64 at = READ_ONCE(xdp_desc(&xdp->rx, xdp->rx.at++)->addr);

		if (likely(at < XDP_UMEM_BYTES / 2))
			xdp_refill(xdp, at);
	}
	xdp_rx_release(port, xdp);
}

static int xdp_open(struct ring3_port *port)
{
	struct xdp_port *xdp = to_xdp(port);
	int err;

	if (xdp->gone)
		return -ENETDOWN;
	xdp_drain(port, xdp);
	err = ring3_poll_add(port->index, xdp->rx.producer, xdp->rx.consumer, &xdp->armed,
			     &xdp->doorbell);
	if (err)
		return err;
	netif_carrier_on(port->dev);
	return 0;
}

static void xdp_stop(struct ring3_port *port)
{
	struct xdp_port *xdp = to_xdp(port);

	if (!xdp->gone)
		ring3_poll_del(port->index);
	del_timer_sync(&xdp->retry);
	netif_carrier_off(port->dev);
	ring3_rx_copy_end(&xdp->frag);
}

static u64 xdp_missed(struct ring3_port *port)
{
	struct xdp_statistics stats;
	u32 size = sizeof(stats);
	struct xdp_port *xdp = to_xdp(port);

	if (!ring3_port_getsockopt(port->index, SOL_XDP, XDP_STATISTICS, &stats, &size))
		WRITE_ONCE(xdp->missed, stats.rx_dropped +
			   (size == sizeof(stats) ? stats.rx_ring_full : 0));
	return READ_ONCE(xdp->missed);
}

static void xdp_attach(struct xdp_end *end, u64 window, enum ring3_xdp_ring which,
		       const struct xdp_ring_offset *offset)
{
	void *ring = (void *)window + which * RING3_XDP_STRIDE;

	end->producer = ring + offset->producer;
	end->consumer = ring + offset->consumer;
	end->flags = ring + offset->flags;
	end->entry = ring + offset->desc;
}

/* Makes the whole lower half available for receiving. */
static void xdp_fill(struct xdp_port *xdp)
{
	u32 i;

	for (i = 0; i < RING3_XDP_ENTRIES; i++) {
		*xdp_addr(&xdp->fill, xdp->fill.at++) = i * RING3_XDP_CHUNK;
		xdp->free[xdp->free_count++] = RING3_XDP_ENTRIES + i;
	}
	smp_store_release(xdp->fill.producer, xdp->fill.at);
}

static int xdp_init(struct ring3_port *port, const struct ring3_port_config *cfg)
{
	u64 want = (u64)&ring3_region + RING3_LINK_OFFSET + (u64)cfg->index * RING3_LINK_STRIDE;
	struct xdp_port *xdp = to_xdp(port);
	struct xdp_umem_reg umem = {
		.len = XDP_UMEM_BYTES,
		.chunk_size = RING3_XDP_CHUNK,
	};
	struct xdp_mmap_offsets offset;
	u32 size = sizeof(offset);
	long err;

	BUILD_BUG_ON(RING3_XDP_RINGS * RING3_XDP_STRIDE > RING3_LINK_STRIDE);
	BUILD_BUG_ON(RING3_XDP_RXTX_BYTES > RING3_XDP_STRIDE);

	if (ring3_port_fd(cfg->index) < 0 || cfg->window != want || cfg->mtu > RING3_XDP_MTU_MAX)
		return -EINVAL;
	err = ring3_port_getsockopt(cfg->index, SOL_XDP, XDP_MMAP_OFFSETS, &offset, &size);
	if (err || size != sizeof(offset)) {
		pr_err("ring3: %s: the host's AF_XDP rings have no flags: Linux 5.4 has\n",
		       cfg->name);
		return err ?: -EOPNOTSUPP;
	}
	xdp->umem = alloc_pages_exact(XDP_UMEM_BYTES, GFP_KERNEL | __GFP_ZERO);
	if (!xdp->umem)
		return -ENOMEM;
	umem.addr = (u64)xdp->umem;
	err = ring3_port_setsockopt(cfg->index, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem));
	if (err) {
		free_pages_exact(xdp->umem, XDP_UMEM_BYTES);
		return err;
	}
	xdp_attach(&xdp->rx, want, RING3_XDP_RX, &offset.rx);
	xdp_attach(&xdp->tx, want, RING3_XDP_TX, &offset.tx);
	xdp_attach(&xdp->fill, want, RING3_XDP_FILL, &offset.fr);
	xdp_attach(&xdp->completion, want, RING3_XDP_COMPLETION, &offset.cr);
	xdp_fill(xdp);
	xdp->port = port;
	port->dev->max_mtu = RING3_XDP_MTU_MAX;
	timer_setup(&xdp->retry, xdp_retry, 0);
	netif_carrier_off(port->dev);
	return 0;
}

const struct ring3_port_ops ring3_xdp_ops = {
	.kind = "xdp",
	.mtu = ETH_DATA_LEN,
	.priv_size = sizeof(struct xdp_port),
	.init = xdp_init,
	.open = xdp_open,
	.stop = xdp_stop,
	.xmit = xdp_xmit,
	.xmit_bytes = xdp_xmit_bytes,
	.flush = xdp_flush,
	.tx_resume = xdp_tx_resume,
	.poll = xdp_poll,
	.later = xdp_later,
	.missed = xdp_missed,
	.share = 2,
};
