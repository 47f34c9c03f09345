/* SPDX-License-Identifier: GPL-2.0 */
/*
 * port_fuzz.h - what the fuzzers of both kinds of stranger's ports have in common
 *
 * Every frame has a number, which its bytes follow from: whatever reaches the stack or the
 * host is checked to the last byte, and so is what was received earlier, when it is given back.
 * Each frame says beforehand whether it must arrive; one that does not has to have a reason.
 */
#ifndef PORT_FUZZ_H
#define PORT_FUZZ_H

#include "cover.h"
#include "kernel.h"
#include "port.h"
#include "hostio.c"
#include "rx.c"

#define FRAMES	256u		/* that are remembered */
#define KEPT	8u		/* received ones that the stack still has */

static const uint8_t *step;
static size_t left;

static uint32_t byte(void)
{
	if (!left)
		return 0;
	left--;
	return *step++;
}

static bool fails, failed;	/* allocations may fail; one did since the last frame */

static bool fail_next(void)
{
	if (!fails || byte() % 4)
		return false;
	failed = true;
	return true;
}

struct frame {
	u32 seq, len;
	bool must;		/* arrive */
};

static struct frame frames[FRAMES];
static u32 made, arrived;	/* numbers; 0 is none */
static struct sk_buff *kept[KEPT];
static u32 kept_next;
static struct {
	struct ring3_port port;
	u8 priv[65536] __attribute__((aligned(64)));
} block;
static struct net_device dev;

/* main.c's, which does the polling in a node; here the input does. */
unsigned int ring3_rx_batch = 128 << 10;

void ring3_rest(struct ring3_port *port)
{
	CHECK(port == &block.port);
}

/* irq.c's: nobody is told, the input looks again by itself. */
void ring3_irq_unregister(unsigned int index)
{
	CHECK(index == block.port.index);
}

void ring3_poll_owe(unsigned int index)
{
	CHECK(index == block.port.index);
}

#define NOISE	(1u << 17)	/* more than a frame behind its first byte's place */

/* The bytes of frame seq, from `at` on: its number, then noise from a place that follows from it. */
static const u8 *content(u32 seq, u32 at)
{
	static u8 noise[NOISE], head[4];
	u32 i, x = 1;

	for (i = 0; !noise[0] && i < NOISE; i++) {
		x = x * 1664525 + 1013904223;
		noise[NOISE - 1 - i] = (u8)(x >> 24 | 1);
	}
	if (at >= 4)
		return noise + (seq * 977 & 0x7fff) + at;
	memcpy(head, &seq, 4);
	return head + at;
}

/* Walks over those bytes in step with somebody else's pieces. */
static void content_same(const void *piece, u32 len, u32 seq, u32 *at)
{
	u32 n = *at < 4 ? min(len, 4 - *at) : len;

	CHECK(!memcmp(piece, content(seq, *at), n));
	*at += n;
	if (n < len)
		content_same((const u8 *)piece + n, len - n, seq, at);
}

static void content_put(void *piece, u32 len, u32 seq, u32 *at)
{
	u32 n = *at < 4 ? min(len, 4 - *at) : len;

	memcpy(piece, content(seq, *at), n);
	*at += n;
	if (n < len)
		content_put((u8 *)piece + n, len - n, seq, at);
}

static u32 frame_new(u32 len, bool must)
{
	made++;
	frames[made % FRAMES] = (struct frame){ made, len, must && len >= ETH_HLEN };
	return made;
}

static bool may_arrive(u32 len, u8 gso)
{
	return len >= ETH_HLEN && len <= (gso ? RING3_FRAME_MAX : dev.mtu + ETH_HLEN + 2 * VLAN_HLEN);
}

/* Lengths on both sides of what the ports compare with. */
static u32 some_len(void)
{
	static const u32 odd[] = { 0, 13, 14, 60, 1514, 1536, 1537, 1600, 1601, 4096, 34304, 65535, 65558, 65559 };
	u32 how = byte(), n = byte();

	switch (how % 8) {
	case 0: case 1: return odd[n % ARRAY_SIZE(odd)];
	case 2: case 3: return n;
	case 4: case 5: case 6: return n * 8 + how / 8;
	default: return (n << 8 | how) % 66000;
	}
}

/* The bytes of packet skb, from its Ethernet header on, are those of frame seq. */
static void check_content(const struct sk_buff *skb, u32 seq, u32 len)
{
	u32 at = 0, k;

	content_same(skb->head, (u32)(skb->data - skb->head) + skb_headlen(skb), seq, &at);
	for (k = 0; k < skb->shared.nr_frags; k++) {
		const skb_frag_t *f = &skb->shared.frags[k];

		content_same(f->page->mem + f->offset, f->size, seq, &at);
	}
	CHECK(at == len);
}

/* Frames between two numbers did not arrive: each for a reason. */
static void account(u32 before)
{
	for (; arrived + 1 < before; arrived++)
		CHECK(!frames[(arrived + 1) % FRAMES].must || failed || before - arrived > FRAMES);
}

