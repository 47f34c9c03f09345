// SPDX-License-Identifier: GPL-2.0-only
/*
 * special.c - a short path for datagrams of connected UDP sockets
 *
 * Theory of operation
 *
 * A program that sends from a connected IPv4 socket, without options, through an interface without rules, makes the
 * stack check the same conditions for each packet, with the same results (Koh, Pu: "Efficient Packet Processing in
 * User-Level OSes: A Study of UML", section 4.5). udp_sendmsg() here runs before the kernel's own. It checks all of
 * the conditions at once, against live state. If each has the usual result, it builds the whole frame in one piece.
 * No result is stored, so nothing has to be invalidated: the next packet sees any change of a route, an option, a
 * rule or a neighbour.
 *
 * A packet leaves the short path at one of two points:
 *
 *	plain_socket(), plain_route()	before anything was built: to udp_sendmsg()
 *	plain_path()			the IP packet is complete: to ip_local_out(), as udp_sendmsg()
 *					would have passed it
 *
 * The frame, the counters and the results are the same as udp_sendmsg()'s. net.ring3.specialize = 0 turns the short
 * path off; net.ring3.specialized counts the packets that took it to the end.
 */
#include <linux/bpf-cgroup.h>
#include <linux/init.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/rcupdate.h>
#include <linux/sysctl.h>
#include <linux/udp.h>
#include <net/arp.h>
#include <net/ip.h>
#include <net/neighbour.h>
#include <net/pkt_sched.h>
#include <net/route.h>
#include <net/sch_generic.h>
#include <net/udp.h>

#define HEADERS	(sizeof(struct iphdr) + sizeof(struct udphdr))

static u8 specialize __read_mostly = 1;
static atomic_long_t specialized;

/* Flags of a call that do not change what is sent. */
#define PLAIN_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_BATCH)

static bool plain_socket(struct sock *sk, const struct msghdr *msg, size_t len)
{
	const struct inet_sock *inet = inet_sk(sk);
	const struct udp_sock *up = udp_sk(sk);
	u8 pmtudisc = READ_ONCE(inet->pmtudisc);

	return !msg->msg_name && !msg->msg_controllen && !(msg->msg_flags & ~PLAIN_FLAGS) &&
	       sk->sk_state == TCP_ESTABLISHED && len <= IP_MAX_MTU - HEADERS &&
	       !READ_ONCE(sk->sk_err) && !(sk->sk_shutdown & SEND_SHUTDOWN) &&
	       !READ_ONCE(up->pending) && !udp_test_bit(CORK, sk) && !READ_ONCE(up->gso_size) &&
	       !rcu_access_pointer(inet->inet_opt) && !sk->sk_no_check_tx &&
	       !READ_ONCE(sk->sk_tsflags) && !sock_flag(sk, SOCK_LOCALROUTE) &&
	       (pmtudisc == IP_PMTUDISC_WANT || pmtudisc == IP_PMTUDISC_DO) &&
	       sk_wmem_alloc_get(sk) < READ_ONCE(sk->sk_sndbuf);
}

/* A unicast route whose MTU is its device's, through Ethernet or loopback. */
static bool plain_route(const struct net *net, const struct rtable *rt, size_t len)
{
	const struct dst_entry *dst = &rt->dst;
	const struct net_device *dev = dst->dev;

	return READ_ONCE(dst->obsolete) == DST_OBSOLETE_FORCE_CHK &&
	       rt->rt_genid == rt_genid_ipv4(net) && rt->rt_type != RTN_MULTICAST &&
	       rt->rt_type != RTN_BROADCAST && !rt->rt_pmtu &&
	       rt->rt_gw_family != AF_INET6 && dst->output == ip_output && !dst_xfrm(dst) &&
	       !dst->lwtstate && !dst_metric_raw(dst, RTAX_MTU) &&
	       !dst_metric_locked(dst, RTAX_MTU) && len + HEADERS <= READ_ONCE(dev->mtu) &&
	       len + HEADERS <= SKB_MAX_ALLOC - LL_RESERVED_SPACE(dev) - 16 &&
	       (dev->features & (NETIF_F_HW_CSUM | NETIF_F_IP_CSUM)) && !dst->trailer_len;
}

/* No rule, program or other device sees the packet. */
static bool plain_path(const struct net *net, const struct net_device *dev)
{
	return !rcu_access_pointer(net->nf.hooks_ipv4[NF_INET_LOCAL_OUT]) &&
	       !rcu_access_pointer(net->nf.hooks_ipv4[NF_INET_POST_ROUTING]) &&
	       !rcu_access_pointer(dev->nf_hooks_egress) &&
	       !rcu_access_pointer(dev->tcx_egress) && !cgroup_bpf_enabled(CGROUP_INET_EGRESS) &&
	       !netif_is_l3_slave(dev) && (dev->flags & IFF_UP) && dev->real_num_tx_queues == 1;
}

/*
 * Does what __dev_queue_xmit() does if the queue is empty or absent: no interface of a node has a queue to choose,
 * a shared channel, or segments to cut. Soft interrupts are disabled.
 */
static int xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct netdev_queue *txq = netdev_get_tx_queue(dev, 0);
	struct Qdisc *q = rcu_dereference_bh(txq->qdisc);

	if (!(q->flags & TCQ_F_NOLOCK) || !(q->flags & TCQ_F_CAN_BYPASS) ||
	    !nolock_qdisc_is_empty(q) || !qdisc_run_begin(q))
		return dev_queue_xmit(skb);

	skb_reset_mac_header(skb);
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	if (dev->priv_flags & IFF_XMIT_DST_RELEASE)
		skb_dst_drop(skb);
	qdisc_bstats_cpu_update(q, skb);
	if (sch_direct_xmit(skb, q, dev, txq, NULL, false) && !nolock_qdisc_is_empty(q))
		__qdisc_run(q);
	qdisc_run_end(q);
	return NET_XMIT_SUCCESS;
}

