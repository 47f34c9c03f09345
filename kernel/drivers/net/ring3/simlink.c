// SPDX-License-Identifier: GPL-2.0-only
/*
 * simlink.c - a cable between two simulated hosts (the sim flavour)
 *
 * Theory of operation
 * -------------------
 * A pair of Ethernet interfaces, one for each host. Each end sends into a *wire* of its own, which ends at the other:
 *
 *	qdisc -> xmit: the packet's bits leave, `rate' at a time -> it flies for `delay' -> the far interface receives it
 *
 * While bits leave, the interface's queue is stopped, as that of a real one whose ring is full. So the qdisc above
 * (fifo, fq_codel, cake, ...) is the only queue before the bottleneck, and sees its true rate. A packet that is lost has
 * taken its time on the wire. Jitter and reordering change the order of what flies, as netem's do.
 *
 * A wire has at most one event: its next packet arrives, or its last bit has left and the queue may go on. The events of all
 * wires are in one heap (simlink_heap.h), with one timer. Events of one instant come in the order in which they were asked for. So what
 * happens depends on the packets, the wires' seeds and nothing else.
 *
 * In a large network little of the memory that an event needs is in the caches. The heap tells which events are next, so their memory is
 * asked for while this one's packet is on its way through the host (look_ahead(), look_closer()).
 *
 * A packet without a delay goes to the receiver at once, by way of the backlog.
 *
 * Packets arrive in the soft interrupt of the timer, and xmit runs with such interrupts off. There is one CPU: to switch them off
 * is all the locking there is.
 */
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/idr.h>
#include <linux/inetdevice.h>
#include <linux/init.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/prefetch.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>

#include "simlink.h"
#include "simlink_heap.h"

/* From one end to the other: the private part of the end's interface. */
struct wire {
	struct net_device *from, *to;
	u64 rate;			/* bits per second; 0: no limit */
	u64 delay, jitter;		/* ns */
	u32 loss, corrupt, duplicate, reorder;	/* of 2^32 */
	u64 random;			/* state of the generator */
	u64 leaves;			/* ns: when the last bit leaves or has left */
	u64 rest;			/* of the last division by the rate */
	struct sk_buff_head flying;	/* by their time of arrival */
	u32 number;			/* in the heap */
	bool is_cut;			/* the carrier was taken away at this end */
};

/* skb->cb of one that flies. */
struct flight {
	u64 arrives;			/* ns */
};

static struct heap heap;
static struct wire **wires;		/* by number */
static u32 room;			/* for so many of them */
static DEFINE_IDA(numbers);
static struct hrtimer timer;
static bool is_serving;			/* the timer is set anew after that */

static struct flight *flight_of(struct sk_buff *skb)
{
	return (struct flight *)skb->cb;
}

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static u64 draw(struct wire *wire)
{
	u64 z = wire->random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Nothing is drawn for what never happens. */
static bool happens(struct wire *wire, u32 share)
{
	return unlikely(share) && draw(wire) >> 32 <= share;
}

#define DRAWS	3	/* of four numbers of 16 bits each */

/* The sum of twelve uniform numbers has a normal distribution, nearly, of deviation 1: here of 2^16. */
static s64 deviation(struct wire *wire)
{
	s64 sum = 0;
	u64 four;
	int i;

	for (i = 0; i < DRAWS; i++) {
		four = draw(wire);
		sum += (four & 0xffff) + (four >> 16 & 0xffff) + (four >> 32 & 0xffff) + (four >> 48);
	}
	return sum - DRAWS * 4 * 0x10000 / 2;
}

static void set_timer(void)
{
	u64 at;

	if (is_serving || !heap.count)
		return;
	at = heap.events[0].at;
	if (!hrtimer_is_queued(&timer) || hrtimer_get_expires(&timer) != at)
		hrtimer_start(&timer, at, HRTIMER_MODE_ABS_SOFT);
}

static void set_event(struct wire *wire)
{
	struct sk_buff *skb = skb_peek(&wire->flying);
	u32 place = heap.places[wire->number];
	u64 at = U64_MAX;

	if (skb)
		at = flight_of(skb)->arrives;
	if (netif_queue_stopped(wire->from) && netif_running(wire->from))
		at = min(at, wire->leaves);
	if (place != HEAP_NONE && heap.events[place].at == at)
		return;
	if (at == U64_MAX) {
		heap_remove(&heap, wire->number);
		return;
	}
	heap_set(&heap, wire->number, at);
	set_timer();
}

static void fetch(const void *from, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += HEAP_LINE)
		prefetch(from + at);
}

