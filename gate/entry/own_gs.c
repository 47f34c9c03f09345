// SPDX-License-Identifier: GPL-2.0
/*
 * own_gs.c - a program with a GS base of its own
 *
 * The gate finds a thread's block by GS. Some programs want GS for themselves: Firefox runs libraries as WebAssembly
 * whose memory GS points to, Wine has its thread block there. They may write it by an instruction, which nobody sees.
 * So the auxiliary vector says that this instruction is missing, and they call arch_prctl() instead.
 *
 * From the first such call on, rewritten sites have stubs that look whose base is in GS, and trap if it is the
 * program's (stubs.S). A trap, like any signal, comes to a handler on an alternate stack of the gate's, and by that
 * stack own_gs_taken() finds the thread. On the way back gate_resume() loads the program's base, if it goes on in the
 * program. So GS is the program's only in its own code and in the first instructions of a stub.
 */
#include "internal.h"

#define USER_END	0x7ffffffff000UL	/* TASK_SIZE_MAX with four levels of page tables */

u8 gate_own_gs, own_gs_possible;

static u64 gs_read(void)
{
	u64 base;

	asm volatile("rdgsbase %0" : "=r"(base));
	return base;
}

static void gs_write(u64 base)
{
	asm volatile("wrgsbase %0" : : "r"(base));
}

static bool is_ours(u64 base)
{
	return base >= RING3_SPACE_BASE && base < RING3_SPACE_END;
}

/* Called first by each handler of the host's signals: from here on GS is the gate's. */
void own_gs_taken(void)
{
	u64 sp = (u64)__builtin_frame_address(0);
	struct gate_tcb *tcb;
	u32 i;

	if (is_ours(gs_read()))
		return;
	for (i = 0; (tcb = thread_area(i)); i++)
		if (sp - (u64)tcb->altstack < ALTSTACK_BYTES) {
			gs_write((u64)tcb->thread);
			return;
		}
	gate_die(128 + SIGSEGV, "a signal on a stack that is not the gate's, of a thread with a GS base of its own");
}

/*
 * The GS base to load before uc goes on; 0: the gate's. A thread that has been interrupted in gate_resume(), between
 * `check' and `insn', may have loaded the program's: it begins at `check' again.
 */
u64 own_gs_of(struct ucontext *uc, u64 check, u64 insn)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	if (sc->rip >= check && sc->rip <= insn)
		sc->rip = check;
	if (sc->rip >= (u64)own_gs_stubs && sc->rip < (u64)own_gs_stubs_end)
		return gate_tcb()->own_gs;
	if ((sc->rip >= (u64)gate_text_start && sc->rip < (u64)gate_text_end) ||
	    (sc->rip >= gate.text_start && sc->rip < gate.text_end))
		return 0;
	return gate_tcb()->own_gs;
}

/* In the handler of a trap, so that gate_resume() follows. */
long own_gs_set(u64 base)
{
	if (!own_gs_possible) {
		gate_warn("the program asked for the GS base, which ring3 needs itself: refused on a processor without FSGSBASE");
		return -EPERM;
	}
	if (base >= USER_END || is_ours(base))
		return -EPERM;
	if (base && !READ_ONCE(gate_own_gs)) {
		WRITE_ONCE(gate_own_gs, 1);
		patch_own_gs();
	}
	gate_tcb()->own_gs = base;
	return 0;
}
