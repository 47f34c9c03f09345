/* SPDX-License-Identifier: GPL-2.0 */
/*
 * policy.h - decides which side serves a system call: the node or the host
 *
 * Theory of operation
 * -------------------
 * gate_syscall() looks a call up by number, in calls.tbl. A call on a descriptor goes to the owner of the
 * descriptor: the bit in thread->fdmap->node says that it is the node's. A call on a path goes to the node if the
 * path is the node's (path.c). A call that makes a descriptor (fd_create()) or moves one (fd.c) keeps two tables in
 * step:
 *
 * A node descriptor has the same number in both tables. In the host's table the number is occupied by a
 * placeholder: an O_PATH descriptor, on which read, write, poll and ioctl fail with EBADF, while dup, fork, exec,
 * close-on-exec and RLIMIT_NOFILE treat it like any other. So the host allocates all numbers, and the node uses the
 * number that it is given (RING3_NR_AT).
 *
 * The placeholder of an epoll descriptor is an epoll of the host, its "twin". The node's epoll holds the node's
 * descriptors, the twin holds the host's, and both hold the program's own epoll_data (epoll.c).
 *
 * The bit in fdmap decides. It is set as the last step when a descriptor is made, and cleared before the host's
 * number is released. So no thread can see a number that has no owner or the wrong one.
 *
 * Stack frames here are small (the program's stack may have a few KiB). Larger buffers come from the gate's
 * allocator.
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

/* Sizes of buffers on the stack. */
#define PATH_BUF	1024	/* longest path that can be the node's */
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

/* Descriptor numbers are int in the ABI: the upper half of the register is ignored. */
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

/* Descriptors of the policy: gate_fd() slots. */
enum policy_fd {
	FD_PLACEHOLDER = GATE_FD_POLICY,	/* O_PATH: duplicated for each number of the node */
	FD_FEED,		/* host epoll of the feeder; its number has a proxy in the node */
	FD_KICK,		/* eventfd, always readable */
	FD_PIPE_R,		/* a pipe of the gate, for splice */
	FD_PIPE_W,
	FD_SLOT,		/* to FD_SLOT + FEED_SLOTS - 1: numbers for proxies only */
};
#define FEED_SLOTS	(GATE_FD_FILTERS - FD_SLOT)

/*
 * helper.c: starts the process's hidden thread, with all signals blocked and a task that shares the program's
 * descriptors. 0 or -errno; fn must not return.
 */
long gate_helper(void (*fn)(void));
void helper_exit(void);		/* called by the helper */
void helper_gone(void);		/* called by the only other thread: waits for the helper's end */
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
bool fd_is_host_epoll(u32 fd);	/* is this number a twin on the host? */
/* numbers.c: gate_life numbers, inherit, exec */
u64 fd_numbers(void);
void fd_inherit(u64 before);
void fd_apart(void);		/* the process has unshared the descriptor table that it had shared */
void fd_exec(bool begins);
void fd_forked(void);

/* ns.c */
bool ns_refuses(u64 flags);	/* true for CLONE_NEW* flags that are refused, after a message with the reason */
long ns_unshare_files(void);	/* gate_life.unshare_files */

/* cred.c */
long cred_follow_user_ns(void);	/* the host has moved this process to another user namespace */

/* owner.c: on node descriptors only */
long owner_fcntl(struct gate_regs *r);
long owner_ioctl(struct gate_regs *r);

/* map.c */
extern struct gate_mutex map_lock;
void map_is_slow(void);		/* map.c */
u32 map_stamp(void);		/* gate_life.stamp */

/* sock.c */
long sock_nobody(const struct gate_regs *r);

/* abstract.c */
long abstract_accept(const struct gate_regs *r);
bool abstract_named(const struct host_msghdr *msg);
long abstract_sendmsg(s32 sock, struct host_msghdr *msg, u64 flags);
long abstract_recvmsg(const struct gate_regs *r);
void abstract_received(u64 user_msg, u32 room);

/* ticket.c: a ticket stands for a node descriptor in a message of the host */
struct ticket {
	struct ticket *next;	/* next of this process's open tickets */
	u64 key;		/* the node's name for the file */
	u64 fdmap;		/* the file table of fd */
	s32 fd;			/* of the host */
};

long ticket_make(u32 fd, struct ticket *t);
void ticket_end(struct ticket *t, bool sent);
long ticket_take(s32 fd, u32 flags);	/* RING3_UNPARK_*; 0: done, or not a ticket */
extern struct gate_mutex ticket_lock;	/* protects the list of open tickets */
void ticket_forked(void);

/* mixed.c */
#define OURS_NODE	1u
#define OURS_HOST	2u

u32 mixed_owner(s32 fd);
/* tmp has room for n + 1 entries. may: NULL, or for each entry the events that count. */
long mixed_wait(struct pollfd *fds, struct pollfd *tmp, u32 n, const u16 *may, u64 deadline);
long mixed_mask_begin(u64 user, u64 size, bool *masked);
void mixed_mask_end(bool masked, long ret);

/*
 * deadline.c: deadlines. A deadline is a time in ns of the node's monotonic clock, so that it follows the node's
 * time; WAIT_FOREVER is ~0.
 */
#define WAIT_FOREVER	(~0ull)

u64 wait_now(void);
u64 wait_until_ns(u64 ns);
u64 wait_blind(u64 deadline);	/* time of the next look at something that raises no event */
u64 wait_left(u64 deadline);
long wait_from_timespec(u64 user, u64 *deadline);
long wait_from_timeval(u64 user, u64 *deadline);
/* The time that is left, as an argument: NULL for WAIT_FOREVER, else ts. */
struct __kernel_timespec *wait_arg(u64 deadline, struct __kernel_timespec *ts);
void wait_give_back(u64 user, u64 deadline);		/* into a timespec */
void wait_give_back_timeval(u64 user, u64 deadline);