/* The next event's packet and receiver, and the wires of those after it. */
static void look_ahead(void)
{
	const struct wire *wire;
	u32 i;

	for (i = 1; i <= HEAP_CHILDREN && i < heap.count; i++)
		fetch(wires[heap.events[i].wire], sizeof(*wire));
	if (!heap.count)
		return;
	wire = wires[heap.events[0].wire];
	fetch(wire->flying.next, sizeof(struct sk_buff));
	fetch(wire->to, offsetofend(struct net_device, __cacheline_group_end__net_device_read_rx));
}

/* What the packet and its receiver of the next event point at. */
static void look_closer(void)
{
	const struct wire *wire;
	const struct sk_buff *skb;

	if (!heap.count)
		return;
	wire = wires[heap.events[0].wire];
	skb = skb_peek(&wire->flying);
	if (!skb)
		return;
	fetch(skb->data, 2 * HEAP_LINE);
	fetch(skb_end_pointer(skb), HEAP_LINE);
	prefetch(skb->next);
	fetch(rcu_access_pointer(wire->to->ip_ptr), sizeof(struct in_device));
}

/* In the soft interrupt, or where it is off. */
static bool is_received(struct wire *wire, struct sk_buff *skb)
{
	unsigned int len = skb->len;

	/* Forgets what the sending host knows of the packet; frees it if the far end is down or its MTU is smaller. */
	if (__dev_forward_skb(wire->to, skb))
		return false;
	dev_sw_netstats_rx_add(wire->to, len);
	return true;
}

static enum hrtimer_restart serve(struct hrtimer *timer)
{
	u64 now = ktime_get();
	struct sk_buff *skb;
	struct wire *wire;

	is_serving = true;
	while (heap.count && heap.events[0].at <= now) {
		wire = wires[heap.events[0].wire];
		skb = skb_peek(&wire->flying);
		if (skb && flight_of(skb)->arrives <= now)
			__skb_unlink(skb, &wire->flying);
		else
			skb = NULL;
		if (netif_queue_stopped(wire->from) && wire->leaves <= now)
			netif_wake_queue(wire->from);
		set_event(wire);
		look_ahead();
		if (skb && is_received(wire, skb))
			netif_receive_skb(skb);
		look_closer();
	}
	is_serving = false;
	if (!heap.count)
		return HRTIMER_NORESTART;
	hrtimer_set_expires(timer, heap.events[0].at);
	return HRTIMER_RESTART;
}

static void fly(struct wire *wire, struct sk_buff *skb, u64 arrives)
{
	struct sk_buff *before = skb_peek_tail(&wire->flying);

	while (before && flight_of(before)->arrives > arrives)
		before = skb_queue_is_first(&wire->flying, before) ? NULL : skb_queue_prev(&wire->flying, before);
	flight_of(skb)->arrives = arrives;
	if (before)
		__skb_queue_after(&wire->flying, before, skb);
	else
		__skb_queue_head(&wire->flying, skb);
}

/* Inverts a bit. What the sending interface would have summed up is summed up before, so that the receiver notices. */
static bool corrupt(struct wire *wire, struct sk_buff *skb)
{
	u32 bit;

	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))
		return false;
	if (skb_linearize(skb) || skb_ensure_writable(skb, skb->len))
		return false;
	bit = (draw(wire) >> 32) * skb->len * BITS_PER_BYTE >> 32;
	skb->data[bit / BITS_PER_BYTE] ^= 1 << bit % BITS_PER_BYTE;
	return true;
}

