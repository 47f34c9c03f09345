// SPDX-License-Identifier: GPL-2.0
/*
 * adopt.c - what a thread was doing in kernel code when it was killed is gone on with
 *
 * Theory of operation
 * -------------------
 * Kernel code never knows who runs it, uses general registers only, and its stacks lie in the
 * region. So when a thread is killed in there, all that is lost is its registers; and the host
 * can be asked for those (adopt_bpf.c, adopt_trace.c). The adopter, a process that the keeper starts, takes them and
 * goes on at the very instruction.
 *
 * The killed thread is the vCPU's owner. Where it was tells what is to be done:
 *
 *	on a task's stack	The vCPU's successor, a thread of the adopter (adopt_drive.c), becomes owner and
 *				driver and loads the registers. It drives as ring3-ports does, for others, and goes
 *				home when it can. The context waits if the successor is still on its way home.
 *	on its own stack	All tasks are parked there, and what vcpu/ does may be done again: the
 *				vCPU becomes free, and its KEEP is told to look at everything.
 *	in the gate		with the vCPU handed to it, or held by gate/signal/kill.c: the same.
 *
 * User memory: there is none here. The adopter unmaps all of its process but the node's memory. A
 * copy that was under way, or comes later, faults and ends with EFAULT, as for any bad pointer; the
 * call's result has nobody to go to. The thread's task is marked (R3_F_KILL) and ends at the call's end.
 *
 * Host calls of kernel code: one that the death has cut short says EINTR. Descriptors of the
 * adopter's have numbers that programs do not use.
 *
 * Code in entry.S that has the driver's thread block in a register goes on a few instructions
 * before, where it looked it up (restarts[]). C code that has asked who drives need not be right any more: it
 * is about a thread that is gone, whose block stays until its task has ended.
 *
 * A thread that job control stops while it has a vCPU runs on until it has let go of that (adopt_stop.c).
 *
 * Where registers can't be had, or the adopter is not there (yet), the node is poisoned as ever (vcpu/dead.c).
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mman.h>
#include <linux/signal_types.h>
#include <linux/time64.h>
#include <uapi/linux/poll.h>
#include <asm/ring3.h>
#include <asm/sections.h>
#include <asm/unistd.h>
#include "adopt.h"

#define SYSCALL_INSN		0x050f
#define EFLAGS_CONTEXT		0xcd5UL		/* carry, parity, adjust, zero, sign, direction, overflow */
#define EFLAGS_FIXED		0x202UL

extern char ring3_returned[], ring3_left[], ring3_settled[], ring3_settled_end[], ring3_parking[], ring3_parked[];
void ring3_on_stack(unsigned long top, void (*fn)(struct ring3_thread *), struct ring3_thread *me);
void ring3_sigreturn(void);

struct ring3_thread ring3_adopter_thread;
struct ring3_proc ring3_adopter_proc;

static bool between(unsigned long x, const void *start, const void *end)
{
	return x > (unsigned long)start && x < (unsigned long)end;
}

/* No thread has its own stack in the region. */
static bool on_task_stack(const struct ring3_regs *regs)
{
	unsigned long base = (unsigned long)&ring3_region;

	return regs->sp >= base && regs->sp < base + ring3_region.size;
}

/* What a handler of the gate's has interrupted, if it was in here. */
static void see_through_handler(struct ring3_thread *holder, struct ring3_regs *regs)
{
	const u64 *word = &holder->gate[RING3_ADOPT_WORD];

	if (regs->ip >= RING3_SPACE_BASE || !host_load(word))
		return;
	*regs = (struct ring3_regs) {
		.r8 = word[1], .r9 = word[2], .r10 = word[3], .r11 = word[4], .r12 = word[5], .r13 = word[6],
		.r14 = word[7], .r15 = word[8], .di = word[9], .si = word[10], .bp = word[11], .bx = word[12],
		.dx = word[13], .ax = word[14], .cx = word[15], .sp = word[16], .ip = word[17], .flags = word[18],
	};
}

