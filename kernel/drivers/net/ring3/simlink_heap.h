/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * simlink_heap.h - whose event is next
 *
 * One array has the events of all wires. In a tree whose nodes lie in the wires each step of a search would read another wire's
 * memory, and with a thousand wires each of these reads misses the caches. Here the four children of an entry are one line
 * of the cache, and the events of a thousand wires are 16 KiB.
 *
 * A wire has at most one event. Events of one instant come in the order in which they were set.
 *
 * tests/link/simlink_heap.c compiles this, so it has no other header of the kernel's than types.
 */
#ifndef RING3_SIMLINK_HEAP_H
#define RING3_SIMLINK_HEAP_H

#include <linux/types.h>

#define HEAP_CHILDREN	4		/* of 16 bytes: a line of the cache */
#define HEAP_LINE	64
#define HEAP_NONE	(~0U)

struct heap_event {
	__u64 at;			/* ns */
	__u32 order;			/* among those of one instant; it may wrap */
	__u32 wire;			/* its number */
};

struct heap {
	struct heap_event *events;	/* [0] is the next one; [1] is at the start of a line */
	__u32 *places;			/* of each wire's event in `events', or HEAP_NONE */
	__u32 count;
	__u32 order;
};

static inline bool heap_is_before(const struct heap_event *a, const struct heap_event *b)
{
	return a->at != b->at ? a->at < b->at : (__s32)(a->order - b->order) < 0;
}

static inline void heap_put(struct heap *heap, __u32 place, const struct heap_event *event)
{
	heap->events[place] = *event;
	heap->places[event->wire] = place;
}

/* Puts the event at this free place or above. */
static inline void heap_rise(struct heap *heap, __u32 place, const struct heap_event *event)
{
	while (place) {
		__u32 above = (place - 1) / HEAP_CHILDREN;

		if (!heap_is_before(event, &heap->events[above]))
			break;
		heap_put(heap, place, &heap->events[above]);
		place = above;
	}
	heap_put(heap, place, event);
}

/* Puts the event at this free place or below; what is above is before it. */
static inline void heap_sink(struct heap *heap, __u32 place, const struct heap_event *event)
{
	for (;;) {
		__u32 first = place * HEAP_CHILDREN + 1, least = first, i;

		if (first >= heap->count)
			break;
		for (i = first + 1; i < first + HEAP_CHILDREN && i < heap->count; i++)
			if (heap_is_before(&heap->events[i], &heap->events[least]))
				least = i;
		if (!heap_is_before(&heap->events[least], event))
			break;
		heap_put(heap, place, &heap->events[least]);
		place = least;
	}
	heap_put(heap, place, event);
}

static inline void heap_settle(struct heap *heap, __u32 place, const struct heap_event *event)
{
	if (place && heap_is_before(event, &heap->events[(place - 1) / HEAP_CHILDREN]))
		heap_rise(heap, place, event);
	else
		heap_sink(heap, place, event);
}

/* The wire's event is at this time, which is another than before. There is room for an event of each wire. */
static inline void heap_set(struct heap *heap, __u32 wire, __u64 at)
{
	struct heap_event event = { at, heap->order++, wire };
	__u32 place = heap->places[wire];

	if (place == HEAP_NONE)
		heap_rise(heap, heap->count++, &event);
	else
		heap_settle(heap, place, &event);
}

static inline void heap_remove(struct heap *heap, __u32 wire)
{
	__u32 place = heap->places[wire];
	struct heap_event last;

	if (place == HEAP_NONE)
		return;
	heap->places[wire] = HEAP_NONE;
	last = heap->events[--heap->count];
	if (place != heap->count)
		heap_settle(heap, place, &last);
}

#endif
