// SPDX-License-Identifier: GPL-2.0-only
/*
 * link_peer.c - the far side of a link comes, goes, dies or misbehaves
 *
 * Theory of operation
 * -------------------
 * Each side sets `up` while its interface is up; the carrier is the far side's flag. A side that changes its flag
 * rings the doorbell, so an idle link costs nothing. A far side that is killed can't ring: so a slow timer checks
 * its keeper's pid. That works if both nodes share a PID namespace. If the pid means nothing on this side from the
 * start, it is not used.
 *
 * A far side that breaks the ring loses the link: no carrier, and its memory is not polled, until either interface
 * goes down and up again.
 *
 * A far side may have no room, and never report room (it may be stopped in a debugger, or hostile). Its ring is
 * checked from time to time, at growing intervals.
 */
#include <asm/ring3_host.h>
#include <asm/ring3_poll.h>
#include "link.h"

/* Period of the check of the far side's keeper, jiffies ... */
#define LINK_LOOK		HZ
/* ... and first period of the check of a ring without room; it doubles up to the other. */
#define LINK_LOOK_FULL		max(1, HZ / 500)

/* Opens this side's ends of both rings, at their present positions. */
void link_attach(struct link_port *link)
{
	u8 *data = (u8 *)link->mem + RING3_LINK_HEAD;
	u32 out = link->side, in = !link->side;

	link_tx_open(&link->tx, &link->mem->ring[out], data + out * link->ring_bytes,
		     link->ring_bytes);
	link_rx_open(&link->rx, &link->mem->ring[in], data + in * link->ring_bytes,
		     link->ring_bytes);
}

int link_watch(struct ring3_port *port, struct link_port *link)
{
	int err = ring3_poll_add(port->index, &link->rx.ring->head, &link->rx.ring->tail,
				 &link->self->armed, &link->self->doorbell);

	if (!err) {
		ring3_poll_cpus(port->index, &link->self->cpu, &link->peer->cpu);
		ring3_poll_room(port->index, &link->tx.ring->tail, &link->wanted, &link->self->waiting);
	}
	return err;
}

void link_unwatch(struct ring3_port *port, struct link_port *link)
{
	if (!link->polled)
		return;
	link->polled = false;
	ring3_poll_del(port->index);
}

void link_broken(struct ring3_port *port, struct link_port *link)
{
	if (!link->complained) {
		link->complained = true;
		ring3_count(port, RING3_RX_BROKEN);
		DEV_STATS_INC(port->dev, rx_fifo_errors);
		if (net_ratelimit())
			netdev_err(port->dev,
				   "the far side broke the link's ring: no carrier until either side goes down and up\n");
	}
	netif_carrier_off(port->dev);
	link_unwatch(port, link);
}

/* A far side that has come up again gets another chance. */
static void link_mend(struct ring3_port *port, struct link_port *link)
{
	struct netdev_queue *txq = ring3_txq(port);

	if (link->complained) {
		__netif_tx_lock(txq, smp_processor_id());
		link_attach(link);
		__netif_tx_unlock(txq);
		link->complained = false;
	}
	if (!link->polled && !link_watch(port, link))
		link->polled = true;
}

/*
 * Follows the far side's flag. Its value differs each time that side comes up, so a quick down and up is not
 * missed.
 */
void link_check_carrier(struct ring3_port *port, struct link_port *link)
{
	u32 up = link_load_acquire(&link->peer->up);
	s32 pid;

	if (up == link->peer_up)
		return;
	link->peer_up = up;
	link->peer_pid = 0;
	if (!up) {
		netif_carrier_off(port->dev);
		return;
	}

	pid = link_load(&link->peer->pid);
	if (pid > 0 && ring3_host_process_exists(pid))
		link->peer_pid = pid;
	link_mend(port, link);
	if (!link->rx.broken)
		netif_carrier_on(port->dev);
}

void link_look_start(struct link_port *link)
{
	link->look_period = LINK_LOOK;
	schedule_delayed_work(&link->look, round_jiffies_relative(LINK_LOOK));
}

/* The queue has been stopped for lack of room. */
void link_look_soon(struct link_port *link)
{
	if (link->tx.broken || READ_ONCE(link->look_period) == LINK_LOOK_FULL)
		return;
	WRITE_ONCE(link->look_period, LINK_LOOK_FULL);
	mod_delayed_work(system_wq, &link->look, LINK_LOOK_FULL);
}

void link_look(struct work_struct *work)
{
	struct link_port *link = container_of(to_delayed_work(work), struct link_port, look);
	unsigned int period = READ_ONCE(link->look_period);
	s32 pid = READ_ONCE(link->peer_pid);

	if (period == LINK_LOOK && pid && !ring3_host_process_exists(pid)) {
		netdev_info(link->port->dev, "the far side's node (pid %d) is gone\n", pid);
		/*
		 * Clears the flag of the dead far side, which no other thread will. A successor may have set its
		 * own since.
		 */
		link_cas(&link->peer->up, READ_ONCE(link->peer_up), 0);
	}
	/* Doorbells get lost: that of a broken ring is ignored, and a far side may fail to ring for room. */
	if (netif_tx_queue_stopped(ring3_txq(link->port)) ||
	    link_load(&link->peer->up) != READ_ONCE(link->peer_up)) {
		local_bh_disable();
		napi_schedule(&link->port->napi);
		local_bh_enable();
	}
	period = min(2 * period, LINK_LOOK);
	WRITE_ONCE(link->look_period, period);
	schedule_delayed_work(&link->look,
			      period < LINK_LOOK ? period : round_jiffies_relative(period));
}
