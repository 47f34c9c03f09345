// SPDX-License-Identifier: GPL-2.0
/*
 * sud.c - the backstop: Syscall User Dispatch
 *
 * Armed for each thread (children and exec do not inherit it). Every `syscall`
 * instruction outside the gate and the regions raises SIGSYS; there is no selector,
 * so nothing that the program writes can switch it off.
 */
#include "internal.h"

void sud_arm(void)
{
	long ret = host_syscall5(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON,
				 RING3_GATE_BASE, RING3_SPACE_END - RING3_GATE_BASE, 0);

	if (ret)
		gate_die(125, "this host's kernel has no Syscall User Dispatch (error %ld): Linux 5.11 or later is needed",
			 -ret);
}
