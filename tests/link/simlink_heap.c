// SPDX-License-Identifier: GPL-2.0
/*
 * simlink_heap.c - the events of simulated links beside a list that is searched
 *
 * Compiles the driver's own simlink_heap.h. Each step sets, moves or removes a wire's event; then the next event has to be the one that
 * a search of all finds: the earliest, and of those of one instant the one that was set first. All randomness is seeded.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "simlink_heap.h"

#define WIRES	300
#define STEPS	200000
#define TIMES	40	/* few, so that many events are at one instant */

static uint64_t rng_state;

static uint32_t rnd(uint32_t below)
{
	rng_state = rng_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(rng_state >> 33) % below;
}

struct plain {
	bool is_set;
	uint64_t at, order;
};

static struct plain plain[WIRES];

static uint32_t first_of_plain(void)
{
	uint32_t i, first = HEAP_NONE;

	for (i = 0; i < WIRES; i++) {
		if (!plain[i].is_set)
			continue;
		if (first == HEAP_NONE || plain[i].at < plain[first].at ||
		    (plain[i].at == plain[first].at && plain[i].order < plain[first].order))
			first = i;
	}
	return first;
}

static bool is_heap(const struct heap *heap)
{
	uint32_t i, count = 0;

	for (i = 0; i < heap->count; i++) {
		if (heap->places[heap->events[i].wire] != i)
			return false;
		if (i && heap_is_before(&heap->events[i], &heap->events[(i - 1) / HEAP_CHILDREN]))
			return false;
	}
	for (i = 0; i < WIRES; i++)
		count += heap->places[i] != HEAP_NONE;
	return count == heap->count;
}

/* order: where the count of events begins, so that it wraps in some runs. */
static bool runs(uint32_t seed, uint32_t order)
{
	static struct heap_event events[WIRES];
	static uint32_t places[WIRES];
	struct heap heap = { events, places, 0, order };
	uint64_t orders = 0;
	uint32_t i, wire, first;

	rng_state = seed;
	for (i = 0; i < WIRES; i++) {
		places[i] = HEAP_NONE;
		plain[i] = (struct plain){ 0 };
	}
	for (i = 0; i < STEPS; i++) {
		/* Mostly the next one, as the driver does. */
		wire = heap.count && rnd(3) ? heap.events[0].wire : rnd(WIRES);
		if (rnd(4)) {
			uint64_t at = i / 64 + rnd(TIMES);	/* earlier or later than before */

			plain[wire] = (struct plain){ true, at, orders++ };
			heap_set(&heap, wire, at);
		} else {
			plain[wire].is_set = false;
			heap_remove(&heap, wire);
		}
		first = first_of_plain();
		if (first != (heap.count ? heap.events[0].wire : HEAP_NONE) ||
		    (heap.count && heap.events[0].at != plain[first].at) || (!(i % 1000) && !is_heap(&heap))) {
			fprintf(stderr, "seed %u: step %u: wire %u\n", seed, i, wire);
			return false;
		}
	}
	return true;
}

int main(void)
{
	bool is_good = runs(1, 0) && runs(2, 0) && runs(3, -STEPS / 2);

	printf("%s the next event is the earliest, and of one instant the first that was set\n", is_good ? "ok" : "FAIL");
	return !is_good;
}
