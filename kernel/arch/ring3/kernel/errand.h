/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RING3_ERRAND_H
#define RING3_ERRAND_H

#include <linux/types.h>

struct ring3_proc;
struct ring3_thread;

/* For a process, or for one of its threads. */
struct ring3_signal {
	s32 pid;
	s32 tid;		/* 0: for the process */
	s32 signo;
	s32 fd;			/* with F_SETSIG: si_fd */
	u32 band;		/* ... and si_band; 0: a plain SIGIO or SIGURG */
};

/* signals.c; inside: the task's own thread waits for the result of its call. */
void ring3_take_signals(struct ring3_thread *tb, bool inside);
void ring3_signal(const struct ring3_proc *to, const struct ring3_signal *s);
void ring3_console_put(const char *s, u32 n);
void ring3_errands(void);

/* host.c; made by the keeper, or for a signal by a thread of the receiving process. */
long ring3_host_signal(const struct ring3_signal *s);
void ring3_host_stderr(const char *s, u32 n);

#endif
