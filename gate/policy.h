/* SPDX-License-Identifier: GPL-2.0 */
/*
 * policy.h - who serves a system call: the node or the host
 *
 * Theory of operation
 * -------------------
 * gate_syscall() looks a call up by number, in calls.tbl. Calls that take a descriptor go to
 * its owner: the bit in thread->fdmap->node says "the node's". Calls that take
 * a path go to the node when the path is the network's (path.c). Calls that
 * make a descriptor (create) or move one (fd.c) keep two tables in step:
 *
 *   A node descriptor has the same number in both tables. In the host's table
 *   the number is held by a placeholder: an O_PATH descriptor, on which reading,
 *   writing, polling and ioctl all fail with EBADF, while dup, fork, exec,
 *   close-on-exec and RLIMIT_NOFILE treat it like any other. The host thus
 *   hands out all numbers; the node takes the number it is given (RING3_NR_AT).
 *
 *   The placeholder of an epoll descriptor is no dummy: it is a host epoll, its
 *   "twin". The node's epoll holds the node's descriptors, the twin holds the
 *   host's, and both hold the program's own epoll_data (epoll.c).
 *
 * The bit in fdmap is the switch. It is set last when a descriptor is made and
 * cleared before the host's number is given back, so that no thread can see
 * a number that belongs to neither side or to a stranger.
 *
 * Frames here stay small (the program's stack may be a few KiB); what is larger
 * comes from the gate's allocator.
 *
 * Lock order: ep_lock, then feed_lock. Neither is held while a call can sleep.
 */
#ifndef RING3_GATE_POLICY_H
#define RING3_GATE_POLICY_H

#include "gate.h"

#include <asm/ioctls.h>
#include <asm/poll.h>
#include <linux/close_range.h>
#include <linux/eventpoll.h>
#include <linux/time_types.h>
#ifndef __NR_fchmodat2
#define __NR_fchmodat2	452
#endif

/* Lengths of what we put on the stack. */
#define PATH_BUF	1024	/* longest path that can be the network's */
#define POLL_STACK	96	/* pollfd entries */

struct gate_sigset_arg {	/* 6th argument of pselect6 */
	u64 set;
	u64 size;
};

/* fd.c: owners */

static inline bool map_test(const u64 *map, u32 fd)
{
	return (__atomic_load_n(&map[fd / 64], __ATOMIC_ACQUIRE) >> (fd % 64)) & 1;
}

static inline void map_set(u64 *map, u32 fd)
{
	__atomic_fetch_or(&map[fd / 64], 1ull << (fd % 64), __ATOMIC_SEQ_CST);
}

static inline void map_clear(u64 *map, u32 fd)
{
	__atomic_fetch_and(&map[fd / 64], ~(1ull << (fd % 64)), __ATOMIC_SEQ_CST);
}

/* Numbers are int in the ABI: the upper half of the register is noise. */
static inline bool fd_is_node(u64 arg)
{
	return gate_fd_is_node((u32)arg);
}

static inline bool fd_has_proxy(u64 arg)
{
	u32 fd = (u32)arg;

	return fd < RING3_FDS_MAX && map_test(gate_fdmap()->proxy, fd);
}

static inline long image_pass(const struct gate_regs *r)
{
	return image_call(r->nr, r->a[0], r->a[1], r->a[2], r->a[3], r->a[4], r->a[5]);
}

#define image_call4(nr, a, b, c, d)	\
	image_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define image_call5(nr, a, b, c, d, e)	\
	image_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

/* Descriptors that the policy keeps for itself: gate_fd() slots. */
enum policy_fd {
	FD_PLACEHOLDER = GATE_FD_POLICY,	/* O_PATH: what node numbers hold on the host */
	FD_FEED,		/* host epoll of the feeder; its number has a proxy */
	FD_KICK,		/* eventfd, always readable */
	FD_PIPE_R,		/* a pipe of our own, for splice */
	FD_PIPE_W,
	FD_SLOT,		/* to FD_SLOT + FEED_SLOTS - 1: numbers of proxies only */
};
#define FEED_SLOTS	(GATE_FD_FILTERS - FD_SLOT)

