// SPDX-License-Identifier: GPL-2.0
/*
 * sock.c - sockets: which families are the host's, and the calls that make one
 */
#include "policy.h"

#include <linux/socket.h>

/* Families and options; no uapi header has them without libc's types. */
#define SOCK_CLOEXEC		O_CLOEXEC
#define SOCK_NONBLOCK		O_NONBLOCK
#define SOCK_TYPES		0xf
#define SOCK_DGRAM		2
#define SOCK_RAW		3		/* of the unix family: the same */
#define SOCK_PACKET		10		/* the last */
#define PROTO_UNIX		1
#define SO_TYPE			3
#define SO_INCOMING_CPU		49
#define DGRAM_MARK		0x72336467
#define SCTP_PEELOFF		102
#define SCTP_PEELOFF_FLAGS	122

/*
 * These families are the host's: they are local to the machine, or no network at all. All others are the node's,
 * unknown ones included, so that no traffic leaves by the host.
 */
static bool family_is_host(u32 family)
{
	return family == AF_UNIX || family == AF_VSOCK || family == AF_ALG;
}

/*
 * In a sandbox the host makes no datagram sockets of the unix family, since each message of one could name any path. What programs get in
 * their place is made of sequenced packets, which keep messages apart, too. A pair of them sees that its far end has closed as streams do. A
 * single one has no name and reaches nobody, as where no such server runs: programs that have lines for syslog go on without.
 * One knows them by their SO_INCOMING_CPU, which no unix socket uses.
 */
static bool dgram_mark(s32 fd)
{
	u32 mark = DGRAM_MARK;

	return !host_syscall5(__NR_setsockopt, fd, SOL_SOCKET, SO_INCOMING_CPU, (long)&mark, sizeof(mark));
}

static bool dgram_is(s32 fd)
{
	u32 mark = 0, len = sizeof(mark);

	return own_confined() && !host_syscall5(__NR_getsockopt, fd, SOL_SOCKET, SO_INCOMING_CPU, (long)&mark, (long)&len) &&
	       mark == DGRAM_MARK;
}

/* The result of a call by an address of a datagram socket's, or 0: it is none. */
long sock_nobody(const struct gate_regs *r)
{
	if (likely(!dgram_is(r->a[0])))
		return 0;
	return r->nr == __NR_bind ? -EOPNOTSUPP : -ECONNREFUSED;
}

/* A call that the sandbox's list refuses: the same of sequenced packets, or the error that Linux has. */
static long unix_packets(const struct gate_regs *r)
{
	struct gate_regs packets = *r;
	u32 type = r->a[1] & SOCK_TYPES;

	if (type > SOCK_PACKET)
		return -EINVAL;
	if (type != SOCK_DGRAM && type != SOCK_RAW)
		return r->a[2] && r->a[2] != PROTO_UNIX ? -EPROTONOSUPPORT : -ESOCKTNOSUPPORT;
	packets.a[1] = (r->a[1] & ~(u64)SOCK_TYPES) | SOCK_SEQPACKET;
	return gate_host_regs(&packets);
}

static bool is_refused(const struct gate_regs *r, long ret)
{
	return unlikely(ret == -ENOSYS) && (u32)r->a[0] == AF_UNIX;
}

static long socket_of_host(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (!is_refused(r, ret))
		return ret;
	ret = unix_packets(r);
	if (ret < 0 || dgram_mark(ret))
		return ret;
	host_syscall1(__NR_close, ret);
	return -ENOSYS;
}

long do_socket(struct gate_regs *r)
{
	if (family_is_host(r->a[0]))
		return socket_of_host(r);
	return fd_create(r->a[1] & SOCK_CLOEXEC, __NR_socket, r->a[0], r->a[1], r->a[2], 0);
}

static long pair_of_host(struct gate_regs *r)
{
	long ret = gate_host_regs(r);
	s32 pair[2];

	if (!is_refused(r, ret))
		return ret;
	ret = unix_packets(r);
	if (!ret && !gate_copy_in(pair, user_ptr(r->a[3]), sizeof(pair))) {
		dgram_mark(pair[0]);
		dgram_mark(pair[1]);
	}
	return ret;
}

/*
 * Of the node's families only TIPC has socketpairs. They are refused, since the node would choose their numbers
 * (see RING3_NR_AT). The other families fail as on Linux, which first writes the numbers that the pair would have
 * got.
 */
long do_socketpair(struct gate_regs *r)
{
	s32 pair[2], host[2];
	long ret = 0;

	if (family_is_host(r->a[0]))
		return pair_of_host(r);
	if (r->a[1] & ~(u64)(SOCK_TYPES | SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	host[0] = fd_placeholder(true);
	if (host[0] < 0)
		return host[0];
	host[1] = fd_placeholder(true);
	if (host[1] < 0)
		ret = host[1];
	else
		ret = gate_copy_out(user_ptr(r->a[3]), host, sizeof(host));
	if (!ret)
		ret = image_call4(__NR_socketpair, r->a[0], r->a[1], r->a[2], pair);
	if (!ret) {
		image_call1(__NR_close, pair[0]);
		image_call1(__NR_close, pair[1]);
		gate_warn("socketpair: family %u has none on a node yet", (u32)r->a[0]);
		ret = -EOPNOTSUPP;
	}
	host_syscall1(__NR_close, host[0]);
	if (host[1] >= 0)
		host_syscall1(__NR_close, host[1]);
	return ret;
}

/* The number is taken before the wait, as on Linux. */
long do_accept(struct gate_regs *r)
{
	u32 flags = r->nr == __NR_accept4 ? r->a[3] : 0;

	if (!fd_is_node(r->a[0]))
		return abstract_accept(r);
	return fd_create(flags & SOCK_CLOEXEC, r->nr, r->a[0], r->a[1], r->a[2], flags);
}

/*
 * Peeling an association off an SCTP socket makes a descriptor. The node writes its number into the program's
 * structure: { assoc_id, sd[, flags] }.
 */
long do_getsockopt(struct gate_regs *r)
{
	s32 sd, level = r->a[1], name = r->a[2];
	long fd, ret;

	if (!fd_is_node(r->a[0])) {
		ret = gate_host_regs(r);
		sd = SOCK_DGRAM;
		if (!ret && level == SOL_SOCKET && name == SO_TYPE && dgram_is(r->a[0]))
			gate_copy_out(user_ptr(r->a[3]), &sd, sizeof(sd));
		return ret;
	}
	if (likely(level != SOL_SCTP || (name != SCTP_PEELOFF && name != SCTP_PEELOFF_FLAGS)))
		return image_pass(r);

	ret = image_pass(r);
	if (ret < 0)
		return ret;
	if (gate_copy_in(&sd, user_ptr(r->a[3] + 4), sizeof(sd)))
		return -EFAULT;
	fd = fd_create(false, __NR_dup, sd, 0, 0, 0);
	image_call1(__NR_close, sd);
	if (fd < 0)
		return fd;
	sd = fd;
	return gate_copy_out(user_ptr(r->a[3] + 4), &sd, sizeof(sd)) ? : fd;
}
