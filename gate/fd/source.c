// SPDX-License-Identifier: GPL-2.0
/*
 * source.c - what splice() needs to move bytes of a source that others read from as well
 *
 * Theory of operation
 * -------------------
 * Linux holds the pipe's lock until the socket has taken its bytes. Between two kernels there is no such lock, so bytes
 * are looked at, passed on, and then consumed as far as the sink has accepted them. Nothing has to be put back, which
 * neither a pipe nor a socket allows.
 *
 * Between the look and the consumption no other splice() of the node may do the same. So each source has a lock:
 *
 *   between processes   a record lock of the host, on one byte of the region's file; the source's inode says which.
 *                       The host releases it when its process ends.
 *   between threads     a mutex, since record locks belong to processes. It also protects the gate's own pipe.
 *
 * Nothing waits while they are held. A thread that finds the byte locked by another process waits without the mutex, and
 * a signal ends that wait. The lock that the host then grants belongs to the whole process, so it is only a hint: the thread asks
 * again with the mutex.
 *
 * Without a lock remain:
 *
 *   read() and recv() by others, and programs of other nodes: they may take what was looked at, so that it comes twice,
 *   and what is consumed then is as many bytes behind it, which are lost.
 *   a process that is killed between the sink's acceptance and the consumption, some microseconds: what it has passed on
 *   comes twice. To consume first would lose bytes instead, and in more cases, since a socket may take a part only.
 *   a process that is stopped there: the others wait until it goes on, or until a signal ends their wait.
 *
 * The gate's own pipe is empty between calls. By way of it tee() and splice() look at a pipe, consume and write
 * without waiting, whatever the flags of the program's descriptor say.
 */
#include "internal.h"
#include "policy.h"
#include "ring3.h"
#include "tuning.h"

#define SPLICE_F_NONBLOCK	0x02	/* fcntl.h is libc's */
#define KEY_BITS		61	/* a record's offset is below 2^63 */

static struct {
	struct gate_mutex lock;
	bool made;		/* by this process, or by one that shares its memory */
} own_pipe;

/* A socket of the node and a pipe of the host may have the same inode number. */
u64 source_key(bool in_node, u64 ino)
{
	return (ino & ((1ull << KEY_BITS) - 1)) | (u64)in_node << KEY_BITS;
}

static struct flock record(short type, u64 key)
{
	return (struct flock){ .l_type = type, .l_start = key, .l_len = 1 };
}

