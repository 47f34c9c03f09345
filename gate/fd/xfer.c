// SPDX-License-Identifier: GPL-2.0
/*
 * xfer.c - sendfile and splice between a file of the host and one of the node
 *
 * The two kernels share no pages, so data passes through a buffer of the gate. Bytes are consumed from the source
 * only after the sink has accepted them: a file's offset is advanced afterwards, a socket is peeked at, and a pipe
 * is copied by tee() before it is read. source.c says what else reads from these meanwhile.
 */
#include "policy.h"

#include "ring3.h"
#include "tuning.h"
#include <asm/socket.h>
#include <asm/sockios.h>
#include <linux/stat.h>

#define BOUNCE		RING3_SENDFILE_MAX
#define MAX_COUNT	0x7ffff000ull		/* MAX_RW_COUNT: most one call moves */
#define PIPE_SLOT	4096u			/* bytes: a pipe that polls writable has room for so many */

/* linux/socket.h and fcntl.h keep these for the kernel and libc */
#define SOCK_STREAM		1
#define SPLICE_F_NONBLOCK	0x02
#define SPLICE_F_MORE		0x04
#define SPLICE_F_ALL		0x0f

/* Writes to a node descriptor: send() for sockets, which can say MSG_MORE, write() for others. */
static long node_put(u32 fd, const void *buf, u64 len, u32 msg)
{
	long ret = image_call(__NR_sendto, fd, (long)buf, len, msg, 0, 0);

	return ret == -ENOTSOCK ? image_call3(__NR_write, fd, buf, len) : ret;
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

/* What splice() reads from. */
struct source {
	u32 fd;
	u32 type;		/* S_IFMT */
	u64 key;
};

static struct source source_of(bool in_node, u32 fd)
{
	struct stat st;
	long ret = in_node ? image_call2(__NR_fstat, fd, &st) : host_syscall2(__NR_fstat, fd, (long)&st);

	if (ret)
		return (struct source){ .fd = fd };
	return (struct source){ .fd = fd, .type = st.st_mode & S_IFMT, .key = source_key(in_node, st.st_ino) };
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

/* Waits, if the descriptor does; returns which of these events it has, and POLLERR and POLLHUP. */
static long host_wait(u32 fd, u32 events, bool nonblock)
{
	struct pollfd p = { .fd = fd, .events = events };
	long ret = host_syscall3(__NR_poll, (long)&p, 1, 0);

	if (!ret && (nonblock || host_nonblock(fd)))
		return -EAGAIN;
	if (!ret && sim_on())
		return sim_wait_host(fd, events);
	if (!ret)
		ret = gate_host(__NR_poll, (long)&p, 1, -1, 0, 0, 0);
	if (ret == -EINTR)	/* of poll(), for each handler */
		return -ERESTARTSYS;
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

static bool is_stream(u32 fd)
{
	s32 type = 0, size = sizeof(type);

	image_call5(__NR_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size);
	return type == SOCK_STREAM;
}

/* Moves what a socket has. -EAGAIN: it is *empty, or the pipe has no room. */
static long splice_from_socket(const struct source *in, u32 pipe, char *buf, u64 len, bool *empty)
{
	long ret = source_lock(in->key);

	if (ret)
		return ret;
	ret = socket_peek(in->fd, buf, len);
	*empty = ret == -EAGAIN;
	if (ret > 0)
		ret = pipe_offer(pipe, buf, ret);
	/* Of a stream, 0 is the end or an urgent byte, and elsewhere an empty datagram. */
	if (ret > 0 || (!ret && !is_stream(in->fd)))
		image_call(__NR_recvfrom, in->fd, (long)buf, ret, MSG_TRUNC | MSG_DONTWAIT, 0, 0);
	source_unlock(in->key);
	return ret;
}

/* Moves what follows *pos in a file. -EAGAIN: *empty, or no room. */
static long splice_from_file(const struct source *in, u32 pipe, char *buf, u64 len, s64 *pos, bool *empty)
{
	long got = image_call4(__NR_pread64, in->fd, buf, len, *pos), ret;

	*empty = got == -EAGAIN;
	if (got <= 0)
		return got;
	ret = source_lock(in->key);
	if (ret)
		return ret;
	ret = pipe_offer(pipe, buf, got);
	source_unlock(in->key);
	if (ret > 0)
		*pos += ret;
	return ret;
}

/*
 * From a pipe of the node, in virtual time. It can't be peeked at; but the bytes have room, since no other thread of
 * the simulation runs meanwhile.
 */
static long splice_from_pipe(const struct source *in, u32 pipe, char *buf, u64 len)
{
	long got = image_call3(__NR_read, in->fd, buf, len < PIPE_SLOT ? len : PIPE_SLOT);

	return got <= 0 ? got : host_write(pipe, buf, got);
}

/* From a node's descriptor into a pipe of the host, once there is something and room for it; pos: of a file. */
static long splice_in(const struct source *in, u32 pipe, char *buf, u64 len, bool nonblock, s64 *pos)
{
	bool empty;
	long ret;

	if (len > BOUNCE)
		len = BOUNCE;
	for (;;) {
		ret = host_wait(pipe, POLLOUT, nonblock);
		if (ret < 0)
			return ret;
		if (ret & POLLERR)
			return broken_pipe();
		empty = false;
		if (in->type == S_IFSOCK)
			ret = splice_from_socket(in, pipe, buf, len, &empty);
		else if (in->type == S_IFREG)
			ret = splice_from_file(in, pipe, buf, len, pos, &empty);
		else
			return in->type == S_IFIFO ? splice_from_pipe(in, pipe, buf, len) : -EINVAL;
		if (ret != -EAGAIN || (empty && in->type != S_IFSOCK))
			return ret;
		/* SPLICE_F_NONBLOCK is about the pipe; the socket's own flag decides for the socket. */
		ret = empty ? socket_wait(in->fd, buf) : 0;
		if (ret < 0)
			return ret;
	}
}

long do_sendfile(struct gate_regs *r)
{
	u32 out = r->a[0], in = r->a[1];
	u64 user = r->a[2], count = r->a[3];
	bool in_node = fd_is_node(in), out_node = fd_is_node(out);
	struct source source = { 0 };
	bool socket, pipe = false;
	s64 pos = 0, start;
	char *buf;
	long ret;

	if (!in_node && !out_node)
		return gate_host_regs(r);
	if (in_node && out_node)
		return image_pass(r);
	if (in_node)
		source = source_of(true, in);
	socket = source.type == S_IFSOCK;
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
		pipe = host_type(out) == S_IFIFO;
		/*
		 * If the source has no position, Linux splices only into pipes, and never to a file opened for
		 * appending.
		 */
		if ((socket || host_appends(out)) && !pipe)
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
	if (pipe)
		ret = splice_in(&source, out, buf, count, false, &pos);
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

static long splice_out(const struct source *pipe, u32 out, char *buf, u64 len, bool nonblock, u32 msg)
{
	long events, got, put;

	for (;;) {
		events = host_wait(pipe->fd, POLLIN, nonblock);
		if (events < 0)
			return events;
		put = source_lock(pipe->key);
		if (put)
			return put;
		got = pipe_peek(pipe->fd, buf, len < BOUNCE ? len : BOUNCE);
		if (got > 0)
			put = node_put(out, buf, got, msg | MSG_DONTWAIT);
		if (put > 0)
			pipe_consume(pipe->fd, buf, put);
		source_unlock(pipe->key);
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
	struct source source;
	s64 pos = 0, start;
	u64 len = r->a[4];
	char *buf;
	bool pipe;

	if (!in_node && !out_node)
		return gate_host_regs(r);
	if (in_node && out_node)
		return image_pass(r);
	if (!len)
		return 0;
	if (flags & ~SPLICE_F_ALL)
		return -EINVAL;
	source = source_of(in_node, in);
	pipe = (in_node ? host_type(out) : source.type) == S_IFIFO;
	/* A pipe has no offset, and a socket can't be read at one. */
	if (pipe && (in_node ? r->a[3] : r->a[1]))
		return -ESPIPE;
	ret = in_node ? host_allows(out, O_WRONLY) : host_allows(in, O_RDONLY);
	if (ret)
		return ret;
	if (out_node && (image_call2(__NR_fcntl, out, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (!pipe || (in_node ? r->a[1] && source.type != S_IFREG : r->a[3]))
		return -EINVAL;
	if (in_node && source.type == S_IFREG)
		ret = get_offset(true, in, r->a[1], &pos);
	if (ret)
		return ret;
	if (pos < 0)
		return -EINVAL;
	start = pos;
	/*
	 * Descriptors of the node that splice() can't write to (epoll, eventfd, TUN) fail before the pipe has data.
	 */
	if (out_node && node_type(out) != S_IFSOCK && node_type(out) != S_IFREG)
		return -EINVAL;
	buf = bounce_get();
	if (!buf)
		return -ENOMEM;
	if (in_node) {
		ret = splice_in(&source, out, buf, len, nonblock, &pos);
	} else {
		/* From a pipe, Linux moves all that is there, up to len. */
		while ((u64)total < len) {
			ret = splice_out(&source, out, buf, len - total, nonblock || total,
					 flags & SPLICE_F_MORE ? MSG_MORE : 0);
			if (ret <= 0)
				break;
			total += ret;
		}
	}
	bounce_put(buf);
	if (pos != start && put_offset(true, in, r->a[1], pos))
		return -EFAULT;
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