static int output(struct net *net, struct sock *sk, struct sk_buff *skb, struct rtable *rt,
		  __be32 daddr)
{
	struct net_device *dev = rt->dst.dev;
	struct neighbour *n;
	int err;

	rcu_read_lock();		/* for the neighbour, as in ip_finish_output2() */
	rcu_read_lock_bh();		/* for the queue, as in dev_queue_xmit() */
	n = __ipv4_neigh_lookup_noref(dev, rt_nexthop(rt, daddr));
	if (!plain_path(net, dev) || !n || !(READ_ONCE(n->nud_state) & NUD_CONNECTED) ||
	    READ_ONCE(n->hh.hh_len) != ETH_HLEN) {
		rcu_read_unlock_bh();
		rcu_read_unlock();
		return ip_local_out(net, sk, skb);
	}
	IP_INC_STATS(net, IPSTATS_MIB_OUTREQUESTS);
	IP_UPD_PO_STATS(net, IPSTATS_MIB_OUT, skb->len);
	ip_send_check(ip_hdr(skb));
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	do {
		err = read_seqbegin(&n->hh.hh_lock);
		memcpy(skb->data - HH_DATA_MOD, n->hh.hh_data, HH_DATA_MOD);
	} while (read_seqretry(&n->hh.hh_lock, err));
	__skb_push(skb, ETH_HLEN);
	atomic_long_inc(&specialized);
	err = xmit(skb, dev);
	rcu_read_unlock_bh();
	rcu_read_unlock();
	return err;
}

static int special_udp_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	struct inet_sock *inet = inet_sk(sk);
	struct net *net = sock_net(sk);
	struct dst_entry *dst;
	struct sk_buff *skb;
	struct rtable *rt;
	struct iphdr *iph;
	struct udphdr *uh;
	__be32 saddr, daddr;
	__be16 sport, dport;
	unsigned int room;
	int err, ttl;

	if (!READ_ONCE(specialize) || !plain_socket(sk, msg, len))
		return udp_sendmsg(sk, msg, len);
	dst = sk_dst_get(sk);
	if (!dst)
		return udp_sendmsg(sk, msg, len);
	rt = dst_rtable(dst);
	if (!plain_route(net, rt, len))
		goto generic;
	/*
	 * With the route: a thread that has the vCPU while memory is allocated, or during a long copy, may connect the
	 * socket to another peer.
	 */
	saddr = inet->inet_saddr;
	daddr = inet->inet_daddr;
	sport = inet->inet_sport;
	dport = inet->inet_dport;

	/* Headers before the payload, as in __ip_append_data(). */
	room = LL_RESERVED_SPACE(dst->dev);
	skb = alloc_skb(room + 15 + HEADERS + len, sk->sk_allocation);
	if (unlikely(!skb))
		goto generic;
	skb_reserve(skb, room);
	skb_set_owner_w(skb, sk);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*iph));
	iph = __skb_put(skb, HEADERS);
	uh = (struct udphdr *)(iph + 1);
	iph->saddr = saddr;
	iph->daddr = daddr;
	uh->source = sport;
	uh->dest = dport;
	skb_dst_set(skb, dst);
	if (unlikely(!copy_from_iter_full(__skb_put(skb, len), len, &msg->msg_iter))) {
		kfree_skb(skb);
		IP_INC_STATS(net, IPSTATS_MIB_OUTDISCARDS);
		return -EFAULT;
	}

	*(__be16 *)iph = htons((4 << 12) | (5 << 8) | READ_ONCE(inet->tos));
	iph->tot_len = htons(HEADERS + len);
	iph->frag_off = htons(IP_DF);
	ttl = READ_ONCE(inet->uc_ttl);
	iph->ttl = ttl < 0 ? ip4_dst_hoplimit(dst) : ttl;
	iph->protocol = IPPROTO_UDP;
	ip_select_ident(net, skb, sk);
	uh->len = htons(sizeof(*uh) + len);
	uh->check = 0;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->ignore_df = ip_sk_ignore_df(sk);	/* a rule may choose another route, with a smaller MTU */
	udp4_hwcsum(skb, iph->saddr, iph->daddr);
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);

	err = output(net, sk, skb, rt, iph->daddr);
	/* As ip_send_skb() and udp_send_skb() do. */
	if (err > 0)
		err = net_xmit_errno(err);
	if (likely(!err)) {
		UDP_INC_STATS(net, UDP_MIB_OUTDATAGRAMS, 0);
		return len;
	}
	IP_INC_STATS(net, IPSTATS_MIB_OUTDISCARDS);
	if (err == -ENOBUFS) {
		UDP_INC_STATS(net, UDP_MIB_SNDBUFERRORS, 0);
		if (!inet_test_bit(RECVERR, sk))
			return len;
	}
	return err;

generic:
	dst_release(dst);
	return udp_sendmsg(sk, msg, len);
}

static struct ctl_table special_table[] = {
	{
		.procname	= "specialize",
		.data		= &specialize,
		.maxlen		= sizeof(specialize),
		.mode		= 0644,
		.proc_handler	= proc_dou8vec_minmax,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
	{
		.procname	= "specialized",
		.data		= &specialized.counter,
		.maxlen		= sizeof(specialized.counter),
		.mode		= 0444,
		.proc_handler	= proc_doulongvec_minmax,
	},
};

static int __init special_init(void)
{
	if (!register_net_sysctl(&init_net, "net/ring3", special_table))
		return -ENOMEM;
	/* Sockets call through this at each call. */
	udp_prot.sendmsg = special_udp_sendmsg;
	return 0;
}
device_initcall(special_init);
