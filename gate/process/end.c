// SPDX-License-Identifier: GPL-2.0
/*
 * end.c - ends the program after its node has failed
 *
 * Every call of a failed node fails, and a server without its network would retry for ever. The node's keeper sends
 * SIGTERM and later SIGKILL to all programs; if the keeper was killed, its undertaker does. Both may be gone, or
 * lack the permission. So a thread that finds the node failed does it for its process: one line with the reason,
 * SIGTERM unless that was already sent, and a timer of the host for the SIGKILL.
 */
#include "internal.h"

#define SIG_KILL	9
#define NSEC_PER_MSEC	1000000UL

/* False: the host refuses the timer. */
static bool kill_in(u64 ms)
{
	long timer = gate_timer(CLOCK_MONOTONIC, SIG_KILL, 0);

	return timer >= 0 && !gate_timer_set(timer, false, ms ? ms * NSEC_PER_MSEC : 1, 0);
}

/* A call has failed with EIO, or a signal has come: has the node failed? */
void end_look(void)
{
	struct ring3_thread *t = gate_thread();
	struct ring3_proc *proc;
	u32 *word, state, ms;

	if (!gate.region)
		return;
	state = READ_ONCE(gate.region->state);
	if (state < RING3_POISONED)
		return;
	proc = (struct ring3_proc *)t->proc;
	word = &proc->end;
	if (__atomic_fetch_or(word, RING3_END_SAID, __ATOMIC_SEQ_CST) & RING3_END_SAID)
		return;
	ms = READ_ONCE(gate.region->grace_ms);
	/* Before anything that may wait: a write to stderr waits if no process reads it. */
	if (!kill_in(ms))
		gate_log("no timer for the end of this program");
	if (state == RING3_POISONED)
		gate_warn("node %s has failed: %s; this program ends", gate.region->node_name,
			  gate.region->poison);
	else
		gate_warn("node %s was taken down", gate.region->node_name);
	if (!(__atomic_fetch_or(word, RING3_END_TERM, __ATOMIC_SEQ_CST) & RING3_END_TERM))
		host_syscall2(__NR_kill, host_syscall0(__NR_getpid), SIGTERM);
}
