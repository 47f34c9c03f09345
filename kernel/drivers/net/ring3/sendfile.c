// SPDX-License-Identifier: GPL-2.0-only
/*
 * sendfile.c - sends a file of the host to a TCP socket without a copy in the gate
 *
 * Theory of operation
 * -------------------
 * The two kernels share no pages, so sendfile() can't pass a page of the host's page cache to the socket. But the
 * host can read the file into pages of the node, and the stack takes these as it takes pages of its own files
 * (MSG_SPLICE_PAGES). So each byte is copied once on its way into the socket, by the host.
 *
 * `in` is a number in the file table of the task's own thread, so the task comes home for the read. If the task has
 * waited, or others have had a turn, a thread of another process may drive, where that number is another file.
 *
 * The thread keeps the vCPU meanwhile. So it asks the host only for data that is in memory (RWF_NOWAIT). If there
 * is none, the gate reads into a buffer, waiting for the disk, and sends that. The gate sends small files in that
 * way, too: copying them costs less than a page.
 */
#include <linux/bvec.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <net/sock.h>

#include <ring3/ring3.h>
#include <asm/ring3_host.h>
#include <asm/ring3_sendfile.h>

#define CHUNK_ORDER	2U
#define CHUNK_BYTES	(PAGE_SIZE << CHUNK_ORDER)
#define CHUNKS		(RING3_SENDFILE_MAX / CHUNK_BYTES)

struct chunks {
	struct bio_vec bv[CHUNKS];
	unsigned int n;
};

static void chunks_put(struct chunks *c)
{
	while (c->n)
		put_page(c->bv[--c->n].bv_page);
}

static bool chunks_get(struct chunks *c, u64 count)
{
	for (c->n = 0; count; c->n++) {
		u32 len = min_t(u64, count, CHUNK_BYTES);
		struct page *page = alloc_pages(GFP_USER | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY,
						get_order(len));

		if (!page) {
			chunks_put(c);
			return false;
		}
		bvec_set_page(&c->bv[c->n], page, len, 0);
		count -= len;
	}
	return true;
}

static long chunks_read(const struct chunks *c, const struct ring3_home *home, int fd, s64 pos)
{
	struct iovec iov[CHUNKS];
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		iov[i].iov_base = (void __force __user *)page_address(c->bv[i].bv_page);
		iov[i].iov_len = c->bv[i].bv_len;
	}
	return ring3_home_preadv_now(home, fd, iov, c->n, pos);
}

static bool may_splice(const struct socket *sock)
{
	const struct sock *sk = sock->sk;

	return sk && sk_is_tcp(sk) && (sk->sk_route_caps & NETIF_F_SG);
}

long ring3_sys_sendfile(int out, int in, s64 pos, u64 count, u32 flags, s64 __user *ugot)
{
	struct msghdr msg = { .msg_flags = (flags & MSG_MORE) | MSG_SPLICE_PAGES };
	struct chunks chunks;
	const struct ring3_home *home;
	struct socket *sock;
	long got, ret;
	s64 read = 0;

	if (!count || count > RING3_SENDFILE_MAX)
		return -EINVAL;
	CLASS(fd, f)(out);
	if (fd_empty(f))
		return -EBADF;
	sock = sock_from_file(fd_file(f));
	if (!sock || !may_splice(sock) || !chunks_get(&chunks, count))
		return -EOPNOTSUPP;

	home = ring3_come_home();
	got = home ? chunks_read(&chunks, home, in, pos) : -EINTR;
	/* Nothing in memory, end of file, or an error: left to the gate. */
	if (got <= 0) {
		ret = -EOPNOTSUPP;
		goto put;
	}
	if (fd_file(f)->f_flags & O_NONBLOCK)
		msg.msg_flags |= MSG_DONTWAIT;
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, chunks.bv, chunks.n, got);
	ret = sock_sendmsg(sock, &msg);
	read = got;
put:
	chunks_put(&chunks);
	if (copy_to_user(ugot, &read, sizeof(read)))
		return -EFAULT;
	return ret;
}
