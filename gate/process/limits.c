// SPDX-License-Identifier: GPL-2.0
/*
 * limits.c - the program's own limits, enforced at points where they do no harm
 *
 * Theory of operation
 * -------------------
 * The host enforces three of a program's settings at any instruction, also inside kernel code, where a death loses
 * the node and a refused mapping can't be undone. The gate asks the host for something weaker instead, and tells
 * the program what it asked for.
 *
 * Hard limit of RLIMIT_CPU: the host sends SIGKILL. So a timer of the process's CPU time sends DEATH_SIGNAL a
 * little earlier (CPU_EARLY). The limit itself is set on the host: getrlimit() shows the truth, and a process whose
 * gate gets no timer (RLIMIT_SIGPENDING) is killed by the host. A timer belongs to one process and ends at exec:
 * each new process and each new program makes its own.
 *
 * PR_SET_PDEATHSIG with SIGKILL: the host is asked for DEATH_SIGNAL.
 *
 * DEATH_SIGNAL is a signal that nothing else sends (SIGSTKFLT), and that the host never blocks (SIG_FORCED). Its
 * handler notes a SIGKILL, as if that had arrived: threads in the image or the gate leave it first, then the
 * process ends by SIGKILL (fatal() in sigframe.c).
 *
 * RLIMIT_AS, RLIMIT_DATA: mappings of the node and the gate are not the program's. The host's limit is the
 * program's plus the size of these mappings (AS_PAGES); values that the program sets and reads are converted.
 * Root's RLIMIT_AS grows with the gate's memory. A process that joins under a hard limit that it may not raise
 * keeps the host's limit, and the mappings count.
 *
 * The state of a process is in its ring3_proc: it survives exec there, and other processes of the node find it.
 *
 * In a sandbox no process may set or read the limits of another: the host could not keep that from processes outside. So the other's own gate
 * does it. DEATH_SIGNAL with WISH tells it where the asking process has its wish, which it reads there; it writes the answer there, the number of the wish last.
 */
#include "internal.h"
#include "tuning.h"

#include <linux/prctl.h>

#define DEATH_SIGNAL	SIGSTKFLT
#define MARK_OVER	0x72696e67330074ULL	/* value of a timer: the CPU time is used up */
#define MARK_LIMITS	0x72696e67330075ULL	/* value of a signal from another process: read the limits again */
#define WISH			0x7233		/* si_errno of a signal from another process: it asks this one to set or read a limit */
#define CPU_CLOCK_OF(pid)	((s32)(~(u32)(pid) << 3))	/* a process's CPU time as RLIMIT_CPU counts it: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_PROF) */
#define CPU_CLOCK	CPU_CLOCK_OF(0)		/* this process's */
#define NS		1000000000ULL
#define CPU_TIMER_WANTED	(~0u)
#define GATE_OWN_BYTES	(4ULL << 20)		/* the gate's file, tables and first threads */
#define GATE_GROW_BYTES	(1ULL << 20)		/* further threads: some 250 KiB each */
#define GATE_DATA_BYTES	(16ULL << 20)		/* the part that RLIMIT_DATA counts, with some 50 threads */
#define LIMIT_TRIES		16		/* other processes that change a limit at the same time, one after another */
#define DATA_RAISED	(1U << 31)		/* flag in AS_PAGES: the host's RLIMIT_DATA is above the program's */

/*
 * Held while the host's limit and AS_PAGES change together. Innermost lock: limits_grow() is called with other
 * locks held.
 */
struct gate_mutex gate_limits_lock;

static struct ring3_proc *own_proc(void)
{
	return (struct ring3_proc *)gate_thread()->proc;
}

static struct ring3_proc *proc_by_pid(s32 pid)
{
	return !pid || pid == host_syscall0(__NR_getpid) ? own_proc() : proc_find(pid);
}

static void wish_grant(s32 pid, const void *at);

/* ---- CPU time ---- */

/*
 * An eighth of a second before a limit of one second, a second before longer ones: of many threads, others run
 * meanwhile.
 */
static u64 cpu_end(u64 seconds)
{
	u64 early = seconds < 8 ? seconds * NS / 8 : NS;

	return seconds * NS - early;
}

