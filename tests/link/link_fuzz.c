// SPDX-License-Identifier: GPL-2.0
/*
 * link_fuzz.c - the link's ring against whatever a far side may write, coverage-guided
 *
 * An input is a list of steps: stores of the far side into the words and the data that it
 * can reach, and what our driver does between them. The far side also writes *between two
 * loads* of our side: each load of a shared word may be followed by a store that the
 * input asks for. The ring's data is a heap block of exactly its size, under
 * AddressSanitizer; what a record is said to hold is read to its last byte.
 */
#include "../fuzz/cover.h"

static void far_side_writes(void *word);
#define link_load(p) ({					\
	__typeof__(*(p)) v_ = __atomic_load_n(p, __ATOMIC_RELAXED); \
	far_side_writes((void *)(p));			\
	v_;						\
})
#define link_load_acquire(p) link_load(p)
#include "link_ring.h"

#define SIZE	LINK_RING_MIN

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "link_fuzz: %s\n", #cond);		\
		abort();						\
	}								\
} while (0)

static const uint8_t *step;
static size_t left;
static r3_u8 *data;
static struct ring3_ring *ring;
static struct link_tx tx;
static struct link_rx rx;
static uint8_t frame[LINK_FRAME_MAX];

static uint32_t byte(void)
{
	if (!left)
		return 0;
	left--;
	return *step++;
}

/* A position or a length: near one that makes sense, or anything. */
static uint32_t word(void)
{
	uint32_t how = byte(), n = byte() | byte() << 8;

	switch (how % 6) {
	case 0: return rx.tail + n * LINK_ALIGN;
	case 1: return tx.head - n * LINK_ALIGN;
	case 2: return n;
	case 3: return SIZE - n;
	case 4: return RING3_RECORD_SKIP - n % 2;
	default: return n | byte() << 16 | byte() << 24;
	}
}

static void far_side_writes(void *p)
{
	uint32_t value;

	if (!left || *step % 8)
		return;
	byte();
	value = word();
	memcpy(p, &value, sizeof(value));
}

/* What peek hands out lies in the ring, all of it. */
static void receive(void)
{
	struct ring3_record *rec;
	uint32_t turns = byte() % 8, i;
	r3_u32 len;

	while (turns--) {
		enum link_status s = link_rx_peek(&rx, &rec, &len);
		uintptr_t at;
		volatile uint32_t sum = 0;

		if (s != LINK_OK) {
			CHECK(s == LINK_EMPTY || rx.broken);
			break;
		}
		at = (uintptr_t)rec - (uintptr_t)data;
		CHECK(at <= SIZE - sizeof(*rec) && len <= SIZE - sizeof(*rec) - at);
		for (i = 0; i < len; i += 64)
			sum += ((uint8_t *)(rec + 1))[i];
		if (len)
			sum += ((uint8_t *)(rec + 1))[len - 1];
		link_rx_consume(&rx);
		CHECK(rx.head - rx.tail <= SIZE);
	}
	link_rx_publish(&rx);
}

static void transmit(void)
{
	uint32_t turns = byte() % 8;

	while (turns--) {
		uint32_t len = (byte() | byte() << 8) * (1 + byte() % 2);
		struct ring3_record *rec;

		if (len > LINK_FRAME_MAX)
			len = LINK_FRAME_MAX;
		link_tx_deep(&tx, len % LINK_DEPTH_MAX);
		if (link_tx_room(&tx, len) != LINK_OK)
			break;
		CHECK(tx.head - tx.tail <= SIZE);
		rec = link_tx_reserve(&tx, len);
		memcpy(rec + 1, frame, len);
		link_tx_commit(&tx, len);
	}
	link_tx_publish(&tx);
}

static void fuzz_one(const uint8_t *input, size_t len)
{
	step = input;
	left = len;
	if (!data) {
		data = aligned_alloc(64, SIZE);
		ring = aligned_alloc(64, sizeof(*ring));
	}
	memset(ring, 0, sizeof(*ring));
	memset(data, 0, SIZE);
	ring->head = ring->tail = 0u - (byte() % 4) * LINK_ALIGN;
	link_tx_open(&tx, ring, data, SIZE);
	link_rx_open(&rx, ring, data, SIZE);
	while (left) {
		uint32_t value;

		switch (byte() % 9) {
		case 1:
			__atomic_store_n(&ring->head, word(), __ATOMIC_RELAXED);
			break;
		case 2:
			__atomic_store_n(&ring->tail, word(), __ATOMIC_RELAXED);
			break;
		case 3: case 4:		/* a length somewhere, mostly where we look next */
			value = byte() % 2 ? word() : rx.tail;
			value &= SIZE - LINK_ALIGN;
			*(uint32_t *)(data + value) = word();
			break;
		case 5: case 6:
			receive();
			break;
		case 7:
			transmit();
			break;
		case 8:
			if (byte() % 2)
				link_tx_open(&tx, ring, data, SIZE);
			else
				link_rx_open(&rx, ring, data, SIZE);
			break;
		}
	}
}

int main(int argc, char **argv)
{
	return cover_main(argc, argv);
}
