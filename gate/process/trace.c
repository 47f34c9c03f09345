// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - debuggers and tracers on a node, for programs on a node
 *
 * Theory of operation
 * -------------------
 * The gate makes signals of its own in a program: SIGSYS for each call that is not rewritten yet, SIGSEGV for a bad
 * pointer, SIGBUS to stop a thread. The host tells the tracer of each before the program sees it; gdb would stop
 * there and ask. A tracer on a node has a gate as well, which sees its wait4(). If the stop concerns only the gate,
 * the tracer's gate continues the tracee (trace_hides), with the tracer's last request, and with the signal.
 *
 * - A single step into the gate continues to the end of the call: a call is one step, as on Linux.
 * - exec is announced late. The host announces it when only the gate is in memory, while a debugger looks for the
 *   program. So the tracer's gate sets a variable in the new gate's memory (gate_debugged). The new gate traps
 *   before it jumps to the program, and that trap is shown as the exec. Tracers of system calls see the exec at
 *   once: they would miss its end otherwise.
 * - PTRACE_TRACEME in a vfork child takes effect at its exec. Otherwise the child's first SIGSYS would stop it,
 *   while its parent, the tracer, can't wait for it, since vfork has not returned.
 *
 * - Registers of a thread that is in a call are shown as the program has them (trace_view.c). For that, sites of a
 *   program that was started by a debugger are not rewritten.
 *
 * - The node's adopter may have the place of a program's tracer (adopt_trace.c of the image). A call that makes a tracer
 *   first asks it for the place (trace_place_take), and tells it afterwards.
 *
 * All of this applies to tracees that run the same gate file, which exec keeps (exec.c). A tracer outside of the
 * node sees everything, gates included. A tracer on a node that does not wait for its tracee delays it.
 */
#include "policy.h"
#include "signal/signals.h"
#include "process/clone.h"
#include "process/trace.h"
#include "tuning.h"

#include <linux/futex.h>
#include <linux/ptrace.h>
#include <linux/wait.h>

#define TRACEES		1024
#define SYS_DISPATCH	2	/* si_code: SYS_USER_DISPATCH */
#define CODE_TRAPPED	4	/* CLD_TRAPPED */

static struct tracee {
	s32 tid;		/* 0: free */
	u32 request;		/* the tracer's last request */
	s32 exec;		/* between exec and the program: the status to report, or 0 */
} tracees[TRACEES] GATE_TABLE;
static u32 used;		/* number of entries ever used */
struct gate_mutex trace_lock;

extern const char _start[], gate_jump_stop[];

static long ptrace(u32 request, s32 tid, u64 addr, u64 data)
{
	return host_syscall4(__NR_ptrace, request, tid, addr, data);
}

/* NULL only if the table is full: then the tracee is not tracked. */
static struct tracee *tracee_of(s32 tid)
{
	struct tracee *free = NULL, *t;

	for (t = tracees; t < tracees + used; t++) {
		if (t->tid == tid)
			return t;
		if (!t->tid && !free)
			free = t;
	}
	if (!free && used < TRACEES)
		free = &tracees[used++];
	if (free)
		*free = (struct tracee){ .tid = tid, .request = PTRACE_CONT };
	return free;
}

static void remember(s32 tid, u32 request)
{
	struct tracee *t;

	gate_lock(&trace_lock);
	t = tracee_of(tid);
	if (t)
		t->request = request;
	gate_unlock(&trace_lock);
}

static void forget(s32 tid)
{
	struct tracee *t;

	if (!READ_ONCE(used))
		return;
	gate_lock(&trace_lock);
	for (t = tracees; t < tracees + used; t++)
		if (t->tid == tid)
			t->tid = 0;
	gate_unlock(&trace_lock);
}

/* ---- exec ---- */

/* The tracee is at the first instruction of a gate: makes it trap again before the program. */
static bool exec_begins(struct tracee *t, s32 status, const struct trace_regs *regs)
{
	u64 at = (u64)&gate_debugged, word;

	if (regs->rip != (u64)_start || t->request == PTRACE_SYSCALL)
		return false;
	if (ptrace(PTRACE_PEEKDATA, t->tid, at & ~7UL, (u64)&word))
		return false;
	word |= 1UL << (at & 7) * 8;
	if (ptrace(PTRACE_POKEDATA, t->tid, at & ~7UL, word))
		return false;
	t->exec = status;
	return true;
}

/* The tracee is about to jump to the program: makes it look as if the host had started the program. */
static void exec_ends(struct tracee *t, s32 *status, struct trace_regs *regs)
{
	siginfo_t info;

	*status = t->exec;
	t->exec = 0;
	if (!ptrace(PTRACE_PEEKDATA, t->tid, regs->gs_base + GATE_WORD(WORD_RESUME),
		    (u64)&regs->rip))
		ptrace(PTRACE_SETREGS, t->tid, 0, (u64)regs);
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_pid = t->tid;
	ptrace(PTRACE_SETSIGINFO, t->tid, 0, (u64)&info);
}

/* ---- stops ---- */