static bool in_text(const struct ring3_regs *regs)
{
	return regs->ip >= (unsigned long)_stext && regs->ip < (unsigned long)_etext;
}

/* Where it goes on. */
static void prepare(struct ring3_regs *regs)
{
	const struct { char *start, *end; } restarts[] = {
		{ ring3_returned, ring3_left },
		{ ring3_settled, ring3_settled_end },
		{ ring3_parking, ring3_parked },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(restarts); i++)
		if (between(regs->ip, restarts[i].start, restarts[i].end))
			regs->ip = (unsigned long)restarts[i].start;
	/* -ERESTARTSYS to -ERESTART_RESTARTBLOCK: the host would have made the call again. */
	if (*(u16 *)(regs->ip - 2) == SYSCALL_INSN && (long)regs->ax >= -516 && (long)regs->ax <= -512)
		regs->ax = -EINTR;
	regs->flags = (regs->flags & EFLAGS_CONTEXT) | EFLAGS_FIXED;
}

/*
 * What its holder was about to do may be done halfway: links may be unarmed, KEEP not told of a
 * deadline, one that watched not woken. The next driver sees to all of it.
 */
static void reclaim(struct ring3_vcpu *vcpu, u32 tid)
{
	u32 o;

	WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_POLL | R3_EXIT_KICK);
	host_store(&vcpu_cpu(vcpu)->watcher_lost, 1);
	host_or(vcpu_pending(vcpu), RING3_IRQ_WORK);
	do {
		o = host_load(&vcpu->owner);
		if (!r3_owner_is(o, tid))
			break;
	} while (!r3_reclaim(&vcpu->owner, o));
	if (r3_owner_waits(o)) {
		host_add(&vcpu->wakes, 1);
		ring3_host_futex_wake(&vcpu->owner, 1);
	}
	/* It may have died with wake-ups that it had put off: KEEP drives, and sends them when it lets go. */
	host_store(&vcpu_cpu(vcpu)->drive_wanted, 1);
	ring3_kick(vcpu);
}

static struct ring3_thread *holder_of(struct ring3_vcpu *vcpu, u32 tid)
{
	struct ring3_thread *holder;

	if (!r3_owner_is(host_load(&vcpu->owner), tid))
		return NULL;
	holder = ring3_holder(vcpu, tid);
	return holder && holder->proc && holder->proc != (unsigned long)&ring3_adopter_proc ? holder : NULL;
}

/* Is that a thread of the adopter's pid namespace that holds a vCPU? Then of which process. */
struct ring3_proc *ring3_adopt_holds(u32 tid)
{
	struct ring3_thread *holder;
	struct ring3_proc *proc;
	struct ring3_vcpu *vcpu;

	for_each_vcpu(vcpu) {
		holder = holder_of(vcpu, tid);
		if (!holder)
			continue;
		proc = (struct ring3_proc *)holder->proc;
		return ring3_host_syscall(__NR_tgkill, proc->pid, tid, 0, 0, 0, 0) == -ESRCH ? NULL : proc;
	}
	return NULL;
}

/* The holder of each vCPU whose context waits until the vCPU's successor is home. */
static struct waiting {
	struct ring3_death death;	/* tid 0: none */
	enum ring3_fate fate;
} waiting[NR_CPUS];

static void let_go(const struct ring3_death *death, enum ring3_fate fate)
{
	if (fate != FATE_GONE)
		ring3_adopt_let_go(death->tid);
}

