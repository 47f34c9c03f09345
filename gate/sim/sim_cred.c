// SPDX-License-Identifier: GPL-2.0
/*
 * sim_cred.c - who is at the other end of a unix socket, in virtual time
 *
 * Unix sockets are the host's, and of an ordinary user's simulation the host says of each program that it is root (sim_ids.c). So the
 * ids in SO_PEERCRED and SCM_CREDENTIALS are those that the node has for that process: it is known by its number. They are
 * those of now, where Linux has those of connect() or of the message. A process that is there no more has the overflow id.
 *
 * What a program sends as its ids the gate checks by Linux's rules. The host gets ids that it maps.
 */
#include "internal.h"
#include "policy.h"
#include <asm/socket.h>
#include <linux/capability.h>

#define SCM_CREDENTIALS	2
#define CONTROL_MAX	(128u << 10)	/* net.core.optmem_max of most hosts; Linux refuses more, too */
#define UIO_MAXIOV	1024
#define MMSG_BYTES	64ull		/* struct mmsghdr: a msghdr, and then its length */
#define MMSG_LEN	56
#define OVERFLOW_ID	65534
#define STATUS_BYTES	1024		/* of /proc/PID/status: the ids are among its first lines */

struct ucred {
	s32 pid;
	u32 uid, gid;
};

enum { REAL = 0, EFFECTIVE = 1 };

static u32 id_in(const char *status, const char *key, u32 which)
{
	const char *at = proc_line(status, key);
	u32 i, id = OVERFLOW_ID;

	for (i = 0; at && i <= which; i++) {
		while (*at == ' ' || *at == '\t')
			at++;
		id = gate_strtou(at, 10, &at);
	}
	return id;
}

static void ids_of(struct ucred *cred, u32 which)
{
	char path[32], status[STATUS_BYTES] = "";
	long fd, n = 0;

	gate_format(path, sizeof(path), "/proc/%d/status", cred->pid);
	fd = fd_create(true, __NR_openat, AT_FDCWD, (u64)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		n = image_call3(__NR_read, fd, status, sizeof(status) - 1);
		fd_drop(fd);
	}
	status[n > 0 ? n : 0] = 0;
	cred->uid = id_in(status, "Uid:", which);
	cred->gid = id_in(status, "Gid:", which);
}

/* getsockopt(SO_PEERCRED) */
long sim_getsockopt(struct gate_regs *r, gate_handler otherwise)
{
	long ret = otherwise(r);
	struct ucred cred;
	s32 len;

	if (ret || fd_is_node(r->a[0]) || (s32)r->a[1] != SOL_SOCKET || (s32)r->a[2] != SO_PEERCRED || gate_tcb()->own_users ||
	    gate_copy_in(&len, user_ptr(r->a[4]), sizeof(len)) || len < (s32)sizeof(cred) ||
	    gate_copy_in(&cred, user_ptr(r->a[3]), sizeof(cred)) || !cred.pid)
		return ret;
	ids_of(&cred, EFFECTIVE);
	return gate_tcb()->one_id && gate_copy_out(user_ptr(r->a[3]), &cred, sizeof(cred)) ? -EFAULT : 0;
}

/* The address of the next SCM_CREDENTIALS in *pos .. end; 0: there is no more, or the rest is malformed. */
static u64 next_cred(u64 *pos, u64 end)
{
	struct host_cmsghdr cmsg;
	u64 at;

	while (*pos < end && end - *pos >= sizeof(cmsg)) {
		at = *pos;
		if (gate_copy_in(&cmsg, user_ptr(at), sizeof(cmsg)) || cmsg.len < sizeof(cmsg) || cmsg.len > end - at)
			return 0;
		*pos = at + ((cmsg.len + 7) & ~7ull);
		if (cmsg.level == SOL_SOCKET && cmsg.type == SCM_CREDENTIALS &&
		    cmsg.len >= sizeof(cmsg) + sizeof(struct ucred))
			return at + sizeof(cmsg);
	}
	return 0;
}

/* The host has received a message into the program's memory. */
static void received(u64 user_msg)
{
	struct host_msghdr msg;
	struct ucred cred;
	u64 pos, end, at;

	if (gate_copy_in(&msg, user_ptr(user_msg), sizeof(msg)) || !msg.control)
		return;
	pos = (u64)msg.control;
	end = pos + msg.controllen;
	while ((at = next_cred(&pos, end))) {
		if (gate_copy_in(&cred, user_ptr(at), sizeof(cred)) || !cred.pid)
			continue;
		ids_of(&cred, REAL);
		if (gate_tcb()->one_id)
			gate_copy_out(user_ptr(at), &cred, sizeof(cred));
	}
}

