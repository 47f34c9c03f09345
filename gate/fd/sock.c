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

long do_socket(struct gate_regs *r)
{
	if (family_is_host(r->a[0]))
		return gate_host_regs(r);
	return fd_create(r->a[1] & SOCK_CLOEXEC, __NR_socket, r->a[0], r->a[1], r->a[2], 0);
}

/*
 * In a sandbox the host makes no datagram sockets, since each message of one could name any path. Sequenced packets keep
 * messages apart, too; that a far end has closed is seen as of a stream.
 */
static long pair_of_host(struct gate_regs *r)
{
	struct gate_regs packets = *r;
	long ret = gate_host_regs(r);

	if (likely(ret != -ENOSYS) || (u32)r->a[0] != AF_UNIX || (r->a[1] & SOCK_TYPES) != SOCK_DGRAM)
		return ret;
	packets.a[1] = (r->a[1] & ~(u64)SOCK_TYPES) | SOCK_SEQPACKET;
	return gate_host_regs(&packets);
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

	if (!fd_is_node(r->a[0]))
		return gate_host_regs(r);
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
