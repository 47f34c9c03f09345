// SPDX-License-Identifier: GPL-2.0
/*
 * watch.c - who sleeps in an idle node waits for time and peers itself
 *
 * Theory of operation
 * -------------------
 * Whoever sees a doorbell first has to take the vCPU, receive the packet, and wake the thread that waits for
 * it. If that is KEEP a packet costs two wake-ups of the host, and so does a time-out, on a machine
 * where one takes longer than everything else together. So a thread that lets an idle vCPU go
 * sleeps on three things at once: its own word, the doorbells of links, and the next deadline (it
 * *watches*). What it finds it sees to as a poller would, and the task that is woken is mostly its own.
 *
 * The one that came last watches (cpu->watch). One that watched before it sleeps on the doorbells still, and may
 * be the one that a ring wakes: a ring wakes who has slept for longest. That costs it a look, once.
 *
 * A thread may be stopped, or killed, and is no substitute for KEEP. But two that wait for the same are both
 * woken by a deadline, and KEEP, which would often have slept for longer, by every ring. So KEEP stays *away* while
 * others watch: it gives them a millisecond with deadlines, and looks at doorbells only after
 * AWAY_NS without anybody that began to watch. Nor is it told of deadlines that are nearer than the one it sleeps
 * for, until nobody watches and one is left (ring3_watch_over()). Then some program is awake: the
 * node's tick runs, and KEEP comes with it. For a node goes idle by somebody who watches from then on.
 *
 * As in vcpu.c all of this runs on a host thread's own stack. tests/src/bin/models has it as a model.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/prctl.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include <asm/timex.h>
#include <asm/unistd.h>
#include "vcpu.h"

#define USUAL_SLACK_NS		50000UL		/* Linux's, of a thread that asked for no other */

/* The links are vCPU 0's. */
static bool has_links(struct ring3_vcpu *vcpu)
{
	return vcpu == &ring3_region.vcpu[0];
}

/* The thread has let an idle vCPU go. */
void ring3_watch_begin(struct ring3_thread *tb)
{
	struct ring3_cpu *cpu = vcpu_cpu(r3t_vcpu(tb));

	host_xchg(&cpu->watch, tb->tid);
	host_add(&cpu->watches, 1);
}

/*
 * So late the host wakes a thread for which a time-out ends, so as to wake others with it: by 50 us, if the thread asked for
 * nothing else. Then it is woken so much sooner, and stays awake for the rest where that was too soon: the node's
 * timers are as exact as the host's own. KEEP has no slack. A thread that asked for more gets it.
 */
static u64 host_slack(void)
{
	long slack = ring3_host_syscall(__NR_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0, 0);

	return slack > 0 && slack <= USUAL_SLACK_NS ? slack : 0;
}

/*
 * The thread's word is `value`, with SLEEPING in it: sleeps until the word changes or something is to be seen to,
 * `limit_ns` at most. True: it is, and the vCPU is the thread's.
 */
bool ring3_watch(struct ring3_thread *tb, u32 value, u64 limit_ns, long *ret)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_waitv wv[1 + RING3_PORTS_MAX];
	u32 *words[RING3_PORTS_MAX];
	u32 values[RING3_PORTS_MAX];
	u64 now, deadline, limit = limit_ns;
	u32 owner, ready;
	int i, n = 0;

	if (has_links(vcpu))
		n = ring3_poll_doorbells(words, values, RING3_PORTS_MAX);

	now = ring3_clock();
	deadline = host_load(&vcpu->deadline);
	ready = has_links(vcpu) ? ring3_poll_watched() : 0;
	if (now >= deadline)
		ready |= RING3_IRQ_TIMER;
	owner = host_load(&vcpu->owner);
	/* One that polls sees it too. So does one that drives, when it lets go: it is told by `pending`. */
	if (!(owner & RING3_OWNER_POLLING)) {
		if (ready)
			host_or(vcpu_pending(vcpu), ready);
		if (host_load(vcpu_pending(vcpu)) && ring3_try_acquire(tb))
			return true;
	}

	wv[0] = ring3_waitv(&tb->word, value);
	for (i = 0; i < n; i++)
		wv[1 + i] = ring3_waitv(words[i], values[i]);
	if (deadline > now && deadline - now < limit)
		limit = deadline - now - min(deadline - now, host_slack());
	if (!limit) {
		host_pause();
		*ret = 0;
		return false;
	}
	/* Its own reading: a process may have a time namespace. */
	*ret = ring3_host_waitv(wv, 1 + n, ring3_host_clock(1 /* CLOCK_MONOTONIC */) + limit);
	if (limit < limit_ns && *ret == -ETIMEDOUT)
		*ret = 0;
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

	if (!host_cas(&cpu->watch, tb->tid, 0) ||
	    host_load(&vcpu->deadline) >= READ_ONCE(cpu->keep_until))
		return;
	if ((host_load(&vcpu->owner) & RING3_OWNER_TID) == tb->tid)
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_KICK);
	else
		ring3_kick(vcpu);
}
