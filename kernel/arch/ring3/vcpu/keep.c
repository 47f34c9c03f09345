// SPDX-License-Identifier: GPL-2.0
/*
 * keep.c - the keeper's own threads: KEEP, one for each vCPU, and ring3-ports
 *
 * Theory of operation
 * -------------------
 * KEEP sleeps in the host until a deadline, a kick or a doorbell of a link, raises the interrupts
 * that follow from it, and drives the vCPU where nobody else does. What a poller sees too it
 * leaves to the poller. ring3-ports (in the keeper's Rust) waits for the host's descriptors of
 * ports and comes in by RING3_NR_DRIVE; ring3_host_rest() keeps it away from the host for as long as
 * others look at them.
 * While threads watch (idle.c) it is away.
 *
 * As all of vcpu/ this runs on a host thread's own stack. tests/src/bin/models has the
 * deadline's protocol.
 */
#include <linux/kernel.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include "../clock/clock.h"
#include "../kernel/errand.h"
#include "internal.h"

/* KEEP's state. */
struct keeping {
	struct ring3_thread *tb;
	struct ring3_vcpu *vcpu;
	struct ring3_cpu *cpu;
	unsigned long host_sp;
	bool links;			/* this vCPU has the links */

	/* Of this turn. */
	u32 kick;			/* the kick word when the turn began */
	u32 *words[RING3_PORTS_MAX];	/* the links' doorbells, */
	u32 values[RING3_PORTS_MAX];	/* as they were then */
	int n;
	u64 now, deadline;
	u32 ready;			/* interrupts to be raised */
	u32 watcher;			/* tid of the thread that watches: idle.c */
	u32 watches;			/* that began since the last turn */
	bool away;			/* a thread watches, or did so lately */
	bool exits;			/* programs look at the ports on the way out of their calls */
	bool takes;			/* packets were taken since the last turn */

	/* From turn to turn. */
	u32 kicked, taken;		/* as they were in the last one */
	u64 hot_until, warm_until, away_until;
	u64 seen;			/* when a program was last seen to drive */
	u32 held_by;			/* the owner that KEEP has met, */
	u64 held_since;			/* in each turn since */
	bool asked;			/* the poller has been left to see to it once */
	u64 again;
};

static void drive(struct keeping *k)
{
	ring3_enter_drive(k->tb);
	k->tb->host_sp = k->host_sp;
}

/* The keeper's other work, and what has happened since the last turn. */
static void gather(struct keeping *k)
{
	struct ring3_cpu *cpu = k->cpu;

	k->kick = host_load(vcpu_kick_word(k->vcpu));
	ring3_populate_serve(k->vcpu);
	if (k->links) {
		ring3_errands();
		k->n = ring3_poll_doorbells(k->words, k->values, RING3_PORTS_MAX);
		ring3_take_inbox();
	}
	k->now = ring3_clock();
	k->watches = host_xchg(&cpu->watches, 0);
	if (host_xchg(&cpu->watcher_lost, 0))
		k->away_until = 0;
	else if (k->watches)
		k->away_until = k->now + AWAY_NS;
	k->away = k->now < k->away_until;
	host_xchg(&cpu->away, k->away);
}

/* The next event is a tick, and not overdue. */
static bool is_tick(const struct keeping *k)
{
	return host_load(&k->cpu->tick) && ring3_clock_next(k->vcpu) + TICK_NS > k->now;
}

/*
 * Decides until when to wait, and says so in keep_until. Threads that go idle and come back restart the tick each time. If KEEP
 * were told of each, a message to an idle node would wake it, too. So it comes every KEEP_TICKS_NS for some time, and is not told of ticks.
 */
static void decide(struct keeping *k)
{
	struct ring3_cpu *cpu = k->cpu;
	u64 comings = k->watches + k->kick - k->kicked;
	u32 before = k->taken;
	bool hot, warm;

	k->kicked = k->kick;
	if (comings * KEEP_HOT_EACH_NS >= k->now - READ_ONCE(cpu->keep_at) && comings > 1)
		k->hot_until = k->now + KEEP_HOT_NS;
	if (comings)
		k->warm_until = k->now + KEEP_WARM_NS;
	hot = k->now < k->hot_until;
	warm = k->now < k->warm_until;
	WRITE_ONCE(cpu->keep_hot, hot);
	WRITE_ONCE(cpu->ticks_served, warm);
	/* Again if an earlier deadline was set meanwhile, so that nobody kicked. */
	do {
		k->deadline = ring3_clock_next(k->vcpu);
		if (warm)
			k->deadline = is_tick(k) ? k->now + KEEP_TICKS_NS : min(k->deadline, k->now + KEEP_TICKS_NS);
		__atomic_store_n(&cpu->keep_until, k->deadline, __ATOMIC_SEQ_CST);
	} while (ring3_keep_misses(k->vcpu));

	WRITE_ONCE(cpu->keep_at, k->now);
	if (host_load(&k->vcpu->driver) != (unsigned long)k->tb)
		k->seen = k->now;
	k->exits = host_load(&k->vcpu->polled) & R3_EXIT_POLL;
	cpu->keep_watches = k->links && (k->seen == k->now || (k->exits && k->now - k->seen < KEEP_SEEN_NS));
	k->taken = k->links ? ring3_poll_taken() : 0;
	k->takes = k->taken != before;
	/*
	 * A program that takes packets sees to the time too, on the way out of its calls or while it
	 * polls. To come at each tick, only to find that, would take a CPU from it or its peer a
	 * thousand times a second. It has stopped if we come so late and nobody has seen to it.
	 */
	k->watcher = host_load(&cpu->watch);
	if (k->deadline != U64_MAX &&
	    ((k->watcher && !hot && READ_ONCE(cpu->watch_until) <= k->deadline) ||
	     (k->exits && k->seen == k->now && cpu->keep_watches && k->takes))) {
		k->deadline += KEEP_WATCH_NS;
		WRITE_ONCE(cpu->keep_hot, false);	/* nobody may rely on keep_until */
	}
	k->ready = k->links ? ring3_poll_check() : 0;
	if (k->now >= k->deadline) {
		k->ready |= RING3_IRQ_TIMER;
		/* Who watches does not: it was stopped, or died. */
		host_cas(&cpu->watch, k->watcher, 0);
	}
}

