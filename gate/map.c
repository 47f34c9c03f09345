// SPDX-License-Identifier: GPL-2.0
/*
 * map.c - mapping a descriptor of the node (packet rings)
 *
 * The pages are the region's own. The image says for each where it lies; runs of
 * neighbours are mapped from the region's memfd over a reserved stretch of the
 * program's address space.
 *
 * Unlike on Linux the mapping does not keep the memory alive: a program that closes the
 * socket must not look at the ring again.
 */
#include "policy.h"

#define PLACE_FLAGS	(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT)
#define KEPT_FLAGS	(MAP_POPULATE | MAP_LOCKED)

static long map_run(u64 at, u64 bytes, const struct gate_regs *r, u64 page)
{
	u64 offset = page - ((struct ring3_region *)gate_thread()->region)->base;

	return host_syscall6(__NR_mmap, at, bytes, r->a[2],
			     MAP_SHARED | MAP_FIXED | (r->a[3] & KEPT_FLAGS),
			     gate_fd(GATE_FD_REGION), offset);
}

static long page_of(const struct gate_regs *r, u64 len, u64 index)
{
	return image_call5(RING3_NR_MMAP, (u32)r->a[4], len, r->a[2], r->a[3],
			   r->a[5] / GATE_PAGE + index);
}

static long map_pages(const struct gate_regs *r, u64 base, u64 len, u64 run)
{
	u64 i, from = 0, pages = len / GATE_PAGE;
	long page = run, ret;

	for (i = 1; i <= pages; i++) {
		if (i < pages) {
			page = page_of(r, len, i);
			if (HOST_IS_ERR(page))
				return page;
			if ((u64)page == run + (i - from) * GATE_PAGE)
				continue;
		}
		ret = map_run(base + from * GATE_PAGE, (i - from) * GATE_PAGE, r, run);
		if (HOST_IS_ERR(ret))
			return ret;
		from = i;
		run = page;
	}
	return 0;
}

/*
 * The program's memory must not lie where ring3's does: the image takes a pointer there
 * for a bad one. Runtimes that choose the place of their heap themselves (Go, at
 * random) would hit it now and then. A wish is dropped, an order is refused.
 */
static long keep_out(struct gate_regs *r, u64 len)
{
	u64 start = r->a[0], end = start + len;

	if (likely(end <= RING3_GATE_BASE || start >= RING3_SPACE_END))
		return 0;
	if (r->a[3] & MAP_FIXED)
		return -ENOMEM;
	if (r->a[3] & MAP_FIXED_NOREPLACE)
		return -EEXIST;
	r->a[0] = 0;
	return 0;
}

long do_mmap(struct gate_regs *r)
{
	u64 len = page_align(r->a[1]);
	long first, base, ret;

	ret = keep_out(r, len);
	if (ret)
		return ret;

	if ((r->a[3] & MAP_ANONYMOUS) || !fd_is_node(r->a[4])) {
		if (unlikely(!(r->a[3] & MAP_ANONYMOUS) && reserved_fd(r->a[4])))
			return -EBADF;
		return gate_host_regs(r);
	}
	if (offset_in_page(r->a[5]) || !len)
		return -EINVAL;
	first = page_of(r, len, 0);
	if (HOST_IS_ERR(first))
		return first;
	base = host_syscall6(__NR_mmap, r->a[0], len, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (r->a[3] & PLACE_FLAGS),
			     -1, 0);
	if (HOST_IS_ERR(base))
		return base;
	ret = map_pages(r, base, len, first);
	if (ret) {
		host_syscall2(__NR_munmap, base, len);
		return ret;
	}
	return base;
}
