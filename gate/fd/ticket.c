// SPDX-License-Identifier: GPL-2.0
/*
 * ticket.c - tickets stand for node descriptors in messages of the host
 *
 * Theory of operation
 * -------------------
 * The host's AF_UNIX sockets can carry only descriptors of the host. So the node keeps the file (PARK), and the
 * message carries a ticket: one end of a pair of unix sockets. The key is its SO_COOKIE, a number that the host
 * never gives to another socket. So a ticket can be neither forged nor mistaken. A process that receives a socket
 * whose cookie the node knows gets the file (UNPARK), at the number at which the ticket arrived.
 *
 *   sender				keeper			receiver
 *   socketpair: ticket, end
 *   {cookie, end} ------------------>	watches end
 *   PARK(fd, cookie)
 *   message with ticket ---------------------------------->	UNPARK(cookie)
 *   closes ticket						placeholder over ticket
 *					end hangs up:
 *					UNPARK(cookie, -1)
 *
 * A ticket lives as long as the host keeps the descriptor, mostly in the queue of a socket. When its last reference
 * is gone (a message that was never read), the other end hangs up. The keeper sees that, and has the node drop the
 * file. The peer of a connection sees it close then, as on Linux.
 *
 * A process outside of the node that receives a ticket has a unix socket: a read returns end of file, and after a
 * write the keeper cuts it off. It may pass the ticket on to a process of the node, once.
 *
 * An epoll has two halves (epoll.c). Its twin is in the ticket's own queue; the receiver duplicates it from there
 * without removing it.
 *
 * If another thread forks while tickets are open, the child closes its copies of them. List and lock are for that.
 */
#include "policy.h"
#include "ring3.h"


struct gate_mutex ticket_lock;
static struct ticket *open_tickets;

struct one_fd {			/* control data of one descriptor */
	struct host_cmsghdr head;
	s32 fd;
	s32 pad;
};

/* Sends a packet with one descriptor. */
static long send_fd(s32 sock, const void *data, u64 len, s32 fd)
{
	struct one_fd control = {
		.head = { .len = offsetof(struct one_fd, pad), .level = SOL_SOCKET,
			  .type = SCM_RIGHTS },
		.fd = fd,
	};
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct host_msghdr msg = {
		.iov = &iov, .iovlen = 1,
		.control = &control, .controllen = sizeof(control),
	};
	long ret;

	do {
		ret = host_syscall3(__NR_sendmsg, sock, (long)&msg, MSG_NOSIGNAL);
	} while (ret == -EINTR);
	return ret < 0 ? ret : 0;
}

static long cookie_of(s32 fd, u64 *cookie)
{
	u32 len = sizeof(*cookie);

	return host_syscall5(__NR_getsockopt, fd, SOL_SOCKET, SO_COOKIE, (long)cookie, (long)&len);
}

static long pair_of_sockets(s32 pair[2])
{
	return host_syscall4(__NR_socketpair, AF_UNIX, SOCK_SEQPACKET | O_CLOEXEC, 0, (long)pair);
}

/* On Linux sending a descriptor needs no number, so it works at the limit of open files. */
static long pair_beyond_limit(s32 pair[2])
{
	struct rlimit64 lim = fds_raise(0);
	long ret = pair_of_sockets(pair);

	fds_back(lim);
	return ret;
}

/* Makes the pair, and puts its ticket on the list. */
static long pair_make(struct ticket *t, s32 *end)
{
	s32 pair[2];
	long ret;

	gate_lock(&ticket_lock);
	ret = pair_of_sockets(pair);
	if (unlikely(ret == -EMFILE))
		ret = pair_beyond_limit(pair);
	if (!ret) {
		t->fd = pair[0];
		t->fdmap = gate_thread()->fdmap;
		t->next = open_tickets;
		open_tickets = t;
		*end = pair[1];
	}
	gate_unlock(&ticket_lock);
	return ret;
}

