// SPDX-License-Identifier: GPL-2.0
/*
 * idle.c - who sleeps in an idle node waits for time and peers itself
 *
 * Theory of operation
 * -------------------
 * The thread that is woken by a doorbell takes the vCPU, receives the packet, and wakes the thread that waits for
 * it. If KEEP did that, each packet would cost two wake-ups of the host, and so would each time-out. A wake-up
 * takes longer than everything else together. So a thread that releases an idle vCPU
 * sleeps on three things at once: its own word, the doorbells of links, and the next deadline. It is the
 * *watcher*. It serves what it finds as a poller would; mostly the task that is woken is its own.
 *
 * The thread that released the vCPU last is the watcher (cpu->watch). The one before it still sleeps on the doorbells, until
 * it is woken for the first time. Then it sleeps on its own word alone.
 *
 * A watcher may be stopped or killed, so it does not replace KEEP. But a doorbell wakes all that sleep on it. So KEEP is
 * *away* while there is a watcher:
 *
 *	deadlines	KEEP comes a millisecond later than those that the watcher knows
 *	doorbells	KEEP does not sleep on them, unless nobody has begun to watch for AWAY_NS. From then on a ring wakes both,
 *			and KEEP lets the watcher try first
 *
 * If threads go idle more often than there are ticks, KEEP serves the deadlines, and watchers set no time-out
 * (cpu->keep_hot). A watcher does not tell KEEP of a deadline that is nearer than KEEP's own. When it stops
 * watching, it tells KEEP if such a deadline is left (ring3_watch_over()).
 *
 * Ticks are served by the threads themselves: each looks at the time when it goes idle, and on its way out of calls. For KEEP_WARM_NS after a
 * thread went idle KEEP is not told of ticks (cpu->ticks_served), and comes every KEEP_TICKS_NS in case the threads stop. So a tick may be
 * late by that much, and with it the jiffies of a node whose programs have just begun to compute. A timer that is due soon after the
 * tick makes it a deadline as any other (ring3_tick_or_timer()).
 *
 * As all of vcpu/ this runs on a host thread's own stack. tests/src/bin/models has the doorbells' part as a model.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include "../clock/clock.h"
#include "internal.h"

/* futex_waitv() was refused: KEEP sees to this node. */
static bool nobody_can;

/* The links are vCPU 0's. */
static bool has_links(struct ring3_vcpu *vcpu)
{
	return vcpu == &ring3_region.vcpu[0];
}

/* The thread has let an idle vCPU go. */
void ring3_watch_begin(struct ring3_thread *tb)
{
	struct ring3_cpu *cpu = vcpu_cpu(r3t_vcpu(tb));

	if (READ_ONCE(nobody_can))
		return;
	WRITE_ONCE(cpu->watch_until, U64_MAX);
	host_xchg(&cpu->watch, tb->tid);
	host_add(&cpu->watches, 1);
}

/*
 * Something is there, or may be. Who drives or polls sees it by `pending', but for a moment on the way out of a call's fast
 * path (entry.S). True: the vCPU is the thread's.
 */
static bool see_to(struct ring3_thread *tb, u32 ready)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	int turns = SPIN_DRIVE;

	if (ready)
		host_or(vcpu_pending(vcpu), ready);
	while (host_load(vcpu_pending(vcpu)) && !(host_load(&vcpu->owner) & RING3_OWNER_POLLING)) {
		if (vcpu_try_acquire(tb, 0))
			return true;
		if (!turns--)
			break;
		host_pause();
	}
	return false;
}

/* The host's slack is asked for now and then only: that is a system call. On crowded CPUs nobody stays awake for it. */
static u64 slack(struct ring3_thread *tb, u64 now)
{
	u32 ms = now >> 20, asked = r3t_slack(tb) >> 32;

	if (vcpu_is_crowded(vcpu_cpu(r3t_vcpu(tb)), now))
		return 0;
	if (!r3t_slack(tb) || ms - asked >= SLACK_MS)
		r3t_slack(tb) = (u64)ms << 32 | ring3_clock_slack();
	return (u32)r3t_slack(tb);
}

