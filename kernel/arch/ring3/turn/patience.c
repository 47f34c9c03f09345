// SPDX-License-Identifier: GPL-2.0
/*
 * patience.c - a thread that has the turn, and makes no call
 *
 * Theory of operation
 * -------------------
 * Time stands still while a program computes, and no other thread runs. So a loop without calls that waits for another
 * thread, or for a signal of a timer, never ends. KEEP looks whether the turn goes on. Two things end the node, which then
 * names the thread:
 *
 *	computes	its process has used `patience_s' of processor time since its last call
 *	waits		it has used none for so long: it sleeps in a host call that nothing of the simulation ends
 *
 * Processor time says more than real time. On a busy machine a thread may get a tenth of it, and a run must not fail for that.
 *
 * With ring3_sim_preempt=REAL,VIRTUAL, both in ns, a thread that has computed for REAL of processor time sleeps for VIRTUAL ns,
 * and others run: KEEP sends it a signal, whose handler in the gate does that (sud_wait()). The signal comes between two
 * instructions that the host chooses. So a run may differ from another then, and the scenario has to ask for it. preempt.c
 * notes each of these sleeps.
 *
 * All of this runs on KEEP's own stack: see keep.c.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/signal.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "../vcpu/internal.h"
#include "../clock/clock.h"
#include "turn.h"

#define LOOK_NS		(200 * NSEC_PER_MSEC)	/* of real time */
#define LOOK_LEAST_NS	(5 * NSEC_PER_MSEC)	/* some hundred looks a second cost nothing that can be measured */
#define LOOKS_EACH	2			/* in the time after which a thread is preempted */

#define PROCESS_CLOCK(pid)	((~(pid) << 3) | 2)	/* its processor time: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) */

static u32 patience_s = 30;		/* ring3_sim_patience=: of one turn; 0: any */
static u64 preempt_ns, sleep_ns;	/* ring3_sim_preempt=; 0: never */
static u64 look_ns = LOOK_NS;

/* The turn that was seen at the last look. */
static struct {
	u32 owner, hands, preempts;
	u64 now;
	u64 began, computed;		/* the process's processor time */
	u64 idle_ns;			/* real time since that has changed, without the time in which KEEP got no processor */
} seen;

/* Real time until the next look. */
u64 turn_look_ns(void)
{
	return look_ns;
}

static void preempt(int pid, int tid)
{
	struct kernel_siginfo info = {};

	info.si_signo = SIGBUS;
	info.si_code = SI_QUEUE;
	info.si_ptr = (void __user *)(TURN_MARK_PREEMPT << TURN_MARK_SHIFT | sleep_ns);
	ring3_host_syscall(__NR_rt_tgsigqueueinfo, pid, tid, SIGBUS, (long)&info, 0, 0);
}

static void fail(int pid, const char *why)
{
	char comm[TURN_NAME_BYTES], host[TURN_NAME_BYTES];

	turn_comm_of(pid, comm, sizeof(comm));
	turn_host_of(pid, host, sizeof(host));
	ring3_poison("at %llu.%09llu s, host %s, %s (process %d): %s for %u s",
		     seen.now / NSEC_PER_SEC, seen.now % NSEC_PER_SEC, host, comm, pid, why, patience_s);
}

void turn_look(const struct ring3_thread *holder, u32 owner)
{
	int pid = holder ? ((const struct ring3_proc *)holder->proc)->pid : 0;
	u64 patience = patience_s * NSEC_PER_SEC, computed;

	if (!pid)
		return;
	computed = ring3_host_clock(PROCESS_CLOCK(pid));
	if (!computed)		/* the process has just ended, and the host has no such clock any more */
		return;
	if (owner != seen.owner || seen.hands != turn_hands || seen.now != ring3_virtual_now) {
		seen.owner = owner;
		seen.hands = turn_hands;
		seen.now = ring3_virtual_now;
		seen.began = computed;
		seen.computed = computed;
		seen.preempts = 0;
		seen.idle_ns = 0;
		return;
	}
	seen.idle_ns = computed == seen.computed ? seen.idle_ns + look_ns : 0;
	seen.computed = computed;
	computed -= seen.began;
	if (preempt_ns && computed >= (seen.preempts + 1) * preempt_ns) {
		seen.preempts++;
		preempt(pid, holder->tid);
	}
	if (patience && computed >= patience)
		fail(pid, "computes without a call");
	else if (patience && seen.idle_ns >= patience)
		fail(pid, "waits in the host");
}

static int __init set_patience(char *seconds)
{
	return !kstrtou32(seconds, 0, &patience_s);
}
__setup("ring3_sim_patience=", set_patience);

static int __init set_preempt(char *words)
{
	char *sleep = strchr(words, ',');

	if (!sleep)
		return 0;
	*sleep++ = 0;
	if (kstrtou64(words, 0, &preempt_ns) || kstrtou64(sleep, 0, &sleep_ns) || sleep_ns >> TURN_MARK_SHIFT)
		return 0;
	if (preempt_ns)
		look_ns = clamp(preempt_ns / LOOKS_EACH, LOOK_LEAST_NS, LOOK_NS);
	return 1;
}
__setup("ring3_sim_preempt=", set_preempt);
