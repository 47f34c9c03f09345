// SPDX-License-Identifier: GPL-2.0
/*
 * xfer.c - sendfile and splice between a file of the host and one of the node
 *
 * The two kernels share no pages, so data passes through a buffer of the gate. Bytes are consumed from the source
 * only after the sink has accepted them: a file's offset is advanced afterwards, a socket is peeked at, and a pipe
 * is copied by tee() before it is read. Threads of this process that splice from one pipe or socket at once take
 * turns, so that none gets what another is about to consume. Others that read from it meanwhile do not.
 */
#include "policy.h"

#include "ring3.h"
#include "tuning.h"
#include <asm/socket.h>
#include <asm/sockios.h>
#include <linux/stat.h>

#define BOUNCE		RING3_SENDFILE_MAX
#define MAX_COUNT	0x7ffff000ull		/* MAX_RW_COUNT: most one call moves */
#define PIPE_SLOT	4096u			/* a pipe that polls writable has room for so much */

/* linux/socket.h and fcntl.h keep these for the kernel and libc */
#define SPLICE_F_NONBLOCK	0x02
#define SPLICE_F_MORE		0x04
#define SPLICE_F_ALL		0x0f

/* Writes to a node descriptor: send() for sockets, which can say MSG_MORE, write() for others. */
static long node_put(u32 fd, const void *buf, u64 len, u32 msg)
{
	long ret = image_call(__NR_sendto, fd, (long)buf, len, msg, 0, 0);

	return ret == -ENOTSOCK ? image_call3(__NR_write, fd, buf, len) : ret;
}

static bool interrupted(long ret)
{
	return ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
}

/* The position to read from: the descriptor's own, or the program's variable. */
static long get_offset(bool in_node, u32 in, u64 user, s64 *pos)
{
	if (user)
		return gate_copy_in(pos, user_ptr(user), sizeof(*pos));
	if (in_node)
		*pos = image_call3(__NR_lseek, in, 0, 1 /* SEEK_CUR */);
	else
		*pos = host_syscall3(__NR_lseek, in, 0, 1);
	if (*pos == -ESPIPE)
		return -EINVAL;
	return *pos < 0 ? *pos : 0;
}

static long put_offset(bool in_node, u32 in, u64 user, s64 pos)
{
	if (user)
		return gate_copy_out(user_ptr(user), &pos, sizeof(pos));
	if (in_node)
		image_call3(__NR_lseek, in, pos, 0 /* SEEK_SET */);
	else
		host_syscall3(__NR_lseek, in, pos, 0);
	return 0;
}

/*
 * A sender holds back data that is marked as followed by more (tcp_push(), UDP_CORK). Linux cancels that if it
 * reaches the end of the file before all is sent (->splice_eof). So the gate does not mark the last bytes before
 * the end.
 */
static bool has_more(u32 in, s64 pos)
{
	char byte;

	return host_syscall4(__NR_pread64, in, (long)&byte, 1, pos) > 0;
}

/*
 * Sends the next bytes of a host file, at most n, to a node descriptor. *got: bytes read; returns the bytes sent.
 * *direct: the host reads them into the socket's own pages, if that is possible.
 */
static long send_some(u32 out, u32 in, char *buf, s64 pos, u64 n, bool last, s64 *got, bool *direct)
{
	long ret;
	bool more;

	if (*direct && n >= XFER_DIRECT_MIN) {
		more = !last && has_more(in, pos + n);
		ret = image_call(RING3_NR_SENDFILE, out, in, pos, n, more ? MSG_MORE : 0, (long)got);
		*direct = ret != -EOPNOTSUPP && *got == (s64)n;
		if (ret != -EOPNOTSUPP)
			return ret;
	}
	*got = host_syscall4(__NR_pread64, in, (long)buf, n, pos);
	if (*got <= 0)
		return *got;
	more = !last && (u64)*got == n && has_more(in, pos + *got);
	return node_put(out, buf, *got, more ? MSG_MORE : 0);
}

