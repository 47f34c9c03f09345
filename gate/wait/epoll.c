// SPDX-License-Identifier: GPL-2.0
/*
 * epoll.c - epolls with members on both sides
 *
 * Theory of operation
 * -------------------
 * Each epoll descriptor is two epolls with one number: the node's, and its twin on the host, which takes the place
 * of the placeholder. A member is added on the side that owns it, with the program's own event mask and data. So
 * edge triggering, one-shot, exclusive wake-ups, errors and epoll_data are handled by the kernel that knows the
 * file. dup, fork and exec copy both.
 *
 * Waiting depends on which sides have members:
 *
 *   host only	wait on the twin
 *   node only	wait on the node's epoll
 * both	(EP_MIXED) look at the twin without waiting, then wait in the
 *		node. The node's epoll has one extra member, the feeder's proxy,
 *		edge-triggered, with data MAGIC. When a twin becomes readable the
 *		feeder raises an edge there; the waiter wakes, drops that event and
 *		looks at the twin again.
 *
 * That extra member would make the epoll itself look readable to a thread that polls it or has it in another epoll.
 * Once a program has done that (ep_polled), the member is removed for good, and waiters use a slot of the feeder
 * instead.
 *
 * A mixed epoll stays mixed. An epoll may become mixed while threads wait: those in the node get an edge; those on
 * the host are woken by an always readable member (the kick), also with data MAGIC, which the last of them removes.
 * If several processes share an epoll and one makes it mixed, the others learn that by an event with MAGIC, unless
 * they wait on the twin.
 *
 * Why two epolls, and not one in the node with a proxy for each member of the host? That was tried outside of the
 * gate. A proxy shows the last known state of the host's file, and the program drains its descriptors without the
 * gate's knowledge. So each ready proxy has to be checked before its event is reported, and armed again afterwards:
 * host calls for each member, where the twin needs a few for each wait. One of 64 members ready: 6.0 host calls an
 * event, with the twin 2.1; all 64: 0.63 and 0.07. A proxy can't pass on edges, EPOLLEXCLUSIVE and EPOLLONESHOT of
 * several processes, which the host's epoll handles. And it depends on the feeder of one process: members would
 * fall silent when that process ends, while others still have the epoll.
 *
 * The gate's state of an epoll is struct ep, found by number and shared by duplicates. An epoll that came over exec
 * or from another process counts as having members on both sides, as do all epolls of a forked child: the other
 * process may add members. In a child that uses its parent's memory (vfork), this state is the parent's and is left
 * alone.
 */
#include "wait/epoll.h"

#define EPS		4096			/* epolls of one process */

struct gate_mutex ep_lock;
static struct ep eps[EPS] GATE_TABLE;
static u16 ep_at[RING3_FDS_MAX] GATE_TABLE;	/* by number: index + 1 */
static u32 eps_used;			/* a free entry is looked for below this */
static u64 *child_joins;		/* members that forked children have added to epolls of their parents; they share the word */
static bool is_child;			/* forked, and has not executed a program since */

static struct ep *ep_new(u32 fd, u32 sides)
{
	u32 i;

	for (i = 0; i < EPS; i++) {
		if (eps[i].refs)
			continue;
		eps[i] = (struct ep){ .refs = 1, .sides = sides, .maybe = 1 };
		if (i >= eps_used)
			eps_used = i + 1;
		WRITE_ONCE(ep_at[fd], i + 1);
		return &eps[i];
	}
	return NULL;
}

/* The epoll at number fd, which is the node's; NULL: the gate has no state of it. */
static struct ep *ep_find(u32 fd)
{
	u16 i = READ_ONCE(ep_at[fd]);

	return i && feed_mine() ? &eps[i - 1] : NULL;
}

/* A node descriptor is an epoll if and only if the host has an epoll at its number. */
bool ep_is(u32 fd)
{
	return READ_ONCE(ep_at[fd]) || fd_is_host_epoll(fd);
}

/*
 * An epoll of a process that uses another's memory, but has descriptors of its own: the gate's state is not about
 * it.
 */
bool ep_is_borrowed(u32 fd)
{
	return unlikely(!feed_mine()) && fd_is_host_epoll(fd);
}

/* NULL: the gate has no state of it, or it is not an epoll. */
struct ep *ep_get(u32 fd)
{
	struct ep *ep = ep_find(fd);

	if (ep || !feed_mine() || !fd_is_host_epoll(fd))
		return ep;
	gate_lock(&ep_lock);
	ep = ep_find(fd);
	if (!ep) {
		ep = ep_new(fd, EP_HOST | EP_NODE);
		/* For all that is known, another process has it, too, and it is in another epoll. */
		if (ep)
			ep->shared = ep->polled = 1;
	}
	gate_unlock(&ep_lock);
	return ep;
}

