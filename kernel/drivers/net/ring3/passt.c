// SPDX-License-Identifier: GPL-2.0-only
/*
 * passt.c - a port to passt: frames in a byte stream
 *
 * Theory of operation
 * -------------------
 * passt speaks a unix stream socket: the length of a frame as four bytes, most significant first, then the frame,
 * without offload header or alignment. A read or a write may end anywhere in that. Only one process drives at a
 * time, and all of them have the same socket. So the state below, which is region memory, has the position in the
 * stream, and any process can continue.
 *
 * Receive: [buffer: off .. have) holds bytes not yet looked at.
 *	whole frame there	-> an skb; next frame
 *	part of one there	-> moved to the buffer's start; read on behind it
 *	length out of range	-> down: the stream has lost its step, nothing
 *				   after it can be trusted
 *	read returns 0 or fails	-> down
 *
 * Send: frames wait in `queue`, the first of them `sent` bytes gone. A flush
 * gives the host as many as one call takes.
 *	all taken		-> empty; the queue runs
 *	part taken, EAGAIN	-> the queue is stopped until the socket is writable
 *	other error		-> down
 *
 * Down is permanent: no carrier, and a line in the log. The keeper starts another passt by removing the port and
 * adding it again.
 *
 * passt wants complete checksums. They are made here, while the driver announces that it can take partial ones, so
 * that scatter-gather stays on. passt has checked, or made, the checksums of the frames that it sends. It takes
 * frames of up to 64 KiB instead of segments to be cut, hence the MTU.
 */
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include <asm/ring3_poll.h>

#include "hostio.h"
#include "port.h"

#define PASST_MTU	65520U		/* passt's own default and limit */
#define PASST_LEN	4U		/* bytes of a frame's length field */

/*
 * Bytes: a longer frame is not passt's. A frame that is merely larger than the MTU is counted as a giant and
 * skipped.
 */
#define PASST_FRAME_MAX	RING3_FRAME_MAX

/* Bytes: two of the largest frames, so that reading seldom stops short. */
#define PASST_BUFFER	(128U << 10)

/* Frames and bytes of one host call. */
#define PASST_DRAIN_MAX	65536U		/* frames left unread when the interface comes up */
#define PASST_BATCH	32U
#define PASST_BATCH_MAX	(128U << 10)

/* Entries of one host call: three frames of many fragments, or a dozen of few. */
#define PASST_IOV	(3 * RING3_SKB_IOV)

struct passt_cb {
	__be32 len;		/* sent before the frame */
};

struct passt_port {
	bool down;

	/* TX lock */
	struct sk_buff_head queue;
	u32 queued;		/* bytes in queue, length fields too */
	u32 sent;		/* bytes of the first that the host has taken */
	struct iovec iov[PASST_IOV];	/* for one call; too large for a stack */

	/* NAPI */
	struct page_frag frag;
	u8 *buffer;
	u32 off;
	u32 have;
};

static struct passt_port *to_passt(const struct ring3_port *port)
{
	return ring3_port_priv(port);
}

static struct passt_cb *passt_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct passt_cb) > sizeof(skb->cb));
	return (struct passt_cb *)skb->cb;
}

static void passt_down(struct ring3_port *port, struct passt_port *passt, const char *why, long n)
{
	if (READ_ONCE(passt->down))
		return;
	WRITE_ONCE(passt->down, true);
	ring3_irq_unregister(port->index);
	ring3_count(port, RING3_RX_BROKEN);
	netif_carrier_off(port->dev);
	netdev_err(port->dev, "%s (%ld): port down; it comes back with the node (`ring3 down`, `ring3 up`)\n", why, n);
}

/* The host has refused a call on the socket. A passt that ended with unread frames resets the connection. */
static void passt_refused(struct ring3_port *port, struct passt_port *passt, const char *why, long err)
{
	if (err == -ECONNRESET || err == -EPIPE)
		why = "passt has closed its end, error";
	passt_down(port, passt, why, -err);
}

/* Send */

static u32 passt_bytes(const struct sk_buff *skb)
{
	return PASST_LEN + skb->len;
}

