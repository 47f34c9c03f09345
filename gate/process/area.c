// SPDX-License-Identifier: GPL-2.0
/*
 * area.c - the gate's memory of each thread
 *
 * Each thread has an area of gate memory: its struct gate_tcb, the alternate stack for the host's handlers, and the
 * gate stack for rewritten sites. Areas are pooled: the last action of a thread is to mark its area as free.
 */
#include "internal.h"
#include <linux/futex.h>

#define AREA_BYTES	(256UL << 10)
#define TCB_BYTES	(2 * GATE_PAGE)
#define AREAS_MAX	32768
#define SIGNAL_BYTES	(AREA_BYTES - GATE_STACK_BYTES - TCB_BYTES - 2 * GATE_PAGE)

_Static_assert(sizeof(struct gate_tcb) <= TCB_BYTES, "area layout");
_Static_assert(SIGNAL_BYTES >= ALTSTACK_BYTES, "area layout");

/* All areas that were ever made. An area is in use while its busy word is set. The first thread's is static. */
static struct gate_tcb first_tcb;
static struct gate_tcb *areas[AREAS_MAX] GATE_TABLE;
static u32 areas_more;	/* areas but the first */
struct gate_mutex gate_areas_lock;

static struct gate_tcb *area_at(u32 i)
{
	return i ? areas[i] : &first_tcb;
}

static u32 areas_used(void)
{
	return 1 + READ_ONCE(areas_more);
}

/*
 * [ tcb | guard | altstack | guard | gate stack ]
 */
static struct gate_tcb *area_map(void)
{
	char *area = gate_pages(AREA_BYTES);
	struct gate_tcb *tcb = (struct gate_tcb *)area;

	if (!area)
		return NULL;
	tcb->altstack = area + AREA_BYTES - GATE_STACK_BYTES - GATE_PAGE - ALTSTACK_BYTES;
	tcb->stack_top = area + AREA_BYTES - REGS_ABOVE;
	host_syscall3(__NR_mprotect, (long)area + TCB_BYTES, GATE_PAGE, PROT_NONE);
	host_syscall3(__NR_mprotect, (long)area + AREA_BYTES - GATE_STACK_BYTES - GATE_PAGE, GATE_PAGE,
		      PROT_NONE);
	return tcb;
}

/* Clears all but the addresses of the stacks and the filters, which seccomp_inherit() drops. */
static void tcb_clear(struct gate_tcb *tcb)
{
	char *altstack = tcb->altstack, *stack_top = tcb->stack_top;
	struct gate_filter *filters = tcb->filters;

	memset(tcb, 0, sizeof(*tcb));
	tcb->filters = filters;
	tcb->altstack = altstack;
	tcb->stack_top = stack_top;
}

/*
 * A process that shares this memory can't free its areas if it is killed, executes a program, or ends with threads.
 * They are collected when another area would have to be made. A vfork child's area is freed by its parent.
 */
static bool area_left(const struct gate_tcb *tcb)
{
	const struct ring3_thread *t = tcb->thread;
	u32 tid = READ_ONCE(tcb->tid);

	if (likely(tcb->process == gate_tcb()->process) || tcb->lent || !tid)
		return false;
	return (READ_ONCE(t->tid) == tid && READ_ONCE(t->gate[WORD_TCB]) != (u64)tcb) ||
	       host_syscall2(__NR_tkill, tid, 0) == -ESRCH;
}

u64 gate_process(void)
{
	return gate_tcb()->process;
}

struct gate_tcb *tcb_new(struct ring3_thread *t, u64 process)
{
	struct gate_tcb *tcb = NULL;
	u32 i;

	gate_lock(&gate_areas_lock);
	for (i = 0; i < areas_used() && !tcb; i++)
		if (!__atomic_load_n(&area_at(i)->busy, __ATOMIC_ACQUIRE))
			tcb = area_at(i);
	for (i = 0; i < areas_used() && !tcb && unlikely(READ_ONCE(gate.processes) > 1); i++) {
		if (area_left(area_at(i))) {
			tcb = area_at(i);
			__atomic_fetch_sub(&gate.threads, 1, __ATOMIC_SEQ_CST);
		}
	}
	if (!tcb && areas_used() < AREAS_MAX) {
		tcb = area_map();
		if (tcb) {
			areas[areas_used()] = tcb;
			__atomic_store_n(&areas_more, areas_more + 1, __ATOMIC_RELEASE);
		}
	}
	if (tcb) {
		tcb_clear(tcb);
		tcb->process = process;
		tcb->busy = 1;
	}
	gate_unlock(&gate_areas_lock);
	if (!tcb)
		return NULL;
	memset(tcb->stack_top, 0, REGS_ABOVE);
	tcb->alt.ss_flags = SS_DISABLE;
	tcb->thread = t;
	return tcb;
}

/* The gate has run on this thread's stack since its first instruction. */
struct gate_tcb *tcb_first(struct ring3_thread *t)
{
	first_tcb.altstack = gate_first_altstack;
	first_tcb.stack_top = gate_first_stack_top;
	first_tcb.alt.ss_flags = SS_DISABLE;
	first_tcb.busy = 1;
	first_tcb.process = gate.processes = 1;
	first_tcb.thread = t;
	return &first_tcb;
}

struct gate_tcb *thread_area(u32 i)
{
	return i < areas_used() ? area_at(i) : NULL;
}

void tcb_free(struct gate_tcb *tcb)
{
	__atomic_store_n(&tcb->busy, 0, __ATOMIC_RELEASE);
}

/* In a fork child, the areas of all other threads are unused. */
void areas_forget(struct gate_tcb *own)
{
	u32 i;

	for (i = 0; i < areas_used(); i++)
		if (area_at(i) != own)
			area_at(i)->busy = 0;
	gate.threads = 1;
}

void vfork_done(struct ring3_thread *t)
{
	if (likely(!t->gate[WORD_VFORK]))
		return;
	WRITE_ONCE(t->gate[WORD_VFORK], 0);
	host_syscall3(__NR_futex, (long)&t->gate[WORD_VFORK], FUTEX_WAKE, 1);
}
