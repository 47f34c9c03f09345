// SPDX-License-Identifier: GPL-2.0
/*
 * map.c - mmap() of a node descriptor (packet rings)
 *
 * Theory of operation
 * -------------------
 * The pages are pages of the region. The image says where each of them is, and the gate maps each run of adjacent
 * pages from the region's memfd into a reserved range of the program's address space.
 *
 * The image keeps the memory as long as the process has the mapping, under an id (mmap.c there). So the socket can
 * be closed first, as on Linux. The gate keeps the list of addresses of each id in the program's own memory: fork
 * copies it, vfork shares it, exec drops it, as it happens to the mappings themselves. When munmap() has removed
 * the last range of an id, the gate tells the image. If mremap() moves a mapping, or another mapping replaces it,
 * its memory is kept until the process ends.
 */
#include "policy.h"
#include <asm/statfs.h>
#include <linux/magic.h>

#ifndef MREMAP_FIXED
#define MREMAP_FIXED	2		/* <linux/mman.h> */
#endif
#define PLACE_FLAGS	(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT)
#define KEPT_FLAGS	(MAP_POPULATE | MAP_LOCKED)

struct range {
	struct range *next;
	u64 start, end;
	u32 id;
};

static struct range *ranges;
struct gate_mutex map_lock;
static u32 mappings_made;	/* counts mappings, before each is made */

u32 map_stamp(void)
{
	return READ_ONCE(mappings_made);
}

static bool overlaps(const struct range *m, u64 start, u64 end)
{
	return m->start < end && start < m->end;
}

static bool id_is_used(u32 id)
{
	const struct range *m;

	for (m = ranges; m && m->id != id; m = m->next)
		;
	return m;
}

/*
 * [start, end) has been unmapped: removes it from the list. Returns the ranges that are completely gone. If a range
 * is cut in two and there is no memory for the second half, the range stays as it is.
 */
static struct range *cut(u64 start, u64 end)
{
	struct range **at = &ranges, *m, *gone = NULL;

	while ((m = *at)) {
		if (!overlaps(m, start, end)) {
			at = &m->next;
		} else if (m->start < start && m->end > end) {
			struct range *rest = gate_alloc(sizeof(*rest));

			if (!rest)
				return gone;
			*rest = (struct range){ m->next, end, m->end, m->id };
			m->end = start;
			m->next = rest;
			return gone;
		} else if (m->start < start) {
			m->end = start;
			at = &m->next;
		} else if (m->end > end) {
			m->start = end;
			at = &m->next;
		} else {
			*at = m->next;
			m->next = gone;
			gone = m;
		}
	}
	return gone;
}

/* Returns one range of each id that has no range left; frees the others. */
static struct range *unused(struct range *gone)
{
	struct range *list = NULL, *next, *other;

	for (; gone; gone = next) {
		next = gone->next;
		for (other = list; other && other->id != gone->id; other = other->next)
			;
		if (other || id_is_used(gone->id)) {
			gate_free(gone);
		} else {
			gone->next = list;
			list = gone;
		}
	}
	return list;
}

/* Called without the lock: the image may have to wait. */
static void forget(struct range *gone)
{
	struct range *next;

	for (; gone; gone = next) {
		next = gone->next;
		image_call1(RING3_NR_MUNMAP, gone->id);
		gate_free(gone);
	}
}

/* munmap() of a range in which the gate has mapped something: leaves the gate's own mappings there. */
static long unmap_around(u64 start, u64 len)
{
	u64 ours = start, end = start + page_align(len), ours_end = end;
	long ret = 0;

	if (likely(end <= start || !patch_within(&ours, &ours_end)))
		return host_syscall2(__NR_munmap, start, len);
	if (start < ours)
		ret = unmap_around(start, ours - start);
	if (!ret && ours_end < end)
		ret = unmap_around(ours_end, end - ours_end);
	return ret;
}

long do_munmap(struct gate_regs *r)
{
	u64 start = r->a[0], len = page_align(r->a[1]);
	struct range *gone = NULL;
	long ret;

	if (likely(!READ_ONCE(ranges)))
		return unmap_around(start, r->a[1]);
	gate_lock(&map_lock);
	/* Only after the unmapping: the memory must not be reused while it is mapped here. */
	ret = unmap_around(start, r->a[1]);
	if (!ret)
		gone = unused(cut(start, start + len));
	gate_unlock(&map_lock);
	forget(gone);
	return ret;
}

/* Does the range contain the node, the gate, or the gate's mappings between the program's? */
static bool is_ours(u64 start, u64 len)
{
	u64 end = start + len;

	return (end > RING3_GATE_BASE && start < RING3_SPACE_END) || (start && patch_within(&start, &end));
}