/* The whole queue, or as many of its frames as fit, without the bytes that were sent. */
static unsigned int passt_iov(struct passt_port *passt)
{
	struct iovec *iov = passt->iov;
	struct sk_buff *skb;
	unsigned int n = 0;

	skb_queue_walk(&passt->queue, skb) {
		if (n + RING3_SKB_IOV > PASST_IOV)
			break;
		iov[n].iov_base = (void __force __user *)&passt_cb(skb)->len;
		iov[n++].iov_len = PASST_LEN;
		n += ring3_skb_to_iov(skb, iov + n);
	}
	return ring3_iov_advance(iov, n, passt->sent);
}

static void passt_drop_queue(struct ring3_port *port, struct passt_port *passt)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&passt->queue)))
		ring3_tx_drop(port, skb);
	passt->queued = 0;
	passt->sent = 0;
}

/* The host has taken n more bytes. */
static void passt_taken(struct ring3_port *port, struct passt_port *passt, u32 n)
{
	struct sk_buff *skb;

	passt->sent += n;
	while ((skb = skb_peek(&passt->queue)) && passt->sent >= passt_bytes(skb)) {
		passt->sent -= passt_bytes(skb);
		passt->queued -= passt_bytes(skb);
		__skb_unlink(skb, &passt->queue);
		ring3_tx_done(port, skb);
	}
	if (passt->sent)
		ring3_count(port, RING3_TX_PARTIAL);
}

/* True: the queue is empty. False: the socket is full. */
static bool passt_flush(struct ring3_port *port, struct passt_port *passt)
{
	while (!skb_queue_empty(&passt->queue)) {
		unsigned int n = passt_iov(passt);
		long ret;

		ring3_count(port, RING3_TX_BATCHES);
		ret = ring3_port_sendv(port->index, passt->iov, n);
		if (ret == -EAGAIN)
			return false;
		if (ret == -ENOMEM || ret == -ENOBUFS || ret == -EBADF) {
			/* The host is short of memory, or another process has the descriptor; no edge will follow. */
			ring3_poll_owe(port->index);
			return false;
		}
		if (ret <= 0) {
			ring3_count(port, RING3_TX_HOST_ERRORS);
			passt_refused(port, passt, "passt does not take frames any more, error", ret);
			passt_drop_queue(port, passt);
			return true;
		}
		passt_taken(port, passt, ret);
	}
	return true;
}

static void passt_tx_flush(struct ring3_port *port)
{
	if (likely(passt_flush(port, to_passt(port))))
		return;
	ring3_count(port, RING3_TX_FULL);
	netif_tx_stop_queue(ring3_txq(port));
	/* Room may have been freed in between, and its edge consumed. */
	napi_schedule(&port->napi);
}

static void passt_xmit(struct ring3_port *port, struct sk_buff *skb, bool more)
{
	struct passt_port *passt = to_passt(port);

	if (unlikely(READ_ONCE(passt->down) || skb->len > PASST_FRAME_MAX ||
		     (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb)))) {
		ring3_tx_drop(port, skb);
	} else {
		passt_cb(skb)->len = cpu_to_be32(skb->len);
		passt->queued += passt_bytes(skb);
		__skb_queue_tail(&passt->queue, skb);
	}

	if (more && skb_queue_len(&passt->queue) < PASST_BATCH && passt->queued < PASST_BATCH_MAX)
		return;
	passt_tx_flush(port);
}

static bool passt_tx_resume(struct ring3_port *port)
{
	return passt_flush(port, to_passt(port));
}

/* Receive */

static void passt_frame(struct ring3_port *port, const u8 *frame, u32 len)
{
	static const struct virtio_net_hdr hdr = {
		.flags = VIRTIO_NET_HDR_F_DATA_VALID,
		.gso_type = VIRTIO_NET_HDR_GSO_NONE,
	};

	if (ring3_rx_len_ok(port, len, hdr.gso_type))
		ring3_rx_frame(port, &to_passt(port)->frag, frame, len, 0, &hdr);
}