/* The hexadecimal number after `name` in /proc/TID/status; ~0: none. */
static u64 status_word(s32 tid, const char *name)
{
	char path[32], text[2048];
	const char *word, *end;

	gate_format(path, sizeof(path), "/proc/%d/status", tid);
	read_proc(path, text, sizeof(text));
	word = proc_line(text, name);
	return word ? gate_strtou(word, 16, &end) : ~0UL;
}

/*
 * A gate catches every signal that may kill or stop. To let the default action happen, it raises the signal once
 * more (sigframe.c), after the tracer was told of it before.
 */
static bool raised_again(s32 tid, u32 sig, const struct trace_regs *regs)
{
	return sig != SIGTRAP && (default_is_death(sig) || default_is_stop(sig)) &&
	       in_ring3(regs->gs_base) && !(status_word(tid, "SigCgt:\t") & SIGBIT(sig)) &&
	       !(status_word(tid, "SigIgn:\t") & SIGBIT(sig));
}

/* A stop by a signal that concerns only the gate. */
static bool signal_is_ours(const siginfo_t *info, const struct trace_regs *regs)
{
	switch (info->si_signo) {
	case SIGSYS:
		return info->si_code == SYS_DISPATCH;
	case SIGSEGV:
	case SIGBUS:
		return stop_is_mark(info) || (info->si_code > 0 && in_ring3(regs->rip));
	}
	return false;
}

static bool step_is_ours(const struct tracee *t, const siginfo_t *info, const struct trace_regs *regs)
{
	if (t->request != PTRACE_SINGLESTEP || info->si_signo != SIGTRAP || !in_ring3(regs->rip))
		return false;
	/* A software or hardware breakpoint was set on purpose. */
	return info->si_code != SI_KERNEL && info->si_code != TRAP_HWBKPT;
}

/*
 * tid has stopped with *status. True: the stop was hidden, and tid runs again. Otherwise *status is what to report
 * to the program.
 */
static bool stop_hides(struct tracee *t, s32 *status)
{
	u32 sig = *status >> 8 & 0xff, event = *status >> 16;
	struct trace_regs regs;
	siginfo_t info;

	if (event && event != PTRACE_EVENT_EXEC)
		return false;
	if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, (u64)&info) ||
	    ptrace(PTRACE_GETREGS, t->tid, 0, (u64)&regs))
		return false;		/* not our tracee, or a group stop */
	if (t->exec && sig == SIGTRAP && regs.rip == (u64)gate_jump_stop) {
		exec_ends(t, status, &regs);
		return false;
	}
	if (t->exec)
		return !ptrace(PTRACE_CONT, t->tid, 0, sig == SIGTRAP ? 0 : sig);
	if (sig == SIGTRAP && exec_begins(t, *status, &regs))
		return !ptrace(PTRACE_CONT, t->tid, 0, 0);
	if (!event && (signal_is_ours(&info, &regs) || raised_again(t->tid, sig, &regs)))
		return !ptrace(t->request, t->tid, 0, sig);
	return step_is_ours(t, &info, &regs) && !ptrace(PTRACE_SINGLESTEP, t->tid, 0, 0);
}

static bool trace_hides(s32 tid, s32 *status)
{
	struct tracee *t;
	bool hidden = false;

	if ((*status & 0xff) != 0x7f) {
		forget(tid);		/* no-op if it was not a tracee */
		return false;
	}
	gate_lock(&trace_lock);
	t = tracee_of(tid);
	if (t)
		hidden = stop_hides(t, status);
	gate_unlock(&trace_lock);
	return hidden;
}

/* ---- registers ---- */

/* System calls are traced: then the tracer wants the host's registers. */
static bool traces_calls(s32 tid)
{
	struct tracee *t;
	bool calls;

	gate_lock(&trace_lock);
	t = tracee_of(tid);
	calls = !t || t->request == PTRACE_SYSCALL;
	gate_unlock(&trace_lock);
	return calls;
}

static long get_regs(struct gate_regs *r)
{
	struct trace_regs regs;
	long ret = ptrace(PTRACE_GETREGS, r->a[1], 0, (u64)&regs);

	if (ret)
		return ret;
	if (!traces_calls(r->a[1]))
		trace_view(r->a[1], &regs);
	return gate_copy_out(user_ptr(r->a[3]), &regs, sizeof(regs));
}

/* A view can't be changed. Writing back the values that were read is allowed. */
static long set_regs(struct gate_regs *r)
{
	struct trace_regs regs, wanted;

	if (ptrace(PTRACE_GETREGS, r->a[1], 0, (u64)&regs) || traces_calls(r->a[1]) ||
	    !trace_view(r->a[1], &regs))
		return gate_host_regs(r);
	if (gate_copy_in(&wanted, user_ptr(r->a[3]), sizeof(wanted)))
		return -EFAULT;
	return memcmp(&regs, &wanted, sizeof(regs)) ? -EIO : 0;
}

/* ---- the place of the tracer ---- */

/* The node's adopter traces programs on some hosts (adopt_trace.c of the image). It looks at what was asked of it. */
static void adopter_call(void)
{
	s32 pid = READ_ONCE(gate.region->tracer);

	/* A program of another uid may not signal it: the keeper does. */
	if (pid > 0 && host_syscall2(__NR_kill, pid, SIGUSR1))
		procs_changed();
}

