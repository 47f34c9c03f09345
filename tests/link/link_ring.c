// SPDX-License-Identifier: GPL-2.0
/*
 * link_ring.c - a link's ring against an honest and against a hostile far side
 *
 * Compiles the driver's own link_ring.h. The ring's data lies in a heap block of
 * exactly its size, so that AddressSanitizer sees any step outside. All
 * randomness is seeded: a failure repeats. Prints one line for each test and the sum.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef LINK_TEST_TSAN
/* An exchange on one word of our own orders as the fence does, and TSan knows it. */
static uint32_t fence_word;
#define link_mb() ((void)__atomic_exchange_n(&fence_word, 0, __ATOMIC_SEQ_CST))
#define ROUNDS(n) ((n) / 20)	/* it is there for the threads; the rest is slow */
#else
#define ROUNDS(n) (n)
#endif
#include "link_ring.h"

#define SIZE	LINK_RING_MIN
#define MASK	(SIZE - 1)

static const char *failed_at;
#define CHECK(cond) do {						\
	if (!(cond)) {							\
		failed_at = #cond;					\
		fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, #cond); \
		return;							\
	}								\
} while (0)

struct pair {
	struct ring3_ring ring;
	r3_u8 *data;
	struct link_tx tx;
	struct link_rx rx;
};

static r3_u64 rng_state;

static r3_u32 rnd(void)
{
	rng_state = rng_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (r3_u32)(rng_state >> 33);
}

/* A ring whose positions start at `at`. */
static struct pair *pair_new(r3_u32 at)
{
	struct pair *p = aligned_alloc(64, (sizeof(*p) + 63) & ~63UL);

	memset(p, 0, sizeof(*p));
	p->data = aligned_alloc(64, SIZE);
	memset(p->data, 0xee, SIZE);
	p->ring.head = at;
	p->ring.tail = at;
	link_tx_open(&p->tx, &p->ring, p->data, SIZE);
	link_rx_open(&p->rx, &p->ring, p->data, SIZE);
	return p;
}

static void pair_free(struct pair *p)
{
	free(p->data);
	free(p);
}

/* A frame whose every byte follows from its number. */
static void frame_put(struct ring3_record *rec, r3_u32 number, r3_u32 len)
{
	r3_u8 *d = (r3_u8 *)(rec + 1);
	r3_u32 i;

	memcpy(rec->vnet_hdr, &number, sizeof(number));
	for (i = 0; i < len; i++)
		d[i] = (r3_u8)(number * 31 + i);
}

static bool frame_ok(const struct ring3_record *rec, r3_u32 number, r3_u32 len)
{
	const r3_u8 *d = (const r3_u8 *)(rec + 1);
	r3_u32 i, n;

	memcpy(&n, rec->vnet_hdr, sizeof(n));
	if (n != number)
		return false;
	for (i = 0; i < len; i++)
		if (d[i] != (r3_u8)(number * 31 + i))
			return false;
	return true;
}

static bool send_one(struct pair *p, r3_u32 number, r3_u32 len)
{
	if (link_tx_room(&p->tx, len) != LINK_OK)
		return false;
	frame_put(link_tx_reserve(&p->tx, len), number, len);
	link_tx_commit(&p->tx, len);
	return true;
}

static r3_u32 random_len(void)
{
	switch (rnd() % 4) {
	case 0: return rnd() % 128;
	case 1: return 1500 + rnd() % 32;
	case 2: return LINK_FRAME_MAX - rnd() % 3;
	default: return rnd() % LINK_FRAME_MAX;
	}
}

