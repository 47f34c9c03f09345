// SPDX-License-Identifier: GPL-2.0
/*
 * sim_call.c - calls in virtual time
 *
 * Theory of operation
 * -------------------
 * Time, sleeps, futexes, randomness, signals between programs and ends of children are the node's kernel's: such calls are
 * passed to it, and pipes, eventfds, timerfds and signalfds are its descriptors. Unix sockets, FIFOs, file locks, terminals,
 * semaphores and message queues are still the host's: sim_wait.c has the waits for them, sim_splice.c those of calls with two
 * such descriptors, sim_ipc.c those without a descriptor, sim_futex.c the details of futexes. Column VIRTUAL of
 * gate/entry/calls.tbl says which function serves which call.
 */
#include "internal.h"
#include "policy.h"
#include <linux/wait.h>

#define NSEC		1000000000ull
#define MSEC		1000000ull

static bool interrupted(void)
{
	return READ_ONCE(gate_thread()->sigpending);
}

#define SET_WORDS	(1024 / 64)	/* of a set of select(); larger ones are refused */

static bool is_select(const struct gate_regs *r)
{
	return r->nr == __NR_select || r->nr == __NR_pselect6;
}

/* select() takes sets, and returns others in their place. */
static long sets(const struct gate_regs *r, u64 kept[3][SET_WORDS], bool back)
{
	size_t bytes = (r->a[0] + 63) / 64 * 8;
	u32 i;

	for (i = 0; i < 3; i++)
		if (r->a[1 + i] && (back ? gate_copy_out(user_ptr(r->a[1 + i]), kept[i], bytes) :
					   gate_copy_in(kept[i], user_ptr(r->a[1 + i]), bytes)))
			return -EFAULT;
	return 0;
}

/* Repeats the call without waiting in it, and sleeps in the node in between. */
static long again(struct gate_regs *r, gate_handler handler, u32 arg, u64 zero, u64 deadline)
{
	struct gate_regs look = *r;
	u64 kept[3][SET_WORDS], nap = 0;
	long ret;

	look.a[arg] = zero;
	if (is_select(r) && (r->a[0] > SET_WORDS * 64 || sets(r, kept, false)))
		return r->a[0] > SET_WORDS * 64 ? -EINVAL : -EFAULT;
	for (;;) {
		if (is_select(r) && nap && sets(r, kept, true))
			return -EFAULT;
		ret = handler(&look);
		if (ret || !wait_left(deadline))
			return ret;
		sim_nap(&nap);
		if (interrupted())
			return -EINTR;
	}
}

static long waits(struct gate_regs *r, gate_handler handler)
{
	static const struct __kernel_timespec none;
	struct __kernel_timespec zero = none;
	u64 deadline = WAIT_FOREVER;
	bool ms = r->nr == __NR_poll || r->nr == __NR_epoll_wait || r->nr == __NR_epoll_pwait;
	u32 arg = r->nr == __NR_poll || r->nr == __NR_ppoll ? 2 : r->nr == __NR_select || r->nr == __NR_pselect6 ? 4 : 3;
	s64 tv[2];
	long ret = 0;

	if (ms && (s32)r->a[arg] >= 0)
		deadline = wait_until_ns((u64)(s32)r->a[arg] * MSEC);
	else if (r->nr == __NR_select && r->a[arg]) {
		if (gate_copy_in(tv, user_ptr(r->a[arg]), sizeof(tv)))
			return -EFAULT;
		deadline = wait_until_ns((u64)tv[0] * NSEC + (u64)tv[1] * 1000);
	} else if (!ms && r->nr != __NR_select) {
		ret = wait_from_timespec(r->a[arg], &deadline);
	}
	if (ret)
		return ret;
	return again(r, handler, arg, ms ? 0 : (u64)&zero, deadline);
}