static void napi_gro_receive(struct napi_struct *napi, struct sk_buff *skb)
{
	struct frame *f;
	u32 i, seq = 0;

	(void)napi;
	for (i = 0; i < 4; i++)
		seq |= (u32)skb->head[i] << 8 * i;
	CHECK(seq > arrived && seq <= made);
	f = &frames[seq % FRAMES];
	account(seq);
	CHECK(f->seq == seq && f->must);
	check_content(skb, seq, f->len);
	arrived = seq;
	failed = false;
	skb->seq = seq;
	i = kept_next++ % KEPT;
	if (kept[i]) {
		check_content(kept[i], kept[i]->seq, frames[kept[i]->seq % FRAMES].seq == kept[i]->seq ?
			      frames[kept[i]->seq % FRAMES].len : kept[i]->len + ETH_HLEN);
		kfree_skb(kept[i]);
	}
	kept[i] = skb;
}

/* A program has taken the frame that starts here. */
static void taken(const void *start)
{
	u32 seq;

	memcpy(&seq, start, sizeof(seq));
	CHECK(seq > arrived && seq <= made);
	frames[seq % FRAMES].must = false;
}

/* prog.c's, where the input is the program. */
bool ring3_prog_bytes(struct ring3_port *port, const void *data, u32 len, const struct virtio_net_hdr *hdr)
{
	struct sk_buff *skb;

	CHECK(len >= ETH_HLEN);
	if (hdr->gso_type || len > 3000)
		return false;
	if (byte() % 2) {
		taken(data);
		return true;
	}
	skb = napi_alloc_skb(&port->napi, len);
	if (!skb)
		return true;
	skb_put_data(skb, data, len);
	ring3_deliver(port, skb, hdr);
	return true;
}

bool ring3_prog_skb(struct ring3_port *port, struct sk_buff **skb)
{
	CHECK(port->prog);
	if (byte() % 2)
		return true;
	taken((*skb)->head);
	kfree_skb(*skb);
	return false;
}

/* The input puts one on or takes it off. */
static void prog_change(struct ring3_port *port)
{
	port->prog = port->prog ? NULL : (void *)port;
}

static void kept_drop(void)
{
	u32 i;

	for (i = 0; i < KEPT; i++) {
		if (kept[i])
			check_content(kept[i], kept[i]->seq, kept[i]->len + ETH_HLEN);
		kfree_skb(kept[i]);
		kept[i] = NULL;
	}
}

/* A packet to send, in as many pieces as the input says. */
static struct sk_buff *to_send(u32 seq, u32 len)
{
	u32 linear = min(len, 1 + byte() * 4), at = 0, i, n;
	struct sk_buff *skb = skb_new(linear);

	content_put(skb_put(skb, linear), linear, seq, &at);
	for (i = 0; at < len; i++) {
		struct page *page;
		bool may_fail = fails;

		fails = false;
		page = alloc_pages(0, 3);
		fails = may_fail;
		n = i == MAX_SKB_FRAGS - 1 ? len - at : min(len - at, 1 + byte() * 128);
		if (n > 32768)		/* the rest does not fit: a shorter frame */
			n = 32768;
		skb_add_rx_frag(skb, (int)i, page, 0, n, n);
		content_put(page->mem, n, seq, &at);
		if (i == MAX_SKB_FRAGS - 1)
			break;
	}
	skb->seq = seq;
	skb->ip_summed = byte() % 2 ? CHECKSUM_PARTIAL : CHECKSUM_NONE;
	return skb;
}

void ring3_tx_done(struct ring3_port *port, struct sk_buff *skb)
{
	(void)port;
	kfree_skb(skb);
}

void ring3_tx_drop(struct ring3_port *port, struct sk_buff *skb)
{
	port->dev->stats.tx_dropped++;
	kfree_skb(skb);
}

/* A port that is down. */
static struct ring3_port *port_new(const struct ring3_port_ops *ops, u32 kind)
{
	static const struct ring3_port_config none;
	struct ring3_port_config cfg = none;

	memset(&block, 0, sizeof(block));
	CHECK(ALIGN(sizeof(block.port), NETDEV_ALIGN) + ops->priv_size <= sizeof(block));
	memset(&dev, 0, sizeof(dev));
	dev.mtu = (u32[]){ 1500, 68, 9000, 65520 }[byte() % 4];
	dev.features = NETIF_F_RXCSUM;
	the_queue.stopped = false;
	made = arrived = 0;
	kept_next = 0;
	fails = failed = false;
	block.port.ops = ops;
	block.port.dev = &dev;
	cfg.kind = kind;
	CHECK(!ops->init(&block.port, &cfg));
	return &block.port;
}

/* Nothing may be left of what came through the port. */
static void port_end(struct ring3_port *port)
{
	port->ops->stop(port);
	if (port->ops->exit)
		port->ops->exit(port);
	kept_drop();
	CHECK(!skbs_alive && !pages_alive);
}

#endif
