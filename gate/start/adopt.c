// SPDX-License-Identifier: GPL-2.0
/*
 * adopt.c - this process becomes the node's adopter
 *
 * The image's adopt.c says what an adopter is, and continues from here. The keeper starts the gate for it, since
 * the gate knows how a process joins a node.
 */
#include "internal.h"
#include <linux/prctl.h>

/*
 * Its descriptors have numbers that programs mostly do not use: kernel code of a killed program that was about to
 * use one of the program's descriptors finds none here.
 */
#define FD_BASE		16000

/* A thread that never runs a program has no GS, which entry.S uses. */
static void enter(struct ring3_thread *t, u64 how)
{
	register struct ring3_thread *r10 asm("r10") = t;
	u64 nr = RING3_NR_ADOPT;

	asm volatile("callq *%3" : "+a"(nr), "+r"(r10), "+D"(how) : "r"(gate.enter)
		     : "rcx", "rdx", "rsi", "r8", "r9", "r11", "memory", "cc");
}

void gate_adopt(const char *path, const char *how)
{
	struct ring3_thread *t;
	struct rlimit64 lim;
	int fd;

	host_syscall2(__NR_prctl, PR_SET_PDEATHSIG, 9 /* SIGKILL */);
	host_syscall2(__NR_prctl, PR_SET_NAME, (long)"ring3-adopt");
	host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&lim);
	fds_start(lim.rlim_max >= FD_BASE + GATE_RESERVED_FDS ? FD_BASE : 0);
	t = node_join(path, RING3_ADOPT_MAGIC);
	fds_started();
	t->tid = host_syscall0(__NR_gettid);
	for (fd = 0; fd < 3; fd++)
		host_syscall1(__NR_close, fd);
	enter(t, how[0] == 't' ? RING3_ADOPT_TRACE : RING3_ADOPT_BEST);
	gate_die(125, "the node has no adopter");
}
