// SPDX-License-Identifier: GPL-2.0
/*
 * stacktrace.c - the call path of a task, from its kernel stack
 *
 * With frame pointers the walk follows their chain. It ends where the chain leaves the stack: entry.S keeps other
 * values in that register when it calls in. Without frame pointers, each word that could be a return address is
 * taken for one, so the trace is a guess.
 *
 * A thread that waits for the vCPU, or polls, is on its own stack (vcpu/), of which this file knows nothing.
 * Nothing is shown of the current task then.
 */
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <asm/ring3.h>
#include <asm/sections.h>
#include "../vcpu/vcpu.h"

#define GUESSED_LINES	32

static bool on_stack(unsigned long stack, const unsigned long *p)
{
	return (unsigned long)p >= stack &&
	       (unsigned long)p <= stack + THREAD_SIZE - 2 * sizeof(*p) &&
	       IS_ALIGNED((unsigned long)p, sizeof(*p));
}

static noinline void walk(struct task_struct *task, bool (*step)(void *cookie, unsigned long ip),
			  void *cookie)
{
	const struct parked_frame *parked = (const struct parked_frame *)task->thread.sp;
	unsigned long stack = (unsigned long)task_stack_page(task);
	const unsigned long *frame, *next;

	if (!stack)
		return;
	if (!IS_ENABLED(CONFIG_FRAME_POINTER)) {
		next = task == current ? __builtin_frame_address(0) : (unsigned long *)parked;
		for (; on_stack(stack, next); next++)
			if (__kernel_text_address(*next) && !step(cookie, *next))
				return;
		return;
	}
	if (task == current) {
		frame = __builtin_frame_address(0);
	} else {
		if (!on_stack(stack, (unsigned long *)parked) || !step(cookie, parked->ip))
			return;
		frame = (const unsigned long *)parked->bp;
	}
	while (on_stack(stack, frame)) {
		if (!__kernel_text_address(frame[1]) || !step(cookie, frame[1]))
			return;
		next = (const unsigned long *)frame[0];
		if (next <= frame)
			return;
		frame = next;
	}
}

#ifdef CONFIG_STACKTRACE
/* No interrupt leaves registers on a stack: it is a call like any other. */
void arch_stack_walk(stack_trace_consume_fn consume_entry, void *cookie,
		     struct task_struct *task, struct pt_regs *regs)
{
	walk(task ?: current, consume_entry, cookie);
}
#endif

void show_regs(struct pt_regs *regs)
{
	show_stack(NULL, NULL, KERN_DEFAULT);
}

struct lines {
	const char *loglvl;
	int left;
};

static bool show_line(void *cookie, unsigned long ip)
{
	struct lines *lines = cookie;

	printk("%s%s%pS\n", lines->loglvl, IS_ENABLED(CONFIG_FRAME_POINTER) ? " " : " ? ",
	       (void *)ip);
	return --lines->left > 0;
}

void show_stack(struct task_struct *task, unsigned long *sp, const char *loglvl)
{
	struct lines lines = { loglvl, GUESSED_LINES };

	printk("%sCall Trace%s:\n", loglvl, IS_ENABLED(CONFIG_FRAME_POINTER) ? "" : " (guessed)");
	walk(task ?: current, show_line, &lines);
}
