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
 * While threads watch (watch.c) it is away.
 *
 * As in vcpu.c all of this runs on a host thread's own stack. tests/src/bin/models has the
 * deadline's protocol.
 */
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include <asm/timex.h>
#include <asm/unistd.h>
#include "errand.h"
#include "vcpu.h"

#define KEEP_AGAIN_NS		50000ULL	/* somebody else should have seen it by then */
#define KEEP_WATCH_NS		1000000ULL	/* a program that stopped making calls */
#define KEEP_SEEN_NS		4000000ULL	/* one that made some so lately only waits for its CPU */
#define AWAY_NS			20000000ULL	/* one that watches may be stopped; then doorbells wait so long */
#define HOLDER_NS		100000000ULL	/* of one holder: then see whether it still lives */
#define LATE_NS			1000000LL	/* a time-out that came so late, or */
#define EARLY_NS		50000LL		/* so early: is it by the right clock? */
#define PORTS_REST_NS		100000U		/* a packet waits no longer for a program that computes, */
#define PORTS_REST_DOUBLES	3		/* and eight times as long for one that has only just begun to */

static u32 ports_rest_ns = PORTS_REST_NS;	/* ring3_ports_rest_ns= of the command line; 0: never */
static u32 ports_rest;			/* futex word; 1: ring3-ports rests */
static u32 ports_rests;			/* in a row that nobody cut short */

/* The host's CLOCK_MONOTONIC, as the keeper has it, minus our clock. 0: as it was at boot. */
static u64 host_ahead;

/*
 * KEEP: time passes and peers ring while nobody polls. One futex_waitv over the
 * kick word and the links' doorbells, with the next deadline as its time-out.
 */
long ring3_host_keep(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	u32 *kick_word = vcpu_kick_word(vcpu);
	bool links = vcpu == &ring3_region.vcpu[0], exits, asked = false;
	struct ring3_waitv wv[1 + RING3_PORTS_MAX];
	u32 *words[RING3_PORTS_MAX];
	u32 values[RING3_PORTS_MAX];
	unsigned long host_sp = tb->host_sp;
	u64 now, deadline, at, seen = 0, held_since = 0, again = KEEP_AGAIN_NS;
	u32 kick, ready, owner, held_by = 0, taken = 0, before_that, watches = 0, watcher;
	bool away;
	s64 late;
	long ret;
	int i, n = 0;

	while (!ring3_poisoned()) {
		kick = host_load(kick_word);
		ring3_populate_serve(vcpu);
		if (links) {
			ring3_errands();
			n = ring3_poll_doorbells(words, values, RING3_PORTS_MAX);
			ring3_take_inbox();
		}
		/* Others began to watch since we came last: watch.c. */
		away = host_load(&cpu->watches) != watches && !host_xchg(&cpu->watch_lost, 0);
		watches = host_load(&cpu->watches);
		host_xchg(&cpu->away, away);
		deadline = host_load(&vcpu->deadline);
		__atomic_store_n(&cpu->keep_until, deadline, __ATOMIC_SEQ_CST);
		if (host_load(&vcpu->deadline) < deadline)
			continue;

		now = ring3_clock();
		WRITE_ONCE(cpu->keep_at, now);
		if (host_load(&vcpu->driver) != (unsigned long)tb)
			seen = now;
		exits = host_load(&vcpu->polled) & R3_EXIT_POLL;
		cpu->keep_watches = links && (seen == now || (exits && now - seen < KEEP_SEEN_NS));
		before_that = taken;
		taken = links ? ring3_poll_taken() : 0;
		/*
		 * A program that takes packets sees to the time too, on the way out of its calls or while it
		 * polls. To come at each tick, only to find that, would take a CPU from it or its peer a
		 * thousand times a second. It has stopped if we come so late and nobody has seen to it.
		 */
		watcher = host_load(&cpu->watch);
		if (deadline != U64_MAX &&
		    ((watcher && READ_ONCE(cpu->watch_until) <= deadline) ||
		     (exits && seen == now && cpu->keep_watches && taken != before_that)))
			deadline += KEEP_WATCH_NS;
		ready = links ? ring3_poll_check() : 0;
		if (now >= deadline) {
			ready |= RING3_IRQ_TIMER;
			/* Who watches does not: it was stopped, or died. */
			host_cas(&cpu->watch, watcher, 0);
		}
		if (host_xchg(&cpu->drive_wanted, 0)) {
			ring3_enter_drive(tb);
			tb->host_sp = host_sp;
			continue;
		}
		/* It has taken packets since we came last: what is there now is the next of them. */
		if (exits && cpu->keep_watches && taken != before_that && !(ready & RING3_IRQ_TIMER) &&
		    !host_load(vcpu_pending(vcpu))) {
			asked = false;
			deadline = min(deadline, now + KEEP_WATCH_NS);
			again = KEEP_AGAIN_NS;
			goto sleep;
		}
		if (ready || host_load(vcpu_pending(vcpu))) {
			u32 before;

			/* The way past is a turn that finds nothing new and sleeps. */
			before = ready ? host_or(vcpu_pending(vcpu), ready) : 0;
			owner = host_load(&vcpu->owner);
			/*
			 * One that polls sees it too, and sooner. To take the vCPU from it would
			 * send it to sleep and arm the links: every packet costs a wake-up then.
			 * So does one that makes calls, on its way out of them. From a flood we would take, on a
			 * CPU of our own, more than its socket holds, while it shares its CPU with the sender.
			 * One that watches has been woken by the same ring. What is still there in a moment is left because neither runs. Else they do, and
			 * to look again and again would take their CPU from them.
			 */
			if (((owner & RING3_OWNER_POLLING) ||
			     (!(ready & RING3_IRQ_TIMER) && (watcher || (exits && cpu->keep_watches)))) &&
			    (before & ready) != ready) {
				asked = !asked || (ready & RING3_IRQ_TIMER);
				deadline = asked ? now + KEEP_AGAIN_NS :
						   min(deadline, now + KEEP_WATCH_NS);
				again = KEEP_AGAIN_NS;
				goto sleep;
			}
			asked = false;
			owner &= RING3_OWNER_TID;
			ring3_enter_drive(tb);
			tb->host_sp = host_sp;
			if (!owner || owner != held_by) {
				held_by = owner;
				held_since = now;
			} else if (now - held_since > HOLDER_NS) {
				held_since = now;
				ring3_take_from_dead(vcpu);
			}
			if ((before & ready) != ready || !ready) {
				again = KEEP_AGAIN_NS;
				continue;
			}
			/* Someone drives and knows, or has lost its CPU; don't spin on it. */
			deadline = now + again;
			again = min(2 * again, KEEP_WATCH_NS);
		}
		asked = false;
		if (cpu->keep_watches && ring3_poll_unarmed() &&
		    !(host_load(&vcpu->owner) & RING3_OWNER_POLLING))
			deadline = min(deadline, now + KEEP_WATCH_NS);
sleep:
		wv[0] = ring3_waitv(kick_word, kick);
		for (i = 0; i < n; i++)
			wv[1 + i] = ring3_waitv(words[i], values[i]);
		if (away)
			deadline = min(deadline, now + AWAY_NS);
		deadline = min(deadline, now + 3600 * (u64)NSEC_PER_SEC);
		at = (READ_ONCE(host_ahead) ?: ring3_region.boot_monotonic_ns) + deadline;
		ret = ring3_host_waitv(wv, away ? 1 : 1 + n, at);
		/* A sandbox of the keeper's hides the call: one word can be slept on, the doorbells are looked at. */
		if (unlikely(ret == -EPERM || ret == -ENOSYS)) {
			if (!away && n)
				deadline = min(deadline, now + KEEP_WATCH_NS);
			ret = ring3_host_futex_wait(kick_word, kick, deadline > now ? deadline - now : 1);
		}
		if (ret != -ETIMEDOUT)
			continue;
		/*
		 * Our clock is continuous; the host's stands still where the machine does, and
		 * slews. They have come apart if this was early, or (maybe) if it was late.
		 */
		late = ring3_clock() - deadline;
		if (late > LATE_NS || late < -EARLY_NS)
			WRITE_ONCE(host_ahead, ring3_host_clock(1 /* CLOCK_MONOTONIC */) - ring3_clock());
	}
	/* The node is down: the other vCPUs' KEEPs learn it from this one. */
	if (links) {
		ring3_errands();
		for_each_vcpu(vcpu)
			ring3_kick(vcpu);
	}
	return 0;
}

