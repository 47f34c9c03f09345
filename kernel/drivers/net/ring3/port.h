/* SPDX-License-Identifier: GPL-2.0 */
/*
 * port.h - the interface between the driver and a kind of port
 *
 * main.c does everything that Linux sees (netdev, NAPI, queue, counters); a kind does everything that the far side
 * sees. They meet in struct ring3_port_ops.
 *
 * Locks. xmit and tx_resume run under the TX queue's lock; poll runs in NAPI context, one at a time. On an SMP node
 * the two may run in parallel; they share nothing but counters (each written by one of them). open, stop, init and
 * exit run under RTNL, with the interrupt unregistered and NAPI disabled, except that the interrupt may come as
 * soon as open has returned.
 */
#ifndef RING3_NET_PORT_H
#define RING3_NET_PORT_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/virtio_net.h>
#include <net/xdp.h>

#include <asm/ring3.h>

struct ring3_port;

/* virtio_net_hdr with num_buffers: what links and TAPs carry, 12 bytes. */
#define RING3_VNET_HDR	((unsigned int)sizeof(struct virtio_net_hdr_mrg_rxbuf))

/*
 * Bytes: the largest frame that any kind takes or sends, a 64 KiB segment with
 * its Ethernet header and two VLAN tags.
 */
#define RING3_FRAME_MAX	(65536U + ETH_HLEN + 2 * VLAN_HLEN)

/* Counters for ethtool -S; names in ethtool.c. RX: written by poll. TX: by xmit. */
enum ring3_counter {
	RING3_RX_IRQS,		/* interrupts from the far side */
	RING3_RX_POLLS,		/* polls that found something */
	RING3_RX_CALLS,		/* host calls that received */
	RING3_RX_RUNTS,
	RING3_RX_GIANTS,
	RING3_RX_BAD_HEADER,	/* invalid offload header */
	RING3_RX_NO_MEMORY,
	RING3_RX_DOORBELLS,	/* rings for the far side: there is room again */
	RING3_RX_BROKEN,	/* far side broke the ring or the stream */
	RING3_RX_XDP_DROPS,	/* a program's verdicts */
	RING3_RX_XDP_TX,
	RING3_RX_XDP_REDIRECTS,
	RING3_TX_BATCHES,	/* flushes: one publish or host call for several packets */
	RING3_TX_DOORBELLS,	/* rings that wake the far side */
	RING3_TX_FULL,		/* queue stopped: no room at the far side */
	RING3_TX_WAKES,		/* ... and started again */
	RING3_TX_PARTIAL,	/* the stream took only a part of a frame */
	RING3_TX_HOST_ERRORS,	/* the host refused a packet */
	RING3_TX_XDP,		/* redirected here by programs of other interfaces */
	RING3_COUNTERS
};

struct ring3_port_ops {
	const char *kind;	/* ethtool -i */
	unsigned int mtu;	/* default */
	size_t priv_size;

	/* Before the interface exists: checks cfg. 0 or -errno. */
	int (*init)(struct ring3_port *port, const struct ring3_port_config *cfg);
	void (*exit)(struct ring3_port *port);

	/* ndo_open and ndo_stop. */
	int (*open)(struct ring3_port *port);
	void (*stop)(struct ring3_port *port);

	/*
	 * Consumes skb in any case. A kind that runs out of room stops the queue for the next packet. more: another
	 * packet follows at once, or flush, so waking the far side may be delayed.
	 */
	void (*xmit)(struct ring3_port *port, struct sk_buff *skb, bool more);
	/* Optional: the same for a frame that is no skb; the bytes are the caller's again. False: it can't be sent. */
	bool (*xmit_bytes)(struct ring3_port *port, const void *data, u32 len, bool more);
	/* Sends packets that xmit and xmit_bytes have put off. */
	void (*flush)(struct ring3_port *port);
	/* The queue is stopped: is there room again? Retries what was held back. */
	bool (*tx_resume)(struct ring3_port *port);
	/*
	 * Receives up to budget packets; fewer means that nothing is left. After
	 * ring3_rx_batch bytes it stops too, as if they had been budget packets.
	 */
	int (*poll)(struct ring3_port *port, int budget);
	/* Packets are left that need not be received now. The port makes sure that it is polled again. */
	void (*later)(struct ring3_port *port);
	/* Optional: frames that the host has dropped for lack of room, since the port was added. */
	u64 (*missed)(struct ring3_port *port);
	/* Full polls before `later', if programs wait for their turn: as much as a socket holds. */
	unsigned int share;
};

