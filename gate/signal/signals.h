/* SPDX-License-Identifier: GPL-2.0 */
/*
 * signals.h - shared by the files of this folder
 */
#ifndef GATE_SIGNALS_H
#define GATE_SIGNALS_H

#include "internal.h"

#define SS_AUTODISARM_BIT	(1u << 31)	/* of stack_t.ss_flags; SS_AUTODISARM */

static inline bool default_is_death(int sig)
{
	switch (sig) {
	case SIGCHLD:
	case SIGURG:
	case SIGWINCH:
	case SIGCONT:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	}
	return true;
}

static inline bool default_is_stop(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static inline bool from_outside(const siginfo_t *info)
{
	return info->si_code <= 0;
}

/*
 * The first process of a PID namespace gets no signal without a handler, unless an instruction raises it. The host
 * would enforce that if the gate had no handlers.
 */
static inline bool is_init(void)
{
	return host_syscall0(__NR_getpid) == 1;
}

static inline u32 forced_index(int sig)
{
	return __builtin_popcountl(SIG_FORCED & (SIGBIT(sig) - 1));
}

/* In si_errno of a SIGCHLD: sent by the node, not by the host, whose SIGCHLD comes in real time. */
#define OF_NODE		0x52494e47

static inline void raise_info(const siginfo_t *info)
{
	host_syscall4(__NR_rt_tgsigqueueinfo, host_syscall0(__NR_getpid),
		      host_syscall0(__NR_gettid), info->si_signo, (long)info);
}

static inline void raise_plain(int sig)
{
	host_syscall3(__NR_tgkill, host_syscall0(__NR_getpid), host_syscall0(__NR_gettid), sig);
}

static inline void host_default(int sig)
{
	struct host_sigaction dfl = { 0 };

	host_syscall4(__NR_rt_sigaction, sig, (long)&dfl, 0, 8);
}

/* disposition.c */
/* Sets the host's disposition to what sh says; returns the handler from before. */
u64 signal_host_install(struct gate_sighand *sh, int sig);
bool signal_host_same(const struct host_sigaction *a, const struct host_sigaction *b, int sig);
bool signal_ignored(struct gate_sighand *sh, int sig);

/* noted.c */
void signal_note(const siginfo_t *info, struct ucontext *uc);
void signal_quiet(struct gate_tcb *tcb);	/* nothing is noted any more */

/* signal.c: the handlers that the host calls */
typedef void (*host_handler)(int sig, siginfo_t *info, struct ucontext *uc);
extern const struct host_handlers {
	host_handler signal, sigsys, fault;
	const char *stop, *stop_noted;		/* context.S: for a stop signal without a handler of the program */
	void (*restorer)(void);
} host_handlers;

/* sigframe.c */
/* uc is a context of the program: starts the handler there, or does the default action. */
void signal_deliver_one(struct ucontext *uc, const siginfo_t *info);
bool signal_on_altstack(const struct gate_tcb *tcb, u64 sp);

/* sigstop.c */
/* Takes a stop signal: it becomes pending on the host again, unless SIGCONT has come meanwhile. */
void sigstop_raise(int sig);
void sigstop_taken(void);
/* Stops all threads, none of them inside the image. */
void sigstop_process(int sig);
/* SIGCONT has come: true if it interrupted gate_on_stop, and nothing is left to do. */
bool sigstop_continued(const siginfo_t *info, struct ucontext *uc);
/* ... and it has not interrupted it. */
void sigstop_pass_on(void);
/* A timer has sent it, and the program has no handler. */
void sigstop_of_timer(void);

#endif /* GATE_SIGNALS_H */
