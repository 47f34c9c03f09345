/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace.h - what trace.c and trace_view.c share
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
 * The registers of a stopped thread that is in a call become those that the program
 * has there. False: it is not, they are as they were.
 */
bool trace_view(s32 tid, struct trace_regs *regs);

#endif /* GATE_TRACE_H */
