/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hostio.h - host calls of ports
 *
 * Packet memory is ordinary memory in the driver's process, so the host reads and writes it in place. A port is
 * named by its index. The number of its descriptor in the driver's process is looked up for each call, since after
 * a schedule() another process may drive. EBADF: this process has no descriptor. All descriptors are non-blocking;
 * nothing here may sleep.
 */
#ifndef RING3_NET_HOSTIO_H
#define RING3_NET_HOSTIO_H

#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/uio.h>

/* A header of the driver's, the linear part, the fragments. */
#define RING3_SKB_IOV	(MAX_SKB_FRAGS + 2)

long ring3_port_readv(unsigned int port, const struct iovec *iov, unsigned int n);
long ring3_port_writev(unsigned int port, const struct iovec *iov, unsigned int n);
long ring3_port_sendv(unsigned int port, const struct iovec *iov, unsigned int n);
long ring3_port_sendmmsg(unsigned int port, struct mmsghdr *msg, unsigned int n);
long ring3_port_recvmmsg(unsigned int port, struct mmsghdr *msg, unsigned int n);
long ring3_port_recv(unsigned int port, void *buf, size_t len);
long ring3_port_kick_tx(unsigned int port);
long ring3_port_kick_rx(unsigned int port);
long ring3_port_getsockopt(unsigned int port, int level, int option, void *value, u32 *size);
long ring3_port_setsockopt(unsigned int port, int level, int option, const void *value, u32 size);
void ring3_host_wake(u32 *word);

unsigned int ring3_skb_to_iov(const struct sk_buff *skb, struct iovec *iov);
unsigned int ring3_iov_advance(struct iovec *iov, unsigned int n, size_t skip);

#endif /* RING3_NET_HOSTIO_H */