/*
 * The thread's word is `value`, with SLEEPING in it: sleeps until the word changes or something is to be seen to,
 * `limit_ns` at most. True: it is, and the vCPU is the thread's. *ret is as that of a futex, -ETIMEDOUT also
 * where the keeper has not looked for so long.
 */
bool ring3_watch(struct ring3_thread *tb, u32 value, u64 limit_ns, long *ret)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	struct ring3_waitv wv[1 + RING3_PORTS_MAX];
	u32 *words[RING3_PORTS_MAX];
	u32 values[RING3_PORTS_MAX];
	u64 now, deadline, limit = limit_ns;
	u32 ready = 0;
	bool left_to_keep;
	int i, n = 0;

	if (has_links(vcpu)) {
		n = ring3_poll_doorbells(words, values, RING3_PORTS_MAX);
		ready = ring3_poll_watched();
	}
	now = ring3_clock();
	deadline = ring3_clock_next(vcpu);
	if (now >= deadline)
		ready |= RING3_IRQ_TIMER;
	if (see_to(tb, ready))
		return true;
	/* Another watches now, or nobody can. */
	if (host_load(&cpu->watch) != tb->tid)
		goto alone;

	/*
	 * A time-out costs the host a timer, set and taken back. Where threads go idle more often than there are ticks, that
	 * is left to KEEP. Its word is good for as long as KEEP comes: one that has no CPU takes nothing back.
	 */
	left_to_keep = READ_ONCE(cpu->keep_hot) && now - READ_ONCE(cpu->keep_at) < KEEP_WORD_NS && !ring3_keep_misses(vcpu);
	WRITE_ONCE(cpu->watch_until, left_to_keep ? U64_MAX : deadline);
	wv[0] = ring3_waitv(&tb->word, value);
	for (i = 0; i < n; i++)
		wv[1 + i] = ring3_waitv(words[i], values[i]);
	/* KEEP may be stopped from here on. A later time-out is rarely the host's next timer, and costs little. */
	if (left_to_keep && deadline != U64_MAX)
		limit = min(limit, deadline - min(deadline, now) + AWAY_NS);
	else if (deadline > now && deadline - now < limit)
		limit = deadline - now - min(deadline - now, slack(tb, now));
	if (!limit) {
		host_pause();
		*ret = 0;
		return false;
	}
	/* A wait for one word takes the host 1 us less, and no look at its clock. */
	if (n)
		*ret = ring3_clock_wait(wv, 1 + n, limit);
	else
		*ret = ring3_host_futex_wait(&tb->word, value, limit);
	if (*ret == -ETIMEDOUT && ring3_clock() - READ_ONCE(cpu->keep_at) < limit_ns)
		*ret = 0;
	if (*ret >= 0 || *ret == -EAGAIN || *ret == -EINTR || *ret == -ETIMEDOUT)
		return false;
	/* A sandbox that the program was started in does not know that call; memory is short for a while only. */
	if (*ret != -ENOMEM)
		WRITE_ONCE(nobody_can, true);
	if (host_cas(&cpu->watch, tb->tid, 0))
		ring3_kick(vcpu);
alone:
	*ret = ring3_host_futex_wait(&tb->word, value, limit_ns);
	return false;
}

/*
 * The thread does not watch any more; it has the vCPU, or its call is in other hands. The deadline that
 * KEEP was not told may be the next still.
 */
void ring3_watch_over(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);

	if (!host_cas(&cpu->watch, tb->tid, 0))
		return;
	if ((host_load(&vcpu->owner) & RING3_OWNER_TID) == tb->tid)
		ring3_tell_keep(vcpu);
	else if (ring3_keep_misses(vcpu))
		ring3_kick(vcpu);
}

/* For the holder of the vCPU: release() may have forgotten that KEEP sleeps beyond the deadline. */
void ring3_tell_keep(struct ring3_vcpu *vcpu)
{
	if (ring3_keep_misses(vcpu))
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_KICK);
}