/* Makes or sets the timer of this process: its limit has changed, or the process or program is new. */
static void cpu_watch(void)
{
	u32 *timer = &own_proc()->cpu_timer;
	struct rlimit64 lim;

	if (host_syscall4(__NR_prlimit64, 0, RLIMIT_CPU, 0, (long)&lim))
		return;
	if (likely(lim.rlim_max >= ~0ULL / NS)) {
		if (*timer && *timer != CPU_TIMER_WANTED)
			host_syscall1(__NR_timer_delete, *timer - 1);
		*timer = 0;
		return;
	}
	if (*timer == CPU_TIMER_WANTED)
		*timer = 0;
	if (!*timer) {
		long id = gate_timer(CPU_CLOCK, DEATH_SIGNAL, MARK_OVER);

		if (id < 0) {
			gate_log("no timer for the limit of CPU time (error %ld)", -id);
			return;
		}
		*timer = id + 1;
	}
	gate_timer_set(*timer - 1, true, cpu_end(lim.rlim_max) ?: 1, CPU_AGAIN_NS);
}

/* ---- the end of the process ---- */

/* Does this signal stand for the program's SIGKILL? */
bool limits_is_death(const siginfo_t *info)
{
	if (info->si_signo != DEATH_SIGNAL)
		return false;
	if (info->si_code == SI_TIMER || info->si_code == SI_QUEUE)
		return info->si_value.sival_ptr == (void *)MARK_OVER;
	return info->si_code == SI_USER && READ_ONCE(own_proc()->pdeath_kill);
}

/* Another process of the node has changed the limits of this one, or asks it to. */
bool limits_is_mark(const siginfo_t *info)
{
	if (info->si_signo == DEATH_SIGNAL && info->si_code == SI_QUEUE && info->si_errno == WISH) {
		wish_grant(info->si_pid, info->si_value.sival_ptr);
		return true;
	}
	if (info->si_signo != DEATH_SIGNAL || info->si_code != SI_QUEUE ||
	    info->si_value.sival_ptr != (void *)MARK_LIMITS)
		return false;
	cpu_watch();
	return true;
}

static long say(s32 pid, u64 mark)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = DEATH_SIGNAL;
	info.si_code = SI_QUEUE;
	info.si_value.sival_ptr = (void *)mark;
	return host_syscall3(__NR_rt_sigqueueinfo, pid, DEATH_SIGNAL, (long)&info);
}

/*
 * A process of the node is to have a limit of CPU time that it has used up already. The host would kill it at its next tick, which may be
 * in kernel code: so it is told to end, and the limit is left as it is. 1: it has been told. 0: it has not used that much.
 */
static long cpu_is_over(s32 pid, const struct rlimit64 *new)
{
	if (new->rlim_cur > new->rlim_max || new->rlim_max >= ~0ULL / NS ||
	    gate_clock_ns(CPU_CLOCK_OF(pid)) < cpu_end(new->rlim_max))
		return 0;
	return say(pid ?: host_syscall0(__NR_getpid), MARK_OVER) ?: 1;
}

long limits_pdeath(const struct gate_regs *r)
{
	u32 *kill = &own_proc()->pdeath_kill;
	s32 sig = 0;
	long ret;

	if (r->a[0] == PR_GET_PDEATHSIG) {
		ret = host_syscall2(__NR_prctl, PR_GET_PDEATHSIG, (long)&sig);
		if (sig == DEATH_SIGNAL && *kill)
			sig = SIGKILL;
		return ret ?: gate_copy_out((void *)r->a[1], &sig, sizeof(sig));
	}
	if (r->a[1] != SIGKILL) {
		ret = host_syscall2(__NR_prctl, PR_SET_PDEATHSIG, r->a[1]);
		if (!ret)
			WRITE_ONCE(*kill, 0);
		return ret;
	}
	WRITE_ONCE(*kill, 1);
	return host_syscall2(__NR_prctl, PR_SET_PDEATHSIG, DEATH_SIGNAL);
}

/* ---- address space ---- */

static u64 plus(u64 limit, u64 more)
{
	return limit + more < limit ? ~0ULL : limit + more;
}

static u64 minus(u64 limit, u64 less)
{
	return limit == ~0ULL ? limit : limit > less ? limit - less : 0;
}

/* By how much the host's limit exceeds the program's. */
static u64 extra_of(struct ring3_proc *proc, u32 what)
{
	u32 pages = proc ? READ_ONCE(proc->as_pages) : 0;

	if (what == RLIMIT_DATA)
		return pages & DATA_RAISED ? GATE_DATA_BYTES : 0;
	return (u64)(pages & ~DATA_RAISED) * GATE_PAGE;
}

