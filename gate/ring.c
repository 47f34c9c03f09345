// SPDX-License-Identifier: GPL-2.0
/*
 * ring.c - mmap() of a node descriptor: the region's own pages
 *
 * A packet ring is made of blocks that lie anywhere in the region. They are mapped
 * side by side, a run of pages at a time, over an area reserved first, so that a
 * failure half way leaves nothing.
 */
#include "gate.h"
#include "policy.h"
#include <linux/mman.h>

static long page_of(u32 fd, struct gate_regs *r, u64 index)
{
	return image_call5(RING3_NR_MMAP, fd, r->a[1], r->a[2], r->a[3], index);
}

long map_ring(u32 fd, struct gate_regs *r)
{
	u64 base = ((struct ring3_region *)gate_thread()->region)->base;
	u64 pages = r->a[1] / GATE_PAGE, from, n;
	long first, next, area, ret;

	if (!pages || offset_in_page(r->a[1]) || !(r->a[3] & MAP_SHARED))
		return -EINVAL;
	first = page_of(fd, r, 0);
	if (HOST_IS_ERR(first))
		return first;
	area = host_syscall6(__NR_mmap, r->a[0], r->a[1], PROT_NONE,
			     (r->a[3] & ~(u64)MAP_SHARED) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (HOST_IS_ERR(area))
		return area;
	for (from = 0; from < pages; from += n, first = next) {
		for (n = 1, next = 0; from + n < pages; n++) {
			next = page_of(fd, r, from + n);
			if (HOST_IS_ERR(next) || next != first + (long)(n * GATE_PAGE))
				break;
		}
		ret = HOST_IS_ERR(next) ? next :
			host_syscall6(__NR_mmap, area + from * GATE_PAGE, n * GATE_PAGE, r->a[2],
				      MAP_SHARED | MAP_FIXED, gate_fd(GATE_FD_REGION), first - base);
		if (HOST_IS_ERR(ret)) {
			host_syscall2(__NR_munmap, area, r->a[1]);
			return ret;
		}
	}
	return area;
}
