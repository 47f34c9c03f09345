// SPDX-License-Identifier: GPL-2.0
/*
 * feed.c - passes readiness of the host's descriptors to the node
 *
 * Theory of operation
 * -------------------
 * A thread that sleeps in the node must wake when a descriptor of the host becomes ready. One thread for each
 * process, the feeder, waits for that in a host epoll and tells the node. It is started at the first use.
 *
 * poll and select sets hold a proxy file at the descriptor's own number. The gate keeps two masks of EPOLL* bits
 * for each such number:
 *
 * want   all events that a thread has ever waited for
 * hot    events that were ready at the last report; the proxy shows the same
 *
 * The host epoll is armed, one-shot, for want & ~hot. So a busy descriptor that no thread waits for costs one event
 * and no more. A waiter that finds a hot bit stale (feed_expect) clears it and arms the descriptor again; arming
 * reports at once what has become ready meanwhile. So no event is lost between look and sleep.
 *
 * The twins of mixed epolls (epoll.c) are in the same host epoll, one-shot too. The feeder turns an event of a twin
 * into an edge of the proxy at the host epoll's own number, which every mixed epoll of the node has as a member. It
 * also makes all slots in use ready: a slot is a proxy without a descriptor of the host, lent to a waiter that
 * can't use that edge.
 *
 * feed_lock protects the masks and keeps them consistent with host epoll and proxy. It is held across PROXY_*
 * calls: those never sleep.
 */
#include "internal.h"
#include "policy.h"

#define EVENTS		32
#define TWIN		(1ull << 32)	/* epoll_data: an epoll's index, not a descriptor */
#define STOP		(1ull << 33)	/* ... tells the thread to end */

struct feed_fd {
	u32 want;
	u32 hot;
	bool blind;		/* the feeder does not see all of its events (signalfd.c) */
};

struct gate_mutex feed_lock;
static struct {
	u64 owner;		/* fdmap of the file table that the words are about */
	bool made;		/* the host epoll exists, and the proxy at its number */
	bool runs;
	u64 process;		/* gate_process() of the process whose thread it is; 0: the program's first */
	u32 slots_used, slots_made;	/* one bit each */
} feed;
static struct feed_fd feed_fds[RING3_FDS_MAX] GATE_TABLE;	/* costs only the pages that are touched */

u32 feed_fd(void)
{
	return gate_fd(FD_FEED);
}

bool feed_mine(void)
{
	return feed.owner == gate_thread()->fdmap;
}

/*
 * True if this process shares the descriptor table, but the feeder's words are another process's, whose memory it
 * uses.
 */
bool feed_others(void)
{
	return feed_mine() && gate_process() != (feed.process ? : 1);
}

static long feed_ctl(u32 op, u32 fd, u32 events, u64 data)
{
	struct epoll_event ev = { .events = events, .data = data };

	return host_syscall4(__NR_epoll_ctl, feed_fd(), op, fd, (long)&ev);
}

/* Arms the events that are wanted and not known to be ready; a hung-up descriptor has no further events. */
static long feed_rearm(u32 fd)
{
	u32 events = feed_fds[fd].want & ~feed_fds[fd].hot;

	if (!events || (feed_fds[fd].hot & (EPOLLERR | EPOLLHUP)))
		return 0;
	return feed_ctl(EPOLL_CTL_MOD, fd, events | EPOLLONESHOT, fd);
}

static void feed_event(u32 fd, u32 events)
{
	struct feed_fd *f = &feed_fds[fd];

	gate_lock(&feed_lock);
	if (f->want) {		/* 0: closed meanwhile */
		f->hot |= events;
		image_call2(RING3_NR_PROXY_SET, fd, f->hot);
		feed_rearm(fd);
	}
	gate_unlock(&feed_lock);
}

