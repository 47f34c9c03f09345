// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostio.c - host calls of ports
 *
 * Numbers and structures are those of the node's own user ABI, which is the host's.
 */
#include <uapi/linux/futex.h>
#include <linux/errno.h>
#include <linux/socket.h>

#include <asm/ring3.h>
#include <asm/unistd.h>

#include "hostio.h"

static long port_call(long nr, unsigned int port, long a, long b, long c, long d)
{
	int fd = ring3_port_fd(port);

	return fd < 0 ? -EBADF : ring3_host_syscall(nr, fd, a, b, c, d, 0);
}

long ring3_port_readv(unsigned int port, const struct iovec *iov, unsigned int n)
{
	return port_call(__NR_readv, port, (long)iov, n, 0, 0);
}

long ring3_port_writev(unsigned int port, const struct iovec *iov, unsigned int n)
{
	return port_call(__NR_writev, port, (long)iov, n, 0, 0);
}

/* For stream sockets: a closed far side must not raise SIGPIPE in the program. */
long ring3_port_sendv(unsigned int port, const struct iovec *iov, unsigned int n)
{
	struct user_msghdr msg = {
		.msg_iov = (struct iovec __force __user *)iov,
		.msg_iovlen = n,
	};

	return port_call(__NR_sendmsg, port, (long)&msg, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

long ring3_port_recv(unsigned int port, void *buf, size_t len)
{
	return port_call(__NR_recvfrom, port, (long)buf, len, MSG_DONTWAIT, 0);
}

/* Packet sockets: one call for several frames. How many, or why not even the first. */
long ring3_port_sendmmsg(unsigned int port, struct mmsghdr *msg, unsigned int n)
{
	return port_call(__NR_sendmmsg, port, (long)msg, n, MSG_DONTWAIT | MSG_NOSIGNAL, 0);
}

long ring3_port_recvmmsg(unsigned int port, struct mmsghdr *msg, unsigned int n)
{
	return port_call(__NR_recvmmsg, port, (long)msg, n, MSG_DONTWAIT, 0);
}

/* AF_XDP: tells the host that the TX ring has frames, or the fill ring has room. */
long ring3_port_kick_tx(unsigned int port)
{
	return port_call(__NR_sendto, port, 0, 0, MSG_DONTWAIT, 0);
}

long ring3_port_kick_rx(unsigned int port)
{
	return port_call(__NR_recvfrom, port, 0, 0, MSG_DONTWAIT, 0);
}

long ring3_port_getsockopt(unsigned int port, int level, int option, void *value, u32 *size)
{
	return port_call(__NR_getsockopt, port, level, option, (long)value, (long)size);
}

long ring3_port_setsockopt(unsigned int port, int level, int option, const void *value, u32 size)
{
	return port_call(__NR_setsockopt, port, level, option, (long)value, size);
}

/*
 * Not FUTEX_PRIVATE_FLAG: the sleeper is in another process. Wakes all sleepers: one may be frozen, or die before
 * it looks. There are hardly ever two (vcpu/idle.c).
 */
void ring3_host_wake(u32 *word)
{
	ring3_host_syscall(__NR_futex, (long)word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

unsigned int ring3_skb_to_iov(const struct sk_buff *skb, struct iovec *iov)
{
	const struct skb_shared_info *sh = skb_shinfo(skb);
	unsigned int n = 0;
	int i;

	if (skb_headlen(skb)) {
		iov[n].iov_base = (void __force __user *)skb->data;
		iov[n++].iov_len = skb_headlen(skb);
	}
	for (i = 0; i < sh->nr_frags; i++) {
		iov[n].iov_base = (void __force __user *)skb_frag_address(&sh->frags[i]);
		iov[n++].iov_len = skb_frag_size(&sh->frags[i]);
	}
	return n;
}

/* Drops the first skip bytes of an array of iovecs, and moves the rest up; returns the number of entries left. */
unsigned int ring3_iov_advance(struct iovec *iov, unsigned int n, size_t skip)
{
	unsigned int i = 0;

	while (i < n && skip >= iov[i].iov_len)
		skip -= iov[i++].iov_len;
	memmove(iov, iov + i, (n - i) * sizeof(*iov));
	if (n > i) {
		iov[0].iov_base += skip;
		iov[0].iov_len -= skip;
	}
	return n - i;
}