/* Frames of all sizes, in order and whole, over many turns and the wrap of the positions. */
static void test_order(void)
{
	struct pair *p = pair_new(0u - 3 * SIZE);
	static r3_u32 lens[1 << 16];
	r3_u32 sent = 0, got = 0;

	rng_state = 1;
	while (got < ROUNDS(20000)) {
		r3_u32 burst = rnd() % 40;

		while (burst-- && sent - got < (1 << 16)) {
			r3_u32 len = random_len();

			if (!send_one(p, sent, len))
				break;
			lens[sent++ & 0xffff] = len;
		}
		link_tx_publish(&p->tx);
		burst = rnd() % 40;
		while (burst--) {
			struct ring3_record *rec;
			r3_u32 len;
			enum link_status s = link_rx_peek(&p->rx, &rec, &len);

			CHECK(s != LINK_BROKEN);
			if (s == LINK_EMPTY) {
				CHECK(got == sent);
				break;
			}
			CHECK(len == lens[got & 0xffff]);
			CHECK(frame_ok(rec, got, len));
			got++;
			link_rx_consume(&p->rx);
		}
		link_rx_publish(&p->rx);
		CHECK(!p->tx.broken);
		CHECK(sent != got || link_tx_room(&p->tx, LINK_FRAME_MAX) == LINK_OK);
	}
	pair_free(p);
}

/* What is not published is not seen; what is not given back is not overwritten. */
static void test_publish(void)
{
	struct pair *p = pair_new(64);
	struct ring3_record *rec;
	r3_u32 len, n = 0;

	CHECK(send_one(p, 7, 100));
	CHECK(link_rx_peek(&p->rx, &rec, &len) == LINK_EMPTY);
	link_tx_publish(&p->tx);
	CHECK(link_rx_peek(&p->rx, &rec, &len) == LINK_OK && len == 100);
	while (send_one(p, 8, 1000))
		n++;
	link_tx_publish(&p->tx);
	CHECK(n > 200);
	link_rx_consume(&p->rx);
	CHECK(link_tx_room(&p->tx, 1000) == LINK_EMPTY);
	CHECK(link_rx_peek(&p->rx, &rec, &len) == LINK_OK && len == 1000);
	for (; n > SIZE / 4096; n--)
		link_rx_consume(&p->rx);
	link_rx_publish(&p->rx);
	CHECK(link_tx_room(&p->tx, 1000) == LINK_OK);
	pair_free(p);
}

/* To the last byte: a ring of equal records has room for exactly as many as fit. */
static void test_full(void)
{
	const r3_u32 len = 4096 - sizeof(struct ring3_record);
	struct pair *p = pair_new(0);
	struct ring3_record *rec;
	r3_u32 n = 0, l;

	while (send_one(p, n, len))
		n++;
	CHECK(n == SIZE / 4096);
	CHECK(p->tx.head - p->ring.tail == SIZE);
	link_tx_publish(&p->tx);
	for (n = 0; link_rx_peek(&p->rx, &rec, &l) == LINK_OK; n++) {
		CHECK(frame_ok(rec, n, len));
		link_rx_consume(&p->rx);
	}
	CHECK(n == SIZE / 4096);
	CHECK(!p->rx.broken);
	pair_free(p);
}

/* Each side reopened, in any state, takes up where the other can follow. */
static void test_reopen(void)
{
	struct pair *p = pair_new(0u - 128);
	struct ring3_record *rec;
	r3_u32 len, i;

	rng_state = 5;
	for (i = 0; i < 1000; i++) {
		r3_u32 k = rnd() % 50;

		while (k-- && send_one(p, i, random_len()))
			;
		if (rnd() % 2)
			link_tx_publish(&p->tx);
		if (rnd() % 2)
			link_tx_open(&p->tx, &p->ring, p->data, SIZE);
		if (rnd() % 3 == 0)
			link_rx_open(&p->rx, &p->ring, p->data, SIZE);
		k = rnd() % 50;
		while (k-- && link_rx_peek(&p->rx, &rec, &len) == LINK_OK)
			link_rx_consume(&p->rx);
		link_rx_publish(&p->rx);
		CHECK(link_tx_room(&p->tx, 64) != LINK_BROKEN);
		CHECK(!p->rx.broken);
	}
	pair_free(p);
}

