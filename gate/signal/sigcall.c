// SPDX-License-Identifier: GPL-2.0
/*
 * sigcall.c - the program's system calls about signals
 */
#include "signal/signals.h"

#define MIN_ALTSTACK	2048	/* MINSIGSTKSZ */
#define FP_ROOM_BYTES	4096	/* AVX-512's is 2.7 KiB */

/* The flags that Linux knows (UAPI_SA_FLAGS). It drops others, so that programs can detect support. */
#define FLAGS_KNOWN	((u64)(u32)(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | \
				    SA_RESETHAND | SA_EXPOSE_TAGBITS | SA_RESTORER))

long gate_sigaction(struct gate_regs *r)
{
	struct gate_sighand *sh = gate_tcb()->sighand;
	struct host_sigaction act, old;
	int sig = r->a[0];

	if (r->a[3] != sizeof(u64))
		return -EINVAL;
	if (sig < 1 || sig > SIGNALS || (r->a[1] && (sig == SIGKILL || sig == SIGSTOP)))
		return -EINVAL;
	if (r->a[1] && gate_copy_in(&act, (void *)r->a[1], sizeof(act)))
		return -EFAULT;

	gate_lock(&sh->lock);
	old = sh->action[sig];
	if (r->a[1]) {
		act.mask &= ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
		act.flags &= FLAGS_KNOWN;
		sh->action[sig] = act;
		/* posix_spawn() sets all 64 signals to what they already are. */
		if (!signal_host_same(&old, &act, sig))
			signal_host_install(sh, sig);
	}
	gate_unlock(&sh->lock);
	if (r->a[2] && gate_copy_out((void *)r->a[2], &old, sizeof(old)))
		return -EFAULT;
	return 0;
}

static void release_forced(struct gate_tcb *tcb)
{
	u64 ready = tcb->forced_pending & ~tcb->forced_mask;
	int sig;

	if (likely(!ready))
		return;
	tcb->forced_pending &= ~ready;
	for (sig = 1; sig <= SIGNALS; sig++)
		if (ready & SIGBIT(sig))
			raise_info(&tcb->forced_info[forced_index(sig)]);
}

long gate_sigprocmask(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();
	int how = r->a[0];
	u64 set = 0, host_set, old = 0, seen, mask;
	long ret;

	if (r->a[3] != sizeof(u64))
		return -EINVAL;
	if (r->a[1] && gate_copy_in(&set, (void *)r->a[1], sizeof(set)))
		return -EFAULT;
	set &= ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
	host_set = set & ~SIG_FORCED;
	/* By gate_host(): while a signal is noted, the host's mask is not the program's. */
	ret = gate_host(__NR_rt_sigprocmask, how, r->a[1] ? (long)&host_set : 0, (long)&old,
			sizeof(u64), 0, 0);
	if (ret)
		return ret;
	seen = old | tcb->forced_mask;
	if (r->a[1]) {
		mask = how == SIG_BLOCK ? seen | set : how == SIG_UNBLOCK ? seen & ~set : set;
		tcb->forced_mask = mask & SIG_FORCED;
		if (r->uctx)
			r->uctx->uc_sigmask = mask & ~SIG_FORCED;
		release_forced(tcb);
	}
	if (r->a[2] && gate_copy_out((void *)r->a[2], &seen, sizeof(seen)))
		return -EFAULT;
	return 0;
}

static u64 program_sp(const struct gate_regs *r)
{
	return r->uctx ? r->uctx->uc_mcontext.rsp : gate_thread()->gate[WORD_SP];
}

long gate_sigaltstack(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();
	bool inside = signal_on_altstack(tcb, program_sp(r));
	stack_t new, old = tcb->alt;
	u32 mode;

	if (!old.ss_size)
		old.ss_flags = SS_DISABLE | (old.ss_flags & SS_AUTODISARM_BIT);
	else
		old.ss_flags = (inside ? SS_ONSTACK : 0) | (old.ss_flags & SS_AUTODISARM_BIT);

	if (r->a[0]) {
		if (gate_copy_in(&new, (void *)r->a[0], sizeof(new)))
			return -EFAULT;
		if (inside)
			return -EPERM;
		mode = new.ss_flags & ~SS_AUTODISARM_BIT;
		if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
			return -EINVAL;
		if (mode == SS_DISABLE) {
			new.ss_sp = NULL;
			new.ss_size = 0;
		} else if (new.ss_size < MIN_ALTSTACK) {
			return -ENOMEM;
		}
		tcb->alt = new;
	}
	if (r->a[1] && gate_copy_out((void *)r->a[1], &old, sizeof(old)))
		return -EFAULT;
	return 0;
}

/*
 * The program's frame is read and not written, as on Linux: its stack may be read-only by now. And a signal that is
 * delivered from here on builds its frame over this one. So the host resumes a copy, including the FP state.
 */
struct resumed {
	struct ucontext uc;	/* first member: memory below it may be overwritten during the host's call */
	char fp[FP_ROOM_BYTES] __attribute__((aligned(64)));
};

