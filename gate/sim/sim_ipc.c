// SPDX-License-Identifier: GPL-2.0
/*
 * sim_ipc.c - semaphores, message queues and asynchronous requests of the host, in virtual time
 *
 * Theory of operation
 * -------------------
 * semop(), msgsnd(), msgrcv(), mq_timedsend() and mq_timedreceive() are made in a form that does not wait, and repeated when
 * another thread has made a call that may have changed something: see sim_wait.c.
 *
 * Requests of io_submit() to files end within that call: reads and writes of files take no virtual time. So io_getevents()
 * finds the same events in each run, but for their order. Other requests (IOCB_CMD_POLL) end when another program acts.
 */
#include "internal.h"
#include "policy.h"
#include <linux/aio_abi.h>
#include <linux/ipc.h>
#include <linux/sem.h>
#include <linux/time_types.h>

#define NSEC		1000000000ull
#define IPC_NOWAIT_	04000		/* IPC_NOWAIT, whose octal is not C's in each header */
#define SEM_OPS		500		/* kernel.sem's third number, on most hosts */
#define ENOMSG_		42
#define AIO_MAGIC	0xa10a10a1u
#define AIO_LOOK_NS	100000ul
#define AIO_LOOKS	100000		/* 10 s: a disk takes less */

/* Waits until something may have changed; false: a signal or the deadline has ended the wait, with *ret. */
static bool waits_on(u64 *ns, u64 deadline, long late, long interrupted, long *ret)
{
	u64 left = wait_left(deadline);

	*ret = late;
	if (!left)
		return false;
	sim_wait(ns, left);
	*ret = interrupted;
	return !sim_interrupted();
}

/* The object of a call that has waited is there no more: another program has removed it. */
static long removed(long ret, u64 waited)
{
	return ret == -EINVAL && waited ? -EIDRM : ret;
}

/*
 * Does the operation that can not be done have IPC_NOWAIT? Only the first such one decides. op: what the program wants; the
 * values are those of now, when no other program of the simulation runs.
 */
static bool says_nowait(s32 id, const struct sembuf *op, u32 n)
{
	u32 i, k;

	for (i = 0; i < n; i++) {
		long value = host_syscall4(__NR_semctl, id, op[i].sem_num, GETVAL, 0);

		if (value < 0)
			return true;	/* who may not read the values can't be told to wait */
		for (k = 0; k < i; k++)
			if (op[k].sem_num == op[i].sem_num)
				value += op[k].sem_op;
		if (op[i].sem_op ? value + op[i].sem_op < 0 : value)
			return op[i].sem_flg & IPC_NOWAIT_;
	}
	return false;
}

/* semop() and semtimedop() */
long sim_semop(struct gate_regs *r, gate_handler handler)
{
	struct sembuf *op, *now;
	u32 i, n = r->a[2];
	u64 ns = 0, deadline = WAIT_FOREVER, size = n * sizeof(*op);
	struct gate_regs look = *r;
	bool some = false;
	long ret = 0;

	if (r->nr == __NR_semtimedop)
		ret = wait_from_timespec(r->a[3], &deadline);
	if (ret)
		return ret;
	if (!n || n > SEM_OPS)
		return n ? -E2BIG : -EINVAL;
	op = gate_alloc(2 * size);
	if (!op)
		return -ENOMEM;
	now = op + n;
	if (gate_copy_in(op, user_ptr(r->a[1]), size)) {
		gate_free(op);
		return -EFAULT;
	}
	memcpy(now, op, size);
	for (i = 0; i < n; i++) {
		some |= op[i].sem_flg & IPC_NOWAIT_;
		now[i].sem_flg |= IPC_NOWAIT_;
	}
	look.nr = __NR_semop;
	look.a[1] = (u64)now;
	do
		ret = removed(handler(&look), ns);
	while (ret == -EAGAIN && !(some && says_nowait(r->a[0], op, n)) && waits_on(&ns, deadline, -EAGAIN, -EINTR, &ret));
	if (!ret)
		sim_changed();
	gate_free(op);
	return ret;
}

/* msgsnd() and msgrcv() */
long sim_msg(struct gate_regs *r, gate_handler handler)
{
	bool sends = r->nr == __NR_msgsnd;
	u32 flags = sends ? 3 : 4;
	struct gate_regs look = *r;
	long ret, none = sends ? -EAGAIN : -ENOMSG_;
	u64 ns = 0;

	if (r->a[flags] & IPC_NOWAIT_)
		return handler(r);
	look.a[flags] |= IPC_NOWAIT_;
	do
		ret = removed(handler(&look), ns);
	while (ret == none && waits_on(&ns, WAIT_FOREVER, none, -ERESTARTNOHAND, &ret));
	if (ret >= 0)
		sim_changed();
	return ret;
}

