// SPDX-License-Identifier: GPL-2.0-only
/*
 * fdsend.c - what tap and packet ports send
 *
 * Theory of operation
 * -------------------
 * A frame is sent straight from its skb, behind a virtio_net_hdr. A packet socket takes the frames of a batch by one
 * sendmmsg(): they wait in queue[] until the last of the batch is there. A TAP is no socket and takes one frame a call,
 * so none of its frames waits.
 *
 * A TAP takes a frame or loses it; a packet socket says EAGAIN when its buffer is full. Then the frames are kept, the
 * queue stopped, and the interrupt (the descriptor is writable) sends them.
 *
 * A process whose filter refuses sendmmsg() sends one by one. So does a batch of one.
 *
 * The descriptor's number is that of the process which drives, so it is asked for at each call. Whatever state there is
 * lives in the region.
 */
#include "fdport.h"

static bool fd_queue(struct fd_port *fdp, struct sk_buff *skb)
{
	struct virtio_net_hdr_mrg_rxbuf *hdr = &fdp->tx_hdr[fdp->queued];
	struct iovec *iov = &fdp->tx_iov[fdp->pieces];
	unsigned int n;

	/* Only while the queue is stopped, when nobody may send. */
	if (unlikely(fdp->queued == FD_TX_BATCH || fdp->pieces + RING3_SKB_IOV > FD_TX_IOV))
		return false;
	memset(hdr, 0, sizeof(*hdr));
	if (unlikely(virtio_net_hdr_from_skb(skb, &hdr->hdr, true, false, 0)))
		return false;
	iov[0].iov_base = (void __force __user *)hdr;
	iov[0].iov_len = fdp->hdr_len;
	n = 1 + ring3_skb_to_iov(skb, iov + 1);
	fdp->tx_msg[fdp->queued] = (struct mmsghdr){
		.msg_hdr.msg_iov = (struct iovec __force __user *)iov,
		.msg_hdr.msg_iovlen = n,
	};
	fdp->queue[fdp->queued++] = skb;
	fdp->pieces += n;
	return true;
}

/* All that waits, or the first of it: how many the host took, or why it took none. */
static long fd_send(struct ring3_port *port, struct fd_port *fdp)
{
	struct mmsghdr *msg = &fdp->tx_msg[fdp->first];
	unsigned int n = fdp->queued - fdp->first;
	long ret;

	ring3_count(port, RING3_TX_BATCHES);
	if (n > 1) {
		ret = ring3_port_sendmmsg(port->index, msg, n);
		if (likely(ret > 0) || !fd_refused(port, fdp, ret))
			return ret ?: -EIO;
	}
	ret = ring3_port_writev(port->index, (struct iovec __force *)msg->msg_hdr.msg_iov, msg->msg_hdr.msg_iovlen);
	return ret < 0 ? ret : 1;
}

static void fd_lost(struct ring3_port *port, struct fd_port *fdp, struct sk_buff *skb, long err)
{
	ring3_count(port, RING3_TX_HOST_ERRORS);
	/* A packet socket says so only to who sends: ENXIO. An interface that is down is ENETDOWN. */
	if (err == -EBADFD || err == -ENXIO)
		fd_gone(port, fdp, err);
	ring3_tx_drop(port, skb);
}

/* True: the queue is empty. False: the host has no room. */
static bool fd_flush(struct ring3_port *port, struct fd_port *fdp)
{
	while (fdp->first < fdp->queued) {
		long n = fd_send(port, fdp);

		if (unlikely(n == -EAGAIN))
			return false;
		if (unlikely(n < 0))
			fd_lost(port, fdp, fdp->queue[fdp->first++], n);
		while (n-- > 0)
			ring3_tx_done(port, fdp->queue[fdp->first++]);
	}
	fdp->first = fdp->queued = fdp->pieces = 0;
	return true;
}

void fd_tx_flush(struct ring3_port *port)
{
	if (likely(fd_flush(port, to_fdport(port))))
		return;
	ring3_count(port, RING3_TX_FULL);
	netif_tx_stop_queue(ring3_txq(port));
	/* Room may have been freed in between, and its edge consumed. */
	napi_schedule(&port->napi);
}

void fd_xmit(struct ring3_port *port, struct sk_buff *skb, bool more)
{
	struct fd_port *fdp = to_fdport(port);

	if (unlikely(!fd_queue(fdp, skb))) {
		ring3_count(port, RING3_TX_HOST_ERRORS);
		ring3_tx_drop(port, skb);
	}
	if (more && fdp->many && fdp->queued < FD_TX_BATCH && fdp->pieces + RING3_SKB_IOV <= FD_TX_IOV)
		return;
	fd_tx_flush(port);
}

bool fd_tx_resume(struct ring3_port *port)
{
	return fd_flush(port, to_fdport(port));
}

void fd_tx_drop(struct ring3_port *port)
{
	struct fd_port *fdp = to_fdport(port);
	unsigned int i;

	for (i = fdp->first; i < fdp->queued; i++)
		ring3_tx_drop(port, fdp->queue[i]);
	fdp->first = fdp->queued = fdp->pieces = 0;
}