/* Records and positions that are wrong in one point each. */
static void test_nonsense(void)
{
	static const struct {
		const char *what;
		r3_u32 at;		/* tail */
		r3_u32 head;		/* relative to it */
		r3_u32 len;
	} cases[] = {
		{ "head behind tail", 4096, 0u - 64, 60 },
		{ "head a ring and a line ahead", 4096, SIZE + 64, 60 },
		{ "head misaligned", 4096, 65, 1 },
		{ "record longer than published", 4096, 128, 128 },
		{ "record longer than the ring", 4096, SIZE, SIZE },
		{ "record whose length wraps", 4096, SIZE, 0xffffffe0 },
		{ "record just under the skip mark", 4096, SIZE, 0xfffffffe },
		{ "record across the end", SIZE - 128, 256, 128 },
		{ "skip that is not published", SIZE - 256, 128, RING3_RECORD_SKIP },
		{ "skip at the start", 0, SIZE, RING3_RECORD_SKIP },
	};
	struct ring3_record *rec;
	r3_u32 len, i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair *p = pair_new(cases[i].at);

		memcpy(p->data + (cases[i].at & MASK), &cases[i].len, 4);
		p->ring.head = cases[i].at + cases[i].head;
		if (link_rx_peek(&p->rx, &rec, &len) != LINK_BROKEN)
			fprintf(stderr, "not refused: %s\n", cases[i].what);
		CHECK(p->rx.broken);
		/* For good, even when the far side takes it back ... */
		p->ring.head = cases[i].at;
		CHECK(link_rx_peek(&p->rx, &rec, &len) == LINK_BROKEN);
		/* ... until reopened. */
		link_rx_open(&p->rx, &p->ring, p->data, SIZE);
		CHECK(link_rx_peek(&p->rx, &rec, &len) == LINK_EMPTY);
		pair_free(p);
	}

	/* Skips may not be chained: one, then another at the ring's start. */
	struct pair *p = pair_new(SIZE - 64);
	r3_u32 skip = RING3_RECORD_SKIP;

	memcpy(p->data + SIZE - 64, &skip, 4);
	memcpy(p->data, &skip, 4);
	p->ring.head = SIZE - 64 + SIZE;
	CHECK(link_rx_peek(&p->rx, &rec, &len) == LINK_BROKEN);
	pair_free(p);

	/* A consumer that claims to have read what was never written. */
	p = pair_new(0);
	while (send_one(p, 0, 60000))
		;
	link_tx_publish(&p->tx);
	p->ring.tail = p->tx.head + 64;
	CHECK(link_tx_room(&p->tx, 60000) == LINK_BROKEN);
	CHECK(link_tx_room(&p->tx, 0) == LINK_BROKEN);
	p->ring.tail = p->tx.head;
	link_tx_open(&p->tx, &p->ring, p->data, SIZE);
	CHECK(link_tx_room(&p->tx, 60000) == LINK_OK);
	pair_free(p);
}

/* Reads all of what was handed out; ASan says if it is not ours. */
static unsigned int touch(const struct ring3_record *rec, r3_u32 len)
{
	const volatile r3_u8 *d = (const volatile r3_u8 *)(rec + 1);
	unsigned int sum = 0;
	r3_u32 i;

	for (i = 0; i < len; i++)
		sum += d[i];
	return sum;
}

/* A far side that writes anything anywhere, between any two of our steps. */
static void test_scribble(void)
{
	struct pair *p = pair_new(0);
	r3_u64 i, ok = 0;

	rng_state = 99;
	for (i = 0; i < ROUNDS(200000); i++) {
		struct ring3_record *rec;
		r3_u32 len, w;

		switch (rnd() % 8) {
		case 0: p->ring.head = rnd(); break;
		case 1: p->ring.tail = rnd(); break;
		case 2: p->ring.head = p->rx.tail + (rnd() % (2 * SIZE) & ~63u); break;
		case 3: p->ring.tail = p->tx.head - (rnd() % (2 * SIZE)); break;
		case 4:
			w = rnd() % 3 ? rnd() % (2 * SIZE) : RING3_RECORD_SKIP - rnd() % 2;
			memcpy(p->data + (rnd() & MASK & ~63u), &w, 4);
			break;
		case 5:
			w = rnd() % LINK_FRAME_MAX;
			memcpy(p->data + (p->rx.tail & MASK), &w, 4);
			p->ring.head = p->rx.tail + (rnd() % SIZE & ~63u);
			break;
		default: break;
		}
		len = random_len();
		if (rnd() % 2)
			link_tx_deep(&p->tx, rnd() % LINK_DEPTH_MAX);
		if (link_tx_room(&p->tx, len) == LINK_OK) {
			rec = link_tx_reserve(&p->tx, len);
			CHECK((r3_u8 *)rec >= p->data);
			CHECK((r3_u8 *)(rec + 1) + len <= p->data + SIZE);
			memset(rec + 1, 0x55, len);
			link_tx_commit(&p->tx, len);
			if (rnd() % 2)
				link_tx_publish(&p->tx);
		}
		if (link_rx_peek(&p->rx, &rec, &len) == LINK_OK) {
			CHECK((r3_u8 *)rec >= p->data);
			CHECK((r3_u8 *)(rec + 1) + len <= p->data + SIZE);
			touch(rec, len);
			link_rx_consume(&p->rx);
			link_rx_publish(&p->rx);
			ok++;
		}
		if (p->rx.broken)
			link_rx_open(&p->rx, &p->ring, p->data, SIZE);
		if (p->tx.broken)
			link_tx_open(&p->tx, &p->ring, p->data, SIZE);
	}
	CHECK(ok > ROUNDS(20000));
	pair_free(p);
}