/* The adopter sees in this process's own entry what it wants: a program that is killed wants nothing any more. */
struct ring3_proc *trace_place_take(s32 tid)
{
	struct timespec turn = { .tv_nsec = PLACE_TURN_NS };
	struct ring3_proc *own, *proc;
	u32 i = 0, place, none = 0;

	/* At -1 there may be an adopter soon, which sees what is wanted before it traces. */
	if (!gate.region || !READ_ONCE(gate.region->tracer))
		return NULL;
	while ((proc = proc_next(&i)) && host_syscall3(__NR_tgkill, proc->pid, tid, 0) == -ESRCH)
		;
	if (!proc)
		return NULL;
	own = proc_of(gate_thread());
	while (!__atomic_compare_exchange_n(&own->wants, &none, proc - gate.region->procs + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST)) {
		none = 0;
		host_nap(PLACE_TURN_NS);	/* another thread is about to become a tracer */
	}
	adopter_call();
	for (i = 0; i < PLACE_TURNS && READ_ONCE(gate.region->tracer) > 0; i++) {
		place = READ_ONCE(proc->place);
		if (place & RING3_PLACE_FREE)
			break;
		host_syscall4(__NR_futex, (long)&proc->place, FUTEX_WAIT, place, (long)&turn);
	}
	return own;
}

void trace_place_give(struct ring3_proc *own)
{
	if (!own)
		return;
	__atomic_store_n(&own->wants, 0, __ATOMIC_SEQ_CST);
	adopter_call();
}

/* This process has just joined: it is traced before it runs kernel code. An adopter that does not come is not waited for. */
void trace_await(void)
{
	struct timespec turn = { .tv_nsec = TRACED_WAIT_NS };
	struct ring3_proc *own = proc_of(gate_thread());

	if (!gate.region || READ_ONCE(gate.region->tracer) <= 0)
		return;
	adopter_call();
	host_syscall4(__NR_futex, (long)&own->traced, FUTEX_WAIT, 0, (long)&turn);
}

/* The host's call that makes a tracer: of the thread that it names, or of this one. */
static long begin_trace(struct gate_regs *r, s32 tid)
{
	struct ring3_proc *own = trace_place_take(tid);
	long ret = gate_host_regs(r);

	trace_place_give(own);
	return ret;
}

static long end_trace(struct gate_regs *r)
{
	long ret;

	forget(r->a[1]);
	ret = gate_host_regs(r);
	if (!ret && gate.region)
		adopter_call();
	return ret;
}

/* ---- the tracer's calls ---- */

long do_wait4(struct gate_regs *r)
{
	s32 status = 0;
	long ret;

	do {
		ret = gate_host(r->nr, r->a[0], (long)&status, r->a[2], r->a[3], 0, 0);
	} while (ret > 0 && trace_hides(ret, &status));
	if (ret > 0 && r->a[1] && gate_copy_out(user_ptr(r->a[1]), &status, sizeof(status)))
		return -EFAULT;
	return ret;
}

long do_waitid(struct gate_regs *r)
{
	siginfo_t info;
	s32 status;
	long ret;

	if (r->a[3] & WNOWAIT)
		return gate_host_regs(r);
	for (;;) {
		memset(&info, 0, sizeof(info));
		ret = gate_host(r->nr, r->a[0], r->a[1], (long)&info, r->a[3], r->a[4], 0);
		if (ret || !info.si_pid)
			break;
		/* As in wait4(); for the end of a process any status that is not a stop will do. */
		status = info.si_code == CODE_TRAPPED ? info.si_status << 8 | 0x7f : 0;
		if (info.si_code == CODE_TRAPPED || info.si_code < CODE_TRAPPED) {
			if (trace_hides(info.si_pid, &status))
				continue;
			if (info.si_code == CODE_TRAPPED)
				info.si_status = status >> 8;
		}
		break;
	}
	if (!ret && r->a[2] && gate_copy_out(user_ptr(r->a[2]), &info, sizeof(info)))
		return -EFAULT;
	return ret;
}

long do_ptrace(struct gate_regs *r)
{
	u32 request = r->a[0];
	s32 tid = r->a[1];

	switch (request) {
	case PTRACE_TRACEME:
		if (!gate_tcb()->borrowed)
			return begin_trace(r, host_syscall0(__NR_gettid));
		gate_tcb()->traceme = 1;
		return 0;
	case PTRACE_ATTACH:
	case PTRACE_SEIZE:
		return begin_trace(r, tid);
	case PTRACE_CONT:
	case PTRACE_SINGLESTEP:
	case PTRACE_SINGLEBLOCK:
	case PTRACE_SYSCALL:
	case PTRACE_SYSEMU:
	case PTRACE_SYSEMU_SINGLESTEP:
		remember(tid, request);
		break;
	case PTRACE_GETREGS:
		return get_regs(r);
	case PTRACE_SETREGS:
		return set_regs(r);
	case PTRACE_DETACH:
		return end_trace(r);
	}
	return gate_host_regs(r);
}