struct ring3_port {
	const struct ring3_port_ops *ops;
	struct net_device *dev;
	struct napi_struct napi;
	u32 index;
	u32 flags;		/* RING3_PORT_* */
	u32 polls;		/* full polls since the last interrupt; NAPI */
	u64 rest_until;		/* readers have their turn until then; see ring3_rest() */
	struct bpf_prog __rcu *prog;	/* XDP; W: RTNL */
	struct xdp_rxq_info rxq;
	struct page_frag prog_frag;	/* NAPI: see prog.c */
	bool prog_redirected;	/* NAPI: a frame since the last flush */
	u64 count[RING3_COUNTERS];
};

extern const struct ring3_port_ops ring3_link_ops;
extern const struct ring3_port_ops ring3_tap_ops;
extern const struct ring3_port_ops ring3_packet_ops;
extern const struct ring3_port_ops ring3_passt_ops;
extern const struct ring3_port_ops ring3_xdp_ops;
extern const struct ethtool_ops ring3_ethtool_ops;

static inline void *ring3_port_priv(const struct ring3_port *port)
{
	return (void *)port + ALIGN(sizeof(*port), NETDEV_ALIGN);
}

static inline void ring3_count(struct ring3_port *port, enum ring3_counter which)
{
	/* One writer each; ethtool reads it concurrently. */
	WRITE_ONCE(port->count[which], port->count[which] + 1);
}

static inline struct netdev_queue *ring3_txq(const struct ring3_port *port)
{
	return netdev_get_tx_queue(port->dev, 0);
}

/* Why a frame was refused on receive. */
enum ring3_rx_fault {
	RING3_FAULT_RUNT,
	RING3_FAULT_GIANT,
	RING3_FAULT_HEADER,
	RING3_FAULT_MEMORY,
};

/* rx.c */
void ring3_rx_fault(struct ring3_port *port, enum ring3_rx_fault why);
bool ring3_rx_len_ok(struct ring3_port *port, unsigned int len, u8 gso_type);
struct sk_buff *ring3_rx_copy(struct ring3_port *port, struct page_frag *frag,
			      const void *data, u32 len, u32 hdr_len);
void ring3_rx_copy_end(struct page_frag *frag);
void ring3_receive(struct ring3_port *port, struct sk_buff *skb,
		   const struct virtio_net_hdr *hdr);
void ring3_deliver(struct ring3_port *port, struct sk_buff *skb,
		   const struct virtio_net_hdr *hdr);
void ring3_rx_frame(struct ring3_port *port, struct page_frag *frag, const void *data, u32 len,
		    u32 hdr_len, const struct virtio_net_hdr *hdr);

/* prog.c */
static inline bool ring3_has_prog(const struct ring3_port *port)
{
	return unlikely(rcu_access_pointer(port->prog));
}

bool ring3_prog_bytes(struct ring3_port *port, const void *data, u32 len, const struct virtio_net_hdr *hdr);
bool ring3_prog_skb(struct ring3_port *port, struct sk_buff **skb);
void ring3_prog_flush(struct ring3_port *port);
int ring3_prog_open(struct ring3_port *port);
void ring3_prog_stop(struct ring3_port *port);
int ring3_bpf(struct net_device *dev, struct netdev_bpf *bpf);
int ring3_xdp_xmit(struct net_device *dev, int n, struct xdp_frame **frames, u32 flags);

/* main.c */
extern unsigned int ring3_rx_batch;

/* Has a poll that received so many bytes done its share? */
static inline bool ring3_rx_batch_full(u32 bytes)
{
	u32 batch = READ_ONCE(ring3_rx_batch);

	return unlikely(batch && bytes >= batch);
}

bool ring3_batch_add(const struct ring3_port *port);
void ring3_rest(struct ring3_port *port);
void ring3_tx_done(struct ring3_port *port, struct sk_buff *skb);
void ring3_tx_drop(struct ring3_port *port, struct sk_buff *skb);

/* Called by arch/ring3 for RING3_NR_PORT_ADD and RING3_NR_PORT_DEL. */
long ring3_port_add(const struct ring3_port_config *cfg);
long ring3_port_del(u32 index);

#endif /* RING3_NET_PORT_H */
