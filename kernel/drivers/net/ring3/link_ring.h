/* SPDX-License-Identifier: GPL-2.0 */
/*
 * link_ring.h - one direction of a link: the ring's arithmetic and checks
 *
 * Theory of operation
 * -------------------
 * Pure logic over memory that an untrusted peer writes too. It uses no kernel service, so tests/link runs the same
 * lines in user space, under sanitizers.
 *
 * Each end keeps its own position (struct link_tx, struct link_rx) in private memory and only ever *stores* it to
 * the shared words: if the far side overwrites them, it harms only itself. The other end's position is loaded once
 * for each look and checked against the ring's size; after that only the private copy is used. A record's length is
 * loaded once and checked against what was published, before any byte of the record is touched. So, whatever the
 * far side does:
 *
 *   - a producer writes inside the data area only;
 *   - a consumer hands out ranges that lie inside the data area only
 *     (their contents may change while they are being copied: copy, then parse);
 *   - no call loops more than twice.
 *
 * An impossible position makes the link LINK_BROKEN until it is reopened.
 *
 * The caller decides when to publish, so that a batch costs one store that the other core has to fetch: commit and
 * consume only move the private position.
 *
 * Ordering. link_tx_publish() releases the record's bytes, link_rx_peek()
 * acquires them; link_rx_publish() releases the room, link_tx_room() acquires
 * it. The sleep flags (armed, waiting) are Dekker's problem: each side stores its
 * word, then loads the other's, with a full barrier between: link_take_flag()
 * has it on the waker's side, link_set_flag() on the sleeper's. These words are
 * shared with threads on other CPUs even where the kernel is built for one CPU,
 * hence virt_*() and locked instructions throughout.
 */
#ifndef RING3_LINK_RING_H
#define RING3_LINK_RING_H

#ifdef __KERNEL__
#include <linux/compiler.h>
#include <linux/string.h>
#include <asm/barrier.h>
#include <asm/ring3.h>
#define link_load(p)		READ_ONCE(*(p))
#define link_store(p, v)	WRITE_ONCE(*(p), v)
/* Barriers: see above; each use says what it pairs with. */
#define link_load_acquire(p)	virt_load_acquire(p)
#define link_store_release(p, v) virt_store_release(p, v)
#define link_mb()		virt_mb()
#else
#include <stdbool.h>
#include <stddef.h>
#include "ring3.h"
#ifndef link_load		/* a fuzzer changes the words between two loads */
#define link_load(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define link_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#endif
#ifndef link_store		/* a model of CPUs delays stores */
#define link_store(p, v)	__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define link_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#endif
#ifndef link_mb			/* a sanitizer without support for fences provides its own */
#define link_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#endif

/*
 * Locked instructions on every flavour: an UP kernel's own xchg() and atomic_t are not meant for words that other
 * processors write.
 */
#ifndef link_xchg
#define link_xchg(p, v)		__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#endif
#define link_cas(p, old, v)	__sync_bool_compare_and_swap(p, old, v)
#define link_inc(p)		((void)__atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST))

#define LINK_ALIGN		64u	/* bytes; records start on cache lines */
#define LINK_RING_MIN		(256u << 10)	/* bytes; holds three of the largest records */
/* Bytes: a 64 KiB segment, its Ethernet header and two VLAN tags, rounded up. */
#define LINK_FRAME_MAX		(65536u + LINK_ALIGN)
#define LINK_RECORD_MAX		(LINK_FRAME_MAX + LINK_ALIGN)
/* The producer remembers where each LINK_MARKth record began, for the last LINK_MARKS of these. */
#define LINK_MARK		8u
#define LINK_MARKS		32u
#define LINK_DEPTH_MAX		(LINK_MARK * (LINK_MARKS - 1))

enum link_status {
	LINK_OK,
	LINK_EMPTY,		/* nothing published, or no room */
	LINK_BROKEN,		/* the far side's position is impossible */
};

/* The producer's end. */
struct link_tx {
	struct ring3_ring *ring;
	r3_u8 *data;
	r3_u32 size;		/* bytes, a power of two */
	r3_u32 head;		/* the producer's own; ring->head follows at publish */
	r3_u32 tail;		/* the far side's, as last seen */
	r3_u32 records;		/* committed so far */
	r3_u32 mark[LINK_MARKS];	/* positions, by records / LINK_MARK */
	bool broken;
};