/* recvmsg() and recvmmsg() */
long sim_receives(struct gate_regs *r, gate_handler otherwise)
{
	long i, ret = sim_by_host(r, otherwise, POLLIN);

	if (ret < 0 || fd_is_node(r->a[0]) || gate_tcb()->own_users)
		return ret;
	if (r->nr == __NR_recvmsg)
		received(r->a[1]);
	for (i = 0; r->nr == __NR_recvmmsg && i < ret; i++)
		received(r->a[1] + i * MMSG_BYTES);
	return ret;
}

/* May the program say that it is that? As Linux's scm_check_creds(). Its own ids only: the receiver gets those of its task. */
static bool may_say(const struct ucred *cred)
{
	u32 uid[3] = { 0 }, gid[3] = { 0 };
	bool other = cred->pid != host_syscall0(__NR_getpid);

	image_call3(__NR_getresuid, &uid[0], &uid[1], &uid[2]);
	image_call3(__NR_getresgid, &gid[0], &gid[1], &gid[2]);
	if (sim_ids_capable(CAP_SYS_ADMIN) && other)
		return true;
	return !other && (cred->uid == uid[0] || cred->uid == uid[1] || cred->uid == uid[2]) &&
	       (cred->gid == gid[0] || cred->gid == gid[1] || cred->gid == gid[2]);
}

static bool says_ids(u64 user_msg)
{
	struct host_msghdr msg;
	u64 pos;

	if (gate_copy_in(&msg, user_ptr(user_msg), sizeof(msg)) || !msg.control || msg.controllen > CONTROL_MAX)
		return false;
	pos = (u64)msg.control;
	return next_cred(&pos, pos + msg.controllen);
}

/* Sends the message with a copy of its control data, whose ids are the host's. */
static long send_ids(struct gate_regs *r, gate_handler sendmsg)
{
	struct gate_regs own = *r;
	struct host_msghdr msg;
	struct ucred cred;
	u64 pos, end, at;
	void *control;
	long ret = 0;

	if (gate_copy_in(&msg, user_ptr(r->a[1]), sizeof(msg)))
		return -EFAULT;
	control = gate_alloc(msg.controllen);
	if (!control)
		return -ENOMEM;
	if (gate_copy_in(control, msg.control, msg.controllen))
		ret = -EFAULT;
	msg.control = control;
	pos = (u64)control;
	end = pos + msg.controllen;
	while (!ret && (at = next_cred(&pos, end))) {
		memcpy(&cred, (void *)at, sizeof(cred));
		if (!may_say(&cred)) {
			ret = -EPERM;
		} else if (gate_tcb()->one_id) {
			cred.uid = cred.gid = 0;
			memcpy((void *)at, &cred, sizeof(cred));
		}
	}
	own.a[1] = (u64)&msg;
	/* Of root's simulation the host knows the ids, and what root may say. */
	if (!gate_tcb()->one_id)
		ret = sim_by_host(r, sendmsg, POLLOUT);
	else if (!ret)
		ret = sim_by_host(&own, sendmsg, POLLOUT);
	gate_free(control);
	return ret;
}

/* sendmsg() and sendmmsg() */
long sim_sends(struct gate_regs *r, gate_handler otherwise)
{
	u32 i, len, n = r->a[2] < UIO_MAXIOV ? r->a[2] : UIO_MAXIOV;
	struct gate_regs one = { .nr = __NR_sendmsg, .a = { r->a[0], r->a[1], r->a[3] } };
	bool many = r->nr == __NR_sendmmsg, says = false;
	long ret = 0;

	for (i = 0; i < (many ? n : 1) && !says; i++)
		says = says_ids(r->a[1] + i * MMSG_BYTES);
	if (likely(!says) || fd_is_node(r->a[0]) || gate_tcb()->own_users)
		return sim_by_host(r, otherwise, POLLOUT);
	if (!many)
		return send_ids(r, otherwise);
	for (i = 0; i < n; i++, one.a[1] += MMSG_BYTES) {
		ret = says_ids(one.a[1]) ? send_ids(&one, do_sendmsg) : sim_by_host(&one, do_sendmsg, POLLOUT);
		if (ret < 0)
			break;
		len = ret;
		ret = gate_copy_out(user_ptr(one.a[1] + MMSG_LEN), &len, sizeof(len));
		if (ret)
			break;
	}
	return i ? i : ret;
}
