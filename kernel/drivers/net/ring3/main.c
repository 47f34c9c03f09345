// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - one network interface for each port of a node
 *
 * Theory of operation
 * -------------------
 * Sending is a call: the kind's xmit copies the packet into the far side's memory or hands it to the host, and is done
 * when it returns, so there is no completion. Receiving goes through NAPI: the idle loop (links) or the keeper's epoll
 * (descriptors) raises the port's interrupt, which only schedules the poll.
 *
 * The same interrupt says that there is room again. A kind without room stops the queue, and each poll of a port with a
 * stopped queue asks the kind whether it may continue (tx_resume). So each event that makes room has to raise the
 * interrupt: the idle loop checks a link for room, the link's far side rings the doorbell if it finds `waiting', and the
 * host reports the descriptor writable. The watchdog's time-out is a last check, not a repair.
 *
 * There is one queue pair. More need no other structure: a port's rings and
 * NAPI context would become an array.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/gro.h>

#include <asm/ring3_poll.h>
#include "port.h"

/* A queue is stopped while the far side does not run, for example in a debugger. That is no fault: the watchdog is slow. */
#define RING3_TX_TIMEOUT	(30 * HZ)

/* For so long, packets at a port of the host wait while programs read what they have, or until these wait. */
#define RING3_REST_NS		(50ULL * NSEC_PER_USEC)

/*
 * Bytes that one poll receives at most, before a program that reads them has its turn: what it
 * reads is then still in its processor's cache. 0: 64 packets, which may be 4 MiB.
 */
unsigned int ring3_rx_batch = 128 << 10;
module_param_named(rx_batch, ring3_rx_batch, uint, 0644);
MODULE_PARM_DESC(rx_batch, "bytes received before readers have their turn, 0: no bound");

static struct net_device *ring3_ports[RING3_PORTS_MAX];	/* RTNL */

static const struct ring3_port_ops *const ring3_kinds[] = {
	[RING3_PORT_LINK] = &ring3_link_ops,
	[RING3_PORT_TAP] = &ring3_tap_ops,
	[RING3_PORT_PASST] = &ring3_passt_ops,
	[RING3_PORT_PACKET] = &ring3_packet_ops,
	[RING3_PORT_XDP] = &ring3_xdp_ops,
};

/* Batches of what is sent */

/*
 * Frames that leave while a port is polled are one batch, whatever their ports: what is forwarded, and what the stack
 * answers. Linux says nothing of that: its xmit_more is about packets of one sender. The poll runs to its end on one CPU,
 * nothing of the node's sleeps or is sent elsewhere on it meanwhile, and then it flushes.
 */
struct ring3_batch {
	bool open;
	u32 ports;		/* bits: these have frames that wait */
	u32 frames;
};

static DEFINE_PER_CPU(struct ring3_batch, ring3_batch);

/* Frames: some 10 us of the stack's work. A far side that is idle begins with them then. */
#define RING3_BATCH	16

/* Whether a frame that is sent now need not get on its way yet. */
bool ring3_batch_add(const struct ring3_port *port)
{
	struct ring3_batch *batch = this_cpu_ptr(&ring3_batch);

	if (!batch->open)
		return false;
	batch->ports |= BIT(port->index);
	return ++batch->frames % RING3_BATCH;
}

static void ring3_batch_flush(u32 index)
{
	/* Once it is taken out there, it is freed after a grace period, which waits for polls. */
	struct net_device *dev = READ_ONCE(ring3_ports[index]);
	struct netdev_queue *txq;

	if (unlikely(!dev))
		return;
	txq = netdev_get_tx_queue(dev, 0);
	__netif_tx_lock(txq, smp_processor_id());
	/* Stopped: what waits goes when there is room. Down: it has been dropped. */
	if (likely(!netif_xmit_frozen_or_drv_stopped(txq)))
		((struct ring3_port *)netdev_priv(dev))->ops->flush(netdev_priv(dev));
	__netif_tx_unlock(txq);
}

static void ring3_batch_open(void)
{
	this_cpu_ptr(&ring3_batch)->open = true;
}

static void ring3_batch_close(void)
{
	struct ring3_batch *batch = this_cpu_ptr(&ring3_batch);
	unsigned long ports = batch->ports;
	unsigned int index;

	batch->open = false;
	batch->ports = batch->frames = 0;
	for_each_set_bit(index, &ports, RING3_PORTS_MAX)
		ring3_batch_flush(index);
}

/* Receive */

/*
 * Serialized with xmit by the queue's lock, since the kind's tx_resume may
 * send what was held back.
 */
