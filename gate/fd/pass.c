// SPDX-License-Identifier: GPL-2.0
/*
 * pass.c - passes node descriptors over the host's AF_UNIX sockets
 *
 * If a message passes descriptors of the node, the gate sends a copy of its control data with tickets in their
 * places (ticket.c). In each received message, the gate looks for tickets. A ticket is replaced by the node's
 * descriptor at the same number, so the program's control data stays as the host wrote it.
 */
#include "policy.h"
#include "ring3.h"

#define UIO_MAXIOV		1024	/* most messages of one sendmmsg() */
#define MMSG_BYTES		64ull	/* struct mmsghdr: a msghdr, and then its length */
#define MMSG_LEN		56
/* net.core.optmem_max of most hosts; Linux refuses more, too. */
#define CONTROL_MAX		(128u << 10)

struct rights {			/* one SCM_RIGHTS of a message */
	u64 at;			/* address of its header */
	u64 fds;		/* ... and of its numbers */
	u64 count;
};

/*
 * The next SCM_RIGHTS in *pos .. end. False: there is no more, or the rest is malformed; then the host reports the
 * error.
 */
static bool next_rights(u64 *pos, u64 end, struct rights *found)
{
	struct host_cmsghdr cmsg;
	u64 at;

	while (*pos < end && end - *pos >= sizeof(cmsg)) {
		at = *pos;
		if (gate_copy_in(&cmsg, user_ptr(at), sizeof(cmsg)))
			return false;
		if (cmsg.len < sizeof(cmsg) || cmsg.len > end - at)
			return false;
		*pos = at + ((cmsg.len + 7) & ~7ull);
		if (cmsg.level == SOL_SOCKET && cmsg.type == SCM_RIGHTS) {
			found->at = at;
			found->fds = at + sizeof(cmsg);
			found->count = (cmsg.len - sizeof(cmsg)) / sizeof(s32);
			return true;
		}
	}
	return false;
}

/* The number of node descriptors among those that the message passes; -EBADF: one is the gate's. */
static long count_node_fds(const struct host_msghdr *msg)
{
	u64 pos = (u64)msg->control, end = pos + msg->controllen, i;
	struct rights rights;
	long ours = 0, all = 0;
	s32 fd;

	if (!pos)
		return 0;
	while (next_rights(&pos, end, &rights)) {
		all += rights.count;
		if (all > SCM_MAX_FD)	/* the host refuses the message as it is */
			return 0;
		for (i = 0; i < rights.count; i++) {
			if (gate_copy_in(&fd, user_ptr(rights.fds + i * sizeof(fd)), sizeof(fd)))
				return 0;
			if (unlikely(reserved_fd(fd)))
				return -EBADF;
			ours += fd_is_node(fd);
		}
	}
	return ours;
}

/* False if the process has ended; a zombie has no command line. */
static bool process_lives(s32 pid)
{
	char path[32], text[2];

	gate_format(path, sizeof(path), "/proc/%d/cmdline", pid);
	return read_proc(path, text, sizeof(text)) > 0;
}

/*
 * The pid of the peer if it is outside of the node, as far as the gate can tell: the process that connected, or
 * that listens, lives and is not of the node. Both ends of a socketpair name the process that made it, which may
 * have passed them to programs of the node; a pair has no address, by which it is told.
 */
static s32 peer_outside(s32 sock)
{
	struct {
		s32 pid;
		u32 uid, gid;
	} cred = {};
	u32 len = sizeof(cred), ours = 0, theirs = 0;

	if (host_syscall5(__NR_getsockopt, sock, SOL_SOCKET, SO_PEERCRED, (long)&cred, (long)&len) ||
	    cred.pid <= 0 || proc_find(cred.pid) || !process_lives(cred.pid))
		return 0;
	/* Asks for the length of the address only; it is 2 if there is no name. */
	host_syscall3(__NR_getsockname, sock, 0, (long)&ours);
	host_syscall3(__NR_getpeername, sock, 0, (long)&theirs);
	return ours > 2 || theirs > 2 ? cred.pid : 0;
}