/* When the packet's last bit leaves. */
static u64 send_bits(struct wire *wire, unsigned int len, u64 now)
{
	u64 bits = (u64)len * BITS_PER_BYTE * NSEC_PER_SEC;

	if (!wire->rate)
		return now;
	/* Back to back with the one before, what was left of a nanosecond counts. */
	if (wire->leaves < now) {
		wire->leaves = now;
		wire->rest = 0;
	}
	bits += wire->rest;
	wire->leaves += div64_u64_rem(bits, wire->rate, &wire->rest);
	if (wire->leaves > now)
		netif_stop_queue(wire->from);
	return wire->leaves;
}

static u64 arrival(struct wire *wire, u64 leaves)
{
	s64 delay = wire->delay;

	if (happens(wire, wire->reorder))
		return leaves;
	if (wire->jitter)
		delay += (s64)wire->jitter * deviation(wire) >> 16;
	return leaves + max(delay, 0);
}

static bool is_joined(const struct wire *wire)
{
	const struct wire *back = netdev_priv(wire->to);

	return netif_running(wire->from) && netif_running(wire->to) && !wire->is_cut && !back->is_cut;
}

static netdev_tx_t xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct wire *wire = netdev_priv(dev);
	u64 now = ktime_get(), leaves, arrives;
	struct sk_buff *second = NULL;

	if (unlikely(!is_joined(wire))) {
		dev_core_stats_tx_dropped_inc(dev);
		kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	skb_tx_timestamp(skb);
	skb_orphan(skb);
	dev_sw_netstats_tx_add(dev, 1, skb->len);
	leaves = send_bits(wire, skb->len, now);
	if (happens(wire, wire->loss) || (happens(wire, wire->corrupt) && !corrupt(wire, skb))) {
		dev_core_stats_rx_dropped_inc(wire->to);
		kfree_skb(skb);
		skb = NULL;
		goto out;
	}
	if (happens(wire, wire->duplicate))
		second = skb_clone(skb, GFP_ATOMIC);
	arrives = arrival(wire, leaves);
	if (arrives <= now && skb_queue_empty(&wire->flying) && !second) {
		if (is_received(wire, skb))
			netif_rx(skb);
		goto out;
	}
	fly(wire, skb, arrives);
	if (second)
		fly(wire, second, arrival(wire, leaves));
out:
	set_event(wire);
	return NETDEV_TX_OK;
}

/* Nothing flies any more, and bits may leave again. */
static void clear(struct wire *wire)
{
	__skb_queue_purge(&wire->flying);
	wire->leaves = 0;
	wire->rest = 0;
	if (netif_running(wire->from))
		netif_wake_queue(wire->from);
	set_event(wire);
}

/* Under RTNL: an end went up or down, or the cable was plugged or pulled. */
static void plug(struct wire *wire)
{
	bool is_on = is_joined(wire);
	struct net_device *ends[] = { wire->from, wire->to };
	int i;

	local_bh_disable();
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		if (is_on)
			netif_carrier_on(ends[i]);
		else
			netif_carrier_off(ends[i]);
		if (!is_on)
			clear(netdev_priv(ends[i]));
	}
	local_bh_enable();
}

static int open(struct net_device *dev)
{
	netif_start_queue(dev);
	plug(netdev_priv(dev));
	return 0;
}

static int stop(struct net_device *dev)
{
	netif_stop_queue(dev);
	plug(netdev_priv(dev));
	return 0;
}

static int change_carrier(struct net_device *dev, bool is_on)
{
	struct wire *wire = netdev_priv(dev);

	wire->is_cut = !is_on;
	plug(wire);
	return 0;
}