static void ring3_try_wake(struct ring3_port *port)
{
	struct netdev_queue *txq = ring3_txq(port);

	if (likely(!netif_tx_queue_stopped(txq)))
		return;

	__netif_tx_lock(txq, smp_processor_id());
	if (netif_tx_queue_stopped(txq) && netif_device_present(port->dev) &&
	    netif_running(port->dev) && port->ops->tx_resume(port)) {
		ring3_count(port, RING3_TX_WAKES);
		netif_tx_wake_queue(txq);
	}
	__netif_tx_unlock(txq);
}

/*
 * A far side can send faster than a program here reads, and what is received then is
 * dropped at the socket. So those who read have their turn after some packets, and the
 * rest waits in the far side's queue, which makes the sender wait in the end. An idle
 * node goes on: nobody reads.
 */
static bool ring3_rx_enough(struct ring3_port *port)
{
	if (need_resched())
		return true;
	return ++port->polls >= port->ops->share && !is_idle_task(current);
}

/*
 * `later` of a kind that is a descriptor of the host's. While it is flooded, each frame is
 * an edge, so an interrupt; those that come while others have their turn are put off.
 */
void ring3_rest(struct ring3_port *port)
{
	port->rest_until = ring3_clock() + RING3_REST_NS;
	ring3_poll_owe(port->index);
}

static bool ring3_rests(struct ring3_port *port)
{
	if (likely(!port->rest_until))
		return false;
	if (is_idle_task(current) || netif_tx_queue_stopped(ring3_txq(port)) ||
	    ring3_clock() >= port->rest_until) {
		port->rest_until = 0;
		return false;
	}
	ring3_poll_owe(port->index);
	return true;
}

static int ring3_poll(struct napi_struct *napi, int budget)
{
	struct ring3_port *port = container_of(napi, struct ring3_port, napi);
	int done;

	ring3_try_wake(port);
	if (!budget)
		return 0;

	ring3_batch_open();
	done = port->ops->poll(port, budget);
	ring3_prog_flush(port);
	if (done)
		ring3_count(port, RING3_RX_POLLS);
	if (done < budget) {
		napi_complete_done(napi, done);
	} else if (ring3_rx_enough(port)) {
		done = budget - 1;
		if (napi_complete_done(napi, done))
			port->ops->later(port);
	} else {
		gro_normal_list(napi);
	}
	ring3_batch_close();
	return min(done, budget);
}

static void ring3_irq(void *arg)
{
	struct ring3_port *port = arg;

	ring3_count(port, RING3_RX_IRQS);
	if (ring3_rests(port))
		return;
	port->polls = 0;
	napi_schedule_irqoff(&port->napi);
}

/* Transmit */

void ring3_tx_done(struct ring3_port *port, struct sk_buff *skb)
{
	dev_sw_netstats_tx_add(port->dev, 1, skb->len);
	dev_consume_skb_any(skb);
}

void ring3_tx_drop(struct ring3_port *port, struct sk_buff *skb)
{
	DEV_STATS_INC(port->dev, tx_errors);
	DEV_STATS_INC(port->dev, tx_dropped);
	dev_kfree_skb_any(skb);
}

static netdev_tx_t ring3_start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct ring3_port *port = netdev_priv(dev);

	skb_tx_timestamp(skb);
	port->ops->xmit(port, skb, netdev_xmit_more() || ring3_batch_add(port));
	return NETDEV_TX_OK;
}

static void ring3_tx_timeout(struct net_device *dev, unsigned int queue)
{
	struct ring3_port *port = netdev_priv(dev);

	/* The poll asks the kind for room. */
	napi_schedule(&port->napi);
}

/* Up and down */

static int ring3_open(struct net_device *dev)
{
	struct ring3_port *port = netdev_priv(dev);
	int err;

	err = ring3_prog_open(port);
	if (err)
		return err;
	err = port->ops->open(port);
	if (err) {
		ring3_prog_stop(port);
		return err;
	}

	napi_enable(&port->napi);
	netif_tx_start_all_queues(dev);
	ring3_irq_register(port->index, ring3_irq, port);

	/* Edges that came before there was anyone to see them are lost. */
	local_bh_disable();
	napi_schedule(&port->napi);
	local_bh_enable();
	return 0;
}

static int ring3_stop(struct net_device *dev)
{
	struct ring3_port *port = netdev_priv(dev);

	ring3_irq_unregister(port->index);
	napi_disable(&port->napi);
	netif_tx_disable(dev);
	port->ops->stop(port);
	ring3_prog_stop(port);
	return 0;
}

/* Ports take every address; without this the core would refuse to be told of more (SIOCADDMULTI). */
static void ring3_set_rx_mode(struct net_device *dev)
{
}

/* Packets that the host dropped for a port count as those that a NIC drops when its queue is full. */
static void ring3_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct ring3_port *port = netdev_priv(dev);

	dev_get_tstats64(dev, stats);
	if (port->ops->missed)
		stats->rx_missed_errors = port->ops->missed(port);
}