static void ep_put_locked(u32 fd)
{
	u16 i = ep_at[fd];

	if (i) {
		ep_at[fd] = 0;
		if (!--eps[i - 1].refs && (eps[i - 1].nests || eps[i - 1].inside))
			ep_nested_forget(&eps[i - 1]);
	}
}

GATE_FORKED void ep_close(u32 fd)
{
	if (!READ_ONCE(ep_at[fd]) || !feed_mine())
		return;
	gate_lock(&ep_lock);
	ep_put_locked(fd);
	gate_unlock(&ep_lock);
}

void ep_dup(u32 from, u32 to)
{
	if (!READ_ONCE(ep_at[from]) || !feed_mine())
		return;
	gate_lock(&ep_lock);
	ep_put_locked(to);
	ep_at[to] = ep_at[from];
	if (ep_at[to])
		eps[ep_at[to] - 1].refs++;
	gate_unlock(&ep_lock);
}

/*
 * A process that has not made this epoll must learn of it before it is polled or added to another: the code for
 * these does not check, since nearly all node descriptors are sockets.
 */
void ep_learn(u32 fd)
{
	ep_get(fd);
}

void ep_inherited(void)
{
	const u64 *node = gate_fdmap()->node;
	u32 fd;

	for (fd = 0; fd < RING3_FDS_MAX; fd++) {
		if (!READ_ONCE(node[fd / 64]))
			fd |= 63;
		else if (map_test(node, fd))
			ep_learn(fd);
	}
}

/* Does it have members, all of them in the node? */
bool ep_of_node(u32 fd)
{
	const struct ep *ep = ep_get(fd);

	return ep && READ_ONCE(ep->sides) == EP_NODE;
}

bool ep_known(u32 fd)
{
	return ep_find(fd);
}

void ep_fired(u32 index)
{
	struct ep *ep = &eps[index % EPS];

	WRITE_ONCE(ep->maybe, 1);
	__atomic_store_n(&ep->armed, 0, __ATOMIC_SEQ_CST);
}

/* False: the feeder will not report its events. */
bool ep_arm_ep(struct ep *ep, u32 fd)
{
	if (unlikely(feed_start()))
		return false;
	if (!__atomic_exchange_n(&ep->armed, 1, __ATOMIC_SEQ_CST))
		feed_arm_twin(fd, ep - eps);
	return true;
}

/* Another process is about to share our descriptors. */
void ep_shared(void)
{
	u32 i;

	if (!child_joins && eps_used)
		child_joins = gate_pages_shared(sizeof(*child_joins));
	for (i = 0; i < eps_used; i++) {
		WRITE_ONCE(eps[i].shared, 1);
		/* Nobody will tell what a child adds. */
		if (unlikely(!child_joins))
			__atomic_fetch_or(&eps[i].sides, EP_HOST | EP_NODE, __ATOMIC_SEQ_CST);
	}
}

/* A child may have added a member of the other side to an epoll that has members on one. */
bool ep_child_joined(struct ep *ep, u32 epfd)
{
	u64 joins;

	if (likely(!READ_ONCE(ep->shared)) || !child_joins)
		return false;
	joins = __atomic_load_n(child_joins, __ATOMIC_SEQ_CST);
	if (likely(READ_ONCE(ep->joins) == joins))
		return false;
	WRITE_ONCE(ep->joins, joins);
	ep_share(epfd);
	return true;
}

GATE_FORKED void ep_forked(void)
{
	u32 i;

	is_child = true;
	for (i = 0; i < eps_used; i++) {
		eps[i].sides = EP_HOST | EP_NODE;
		eps[i].armed = 0;
		eps[i].maybe = 1;
		eps[i].member = 0;	/* the parent's proxy */
		eps[i].host_waiters = 0;
		eps[i].node_waiters = 0;
	}
}

void ep_apart(void)
{
	gate_lock(&ep_lock);
	ep_forked();
	gate_unlock(&ep_lock);
}

long do_epoll_create(struct gate_regs *r)
{
	long fd = host_syscall1(r->nr, r->a[0]);
	u32 flags = r->nr == __NR_epoll_create1 ? r->a[0] : 0;

	fd = fd_adopt(fd, __NR_epoll_create1, flags, 0, 0, 0);
	if (fd < 0 || !feed_mine())
		return fd;
	gate_lock(&ep_lock);
	ep_put_locked(fd);
	if (!ep_new(fd, 0))
		gate_warn("more than %d epolls in one process: slower from here on", EPS);
	gate_unlock(&ep_lock);
	return fd;
}