/* Takes one frame; the positions are known to the producer. */
static bool take_one(struct pair *p)
{
	struct ring3_record *rec;
	r3_u32 len;

	if (link_rx_peek(&p->rx, &rec, &len) != LINK_OK)
		return false;
	link_rx_consume(&p->rx);
	link_rx_publish(&p->rx);
	return true;
}

/* Small frames stop their producer long before the ring is full, and it goes on when half have been taken. */
static void test_depth(void)
{
	static const r3_u32 begins[] = { 0, SIZE - 640, 0u - 640 };
	r3_u32 i, turn, n, left, waiting;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct pair *p = pair_new(begins[i]);

		CHECK(link_tx_room(&p->tx, 60) == LINK_OK);
		for (left = 0, turn = 0; turn < 100; turn++) {
			for (n = left; !link_tx_deep(&p->tx, 64); n++)
				CHECK(send_one(p, n, 60));
			CHECK(n >= 64 && n <= 64 + LINK_MARK);
			link_tx_publish(&p->tx);
			waiting = link_tx_half(&p->tx, 64);
			for (left = n; !link_take_waiting(&p->rx, &waiting); left--)
				CHECK(take_one(p));
			CHECK(left >= 32 && left <= 32 + LINK_MARK);
			CHECK(!link_tx_deep(&p->tx, 64));
		}
		/* Large ones fill the ring before they are many. */
		while (take_one(p))
			;
		for (n = 0; send_one(p, n, 60000); n++)
			CHECK(!link_tx_deep(&p->tx, 64));
		CHECK(n == SIZE / 61440);
		waiting = link_tx_half(&p->tx, 64);
		link_tx_publish(&p->tx);
		for (left = n; !link_take_waiting(&p->rx, &waiting); left--)
			CHECK(take_one(p));
		CHECK(left == n / 2);
		pair_free(p);
	}
}

/* Where half of the ring is free, and the largest frame does not fit yet, its producer waits for more, not for what it has seen. */
static void test_half(void)
{
	r3_u32 at, waiting, again = 0;

	for (at = 0; at < SIZE; at += LINK_ALIGN) {
		struct pair *p = pair_new(at);

		while (send_one(p, 0, 4096 - sizeof(struct ring3_record)))
			;
		link_tx_publish(&p->tx);
		while (link_tx_room(&p->tx, LINK_FRAME_MAX) != LINK_OK) {
			again += p->tx.head - p->tx.tail <= SIZE / 2;
			waiting = link_tx_half(&p->tx, LINK_DEPTH_MAX);
			CHECK(!link_take_waiting(&p->rx, &waiting));
			while (!link_take_waiting(&p->rx, &waiting))
				CHECK(take_one(p));
		}
		pair_free(p);
	}
	CHECK(again);
}

/*
 * Two threads with the sleep protocol of the driver. A lost wake-up shows as a futex
 * wait that times out.
 */
#define FRAMES	20000u

struct node {
	struct pair *p;
	struct ring3_side side[2];	/* 0 sends, 1 receives */
	unsigned int lost, slept[2], bad;
};

