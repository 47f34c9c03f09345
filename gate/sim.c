// SPDX-License-Identifier: GPL-2.0
/*
 * sim.c - threads and processes of a node in virtual time
 *
 * One thread of the node runs at a time: include/ring3_sim.h. A thread that waits in this file sleeps in the node's kernel.
 */
#include "internal.h"
#include "ring3_sim.h"

#define NAP_FIRST_NS	10000UL		/* of virtual time */
#define NAP_MAX_NS	1000000UL

/* Sleeps in the node; the next time for longer. For what tells of nothing there. */
void sim_nap(u64 *ns)
{
	struct timespec ts;

	*ns = *ns ? *ns * 2 : NAP_FIRST_NS;
	if (*ns > NAP_MAX_NS)
		*ns = NAP_MAX_NS;
	ts = (struct timespec){ .tv_nsec = *ns };
	image_call2(__NR_nanosleep, &ts, 0);
}

/* A new thread, before it does anything that others could see. */
void sim_turn(void)
{
	if (unlikely(gate.sim))
		image_call0(RING3_NR_TURN);
}

/* The host has made thread `tid', whose task is in t. */
void sim_begin(struct ring3_thread *t, s32 tid)
{
	WRITE_ONCE(t->tid, tid);
	image_call1(RING3_NR_NUMBER, t);
	image_call2(RING3_NR_BEGIN, t, tid);
}

/* Until the child executes a program or ends; it takes our number out of its block then. */
void sim_vfork_wait(struct ring3_thread *t, s32 tid, u64 own)
{
	u64 nap = 0;

	while (READ_ONCE(t->gate[WORD_VFORK]) == own && READ_ONCE(t->tid) == (u32)tid && t->task)
		sim_nap(&nap);
}

/* By SIGKILL of a program of the node: the process ends in the node first. */
void sim_killed(void)
{
	WRITE_ONCE(gate_thread()->nsig, 0);
	image_call1(RING3_NR_EXIT_GROUP, RING3_BY_SIGNAL | SIGKILL);
	for (;;)
		host_syscall2(__NR_kill, host_syscall0(__NR_getpid), SIGKILL);
}

/* The node tells of children's ends, so it has to know what is to become of them. A new program has no handlers. */
void sim_start(void)
{
	struct host_sigaction act = { .handler = gate_tcb()->sighand->action[SIGCHLD].handler };
	u64 mask = 0;

	if (act.handler != (u64)SIG_IGN)
		act.handler = (u64)SIG_DFL;
	image_call(__NR_rt_sigaction, SIGCHLD, (long)&act, 0, sizeof(u64), 0, 0);
	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask));
	image_call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0, 0);
}
