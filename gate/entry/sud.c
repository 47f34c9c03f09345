// SPDX-License-Identifier: GPL-2.0
/*
 * sud.c - the backstop: Syscall User Dispatch
 *
 * It is armed in each thread (neither children nor exec inherit it). Each `syscall` instruction outside of the gate
 * and the regions raises SIGSYS. There is no selector byte, so no write of the program can switch it off.
 */
#include "internal.h"

GATE_FORKED void sud_arm(void)
{
	long ret = host_syscall5(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
				 RING3_GATE_BASE, RING3_SPACE_END - RING3_GATE_BASE, 0);

	if (ret)
		gate_die(125, "this host's kernel has no Syscall User Dispatch (error %ld): Linux 5.11 or later is needed",
			 -ret);
}