static void extra_is(struct ring3_proc *proc, u32 what, u64 more)
{
	u32 pages = READ_ONCE(proc->as_pages), new;

	do {
		if (what == RLIMIT_AS)
			new = (pages & DATA_RAISED) | more / GATE_PAGE;
		else
			new = more ? pages | DATA_RAISED : pages & ~DATA_RAISED;
	} while (!__atomic_compare_exchange_n(&proc->as_pages, &pages, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

static bool as_wants(u64 size, u64 text, u32 windows, u64 *more)
{
	*more = page_align(size + text + windows * page_align(RING3_LINK_BYTES) + GATE_OWN_BYTES);
	return *more / GATE_PAGE < DATA_RAISED;
}

/*
 * Raises the host's limit of this process; true: it is raised, or there is no limit. The host replaces limits and
 * can't add to them: if another process has changed the limit meanwhile (prlimit), its value has been overwritten,
 * and this one is computed from it again. Threads of this process hold gate_limits_lock.
 */
static bool raise(u32 what, u64 more)
{
	struct rlimit64 lim, expect, seen, wide;
	int i;

	if (host_syscall4(__NR_prlimit64, 0, what, 0, (long)&lim) || lim.rlim_cur == ~0ULL)
		return false;
	expect = lim;
	for (i = 0; i < LIMIT_TRIES; i++) {
		wide = (struct rlimit64){ plus(lim.rlim_cur, more), plus(lim.rlim_max, more) };
		/* Only root may raise the hard limit. */
		if (host_syscall4(__NR_prlimit64, 0, what, (long)&wide, (long)&seen))
			return false;
		if (seen.rlim_cur == expect.rlim_cur && seen.rlim_max == expect.rlim_max)
			break;
		lim = seen;
		expect = wide;
	}
	return true;	/* the last value written includes ours */
}

/* Called before the node is mapped. */
void limits_room(u64 size, u64 text, u32 windows, struct limits_room *room)
{
	u64 more;

	room->as = as_wants(size, text, windows, &more) && raise(RLIMIT_AS, more) ? more : 0;
	room->data = raise(RLIMIT_DATA, GATE_DATA_BYTES) ? GATE_DATA_BYTES : 0;
}

/* The thread block of the process whose limits were raised is known now. */
void limits_joined(struct ring3_proc *proc, const struct limits_room *room)
{
	proc->as_pages = 0;
	extra_is(proc, RLIMIT_AS, room->as);
	extra_is(proc, RLIMIT_DATA, room->data);
}

/*
 * The host refuses memory to the gate: may the gate ask again? Each thread needs some, and the limit that the
 * program was given is used up by its own.
 */
bool limits_grow(u64 size)
{
	u64 more = page_align(size) + GATE_GROW_BYTES;
	bool raised;

	if (!gate.region || !gate_thread() || !extra_of(own_proc(), RLIMIT_AS))
		return false;
	gate_lock(&gate_limits_lock);
	raised = raise(RLIMIT_AS, more);
	if (raised)
		__atomic_fetch_add(&own_proc()->as_pages, more / GATE_PAGE, __ATOMIC_SEQ_CST);
	gate_unlock(&gate_limits_lock);
	return raised;
}

/*
 * 0 if the host's limit includes the node's memory. Also for a process without a limit, which is about to get its
 * first one: it has mapped as much as this process.
 */
static u64 extra_for(struct ring3_proc *proc, s32 pid, u32 what, bool sets)
{
	u64 more = extra_of(proc, what);
	struct rlimit64 lim;

	if (more || !proc || !gate.region || !sets ||
	    host_syscall4(__NR_prlimit64, pid, what, 0, (long)&lim) || lim.rlim_max != ~0ULL)
		return more;
	if (what == RLIMIT_DATA)
		return GATE_DATA_BYTES;
	if (!as_wants(gate.region->size, gate.text_end - gate.text_start, __builtin_popcountl(gate.links), &more))
		return 0;
	return more;
}

/*
 * Sets the host's limit to the program's value plus the size of the other mappings. Repeats that if another process
 * has raised it meanwhile.
 */
static long space_exchange(s32 pid, u32 what, const struct rlimit64 *set, struct rlimit64 *old)
{
	struct ring3_proc *proc = proc_by_pid(pid);
	struct rlimit64 wide, seen;
	u64 was, more;
	long ret;
	int i;

	for (i = 0; i < LIMIT_TRIES; i++) {
		was = extra_of(proc, what);
		more = extra_for(proc, pid, what, set);
		if (set)
			wide = *set;
		if (set && set->rlim_cur <= set->rlim_max)
			wide = (struct rlimit64){ plus(set->rlim_cur, more), plus(set->rlim_max, more) };
		ret = host_syscall4(__NR_prlimit64, pid, what, set ? (long)&wide : 0, (long)&seen);
		if (ret)
			return ret;
		if (!i)
			*old = (struct rlimit64){ minus(seen.rlim_cur, was), minus(seen.rlim_max, was) };
		if (!set || !proc || extra_of(proc, what) == was)
			break;
	}
	if (set && proc && more != was)
		extra_is(proc, what, more);
	return 0;
}

static long space_limit(s32 pid, u32 what, u64 set, u64 get)
{
	struct rlimit64 new, old;
	long ret;

	if (set && gate_copy_in(&new, (void *)set, sizeof(new)))
		return -EFAULT;
	gate_lock(&gate_limits_lock);
	ret = space_exchange(pid, what, set ? &new : NULL, &old);
	gate_unlock(&gate_limits_lock);
	if (ret)
		return ret;
	return get && gate_copy_out((void *)get, &old, sizeof(old)) ? -EFAULT : 0;
}

/* ---- another process's, in a sandbox ---- */

struct wish {
	u32 number, what, sets;
	s32 whom;		/* 0: nobody any more. A process that was stopped meanwhile comes for it late */
	struct rlimit64 limit;
};

struct answer {
	struct rlimit64 was;
	s64 ret;
	u32 number;		/* of the wish */
};

/* An answer that comes late, from a process that was stopped while it wrote, is not written over that to a wish of today. */
#define ANSWERS		16

static struct {
	struct wish wish;
	struct answer answers[ANSWERS];		/* by the wish's number */
	s32 asking;		/* the process whose thread asks: a child inherits it; 0: none */
} wishes;

static bool poke(s32 pid, const void *from, u64 at, size_t n)
{
	struct iovec here = { .iov_base = (void *)from, .iov_len = n };
	struct iovec there = { .iov_base = (void *)at, .iov_len = n };

	return host_syscall6(__NR_process_vm_writev, pid, (long)&here, 1, (long)&there, 1, 0) == (long)n;
}

/* In the handler. False: the thread that was interrupted has the lock, or another that this one may wait for. */
static bool wish_do(const struct wish *wish, struct answer *answer)
{
	const struct rlimit64 *set = wish->sets ? &wish->limit : NULL;

	if (wish->what == RLIMIT_AS || wish->what == RLIMIT_DATA) {
		if (!gate_trylock(&gate_limits_lock))
			return false;
		answer->ret = space_exchange(0, wish->what, set, &answer->was);
		gate_unlock(&gate_limits_lock);
		return true;
	}
	if (set && wish->what == RLIMIT_CPU && cpu_is_over(0, set))
		set = NULL;
	answer->ret = host_syscall4(__NR_prlimit64, 0, wish->what, (long)set, (long)&answer->was);
	if (set && !answer->ret && wish->what == RLIMIT_CPU)
		cpu_watch();
	return true;
}

/* Twice the same: no other wish was written meanwhile. */
static bool wish_read(s32 pid, const void *at, struct wish *wish)
{
	struct wish again;

	return process_peek(pid, at, wish, sizeof(*wish)) && process_peek(pid, at, &again, sizeof(again)) &&
	       !memcmp(wish, &again, sizeof(again));
}

static void wish_grant(s32 pid, const void *at)
{
	struct answer answer = { 0 };
	struct wish wish;
	u64 there;

	/* Elsewhere the host judges who may set the other's limits. */
	if (!own_confined() || !proc_find(pid) || !wish_read(pid, at, &wish) || wish.whom != host_syscall0(__NR_getpid) ||
	    !wish_do(&wish, &answer))
		return;
	there = (u64)at + offsetof(typeof(wishes), answers[wish.number % ANSWERS]);
	if (poke(pid, &answer, there, offsetof(struct answer, number)))
		poke(pid, &wish.number, there + offsetof(struct answer, number), sizeof(wish.number));
}

static void wish_lock(void)
{
	s32 self = host_syscall0(__NR_getpid), free = READ_ONCE(wishes.asking);

	for (;;) {
		if (free == self)
			free = 0;
		if (__atomic_compare_exchange_n(&wishes.asking, &free, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		if (free == self)
			host_nap(WISH_LOOK_NS);
	}
}

/* A process that is stopped, or that this one may not write to or signal, does not answer. */
static long wish_ask(s32 pid, u32 what, const struct rlimit64 *set, struct rlimit64 *was)
{
	struct answer *answer;
	siginfo_t info;
	long ret = 0;
	u32 i;

	wish_lock();
	wishes.wish = (struct wish){ .number = wishes.wish.number + 1, .what = what, .sets = !!set };
	if (set)
		wishes.wish.limit = *set;
	answer = &wishes.answers[wishes.wish.number % ANSWERS];
	/* Last: a process that was asked before, and stopped, may look at any time. */
	__atomic_store_n(&wishes.wish.whom, pid, __ATOMIC_RELEASE);
	memset(&info, 0, sizeof(info));
	info.si_signo = DEATH_SIGNAL;
	info.si_errno = WISH;
	info.si_code = SI_QUEUE;
	info.si_pid = host_syscall0(__NR_getpid);
	info.si_value.sival_ptr = &wishes;
	for (i = 0; i < WISH_LOOKS && __atomic_load_n(&answer->number, __ATOMIC_ACQUIRE) != wishes.wish.number; i++) {
		if (!(i % WISH_AGAIN))
			ret = host_syscall3(__NR_rt_sigqueueinfo, pid, DEATH_SIGNAL, (long)&info);
		if (ret)
			break;
		host_nap(WISH_LOOK_NS);
	}
	if (!ret)
		ret = i < WISH_LOOKS ? answer->ret : -EPERM;
	*was = answer->was;
	WRITE_ONCE(wishes.wish.whom, 0);
	__atomic_store_n(&wishes.asking, 0, __ATOMIC_RELEASE);
	return ret;
}

static long others_limit(s32 pid, u32 what, u64 set, u64 get)
{
	struct rlimit64 limit, was;
	long ret;

	if (set && gate_copy_in(&limit, (void *)set, sizeof(limit)))
		return -EFAULT;
	ret = wish_ask(pid, what, set ? &limit : NULL, &was);
	if (ret)
		return ret;
	return get && gate_copy_out((void *)get, &was, sizeof(was)) ? -EFAULT : 0;
}

/* ---- system calls ---- */

static long cpu_limit(struct gate_regs *r, s32 pid, u64 set)
{
	struct ring3_proc *whose = proc_by_pid(pid);
	bool ours = whose == own_proc();
	struct rlimit64 new;
	long ret;

	if (set && gate_copy_in(&new, (void *)set, sizeof(new)))
		return -EFAULT;
	ret = set && whose ? cpu_is_over(ours ? 0 : pid, &new) : 0;
	if (ret < 0)
		return ret;
	if (ret) {
		/* The caller gets the old limit all the same. */
		r->a[2] = 0;
		return r->nr == __NR_prlimit64 ? gate_host_regs(r) : 0;
	}
	ret = gate_host_regs(r);
	if (ret || !set)
		return ret;
	if (ours)
		cpu_watch();
	else if (whose)
		say(pid, MARK_LIMITS);
	return 0;
}

/* prlimit64() setrlimit() getrlimit() */
long do_rlimit(struct gate_regs *r)
{
	bool wide = r->nr == __NR_prlimit64;
	u32 what = wide ? r->a[1] : r->a[0];
	s32 pid = wide ? r->a[0] : 0;
	u64 set = wide ? r->a[2] : r->nr == __NR_setrlimit ? r->a[1] : 0;
	u64 get = wide ? r->a[3] : r->nr == __NR_getrlimit ? r->a[1] : 0;

	/* A sandbox's filter knows the caller by 0 alone. */
	if (wide && pid && pid == host_syscall0(__NR_getpid))
		r->a[0] = pid = 0;
	if (wide && unlikely(pid) && own_confined() && proc_find(pid))
		return others_limit(pid, what, set, get);
	if ((what == RLIMIT_AS || what == RLIMIT_DATA) && (wide || set || get))
		return space_limit(pid, what, set, get);
	if (what == RLIMIT_CPU)
		return cpu_limit(r, pid, set);
	return gate_host_regs(r);
}

/* A child's own block, before it runs: limits are inherited, the request for a death signal is not. */
GATE_FORKED void limits_fork(struct ring3_proc *child)
{
	child->as_pages = own_proc()->as_pages;
	if (unlikely(own_proc()->cpu_timer))
		child->cpu_timer = CPU_TIMER_WANTED;
}

/* In the child. */
GATE_FORKED void limits_forked(void)
{
	if (unlikely(own_proc()->cpu_timer == CPU_TIMER_WANTED))
		cpu_watch();
}

/* A new program, or one that has just joined with limits that it had before. */
void limits_start(bool fresh)
{
	u32 *kill = &own_proc()->pdeath_kill;
	s32 sig = 0;

	own_proc()->cpu_timer = 0;	/* exec has deleted it */
	cpu_watch();
	if (!fresh || host_syscall2(__NR_prctl, PR_GET_PDEATHSIG, (long)&sig) || sig != SIGKILL)
		return;
	WRITE_ONCE(*kill, 1);
	host_syscall2(__NR_prctl, PR_SET_PDEATHSIG, DEATH_SIGNAL);
}