/* The consumer's end. */
struct link_rx {
	struct ring3_ring *ring;
	r3_u8 *data;
	r3_u32 size;
	r3_u32 head;		/* the far side's, as last seen */
	r3_u32 tail;		/* the consumer's own; ring->tail follows at publish */
	r3_u32 published;	/* tail as the far side sees it */
	r3_u32 record;		/* bytes of the record handed out by peek */
	bool broken;
};

static inline r3_u32 link_record_bytes(r3_u32 len)
{
	return (r3_u32)(len + sizeof(struct ring3_record) + LINK_ALIGN - 1) & ~(LINK_ALIGN - 1);
}

static inline bool link_size_ok(r3_u32 size)
{
	return size >= LINK_RING_MIN && size <= RING3_RING_BYTES && !(size & (size - 1));
}

/*
 * Opening. An end starts at the position in its own word, since the far side may already be active. The consumer
 * drops frames that were sent before: they were for the previous owner of this side. Both repair their own word if
 * it was left misaligned.
 */
static inline void link_tx_open(struct link_tx *tx, struct ring3_ring *ring,
				void *data, r3_u32 size)
{
	r3_u32 i;

	tx->ring = ring;
	tx->data = data;
	tx->size = size;
	tx->head = (link_load(&ring->head) + LINK_ALIGN - 1) & ~(LINK_ALIGN - 1);
	tx->tail = tx->head - size;	/* full, until the far side's word is read */
	tx->records = 0;
	for (i = 0; i < LINK_MARKS; i++)
		tx->mark[i] = tx->head;
	tx->broken = false;
	link_store_release(&ring->head, tx->head);
}

static inline void link_rx_open(struct link_rx *rx, struct ring3_ring *ring,
				void *data, r3_u32 size)
{
	rx->ring = ring;
	rx->data = data;
	rx->size = size;
	rx->head = link_load_acquire(&ring->head) & ~(LINK_ALIGN - 1);
	rx->tail = rx->head;
	rx->published = rx->head;
	rx->record = 0;
	rx->broken = false;
	link_store_release(&ring->tail, rx->tail);
}

/* Bytes that a record of `need` bytes takes at the present position, including a skip. */
static inline r3_u32 link_tx_cost(const struct link_tx *tx, r3_u32 need)
{
	r3_u32 contiguous = tx->size - (tx->head & (tx->size - 1));

	return need <= contiguous ? need : contiguous + need;
}

/* Reads and checks the far side's position. */
static inline enum link_status link_tx_follow(struct link_tx *tx)
{
	r3_u32 tail = link_load_acquire(&tx->ring->tail);

	if (tx->head - tail > tx->size) {
		tx->broken = true;
		return LINK_BROKEN;
	}
	tx->tail = tail;
	return LINK_OK;
}

/* Is there room for a frame of len bytes (at most LINK_FRAME_MAX)? */
static inline enum link_status link_tx_room(struct link_tx *tx, r3_u32 len)
{
	r3_u32 cost = link_tx_cost(tx, link_record_bytes(len));

	if (tx->broken)
		return LINK_BROKEN;
	if (tx->size - (tx->head - tx->tail) >= cost)
		return LINK_OK;
	if (link_tx_follow(tx) != LINK_OK)
		return LINK_BROKEN;
	return tx->size - (tx->head - tx->tail) >= cost ? LINK_OK : LINK_EMPTY;
}

/*
 * The place of the record for a frame of len bytes; only after link_tx_room() has returned LINK_OK for at least
 * that length. The caller fills in vnet_hdr and the frame.
 */
static inline struct ring3_record *link_tx_reserve(struct link_tx *tx, r3_u32 len)
{
	r3_u32 need = link_record_bytes(len);
	r3_u32 at = tx->head & (tx->size - 1);
	struct ring3_record *rec = (struct ring3_record *)(tx->data + at);

	if (need > tx->size - at) {
		link_store(&rec->len, RING3_RECORD_SKIP);
		tx->head += tx->size - at;
		rec = (struct ring3_record *)tx->data;
	}
	link_store(&rec->len, len);
	return rec;
}

static inline void link_tx_commit(struct link_tx *tx, r3_u32 len)
{
	tx->head += link_record_bytes(len);
	if (!(++tx->records % LINK_MARK))
		tx->mark[tx->records / LINK_MARK % LINK_MARKS] = tx->head;
}

