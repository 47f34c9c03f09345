// SPDX-License-Identifier: GPL-2.0
/*
 * abstract.c - abstract names of unix sockets belong to a network namespace, and so to the node
 *
 * Theory of operation
 * -------------------
 * On Linux each network namespace has its own abstract names (a NUL byte first). The node's unix sockets are
 * sockets of the host, and their names are in the host's namespace, which other nodes and the host's own programs
 * share. So the gate adds a prefix to a name on its way to the host, and removes it on its way back. The prefix
 * stands for the node and for the caller's network namespace in it:
 *
 *   NUL name  <->  NUL "r3:" six characters of a hash, the length of the name, the name
 *
 * A name that is too long with the prefix goes to the host unchanged: programs of the node find each other by it,
 * but so do others. Many programs give the size of a structure as the length, so that their names end in NULs: the
 * gate leaves these out, and restores them from the length. A name that the host chooses (bind() without a name) is
 * five hexadecimal digits, without a prefix. So if a call to such a name finds no socket, it is repeated with the
 * unchanged name.
 *
 * Names that are paths are files, which are the host's.
 */
#include "policy.h"

#define NAME_MAX	107		/* length of sockaddr_un.sun_path without the first NUL */
#define PREFIX		"r3:"
#define HASH_BYTES	6
#define PREFIX_BYTES	10		/* with hash and length */
#define AUTOBIND_BYTES	5
#define ANY_BYTES	128		/* of an address of any family: sockaddr_storage */

struct name {
	u16 family;
	char nul, s[NAME_MAX];
};
#define NAME_AT		3		/* bytes before the name */
#define FAMILY_BYTES	2
_Static_assert(offsetof(struct name, s) == NAME_AT && sizeof(struct name) == 110, "sockaddr_un");

/* An address of any family, large enough that the host never truncates one. */
union address {
	struct name name;
	char any[ANY_BYTES];
};

static u64 mix(u64 h, u64 more)
{
	h = (h ^ more) * 0x9e3779b97f4a7c15UL;
	return h ^ h >> 29;
}

static void put_hash(char *to)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
	const struct ring3_region *region = (const void *)gate_thread()->region;
	char net[32];
	long n = image_call4(__NR_readlinkat, AT_FDCWD, "/proc/thread-self/ns/net", net, sizeof(net));
	u64 h = mix(mix(mix(0, region->boot_tsc), region->boot_realtime_ns), region->keeper_pid);
	u32 i;

	for (i = 0; n > 0 && i < (u32)n; i++)
		h = mix(h, net[i]);
	for (i = 0; i < HASH_BYTES; i++, h >>= 6)
		to[i] = digits[h >> 20 & 63];
}

/* Converts the program's address for the host. Returns its length, or 0 if it goes to the host unchanged. */
static u32 to_host(u64 user, u64 user_len, struct name *to)
{
	u32 len = user_len, n;
	struct name from;

	if (!user || len < NAME_AT || len > sizeof(from) || gate_copy_in(&from, user_ptr(user), len) ||
	    from.family != AF_UNIX || from.nul)
		return 0;
	for (n = len -= NAME_AT; n && !from.s[n - 1]; n--)
		;
	if (n > NAME_MAX - PREFIX_BYTES)
		return 0;
	to->family = AF_UNIX;
	to->nul = 0;
	memcpy(to->s, PREFIX, strlen(PREFIX));
	put_hash(to->s + strlen(PREFIX));
	to->s[PREFIX_BYTES - 1] = len;
	memcpy(to->s + PREFIX_BYTES, from.s, n);
	return NAME_AT + PREFIX_BYTES + n;
}

static bool has_prefix(const struct name *name, u32 len)
{
	u32 all = (u8)name->s[PREFIX_BYTES - 1];

	return len >= NAME_AT + PREFIX_BYTES && len <= sizeof(*name) && name->family == AF_UNIX && !name->nul &&
	       !memcmp(name->s, PREFIX, strlen(PREFIX)) && all <= NAME_MAX && all >= len - NAME_AT - PREFIX_BYTES;
}

/* Converts an address from the host for the program; returns its length. */
static u32 from_host(struct name *name, u32 len)
{
	u32 all, n;

	if (len > FAMILY_BYTES && len <= sizeof(*name) && name->family == AF_UNIX)
		len = FAMILY_BYTES + stage_name(&name->nul, len - FAMILY_BYTES);
	if (!has_prefix(name, len))
		return len;
	all = (u8)name->s[PREFIX_BYTES - 1];
	n = len - NAME_AT - PREFIX_BYTES;
	memmove(name->s, name->s + PREFIX_BYTES, n);
	memset(name->s + n, 0, all - n);
	return NAME_AT + all;
}

/* No socket has the name: could it be one that the host has chosen? */
static bool may_be_hosts(u64 user, u64 user_len, long ret)
{
	struct name name;
	u32 i;

	if (likely(ret != -ECONNREFUSED) || (u32)user_len != NAME_AT + AUTOBIND_BYTES ||
	    gate_copy_in(&name, user_ptr(user), NAME_AT + AUTOBIND_BYTES))
		return false;
	for (i = 0; i < AUTOBIND_BYTES; i++)
		if (!((name.s[i] >= '0' && name.s[i] <= '9') || (name.s[i] >= 'a' && name.s[i] <= 'f')))
			return false;
	return true;
}