/* Under RTNL. Room for the events of so many wires. */
static int make_room(u32 count)
{
	struct heap_event *events;
	struct wire **others;
	u32 *places;

	if (count <= room)
		return 0;
	count = roundup_pow_of_two(max(count, 64U));
	/* events[1] is at the start of a line. */
	events = kvmalloc_array(count + HEAP_CHILDREN, sizeof(*events), GFP_KERNEL);
	others = kvcalloc(count, sizeof(*others), GFP_KERNEL);
	places = kvmalloc_array(count, sizeof(*places), GFP_KERNEL);
	if (!events || !others || !places) {
		kvfree(events);
		kvfree(others);
		kvfree(places);
		return -ENOMEM;
	}
	events += HEAP_CHILDREN - 1;
	memset(places, 0xff, count * sizeof(*places));
	local_bh_disable();
	if (room) {
		memcpy(events, heap.events, heap.count * sizeof(*events));
		memcpy(others, wires, room * sizeof(*others));
		memcpy(places, heap.places, room * sizeof(*places));
		swap(heap.events, events);
		swap(heap.places, places);
		swap(wires, others);
		events -= HEAP_CHILDREN - 1;
	} else {
		heap = (struct heap){ .events = events, .places = places };
		wires = others;
		events = NULL;
		others = NULL;
		places = NULL;
	}
	room = count;
	local_bh_enable();
	kvfree(events);
	kvfree(others);
	kvfree(places);
	return 0;
}

/* Also when an interface could not be registered, or goes. */
static void uninit(struct net_device *dev)
{
	struct wire *wire = netdev_priv(dev);

	local_bh_disable();
	__skb_queue_purge(&wire->flying);
	heap_remove(&heap, wire->number);
	wires[wire->number] = NULL;
	local_bh_enable();
	ida_free(&numbers, wire->number);
}

static int init(struct net_device *dev)
{
	struct wire *wire = netdev_priv(dev);
	int number = ida_alloc(&numbers, GFP_KERNEL), err;

	if (number < 0)
		return number;
	err = make_room(number + 1);
	if (err) {
		ida_free(&numbers, number);
		return err;
	}
	__skb_queue_head_init(&wire->flying);
	wire->number = number;
	wires[number] = wire;
	return 0;
}

static const struct net_device_ops simlink_ops = {
	.ndo_init		= init,
	.ndo_uninit		= uninit,
	.ndo_open		= open,
	.ndo_stop		= stop,
	.ndo_start_xmit		= xmit,
	.ndo_change_carrier	= change_carrier,
	.ndo_get_stats64	= dev_get_tstats64,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_features_check	= passthru_features_check,
};

#define FEATURES	(NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA | NETIF_F_RXCSUM)

static void setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &simlink_ops;
	dev->priv_flags &= ~IFF_TX_SKB_SHARING;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE | IFF_NO_QUEUE;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->features |= FEATURES;
	dev->hw_features |= FEATURES;
	dev->vlan_features |= FEATURES;
	dev->max_mtu = ETH_MAX_MTU;
	dev->needs_free_netdev = true;
}

static void join(struct net_device *dev, struct net_device *peer)
{
	struct wire *wire = netdev_priv(dev);

	wire->from = dev;
	wire->to = peer;
}

/* The bits that have not left yet leave at the new rate. */
static void change_rate(struct wire *wire, u64 rate)
{
	u64 now = ktime_get();

	if (wire->leaves > now)
		wire->leaves = now + (rate ? mul_u64_u64_div_u64(wire->leaves - now, wire->rate, rate) : 0);
	wire->rate = rate;
	wire->rest = 0;
	/* With a rate, an interface has packets that wait. */
	if (rate)
		wire->from->priv_flags &= ~IFF_NO_QUEUE;
	set_event(wire);
}

/* What is said of an end. */
static void set(struct wire *wire, struct nlattr *data[])
{
	u64 *const wide[] = {
		[SIMLINK_DELAY] = &wire->delay, [SIMLINK_JITTER] = &wire->jitter, [SIMLINK_SEED] = &wire->random,
	};
	u32 *const shares[] = {
		[SIMLINK_LOSS] = &wire->loss, [SIMLINK_CORRUPT] = &wire->corrupt,
		[SIMLINK_DUPLICATE] = &wire->duplicate, [SIMLINK_REORDER] = &wire->reorder,
	};
	int i;

	for (i = 0; i <= SIMLINK_MAX; i++) {
		if (!data[i])
			continue;
		if (i < ARRAY_SIZE(wide) && wide[i])
			*wide[i] = nla_get_u64(data[i]);
		if (i < ARRAY_SIZE(shares) && shares[i])
			*shares[i] = nla_get_u32(data[i]);
	}
	if (data[SIMLINK_RATE])
		change_rate(wire, nla_get_u64(data[SIMLINK_RATE]));
}