/*
 * helper.c: starts the process's hidden thread, with all signals blocked and a task
 * that shares the program's descriptors. 0 or -errno; fn must not return.
 */
long gate_helper(void (*fn)(void));
void helper_exit(void);		/* by the helper */
void helper_gone(void);		/* by the only other thread: waits for that */
void helper_forked(void);
u32 helper_others(void);	/* gate_life.others */

static inline void *user_ptr(u64 p)
{
	return (void *)p;
}

/* fd.c */
#define PLACEHOLDER_NAME	"ring3:node"
long fd_create(bool cloexec, u64 nr, u64 a0, u64 a1, u64 a2, u64 a3);
long fd_adopt(long host_fd, u64 nr, u64 a0, u64 a1, u64 a2, u64 a3);
long fd_placeholder(bool cloexec);
long fd_create_pipe(u32 flags, u64 user);	/* pipe2(), into the program's array */
void fd_drop(u32 fd);		/* closes it on both sides */
void fd_start(void);		/* once, when the process joins */
bool fd_is_host_epoll(u32 fd);	/* what holds this number on the host is an epoll */
/* numbers.c: gate_life numbers, inherit, exec */
u64 fd_numbers(void);
void fd_inherit(u64 before);
void fd_apart(void);		/* our table was another process's, too, until now */
void fd_exec(bool begins);
void fd_forked(void);

/* ns.c */
bool ns_refuses(u64 flags);	/* CLONE_NEW*: has said why */
long ns_unshare_files(void);	/* gate_life.unshare_files */

/* cred.c */
long cred_follow_user_ns(void);	/* the host has moved this process to another */

/* owner.c: on node descriptors only */
long owner_fcntl(struct gate_regs *r);
long owner_ioctl(struct gate_regs *r);

/* map.c */
extern struct gate_mutex map_lock;
u32 map_stamp(void);		/* gate_life.stamp */

/* sock.c */

/* abstract.c */
long abstract_accept(const struct gate_regs *r);
bool abstract_named(const struct host_msghdr *msg);
long abstract_sendmsg(s32 sock, struct host_msghdr *msg, u64 flags);
long abstract_recvmsg(const struct gate_regs *r);
void abstract_received(u64 user_msg, u32 room);

/* ticket.c: what stands for a node descriptor in a message of the host */
struct ticket {
	struct ticket *next;	/* of those that this process has open */
	u64 key;		/* what the node knows it by */
	u64 fdmap;		/* file table that fd belongs to */
	s32 fd;			/* the host's */
};

long ticket_make(u32 fd, struct ticket *t);
void ticket_end(struct ticket *t, bool sent);
long ticket_take(s32 fd, u32 flags);	/* RING3_UNPARK_*; 0: done, or no ticket at all */
extern struct gate_mutex ticket_lock;	/* of those that are open */
void ticket_forked(void);

/* mixed.c */
#define OURS_NODE	1u
#define OURS_HOST	2u

u32 mixed_owner(s32 fd);
/* tmp has room for n + 1 entries; may is NULL or the bits that count, for each entry. */
long mixed_wait(struct pollfd *fds, struct pollfd *tmp, u32 n, const u16 *may, u64 deadline);
long mixed_mask_begin(u64 user, u64 size, bool *masked);
void mixed_mask_end(bool masked, long ret);

/*
 * deadline.c: deadlines. A wait is a number of ns on the node's monotonic clock,
 * so that it follows the node's time; forever is ~0.
 */
#define WAIT_FOREVER	(~0ull)

u64 wait_now(void);
u64 wait_until_ns(u64 ns);
u64 wait_blind(u64 deadline);	/* when to look again at what tells of nothing by itself */
u64 wait_left(u64 deadline);
long wait_from_timespec(u64 user, u64 *deadline);
long wait_from_timeval(u64 user, u64 *deadline);
/* What is left, as an argument: NULL for ever, else ts. */
struct __kernel_timespec *wait_arg(u64 deadline, struct __kernel_timespec *ts);
void wait_give_back(u64 user, u64 deadline);		/* into a timespec */
void wait_give_back_timeval(u64 user, u64 deadline);

/* epoll.c */
enum ep_side {
	EP_HOST = 1,		/* has, or may have, members of the host */
	EP_NODE = 2,		/* ... of the node */
	EP_MIXED = 4,		/* set up for waiting on both */
};

