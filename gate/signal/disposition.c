// SPDX-License-Identifier: GPL-2.0
/*
 * disposition.c - what the host is told to do about each signal
 *
 * SIGSYS and those that instructions raise are never blocked on the host (SIG_FORCED); what
 * the program thinks of them is kept in forced_mask.
 *
 * Processes that have their handlers in common (CLONE_SIGHAND without CLONE_THREAD) have them in common in here only,
 * for the default of one must not be set on the host while another may be in kernel code. Which of them is told what
 * on the host is not known when one asks for something: so each catches all signals there, and finds here what to do.
 */
#include "signal/signals.h"

#define SA_KEPT		(SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)

static struct gate_sighand first_sighand;

/* Is it ignored? Not if it is blocked, which those that the host never blocks may be here. */
bool signal_ignored(struct gate_sighand *sh, int sig)
{
	u64 handler = sh->action[sig].handler;

	return handler == (u64)SIG_IGN ||
	       (handler == (u64)SIG_DFL && !default_is_death(sig) && !default_is_stop(sig));
}

/* The gate has a handler for it though the program has none. */
static bool caught_by_default(int sig)
{
	return default_is_death(sig) || default_is_stop(sig) || sig == SIGCONT;
}

/* What the host is told where the program wants *want, which processes may have in common. */
static struct host_sigaction host_action(const struct host_sigaction *want, int sig, bool shared)
{
	struct host_sigaction act = {
		.handler = (u64)host_handlers.signal,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER | (want->flags & SA_KEPT),
		.restorer = (u64)host_handlers.restorer,
		.mask = ~SIG_FORCED,
	};

	if (sig == SIGSYS) {
		act.handler = (u64)host_handlers.sigsys;
		act.flags |= SA_NODEFER;
		act.mask = 0;
	} else if (SIGBIT(sig) & SIG_FORCED) {
		act.handler = (u64)host_handlers.fault;
		act.flags |= SA_NODEFER;
	} else if (want->handler == (u64)SIG_IGN ||
		   (want->handler == (u64)SIG_DFL && !caught_by_default(sig))) {
		if (shared) {
			/* The next one may be wanted by a process that does not tell the host so. */
			act.flags |= SA_RESTART;
			if (sig == SIGCHLD && want->handler == (u64)SIG_IGN)
				act.flags |= SA_NOCLDWAIT;
			return act;
		}
		act.handler = want->handler;
		act.flags &= SA_KEPT;
		act.mask = 0;
	} else if (want->handler == (u64)SIG_DFL) {
		act.flags |= SA_RESTART;
		if (default_is_stop(sig)) {
			act.handler = (u64)host_handlers.stop;
			act.mask &= ~SIGBIT(SIGCONT);
		}
	}
	return act;
}

u64 signal_host_install(struct gate_sighand *sh, int sig)
{
	struct host_sigaction act = host_action(&sh->action[sig], sig, sh->shared), old = { 0 };

	host_syscall4(__NR_rt_sigaction, sig, (long)&act, (long)&old, 8);
	return old.handler;
}

/*
 * Is the host to be told the same for both? Not of signals that it ignores: to be told once more
 * makes it forget those that are pending.
 */
bool signal_host_same(const struct host_sigaction *a, const struct host_sigaction *b, int sig)
{
	struct host_sigaction x = host_action(a, sig, false), y = host_action(b, sig, false);

	return x.handler > (u64)SIG_IGN && !memcmp(&x, &y, sizeof(x));
}

void signal_install(struct gate_sighand *sh)
{
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++)
		if (caught_by_default(sig) || sh->action[sig].handler > (u64)SIG_IGN)
			signal_host_install(sh, sig);
}

void signal_share(struct gate_sighand *sh)
{
	int sig;

	gate_lock(&sh->lock);
	if (!sh->shared) {
		sh->shared = 1;
		for (sig = 1; sig <= SIGNALS; sig++)
			if (signal_ignored(sh, sig) && sig != SIGKILL && sig != SIGSTOP)
				signal_host_install(sh, sig);
	}
	gate_unlock(&sh->lock);
}

/* Forced signals that are blocked and pending on the host become what they are in here: that of tcb->forced_pending. */
static void take_forced(struct gate_tcb *tcb, u64 set)
{
	struct timespec none = { 0 };
	siginfo_t info;
	long sig;

	while ((sig = host_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none, 8)) > 0) {
		tcb->forced_info[forced_index(sig)] = info;
		tcb->forced_pending |= SIGBIT(sig);
	}
}

/*
 * Before exec the host is told which of the forced signals the program ignores and has blocked, for the new program to
 * inherit, and of all signals where it does not know that from before; it gets those that are pending, too. After one
 * that failed, that the gate wants them.
 */
void signal_exec(bool begins)
{
	struct gate_tcb *tcb = gate_tcb();
	struct host_sigaction ignore = { .handler = (u64)SIG_IGN };
	u64 blocked = tcb->forced_mask & SIG_FORCED;
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++) {
		if ((!(SIGBIT(sig) & SIG_FORCED) && !tcb->sighand->shared) ||
		    tcb->sighand->action[sig].handler != (u64)SIG_IGN)
			continue;
		if (begins)
			host_syscall4(__NR_rt_sigaction, sig, (long)&ignore, 0, 8);
		else
			signal_host_install(tcb->sighand, sig);
	}
	if (!blocked)
		return;
	if (begins) {
		host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, (long)&blocked, 0, 8);
		for (sig = 1; sig <= SIGNALS; sig++)
			if (tcb->forced_pending & blocked & SIGBIT(sig))
				raise_info(&tcb->forced_info[forced_index(sig)]);
	} else {
		take_forced(tcb, blocked);
		host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&blocked, 0, 8);
	}
}

/* After the host's exec: dispositions are default or ignored. */
void signal_start(void)
{
	struct gate_sighand *sh = &first_sighand;
	struct gate_tcb *tcb = gate_tcb();
	u64 mask = 0, set;
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++) {
		struct host_sigaction old = { 0 };
		u64 was;

		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		if (signal_ignored(sh, sig) && !caught_by_default(sig)) {
			/* Is as it has to be, and to be told so would make the host forget those that are pending. */
			host_syscall4(__NR_rt_sigaction, sig, 0, (long)&old, 8);
			sh->action[sig].handler = old.handler;
			continue;
		}
		was = signal_host_install(sh, sig);
		if (was == (u64)SIG_IGN) {
			sh->action[sig].handler = was;
			signal_host_install(sh, sig);
		}
	}
	tcb->sighand = sh;
	tcb->alt.ss_flags = SS_DISABLE;
	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
	set = tcb->forced_mask = mask & SIG_FORCED;
	if (unlikely(set)) {
		take_forced(tcb, set);
		host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, 8);
	}
}
