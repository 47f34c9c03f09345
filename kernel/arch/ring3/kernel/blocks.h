/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RING3_BLOCKS_H
#define RING3_BLOCKS_H

#include <linux/list.h>
#include <asm/ring3.h>

/* A thread block of the list, and what only the image knows of it. */
struct block {
	struct ring3_thread tb;
	struct hlist_node of_proc;	/* in ring3_blocks_of[] of its process, or of its last one */
	struct list_head gone;		/* in blocks_gone, while it has R3_F_GONE */
};

/* blocks.c. ring3_thread_alloc() and ring3_proc_alloc() take ring3_blocks; all others are called with it held. */
extern struct hlist_head ring3_blocks_of[RING3_PROCS_MAX];
struct ring3_thread *ring3_thread_alloc(struct ring3_proc *proc, struct ring3_fdmap *map);
struct ring3_proc *ring3_proc_alloc(int pid);
void ring3_block_gone(struct ring3_thread *tb);
/* The last thread of the process is gone, or there never was one. Called before the entry is freed. */
void ring3_proc_emptied(struct ring3_proc *proc);
/* True if it is an entry of procs[], and so not the keeper's; needs no lock. */
bool ring3_proc_listed(struct ring3_proc *proc);
/* uaccess.c */
#ifdef CONFIG_RING3_SIM
static inline void ring3_memory_inherit(struct ring3_proc *proc) { }
#else
void ring3_memory_inherit(struct ring3_proc *proc);
#endif

/* fdmap.c */
struct ring3_fdmap *ring3_fdmap_new(const struct ring3_fdmap *from);	/* NULL: an empty one */
void ring3_fdmap_get(struct ring3_fdmap *map);
void ring3_fdmap_put(struct ring3_fdmap *map);
/* Replaces a map that is shared with others by `own', which is a copy of it. */
void ring3_fdmap_becomes(struct ring3_thread *me, struct ring3_fdmap *own);
bool ring3_fdmap_is_shared(const struct ring3_thread *me);

#endif
