// SPDX-License-Identifier: GPL-2.0
/*
 * seccomp.c - seccomp filters that a program sets
 *
 * Theory of operation
 * -------------------
 * A filter says which calls the program may make. On a node these are not the calls that the host sees: the gate
 * makes other calls on the program's behalf, for which the filter would kill the process, and calls of the node
 * never reach the host. So:
 *
 * - The host gets the filter with a few instructions before it, which allow all calls from the gate's range of
 *   addresses. So the host checks the filter and the right to set it, shows it in /proc, and applies it to any call
 *   that bypasses the gate.
 * - The gate keeps a copy and applies it to each call of the program before anything else (seccomp_judge()). From
 *   then on no call takes a short cut past gate_syscall().
 *
 * Filters are never changed, only added: each thread has a list, newest first, whose tail it shares with other
 * threads and children. An exec passes the list in a memfd.
 *
 * Weaker than Linux: a program that jumps into the gate's code (at a known address) can make any call. Not
 * supported: user notification, and SECCOMP_RET_TRACE (no tracer is asked).
 */
#include "signal/signals.h"
#include "sandbox/bpf.h"

#include <linux/audit.h>
#include <linux/prctl.h>

#define NUMBERS		512	/* calls whose verdict is cached */

struct gate_filter {
	struct gate_filter *prev;	/* set before this one */
	u32 refs;
	u32 len;
	u64 always[NUMBERS / 64];	/* calls allowed with any arguments, by this filter and all before it */
	struct sock_filter code[];
};

struct fprog {			/* struct sock_fprog, with its padding */
	u16 len;
	u16 pad[3];
	u64 code;
};

/*
 * Allows calls from [RING3_GATE_BASE, RING3_SPACE_END); both are multiples of 4 GiB. A filter starts with A and X
 * zero.
 */
static const struct sock_filter from_gate[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, RING3_GATE_BASE >> 32, 0, 2),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, RING3_SPACE_END >> 32, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	BPF_STMT(BPF_LD | BPF_IMM, 0),
	BPF_STMT(BPF_LDX | BPF_IMM, 0),
};
_Static_assert(!(RING3_GATE_BASE & 0xffffffff) && !(RING3_SPACE_END & 0xffffffff), "from_gate");

struct gate_mutex gate_filter_lock;	/* protects tcb->filters of all threads */

/* ---- lists ---- */

static size_t filter_bytes(u32 len)
{
	return sizeof(struct gate_filter) + len * sizeof(struct sock_filter);
}

static struct gate_filter *filter_alloc(u32 len)
{
	struct gate_filter *f = gate_pages(filter_bytes(len));

	if (f) {
		f->refs = 1;
		f->len = len;
	}
	return f;
}

static struct gate_filter *filter_get(struct gate_filter *f)
{
	if (f)
		__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
	return f;
}

static void filter_put(struct gate_filter *f)
{
	struct gate_filter *prev;

	while (f && __atomic_fetch_sub(&f->refs, 1, __ATOMIC_ACQ_REL) == 1) {
		prev = f->prev;
		gate_pages_free(f, filter_bytes(f->len));
		f = prev;
	}
}

void seccomp_inherit(struct gate_tcb *child, const struct gate_tcb *parent)
{
	gate_lock(&gate_filter_lock);
	filter_put(child->filters);	/* of the last thread that used this area */
	child->filters = filter_get(parent->filters);
	child->strict = parent->strict;
	gate_unlock(&gate_filter_lock);
}

/* ---- verdicts ---- */

static s32 action_of(u32 result)
{
	return result & SECCOMP_RET_ACTION_FULL;
}

/* The verdict of the whole list: the most severe; among equals, the newest filter's. */
static u32 verdict(const struct gate_filter *f, const struct seccomp_data *data, bool *args)
{
	u32 result = SECCOMP_RET_ALLOW, one;

	for (; f; f = f->prev) {
		one = bpf_run(f->code, data, args);
		if (action_of(one) < action_of(result))
			result = one;
	}
	return result;
}

static void remember(struct gate_filter *f)
{
	struct seccomp_data data = { .arch = AUDIT_ARCH_X86_64 };
	u32 nr;

	for (nr = 0; nr < NUMBERS; nr++) {
		bool args = false;

		data.nr = nr;
		if (f->prev && !(f->prev->always[nr / 64] >> (nr % 64) & 1))
			continue;
		if (action_of(bpf_run(f->code, &data, &args)) == action_of(SECCOMP_RET_ALLOW) && !args)
			f->always[nr / 64] |= 1UL << (nr % 64);
	}
}

