// SPDX-License-Identifier: GPL-2.0
/*
 * disposition.c - the host's disposition of each signal
 *
 * SIGSYS and the signals that instructions raise are never blocked on the host (SIG_FORCED); forced_mask has the
 * program's mask of them.
 *
 * Processes that share handlers (CLONE_SIGHAND without CLONE_THREAD) share them in the gate only: if one sets a
 * signal to its default, the host must not apply that while another one may be in kernel code. When one process
 * changes a handler, its gate cannot set the host's dispositions of the others. So each process catches all signals
 * on the host, and looks up here what to do.
 */
#include "signal/signals.h"

#define SA_KEPT		(SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)

static struct gate_sighand first_sighand GATE_KEPT;	/* its lock, which a fork takes, comes first */

/* Is the signal ignored? Not while it is blocked, which in the gate even the forced signals may be. */
bool signal_ignored(struct gate_sighand *sh, int sig)
{
	u64 handler = sh->action[sig].handler;

	return handler == (u64)SIG_IGN ||
	       (handler == (u64)SIG_DFL && !default_is_death(sig) && !default_is_stop(sig));
}

/* True if the gate has a handler for it although the program has none. */
static bool caught_by_default(int sig)
{
	return default_is_death(sig) || default_is_stop(sig) || sig == SIGCONT;
}

/* The host's disposition if the program's is *want, and other processes may share it. */
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
			/* Another process that shares the handlers may want it, and has not told the host. */
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
 * Do both need the same disposition on the host? Never true for a signal that the host ignores: setting that again
 * makes the host drop pending ones.
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

/* Takes forced signals that are blocked and pending on the host over into tcb->forced_pending. */
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
 * Before exec: tells the host which of the forced signals the program ignores and has blocked, for the new program
 * to inherit, and for other signals which are ignored if the host does not know; raises the pending ones on the
 * host. After a failed exec: restores the gate's handlers.
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

/* After the host's exec: each disposition is default or ignored. */
void signal_start(void)
{
	struct gate_sighand *sh = &first_sighand;
	struct gate_tcb *tcb = gate_tcb();
	u64 mask = 0, set;
	int sig;

	/* First: a signal may arrive as soon as its handler is installed. */
	tcb->sighand = sh;
	tcb->alt.ss_flags = SS_DISABLE;
	for (sig = 1; sig <= SIGNALS; sig++) {
		struct host_sigaction old = { 0 };
		u64 was;

		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		if (signal_ignored(sh, sig) && !caught_by_default(sig)) {
			/* Already right. To set it again would make the host drop pending ones. */
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
	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
	set = tcb->forced_mask = mask & SIG_FORCED;
	if (unlikely(set)) {
		take_forced(tcb, set);
		host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, 8);
	}
}
