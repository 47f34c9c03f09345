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

/* A node that goes idle and comes back all the time has no tick now, and one at once: when that would be. */
static u64 next_tick(u64 now, u64 tick_at)
{
	return now + TICK_NS - (now - tick_at) % TICK_NS;
}

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
	u64 now, deadline, comings, hot_until = 0, tick_at = 0, seen = 0, held_since = 0, again = KEEP_AGAIN_NS;
	u32 kick, kicked = host_load(kick_word), ready, owner, held_by = 0, taken = 0, before_that, watches = 0, watcher;
	bool away;
	unsigned int n_words;
	int i, n = 0;

	while (!ring3_poisoned()) {
		kick = host_load(kick_word);
		ring3_populate_serve(vcpu);
		if (links) {
			ring3_errands();
			n = ring3_poll_doorbells(words, values, RING3_PORTS_MAX);
			ring3_take_inbox();
		}
		/* Others began to watch since we came last: idle.c. */
		away = host_load(&cpu->watches) != watches && !host_xchg(&cpu->watch_lost, 0);
		comings = host_load(&cpu->watches) - watches + kick - kicked;
		watches = host_load(&cpu->watches);
		kicked = kick;
		host_xchg(&cpu->away, away);
		deadline = ring3_clock_next(vcpu);
		now = ring3_clock();
		if (comings * KEEP_HOT_EACH_NS >= now - READ_ONCE(cpu->keep_at) && comings > 1)
			hot_until = now + KEEP_HOT_NS;
		WRITE_ONCE(cpu->keep_hot, now < hot_until);
		if (deadline > now && deadline - now <= TICK_NS)
			tick_at = deadline;
		else if (now < hot_until)
			deadline = min(deadline, next_tick(now, tick_at));
		__atomic_store_n(&cpu->keep_until, deadline, __ATOMIC_SEQ_CST);
		if (ring3_keep_is_late(ring3_clock_next(vcpu), deadline))
			continue;

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
		     (exits && seen == now && cpu->keep_watches && taken != before_that))) {
			deadline += KEEP_WATCH_NS;
			WRITE_ONCE(cpu->keep_hot, false);	/* nobody may rely on keep_until */
		}
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
		n_words = away ? 1 : 1 + n;
		ring3_clock_keep(wv, n_words, now, deadline);
	}
	/* The node is down: the other vCPUs' KEEPs learn it from this one. */
	if (links) {
		ring3_errands();
		for_each_vcpu(vcpu)
			ring3_kick(vcpu);
	}
	return 0;
}
