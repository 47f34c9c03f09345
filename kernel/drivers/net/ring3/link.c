// SPDX-License-Identifier: GPL-2.0-only
/*
 * link.c - a port to another node through shared memory
 *
 * Theory of operation
 * -------------------
 * include/ring3.abi has the memory, link_ring.h the rings and what is checked
 * of the far side. This file puts packets in and takes them out.
 *
 * Send: one copy, from the skb into the ring. The position is published at the end of
 * a batch (xmit_more); then, if the far side sleeps (`armed`), its doorbell is rung.
 * The queue is stopped while the ring has no room for the largest frame, so
 * that xmit never fails for want of room, and while LINK_DEPTH packets wait there: then a flood waits in its own
 * socket's queue, and not in front of what others send. It goes on when
 * half has been taken: half, so that two nodes which share a processor
 * hand it over once for many packets and not once for each. Who looks at the link sees that. Who goes to sleep asks the far side
 * to ring then, by `waiting`.
 *
 * Receive: one copy, out of the ring into an skb, before anything of the frame is looked
 * at, since the far side can change it under our eyes. A 64 KiB segment becomes one
 * skb. Room is given back as we go, in steps that are worth a cache line's travel.
 *
 * link_peer.c has the far side's coming and going.
 */
#include <linux/random.h>

#include <asm/ring3_poll.h>
#include "link.h"

/* Bytes: room is given back in steps of this size. */
#define LINK_RX_STEP		(64U << 10)

/*
 * Packets that wait in the ring for the far side: some 40 us of its work, longer than a sleep and a wake-up of the host's.
 * Thousands, which the ring has room for, would be milliseconds that a neighbour's packet comes later. 64 cost streams of
 * 1500-byte packets a quarter, 16 datagrams a third; 256 make round trips beside a flood no better than 128.
 * Shown by: `bench/run company sends`, `bench/run peers-udp`.
 */
#define LINK_DEPTH		128U

/* Send */

static void link_tx_flush(struct ring3_port *port, struct link_port *link)
{
	link_tx_publish(&link->tx);
	ring3_count(port, RING3_TX_BATCHES);
	if (link_take_flag(&link->peer->armed)) {
		ring3_count(port, RING3_TX_DOORBELLS);
		link_ring_doorbell(link);
	}
}

/* Is there room for any frame, and has the far side not too many packets to take? */
static bool link_tx_ready(struct link_port *link)
{
	return link_tx_room(&link->tx, LINK_FRAME_MAX) == LINK_OK && !link_tx_deep(&link->tx, LINK_DEPTH);
}

static void link_tx_go_on(struct link_port *link)
{
	WRITE_ONCE(link->wanted, 0);
	link_store(&link->self->waiting, 0);
}

/*
 * Waits until half has been taken. While the link is unarmed somebody looks, sees it without a ring, and says `waiting' when he
 * arms the link. Else that is said here. True: the queue may go on at once.
 */
static bool link_tx_wait(struct link_port *link)
{
	u32 at = link_tx_half(&link->tx, LINK_DEPTH);

	WRITE_ONCE(link->wanted, at);
	link_mb();	/* ring3_poll_arm(): either it sees `wanted', or we see `armed' */
	if (!link->polled || link_load(&link->self->armed))
		link_set_flag(&link->self->waiting, at);
	else
		ring3_poll_later();
	if (!link_tx_ready(link))
		return false;
	link_tx_go_on(link);
	return true;
}

/* No room, or no use: stop, ask to be woken, and look again for the race. */
static void link_tx_stop(struct ring3_port *port, struct link_port *link)
{
	struct netdev_queue *txq = ring3_txq(port);

	netif_tx_stop_queue(txq);
	ring3_count(port, RING3_TX_FULL);
	if (link_tx_wait(link))
		netif_tx_start_queue(txq);
	else
		link_look_soon(link);
}

/* After each frame, sent or not. */
static void link_tx_end(struct ring3_port *port, struct link_port *link, bool more)
{
	if (unlikely(!link_tx_ready(link))) {
		/* First what is there: the far side can make no room of nothing. */
		link_tx_flush(port, link);
		link_tx_stop(port, link);
	} else if (!more) {
		link_tx_flush(port, link);
	}
}