/* The position where the last `records' records begin (at most LINK_DEPTH_MAX), or up to LINK_MARK more. */
static inline r3_u32 link_tx_mark(const struct link_tx *tx, r3_u32 records)
{
	return tx->mark[(tx->records - records) / LINK_MARK % LINK_MARKS];
}

/* Has the far side more than `records' records to take? Exact up to LINK_MARK. */
static inline bool link_tx_deep(struct link_tx *tx, r3_u32 records)
{
	r3_u32 mark = link_tx_mark(tx, records);

	if ((r3_s32)(mark - tx->tail) <= 0)
		return false;
	return link_tx_follow(tx) != LINK_OK || (r3_s32)(mark - tx->tail) > 0;
}

/*
 * The word `waiting` of a producer without room, or whose far side has too many records to take: a position at
 * which half of the bytes, and half of the records, have been taken. If that position has been seen already, the
 * next one: half of the smallest ring is not enough for the largest record if that does not fit before the ring's
 * end. Never 0; bit 0 says only that the producer waits.
 */
static inline r3_u32 link_tx_half(const struct link_tx *tx, r3_u32 records)
{
	r3_u32 half = tx->head - tx->size / 2, mark = link_tx_mark(tx, records / 2);

	if ((r3_s32)(mark - half) > 0)
		half = mark;
	if ((r3_s32)(tx->tail - half) >= 0)
		half = tx->tail + LINK_ALIGN;
	return half | 1;
}

static inline void link_tx_publish(struct link_tx *tx)
{
	link_store_release(&tx->ring->head, tx->head);
}

/*
 * The next record, if one is published: *rec and *len. The len bytes after *rec are in the ring; the caller decides
 * whether they are a valid frame.
 */
static inline enum link_status link_rx_peek(struct link_rx *rx, struct ring3_record **rec,
					    r3_u32 *len)
{
	int turn;

	if (rx->broken)
		return LINK_BROKEN;

	for (turn = 0; turn < 2; turn++) {
		r3_u32 at = rx->tail & (rx->size - 1);
		r3_u32 contiguous = rx->size - at;
		r3_u32 avail = rx->head - rx->tail;
		struct ring3_record *r = (struct ring3_record *)(rx->data + at);
		r3_u32 n;

		if (!avail) {
			rx->head = link_load_acquire(&rx->ring->head);
			avail = rx->head - rx->tail;
			if (!avail)
				return LINK_EMPTY;
			if (avail > rx->size || (avail & (LINK_ALIGN - 1)))
				break;
		}

		n = link_load(&r->len);
		if (n == RING3_RECORD_SKIP) {
			/* Never at the ring's start: a skip would be useless there. */
			if (!at || contiguous > avail)
				break;
			rx->tail += contiguous;
			continue;
		}
		if (n > rx->size - sizeof(*r))
			break;
		rx->record = link_record_bytes(n);
		if (rx->record > avail || rx->record > contiguous)
			break;
		*rec = r;
		*len = n;
		return LINK_OK;
	}
	rx->broken = true;
	return LINK_BROKEN;
}

static inline void link_rx_consume(struct link_rx *rx)
{
	rx->tail += rx->record;
}

/* Bytes consumed that have not been published to the producer. */
static inline r3_u32 link_rx_unpublished(const struct link_rx *rx)
{
	return rx->tail - rx->published;
}

static inline void link_rx_publish(struct link_rx *rx)
{
	rx->published = rx->tail;
	link_store_release(&rx->ring->tail, rx->tail);
}

/* Sleeper: sets the flag; the caller then looks once more at what it waits for. */
static inline void link_set_flag(r3_u32 *flag, r3_u32 value)
{
	link_store(flag, value);
	link_mb();
}

/* Waker, after publishing: true if the sleeper had set the flag, and this thread is the one to wake it. */
static inline bool link_take_flag(r3_u32 *flag)
{
	link_mb();
	return link_load(flag) && link_xchg(flag, 0);
}

/* The same for `waiting`, which has a position: true if the consumer has reached it. */
static inline bool link_take_waiting(const struct link_rx *rx, r3_u32 *waiting)
{
	r3_u32 at;

	link_mb();
	at = link_load(waiting);
	return at && (r3_s32)(rx->published - (at & ~1u)) >= 0 && link_xchg(waiting, 0);
}

#endif /* RING3_LINK_RING_H */