/* A twin has become readable: wakes the threads that wait for one. */
static void feed_twins(void)
{
	u32 used = __atomic_load_n(&feed.slots_used, __ATOMIC_SEQ_CST);

	image_call2(RING3_NR_PROXY_SET, feed_fd(), EPOLLIN);
	for (; used; used &= used - 1)
		image_call2(RING3_NR_PROXY_SET, gate_fd(FD_SLOT + __builtin_ctz(used)), EPOLLIN);
}

static void feeder(void)
{
	struct epoll_event ev[EVENTS];
	bool edge, stop;
	u64 nap = 0;
	long i, n;

	for (;;) {
		/* In virtual time this thread has the turn, and must not wait on the host. */
		n = host_syscall4(__NR_epoll_wait, feed_fd(), (long)ev, EVENTS, gate.sim ? 0 : -1);
		if (!n) {
			sim_nap(&nap);
			continue;
		}
		nap = 0;
		if (n < 0 && n != -EINTR)
			gate_die(125, "gate: waiting for the host's descriptors failed (error %ld)",
				 -n);
		edge = stop = false;
		for (i = 0; i < n; i++) {
			if (ev[i].data & STOP) {
				stop = true;
			} else if (ev[i].data & TWIN) {
				ep_fired((u32)ev[i].data);
				edge = true;
			} else {
				feed_event(ev[i].data, ev[i].events);
			}
		}
		if (edge)
			feed_twins();
		if (stop)
			helper_exit();
	}
}

static long feed_make(void)
{
	long fd, ret;

	if (feed.made)
		return 0;
	fd = host_syscall1(__NR_epoll_create1, EPOLL_CLOEXEC);
	if (fd < 0)
		return fd;
	ret = gate_fd_keep(fd, FD_FEED);
	if (ret < 0) {
		host_syscall1(__NR_close, fd);
		return ret;
	}
	image_call1(__NR_close, feed_fd());	/* a forked child: the parent's */
	ret = image_call1(RING3_NR_PROXY, feed_fd());
	if (ret < 0)
		return ret;
	feed.made = true;
	return 0;
}

static long feed_start_locked(void)
{
	long ret;

	if (feed.runs)
		return 0;
	/*
	 * A process that only shares the memory (CLONE_VM) may have ended before the others, and the feeder with
	 * it.
	 */
	if (gate_process() != (feed.process ? : 1))
		return -EAGAIN;
	ret = feed_make();
	if (!ret)
		ret = gate_helper(feeder);
	if (ret < 0)
		return ret;
	feed.runs = true;
	return 0;
}

bool feed_made(void)
{
	return READ_ONCE(feed.made);
}

long feed_start(void)
{
	long ret;

	if (READ_ONCE(feed.runs))
		return 0;
	gate_lock(&feed_lock);
	ret = feed_start_locked();
	gate_unlock(&feed_lock);
	return ret;
}

/*
 * The caller has seen none of `events` ready on host descriptor fd and is about to sleep in the node: makes sure
 * that they wake it. -EPERM: fd can't be waited for, or not for all of its events.
 */
long feed_expect(u32 fd, u32 events)
{
	struct feed_fd *f = &feed_fds[fd];
	bool news, first;
	u32 stale;
	long ret;

	events |= EPOLLERR | EPOLLHUP;
	gate_lock(&feed_lock);
	ret = feed_start_locked();
	if (ret)
		goto out;

	if (!f->want && f->hot == ~0u && fd_has_proxy(fd)) {
		/* It is the parent's: setting it would wake the parent's waiters. */
		image_call1(__NR_close, fd);
		map_clear(gate_fdmap()->proxy, fd);
		f->hot = 0;
	}
	first = !f->want;
	if (first)
		f->blind = is_signalfd(fd);
	stale = f->hot & events;
	news = stale || (events & ~f->want);
	if (!fd_has_proxy(fd)) {
		ret = image_call1(RING3_NR_PROXY, fd);
		if (ret < 0)
			goto out;
		map_set(gate_fdmap()->proxy, fd);
	}
	if (stale) {
		f->hot &= ~stale;
		image_call1(RING3_NR_PROXY_CLEAR, fd);
		if (f->hot)
			image_call2(RING3_NR_PROXY_SET, fd, f->hot);
	}
	f->want |= events;
	if (first) {
		ret = feed_ctl(EPOLL_CTL_ADD, fd, f->want | EPOLLONESHOT, fd);
		if (ret)
			f->want = 0;
	} else if (news) {
		ret = feed_rearm(fd);
	}
	if (!ret && f->blind)
		ret = -EPERM;
out:
	gate_unlock(&feed_lock);
	return ret;
}

