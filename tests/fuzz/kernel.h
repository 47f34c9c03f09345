/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel.h - as much of a kernel as the ports' receive and send paths ask for
 *
 * The driver's own files are compiled in a program against this, under AddressSanitizer: pages
 * and buffers are heap blocks of exactly their size, whose last reference frees them. What
 * the functions promise to the driver is what Linux promises; what they demand of it is checked,
 * with abort(). The fuzzer decides which allocations fail (fail_next()).
 */
#ifndef FUZZ_KERNEL_H
#define FUZZ_KERNEL_H

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>

#include "ring3.h"

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
		abort();						\
	}								\
} while (0)

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned int gfp_t;
typedef struct { u64 counter; } atomic64_t;

#define __force
#define __user
#define __rcu
#define likely(x)		(x)
#define unlikely(x)		(x)
#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, v)	((x) = (v))
#define rcu_access_pointer(p)	(p)
#define atomic64_add(n, v)	((void)((v)->counter += (n)))
#define atomic64_read(v)	((v)->counter)
#define BUILD_BUG_ON(x)		((void)sizeof(char[1 - 2 * !!(x)]))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define ALIGN(n, to)		(((n) + (to) - 1) / (to) * (to))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define clamp(v, lo, hi)	((v) < (lo) ? (lo) : (v) > (hi) ? (hi) : (v))
#define GFP_ATOMIC		0u
#define GFP_KERNEL		0u
#define __GFP_NOWARN		0u
#define __GFP_COMP		0u
#define __GFP_NORETRY		0u
#define PAGE_SIZE		4096u
#define SMP_CACHE_BYTES		64u
#define PAGE_ALLOC_COSTLY_ORDER	3
#define MAX_SKB_FRAGS		17
#define VLAN_HLEN		4
#define NETDEV_ALIGN		32
#define NETIF_F_RXCSUM		1u
#define NETIF_F_ALL_TSO		2u
#define NETIF_F_GSO_UDP_L4	4u
#define NETIF_F_HW_CSUM		8u
#ifndef EBADFD
#define EBADFD			77
#endif
#define cpu_to_be32(n)		htonl(n)
typedef uint32_t be32_t;
#define __be32			be32_t

static bool fail_next(void);	/* the fuzzer's */

/* Memory */

struct page {
	u8 *mem;
	u32 refs;
};

struct page_frag {
	struct page *page;
	u32 offset, size;
};

static long pages_alive;

static struct page *alloc_pages(gfp_t gfp, u32 order)
{
	struct page *page;

	(void)gfp;
	if (fail_next())
		return NULL;
	page = malloc(sizeof(*page));
	page->mem = aligned_alloc(PAGE_SIZE, PAGE_SIZE << order);
	page->refs = 1;
	pages_alive++;
	return page;
}
#define alloc_page(gfp)		alloc_pages(gfp, 0)
#define page_address(page)	((void *)(page)->mem)

static void get_page(struct page *page)
{
	CHECK(page->refs);
	page->refs++;
}

static void put_page(struct page *page)
{
	CHECK(page->refs);
	if (--page->refs)
		return;
	free(page->mem);
	free(page);
	pages_alive--;
}

/* net/core/sock.c's, with pages of 32 KiB. */
static bool skb_page_frag_refill(u32 n, struct page_frag *frag, gfp_t gfp)
{
	if (frag->page) {
		if (frag->page->refs == 1)
			frag->offset = 0;
		if (frag->offset + n <= frag->size)
			return true;
		put_page(frag->page);
	}
	frag->page = alloc_pages(gfp, PAGE_ALLOC_COSTLY_ORDER);
	frag->offset = 0;
	frag->size = PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER;
	return frag->page;
}

#define kmalloc(n, gfp)		malloc(n)
#define kfree(p)		free(p)

static inline u32 get_unaligned_be32(const void *p)
{
	u32 n;

	memcpy(&n, p, 4);
	return ntohl(n);
}

/* Packets */

enum { CHECKSUM_NONE, CHECKSUM_UNNECESSARY, CHECKSUM_COMPLETE, CHECKSUM_PARTIAL };

typedef struct skb_frag {
	struct page *page;
	u32 offset, size;
} skb_frag_t;

struct skb_shared_info {
	u8 nr_frags;
	skb_frag_t frags[MAX_SKB_FRAGS];
};

struct sk_buff {
	struct sk_buff *next, *prev;	/* as those of a sk_buff_head */
	struct net_device *dev;
	u8 *head, *data, *end;
	u32 len, data_len;
	u16 protocol;
	u8 ip_summed;
	char cb[48] __attribute__((aligned(8)));
	struct skb_shared_info shared;
	u32 seq;			/* the fuzzer's */
};

struct sk_buff_head {
	struct sk_buff *next, *prev;
	u32 qlen;
};

static long skbs_alive;

static struct sk_buff *skb_new(u32 room)
{
	struct sk_buff *skb = calloc(1, sizeof(*skb));

	skb->head = skb->data = malloc(room ? room : 1);
	skb->end = skb->head + room;
	skbs_alive++;
	return skb;
}

static void kfree_skb(struct sk_buff *skb)
{
	u32 i;

	if (!skb)
		return;
	for (i = 0; i < skb->shared.nr_frags; i++)
		put_page(skb->shared.frags[i].page);
	free(skb->head);
	free(skb);
	skbs_alive--;
}
#define dev_kfree_skb_any(skb)		kfree_skb(skb)
#define dev_consume_skb_any(skb)	kfree_skb(skb)

#define skb_shinfo(skb)		(&(skb)->shared)
#define skb_headlen(skb)	((skb)->len - (skb)->data_len)
#define skb_frag_address(f)	((void *)((f)->page->mem + (f)->offset))
#define skb_frag_size(f)	((f)->size)

