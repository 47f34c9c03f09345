// SPDX-License-Identifier: GPL-2.0
/*
 * mmap.c - which region memory backs a mapping of a node's descriptor
 *
 * Without an MMU packet_mmap()'s vm_insert_page() fails. But the pages of a packet
 * ring are region memory, which every process can map from the memfd. The gate
 * asks page by page, and maps runs.
 */
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <net/sock.h>
#include "../../../net/packet/internal.h"
#include <asm/ring3.h>

static long packet_page(struct packet_sock *po, size_t len, unsigned long index)
{
	struct packet_ring_buffer *rb;
	unsigned long pages = 0;
	long ret = -EINVAL;

	mutex_lock(&po->pg_vec_lock);
	for (rb = &po->rx_ring; rb <= &po->tx_ring; rb++)
		if (rb->pg_vec)
			pages += (unsigned long)rb->pg_vec_len * rb->pg_vec_pages;
	if (!pages || len != pages * PAGE_SIZE || index >= pages)
		goto out;
	for (rb = &po->rx_ring; rb <= &po->tx_ring; rb++) {
		unsigned long n;

		if (!rb->pg_vec)
			continue;
		n = (unsigned long)rb->pg_vec_len * rb->pg_vec_pages;
		if (index < n) {
			ret = (long)rb->pg_vec[index / rb->pg_vec_pages].buffer +
			      (index % rb->pg_vec_pages) * PAGE_SIZE;
			break;
		}
		index -= n;
	}
out:
	mutex_unlock(&po->pg_vec_lock);
	return ret;
}

long ring3_sys_mmap(int fd, size_t len, unsigned long prot, unsigned long flags,
		    unsigned long index)
{
	struct fd f = fdget(fd);
	struct socket *sock;
	long ret = -ENODEV;

	if (!fd_file(f))
		return -EBADF;
	sock = sock_from_file(fd_file(f));
	if (sock && sock->sk && sock->sk->sk_family == AF_PACKET)
		ret = packet_page(pkt_sk(sock->sk), len, index);
	fdput(f);
	return ret;
}
