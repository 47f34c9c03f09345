/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hostio.h - the host calls that ports make
 *
 * Packet memory is plain memory of whichever process drives, so the host reads and writes
 * it in place. All descriptors are non-blocking; nothing here may sleep.
 */
#ifndef RING3_NET_HOSTIO_H
#define RING3_NET_HOSTIO_H

#include <linux/skbuff.h>
#include <linux/uio.h>

/* A header of ours, the linear part, the fragments. */
#define RING3_SKB_IOV	(MAX_SKB_FRAGS + 2)

long ring3_host_readv(int fd, const struct iovec *iov, unsigned int n);
long ring3_host_preadv_now(int fd, const struct iovec *iov, unsigned int n, s64 pos);
long ring3_host_writev(int fd, const struct iovec *iov, unsigned int n);
long ring3_host_sendv(int fd, const struct iovec *iov, unsigned int n);
long ring3_host_recv(int fd, void *buf, size_t len);
void ring3_host_wake(u32 *word);
bool ring3_host_pid_alive(int pid);

unsigned int ring3_skb_to_iov(const struct sk_buff *skb, struct iovec *iov);
unsigned int ring3_iov_advance(struct iovec *iov, unsigned int n, size_t skip);

#endif /* RING3_NET_HOSTIO_H */