static long record_wait(u64 key, u64 *nap)
{
	struct flock fl = record(F_WRLCK, key);
	long ret;

	if (unlikely(gate.nap)) {	/* virtual time: the owner may have lost the turn in a call of the node */
		gate.nap(nap);
		return 0;
	}
	ret = gate_host(__NR_fcntl, gate_fd(GATE_FD_REGION), F_SETLKW, (long)&fl, 0, 0, 0);
	/* The host takes all threads for one, and so sees circles where there are none. The owner may have no CPU. */
	if (ret == -EDEADLK) {
		struct timespec ts = { .tv_nsec = SOURCE_NAP_NS };

		ret = gate_host(__NR_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
		return ret == -EINTR ? -ERESTARTSYS : 0;
	}
	return ret == -EINTR ? -ERESTARTSYS : ret;
}

long source_lock(u64 key)
{
	struct flock fl;
	u64 nap = 0;
	long ret;

	for (;;) {
		fl = record(F_WRLCK, key);
		gate_lock(&own_pipe.lock);
		ret = host_syscall3(__NR_fcntl, gate_fd(GATE_FD_REGION), F_SETLK, (long)&fl);
		if (!ret)
			return 0;
		gate_unlock(&own_pipe.lock);
		if (ret != -EAGAIN && ret != -EACCES)
			return ret;
		ret = record_wait(key, &nap);
		if (ret)
			return ret;
	}
}

void source_unlock(u64 key)
{
	struct flock fl = record(F_UNLCK, key);

	host_syscall3(__NR_fcntl, gate_fd(GATE_FD_REGION), F_SETLK, (long)&fl);
	gate_unlock(&own_pipe.lock);
}

/* A thread of the program before an exec may have had a lock, which the process has kept. */
void source_inherited(void)
{
	struct flock all = { .l_type = F_UNLCK };

	host_syscall3(__NR_fcntl, gate_fd(GATE_FD_REGION), F_SETLK, (long)&all);
}

GATE_FORKED void source_forked(void)
{
	own_pipe.lock.word = 0;
	own_pipe.made = false;		/* the descriptors here are the parent's pipe */
}

static long own_pipe_make(void)
{
	struct rlimit64 lim;
	s32 fd[2];
	long ret;
	int i;

	if (own_pipe.made)
		return 0;
	ret = host_syscall2(__NR_pipe2, (long)fd, O_CLOEXEC | O_NONBLOCK);
	if (ret == -EMFILE) {	/* on Linux splice() needs no descriptor */
		lim = fds_raise(0);
		ret = host_syscall2(__NR_pipe2, (long)fd, O_CLOEXEC | O_NONBLOCK);
		fds_back(lim);
	}
	if (ret)
		return ret;
	for (i = 0; i < 2; i++) {
		ret = gate_fd_keep(fd[i], FD_PIPE_R + i);
		if (ret < 0)
			break;
	}
	own_pipe.made = i == 2;
	for (; i < 2; i++)
		host_syscall1(__NR_close, fd[i]);
	return own_pipe.made ? 0 : ret;
}

/*
 * A call has failed for lack of the gate's pipe, which is there now: a process that shares this memory, but not the
 * descriptors, has made another one, and placeholders are here.
 */
static bool own_pipe_was_missing(long ret)
{
	if (likely(ret != -EBADF) || !(host_syscall3(__NR_fcntl, gate_fd(FD_PIPE_W), F_GETFL, 0) & O_PATH))
		return false;
	own_pipe.made = false;
	return !own_pipe_make();
}

/* Reads the n bytes that are in the gate's pipe. */
static void own_pipe_drain(char *buf, s64 n)
{
	long got;

	for (; n > 0; buf += got, n -= got) {
		got = host_syscall3(__NR_read, gate_fd(FD_PIPE_R), (long)buf, n);
		if (got <= 0)
			return;
	}
}

/* Reads from a pipe without consuming. -EAGAIN: there is nothing. With the source's lock. */
long pipe_peek(u32 pipe, char *buf, u64 len)
{
	long got = own_pipe_make();

	if (got)
		return got;
	do
		got = host_syscall4(__NR_tee, pipe, gate_fd(FD_PIPE_W), len, SPLICE_F_NONBLOCK);
	while (own_pipe_was_missing(got));
	if (got > 0)
		own_pipe_drain(buf, got);
	return got;
}

/* Consumes n bytes that pipe_peek() has read to buf. With the same lock. */
void pipe_consume(u32 pipe, char *buf, s64 n)
{
	long got;

	for (; n > 0; n -= got) {
		got = host_syscall6(__NR_splice, pipe, 0, gate_fd(FD_PIPE_W), 0, n, SPLICE_F_NONBLOCK);
		if (got <= 0)	/* somebody has read them */
			return;
		own_pipe_drain(buf, got);
	}
}

/*
 * Writes as much to a pipe as it has room for; returns the bytes, or -EAGAIN. With a source's lock, for the gate's
 * pipe. What is in buf is lost.
 */
long pipe_offer(u32 pipe, char *buf, u64 len)
{
	u64 done = 0, n;
	long ret = own_pipe_make();

	/* Several times where the gate's pipe is small, since the user has too many pipes. */
	while (ret >= 0 && done < len) {
		do
			ret = host_syscall3(__NR_write, gate_fd(FD_PIPE_W), (long)buf + done, len - done);
		while (own_pipe_was_missing(ret));
		if (ret <= 0)
			break;
		n = ret;
		ret = host_syscall6(__NR_splice, gate_fd(FD_PIPE_R), 0, pipe, 0, n, SPLICE_F_NONBLOCK);
		if (ret > 0)
			done += ret;
		if (ret != (long)n) {
			own_pipe_drain(buf, ret > 0 ? n - ret : n);
			break;
		}
	}
	return done ? (long)done : ret;
}
