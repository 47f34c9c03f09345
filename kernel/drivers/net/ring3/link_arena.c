// SPDX-License-Identifier: GPL-2.0-only
/*
 * link_arena.c - what a link sends without a copy
 *
 * Theory of operation
 * -------------------
 * The far side sees the link's file and nothing else of this node. So that a packet's data need not be
 * copied there, some pages of the node's memory are the link's file: at init the arena is taken from the page
 * allocator, and all who have the node's memory mapped (the keeper now, programs when they join)
 * map that part of the file over it. From then on its struct pages are ordinary ones, but that their
 * last reference is ours, so they never go back to the allocator: other memory must
 * not become visible, and the mappings stay.
 *
 * Who makes data for a socket that sends through the link asks for a chunk (sendfile.c). When the packet
 * comes to xmit its fragments may lie in the arena; then the record says where, and the skb is held, with its
 * pages, until the consumer's tail has passed the record, also while the interface is down: what is in the ring is
 * read by whoever comes next. The consumer copies it out as it would out of
 * the ring. A chunk is free again when all of its pages have only our reference: the peer has acknowledged
 * the data, and nobody else has them.
 *
 * The far side can change what is in the arena at any time, which is its own data on the way to it; and
 * can let us hold packets for ever, which costs us the arena and then copies.
 */
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "link.h"

#define ARENA_PAGES	(RING3_ARENA_BYTES >> PAGE_SHIFT)
#define CHUNK_PAGES	(1U << RING3_CHUNK_ORDER)
#define CHUNKS		(ARENA_PAGES / CHUNK_PAGES)

/* A node gives at most that part of its memory to one arena. */
#define ARENA_SHARE	32U

/* Packets held before xmit looks which of them the far side has taken: its tail is another CPU's line. */
#define HELD_LOOK	8U

/* Chunks that a look finds at most. */
#define LOOK_TAKE	8U

/* Chunks that are asked for in vain until the next look: that takes a microsecond. */
#define LOOK_REST	32U

struct link_arena {
	struct page *pages;
	bool split;		/* each page has its reference */
	u8 *start;
	spinlock_t lock;
	unsigned int n;		/* in free[] */
	unsigned int rest;	/* don't look for that many times */
	unsigned int next;	/* chunk where the next look begins */
	u16 free[LOOK_TAKE];
};

struct held_cb {
	u32 end;		/* position of the ring behind the record */
};

static struct held_cb *held_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct held_cb) > sizeof(skb->cb));
	return (struct held_cb *)skb->cb;
}

/* NULL: the node has little memory, or none. It sends with copies then. */
struct link_arena *link_arena_new(const struct ring3_port_config *cfg)
{
	struct ring3_arena *said = &ring3_region.arena[cfg->index];
	unsigned int order = get_order(RING3_ARENA_BYTES);
	struct link_arena *arena;

	BUILD_BUG_ON(CHUNKS > U16_MAX);
	if (totalram_pages() / ARENA_SHARE < ARENA_PAGES)
		return NULL;
	arena = kzalloc(sizeof(*arena), GFP_KERNEL);
	if (!arena)
		return NULL;
	arena->pages = alloc_pages(GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY, order);
	if (!arena->pages) {
		kfree(arena);
		return NULL;
	}
	arena->start = page_address(arena->pages);
	spin_lock_init(&arena->lock);
	said->file_page = (RING3_LINK_RINGS + cfg->side * RING3_ARENA_BYTES) >> PAGE_SHIFT;
	WRITE_ONCE(said->page, (arena->start - (u8 *)&ring3_region) >> PAGE_SHIFT);
	return arena;
}

static bool chunk_free(struct page *page)
{
	unsigned int i;

	for (i = 0; i < CHUNK_PAGES; i++)
		if (page_ref_count(page + i) != 1)
			return false;
	return true;
}

/*
 * Chunks without a reference but ours, all in turn: to write to what the far side's CPU has read just now costs twice
 * as much as to write to what has left its cache.
 */
static void arena_look(struct link_arena *arena)
{
	unsigned int i;

	for (i = 0; i < CHUNKS && arena->n < LOOK_TAKE; i++) {
		if (chunk_free(arena->pages + arena->next * CHUNK_PAGES))
			arena->free[arena->n++] = arena->next;
		arena->next = (arena->next + 1) % CHUNKS;
	}
	arena->rest = arena->n ? 0 : LOOK_REST;
}

struct page *link_arena_chunk(struct link_arena *arena)
{
	struct page *page = NULL;

	spin_lock_bh(&arena->lock);
	/* Not before somebody sends a file: that touches all of their struct pages, 56 KiB. */
	if (unlikely(!arena->split)) {
		split_page(arena->pages, get_order(RING3_ARENA_BYTES));
		arena->split = true;
	}
	if (!arena->n && !arena->rest--)
		arena_look(arena);
	if (arena->n) {
		page = arena->pages + arena->free[--arena->n] * CHUNK_PAGES;
		get_page(page);
	}
	spin_unlock_bh(&arena->lock);
	return page;
}

/*
 * Where in the arena the end of a packet lies; *head: bytes before that. 0: not there, or in too many
 * pieces, and *head is left alone.
 */
unsigned int link_arena_pieces(const struct link_arena *arena, const struct sk_buff *skb,
			       struct ring3_piece *pieces, u32 *head)
{
	const struct skb_shared_info *sh = skb_shinfo(skb);
	u32 before = skb_headlen(skb);
	unsigned int n = 0;
	int i;

	if (skb_has_frag_list(skb) || skb_zcopy(skb))
		return 0;
	for (i = 0; i < sh->nr_frags; i++) {
		const skb_frag_t *frag = &sh->frags[i];
		u64 offset = (u8 *)skb_frag_address(frag) - arena->start;
		u32 len = skb_frag_size(frag);

		if (offset >= RING3_ARENA_BYTES) {
			if (n)
				return 0;
			before += len;
		} else if (n && pieces[n - 1].offset + pieces[n - 1].len == offset) {
			pieces[n - 1].len += len;
		} else if (n == RING3_PIECES_MAX) {
			return 0;
		} else {
			pieces[n].offset = offset;
			pieces[n++].len = len;
		}
	}
	if (n)
		*head = before;
	return n;
}

/* The far side has not read it yet: keeps skb, but as far as its socket is concerned it is sent. */
void link_hold(struct ring3_port *port, struct link_port *link, struct sk_buff *skb)
{
	dev_sw_netstats_tx_add(port->dev, 1, skb->len);
	ring3_count(port, RING3_TX_PIECES);
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	held_cb(skb)->end = link->tx.head;
	__skb_queue_tail(&link->held, skb);
	if (skb_queue_len(&link->held) >= HELD_LOOK)
		link_reap(link);
}

void link_reap(struct link_port *link)
{
	u32 tail = link_tx_consumed(&link->tx);
	struct sk_buff *skb;

	while ((skb = skb_peek(&link->held)) && (s32)(tail - held_cb(skb)->end) >= 0) {
		__skb_unlink(skb, &link->held);
		dev_consume_skb_any(skb);
	}
}