static const struct net_device_ops ring3_netdev_ops = {
	.ndo_open		= ring3_open,
	.ndo_stop		= ring3_stop,
	.ndo_start_xmit		= ring3_start_xmit,
	.ndo_tx_timeout		= ring3_tx_timeout,
	.ndo_get_stats64	= ring3_get_stats64,
	.ndo_set_rx_mode	= ring3_set_rx_mode,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_features_check	= passthru_features_check,
	.ndo_bpf		= ring3_bpf,
	.ndo_xdp_xmit		= ring3_xdp_xmit,
};

static const struct device_type ring3_type = {
	.name = "ring3",
};

static void ring3_setup(struct net_device *dev, const struct ring3_port_ops *ops,
			const struct ring3_port_config *cfg)
{
	dev->netdev_ops = &ring3_netdev_ops;
	dev->ethtool_ops = &ring3_ethtool_ops;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->watchdog_timeo = RING3_TX_TIMEOUT;
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	dev->xdp_features = NETDEV_XDP_ACT_BASIC | NETDEV_XDP_ACT_REDIRECT | NETDEV_XDP_ACT_NDO_XMIT;
	SET_NETDEV_DEVTYPE(dev, &ring3_type);

	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = ETH_MAX_MTU - ETH_HLEN;
	dev->mtu = cfg->mtu ?: ops->mtu;

	dev->hw_features |= NETIF_F_SG | NETIF_F_RXCSUM;
	if (cfg->flags & RING3_PORT_CSUM) {
		dev->hw_features |= NETIF_F_HW_CSUM;
		if (cfg->flags & RING3_PORT_TSO)
			dev->hw_features |= NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN;
		if (cfg->flags & RING3_PORT_USO)
			dev->hw_features |= NETIF_F_GSO_UDP_L4;
	}

	if (is_valid_ether_addr(cfg->mac))
		eth_hw_addr_set(dev, cfg->mac);
	else
		eth_hw_addr_random(dev);
}

static int ring3_check(const struct ring3_port_config *cfg)
{
	if (cfg->index >= RING3_PORTS_MAX)
		return -EINVAL;
	if (cfg->kind >= ARRAY_SIZE(ring3_kinds) || !ring3_kinds[cfg->kind])
		return -EOPNOTSUPP;
	if (strnlen(cfg->name, sizeof(cfg->name)) == sizeof(cfg->name) ||
	    !dev_valid_name(cfg->name))
		return -EINVAL;
	if (cfg->mtu && (cfg->mtu < ETH_MIN_MTU || cfg->mtu > ETH_MAX_MTU - ETH_HLEN))
		return -ERANGE;
	if (!is_zero_ether_addr(cfg->mac) && !is_valid_ether_addr(cfg->mac))
		return -EADDRNOTAVAIL;
	return 0;
}

long ring3_port_add(const struct ring3_port_config *cfg)
{
	const struct ring3_port_ops *ops;
	struct ring3_port *port;
	struct net_device *dev;
	long err;

	err = ring3_check(cfg);
	if (err)
		return err;
	ops = ring3_kinds[cfg->kind];

	dev = alloc_etherdev_mqs(ALIGN(sizeof(*port), NETDEV_ALIGN) + ops->priv_size, 1, 1);
	if (!dev)
		return -ENOMEM;
	strscpy(dev->name, cfg->name, sizeof(dev->name));
	port = netdev_priv(dev);
	port->ops = ops;
	port->dev = dev;
	port->index = cfg->index;
	port->flags = cfg->flags;
	ring3_setup(dev, ops, cfg);

	err = ops->init(port, cfg);
	if (err)
		goto free;
	dev->features |= dev->hw_features;
	dev->vlan_features |= dev->hw_features;
	netif_napi_add(dev, &port->napi, ring3_poll);

	rtnl_lock();
	if (ring3_ports[cfg->index]) {
		err = -EBUSY;
	} else {
		err = register_netdevice(dev);
		if (!err) {
			ring3_ports[cfg->index] = dev;
			err = dev->ifindex;
		}
	}
	rtnl_unlock();
	if (err > 0)
		return err;

	netif_napi_del(&port->napi);
	if (ops->exit)
		ops->exit(port);
free:
	free_netdev(dev);
	return err;
}

long ring3_port_del(u32 index)
{
	struct ring3_port *port;
	struct net_device *dev;

	if (index >= RING3_PORTS_MAX)
		return -EINVAL;

	rtnl_lock();
	dev = ring3_ports[index];
	ring3_ports[index] = NULL;
	if (dev)
		unregister_netdevice(dev);
	rtnl_unlock();
	if (!dev)
		return -ENODEV;

	port = netdev_priv(dev);
	if (port->ops->exit)
		port->ops->exit(port);
	free_netdev(dev);
	return 0;
}