static void futex_wait(r3_u32 *word, r3_u32 seen, unsigned int *lost)
{
	struct timespec ts = { .tv_sec = 5 };

	if (syscall(SYS_futex, word, FUTEX_WAIT, seen, &ts, NULL, 0) && errno == ETIMEDOUT)
		(*lost)++;
}

static void doorbell(struct ring3_side *side)
{
	link_inc(&side->doorbell);
	syscall(SYS_futex, &side->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *sender(void *arg)
{
	struct node *n = arg;
	struct pair *p = n->p;
	r3_u32 i;

	for (i = 0; i < FRAMES; i++) {
		r3_u32 len = i * 2654435761u % LINK_FRAME_MAX;

		if (len > 4000 && i % 16)
			len %= 4000;
		while (link_tx_room(&p->tx, LINK_FRAME_MAX) != LINK_OK || link_tx_deep(&p->tx, LINK_DEPTH_MAX)) {
			r3_u32 seen = link_load(&n->side[0].doorbell);

			link_tx_publish(&p->tx);
			if (link_take_flag(&n->side[1].armed))
				doorbell(&n->side[1]);
			link_set_flag(&n->side[0].waiting, link_tx_half(&p->tx, LINK_DEPTH_MAX));
			if (link_tx_room(&p->tx, LINK_FRAME_MAX) == LINK_OK && !link_tx_deep(&p->tx, LINK_DEPTH_MAX))
				break;
			n->slept[0]++;
			futex_wait(&n->side[0].doorbell, seen, &n->lost);
		}
		frame_put(link_tx_reserve(&p->tx, len), i, len);
		link_tx_commit(&p->tx, len);
		if (i % 8 && i != FRAMES - 1)
			continue;
		link_tx_publish(&p->tx);
		if (link_take_flag(&n->side[1].armed))
			doorbell(&n->side[1]);
	}
	return NULL;
}

static void *receiver(void *arg)
{
	struct node *n = arg;
	struct pair *p = n->p;
	r3_u32 i = 0;

	while (i < FRAMES) {
		struct ring3_record *rec;
		r3_u32 len, seen = link_load(&n->side[1].doorbell);
		enum link_status s = link_rx_peek(&p->rx, &rec, &len);

		if (s == LINK_BROKEN) {
			n->bad++;
			return NULL;
		}
		if (s == LINK_OK) {
			n->bad += !frame_ok(rec, i++, len);
			link_rx_consume(&p->rx);
			if (link_rx_unpublished(&p->rx) < 16384)
				continue;
		}
		link_rx_publish(&p->rx);
		if (link_take_waiting(&p->rx, &n->side[0].waiting))
			doorbell(&n->side[0]);
		if (s == LINK_OK)
			continue;
		link_set_flag(&n->side[1].armed, 1);
		if (link_load_acquire(&p->ring.head) != p->rx.tail)
			continue;
		n->slept[1]++;
		futex_wait(&n->side[1].doorbell, seen, &n->lost);
	}
	return NULL;
}

static void test_threads(void)
{
	struct node *n = aligned_alloc(64, (sizeof(*n) + 63) & ~63UL);
	pthread_t a, b;

	memset(n, 0, sizeof(*n));
	n->p = pair_new(0u - 64);
	pthread_create(&a, NULL, receiver, n);
	pthread_create(&b, NULL, sender, n);
	pthread_join(b, NULL);
	pthread_join(a, NULL);
	CHECK(!n->bad);
	CHECK(!n->lost);
	pair_free(n->p);
	free(n);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "order", test_order },
		{ "publish", test_publish },
		{ "full", test_full },
		{ "reopen", test_reopen },
		{ "nonsense", test_nonsense },
		{ "scribble", test_scribble },
		{ "depth", test_depth },
		{ "half", test_half },
		{ "threads", test_threads },
	};
	unsigned int i, failed = 0, n = sizeof(tests) / sizeof(tests[0]);

	setlinebuf(stdout);
	for (i = 0; i < n; i++) {
		failed_at = NULL;
		tests[i].run();
		printf("%s link_ring %s\n", failed_at ? "FAIL" : "ok", tests[i].name);
		failed += !!failed_at;
	}
	printf("%u passed, %u failed\n", n - failed, failed);
	return failed != 0;
}