/* Puts tickets into the copy of the control data. *made counts them, also on failure. */
static long put_tickets(const struct host_msghdr *msg, struct ticket *tickets, long room,
			long *made)
{
	u64 pos = (u64)msg->control, end = pos + msg->controllen, i;
	struct rights rights;
	long ret;
	s32 *fd;

	while (next_rights(&pos, end, &rights)) {
		for (i = 0; i < rights.count; i++) {
			fd = (s32 *)rights.fds + i;
			if (!fd_is_node(*fd))
				continue;
			if (*made == room)	/* another thread has changed the program's data meanwhile */
				return -EBADF;
			ret = ticket_make(*fd, &tickets[*made]);
			if (ret)
				return ret;
			*fd = tickets[(*made)++].fd;
		}
	}
	return 0;
}

static long send_tickets(s32 sock, struct host_msghdr *msg, long count, u64 flags)
{
	void *user = msg->control;
	struct ticket *tickets;
	long made = 0, ret;
	s32 pid;

	pid = peer_outside(sock);
	if (pid) {
		gate_warn("SCM_RIGHTS: process %d is not on this node, it can't get a descriptor of the "
			  "node's", pid);
		return -EOPNOTSUPP;
	}
	if (msg->controllen > CONTROL_MAX)
		return -ENOBUFS;
	tickets = gate_alloc(count * sizeof(*tickets) + msg->controllen);
	if (!tickets)
		return -ENOMEM;
	msg->control = &tickets[count];
	ret = gate_copy_in(msg->control, user, msg->controllen);
	if (!ret)
		ret = put_tickets(msg, tickets, count, &made);
	if (!ret)
		ret = abstract_sendmsg(sock, msg, flags);
	while (made)
		ticket_end(&tickets[--made], ret >= 0);
	gate_free(tickets);
	return ret;
}

/* Sends one message over a socket of the host. */
static long send_one(s32 sock, u64 user_msg, u64 flags)
{
	struct host_msghdr msg;
	bool named = false;
	long count = 0;

	if (!gate_copy_in(&msg, user_ptr(user_msg), sizeof(msg))) {
		count = count_node_fds(&msg);
		named = abstract_named(&msg);
	}
	if (count < 0)
		return count;
	if (unlikely(count))
		return send_tickets(sock, &msg, count, flags);
	if (unlikely(named))
		return abstract_sendmsg(sock, &msg, flags);
	return gate_host(__NR_sendmsg, sock, user_msg, flags, 0, 0, 0);
}

long do_sendmsg(struct gate_regs *r)
{
	return send_one(r->a[0], r->a[1], r->a[2]);
}

/* False: the host says EFAULT, and sends no message behind this one. */
static bool can_be_sent(const struct host_msghdr *msg)
{
	u8 first;

	return !(msg->name && (s32)msg->namelen > 0 && gate_copy_in(&first, msg->name, 1)) &&
	       !(msg->control && msg->controllen && gate_copy_in(&first, msg->control, 1));
}

long do_sendmmsg(struct gate_regs *r)
{
	u32 i, len, n = r->a[2] < UIO_MAXIOV ? r->a[2] : UIO_MAXIOV;
	struct host_msghdr msg;
	bool ours = false;
	long ret = 0;

	for (i = 0; i < n && !ours; i++) {
		if (gate_copy_in(&msg, user_ptr(r->a[1] + i * MMSG_BYTES), sizeof(msg)))
			break;
		ours = count_node_fds(&msg) || abstract_named(&msg);
		if (!ours && !can_be_sent(&msg))
			break;
	}
	if (likely(!ours))
		return gate_host_regs(r);
	for (i = 0; i < n; i++) {
		ret = send_one(r->a[0], r->a[1] + i * MMSG_BYTES, r->a[3]);
		if (ret < 0)
			break;
		len = ret;
		if (gate_copy_out(user_ptr(r->a[1] + i * MMSG_BYTES + MMSG_LEN), &len, sizeof(len))) {
			ret = -EFAULT;
			break;
		}
	}
	return i ? i : ret;
}

/*
 * Number `from` of this SCM_RIGHTS could not be received: drops it and those after it, as Linux does at the limit
 * of open files.
 */