/* From a host file into a node descriptor. */
static long send_host_file(u32 out, u32 in, char *buf, s64 *pos, u64 count)
{
	bool direct = true;
	long total = 0, put = 0;
	s64 got = 0;
	u64 n;

	while ((u64)total < count) {
		n = count - total < BOUNCE ? count - total : BOUNCE;
		put = send_some(out, in, buf, *pos, n, (u64)total + n == count, &got, &direct);
		if (put <= 0)
			break;
		total += put;
		*pos += put;
		if (put < got)
			break;
	}
	return total ? total : put;
}

static long on_host(struct gate_regs *r)
{
	return gate_host(r->nr, r->a[0], r->a[1], r->a[2], 0, 0, 0);
}

/* Waits if the descriptor does; in virtual time in the node. */
static long host_write(u32 fd, const void *buf, u64 len)
{
	struct gate_regs call = { .nr = __NR_write, .a = { fd, (u64)buf, len } };

	return sim_on() ? sim_by_host(&call, on_host, POLLOUT) : on_host(&call);
}

/* From a node file (/proc/net/...) into a host descriptor. */
static long send_node_file(u32 out, u32 in, char *buf, s64 *pos, u64 count)
{
	long total = 0, got, put = 0;
	u64 n;

	while ((u64)total < count) {
		n = count - total < BOUNCE ? count - total : BOUNCE;
		got = image_call4(__NR_pread64, in, buf, n, *pos);
		if (got <= 0)
			return total ? total : got;
		put = host_write(out, buf, got);
		if (put < 0)
			break;
		total += put;
		*pos += put;
		if (put < got)
			break;
	}
	return total ? total : put;
}

static u32 node_type(u32 fd)
{
	struct stat st;

	return image_call2(__NR_fstat, fd, &st) ? 0 : st.st_mode & S_IFMT;
}

static u32 host_type(u32 fd)
{
	struct stat st;

	return host_syscall2(__NR_fstat, fd, (long)&st) ? 0 : st.st_mode & S_IFMT;
}

/*
 * The buffer between host and node. One is kept: mapping it, faulting its pages in and unmapping it costs more than
 * sending a small file. Of threads that transfer at the same time, all but one allocate their own.
 */
static char *spare_bounce;

static char *bounce_get(void)
{
	char *buf = __atomic_exchange_n(&spare_bounce, NULL, __ATOMIC_ACQUIRE);

	return buf ? buf : gate_alloc(BOUNCE);
}