/* A thread has died: it runs no instruction any more. */
void ring3_adopt(const struct ring3_death *death, enum ring3_fate fate)
{
	struct ring3_regs regs = death->regs;
	struct ring3_thread *holder = NULL;
	struct ring3_vcpu *vcpu;
	bool handed;

	/* Of a node that is over nothing is gone on with: others have been told so. */
	if (ring3_poisoned()) {
		let_go(death, fate);
		return;
	}
	for_each_vcpu(vcpu) {
		holder = holder_of(vcpu, death->tid);
		if (holder)
			break;
	}
	/*
	 * A thread that executes a program has the number of its process's first thread from then on, whose death is
	 * told like any other. What is told late may so be about a thread that lives.
	 */
	if (!holder || ((struct ring3_proc *)holder->proc)->pid != death->pid ||
	    (fate == FATE_GONE && ring3_adopt_goes_on(death->pid, death->tid))) {
		let_go(death, fate);
		return;
	}
	handed = host_load(&holder->word) & RING3_WORD_HANDED;
	see_through_handler(holder, &regs);
	if (in_text(&regs) && on_task_stack(&regs)) {
		if (!ring3_successor_is_home(vcpu)) {
			waiting[vcpu_cpu(vcpu) - ring3_cpus] = (struct waiting) { *death, fate };
			return;
		}
		prepare(&regs);
		ring3_succeed(vcpu, &regs);
		r3t_flags(holder) |= R3_F_KILL;
		let_go(death, fate);
		ring3_adopter_thread.gate[RING3_ADOPTED]++;
		ring3_successor_goes(vcpu);
		return;
	}
	if (handed || in_text(&regs)) {
		reclaim(vcpu, death->tid);
		ring3_adopter_thread.gate[RING3_FREED]++;
	}
	let_go(death, fate);
}

/* A successor may be home. */
static void adopt_waiting(void)
{
	struct waiting it;
	int i;

	for (i = 0; i < NR_CPUS; i++) {
		it = waiting[i];
		waiting[i].death.tid = 0;
		if (it.death.tid)
			ring3_adopt(&it.death, it.fate);
	}
}

/* A call of a dead thread is under way in a successor, or waits for one. */
static bool goes_on(void)
{
	struct ring3_vcpu *vcpu;
	int i;

	for (i = 0; i < NR_CPUS; i++)
		if (waiting[i].death.tid)
			return true;
	for_each_vcpu(vcpu)
		if (!ring3_successor_is_home(vcpu))
			return true;
	return false;
}

struct host_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	u64 mask;
};

/* The head of the host's struct ucontext: flags, link, stack, and registers in this order. */
struct host_context {
	u64 flags, link, stack[3];
	u64 r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip;
};

static void on_fault(int sig, void *info, struct host_context *context)
{
	unsigned long to = ring3_fixup(context->ip, NULL);

	if (!to)
		ring3_host_syscall(__NR_exit_group, 128 + sig, 0, 0, 0, 0, 0);
	context->ip = to;
}

static u32 looks;		/* asked for by SIGUSR1 */
static u32 again;		/* SIGCHLD has come: something has stopped, or a successor is home */

static void on_call(int sig, void *info, struct host_context *context)
{
	if (sig == SIGUSR1)
		host_store(&looks, 1);
	if (sig == SIGCHLD)
		host_store(&again, 1);
	context->ip = ring3_adopt_called(sig, context->ip);
}

void ring3_adopt_signal_stack(unsigned long at)
{
	struct { void *sp; int flags; size_t size; } alt = { .sp = (void *)at, .size = ADOPT_STACK_BYTES };

	ring3_host_syscall(__NR_sigaltstack, (long)&alt, 0, 0, 0, 0, 0);
}

static void catch(int sig, void *handler)
{
	struct host_sigaction action = {
		.handler = handler,
		.flags = SA_SIGINFO | SA_ONSTACK | 0x04000000 /* SA_RESTORER */,
		.restorer = ring3_sigreturn,
	};

	ring3_host_syscall(__NR_rt_sigaction, sig, (long)&action, 0, sizeof(action.mask), 0, 0);
}

static void prepare_signals(void)
{
	u64 mask = ~(1UL << (SIGSEGV - 1) | 1UL << (SIGBUS - 1));

	ring3_adopt_signal_stack(adopt_memory() + ADOPT_STACK_BYTES);
	catch(SIGSEGV, on_fault);
	catch(SIGBUS, on_fault);
	catch(SIGCHLD, on_call);
	catch(SIGUSR1, on_call);
	catch(SIGALRM, on_call);
	ring3_host_syscall(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0, 0);
}

/* The process's exit status says why: 0, or an error number. */
static void end(long error)
{
	ring3_host_syscall(__NR_exit_group, -error, 0, 0, 0, 0, 0);
}