static void cut_short(u64 user_msg, struct host_msghdr *msg, const struct rights *rights, u64 from)
{
	u64 len = sizeof(struct host_cmsghdr) + from * sizeof(s32), i;
	s32 fd;

	for (i = from; i < rights->count; i++) {
		if (!gate_copy_in(&fd, user_ptr(rights->fds + i * sizeof(fd)), sizeof(fd)))
			host_syscall1(__NR_close, fd);
	}
	msg->flags |= MSG_CTRUNC;
	gate_copy_out(user_ptr(rights->at), &len, sizeof(len));
	gate_copy_out(user_ptr(user_msg), msg, sizeof(*msg));
}

/* Looks for tickets in a message that the host has received into the program's memory. */
static void look_through(u64 user_msg, u64 flags)
{
	u32 how = (flags & MSG_CMSG_CLOEXEC ? RING3_UNPARK_CLOEXEC : 0) |
		  (flags & MSG_PEEK ? RING3_UNPARK_KEEP : 0);
	struct host_msghdr msg;
	struct rights rights;
	u64 pos, end, i;
	s32 fd;

	if (gate_copy_in(&msg, user_ptr(user_msg), sizeof(msg)) || !msg.control)
		return;
	pos = (u64)msg.control;
	end = pos + msg.controllen;
	while (next_rights(&pos, end, &rights)) {
		for (i = 0; i < rights.count; i++) {
			if (gate_copy_in(&fd, user_ptr(rights.fds + i * sizeof(fd)), sizeof(fd)))
				return;
			if (ticket_take(fd, how) < 0) {
				cut_short(user_msg, &msg, &rights, i);
				return;
			}
		}
	}
}

long do_recvmsg(struct gate_regs *r)
{
	long ret;

	ret = abstract_recvmsg(r);
	if (ret >= 0)
		look_through(r->a[1], r->a[2]);
	return ret;
}

/* The host overwrites the size of the address buffers with the length of the addresses: returns the smallest size. */
static u32 least_room(u64 user_msgs, u32 n)
{
	struct host_msghdr msg;
	u32 i, room = ~0u;

	for (i = 0; i < n && i < UIO_MAXIOV; i++) {
		if (gate_copy_in(&msg, user_ptr(user_msgs + i * MMSG_BYTES), sizeof(msg)))
			return 0;
		if (msg.name && msg.namelen < room)
			room = msg.namelen;
	}
	return room == ~0u ? 0 : room;
}

long do_recvmmsg(struct gate_regs *r)
{
	long i, ret;
	u32 room;

	room = least_room(r->a[1], r->a[2]);
	ret = gate_host_regs(r);
	for (i = 0; i < ret; i++) {
		if (room)
			abstract_received(r->a[1] + i * MMSG_BYTES, room);
		look_through(r->a[1] + i * MMSG_BYTES, r->a[3]);
	}
	return ret;
}

/* True for the placeholder of a descriptor of another node. */
static bool is_placeholder(s32 fd)
{
	static const char name[] = "/memfd:" PLACEHOLDER_NAME " (deleted)";
	char link[sizeof(name) + 1];

	return fd_link(fd, link, sizeof(link)) > 0 && !strcmp(link, name);
}

/*
 * The host checks the permission, and duplicates what it has at that number: the placeholder of a node descriptor,
 * or an epoll's twin.
 */
long do_pidfd_getfd(struct gate_regs *r)
{
	long fd, ret;

	fd = gate_host_regs(r);
	if (fd < 0)
		return fd;
	ret = image_call3(RING3_NR_GRAB, pidfd_pid(r->a[0]), (u32)r->a[1], fd);
	if (ret >= 0) {
		map_set(gate_fdmap()->node, fd);
		ep_learn(fd);
		return fd;
	}
	if ((ret == -ESRCH || ret == -EBADF) && likely(!is_placeholder(fd)))
		return fd;	/* a descriptor of the host */
	host_syscall1(__NR_close, fd);
	if (ret == -ESRCH) {
		gate_warn("pidfd_getfd: descriptor %d of that process is another node's", (s32)r->a[1]);
		return -EPERM;
	}
	return ret;
}