static struct rtnl_link_ops link_ops;

static struct net_device *make_peer(struct nlattr *data[])
{
	char name[IFNAMSIZ];
	struct net_device *peer;
	struct net *net;
	int err;

	net = get_net_ns_by_fd(nla_get_u32(data[SIMLINK_PEER_NETNS]));
	if (IS_ERR(net))
		return ERR_CAST(net);
	nla_strscpy(name, data[SIMLINK_PEER_NAME], sizeof(name));
	peer = alloc_netdev(sizeof(struct wire), name, NET_NAME_USER, setup);
	if (!peer) {
		put_net(net);
		return ERR_PTR(-ENOMEM);
	}
	dev_net_set(peer, net);
	put_net(net);
	eth_hw_addr_set(peer, nla_data(data[SIMLINK_PEER_ADDRESS]));
	peer->rtnl_link_ops = &link_ops;
	err = register_netdevice(peer);
	if (err) {
		free_netdev(peer);
		return ERR_PTR(err);
	}
	netif_carrier_off(peer);
	return peer;
}

static int new_link(struct net *net, struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		    struct netlink_ext_ack *extack)
{
	struct net_device *peer;
	int err;

	if (!data || !data[SIMLINK_PEER_NAME] || !data[SIMLINK_PEER_NETNS] || !data[SIMLINK_PEER_ADDRESS]) {
		NL_SET_ERR_MSG(extack, "the other end needs a name, a network namespace and an address");
		return -EINVAL;
	}
	peer = make_peer(data);
	if (IS_ERR(peer))
		return PTR_ERR(peer);
	join(dev, peer);
	join(peer, dev);
	err = register_netdevice(dev);
	if (err) {
		unregister_netdevice(peer);
		return err;
	}
	netif_carrier_off(dev);
	set(netdev_priv(dev), data);
	return 0;
}

static int change_link(struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		       struct netlink_ext_ack *extack)
{
	if (!data)
		return 0;
	local_bh_disable();
	set(netdev_priv(dev), data);
	local_bh_enable();
	return 0;
}

/* Both ends go at once: neither is sent to when the other is no more. */
static void delete_link(struct net_device *dev, struct list_head *head)
{
	struct wire *wire = netdev_priv(dev);

	unregister_netdevice_queue(wire->to, head);
	unregister_netdevice_queue(dev, head);
}

static const struct nla_policy policy[SIMLINK_MAX + 1] = {
	[SIMLINK_PEER_NAME]	= { .type = NLA_STRING, .len = IFNAMSIZ - 1 },
	[SIMLINK_PEER_NETNS]	= { .type = NLA_U32 },
	[SIMLINK_PEER_ADDRESS]	= NLA_POLICY_EXACT_LEN(ETH_ALEN),
	[SIMLINK_RATE]		= { .type = NLA_U64 },
	[SIMLINK_DELAY]		= { .type = NLA_U64 },
	[SIMLINK_JITTER]	= { .type = NLA_U64 },
	[SIMLINK_LOSS]		= { .type = NLA_U32 },
	[SIMLINK_CORRUPT]	= { .type = NLA_U32 },
	[SIMLINK_DUPLICATE]	= { .type = NLA_U32 },
	[SIMLINK_REORDER]	= { .type = NLA_U32 },
	[SIMLINK_SEED]		= { .type = NLA_U64 },
};

static struct rtnl_link_ops link_ops = {
	.kind		= "simlink",
	.priv_size	= sizeof(struct wire),
	.setup		= setup,
	.newlink	= new_link,
	.changelink	= change_link,
	.dellink	= delete_link,
	.policy		= policy,
	.maxtype	= SIMLINK_MAX,
};

static int __init simlink_init(void)
{
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer.function = serve;
	return rtnl_link_register(&link_ops);
}
device_initcall(simlink_init);