/* Are all descriptors of the set the node's? Then the node waits, and no look is late. */
static bool set_of_node(const struct gate_regs *r)
{
	u64 bits[3][SET_WORDS] = { 0 }, all;
	u64 i, fd, n = r->a[0];

	if (n > SET_WORDS * 64 || sets(r, bits, false))
		return false;
	for (i = 0; i < (n + 63) / 64; i++) {
		all = bits[0][i] | bits[1][i] | bits[2][i];
		if (n - i * 64 < 64)
			all &= (1ull << (n - i * 64)) - 1;
		for (; all; all &= all - 1) {
			fd = i * 64 + __builtin_ctzll(all);
			if (!fd_is_node(fd))
				return false;
		}
	}
	return n;
}

static bool all_of_node(const struct gate_regs *r)
{
	struct pollfd p;
	u64 i;

	for (i = 0; i < r->a[1] && i < RING3_FDS_MAX; i++)
		if (gate_copy_in(&p, user_ptr(r->a[0] + i * sizeof(p)), sizeof(p)) ||
		    (p.fd >= 0 && !fd_is_node(p.fd)))
			return false;
	return true;
}

long sim_child(struct gate_regs *r, gate_handler otherwise)
{
	struct gate_regs own = *r;
	siginfo_t info;
	s32 pid, status = 0;
	long ret;

	/* The node tells when. Then the host reaps a child that has ended; one that has stopped stays. */
	if (r->nr == __NR_wait4) {
		own.a[1] = (u64)&status;
		ret = image_pass(&own);
		pid = (status & 0xff) == 0x7f || status == 0xffff ? 0 : ret;
		if (ret > 0 && r->a[1] && gate_copy_out(user_ptr(r->a[1]), &status, sizeof(status)))
			ret = -EFAULT;
	} else {
		if (!r->a[2])
			return gate_host_regs(r);
		ret = image_pass(r);
		if (ret || gate_copy_in(&info, user_ptr(r->a[2]), sizeof(info)))
			return ret;
		pid = r->a[3] & WNOWAIT || info.si_code > CLD_DUMPED ? 0 : info.si_pid;
	}
	if (pid > 0)
		host_syscall4(__NR_wait4, pid, 0, __WALL, 0);
	return ret;
}

/* The node queues signals and wakes tasks, so it has to know the program's masks and its disposition of SIGCHLD. */
long sim_mirror(struct gate_regs *r, gate_handler otherwise)
{
	struct host_sigaction act;
	long ret = otherwise(r);
	u64 mask = 0;

	if (ret || !r->a[1])
		return ret;
	if (r->nr == __NR_rt_sigprocmask) {
		host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask));
		if (r->uctx)
			mask = r->uctx->uc_sigmask;
		image_call4(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask));
	} else if (r->a[0] == SIGCHLD && !gate_copy_in(&act, user_ptr(r->a[1]), sizeof(act))) {
		act.mask = 0;
		image_call4(__NR_rt_sigaction, SIGCHLD, &act, 0, sizeof(u64));
	}
	return 0;
}

long sim_sigsuspend(struct gate_regs *r, gate_handler otherwise)
{
	u64 set;
	long ret;

	if (r->a[1] != sizeof(set))
		return -EINVAL;
	if (gate_copy_in(&set, user_ptr(r->a[0]), sizeof(set)))
		return -EFAULT;
	gate_sigmask_begin(set);
	ret = image_call2(__NR_rt_sigsuspend, &set, sizeof(set));
	gate_sigmask_end(ret);
	return ret;
}

/* poll() and ppoll() of nothing: a sleep that signals end. */
static long poll_nothing(struct gate_regs *r)
{
	u64 set;
	long ret;

	if (r->nr == __NR_poll || !r->a[3])
		return image_pass(r);
	if (r->a[4] != sizeof(set))
		return -EINVAL;
	if (gate_copy_in(&set, user_ptr(r->a[3]), sizeof(set)))
		return -EFAULT;
	gate_sigmask_begin(set);
	ret = image_pass(r);
	gate_sigmask_end(ret);
	return ret;
}

