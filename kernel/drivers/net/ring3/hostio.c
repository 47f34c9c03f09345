// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostio.c - the host calls that ports make
 *
 * Numbers and structures are those of the node's own user ABI, which is the host's.
 */
#include <uapi/linux/fs.h>
#include <uapi/linux/futex.h>
#include <linux/socket.h>

#include <asm/ring3.h>
#include <asm/unistd.h>

#include "hostio.h"

long ring3_host_readv(int fd, const struct iovec *iov, unsigned int n)
{
	return ring3_host_syscall(__NR_readv, fd, (long)iov, n, 0, 0, 0);
}

/* What the host has of a file in memory; it waits for no disk. */
long ring3_host_preadv_now(int fd, const struct iovec *iov, unsigned int n, s64 pos)
{
	return ring3_host_syscall(__NR_preadv2, fd, (long)iov, n, pos, 0, RWF_NOWAIT);
}

long ring3_host_writev(int fd, const struct iovec *iov, unsigned int n)
{
	return ring3_host_syscall(__NR_writev, fd, (long)iov, n, 0, 0, 0);
}

/* For stream sockets: a far side that is gone must not raise SIGPIPE in the program. */
long ring3_host_sendv(int fd, const struct iovec *iov, unsigned int n)
{
	struct user_msghdr msg = {
		.msg_iov = (struct iovec __force __user *)iov,
		.msg_iovlen = n,
	};

	return ring3_host_syscall(__NR_sendmsg, fd, (long)&msg, MSG_DONTWAIT | MSG_NOSIGNAL,
				  0, 0, 0);
}

long ring3_host_recv(int fd, void *buf, size_t len)
{
	return ring3_host_syscall(__NR_recvfrom, fd, (long)buf, len, MSG_DONTWAIT, 0, 0);
}

/*
 * Not FUTEX_PRIVATE_FLAG: the sleeper is another process. All of them: one alone may be frozen, or die
 * before it looks. There are hardly ever two (watch.c).
 */
void ring3_host_wake(u32 *word)
{
	ring3_host_syscall(__NR_futex, (long)word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

bool ring3_host_pid_alive(int pid)
{
	return ring3_host_syscall(__NR_kill, pid, 0, 0, 0, 0, 0) != -ESRCH;
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

/* Drops the first skip bytes of an array, which moves up; entries left. */
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
