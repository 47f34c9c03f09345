// SPDX-License-Identifier: GPL-2.0
/*
 * sim_call.c - calls in virtual time
 *
 * Theory of operation
 * -------------------
 * Time, sleeps, futexes, randomness, signals between programs and ends of children are the node's kernel's: such calls are
 * passed to it, and pipes, eventfds, timerfds and signalfds are its descriptors. Unix sockets, FIFOs, file locks and terminals
 * are the host's still: sim_wait.c has how they are waited for, sim_futex.c what is to be said of futexes.
 */
#include "internal.h"
#include "policy.h"
#include <linux/wait.h>

#define NSEC		1000000000ull
/* Newer than the headers that this may be built with. */
#define NR_FUTEX_WAITV		449
#define NR_FUTEX_WAKE		454
#define NR_FUTEX_WAIT		455
#define NR_FUTEX_REQUEUE	456
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

/* The same call with no time to wait, again and again. */
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

static long do_waits(struct gate_regs *r, gate_handler handler)
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

/* Are all descriptors of the set the node's? Then it waits there, exactly. */
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

static long do_child(struct gate_regs *r)
{
	struct gate_regs own = *r;
	siginfo_t info;
	s32 pid, status = 0;
	long ret;

	/* The node knows when; then the host lets go of one that has ended. One that has stopped is there. */
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
static long do_mirror(struct gate_regs *r, gate_handler handler)
{
	struct host_sigaction act;
	long ret = handler(r);
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

static long do_suspend(struct gate_regs *r)
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
static long do_poll_nothing(struct gate_regs *r)
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

/* One CPU, the first: how many the host has decides nothing here. */
static long do_getcpu(struct gate_regs *r)
{
	u32 zero = 0;

	if ((r->a[0] && gate_copy_out(user_ptr(r->a[0]), &zero, sizeof(zero))) ||
	    (r->a[1] && gate_copy_out(user_ptr(r->a[1]), &zero, sizeof(zero))))
		return -EFAULT;
	return 0;
}

static long do_getaffinity(struct gate_regs *r)
{
	u64 first = 1;

	if (r->a[1] < sizeof(first) || r->a[1] % sizeof(first))
		return -EINVAL;
	return gate_copy_out(user_ptr(r->a[2]), &first, sizeof(first)) ? -EFAULT : (long)sizeof(first);
}

static long on_host(struct gate_regs *r)
{
	return gate_host_regs(r);
}

static long serve(struct gate_regs *r, gate_handler handler)
{
	switch (r->nr) {
	case __NR_clock_gettime:
	case __NR_gettimeofday:
	case __NR_time:
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
	case __NR_getrandom:
	case __NR_getrusage:
	case __NR_times:
	case __NR_sysinfo:
	case __NR_sched_yield:
	case __NR_rt_sigtimedwait:
	case __NR_pause:
	case __NR_alarm:
	case __NR_setitimer:
	case __NR_getitimer:
	case __NR_timer_create:
	case __NR_timer_settime:
	case __NR_timer_gettime:
	case __NR_timer_getoverrun:
	case __NR_timer_delete:
	case __NR_kill:
	case __NR_tkill:
	case __NR_tgkill:
	case __NR_rt_sigqueueinfo:
	case __NR_rt_tgsigqueueinfo:
		return image_pass(r);
	case __NR_getcpu:
		return do_getcpu(r);
	case __NR_sched_getaffinity:
		return do_getaffinity(r);
	case __NR_sched_setaffinity:
		return 0;
	case __NR_rt_sigsuspend:
		return do_suspend(r);
	case __NR_wait4:
	case __NR_waitid:
		return do_child(r);
	case __NR_futex:
		return sim_futex(r);
	case NR_FUTEX_WAITV:
		return sim_futex_waitv(r, r->a[1]);
	case NR_FUTEX_WAKE:
		return sim_futex2(r, 3);
	case NR_FUTEX_WAIT:
		return sim_futex2(r, 4);
	case NR_FUTEX_REQUEUE:
		return sim_futex_waitv(r, 2);
	case __NR_set_robust_list:
		return sim_robust_list(r);
	case __NR_mmap:
	case __NR_munmap:
	case __NR_mremap:
	case __NR_shmat:
	case __NR_shmdt:
		sim_maps(r);
		return handler(r);
	case __NR_set_tid_address:
		return sim_tid_address(r->a[0]);
	case __NR_rt_sigprocmask:
	case __NR_rt_sigaction:
		return do_mirror(r, handler);
	case __NR_read:
	case __NR_readv:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_accept:
	case __NR_accept4:
		return sim_by_host(r, handler, POLLIN);
	case __NR_write:
	case __NR_writev:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_connect:
		return sim_by_host(r, handler, POLLOUT);
	case __NR_creat:
	case __NR_open:
	case __NR_openat:
	case __NR_openat2:
		return sim_open(r, handler);
	case __NR_flock:
	case __NR_fcntl:
		return sim_lock(r, handler);
	case __NR_signalfd:
	case __NR_signalfd4:
		if ((s32)r->a[0] != -1)
			return handler(r);
		return fd_create(r->nr == __NR_signalfd4 && (r->a[3] & O_CLOEXEC), __NR_signalfd4, -1, r->a[1], r->a[2],
				 r->nr == __NR_signalfd4 ? r->a[3] : 0);
	case __NR_poll:
	case __NR_ppoll:
		if (!r->a[1])
			return do_poll_nothing(r);
		return all_of_node(r) ? handler(r) : do_waits(r, handler);
	case __NR_select:
	case __NR_pselect6:
		return set_of_node(r) ? handler(r) : do_waits(r, handler);
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return fd_is_node(r->a[0]) && ep_of_node(r->a[0]) ? handler(r) : do_waits(r, handler);
	case __NR_pipe:
		return fd_create_pipe(0, r->a[0]);
	case __NR_pipe2:
		return fd_create_pipe(r->a[1], r->a[0]);
	case __NR_eventfd:
		return fd_create(false, __NR_eventfd2, r->a[0], 0, 0, 0);
	case __NR_eventfd2:
		return fd_create(r->a[1] & O_CLOEXEC, r->nr, r->a[0], r->a[1], 0, 0);
	case __NR_timerfd_create:
		return fd_create(r->a[1] & O_CLOEXEC, r->nr, r->a[0], r->a[1], 0, 0);
	}
	return handler(r);
}

long sim_syscall(struct gate_regs *r, gate_handler handler)
{
	bool changes = sim_changes(r);
	long ret;

	sim_jitter();
	ret = serve(r, handler ? : on_host);

	if (unlikely(changes))
		sim_changed();
	return ret;
}