/*
 * Some calls are allowed only for programs with one thread, and the feeder must not be counted. Armed descriptors
 * stay armed: events wait in the host epoll.
 */
bool feed_pause(void)
{
	long fd;

	if (!READ_ONCE(feed.runs) || !feed_mine() || helper_others())
		return false;
	fd = kick_fd();
	if (fd < 0 || feed_ctl(EPOLL_CTL_ADD, fd, EPOLLIN, STOP))
		return false;
	helper_gone();
	feed_ctl(EPOLL_CTL_DEL, fd, 0, 0);
	WRITE_ONCE(feed.runs, false);
	return true;
}

void feed_resume(void)
{
	feed_start();		/* if that fails, waiters poll, and try again */
}

void feed_close(u32 fd)
{
	if (!feed_mine())
		return;
	gate_lock(&feed_lock);
	if (feed.made && feed_fds[fd].want)
		feed_ctl(EPOLL_CTL_DEL, fd, 0, 0);
	feed_fds[fd].want = 0;
	feed_fds[fd].hot = 0;
	gate_unlock(&feed_lock);
}

/* Arms this twin: its next event reaches the node as an edge. */
long feed_arm_twin(u32 fd, u32 index)
{
	long ret = feed_ctl(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, TWIN | index);

	if (ret == -ENOENT)	/* new, or known under a number that is closed by now */
		ret = feed_ctl(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT, TWIN | index);
	return ret;
}

s32 feed_slot_get(void)
{
	u32 free, i;
	s32 slot = -1;

	if (!feed_mine())
		return -1;
	gate_lock(&feed_lock);
	free = ~feed.slots_used & ((1u << FEED_SLOTS) - 1);
	if (free && !feed_start_locked()) {
		i = __builtin_ctz(free);
		slot = gate_fd(FD_SLOT + i);
		if (!(feed.slots_made >> i & 1)) {
			/* In a forked child the number may hold the parent's proxy. */
			image_call1(__NR_close, slot);
			if (image_call1(RING3_NR_PROXY, slot) < 0)
				slot = -1;
			else
				feed.slots_made |= 1u << i;
		}
		if (slot >= 0)
			__atomic_fetch_or(&feed.slots_used, 1u << i, __ATOMIC_SEQ_CST);
	}
	gate_unlock(&feed_lock);
	return slot;
}

void feed_slot_clear(s32 slot)
{
	image_call1(RING3_NR_PROXY_CLEAR, slot);
}

void feed_slot_put(s32 slot)
{
	if (slot >= 0)
		__atomic_fetch_and(&feed.slots_used, ~(1u << (slot - gate_fd(FD_SLOT))),
				   __ATOMIC_SEQ_CST);
}

/*
 * In a new process: its feeder does not exist, and the host epoll is still its parent's, so both are left alone. So
 * are the parent's proxies at the child's numbers, until the child needs its own (feed_expect).
 */
GATE_FORKED void feed_none(void)
{
	struct ring3_fdmap *map = gate_fdmap();
	u32 fd;

	feed.owner = (u64)map;
	feed.process = gate_process();
	feed.made = false;
	feed.runs = false;
	feed.slots_used = 0;
	feed.slots_made = 0;
	for (fd = 0; fd < RING3_FDS_MAX; fd++) {
		if (!READ_ONCE(map->proxy[fd / 64])) {
			fd |= 63;
		} else if (map_test(map->proxy, fd)) {
			feed_fds[fd].want = 0;
			feed_fds[fd].hot = ~0u;
		}
	}
}