/* Programs see one CPU, the first: the number of the host's must not change a run. */
long sim_getcpu(struct gate_regs *r, gate_handler otherwise)
{
	u32 zero = 0;

	if ((r->a[0] && gate_copy_out(user_ptr(r->a[0]), &zero, sizeof(zero))) ||
	    (r->a[1] && gate_copy_out(user_ptr(r->a[1]), &zero, sizeof(zero))))
		return -EFAULT;
	return 0;
}

long sim_getaffinity(struct gate_regs *r, gate_handler otherwise)
{
	u64 first = 1;

	if (r->a[1] < sizeof(first) || r->a[1] % sizeof(first))
		return -EINVAL;
	return gate_copy_out(user_ptr(r->a[2]), &first, sizeof(first)) ? -EFAULT : (long)sizeof(first);
}

long sim_setaffinity(struct gate_regs *r, gate_handler otherwise)
{
	return 0;
}

/* rseq(): its word would tell the host's CPU. */
long sim_refused(struct gate_regs *r, gate_handler otherwise)
{
	return -ENOSYS;
}

long sim_node(struct gate_regs *r, gate_handler otherwise)
{
	return image_pass(r);
}

long sim_reads(struct gate_regs *r, gate_handler otherwise)
{
	return sim_by_host(r, otherwise, POLLIN);
}

long sim_writes(struct gate_regs *r, gate_handler otherwise)
{
	return sim_by_host(r, otherwise, POLLOUT);
}

long sim_poll(struct gate_regs *r, gate_handler otherwise)
{
	if (!r->a[1])
		return poll_nothing(r);
	return all_of_node(r) ? otherwise(r) : waits(r, otherwise);
}

long sim_select(struct gate_regs *r, gate_handler otherwise)
{
	return set_of_node(r) ? otherwise(r) : waits(r, otherwise);
}

long sim_epoll_wait(struct gate_regs *r, gate_handler otherwise)
{
	return fd_is_node(r->a[0]) && ep_of_node(r->a[0]) ? otherwise(r) : waits(r, otherwise);
}

/* Descriptors that tell of time, or pass it between programs, are the node's. */
long sim_pipe(struct gate_regs *r, gate_handler otherwise)
{
	return fd_create_pipe(r->nr == __NR_pipe2 ? r->a[1] : 0, r->a[0]);
}

long sim_eventfd(struct gate_regs *r, gate_handler otherwise)
{
	u64 flags = r->nr == __NR_eventfd2 ? r->a[1] : 0;

	return fd_create(flags & O_CLOEXEC, __NR_eventfd2, r->a[0], flags, 0, 0);
}

long sim_timerfd(struct gate_regs *r, gate_handler otherwise)
{
	return fd_create(r->a[1] & O_CLOEXEC, __NR_timerfd_create, r->a[0], r->a[1], 0, 0);
}

long sim_signalfd(struct gate_regs *r, gate_handler otherwise)
{
	u64 flags = r->nr == __NR_signalfd4 ? r->a[3] : 0;

	if ((s32)r->a[0] != -1)
		return otherwise(r);
	return fd_create(flags & O_CLOEXEC, __NR_signalfd4, -1, r->a[1], r->a[2], flags);
}

static long on_host(struct gate_regs *r)
{
	return gate_host_regs(r);
}

long sim_syscall(struct gate_regs *r, gate_handler handler)
{
	gate_sim_handler serves = r->nr < ARRAY_SIZE(gate_sim_handlers) ? gate_sim_handlers[r->nr] : NULL;
	bool changes = sim_changes(r), opens = sim_file_opens(r);
	long ret;

	sim_jitter();
	handler = handler ? : on_host;
	ret = serves ? serves(r, handler) : handler(r);

	if (unlikely(changes))
		sim_changed();
	if (ret >= 0)
		sim_file_changed(r, ret, opens);
	return ret;
}