/* Kills the whole process if this is its last thread, else the thread. */
static void __attribute__((noreturn)) kill_thread(struct gate_regs *r, int sig, bool all)
{
	struct gate_regs exit = { .nr = __NR_exit, .a = { sig }, .uctx = r->uctx };

	signal_block_all();
	if (!all && gate_life.others())
		gate_syscall(&exit);
	stop_others();
	image_call1(RING3_NR_EXIT_GROUP, RING3_BY_SIGNAL | sig);
	if (sig != SIGKILL)
		host_default(sig);
	for (;;) {
		host_syscall2(__NR_kill, host_syscall0(__NR_getpid), sig);
		host_syscall0(__NR_sched_yield);
	}
}

static bool strict_allows(u64 nr)
{
	return nr == __NR_read || nr == __NR_write || nr == __NR_exit || nr == __NR_rt_sigreturn;
}

enum seccomp_does seccomp_judge(struct gate_regs *r, u64 ip, long *ret, siginfo_t *info)
{
	struct gate_tcb *tcb = gate_tcb();
	struct gate_filter *f = READ_ONCE(tcb->filters);
	struct seccomp_data data = {
		.nr = r->nr,
		.arch = AUDIT_ARCH_X86_64,
		.instruction_pointer = ip,
		.args = { r->a[0], r->a[1], r->a[2], r->a[3], r->a[4], r->a[5] },
	};
	bool args;
	u32 result;

	if (tcb->strict && !strict_allows(r->nr))
		kill_thread(r, SIGKILL, false);
	if (!f || (r->nr < NUMBERS && (f->always[r->nr / 64] >> (r->nr % 64) & 1)))
		return SECCOMP_DOES_CALL;

	result = verdict(f, &data, &args);
	switch ((u32)action_of(result)) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
		return SECCOMP_DOES_CALL;
	case SECCOMP_RET_ERRNO:
		result &= SECCOMP_RET_DATA;
		*ret = result < 4095 ? -(long)result : -4095;
		return SECCOMP_DOES_RETURN;
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_USER_NOTIF:
		*ret = -ENOSYS;		/* as on Linux without a listener */
		return SECCOMP_DOES_RETURN;
	case SECCOMP_RET_TRAP:
		memset(info, 0, sizeof(*info));
		info->si_signo = SIGSYS;
		info->si_code = SYS_SECCOMP;
		info->si_errno = result & SECCOMP_RET_DATA;
		info->si_call_addr = (void *)ip;
		info->si_syscall = r->nr;
		info->si_arch = AUDIT_ARCH_X86_64;
		return SECCOMP_DOES_TRAP;
	case SECCOMP_RET_KILL_THREAD:
		kill_thread(r, SIGSYS, false);
	default:
		kill_thread(r, SIGSYS, true);
	}
}

/* ---- setting ---- */

/* Installs the filter on the host, with from_gate before it. */
static long host_install(u32 flags, const struct gate_filter *f)
{
	u32 len = f->len + ARRAY_SIZE(from_gate);
	size_t size = len * sizeof(struct sock_filter);
	struct sock_filter *code;
	struct fprog prog;
	long ret;

	if (len > BPF_MAXINSNS) {
		gate_warn("a seccomp filter of %u instructions: ring3 needs room for %u more: refused",
			  f->len, (u32)ARRAY_SIZE(from_gate));
		return -EINVAL;
	}
	code = gate_pages(size);
	if (!code)
		return -ENOMEM;
	memcpy(code, from_gate, sizeof(from_gate));
	memcpy(code + ARRAY_SIZE(from_gate), f->code, f->len * sizeof(struct sock_filter));
	prog = (struct fprog){ .len = len, .code = (u64)code };
	ret = host_syscall3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, (long)&prog);
	gate_pages_free(code, size);
	return ret;
}

static void filters_active(void)
{
	memset(gate_straight, 0, sizeof(gate_straight));
	patch_look_closer();
}

/* Adds f, which the host has accepted, for this thread or (TSYNC) for all threads of the process. */
static void attach(struct gate_filter *f, bool all)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb(), *other;
	u32 i;

	filters_active();
	f->prev = tcb->filters;
	remember(f);
	tcb->filters = f;
	for (i = 0; all && (other = thread_area(i)); i++) {
		if (other == tcb || !READ_ONCE(other->busy) || !other->thread ||
		    other->thread->proc != t->proc)
			continue;
		/*
		 * Its list was the tail of ours (the host has checked that), so nothing that it still reads is
		 * freed.
		 */
		filter_put(other->filters);
		WRITE_ONCE(other->filters, filter_get(f));
	}
}