static void ticket_close(struct ticket *t)
{
	struct ticket **p;

	gate_lock(&ticket_lock);
	for (p = &open_tickets; *p; p = &(*p)->next) {
		if (*p == t) {
			*p = t->next;
			break;
		}
	}
	host_syscall1(__NR_close, t->fd);
	gate_unlock(&ticket_lock);
}

/* Makes the ticket t for the node's descriptor fd; 0 or -errno. */
long ticket_make(u32 fd, struct ticket *t)
{
	struct ring3_ticket note;
	s32 end;
	long ret;

	ret = pair_make(t, &end);
	if (ret)
		return ret;
	ret = cookie_of(t->fd, &t->key);
	if (!ret && ep_is(fd)) {
		ret = ep_share(fd);
		/* The gate's member of the node's epoll would make it look ready to threads that poll it there. */
		ep_polled(fd);
		if (!ret)
			ret = send_fd(end, "", 1, fd);
	}
	if (!ret)
		ret = host_syscall2(__NR_shutdown, end, SHUT_WR);
	if (!ret) {
		note.key = t->key;
		ret = send_fd(gate_fd(GATE_FD_KEEPER), &note, sizeof(note), end);
		if (ret == -EPIPE || ret == -ECONNREFUSED || ret == -ECONNRESET) {
			gate_warn("SCM_RIGHTS: the node's keeper is gone, no descriptor can be passed");
			ret = -EIO;
		}
	}
	host_syscall1(__NR_close, end);
	/* Only now: if this process is killed before that, the keeper sees the ticket go. */
	if (!ret)
		ret = image_call2(RING3_NR_PARK, fd, t->key);
	if (ret)
		ticket_close(t);
	return ret;
}

/* The message has been sent, or not: then no process will take the ticket. */
void ticket_end(struct ticket *t, bool sent)
{
	if (!sent)
		image_call2(RING3_NR_UNPARK, t->key, -1);
	ticket_close(t);
}

/* A duplicate of the twin in the ticket of an epoll, or -errno. */
static long twin_of(s32 fd)
{
	struct one_fd control = {};
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct host_msghdr msg = {
		.iov = &iov, .iovlen = 1,
		.control = &control, .controllen = sizeof(control),
	};
	long ret;

	ret = host_syscall3(__NR_recvmsg, fd, (long)&msg,
			    MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (ret < 0)
		return ret;
	if (ret != 1 || msg.controllen < offsetof(struct one_fd, pad))
		return -ENOENT;
	return control.fd;
}

/*
 * This process has received a descriptor. If it is a ticket, the node's descriptor replaces it. The program does
 * not know the number yet, so the order of steps does not matter.
 */
long ticket_take(s32 fd, u32 flags)
{
	long twin, ret;
	u64 key;

	if (cookie_of(fd, &key))
		return 0;	/* not a socket */
	ret = image_call3(RING3_NR_UNPARK, key, fd, flags);
	if (ret == -ENOENT)
		return 0;	/* a socket of the host */
	if (ret == -ESTALE)
		gate_warn("SCM_RIGHTS: this descriptor of the node was received before; a process "
			  "outside the node can pass it on only once");
	if (ret < 0)
		return ret;
	twin = twin_of(fd);
	ret = host_syscall3(__NR_dup3, twin >= 0 ? twin : gate_fd(FD_PLACEHOLDER), fd,
			    flags & RING3_UNPARK_CLOEXEC ? O_CLOEXEC : 0);
	if (twin >= 0)
		host_syscall1(__NR_close, twin);
	if (ret < 0) {
		image_call1(__NR_close, fd);
		return ret;
	}
	map_set(gate_fdmap()->node, fd);
	if (twin >= 0)
		ep_learn(fd);
	return 0;
}

GATE_FORKED void ticket_forked(void)
{
	struct ticket *t;

	for (t = open_tickets; t; t = t->next) {
		/* A process that shares the parent's table must not close them. */
		if (t->fdmap != gate_thread()->fdmap)
			host_syscall1(__NR_close, t->fd);
	}
	open_tickets = NULL;
}