/* By BPF, or else by ptrace(). Returns the descriptor to wait for, or -1. */
static long begin(struct ring3_thread *me, struct ring3_proc *proc)
{
	long fd = me->args[0] == RING3_ADOPT_TRACE ? -EPERM : ring3_adopt_bpf_start();
	long ret;

	memset(waiting, 0, sizeof(waiting));
	proc->pid = me->tid;
	proc->threads = fd >= 0 ? RING3_ADOPTS_AFTER : RING3_ADOPTS_TRACED;
	ret = ring3_successors_start();
	if (ret < 0)
		end(ret);
	ring3_adopt_trace_start(fd < 0);
	ring3_adopt_stop_start();
	if (fd < 0) {
		looks = 1;
		host_store(&ring3_region.tracer, me->tid);
	}
	host_store(&proc->state, RING3_PROC_LIVE);
	return fd;
}

static void live(struct ring3_thread *me)
{
	struct ring3_proc *proc = (struct ring3_proc *)me->proc;
	struct ring3_death death;
	struct pollfd deaths = { .events = POLLIN };
	const u64 asleep = ~(1UL << (SIGSEGV - 1) | 1UL << (SIGBUS - 1) | 1UL << (SIGCHLD - 1) | 1UL << (SIGUSR1 - 1));

	prepare_signals();
	if (ring3_host_syscall(__NR_munmap, 0, RING3_SPACE_BASE, 0, 0, 0, 0) ||
	    ring3_host_syscall(__NR_munmap, RING3_SPACE_END, TASK_SIZE_MAX - RING3_SPACE_END, 0, 0, 0, 0))
		end(-ENOMEM);
	deaths.fd = begin(me, proc);
	/* Signals are let in while it sleeps, and SIGCHLD in PTRACE_SEIZE, too; each says that there is something to look at. */
	while (!ring3_poisoned()) {
		struct __kernel_timespec ts, *timeout = NULL;
		u64 until, now, mask = asleep;

		host_store(&again, 0);
		adopt_waiting();
		while (proc->threads == RING3_ADOPTS_AFTER && ring3_adopt_bpf_next(&death)) {
			ring3_adopt_stop_signal();
			if (death.tid)
				ring3_adopt(&death, FATE_GONE);
		}
		until = ring3_adopt_trace(host_xchg(&looks, 0));
		if (host_load(&again))
			until = 0;
		/* SIGUSR2 ends it, and lets all go that it traces: not amid the call of a dead thread. */
		if (!goes_on())
			mask &= ~(1UL << (SIGUSR2 - 1));
		if (until != U64_MAX) {
			now = ring3_clock();
			until = until > now ? until - now : 0;
			ts = (struct __kernel_timespec){ until / NSEC_PER_SEC, until % NSEC_PER_SEC };
			timeout = &ts;
		}
		ring3_host_syscall(__NR_ppoll, (long)&deaths, 1, (long)timeout, (long)&mask, sizeof(mask), 0);
	}
	end(0);
}

/* For the keeper, which lets the adopter in. */
long ring3_sys_adopter(void)
{
	struct ring3_thread *tb = &ring3_adopter_thread;

	if (host_load(&ring3_adopter_proc.state))
		return -EBUSY;
	tb->self = (unsigned long)tb;
	tb->region = (unsigned long)&ring3_region;
	tb->proc = (unsigned long)&ring3_adopter_proc;
#ifdef CONFIG_SMP
	tb->image_private[R3T_VCPU] = (unsigned long)&ring3_region.vcpu[0];
#endif
	return (long)tb;
}

/* Entered from the gate, on a stack that is about to go. */
long ring3_host_adopt(struct ring3_thread *me)
{
	long at = adopt_memory(), p;

	if (me != &ring3_adopter_thread)
		return -EINVAL;
	p = ring3_host_syscall(__NR_mmap, at, 2 * ADOPT_STACK_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != at)
		return p < 0 ? p : -EEXIST;
	ring3_on_stack(at + ADOPT_STACK_BYTES, live, me);
	return 0;
}