static long set_filter(u64 flags, u64 user)
{
	struct gate_filter *f;
	struct fprog prog;
	long ret;

	if (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) {
		gate_warn("seccomp(SECCOMP_FILTER_FLAG_NEW_LISTENER) is not supported");
		return -EINVAL;
	}
	if (gate_copy_in(&prog, (void *)user, sizeof(prog)))
		return -EFAULT;
	if (!prog.len || prog.len > BPF_MAXINSNS)
		return -EINVAL;
	f = filter_alloc(prog.len);
	if (!f)
		return -ENOMEM;
	if (gate_copy_in(f->code, (void *)prog.code, prog.len * sizeof(f->code[0]))) {
		gate_pages_free(f, filter_bytes(f->len));
		return -EFAULT;
	}
	gate_lock(&gate_filter_lock);
	ret = host_install(flags, f);
	if (!ret)
		attach(f, flags & SECCOMP_FILTER_FLAG_TSYNC);
	gate_unlock(&gate_filter_lock);
	if (ret)
		gate_pages_free(f, filter_bytes(f->len));
	return ret;
}

/* Strict mode is not set on the host: it would kill the process for the gate's own calls. */
static long set_strict(void)
{
	struct gate_tcb *tcb = gate_tcb();

	if (tcb->filters)
		return -EINVAL;
	filters_active();
	tcb->strict = 1;
	return 0;
}

long gate_seccomp(struct gate_regs *r)
{
	u32 op = r->a[0], flags = r->a[1];

	if (op == SECCOMP_SET_MODE_FILTER)
		return set_filter(flags, r->a[2]);
	if (op == SECCOMP_SET_MODE_STRICT)
		return flags || r->a[2] ? -EINVAL : set_strict();
	return gate_host_regs(r);
}

long seccomp_prctl(struct gate_regs *r)
{
	if (r->a[1] == SECCOMP_MODE_FILTER)
		return set_filter(0, r->a[2]);
	return r->a[1] == SECCOMP_MODE_STRICT ? set_strict() : -EINVAL;
}

/* prctl(PR_GET_SECCOMP). In a sandbox the host tells of the sandbox's own filters, which no program has set. */
long seccomp_mode(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (ret != SECCOMP_MODE_FILTER || gate_tcb()->filters || !own_confined())
		return ret;
	return SECCOMP_MODE_DISABLED;
}

/* ---- exec ---- */

static long write_filter(long fd, const struct gate_filter *f)
{
	size_t size = f->len * sizeof(f->code[0]);
	u32 len = f->len;

	if (host_syscall3(__NR_write, fd, (long)&len, sizeof(len)) != sizeof(len) ||
	    host_syscall3(__NR_write, fd, (long)f->code, size) != (long)size)
		return -ENOMEM;
	return 0;
}

/* The oldest filter first. */
static long write_list(long fd, const struct gate_filter *newest)
{
	const struct gate_filter *f, *written = NULL;
	long ret;

	while (written != newest) {
		for (f = newest; f->prev != written; f = f->prev)
			;
		ret = write_filter(fd, f);
		if (ret)
			return ret;
		written = f;
	}
	return 0;
}

/* Before an exec: saves the filters for the next gate; 0: none, < 0: -errno. */
long seccomp_save(void)
{
	struct gate_tcb *tcb = gate_tcb();
	long fd, ret;

	if (!tcb->filters)
		return 0;
	fd = host_syscall2(__NR_memfd_create, (long)"ring3:seccomp", 1 /* MFD_CLOEXEC */);
	if (fd < 0)
		return fd;
	ret = write_list(fd, tcb->filters);
	if (!ret)
		ret = gate_fd_keep(fd, GATE_FD_FILTERS);
	if (ret < 0)
		host_syscall1(__NR_close, fd);
	return ret < 0 ? ret : 1;
}

/* After it. A sandbox that can't be restored must not be left out: the process ends. */
void seccomp_restore(void)
{
	struct gate_tcb *tcb = gate_tcb();
	u64 at = 0;
	u32 len;

	for (;;) {
		struct gate_filter *f;
		long size;

		if (host_syscall4(__NR_pread64, gate_fd(GATE_FD_FILTERS), (long)&len, sizeof(len),
				  at) != sizeof(len))
			break;
		at += sizeof(len);
		f = len && len <= BPF_MAXINSNS ? filter_alloc(len) : NULL;
		size = len * sizeof(f->code[0]);
		if (!f || host_syscall4(__NR_pread64, gate_fd(GATE_FD_FILTERS), (long)f->code, size,
					at) != size)
			gate_die(125, "cannot set up the program's seccomp filter again");
		at += size;
		f->prev = tcb->filters;
		remember(f);
		tcb->filters = f;
	}
	if (!tcb->filters)
		gate_die(125, "the program's seccomp filter is lost");
	filters_active();
}
