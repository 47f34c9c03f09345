/* SPDX-License-Identifier: GPL-2.0 */
/*
 * signal.S - the handler of a stop signal, see sigstop.c
 */
#include "asm_defs.h"

	.text

/* void gate_on_stop(sig, info, uc): on_signal(), for a signal that stops the process. The note first: sigstop.c. */
	.globl	gate_on_stop, gate_on_stop_noted
	.hidden	gate_on_stop, gate_on_stop_noted
gate_on_stop:
	movq	$1, %gs:GATE_WORD(WORD_STOPPING)
gate_on_stop_noted:
	jmp	on_signal

	.section .note.GNU-stack, "", @progbits
