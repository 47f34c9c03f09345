// SPDX-License-Identifier: GPL-2.0
/*
 * mmap.c - mappings of node descriptors: which region memory backs them, and how long it is kept
 *
 * Theory of operation
 * -------------------
 * Without an MMU, packet_mmap()'s vm_insert_page() fails. But the pages of a packet ring are region memory, which
 * every process can map from the memfd. The gate asks for the address of each page, and maps runs of adjacent ones.
 *
 * No vma keeps the ring alive. So this file keeps the references of the vmas, for each address space: the file, and
 * a count in the socket's `mapped', by which the socket refuses to free its ring. The gate knows the addresses of
 * each mapping, and reports when the last of them is unmapped. A child with memory of its own inherits its parent's
 * mappings; a child that shares its parent's memory (vfork) uses the same ones. They end at exec and with the
 * process, however it ends: the keeper reaps it when it has no thread left.
 */
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/sock.h>
#include "../../../net/packet/internal.h"
#include <asm/ring3.h>
#include "maps.h"

struct mapping {
	struct list_head entry;
	struct file *file;
	u32 id;			/* the same number in all address spaces */
};

/* The mappings of one address space. */
struct maps {
	unsigned int users;
	struct list_head list;
};

static struct maps *maps_of[RING3_PROCS_MAX];
static u32 last_id;
static DEFINE_MUTEX(maps_lock);		/* protects all of the above */

/* NULL: the keeper's process, which has no mappings. */
static struct maps **maps_at(u64 proc)
{
	u64 first = (u64)ring3_region.procs;

	if (proc < first || proc >= first + sizeof(ring3_region.procs))
		return NULL;
	return &maps_of[(proc - first) / sizeof(struct ring3_proc)];
}

static struct packet_sock *packet_sock_of(struct file *file)
{
	struct socket *sock = sock_from_file(file);

	return sock && sock->sk && sock->sk->sk_family == AF_PACKET ? pkt_sk(sock->sk) : NULL;
}

static struct maps *maps_made(struct maps **at)
{
	struct maps *maps = *at;

	if (!maps) {
		maps = kmalloc(sizeof(*maps), GFP_KERNEL);
		if (!maps)
			return NULL;
		maps->users = 1;
		INIT_LIST_HEAD(&maps->list);
		*at = maps;
	}
	return maps;
}

static int mapping_add(struct maps *maps, struct file *file, u32 id)
{
	struct mapping *m = kmalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return -ENOMEM;
	m->file = get_file(file);
	m->id = id;
	atomic_long_inc(&packet_sock_of(file)->mapped);
	list_add(&m->entry, &maps->list);
	return 0;
}

static void mapping_drop(struct mapping *m)
{
	atomic_long_dec(&packet_sock_of(m->file)->mapped);
	fput(m->file);
	list_del(&m->entry);
	kfree(m);
}

static void maps_put(struct maps **at)
{
	struct maps *maps = *at;
	struct mapping *m, *next;

	*at = NULL;
	if (!maps || --maps->users)
		return;
	list_for_each_entry_safe(m, next, &maps->list, entry)
		mapping_drop(m);
	kfree(maps);
}

/* The process has ended, or executes another program. */
void ring3_maps_exit(u64 proc)
{
	mutex_lock(&maps_lock);
	if (maps_at(proc))
		maps_put(maps_at(proc));
	mutex_unlock(&maps_lock);
}

/* A child has been made, with or without memory of its own. */
int ring3_maps_fork(u64 parent, u64 child, bool shared)
{
	struct maps *maps, *copy;
	struct mapping *m;
	int ret = 0;

	mutex_lock(&maps_lock);
	if (shared) {
		maps = maps_made(maps_at(parent));
		if (maps) {
			maps->users++;
			*maps_at(child) = maps;
		} else {
			ret = -ENOMEM;
		}
	} else if (*maps_at(parent)) {
		copy = maps_made(maps_at(child));
		if (!copy)
			ret = -ENOMEM;
		list_for_each_entry(m, &(*maps_at(parent))->list, entry) {
			if (!ret)
				ret = mapping_add(copy, m->file, m->id);
		}
		if (ret)
			maps_put(maps_at(child));
	}
	mutex_unlock(&maps_lock);
	return ret;
}

/* Called with `mapped' set, so that the ring's size does not change. */
static unsigned long ring_pages(const struct packet_sock *po)
{
	const struct packet_ring_buffer *rb;
	unsigned long pages = 0;

	for (rb = &po->rx_ring; rb <= &po->tx_ring; rb++)
		if (rb->pg_vec)
			pages += (unsigned long)rb->pg_vec_len * rb->pg_vec_pages;
	return pages;
}

static long packet_page(const struct packet_sock *po, unsigned long index)
{
	const struct packet_ring_buffer *rb;

	for (rb = &po->rx_ring; rb <= &po->tx_ring; rb++) {
		unsigned long n;

		if (!rb->pg_vec)
			continue;
		n = (unsigned long)rb->pg_vec_len * rb->pg_vec_pages;
		if (index < n)
			return (long)rb->pg_vec[index / rb->pg_vec_pages].buffer +
			       (index % rb->pg_vec_pages) * PAGE_SIZE;
		index -= n;
	}
	return -EINVAL;
}

static struct mapping *mapping_named(u32 id)
{
	struct maps **at = maps_at(current->thread.tb->proc);
	struct mapping *m;

	if (at && *at)
		list_for_each_entry(m, &(*at)->list, entry)
			if (m->id == id)
				return m;
	return NULL;
}

long ring3_sys_mmap(int fd, size_t len, unsigned long offset)
{
	struct maps **at = maps_at(current->thread.tb->proc), *maps;
	struct packet_sock *po;
	struct fd f = fdget(fd);
	long ret = -ENODEV;

	if (!fd_file(f))
		return -EBADF;
	po = packet_sock_of(fd_file(f));
	if (!po || !at)
		goto out;
	ret = -ENOMEM;
	mutex_lock(&maps_lock);
	maps = maps_made(at);
	if (maps) {
		last_id = last_id % INT_MAX + 1;
		/* Read under the lock of packet_mmap() and packet_set_ring(), which keep it valid. */
		mutex_lock(&po->pg_vec_lock);
		ret = -EINVAL;
		if (!offset && len && len == ring_pages(po) * PAGE_SIZE) {
			ret = mapping_add(maps, fd_file(f), last_id);
			if (!ret)
				ret = last_id;
		}
		mutex_unlock(&po->pg_vec_lock);
	}
	mutex_unlock(&maps_lock);
out:
	fdput(f);
	return ret;
}

long ring3_sys_mmap_page(u32 id, unsigned long index)
{
	struct mapping *m;
	long ret = -EINVAL;

	mutex_lock(&maps_lock);
	m = mapping_named(id);
	if (m)
		ret = packet_page(packet_sock_of(m->file), index);
	mutex_unlock(&maps_lock);
	return ret;
}

long ring3_sys_munmap(u32 id)
{
	struct mapping *m;

	mutex_lock(&maps_lock);
	m = mapping_named(id);
	if (m)
		mapping_drop(m);
	mutex_unlock(&maps_lock);
	return m ? 0 : -EINVAL;
}