/* The time-out of mq_timedsend() is a time of the clock of the day. */
static long mq_deadline(u64 user, u64 *deadline)
{
	struct __kernel_timespec until, ts;
	s64 ns;

	*deadline = WAIT_FOREVER;
	if (!user)
		return 0;
	if (gate_copy_in(&until, user_ptr(user), sizeof(until)))
		return -EFAULT;
	if (until.tv_sec < 0 || (u64)until.tv_nsec >= NSEC)
		return -EINVAL;
	if (image_call2(__NR_clock_gettime, CLOCK_REALTIME, &ts))
		return -EIO;
	if (until.tv_sec - ts.tv_sec > (s64)(WAIT_FOREVER / NSEC / 2))
		return 0;
	ns = (until.tv_sec - ts.tv_sec) * (s64)NSEC + until.tv_nsec - ts.tv_nsec;
	*deadline = ns > 0 ? wait_until_ns(ns) : 0;
	return 0;
}

/* mq_timedsend() and mq_timedreceive(): a time-out that has passed makes the host wait for nothing. */
long sim_mq(struct gate_regs *r, gate_handler handler)
{
	static const struct __kernel_timespec passed;
	struct __kernel_timespec none = passed;
	struct gate_regs look = *r;
	u64 ns = 0, deadline;
	long ret = mq_deadline(r->a[4], &deadline);

	if (ret)
		return ret;
	look.a[4] = (u64)&none;
	do
		ret = handler(&look);
	while (ret == -ETIMEDOUT && waits_on(&ns, deadline, -ETIMEDOUT, -ERESTARTSYS, &ret));
	if (ret >= 0)
		sim_changed();
	return ret;
}

/* The page that the host shares with the program at the address that is the context's number: struct aio_ring. */
struct ring {
	u32 id, nr, head, tail, magic;
};

static bool ring_of(u64 ctx, struct ring *ring)
{
	return !gate_copy_in(ring, user_ptr(ctx), sizeof(*ring)) && ring->magic == AIO_MAGIC && ring->nr;
}

/* How many of the first n requests end by themselves. */
static u32 to_files(u64 user, u32 n)
{
	struct iocb cb;
	u32 i, files = 0;
	u64 at;

	for (i = 0; i < n; i++)
		if (!gate_copy_in(&at, user_ptr(user + i * sizeof(at)), sizeof(at)) &&
		    !gate_copy_in(&cb, user_ptr(at), sizeof(cb)) && cb.aio_lio_opcode != IOCB_CMD_POLL &&
		    sim_kind_of(cb.aio_fildes) == SIM_FILE)
			files++;
	return files;
}

long sim_io_submit(struct gate_regs *r, gate_handler handler)
{
	const struct timespec nap = { .tv_nsec = AIO_LOOK_NS };
	bool known;
	struct ring before, now;
	u32 i, files;
	long ret;

	known = ring_of(r->a[0], &before);
	ret = handler(r);
	if (ret <= 0 || !known)
		return ret;
	files = to_files(r->a[2], ret);
	for (i = 0; i < AIO_LOOKS; i++) {
		if (!ring_of(r->a[0], &now) || (now.tail + now.nr - before.tail) % now.nr >= files)
			return ret;
		host_syscall2(__NR_nanosleep, (long)&nap, 0);
	}
	gate_warn("io_submit(): a request to a file takes longer than 10 s: this run may differ from others");
	return ret;
}

/* Looks without waiting, as often as something may have changed, until there are enough. */
static long getevents(struct gate_regs *look, gate_handler handler, u64 user_timeout)
{
	static const struct __kernel_timespec passed;
	struct __kernel_timespec none = passed;
	u64 ns = 0, deadline;
	long ret, why, done = 0;

	ret = wait_from_timespec(user_timeout, &deadline);
	if (ret)
		return ret;
	look->a[4] = (u64)&none;
	for (;;) {
		ret = handler(look);
		if (ret < 0)
			return done ? done : ret;
		done += ret;
		if ((s64)look->a[1] <= ret)
			return done;
		look->a[1] -= ret;
		look->a[2] -= ret;
		look->a[3] += ret * sizeof(struct io_event);
		if (!waits_on(&ns, deadline, 0, -EINTR, &why))
			return done ? done : why;
	}
}

/* io_getevents() and io_pgetevents() */
long sim_io_getevents(struct gate_regs *r, gate_handler handler)
{
	struct { u64 set, size; } masked = { 0 };
	struct gate_regs look = *r;
	u64 set;
	long ret;

	if (r->nr == __NR_io_pgetevents && r->a[5]) {
		if (gate_copy_in(&masked, user_ptr(r->a[5]), sizeof(masked)))
			return -EFAULT;
		look.a[5] = 0;
	}
	if (!masked.set)
		return getevents(&look, handler, r->a[4]);
	if (masked.size != sizeof(set))
		return -EINVAL;
	if (gate_copy_in(&set, user_ptr(masked.set), sizeof(set)))
		return -EFAULT;
	gate_sigmask_begin(set);
	ret = getevents(&look, handler, r->a[4]);
	gate_sigmask_end(ret);
	return ret;
}