/* epoll.c */
enum ep_side {
	EP_HOST = 1,		/* has, or may have, members of the host */
	EP_NODE = 2,		/* has, or may have, members of the node */
	EP_MIXED = 4,		/* set up for waiting on both sides */
};

bool ep_of_node(u32 fd);		/* an epoll with members, all of the node */
bool ep_known(u32 fd);		/* an epoll of whose members the gate knows */
bool ep_is_borrowed(u32 fd);	/* an epoll of whose members the gate can't know */
void ep_apart(void);		/* the process has a descriptor table of its own from now on */
void ep_shared(void);		/* another process is about to share our descriptor table */
long ep_arm(u32 fd);		/* asks the feeder to report the twin's next event */
long ep_polled(u32 fd);		/* fd itself is, or will be, in a set that is waited for */
void ep_fired(u32 index);	/* feeder: the twin of this epoll has become readable */
void ep_dup(u32 from, u32 to);
bool ep_is(u32 fd);		/* is this node descriptor an epoll? */
long ep_share(u32 fd);		/* another process gets it, and may add members */
long kick_fd(void);		/* a descriptor that is always readable */
void ep_close(u32 fd);
void ep_learn(u32 fd);		/* this node descriptor comes from another process or program */
void ep_inherited(void);	/* over exec */
extern struct gate_mutex ep_lock;	/* also used by epoll_nested.c */
void ep_forked(void);

/* feed.c: passes readiness of the host's descriptors to the node */
long feed_start(void);		/* 0: the feeder runs; its number is feed_fd() */
bool feed_made(void);		/* there is a proxy at that number, whether the feeder runs or not */
u32 feed_fd(void);
bool feed_mine(void);		/* false in a child that uses its parent's memory (vfork) */
bool feed_others(void);		/* true in a child that uses its parent's descriptor table, too (CLONE_VM | CLONE_FILES) */
long feed_expect(u32 fd, u32 events);
void feed_close(u32 fd);
bool feed_pause(void);		/* ends the feeder if the program has only one thread; true: call feed_resume() */
void feed_resume(void);
long feed_arm_twin(u32 fd, u32 index);
s32 feed_slot_get(void);	/* a number whose proxy becomes ready at any twin's event, or -1 */
void feed_slot_clear(s32 slot);
void feed_slot_put(s32 slot);
void feed_none(void);		/* at start: there is no feeder yet */
extern struct gate_mutex feed_lock;

/* signalfd.c */
bool is_signalfd(u32 fd);

/* path.c */
enum path_owner {
	PATH_HOST,
	PATH_NODE,		/* the buffer gets the canonical path */
	PATH_NODE_RELATIVE,	/* relative to a directory descriptor of the node */
};

enum path_owner path_owner(s32 dirfd, u64 user_path, char *buf);
bool path_is_near(s32 dirfd, u64 user_path);	/* the path may lead to /proc or /sys, by its components */

/* machine.c: the result of an open for which the host returned fd */
long machine_opened(s32 dirfd, u64 user_path, u64 flags, long fd);
void path_cwd_changed(void);

/* trace.c */
extern struct gate_mutex trace_lock;

/* proc_fd.c */
bool proc_fd_is_node(s32 pid, s32 fd);	/* a descriptor of another process */

/* proc_exe.c */
long proc_exe_link(s32 dirfd, u64 user_path, u64 user, u64 size, long ret);
long proc_exe_give(u64 user, u64 size, const char *exe);	/* result as of readlink() */
bool proc_exe_call(const struct gate_regs *r, u64 user_path, long *ret);	/* true: the call was made, and *ret is its result */
const char *proc_exe(s32 dirfd, const char *path, char exe[PROC_EXE_BYTES]);	/* gate_life.exe */

/* path_call.c */

/* sim_call.c: calls in virtual time */
long sim_syscall(struct gate_regs *r, gate_handler handler);	/* handler 0: the host's call */

/* sim_futex.c */
void sim_futex_ends(bool all);

/* sim_ids.c */
void sim_ids_of_file(const struct gate_regs *r, u64 user);
bool sim_ids_capable(u32 cap);

/* sim_file.c: times of files */
bool sim_file_opens(const struct gate_regs *r);
void sim_file_changed(const struct gate_regs *r, long ret, bool opens);

/* sim_wait.c */
enum sim_kind {			/* of a descriptor of the host */
	SIM_FILE,		/* never waits, but for locks */
	SIM_INSIDE,		/* only programs of the simulation change it */
	SIM_OUTSIDE,
};
enum sim_kind sim_kind_of(s32 fd);
bool sim_interrupted(void);
bool sim_changes(const struct gate_regs *r);
bool sim_would_wait(s32 fd, u16 events);
u64 sim_deadline_of(s32 fd, bool sends);
long sim_by_host(struct gate_regs *r, gate_handler handler, u16 events);
long sim_wait_host(s32 fd, u16 events);

/* source.c: a pipe or socket whose bytes splice() moves, as others may at the same time */
u64 source_key(bool in_node, u64 ino);
long source_lock(u64 key);	/* waits for other processes of the node; an error if a signal comes */
void source_unlock(u64 key);
long pipe_peek(u32 pipe, char *buf, u64 len);
void pipe_consume(u32 pipe, char *buf, s64 n);
long pipe_offer(u32 pipe, char *buf, u64 len);
void source_forked(void);
void source_inherited(void);	/* after exec */

#endif /* RING3_GATE_POLICY_H */