static void link_xmit(struct ring3_port *port, struct sk_buff *skb, bool more)
{
	struct link_port *link = to_link(port);
	struct virtio_net_hdr_mrg_rxbuf hdr = {};
	struct ring3_record *rec;
	u32 len = skb->len;

	if (unlikely(len > RING3_FRAME_MAX || link_tx_room(&link->tx, len) != LINK_OK ||
		     virtio_net_hdr_from_skb(skb, &hdr.hdr, true, true, 0))) {
		ring3_tx_drop(port, skb);
		goto end;
	}
	hdr.num_buffers = cpu_to_virtio16(NULL, 1);

	rec = link_tx_reserve(&link->tx, len);
	memcpy(rec->vnet_hdr, &hdr, sizeof(rec->vnet_hdr));
	skb_copy_bits(skb, 0, rec + 1, len);
	link_tx_commit(&link->tx, len);
	ring3_tx_done(port, skb);

end:
	link_tx_end(port, link, more);
}

static bool link_xmit_bytes(struct ring3_port *port, const void *data, u32 len, bool more)
{
	struct link_port *link = to_link(port);
	struct virtio_net_hdr_mrg_rxbuf hdr = { .num_buffers = cpu_to_virtio16(NULL, 1) };
	bool room = link_tx_room(&link->tx, len) == LINK_OK;
	struct ring3_record *rec;

	if (likely(room)) {
		rec = link_tx_reserve(&link->tx, len);
		memcpy(rec->vnet_hdr, &hdr, sizeof(rec->vnet_hdr));
		memcpy(rec + 1, data, len);
		link_tx_commit(&link->tx, len);
		dev_sw_netstats_tx_add(port->dev, 1, len);
	}
	link_tx_end(port, link, more);
	return room;
}

static void link_flush(struct ring3_port *port)
{
	link_tx_flush(port, to_link(port));
}

static bool link_tx_resume(struct ring3_port *port)
{
	struct link_port *link = to_link(port);

	if (!link_tx_ready(link))
		return link_tx_wait(link);
	link_tx_go_on(link);
	return true;
}

/* Receive */

/* Gives room back; rings when the producer waits for it, and for no more than that. */
static void link_rx_release(struct ring3_port *port, struct link_port *link)
{
	link_rx_publish(&link->rx);
	if (link_take_waiting(&link->rx, &link->peer->waiting)) {
		ring3_count(port, RING3_RX_DOORBELLS);
		link_ring_doorbell(link);
	}
}

/* One copy of the header, word by word: the far side may be writing it. */
static void link_rx_header(const struct ring3_record *rec, struct virtio_net_hdr *hdr)
{
	const u32 *from = (const u32 *)rec->vnet_hdr;
	union {
		u32 word[3];
		struct virtio_net_hdr hdr;
	} copy;
	int i;

	BUILD_BUG_ON(sizeof(rec->vnet_hdr) != sizeof(copy.word));
	BUILD_BUG_ON(offsetof(struct ring3_record, vnet_hdr) % sizeof(u32));
	for (i = 0; i < ARRAY_SIZE(copy.word); i++)
		copy.word[i] = READ_ONCE(from[i]);
	*hdr = copy.hdr;
}