/* The always readable descriptor that ends waits on a twin. */
long kick_fd(void)
{
	static bool made;
	long fd;

	if (made)
		return gate_fd(FD_KICK);
	fd = host_syscall2(__NR_eventfd2, 1, O_CLOEXEC);
	if (fd >= 0)
		fd = gate_fd_keep(fd, FD_KICK);
	made = fd >= 0;
	return fd;
}

static long twin_ctl(u32 epfd, u32 op, u32 fd, u32 events)
{
	struct epoll_event ev = { .events = events, .data = MAGIC };

	return host_syscall4(__NR_epoll_ctl, epfd, op, fd, (long)&ev);
}

static void kick_done(struct ep *ep, u32 epfd)
{
	twin_ctl(epfd, EPOLL_CTL_DEL, gate_fd(FD_KICK), 0);
	WRITE_ONCE(ep->kicked, 0);
}

/*
 * Ends waits on the twin itself. `kicked` is set while the kick is a member of the twin. Both sides look for the
 * other's store after their own, so the kick can't stay.
 */
static long kick_host_waiters(struct ep *ep, u32 epfd)
{
	long fd, ret;

	if (!__atomic_load_n(&ep->host_waiters, __ATOMIC_SEQ_CST) || ep->kicked)
		return 0;
	fd = kick_fd();
	if (fd < 0)
		return fd;
	WRITE_ONCE(ep->was_kicked, 1);
	__atomic_store_n(&ep->kicked, 1, __ATOMIC_SEQ_CST);
	ret = twin_ctl(epfd, EPOLL_CTL_ADD, fd, EPOLLIN);
	if (ret || !__atomic_load_n(&ep->host_waiters, __ATOMIC_SEQ_CST))
		kick_done(ep, epfd);
	return ret;
}

static long ep_mix_locked(struct ep *ep, u32 epfd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data = MAGIC };
	long ret;

	if (ep->sides & EP_MIXED)
		return 0;
	/* If there is no feeder (RLIMIT_NPROC, no number left), waiters poll. */
	feed_start();
	if (!feed_made())
		ep->polled = 1;
	ep->maybe = 1;
	/* Before the extra member is added: its first event may come at once. */
	__atomic_fetch_or(&ep->sides, EP_MIXED, __ATOMIC_SEQ_CST);
	if (!ep->polled) {
		ret = image_call4(__NR_epoll_ctl, epfd, EPOLL_CTL_ADD, feed_fd(), &ev);
		if (ret && ret != -EEXIST) {
			__atomic_fetch_and(&ep->sides, ~EP_MIXED, __ATOMIC_SEQ_CST);
			return ret;
		}
		ep->member = 1;
	}

	/* Threads that wait on one side only have to learn that there are two. */
	if (feed_made())
		image_call2(RING3_NR_PROXY_SET, feed_fd(), EPOLLIN);
	return kick_host_waiters(ep, epfd);
}

long ep_mix(struct ep *ep, u32 epfd)
{
	long ret;

	if (READ_ONCE(ep->sides) & EP_MIXED)
		return 0;
	gate_lock(&ep_lock);
	ret = ep_mix_locked(ep, epfd);
	gate_unlock(&ep_lock);
	return ret;
}

long ep_arm(u32 epfd)
{
	struct ep *ep = ep_find(epfd);

	if (!ep)
		return -EBADF;
	return ep_arm_ep(ep, epfd) ? 0 : -EAGAIN;
}

long ep_polled(u32 epfd)
{
	struct ep *ep = ep_get(epfd);
	long ret = 0;

	if (!ep || READ_ONCE(ep->polled))
		return 0;
	gate_lock(&ep_lock);
	WRITE_ONCE(ep->polled, 1);
	if (ep->member) {
		/* A waiter that relies on the member gets a last edge. */
		image_call2(RING3_NR_PROXY_SET, feed_fd(), EPOLLIN);
		ret = image_call4(__NR_epoll_ctl, epfd, EPOLL_CTL_DEL, feed_fd(), 0);
		ep->member = 0;
	}
	gate_unlock(&ep_lock);
	return ret;
}