long do_mremap(struct gate_regs *r)
{
	u64 start = r->a[0], end = start + page_align(r->a[1]);
	struct range **at, *m;

	if (is_ours(start, end - start) || ((r->a[3] & MREMAP_FIXED) && is_ours(r->a[4], page_align(r->a[2]))))
		return -ENOMEM;

	if (likely(!READ_ONCE(ranges)))
		return gate_host_regs(r);
	/* The new address is not tracked: the memory is kept until the process ends. */
	gate_lock(&map_lock);
	for (at = &ranges; (m = *at);) {
		if (overlaps(m, start, end)) {
			*at = m->next;
			gate_free(m);
		} else {
			at = &m->next;
		}
	}
	gate_unlock(&map_lock);
	return gate_host_regs(r);
}

static long map_run(u64 at, u64 bytes, const struct gate_regs *r, u64 page)
{
	u64 offset = page - ((struct ring3_region *)gate_thread()->region)->base;

	return host_syscall6(__NR_mmap, at, bytes, r->a[2],
			     MAP_SHARED | MAP_FIXED | (r->a[3] & KEPT_FLAGS),
			     gate_fd(GATE_FD_REGION), offset);
}

static long map_pages(const struct gate_regs *r, u32 id, u64 base, u64 len)
{
	u64 i, from = 0, pages = len / GATE_PAGE, run;
	long page = image_call2(RING3_NR_MMAP_PAGE, id, 0), ret;

	if (HOST_IS_ERR(page))
		return page;
	run = page;
	for (i = 1; i <= pages; i++) {
		if (i < pages) {
			page = image_call2(RING3_NR_MMAP_PAGE, id, i);
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
 * Keeps the program's mappings out of ring3's address range: the image takes each pointer into that range for a bad
 * one. A runtime that chooses the address of its heap itself (Go, at random) would hit the range now and then. An
 * address hint is dropped, MAP_FIXED is refused.
 */
static long keep_out(struct gate_regs *r, u64 len)
{
	if (likely(!is_ours(r->a[0], len)))
		return 0;
	if (r->a[3] & MAP_FIXED)
		return -ENOMEM;
	if (r->a[3] & MAP_FIXED_NOREPLACE)
		return -EEXIST;
	r->a[0] = 0;
	return 0;
}

/* The image records the mapping before it is made, and forgets it after it is gone. */
static long map_node(struct gate_regs *r, u64 len)
{
	struct range *m = gate_alloc(sizeof(*m));
	long id, base, ret;

	if (!m)
		return -ENOMEM;
	id = image_call3(RING3_NR_MMAP, (u32)r->a[4], len, r->a[5]);
	if (HOST_IS_ERR(id)) {
		gate_free(m);
		return id;
	}
	gate_lock(&map_lock);
	WRITE_ONCE(mappings_made, mappings_made + 1);
	gate_unlock(&map_lock);
	base = host_syscall6(__NR_mmap, r->a[0], len, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (r->a[3] & PLACE_FLAGS),
			     -1, 0);
	ret = HOST_IS_ERR(base) ? base : map_pages(r, id, base, len);
	if (ret) {
		if (!HOST_IS_ERR(base))
			host_syscall2(__NR_munmap, base, len);
		image_call1(RING3_NR_MUNMAP, id);
		gate_free(m);
		return ret;
	}
	gate_lock(&map_lock);
	*m = (struct range){ ranges, base, base + len, id };
	WRITE_ONCE(ranges, m);
	gate_unlock(&map_lock);
	return base;
}

/* The process has memory whose faults wait for a program: kernel/arch/ring3/kernel/uaccess.c. In virtual time nobody asks. */
void map_is_slow(void)
{
	image_call1(__NR_userfaultfd, 0);
}

long do_userfaultfd(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (ret >= 0)
		map_is_slow();
	return ret;
}

static bool is_fuse(u32 fd)
{
	struct statfs fs;

	return !host_syscall2(__NR_fstatfs, fd, (long)&fs) && fs.f_type == FUSE_SUPER_MAGIC;
}

long do_mmap(struct gate_regs *r)
{
	u64 len = page_align(r->a[1]);
	long ret;

	ret = keep_out(r, len);
	if (ret)
		return ret;

	if ((r->a[3] & MAP_ANONYMOUS) || !fd_is_node(r->a[4])) {
		if (unlikely(!(r->a[3] & MAP_ANONYMOUS) && reserved_fd(r->a[4])))
			return -EBADF;
		ret = gate_host_regs(r);
		if (ret > 0 && !(r->a[3] & MAP_ANONYMOUS) && is_fuse(r->a[4]))
			map_is_slow();
		return ret;
	}
	if (offset_in_page(r->a[5]) || !len)
		return -EINVAL;
	return map_node(r, len);
}