/*
 * One that polls sees it too, and sooner. To take the vCPU from it would
 * send it to sleep and arm the links: every packet costs a wake-up then.
 * So does one that makes calls, on its way out of them. From a flood we would take, on a
 * CPU of our own, more than its socket holds, while it shares its CPU with the sender.
 * One that watches has been woken by the same ring.
 */
static bool others_see_it(const struct keeping *k, u32 owner)
{
	return (owner & RING3_OWNER_POLLING) ||
	       (!(k->ready & RING3_IRQ_TIMER) && (k->watcher || (k->exits && k->cpu->keep_watches)));
}

/* Sees to what is ready. False: the next turn at once, without a wait. */
static bool act(struct keeping *k)
{
	u32 before, owner, ready = k->ready;

	/* It has taken packets since we came last: what is there now is the next of them. */
	if (k->exits && k->cpu->keep_watches && k->takes && !(ready & RING3_IRQ_TIMER) &&
	    !vcpu_work(k->vcpu)) {
		k->asked = false;
		k->deadline = min(k->deadline, k->now + KEEP_WATCH_NS);
		k->again = KEEP_AGAIN_NS;
		return true;
	}
	/* The way past is a turn that finds nothing new and sleeps. */
	if (ready || vcpu_work(k->vcpu)) {
		before = ready ? host_or(vcpu_pending(k->vcpu), ready) : 0;
		owner = host_load(&k->vcpu->owner);
		/*
		 * What is still there in a moment is left because neither runs. Else they do, and
		 * to look again and again would take their CPU from them.
		 */
		if (others_see_it(k, owner) && (before & ready) != ready) {
			k->asked = !k->asked || (ready & RING3_IRQ_TIMER);
			k->deadline = k->asked ? k->now + KEEP_AGAIN_NS : min(k->deadline, k->now + KEEP_WATCH_NS);
			k->again = KEEP_AGAIN_NS;
			return true;
		}
		owner &= RING3_OWNER_TID;
		k->asked = false;
		drive(k);
		if (!owner || owner != k->held_by) {
			k->held_by = owner;
			k->held_since = k->now;
		} else if (k->now - k->held_since > HOLDER_NS) {
			k->held_since = k->now;
			ring3_take_from_dead(k->vcpu);
		}
		/* What others have raised is served, or its owner knows of it. */
		if (ready ? (before & ready) != ready : !vcpu_work(k->vcpu)) {
			k->again = KEEP_AGAIN_NS;
			return false;
		}
		/* Someone drives and knows, or has lost its CPU; don't spin on it. */
		k->deadline = k->now + k->again;
		k->again = min(2 * k->again, KEEP_WATCH_NS);
	}
	k->asked = false;
	if (k->cpu->keep_watches && ring3_poll_unarmed() && !(host_load(&k->vcpu->owner) & RING3_OWNER_POLLING))
		k->deadline = min(k->deadline, k->now + KEEP_WATCH_NS);
	return true;
}

/* One futex_waitv over the kick word and the links' doorbells, with the deadline as its time-out. */
static void wait(struct keeping *k)
{
	struct ring3_waitv wv[1 + RING3_PORTS_MAX];
	u64 deadline = k->deadline;
	int i;

	wv[0] = ring3_waitv(vcpu_kick_word(k->vcpu), k->kick);
	for (i = 0; i < k->n; i++)
		wv[1 + i] = ring3_waitv(k->words[i], k->values[i]);
	if (k->away)
		deadline = min(deadline, k->now + AWAY_NS);
	deadline = min(deadline, k->now + 3600 * (u64)NSEC_PER_SEC);
	ring3_clock_keep(wv, k->away ? 1 : 1 + k->n, k->now, deadline);
}

/* KEEP: time passes and peers ring while nobody polls. */
long ring3_host_keep(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct keeping k = {
		.tb = tb,
		.vcpu = vcpu,
		.cpu = vcpu_cpu(vcpu),
		.host_sp = tb->host_sp,
		.links = vcpu == &ring3_region.vcpu[0],
		.kicked = host_load(vcpu_kick_word(vcpu)),
		.again = KEEP_AGAIN_NS,
	};

	while (!ring3_poisoned()) {
		gather(&k);
		decide(&k);
		if (host_xchg(&k.cpu->drive_wanted, 0))
			drive(&k);
		else if (act(&k))
			wait(&k);
	}
	/* The node is down: the other vCPUs' KEEPs learn it from this one. */
	if (k.links) {
		ring3_errands();
		for_each_vcpu(vcpu)
			ring3_kick(vcpu);
	}
	return 0;
}
