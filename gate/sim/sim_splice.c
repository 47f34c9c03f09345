// SPDX-License-Identifier: GPL-2.0
/*
 * sim_splice.c - sendfile(), splice(), tee() and vmsplice() between descriptors of the host, in virtual time
 *
 * Such a call has up to two ends at which it may wait: FIFOs and unix sockets. It is made in a form that waits at neither, and
 * repeated when others have changed something, as in sim_wait.c. Where one end is the node's, xfer.c serves the call, and its
 * waits for the other end are sim_wait_host().
 */
#include "internal.h"
#include "policy.h"
#include <linux/stat.h>

#define SPLICE_F_NONBLOCK	0x02

struct end {
	s32 fd;
	u16 events;
	enum sim_kind kind;
	long flags;		/* of the open file */
	bool waits;		/* the call would wait at this end */
};

static u32 ends_of(const struct gate_regs *r, struct end end[2])
{
	bool sends = r->nr == __NR_sendfile;
	u32 out = r->nr == __NR_splice ? 2 : 1;

	if (r->nr == __NR_vmsplice) {
		long mode = host_syscall3(__NR_fcntl, r->a[0], F_GETFL, 0) & O_ACCMODE;

		end[0] = (struct end){ .fd = r->a[0], .events = mode == O_RDONLY ? POLLIN : POLLOUT };
		return 1;
	}
	end[0] = (struct end){ .fd = r->a[sends ? 1 : 0], .events = POLLIN };
	end[1] = (struct end){ .fd = r->a[sends ? 0 : out], .events = POLLOUT };
	return 2;
}

static u32 flags_at(u64 nr)
{
	return nr == __NR_splice ? 5 : 3;
}

static void look_at(struct end *end, bool nonblock)
{
	struct stat st;

	end->kind = sim_kind_of(end->fd);
	end->flags = host_syscall3(__NR_fcntl, end->fd, F_GETFL, 0);
	end->waits = end->kind != SIM_FILE && end->flags >= 0 && !(end->flags & (O_NONBLOCK | O_PATH));
	/* SPLICE_F_NONBLOCK is about pipes only. */
	if (end->waits && nonblock && !host_syscall2(__NR_fstat, end->fd, (long)&st) && (st.st_mode & S_IFMT) == S_IFIFO)
		end->waits = false;
}

static bool is_ready(const struct end *end)
{
	struct pollfd p = { .fd = end->fd, .events = end->events };

	return end->kind == SIM_FILE || host_syscall3(__NR_poll, (long)&p, 1, 0);
}

/* No other program of the simulation runs meanwhile: all of it is calls of the host. */
static long at_once(const struct gate_regs *r, const struct end *end, u32 n, gate_handler handler)
{
	struct gate_regs now = *r;
	long ret;
	u32 i;

	/* O_NONBLOCK would apply to the processes outside, too. */
	for (i = 0; i < n; i++)
		if (end[i].waits && end[i].kind == SIM_OUTSIDE && sim_would_wait(end[i].fd, end[i].events))
			return -EAGAIN;
	if (r->nr != __NR_sendfile)
		now.a[flags_at(r->nr)] |= SPLICE_F_NONBLOCK;
	for (i = 0; i < n; i++)
		if (end[i].waits && end[i].kind == SIM_INSIDE)
			host_syscall3(__NR_fcntl, end[i].fd, F_SETFL, end[i].flags | O_NONBLOCK);
	ret = handler(&now);
	for (i = 0; i < n; i++)
		if (end[i].waits && end[i].kind == SIM_INSIDE)
			host_syscall3(__NR_fcntl, end[i].fd, F_SETFL, end[i].flags);
	return ret;
}

/* To a socket, the call goes on until all is sent. Into a pipe it moves what there is room for. */
static bool goes_on(struct gate_regs *left, const struct end *out, long ret)
{
	u32 len = left->nr == __NR_splice ? 4 : 3;
	struct stat st;

	if ((left->nr != __NR_splice && left->nr != __NR_sendfile) || (u64)ret >= left->a[len] ||
	    host_syscall2(__NR_fstat, out->fd, (long)&st) || (st.st_mode & S_IFMT) != S_IFSOCK)
		return false;
	left->a[len] -= ret;
	return true;
}

long sim_splice(struct gate_regs *r, gate_handler handler)
{
	bool nonblock = r->nr != __NR_sendfile && (r->a[flags_at(r->nr)] & SPLICE_F_NONBLOCK), any = false, outside = false;
	struct gate_regs left = *r;
	u64 ns = 0, deadline, most;
	long ret, done = 0;
	struct end end[2];
	u32 i, n = ends_of(r, end);

	for (i = 0; i < n; i++) {
		if (fd_is_node(end[i].fd))
			return handler(r);
		look_at(&end[i], nonblock);
		any |= end[i].waits;
		outside |= end[i].waits && end[i].kind == SIM_OUTSIDE;
	}
	if (!any)
		return handler(r);
	deadline = sim_deadline_of(end[n - 1].fd, true);
	for (;;) {
		ret = at_once(&left, end, n, handler);
		if (ret > 0) {
			done += ret;
			sim_changed();
			if (goes_on(&left, &end[n - 1], ret))
				continue;
		}
		if (ret != -EAGAIN)
			return done ? done : ret;
		/* splice() does not wait for more to send. */
		if (done && !is_ready(&end[0]))
			return done;
		most = wait_left(deadline);
		for (i = 0; i < n; i++)
			if (!end[i].waits && !is_ready(&end[i]))
				most = 0;
		if (!most)
			return done ? done : -EAGAIN;
		if (outside)
			sim_nap(&ns);
		else
			sim_wait(&ns, most);
		if (sim_interrupted())
			return done ? done : -ERESTARTSYS;
		for (i = 0; i < n; i++)
			look_at(&end[i], nonblock);	/* another thread may have changed the flags */
	}
}