static void bounce_put(char *buf)
{
	char *none = NULL;

	if (!__atomic_compare_exchange_n(&spare_bounce, &none, buf, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		gate_free(buf);
}

static bool host_nonblock(u32 fd)
{
	return host_syscall3(__NR_fcntl, fd, F_GETFL, 0) & O_NONBLOCK;
}

static bool host_appends(u32 fd)
{
	return host_syscall3(__NR_fcntl, fd, F_GETFL, 0) & O_APPEND;
}

/* 0 or -EBADF: may this descriptor of the host be read or written, as `mode` (O_RDONLY, O_WRONLY) says? */
static long host_allows(u32 fd, u32 mode)
{
	long flags = host_syscall3(__NR_fcntl, fd, F_GETFL, 0);
	u32 has = flags & O_ACCMODE;

	return flags < 0 || (flags & O_PATH) || (has != mode && has != O_RDWR) ? -EBADF : 0;
}

/* Waits; returns which of these events the descriptor has, and POLLERR and POLLHUP. */
static long host_wait(u32 fd, u32 events, bool nonblock)
{
	struct pollfd p = { .fd = fd, .events = events };
	long ret = host_syscall3(__NR_poll, (long)&p, 1, 0);

	if (!ret && nonblock)
		return -EAGAIN;
	if (!ret && sim_on())
		return sim_wait_host(fd, events);
	if (!ret)
		ret = gate_host(__NR_poll, (long)&p, 1, -1, 0, 0, 0);
	return ret < 0 ? ret : p.revents;
}

/* A pipe without readers: as on Linux. */
static long broken_pipe(void)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGPIPE;
	info.si_code = SI_USER;
	info.si_pid = host_syscall0(__NR_getpid);
	info.si_uid = host_syscall0(__NR_getuid);
	host_syscall4(__NR_rt_tgsigqueueinfo, info.si_pid, host_syscall0(__NR_gettid), SIGPIPE, (long)&info);
	return -EPIPE;
}

/* The socket's own limit of time for waiting, SO_RCVTIMEO_OLD or SO_SNDTIMEO_OLD; returns whether there is one. */
static bool node_limit(u32 fd, u32 option, struct timespec *ts)
{
	struct { s64 sec, usec; } limit = { 0 };
	s32 size = sizeof(limit);

	image_call5(__NR_getsockopt, fd, SOL_SOCKET, option, &limit, &size);
	*ts = (struct timespec){ .tv_sec = limit.sec, .tv_nsec = limit.usec * 1000 };
	return limit.sec || limit.usec;
}

/* Waits as a call that would block does. 0: one of these events has come. */
static long node_wait(u32 fd, u32 events, u32 option)
{
	struct pollfd p = { .fd = fd, .events = events };
	struct timespec ts;
	bool limited;
	long ret;

	if (image_call2(__NR_fcntl, fd, F_GETFL) & O_NONBLOCK)
		return -EAGAIN;
	limited = node_limit(fd, option, &ts);
	ret = image_call5(__NR_ppoll, &p, 1, limited ? &ts : NULL, NULL, 0);
	if (!ret)
		return -EAGAIN;
	if (ret < 0)
		return ret != -ERESTARTNOHAND ? ret : limited ? -EINTR : -ERESTARTSYS;
	return 0;
}

/*
 * Reads from a socket of the node, without consuming or waiting. Linux's splice stops before an urgent byte, and
 * returns 0 if that is the next byte, even if it arrives during the wait; recvfrom() would skip it and wait on.
 */
static long socket_peek(u32 in, char *buf, u64 len)
{
	s32 mark;

	if (!image_call3(__NR_ioctl, in, SIOCATMARK, &mark) && mark)	/* TCP */
		return 0;
	return image_call(__NR_recvfrom, in, (long)buf, len, MSG_PEEK | MSG_DONTWAIT, 0, 0);
}

/* Waits, if the socket does, until there is something: data, an urgent byte or the end. */
static long socket_wait(u32 in, char *buf)
{
	s32 mark;

	if (!image_call3(__NR_ioctl, in, SIOCATMARK, &mark))
		return node_wait(in, POLLIN | POLLPRI, SO_RCVTIMEO_OLD);
	return image_call(__NR_recvfrom, in, (long)buf, 1, MSG_PEEK, 0, 0);
}

/* Held from the look at a socket until what was seen is consumed. */
static struct gate_mutex peek_lock;

/*
 * Moves what is there, and no more than the pipe accepts without waiting, so that nothing has to be put back.
 * -EAGAIN: the pipe has no *room, or the socket has nothing.
 */
static long splice_in_now(u32 in, u32 pipe, char *buf, u64 len, u64 *room)
{
	struct pollfd p = { .fd = pipe, .events = POLLOUT };
	s32 used = 0;
	long got;

	*room = 0;
	host_syscall3(__NR_poll, (long)&p, 1, 0);
	if (!p.revents)
		return -EAGAIN;
	if (p.revents & POLLERR)
		return broken_pipe();
	host_syscall3(__NR_ioctl, pipe, FIONREAD, (long)&used);
	*room = used ? PIPE_SLOT : host_syscall2(__NR_fcntl, pipe, F_GETPIPE_SZ);
	if (*room > BOUNCE)
		*room = BOUNCE;
	got = socket_peek(in, buf, len < *room ? len : *room);
	if (got <= 0)
		return got;
	got = host_write(pipe, buf, got);
	if (got > 0)
		image_call(__NR_recvfrom, in, (long)buf, got, MSG_TRUNC | MSG_DONTWAIT, 0, 0);
	return got;
}

/* From a node file that is no socket. */
static long splice_file_in(u32 in, u32 pipe, char *buf, u64 len)
{
	long got = image_call3(__NR_read, in, buf, len);

	return got <= 0 ? got : host_write(pipe, buf, got);
}

/* From a node socket or file into a pipe of the host. */
static long splice_in(u32 in, u32 pipe, char *buf, u64 len, bool nonblock)
{
	u64 room;
	long ret;

	for (;;) {
		gate_lock(&peek_lock);
		ret = splice_in_now(in, pipe, buf, len, &room);
		gate_unlock(&peek_lock);
		if (ret == -ENOTSOCK)
			return splice_file_in(in, pipe, buf, len < room ? len : room);
		if (ret != -EAGAIN)
			return ret;
		/* SPLICE_F_NONBLOCK is about the pipe; the socket's own flag decides for the socket. */
		ret = room ? socket_wait(in, buf) : host_wait(pipe, POLLOUT, nonblock || host_nonblock(pipe));
		if (ret < 0)
			return ret;
	}
}

long do_sendfile(struct gate_regs *r)
{
	u32 out = r->a[0], in = r->a[1];
	u64 user = r->a[2], count = r->a[3];
	bool in_node = fd_is_node(in), out_node = fd_is_node(out);
	s64 pos = 0, start;
	bool socket;
	char *buf;
	long ret;

	if (!in_node && !out_node)
		return gate_host_regs(r);
	if (in_node && out_node)
		return image_pass(r);
	socket = in_node && node_type(in) == S_IFSOCK;
	if (socket)
		ret = !user ? 0 : gate_copy_in(&pos, user_ptr(user), sizeof(pos)) ? : -ESPIPE;
	else
		ret = get_offset(in_node, in, user, &pos);
	if (ret)
		return ret;
	if (!socket && pos < 0)
		return -EINVAL;
	if (in_node) {
		ret = host_allows(out, O_WRONLY);
		if (ret)
			return ret;
		/*
		 * If the source has no position, Linux splices only into pipes, and never to a file opened for
		 * appending.
		 */
		if ((socket || host_appends(out)) && host_type(out) != S_IFIFO)
			return -EINVAL;
	}
	if (socket && !count)
		return 0;
	start = pos;
	buf = bounce_get();
	if (!buf)
		return -ENOMEM;
	if (count > MAX_COUNT)
		count = MAX_COUNT;
	if (socket)
		ret = splice_in(in, out, buf, count, false);
	else if (in_node)
		ret = send_node_file(out, in, buf, &pos, count);
	else
		ret = send_host_file(out, in, buf, &pos, count);
	bounce_put(buf);
	/* Linux can't splice from a file that pread() can't read. */
	if (!in_node && (ret == -EISDIR || (ret == -ESPIPE && !user)))
		ret = -EINVAL;
	if (pos != start && put_offset(in_node, in, user, pos))
		return -EFAULT;
	return ret;
}

/*
 * A pipe of the gate's, empty between calls and protected by `lock', which is also held until what was copied into it
 * is consumed. Nothing waits meanwhile. No other process has this pipe.
 */
static struct {
	struct gate_mutex lock;
	bool made;
} own_pipe;

static long own_pipe_make(void)
{
	s32 fd[2];
	long ret;

	if (own_pipe.made)
		return 0;
	ret = host_syscall2(__NR_pipe2, (long)fd, O_CLOEXEC | O_NONBLOCK);
	if (ret)
		return ret;
	ret = gate_fd_keep(fd[0], FD_PIPE_R);
	if (ret >= 0)
		ret = gate_fd_keep(fd[1], FD_PIPE_W);
	if (ret < 0)
		return ret;
	own_pipe.made = true;
	return 0;
}

void xfer_forked(void)
{
	peek_lock.word = 0;
	own_pipe.lock.word = 0;
	own_pipe.made = false;
}

/* Reads from a pipe without consuming. Called with own_pipe.lock. */
static long pipe_peek(u32 pipe, char *buf, u64 len)
{
	long got;

	got = own_pipe_make();
	if (!got)
		got = host_syscall4(__NR_tee, pipe, gate_fd(FD_PIPE_W), len, SPLICE_F_NONBLOCK);
	if (got > 0)
		got = host_syscall3(__NR_read, gate_fd(FD_PIPE_R), (long)buf, got);
	return got;
}

static long splice_out(u32 pipe, u32 out, char *buf, u64 len, bool nonblock, u32 msg)
{
	long events, got, put;

	for (;;) {
		events = host_wait(pipe, POLLIN, nonblock || host_nonblock(pipe));
		if (events < 0)
			return events;
		put = 0;
		gate_lock(&own_pipe.lock);
		got = pipe_peek(pipe, buf, len < BOUNCE ? len : BOUNCE);
		if (got > 0)
			put = node_put(out, buf, got, msg | MSG_DONTWAIT);
		if (put > 0)
			host_syscall3(__NR_read, pipe, (long)buf, put);
		gate_unlock(&own_pipe.lock);
		if (got == -EAGAIN) {
			/* Another thread has taken what there was; or there is nothing, and the writers have hung up. */
			if (events & POLLIN)
				continue;
			return 0;
		}
		if (got <= 0)
			return got;
		if (put != -EAGAIN)
			return put;
		put = node_wait(out, POLLOUT, SO_SNDTIMEO_OLD);
		if (put)
			return put;
	}
}

long do_splice(struct gate_regs *r)
{
	u32 in = r->a[0], out = r->a[2], flags = r->a[5];
	bool in_node = fd_is_node(in), out_node = fd_is_node(out);
	bool nonblock = flags & SPLICE_F_NONBLOCK;
	long total = 0, ret = 0;
	u64 len = r->a[4];
	bool pipe;
	char *buf;

	if (!in_node && !out_node)
		return gate_host_regs(r);
	if (in_node && out_node)
		return image_pass(r);
	if (!len)
		return 0;
	if (flags & ~SPLICE_F_ALL)
		return -EINVAL;
	pipe = host_type(in_node ? out : in) == S_IFIFO;
	/* A pipe has no offset, and a socket can't be read at one. */
	if (pipe && (in_node ? r->a[3] : r->a[1]))
		return -ESPIPE;
	ret = in_node ? host_allows(out, O_WRONLY) : host_allows(in, O_RDONLY);
	if (ret)
		return ret;
	if (out_node && (image_call2(__NR_fcntl, out, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (!pipe || (in_node ? r->a[1] : r->a[3]))
		return -EINVAL;
	/*
	 * Descriptors of the node that splice() can't write to (epoll, eventfd, TUN) fail before the pipe has data.
	 */
	if (out_node && node_type(out) != S_IFSOCK && node_type(out) != S_IFREG)
		return -EINVAL;
	buf = bounce_get();
	if (!buf)
		return -ENOMEM;
	if (in_node) {
		ret = splice_in(in, out, buf, len, nonblock);
	} else {
		/* From a pipe, Linux moves all that is there, up to len. */
		while ((u64)total < len) {
			ret = splice_out(in, out, buf, len - total, nonblock || total,
					 flags & SPLICE_F_MORE ? MSG_MORE : 0);
			if (ret <= 0)
				break;
			total += ret;
		}
	}
	bounce_put(buf);
	if (total && interrupted(ret))
		return total;
	return total ? total : ret;
}

/* Both ends have to be pipes, which are the node's in virtual time only. */
long do_tee(struct gate_regs *r)
{
	if (fd_is_node(r->a[0]) && fd_is_node(r->a[1]))
		return image_pass(r);
	return fd_is_node(r->a[0]) || fd_is_node(r->a[1]) ? -EINVAL : gate_host_regs(r);
}

/* Never between the two kernels. The error is that of generic_copy_file_checks(). */
long do_copy_file_range(struct gate_regs *r)
{
	bool in_node = fd_is_node(r->a[0]), out_node = fd_is_node(r->a[2]);
	u32 in = r->a[0], out = r->a[2], in_type, out_type;
	long flags, in_flags, out_flags;

	if (in_node && out_node)
		return image_pass(r);
	if (!in_node && !out_node)
		return gate_host_regs(r);
	flags = host_syscall3(__NR_fcntl, in_node ? out : in, F_GETFL, 0);
	if (flags < 0 || (flags & O_PATH))
		return -EBADF;
	if (r->a[5])
		return -EINVAL;
	in_type = in_node ? node_type(in) : host_type(in);
	out_type = out_node ? node_type(out) : host_type(out);
	if (in_type == S_IFDIR || out_type == S_IFDIR)
		return -EISDIR;
	if (in_type != S_IFREG || out_type != S_IFREG)
		return -EINVAL;
	in_flags = in_node ? image_call2(__NR_fcntl, in, F_GETFL) : flags;
	out_flags = out_node ? image_call2(__NR_fcntl, out, F_GETFL) : flags;
	if ((in_flags & O_ACCMODE) == O_WRONLY || (out_flags & O_ACCMODE) == O_RDONLY || (out_flags & O_APPEND))
		return -EBADF;
	return -EXDEV;
}