/* The epoll has got a member on this side. */
static long ep_joined(u32 epfd, u32 side)
{
	struct ep *ep = ep_get(epfd);
	u32 sides;

	if (!ep)
		return 0;
	if (is_child && READ_ONCE(ep->shared) && child_joins)
		__atomic_fetch_add(child_joins, 1, __ATOMIC_SEQ_CST);
	if (side & EP_HOST)
		WRITE_ONCE(ep->maybe, 1);
	if ((READ_ONCE(ep->sides) & side) == side)
		return 0;
	sides = __atomic_or_fetch(&ep->sides, side, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ep->host_waiters, __ATOMIC_SEQ_CST))
		sides = __atomic_or_fetch(&ep->sides, EP_HOST, __ATOMIC_SEQ_CST);
	if ((sides & (EP_HOST | EP_NODE)) != (EP_HOST | EP_NODE))
		return 0;
	return ep_mix(ep, epfd);
}

long ep_share(u32 epfd)
{
	struct ep *ep = ep_get(epfd);

	if (ep)
		WRITE_ONCE(ep->shared, 1);
	return ep_joined(epfd, EP_HOST | EP_NODE);
}

/*
 * Adds an epoll to an epoll: the inner twin to the outer twin, and the same in the node. epoll_nested.c merges the
 * events of the two.
 */
static long ep_ctl_nested(struct gate_regs *r)
{
	u32 epfd = r->a[0], op = r->a[1], fd = r->a[2];
	struct ep *outer = ep_get(epfd), *inner = ep_get(fd);
	struct epoll_event ev = {};
	long ret;

	if (op != EPOLL_CTL_DEL && gate_copy_in(&ev, user_ptr(r->a[3]), sizeof(ev)))
		return -EFAULT;
	if (op == EPOLL_CTL_ADD)
		ep_polled(fd);
	gate_lock(&ep_lock);
	if (outer && inner) {
		WRITE_ONCE(outer->nests, 1);
		inner->inside = 1;
	}
	ret = image_call4(__NR_epoll_ctl, epfd, op, fd, &ev);
	if (!ret) {
		ret = host_syscall4(__NR_epoll_ctl, epfd, op, fd, (long)&ev);
		if (ret && op == EPOLL_CTL_ADD)
			image_call4(__NR_epoll_ctl, epfd, EPOLL_CTL_DEL, fd, 0);
	}
	if (!ret && outer && inner)
		ep_nested_note(outer, inner, op, fd, &ev);
	gate_unlock(&ep_lock);
	if (!ret && op == EPOLL_CTL_ADD)
		ret = ep_joined(epfd, EP_HOST | EP_NODE);
	return ret;
}

/* Open, and not an O_PATH descriptor of the program, which epoll_ctl() takes for closed. */
static bool is_good(u32 fd)
{
	long flags = host_syscall3(__NR_fcntl, fd, F_GETFL, 0);

	return fd_is_node(fd) || (flags >= 0 && !(flags & O_PATH));
}

/* The host can't see through a placeholder: both descriptors are open, but epfd is not an epoll. */
static long not_an_epoll(u32 epfd, u32 fd)
{
	return is_good(epfd) && is_good(fd) ? -EINVAL : -EBADF;
}

long do_epoll_ctl(struct gate_regs *r)
{
	u32 epfd = r->a[0], op = r->a[1], fd = r->a[2];
	u32 side;
	long ret;

	if (unlikely(reserved_fd(epfd) || reserved_fd(fd)))
		return -EBADF;
	if (!fd_is_node(epfd)) {
		ret = gate_host_regs(r);
		return ret == -EBADF ? not_an_epoll(epfd, fd) : ret;
	}
	if (fd_is_node(fd)) {
		if (fd != epfd && READ_ONCE(ep_at[fd]) && READ_ONCE(ep_at[epfd]))
			return ep_ctl_nested(r);
		side = EP_NODE;
		ret = image_pass(r);
	} else {
		side = EP_HOST;
		ret = host_syscall4(__NR_epoll_ctl, epfd, op, fd, r->a[3]);
		if (ret == -EBADF)
			ret = not_an_epoll(epfd, fd);
	}
	if (!ret && op != EPOLL_CTL_DEL)
		ret = ep_joined(epfd, side);
	return ret;
}

/* A thread that has counted itself in host_waiters has returned from the twin. */
void ep_host_wait_end(struct ep *ep, u32 epfd)
{
	if (__atomic_sub_fetch(&ep->host_waiters, 1, __ATOMIC_SEQ_CST) ||
	    !__atomic_load_n(&ep->kicked, __ATOMIC_SEQ_CST))
		return;
	gate_lock(&ep_lock);
	if (ep->kicked && !__atomic_load_n(&ep->host_waiters, __ATOMIC_SEQ_CST))
		kick_done(ep, epfd);
	gate_unlock(&ep_lock);
}