static int link_poll(struct ring3_port *port, int budget)
{
	struct link_port *link = to_link(port);
	struct link_rx *rx = &link->rx;
	enum link_status status = LINK_OK;
	u32 bytes = 0;
	int done = 0;

	link_check_carrier(port, link);
	/* The queue was started by others, as the carrier came: nobody is to look for room. */
	if (unlikely(READ_ONCE(link->wanted)) && !netif_tx_queue_stopped(ring3_txq(port)))
		WRITE_ONCE(link->wanted, 0);

	while (done < budget) {
		struct virtio_net_hdr hdr;
		struct ring3_record *rec;
		u32 len;

		status = link_rx_peek(rx, &rec, &len);
		if (status != LINK_OK)
			break;
		done++;
		bytes += len;
		link_rx_header(rec, &hdr);
		if (ring3_rx_len_ok(port, len, hdr.gso_type))
			ring3_rx_frame(port, &link->frag, rec + 1, len,
				       le16_to_cpu((__force __le16)hdr.hdr_len), &hdr);
		link_rx_consume(rx);
		if (link_rx_unpublished(rx) >= LINK_RX_STEP)
			link_rx_release(port, link);
		if (ring3_rx_batch_full(bytes)) {
			done = budget;
			break;
		}
	}

	/*
	 * Always, even with nothing consumed: the idle loop compares head with
	 * this word, and a far side that scribbled over it must not keep us awake.
	 */
	link_rx_release(port, link);
	if (unlikely(status == LINK_BROKEN || READ_ONCE(link->tx.broken)))
		link_broken(port, link);
	return done;
}

/* Packets that are in the ring already are found like those that come while the link is unarmed. */
static void link_later(struct ring3_port *port)
{
	link_store(&to_link(port)->self->armed, 0);
	ring3_poll_later();
}

static int link_open(struct ring3_port *port)
{
	struct link_port *link = to_link(port);
	int err;

	link_attach(link);
	link->complained = false;
	link->peer_up = 0;
	link->peer_pid = 0;
	netif_carrier_off(port->dev);

	err = link_watch(port, link);
	if (err)
		return err;
	link->polled = true;

	link_tx_go_on(link);
	link_store(&link->self->pid, ring3_region.keeper_pid);
	link_store_release(&link->self->up, get_random_u32() | 1);
	link_ring_doorbell(link);
	link_look_start(link);
	return 0;
}

static void link_stop(struct ring3_port *port)
{
	struct link_port *link = to_link(port);

	cancel_delayed_work_sync(&link->look);
	link_unwatch(port, link);
	link_store_release(&link->self->up, 0);
	link_tx_go_on(link);
	link_ring_doorbell(link);
	netif_carrier_off(port->dev);
	ring3_rx_copy_end(&link->frag);
}

static int link_init(struct ring3_port *port, const struct ring3_port_config *cfg)
{
	struct link_port *link = to_link(port);
	u64 want = (u64)&ring3_region + RING3_LINK_OFFSET + (u64)cfg->index * RING3_LINK_STRIDE;
	struct ring3_link *mem = (struct ring3_link *)cfg->window;

	BUILD_BUG_ON(LINK_FRAME_MAX < RING3_FRAME_MAX);
	BUILD_BUG_ON(LINK_DEPTH > LINK_DEPTH_MAX);
	BUILD_BUG_ON(sizeof(struct ring3_link) > RING3_LINK_HEAD);
	BUILD_BUG_ON(RING3_LINK_BYTES > RING3_LINK_STRIDE);

	if (cfg->side > 1 || cfg->window != want)
		return -EINVAL;
	link->ring_bytes = link_load(&mem->ring_bytes);
	if (link_load(&mem->magic) != RING3_LINK_MAGIC || link_load(&mem->abi) != RING3_ABI ||
	    !link_size_ok(link->ring_bytes)) {
		pr_err("ring3: %s: the link's memory is not that of a link of this version\n",
		       cfg->name);
		return -EPROTO;
	}

	link->mem = mem;
	link->port = port;
	link->side = cfg->side;
	link->self = &mem->side[cfg->side];
	link->peer = &mem->side[!cfg->side];
	INIT_DELAYED_WORK(&link->look, link_look);
	netif_carrier_off(port->dev);
	return 0;
}

const struct ring3_port_ops ring3_link_ops = {
	.kind = "link",
	.mtu = ETH_DATA_LEN,
	.priv_size = sizeof(struct link_port),
	.init = link_init,
	.open = link_open,
	.stop = link_stop,
	.xmit = link_xmit,
	.xmit_bytes = link_xmit_bytes,
	.flush = link_flush,
	.tx_resume = link_tx_resume,
	.poll = link_poll,
	.later = link_later,
	.share = 2,
};