static void *skb_put(struct sk_buff *skb, u32 n)
{
	u8 *tail = skb->data + skb_headlen(skb);

	CHECK(!skb->data_len && tail + n <= skb->end);
	skb->len += n;
	return tail;
}

static void skb_put_data(struct sk_buff *skb, const void *data, u32 n)
{
	memcpy(skb_put(skb, n), data, n);
}

static void skb_add_rx_frag(struct sk_buff *skb, int i, struct page *page, u32 off, u32 n, u32 truesize)
{
	CHECK(i == skb->shared.nr_frags && i < MAX_SKB_FRAGS && n && truesize >= n);
	skb->shared.frags[i] = (skb_frag_t){ page, off, n };
	skb->shared.nr_frags++;
	skb->len += n;
	skb->data_len += n;
}

static void __skb_queue_head_init(struct sk_buff_head *q)
{
	q->next = q->prev = (struct sk_buff *)q;
	q->qlen = 0;
}

static void skb_insert(struct sk_buff_head *q, struct sk_buff *skb, struct sk_buff *after)
{
	skb->prev = after;
	skb->next = after->next;
	after->next->prev = skb;
	after->next = skb;
	q->qlen++;
}
#define __skb_queue_tail(q, skb)	skb_insert(q, skb, (q)->prev)
#define __skb_queue_head(q, skb)	skb_insert(q, skb, (struct sk_buff *)(q))
#define skb_queue_len(q)		((q)->qlen)
#define skb_queue_empty(q)		(!(q)->qlen)
#define skb_queue_walk(q, skb)						\
	for (skb = (q)->next; skb != (struct sk_buff *)(q); skb = skb->next)

static struct sk_buff *skb_peek(struct sk_buff_head *q)
{
	return q->qlen ? q->next : NULL;
}

static void __skb_unlink(struct sk_buff *skb, struct sk_buff_head *q)
{
	CHECK(q->qlen);
	q->qlen--;
	skb->next->prev = skb->prev;
	skb->prev->next = skb->next;
}

static struct sk_buff *__skb_dequeue(struct sk_buff_head *q)
{
	struct sk_buff *skb = skb_peek(q);

	if (skb)
		__skb_unlink(skb, q);
	return skb;
}

static int skb_checksum_help(struct sk_buff *skb)
{
	skb->ip_summed = CHECKSUM_NONE;
	return fail_next() ? -ENOMEM : 0;
}

/* The kinds that Linux knows; what is in the packet is Linux's to judge. */
static int virtio_net_hdr_to_skb(struct sk_buff *skb, const struct virtio_net_hdr *hdr, bool le)
{
	(void)skb, (void)le;
	switch (hdr->gso_type & ~0x80) {
	case 0: case 1: case 3: case 4: case 5:
		return 0;
	}
	return -EINVAL;
}

static int virtio_net_hdr_from_skb(const struct sk_buff *skb, struct virtio_net_hdr *hdr, bool le,
				   bool has_data_valid, int vlan_hlen)
{
	(void)skb, (void)le, (void)has_data_valid, (void)vlan_hlen;
	memset(hdr, 0, sizeof(*hdr));
	return fail_next() ? -EINVAL : 0;
}

/* The interface */

struct net_device {
	u32 mtu, features, hw_features;
	bool carrier;
	struct {
		unsigned long rx_errors, rx_dropped, rx_length_errors, rx_frame_errors, tx_errors, tx_dropped;
	} stats;
};

struct napi_struct { int none; };
struct netdev_queue { bool stopped; };
struct ethtool_ops { int none; };
struct xdp_rxq_info { int none; };
struct bpf_prog;
struct netdev_bpf;
struct xdp_frame;

static struct netdev_queue the_queue;
static u64 received_bytes;

#define DEV_STATS_INC(dev, what)	((dev)->stats.what++)
#define netdev_get_tx_queue(dev, n)	((void)(dev), &the_queue)
#define netif_tx_stop_queue(q)		((q)->stopped = true)
#define netif_carrier_on(dev)		((dev)->carrier = true)
#define netif_carrier_off(dev)		((dev)->carrier = false)
#define netdev_err(dev, ...)		((void)(dev), (void)snprintf(NULL, 0, __VA_ARGS__))
#define netdev_info(dev, ...)		netdev_err(dev, __VA_ARGS__)
#define napi_schedule(napi)		((void)(napi))
#define dev_sw_netstats_rx_add(dev, n)	(received_bytes += (n))
#define dev_sw_netstats_tx_add(dev, k, n) ((void)0)
#define skb_record_rx_queue(skb, n)	((void)0)

static void napi_gro_receive(struct napi_struct *napi, struct sk_buff *skb);	/* the fuzzer's */

static struct sk_buff *napi_alloc_skb(struct napi_struct *napi, u32 n)
{
	(void)napi;
	return fail_next() ? NULL : skb_new(n);
}

static u16 eth_type_trans(struct sk_buff *skb, struct net_device *dev)
{
	CHECK(skb_headlen(skb) >= ETH_HLEN);
	skb->dev = dev;
	skb->data += ETH_HLEN;
	skb->len -= ETH_HLEN;
	return 0;
}

/* The host */

struct user_msghdr {
	void *msg_name;
	int msg_namelen;
	struct iovec *msg_iov;
	size_t msg_iovlen;
	void *msg_control;
	size_t msg_controllen;
	u32 msg_flags;
};

#define mmsghdr fuzz_mmsghdr	/* libc has one, of other types */
struct mmsghdr {
	struct user_msghdr msg_hdr;
	u32 msg_len;
};

#define THE_FD	7
#define ring3_port_fd(index)	((void)(index), THE_FD)
static long ring3_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4, long a5); /* the fuzzer's */

#endif