static bool sigreturn_copy(struct resumed *copy, const struct ucontext *at)
{
	char *fp = copy->fp;
	u64 from;
	u32 size;

	if (gate_copy_in(&copy->uc, at, sizeof(copy->uc)))
		return false;
	from = (u64)copy->uc.uc_mcontext.fpstate;
	if (!from)
		return true;
	if (gate_copy_in(fp, (void *)from, FP_LEGACY_BYTES))
		return false;
	size = fp_bytes(fp);
	if (size > sizeof(copy->fp))
		return true;		/* of a processor with more registers, or invalid: the host uses it in place */
	if (size > FP_LEGACY_BYTES && gate_copy_in(fp, (void *)from, size))
		return false;
	copy->uc.uc_mcontext.fpstate = (void *)fp;
	return true;
}

/*
 * rt_sigreturn, at the end of a handler of the program. Does not return: the host loads the frame. The frame's
 * stack becomes the gate's alternate stack, and its mask gets no forced signal.
 */
long gate_sigreturn(struct gate_regs *r)
{
	struct ucontext *at = (void *)r->uctx->uc_mcontext.rsp;
	struct gate_tcb *tcb = gate_tcb();
	struct resumed copy;

	signal_block_all();
	if (tcb->npending)
		return -ERESTARTNOINTR;	/* deliver the signal first, then restart this call */
	if (!sigreturn_copy(&copy, at))
		goto bad;
	tcb->forced_mask = copy.uc.uc_sigmask & SIG_FORCED;
	release_forced(tcb);
	if (tcb->npending)
		return -ERESTARTNOINTR;	/* the frame is still unchanged */
	tcb->alt = copy.uc.uc_stack;
	copy.uc.uc_sigmask &= ~SIG_FORCED;
	copy.uc.uc_stack = tcb_altstack(tcb);
	gate_resume(&copy.uc);
bad:
	raise_plain(SIGSEGV);		/* as the kernel does for a bad frame */
	return 0;
}

/*
 * The host's own frame has the mask from before the call; the temporary mask is gone when the gate's handler runs.
 * So it is kept here for the program's handler.
 */
static void hostmask_begin(u64 set)
{
	struct gate_tcb *tcb = gate_tcb();

	tcb->temp_set = set & ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
	barrier();
	WRITE_ONCE(tcb->temp_host, 1);
	barrier();
}

void gate_hostmask_begin(u64 user)
{
	u64 set;

	if (user && !gate_copy_in(&set, (void *)user, sizeof(set)))
		hostmask_begin(set);
}

void gate_hostmask_end(long ret)
{
	struct gate_tcb *tcb = gate_tcb();

	barrier();
	WRITE_ONCE(tcb->temp_host, 0);
	/* Noted before or after the call: the temporary mask did not matter. */
	if (ret != -EINTR)
		tcb->temp_noted = 0;
}

long gate_host_masked(const struct gate_regs *r, u64 user)
{
	long ret;

	gate_hostmask_begin(user);
	ret = gate_host_regs(r);
	gate_hostmask_end(ret);
	return ret;
}

long gate_sigsuspend(struct gate_regs *r)
{
	u64 set;
	long ret;

	if (r->a[1] != sizeof(set))
		return -EINVAL;
	if (gate_copy_in(&set, (void *)r->a[0], sizeof(set)))
		return -EFAULT;
	hostmask_begin(set);
	set &= ~SIG_FORCED;
	ret = gate_host(__NR_rt_sigsuspend, (long)&set, sizeof(set), 0, 0, 0, 0);
	gate_hostmask_end(ret);
	return ret == -EINTR ? -ERESTARTNOHAND : ret;
}

void gate_sigmask_begin(u64 set)
{
	struct gate_tcb *tcb = gate_tcb();
	u64 mask = 0;

	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask));
	if (READ_ONCE(tcb->npending))
		return;		/* the call will return at once */
	tcb->temp_orig = mask;
	tcb->temp_set = set & ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
	barrier();
	WRITE_ONCE(tcb->temp_active, 1);
	barrier();
	set &= ~SIG_FORCED;
	gate_host(__NR_rt_sigprocmask, SIG_SETMASK, (long)&set, 0, sizeof(set), 0, 0);
}

/*
 * The call has returned a result although signals are noted: those that the old mask blocks become pending on the
 * host again. All signals have been blocked since the first was noted.
 */
static void put_back(struct gate_tcb *tcb)
{
	u32 i, kept = 0;

	for (i = 0; i < tcb->npending; i++) {
		siginfo_t *info = &tcb->pending[i];

		if (!(tcb->temp_orig & SIGBIT(info->si_signo)))
			tcb->pending[kept++] = *info;
		else if (info->si_code == SI_TKILL || !from_outside(info) ||
			 host_syscall3(__NR_rt_sigqueueinfo, host_syscall0(__NR_getpid),
				       info->si_signo, (long)info))
			/* Only the first thread may send a siginfo as of kill() to the process. */
			raise_info(info);
	}
	tcb->npending = kept;
	tcb->temp_noted = 0;
	if (!kept)
		signal_quiet(tcb);
}

void gate_sigmask_end(long ret)
{
	struct gate_tcb *tcb = gate_tcb();

	if (!tcb->temp_active)
		return;
	if (unlikely(READ_ONCE(tcb->npending)) && ret != -EINTR && !is_restart(ret))
		put_back(tcb);
	/* If a signal is noted, all stay blocked until it is delivered. */
	gate_host(__NR_rt_sigprocmask, SIG_SETMASK, (long)&tcb->temp_orig, 0, sizeof(u64), 0, 0);
	barrier();
	WRITE_ONCE(tcb->temp_active, 0);
}