bool ep_of_node(u32 fd);		/* an epoll all of whose members are the node's */
bool ep_known(u32 fd);		/* an epoll, and one whose members we know of */
bool ep_is_borrowed(u32 fd);	/* an epoll, and one of which we can't know anything */
void ep_apart(void);		/* our table is our own from now on */
void ep_shared(void);		/* another process is about to have ours */
long ep_arm(u32 fd);		/* have the feeder tell of the twin's next event */
long ep_polled(u32 fd);		/* fd itself is, or is about to be, in a set that is waited for */
void ep_fired(u32 index);	/* feeder: the twin of this epoll became readable */
void ep_dup(u32 from, u32 to);
bool ep_is(u32 fd);		/* this descriptor of the node is an epoll */
long ep_share(u32 fd);		/* another process gets it, and may add what it likes */
long kick_fd(void);		/* an always readable descriptor */
void ep_close(u32 fd);
void ep_learn(u32 fd);		/* this descriptor of the node has come from elsewhere */
void ep_inherited(void);	/* over exec */
extern struct gate_mutex ep_lock;	/* ... of epoll_nested.c, too */
void ep_forked(void);

/* feed.c: readiness of the host's descriptors, carried into the node */
long feed_start(void);		/* 0: runs; the feeder's number is feed_fd() */
bool feed_made(void);		/* there is a proxy at that number, whether it runs or not */
u32 feed_fd(void);
bool feed_mine(void);		/* false in a child that borrows our memory (vfork) */
bool feed_others(void);		/* true in one that has our table, too (CLONE_VM | CLONE_FILES) */
long feed_expect(u32 fd, u32 events);
void feed_close(u32 fd);
bool feed_pause(void);		/* have one thread, if that is all the program has; true: feed_resume() */
void feed_resume(void);
long feed_arm_twin(u32 fd, u32 index);
s32 feed_slot_get(void);	/* a number whose proxy any twin's event makes ready, or -1 */
void feed_slot_clear(s32 slot);
void feed_slot_put(s32 slot);
void feed_none(void);		/* at start: there is no feeder yet */
extern struct gate_mutex feed_lock;

/* signalfd.c */
bool is_signalfd(u32 fd);

/* path.c */
enum path_owner {
	PATH_HOST,
	PATH_NODE,		/* the canonical path is in the buffer */
	PATH_NODE_RELATIVE,	/* relative to a descriptor of the node */
};

enum path_owner path_owner(s32 dirfd, u64 user_path, char *buf);
bool path_is_near(s32 dirfd, u64 user_path);	/* may lead to /proc or /sys, as far as names tell */

/* machine.c: what an open has to return that the host answered with fd */
long machine_opened(s32 dirfd, u64 user_path, u64 flags, long fd);
void path_cwd_changed(void);

/* trace.c */
extern struct gate_mutex trace_lock;

/* proc_fd.c */
bool proc_fd_is_node(s32 pid, s32 fd);	/* of another process */

/* proc_exe.c */
long proc_exe_link(s32 dirfd, u64 user_path, u64 user, u64 size, long ret);
long proc_exe_give(u64 user, u64 size, const char *exe);	/* as readlink() */
bool proc_exe_call(const struct gate_regs *r, u64 user_path, long *ret);	/* true: *ret is what it has returned */
const char *proc_exe(s32 dirfd, const char *path, char exe[PROC_EXE_BYTES]);	/* gate_life.exe */

/* path_call.c */

/* sim_call.c: calls in virtual time */
long sim_syscall(struct gate_regs *r, gate_handler handler);	/* handler 0: the host's */

/* sim_futex.c */
void sim_futex_ends(bool all);

/* sim_file.c: times of files */
bool sim_file_opens(const struct gate_regs *r);
void sim_file_changed(const struct gate_regs *r, long ret, bool opens);

/* sim_wait.c */
bool sim_changes(const struct gate_regs *r);
long sim_by_host(struct gate_regs *r, gate_handler handler, u16 events);

/* xfer.c */
void xfer_forked(void);

#endif /* RING3_GATE_POLICY_H */
