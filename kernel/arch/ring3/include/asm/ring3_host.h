/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_host.h - host calls of kernel code (DESIGN rule 11)
 *
 * Kernel code runs on a thread of any process of the node, and of another one after each schedule. So each call has a
 * kind, which says whose descriptors, credentials and limits it uses. kernel/arch/ring3/kernel/host.c has the table,
 * kernel/host_calls says which objects may make which, and kernel/check refuses others.
 */
#ifndef _ASM_RING3_HOST_H
#define _ASM_RING3_HOST_H

#include <linux/types.h>

struct iovec;

/* Any process may make these, at any time. */
void ring3_host_yield(void);
void ring3_host_nap(u64 ns);
bool ring3_host_process_exists(int pid);
bool ring3_host_thread_exists(int pid, int tid);
long ring3_host_punch(void *start, size_t len);

/* The keeper makes these: while it boots the node, and whenever the node needs memory. */
long ring3_host_mincore(void *start, size_t len, u8 *resident);
void ring3_host_populate(void *start, size_t len);
#define RING3_HUGE	(2UL << 20)	/* bytes: x86-64's huge page */
void ring3_host_populate_huge(void *start, size_t len);	/* of whole huge pages */

/*
 * These need the task's own thread, since a descriptor means what its file table says. Another thread of its process
 * won't do: it may have a file table of its own. ring3_come_home() brings the task there; each later schedule may take
 * it away, so a call made without coming home again is refused.
 */
struct ring3_home;	/* nobody else can make one */

/* NULL: that thread ends, or the task has none. */
const struct ring3_home *ring3_come_home(void);
long ring3_home_preadv_now(const struct ring3_home *home, int fd, const struct iovec *iov,
			   unsigned int n, s64 pos);

#endif
