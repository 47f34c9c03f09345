// SPDX-License-Identifier: GPL-2.0
/*
 * outside.c - long copies between a program's memory and the kernel's, made without the vCPU
 *
 * Theory of operation
 * -------------------
 * One thread runs kernel code at a time. A copy of 64 KiB takes longer than what TCP does with it, so two ends of a
 * stream that both copy with the vCPU are slower than one CPU. A copy from or to user memory may sleep on Linux, so kernel
 * code is ready for anything that happens meanwhile. So where threads contend for the vCPU, the task of a long copy leaves
 * it to its thread (copy_outside() in kernel/uaccess.c):
 *
 *	1. The task parks (R3_PARK_COPY), or lets other tasks run that are runnable.
 *	2. Its thread comes to ring3_host_park() with the copy in its block (R3T_COPY). It releases the vCPU, or hands it
 *	   over, makes the copy on its own stack, and acquires the vCPU again.
 *	3. If no other thread had the vCPU meanwhile, the task is still current and goes on. Otherwise another thread has resumed it, and
 *	   it sleeps until its own thread, which drives again, wakes it (R3_REQ_COPIED in ring3_service()).
 *
 * So are all copies of a process with a userfaultfd, or with a file of a FUSE file system in its memory: their page faults wait
 * for a program, which may need the node (userfaultfd() in kernel/uaccess.c).
 *
 * The task does not end before the copy has, so that the kernel's memory stays. A thread that dies in the copy is found by its
 * process's end (REAP) or by the program that another thread has executed (EXEC): the thread is gone by then.
 */
#include <linux/kernel.h>
#include <asm/ring3.h>
#include "internal.h"

bool vcpu_has_copy(struct ring3_thread *tb)
{
	return r3t_copy(tb);
}

void vcpu_copy(struct ring3_thread *tb)
{
	struct ring3_outside *copy = r3t_copy(tb);

	copy->left = ring3_copy_now(copy->to, copy->from, copy->n);
	/* The task may go on from here, and `copy' be gone. */
	r3t_request(tb) |= R3_REQ_COPIED;
	host_store(&r3t_copy(tb), NULL);
}