/* Reads more bytes after those in the buffer. False: there are none, or the port is down. */
static bool passt_read(struct ring3_port *port, struct passt_port *passt)
{
	long n;

	if (passt->off) {
		memmove(passt->buffer, passt->buffer + passt->off, passt->have - passt->off);
		passt->have -= passt->off;
		passt->off = 0;
	}
	ring3_count(port, RING3_RX_CALLS);
	n = ring3_port_recv(port->index, passt->buffer + passt->have, PASST_BUFFER - passt->have);
	if (n == -EAGAIN || n == -EBADF)
		return false;
	if (n == -ENOMEM || n == -ENOBUFS) {
		ring3_poll_owe(port->index);
		return false;
	}
	if (n <= 0) {
		passt_refused(port, passt, "reading from passt failed, error", n ?: -EPIPE);
		return false;
	}
	passt->have += n;
	return true;
}

/* Is there a whole frame at the front? Reads more if not. */
static bool passt_have(struct ring3_port *port, struct passt_port *passt, u32 *len)
{
	while (!READ_ONCE(passt->down)) {
		u32 have = passt->have - passt->off;

		*len = 0;
		if (have >= PASST_LEN) {
			*len = get_unaligned_be32(passt->buffer + passt->off);
			if (*len > PASST_FRAME_MAX) {
				DEV_STATS_INC(port->dev, rx_errors);
				passt_down(port, passt, "passt's stream is corrupt, frame length", *len);
				return false;
			}
		}
		if (have >= PASST_LEN + *len)
			return true;
		if (!passt_read(port, passt))
			return false;
	}
	return false;
}

static int passt_poll(struct ring3_port *port, int budget)
{
	struct passt_port *passt = to_passt(port);
	u32 bytes = 0, len;
	int done = 0;

	while (done < budget && passt_have(port, passt, &len)) {
		passt_frame(port, passt->buffer + passt->off + PASST_LEN, len);
		passt->off += PASST_LEN + len;
		done++;
		bytes += len;
		if (ring3_rx_batch_full(bytes))
			return budget;
	}
	return done;
}

/* Up and down */

/* Frames that arrived while the interface was down are dropped; the position in the stream is kept. */
static void passt_drain(struct ring3_port *port, struct passt_port *passt)
{
	u32 frames, len;

	for (frames = 0; frames < PASST_DRAIN_MAX && passt_have(port, passt, &len); frames++)
		passt->off += PASST_LEN + len;
}

static int passt_open(struct ring3_port *port)
{
	struct passt_port *passt = to_passt(port);

	passt_drain(port, passt);
	if (passt->down) {
		netdev_err(port->dev, "the stream to passt is lost; it comes back with the node (`ring3 down`, `ring3 up`)\n");
		return -ENETDOWN;
	}
	netif_carrier_on(port->dev);
	return 0;
}

static void passt_stop(struct ring3_port *port)
{
	/*
	 * The stream continues when the interface comes up again: so a frame that is half sent stays in the queue,
	 * and so do bytes that were read.
	 */
	struct passt_port *passt = to_passt(port);
	struct sk_buff *first = passt->sent ? __skb_dequeue(&passt->queue) : NULL;
	u32 sent = passt->sent;

	ring3_rx_copy_end(&passt->frag);
	passt_drop_queue(port, passt);
	if (first) {
		__skb_queue_head(&passt->queue, first);
		passt->queued = passt_bytes(first);
		passt->sent = sent;
	}
}

static int passt_init(struct ring3_port *port, const struct ring3_port_config *cfg)
{
	struct passt_port *passt = to_passt(port);

	passt->buffer = kmalloc(PASST_BUFFER, GFP_KERNEL);
	if (!passt->buffer)
		return -ENOMEM;
	__skb_queue_head_init(&passt->queue);
	port->dev->hw_features &= ~(NETIF_F_ALL_TSO | NETIF_F_GSO_UDP_L4);
	port->dev->hw_features |= NETIF_F_HW_CSUM;
	return 0;
}

static void passt_exit(struct ring3_port *port)
{
	struct passt_port *passt = to_passt(port);

	passt_drop_queue(port, passt);
	kfree(passt->buffer);
}

const struct ring3_port_ops ring3_passt_ops = {
	.kind = "passt",
	.mtu = PASST_MTU,
	.priv_size = sizeof(struct passt_port),
	.init = passt_init,
	.exit = passt_exit,
	.open = passt_open,
	.stop = passt_stop,
	.xmit = passt_xmit,
	.flush = passt_tx_flush,
	.tx_resume = passt_tx_resume,
	.poll = passt_poll,
	.later = ring3_rest,
	.share = 2,
};
