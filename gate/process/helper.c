// SPDX-License-Identifier: GPL-2.0
/*
 * helper.c - a hidden thread of the process, unknown to the program
 *
 * It is started like any thread (gate_clone), from an artificial context: all signals blocked, a stack of its own,
 * no TLS. Its task shares the program's descriptors. It must not keep the program alive: the last thread of the
 * program ends the process.
 */
#include "policy.h"
#include "tuning.h"

#define HELPER_STACK	(64ul << 10)	/* the first page is a guard */
#define HELPER_FLAGS	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
			 CLONE_SYSVSEM)
#define USER_CS		0x33
#define USER_SS		0x2b
#define FLAGS_IF	0x202

static struct gate_mutex helper_exits;
static u64 helper_proc;		/* the process that has the helper: not a vfork child of it */
static char *helper_stack;
static s32 helper_tid;

static void __attribute__((noreturn)) helper_main(void (*fn)(void))
{
	u64 all = ~0ull;
	struct gate_regs forced = {	/* signals that the host never blocks, too */
		.nr = __NR_rt_sigprocmask, .a = { SIG_SETMASK, (u64)&all, 0, sizeof(all) },
	};

	gate_sigprocmask(&forced);
	/* The node must not choose this thread for a signal to the process, either. */
	image_call4(__NR_rt_sigprocmask, SIG_SETMASK, &all, 0, sizeof(all));
	fn();
	__builtin_unreachable();
}

long gate_helper(void (*fn)(void))
{
	struct gate_regs r = { .nr = __NR_clone };
	struct sigcontext *sc;
	struct ucontext *uc;
	char *stack;
	long ret;

	stack = gate_pages(HELPER_STACK);
	if (!stack)
		return -ENOMEM;
	host_syscall3(__NR_mprotect, (long)stack, GATE_PAGE, PROT_NONE);
	/* The context is copied before gate_clone() returns. */
	uc = (struct ucontext *)(stack + GATE_PAGE);
	uc->uc_flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	uc->uc_sigmask = ~0ul;
	sc = &uc->uc_mcontext;
	sc->rip = (u64)helper_main;
	sc->rdi = (u64)fn;
	sc->rsp = (u64)stack + HELPER_STACK - 8;	/* as after a call */
	sc->cs = USER_CS;
	sc->ss = USER_SS;
	sc->eflags = FLAGS_IF;
	r.a[0] = HELPER_FLAGS;
	r.uctx = uc;
	ret = gate_clone(&r);
	if (ret < 0) {
		gate_pages_free(stack, HELPER_STACK);
		return ret;
	}
	helper_proc = gate_thread()->proc;
	helper_stack = stack;
	helper_tid = ret;
	return 0;
}

/* Called by the helper. */
void helper_exit(void)
{
	struct gate_regs r = { .nr = __NR_exit };

	gate_exit_task(&r);
	gate_exit(&r);
}

/*
 * Waits until the helper, which has been told to end, has ended on the host. A tracer may keep it there after its
 * task has ended in the node; then its stack is not freed.
 */
void helper_gone(void)
{
	struct ring3_proc *proc = (struct ring3_proc *)helper_proc;
	s32 pid = host_syscall0(__NR_getpid);
	u32 i;

	for (i = 0; i < HELPER_NAPS_MAX || READ_ONCE(proc->threads) > 1; i++) {
		if (host_syscall3(__NR_tgkill, pid, helper_tid, 0) == -ESRCH) {
			gate_pages_free(helper_stack, HELPER_STACK);
			break;
		}
		host_nap(HELPER_NAP_NS);
	}
	/* The tid disappears a little before the thread is removed from the host's lists. */
	host_nap(HELPER_NAP_NS);
	helper_proc = 0;
}

GATE_FORKED void helper_forked(void)
{
	helper_exits.word = 0;
	helper_proc = 0;
}

u32 helper_others(void)
{
	struct ring3_proc *proc = (struct ring3_proc *)gate_thread()->proc;

	return READ_ONCE(proc->threads) - 1 - (helper_proc == (u64)proc);
}

/*
 * exit(2): ends the process if only the helper would be left. If two threads exit at once, the second one finds
 * that the first is gone: its task has ended, or is about to, when gate_exit_task() returns.
 */
long do_exit(struct gate_regs *r)
{
	bool last;

	if (helper_proc != gate_thread()->proc) {
		gate_exit_task(r);
		return gate_exit(r);
	}
	gate_lock(&helper_exits);
	last = !helper_others();
	if (!last)
		gate_exit_task(r);
	gate_unlock(&helper_exits);
	return last ? gate_exit_group(r) : gate_exit(r);
}
