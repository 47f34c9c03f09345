/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - shared by trace.c and trace_view.c
 */
#ifndef GATE_TRACE_H
#define GATE_TRACE_H

#include "internal.h"

struct trace_regs {		/* struct user_regs_struct, sys/user.h */
	u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax;
	u64 rip, cs, eflags, rsp, ss, fs_base, gs_base, ds, es, fs, gs;
};

static inline bool in_ring3(u64 rip)
{
	return rip >= RING3_GATE_BASE && rip < RING3_SPACE_END;
}

/*
 * If the stopped thread is in a call, replaces its registers by those that the program has at that point. False: it
 * is not in a call, and the registers are unchanged.
 */
bool trace_view(s32 tid, struct trace_regs *regs);

/*
 * The node's adopter lets go of the process of the thread, if it traces that, and leaves it alone until the place is
 * given back. NULL: it does not.
 */
struct ring3_proc *trace_place_take(s32 tid);
void trace_place_give(struct ring3_proc *own);	/* NULL: does nothing */
void trace_await(void);

#endif /* GATE_TRACE_H */