/* Somebody polls, or a program makes calls, whose way out looks at the ports. */
static bool others_look(void)
{
	struct ring3_vcpu *vcpu;

	for_each_vcpu(vcpu)
		if ((host_load(&vcpu->owner) & RING3_OWNER_POLLING) ||
		    (host_load(&vcpu->polled) & R3_EXIT_POLL))
			return true;
	return false;
}

/*
 * The keeper's ring3-ports was woken by a descriptor. While it waits on the host, each frame
 * wakes it, at the cost of the host's sender and of a processor that the node's program
 * or its peer could use, for what a poller sees sooner by itself. So it stays away from the host
 * while others look, but not for long: a program may go away and compute. Who goes idle
 * calls it back: either it sees the idle node here, or ring3_ports_call() sees that it rests.
 */
void ring3_host_rest(void)
{
	if (!ports_rest_ns || !others_look()) {
		ports_rests = 0;
		return;
	}
	host_store(&ports_rest, 1);
	host_fence();
	/* Each end of a rest is a thread that the host runs in the place of whom the poller waits for. */
	if (!others_look())
		ports_rests = 0;
	else if (ring3_host_futex_wait(&ports_rest, 1, (u64)ports_rest_ns << ports_rests) != -ETIMEDOUT)
		ports_rests = 0;
	else if (ports_rests < PORTS_REST_DOUBLES && others_look())
		ports_rests++;
	host_store(&ports_rest, 0);
}

/* The vCPU was let go: nobody may be looking at the host's descriptors any more. */
void ring3_ports_call(void)
{
	if (host_load(&ports_rest) && !others_look() && host_xchg(&ports_rest, 0))
		ring3_host_futex_wake(&ports_rest, 1);
}

static int __init set_ports_rest(char *ns)
{
	return !kstrtou32(ns, 0, &ports_rest_ns);
}
__setup("ring3_ports_rest_ns=", set_ports_rest);
