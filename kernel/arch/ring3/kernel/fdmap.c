// SPDX-License-Identifier: GPL-2.0
/* fdmap.c - maps beside the file tables: which side owns a descriptor number */
#include <linux/errno.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/syscalls.h>
#include <asm/ring3.h>
#include "blocks.h"

/* fdmaps are shared like file tables; the reference count is in front of them. */
struct fdmap_ref {
	refcount_t count;
	struct ring3_fdmap map;
};

struct ring3_fdmap *ring3_fdmap_new(const struct ring3_fdmap *from)
{
	struct fdmap_ref *ref = kvzalloc(sizeof(*ref), GFP_KERNEL);

	if (!ref)
		return NULL;
	refcount_set(&ref->count, 1);
	if (from)
		memcpy(&ref->map, from, sizeof(*from));
	return &ref->map;
}

static struct fdmap_ref *fdmap_ref(struct ring3_fdmap *map)
{
	return container_of(map, struct fdmap_ref, map);
}

void ring3_fdmap_get(struct ring3_fdmap *map)
{
	refcount_inc(&fdmap_ref(map)->count);
}

void ring3_fdmap_put(struct ring3_fdmap *map)
{
	if (map && refcount_dec_and_test(&fdmap_ref(map)->count))
		kvfree(fdmap_ref(map));
}

/* Replaces a map that is shared with others by `own`, which is a copy of it. */
void ring3_fdmap_becomes(struct ring3_thread *me, struct ring3_fdmap *own)
{
	struct ring3_fdmap *map = (struct ring3_fdmap *)me->fdmap;

	memcpy(own, map, sizeof(*own));
	me->fdmap = (unsigned long)own;
	ring3_fdmap_put(map);
}

bool ring3_fdmap_is_shared(const struct ring3_thread *me)
{
	return refcount_read(&fdmap_ref((struct ring3_fdmap *)me->fdmap)->count) > 1;
}

/* unshare(2). A task with a file table of its own has a map of its own. */
long ring3_unshare(unsigned long flags)
{
	struct ring3_thread *me = current->thread.tb;
	struct ring3_fdmap *own = NULL;
	int ret;

	if ((flags & CLONE_FILES) && ring3_fdmap_is_shared(me)) {
		own = ring3_fdmap_new(NULL);
		if (!own)
			return -ENOMEM;
	}
	ret = ksys_unshare(flags);
	if (own && !ret)
		ring3_fdmap_becomes(me, own);
	else
		ring3_fdmap_put(own);
	return ret;
}
