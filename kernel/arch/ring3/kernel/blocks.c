// SPDX-License-Identifier: GPL-2.0
/*
 * blocks.c - thread blocks, and the table of processes
 *
 * A thread block is not freed while its host thread may still use it: it goes on a list, and is reused after the
 * tid has disappeared from the host.
 */
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include "../vcpu/vcpu.h"
#include "blocks.h"

struct ring3_thread *ring3_threads;	/* all blocks, unused ones too */

/* Protected by ring3_blocks, as are the following ones. */
struct hlist_head ring3_blocks_of[RING3_PROCS_MAX];
static LIST_HEAD(blocks_gone);

/*
 * Held by code that allocates or frees thread blocks and processes, and by code that looks for a task among them:
 * the task does not end meanwhile. Code that walks the list without using tasks needs no lock.
 */
DEFINE_MUTEX(ring3_blocks);

/*
 * The task of the block has exited; may its thread still be on its way out, in the gate? Only the host knows.
 * HOST_PID was noted when the task exited; REAP clears the tid. A new thread that has made no call yet may still
 * have to write its tid, although its task was killed.
 */
static bool tid_gone(struct ring3_thread *tb)
{
	long pid = r3t_host_pid(tb);

	if (!pid)
		return false;
	if (!tb->tid)
		return true;
	return !ring3_host_thread_exists(pid, tb->tid);
}

void ring3_block_gone(struct ring3_thread *tb)
{
	r3t_flags(tb) |= R3_F_GONE;
	/* The block of the keeper's main thread is in the region's head. */
	if (tb != &ring3_region.init_thread)
		list_add_tail(&container_of(tb, struct block, tb)->gone, &blocks_gone);
}

struct ring3_thread *ring3_thread_alloc(struct ring3_proc *proc, struct ring3_fdmap *map)
{
	struct ring3_thread *tb = NULL;
	struct block *block;

	mutex_lock(&ring3_blocks);
	list_for_each_entry(block, &blocks_gone, gone) {
		if (tid_gone(&block->tb)) {
			tb = &block->tb;
			break;
		}
	}
	if (tb) {
		list_del(&block->gone);
		hlist_del(&block->of_proc);
		/* All but the link: other threads walk the list. */
		u64 *link = &tb->image_private[R3T_LINK];

		memset(tb, 0, (void *)link - (void *)tb);
		memset(link + 1, 0, (void *)(tb + 1) - (void *)(link + 1));
	} else {
		block = kzalloc(sizeof(*block), GFP_KERNEL);
		if (!block)
			goto out;
		tb = &block->tb;
		tb->image_private[R3T_LINK] = (unsigned long)ring3_threads;
		host_store(&ring3_threads, tb);
	}
	tb->self = (unsigned long)tb;
	tb->region = (unsigned long)&ring3_region;
	tb->proc = (unsigned long)proc;
	tb->fdmap = (unsigned long)map;
	hlist_add_head(&block->of_proc, &ring3_blocks_of[proc - ring3_region.procs]);
	proc->threads++;
out:
	mutex_unlock(&ring3_blocks);
	return tb;
}

/* Each entry of procs[] below this one has threads. Protected by ring3_blocks. */
static u32 procs_full;

bool ring3_proc_listed(struct ring3_proc *proc)
{
	return proc >= ring3_region.procs && proc < ring3_region.procs + RING3_PROCS_MAX;
}

/*
 * The last thread of the process is gone, or there never was one. Called before the entry is freed. Under
 * ring3_blocks.
 */
void ring3_proc_emptied(struct ring3_proc *proc)
{
	if (ring3_proc_listed(proc))
		procs_full = min_t(u32, procs_full, proc - ring3_region.procs);
}

struct ring3_proc *ring3_proc_alloc(int pid)
{
	struct ring3_proc *proc, *found = NULL;
	bool full = true;
	u32 i;

	mutex_lock(&ring3_blocks);
	for (i = procs_full; i < RING3_PROCS_MAX && !found; i++) {
		proc = &ring3_region.procs[i];
		if (proc->threads)
			continue;
		if (full)
			procs_full = i;
		full = false;
		if (!proc->state)
			found = proc;
	}
	if (full)
		procs_full = i;
	if (found) {
		memset(found, 0, sizeof(*found));
		ring3_memory_inherit(found);
		memset(found->port_fd, 0xff, sizeof(found->port_fd));
		found->pid = pid;
		host_store(&found->state, RING3_PROC_LIVE);
		if (i > ring3_region.procs_used)
			host_store(&ring3_region.procs_used, i);
	}
	mutex_unlock(&ring3_blocks);
	return found;
}
