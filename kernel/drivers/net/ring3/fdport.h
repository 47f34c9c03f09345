/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fdport.h - the state of a tap or packet port, shared by fdport.c (receive, up and down) and fdsend.c
 */
#ifndef RING3_NET_FDPORT_H
#define RING3_NET_FDPORT_H

#include <linux/skbuff.h>
#include <linux/socket.h>

#include "hostio.h"
#include "port.h"

/*
 * Frames of one sendmmsg(). A host call costs 120 to 250 ns (DESIGN, rule 4), a frame more than 1,000:
 * beyond some ten frames there is nothing to be gained.
 */
#define FD_TX_BATCH	32U

/* Pieces of one sendmmsg(): all its frames have two or three, or some have many. */
#define FD_TX_IOV	(FD_TX_BATCH * 3 + RING3_SKB_IOV)

/* Frames of one recvmmsg(): each has room for the largest, 68 KiB, so it grows with what comes. */
#define FD_RX_BATCH	8U
#define FD_RX_BATCH_MIN	2U

struct fd_page {
	struct page *page;
	u32 offset;
	u32 size;		/* of the page */
};

/* The memory into which one frame is read. */
struct fd_slot {
	struct sk_buff *skb;
	struct fd_page page[MAX_SKB_FRAGS];
	unsigned int pages;
	u32 room;		/* bytes in page[] */
	struct virtio_net_hdr_mrg_rxbuf hdr;
};

struct fd_port {
	unsigned int hdr_len;	/* 12 with a TAP, 10 with a packet socket */
	bool gone;		/* the host took the interface away; said once */
	bool many;		/* a socket: one call may be for several frames */
	bool said_refused;	/* that the host refuses such calls; said once */

	atomic64_t missed;	/* packet: frames; the host's own count ends with each look */

	/* TX lock: frames that wait for the end of their batch, or for room */
	unsigned int first, queued;	/* in queue[] */
	unsigned int pieces;		/* in tx_iov[] */
	struct sk_buff *queue[FD_TX_BATCH];
	struct virtio_net_hdr_mrg_rxbuf tx_hdr[FD_TX_BATCH];
	struct mmsghdr tx_msg[FD_TX_BATCH];
	struct iovec tx_iov[FD_TX_IOV];

	/* NAPI: what the next read fills */
	unsigned int batch;	/* frames that it asks for */
	struct fd_slot slot[FD_RX_BATCH];
	struct mmsghdr rx_msg[FD_RX_BATCH];
	struct iovec rx_iov[FD_RX_BATCH][2 + MAX_SKB_FRAGS];
};

static inline struct fd_port *to_fdport(const struct ring3_port *port)
{
	return ring3_port_priv(port);
}

/* fdport.c */
void fd_gone(struct ring3_port *port, struct fd_port *fdp, long err);
bool fd_refused(struct ring3_port *port, struct fd_port *fdp, long err);

/* fdsend.c */
void fd_xmit(struct ring3_port *port, struct sk_buff *skb, bool more);
bool fd_tx_resume(struct ring3_port *port);
void fd_tx_flush(struct ring3_port *port);
void fd_tx_drop(struct ring3_port *port);

#endif /* RING3_NET_FDPORT_H */