/* A call with an address in argument `at' and its length in the next one. */
static long send_name(const struct gate_regs *r, u32 at)
{
	struct gate_regs host = *r;
	struct name name;
	u32 len = to_host(r->a[at], r->a[at + 1], &name);
	long ret = r->a[at] ? sock_nobody(r) : 0;

	if (unlikely(ret))
		return ret;
	if (!len)
		return gate_host_regs(r);
	host.a[at] = (u64)&name;
	host.a[at + 1] = len;
	ret = gate_host_regs(&host);
	return r->nr != __NR_bind && may_be_hosts(r->a[at], r->a[at + 1], ret) ? gate_host_regs(r) : ret;
}

/* Writes an address to the program as Linux does: as much as fits, and the full length. */
static long give(u64 user, s32 room, u64 user_len, union address *from, s32 len)
{
	len = from_host(&from->name, len);
	if (gate_copy_out(user_ptr(user), from, len < room ? len : room))
		return -EFAULT;
	return gate_copy_out(user_ptr(user_len), &len, sizeof(len));
}

/* A call that writes an address to where argument `at' points, and its length to where the next one points. */
static long receive_name(const struct gate_regs *r, u32 at)
{
	struct gate_regs host = *r;
	union address from;
	s32 len = sizeof(from), room;
	long ret, err;

	if (!r->a[at] || gate_copy_in(&room, user_ptr(r->a[at + 1]), sizeof(room)) || room < 0)
		return gate_host_regs(r);
	host.a[at] = (u64)&from;
	host.a[at + 1] = (u64)&len;
	ret = gate_host_regs(&host);
	if (ret < 0)
		return ret;
	err = give(r->a[at], room, r->a[at + 1], &from, len);
	if (likely(!err))
		return ret;
	if (r->nr == __NR_accept || r->nr == __NR_accept4)
		host_syscall1(__NR_close, ret);
	return err;
}

/* bind(), connect() */
long do_bind(struct gate_regs *r)
{
	return send_name(r, 1);
}

long do_sendto(struct gate_regs *r)
{
	return send_name(r, 4);
}

/* getsockname(), getpeername() */
long do_getsockname(struct gate_regs *r)
{
	return receive_name(r, 1);
}

long do_recvfrom(struct gate_regs *r)
{
	return receive_name(r, 4);
}

long abstract_accept(const struct gate_regs *r)
{
	return unlikely(reserved_fd(r->a[0])) ? -EBADF : receive_name(r, 1);
}

/* ---- messages ---- */

bool abstract_named(const struct host_msghdr *msg)
{
	u8 first[NAME_AT];

	return msg->name && (s32)msg->namelen >= NAME_AT && !gate_copy_in(first, msg->name, sizeof(first)) &&
	       first[0] == AF_UNIX && !first[1] && !first[2];
}

/* sendmsg() of a message header in the gate's memory. */
long abstract_sendmsg(s32 sock, struct host_msghdr *msg, u64 flags)
{
	u64 user = (u64)msg->name, user_len = msg->namelen;
	struct name name;
	u32 len = to_host(user, user_len, &name);
	long ret;

	if (len) {
		msg->name = &name;
		msg->namelen = len;
	}
	ret = gate_host(__NR_sendmsg, sock, (long)msg, flags, 0, 0, 0);
	msg->name = user_ptr(user);
	msg->namelen = user_len;
	return len && may_be_hosts(user, user_len, ret) ? gate_host(__NR_sendmsg, sock, (long)msg, flags, 0, 0, 0) : ret;
}

long abstract_recvmsg(const struct gate_regs *r)
{
	struct host_msghdr msg;
	union address from;
	void *name;
	s32 room;
	long ret;

	if (gate_copy_in(&msg, user_ptr(r->a[1]), sizeof(msg)) || likely(!msg.name) || (s32)msg.namelen < 0)
		return gate_host_regs(r);
	name = msg.name;
	room = msg.namelen;
	msg.name = &from;
	msg.namelen = sizeof(from);
	ret = gate_host(r->nr, r->a[0], (long)&msg, r->a[2], 0, 0, 0);
	if (ret < 0)
		return ret;
	msg.name = name;
	msg.namelen = from_host(&from.name, msg.namelen);
	if (gate_copy_out(name, &from, (s32)msg.namelen < room ? (s32)msg.namelen : room) ||
	    gate_copy_out(user_ptr(r->a[1]), &msg, sizeof(msg)))
		return -EFAULT;
	return ret;
}

/*
 * recvmmsg() has written a message to the program's memory, with room for `room' bytes of the address. An address
 * that was truncated there lacks as many bytes as the prefix took.
 */
void abstract_received(u64 user_msg, u32 room)
{
	struct host_msghdr msg;
	struct name name = { 0 };

	if (gate_copy_in(&msg, user_ptr(user_msg), sizeof(msg)) || likely(!msg.name) || msg.namelen > sizeof(name) ||
	    gate_copy_in(&name, msg.name, msg.namelen < room ? msg.namelen : room))
		return;
	msg.namelen = from_host(&name, msg.namelen);
	if (!gate_copy_out(msg.name, &name, msg.namelen < room ? msg.namelen : room))
		gate_copy_out(user_ptr(user_msg), &msg, sizeof(msg));
}
