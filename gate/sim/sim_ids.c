// SPDX-License-Identifier: GPL-2.0
/*
 * sim_ids.c - users and groups in virtual time
 *
 * Theory of operation
 * -------------------
 * The node's kernel has a program's ids and capabilities, as credentials of its task (process/cred.c). So the calls that ask for ids, groups
 * and capabilities are the node's for everybody, and a run is the same whoever has started it.
 *
 * For root the host follows. An ordinary user has one number there: the user namespace of the simulation maps root of the
 * simulation to it, and no other (tcb->one_id). The host would refuse every other id. So there the node alone makes set*id(), setgroups(),
 * capset() and the like (cred_prctl() in process/cred.c). Linux's rules apply as ever: who has given up root may not bind port 80. On the host the process stays what it was:
 * it may do with files what the user may.
 *
 * Files have the user's number, or one that is not mapped. A chown() to an id of the simulation succeeds where Linux would let it, and
 * changes nothing. stat() says that a file of the user's is of who asks, and that all other files are root's. Files of the node
 * have their true owner.
 *
 * Each of these calls asks the node for the same, whoever has started the simulation, since a call of the node takes virtual time.
 */
#include "internal.h"
#include "policy.h"
#include <linux/auxvec.h>
#include <linux/capability.h>
#include <linux/stat.h>

#define NO_ID		0xffffffffu
#define OVERFLOW_ID	65534	/* what stat() shows of an id that is not mapped */

#define GROUPS_FEW	64
#define GROUPS_MAX	65536	/* NGROUPS_MAX */
#define MAP_BYTES	256	/* a map of this many lines is not "one id" in any case */

/* "0 ID 1": root of the namespace is ID outside, which is not root. */
static bool is_one_id(const char *map)
{
	u64 word[3];
	u32 i;

	for (i = 0; i < 3; i++) {
		while (*map == ' ')
			map++;
		word[i] = gate_strtou(map, 10, &map);
	}
	return !word[0] && word[1] && word[2] == 1 && map[0] == '\n' && !map[1];
}

static void look_at_map(void)
{
	char own[MAP_BYTES], first[MAP_BYTES];
	long n = read_proc("/proc/self/uid_map", own, sizeof(own));

	if (n < 0)
		return;
	gate_tcb()->one_id = is_one_id(own);
	/* From another user namespace the keeper's map looks different. */
	if (read_proc("/proc/1/uid_map", first, sizeof(first)) >= 0 && strcmp(own, first))
		sim_ids_nested(gate_tcb());
}

/* The program starts. After exec the host says who it is there; the node knows better. */
void sim_ids_start(u64 *auxv, bool after)
{
	struct gate_tcb *tcb = gate_tcb();
	u32 uid[3] = { 0 }, gid[3] = { 0 };

	look_at_map();
	if (tcb->own_users)
		return;
	if (after) {
		image_call3(__NR_getresuid, &uid[0], &uid[1], &uid[2]);
		image_call3(__NR_getresgid, &gid[0], &gid[1], &gid[2]);
	}
	tcb->node_uid = uid[1];
	tcb->node_gid = gid[1];
	if (!tcb->one_id)
		return;
	for (; auxv[0] != AT_NULL; auxv += 2) {
		switch (auxv[0]) {
		case AT_UID:
			auxv[1] = uid[0];
			break;
		case AT_EUID:
			auxv[1] = uid[1];
			break;
		case AT_GID:
			auxv[1] = gid[0];
			break;
		case AT_EGID:
			auxv[1] = gid[1];
			break;
		}
	}
}

/* get*id(), getgroups(), capget() */
long sim_getid(struct gate_regs *r, gate_handler otherwise)
{
	return gate_tcb()->own_users ? otherwise(r) : image_pass(r);
}

static void note(u32 *owner, u64 id)
{
	if ((u32)id != NO_ID)
		*owner = id;
}

/*
 * capset() of root's simulation. Programs see all capabilities, and the host may have granted fewer (a container's root): of those that
 * the program keeps, it gets what it has.
 */
static void host_keeps(const struct gate_regs *r)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct kept[2] = { 0 }, has[2];
	long ret = host_syscall2(__NR_capget, (long)&head, (long)has);
	u32 i, words;

	if (ret || gate_copy_in(&head, user_ptr(r->a[0]), sizeof(head)))
		return;
	words = head.version == _LINUX_CAPABILITY_VERSION_1 ? 1 : 2;
	if (gate_copy_in(kept, user_ptr(r->a[1]), words * sizeof(kept[0])))
		return;
	for (i = 0; i < 2; i++) {
		kept[i].permitted &= has[i].permitted;
		kept[i].effective &= kept[i].permitted;
		kept[i].inheritable &= has[i].permitted | has[i].inheritable;
	}
	head = (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
	ret = host_syscall2(__NR_capset, (long)&head, (long)kept);
	if (ret)
		gate_warn("credentials: capset() was done on the node, but not on the host (error %ld)", -ret);
}

/* set*id(), setgroups(), capset() */
long sim_setid(struct gate_regs *r, gate_handler otherwise)
{
	struct gate_tcb *tcb = gate_tcb();
	bool of_node = tcb->one_id || (r->nr == __NR_capset && !tcb->own_users);
	long ret = of_node ? image_pass(r) : otherwise(r);

	if (ret < 0)
		return ret;
	if (r->nr == __NR_capset && of_node && !tcb->one_id)
		host_keeps(r);
	switch (r->nr) {
	case __NR_setuid:
		note(&tcb->node_uid, r->a[0]);
		break;
	case __NR_setreuid:
	case __NR_setresuid:
		note(&tcb->node_uid, r->a[1]);
		break;
	case __NR_setgid:
		note(&tcb->node_gid, r->a[0]);
		break;
	case __NR_setregid:
	case __NR_setresgid:
		note(&tcb->node_gid, r->a[1]);
		break;
	/* These return the number before, whether they have changed it or not. */
	case __NR_setfsuid:
		note(&tcb->node_uid, image_call1(__NR_setfsuid, -1));
		break;
	case __NR_setfsgid:
		note(&tcb->node_gid, image_call1(__NR_setfsgid, -1));
		break;
	}
	return ret;
}

/* Has the task this capability on the node? */
bool sim_ids_capable(u32 cap)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	image_call2(__NR_capget, &head, data);
	return data[cap / 32].effective >> cap % 32 & 1;
}

/* -ENOMEM, or whether the task is in the group. */
static long in_group(u32 gid)
{
	u32 few[GROUPS_FEW], *groups = few;
	long i, n = image_call2(__NR_getgroups, GROUPS_FEW, few), ret = gid == gate_tcb()->node_gid;

	if (n == -EINVAL) {
		groups = gate_alloc(GROUPS_MAX * sizeof(*groups));
		if (!groups)
			return -ENOMEM;
		n = image_call2(__NR_getgroups, GROUPS_MAX, groups);
	}
	for (i = 0; i < n; i++)
		ret |= groups[i] == gid;
	if (groups != few)
		gate_free(groups);
	return ret;
}

static bool is_of_node(s32 dirfd, u64 path)
{
	char buf[PATH_BUF];

	return path ? path_owner(dirfd, path, buf) != PATH_HOST : fd_is_node(dirfd);
}

/* The host's stat() for what the chown() is about. */
static long look_at_file(const struct gate_regs *r, struct stat *st)
{
	switch (r->nr) {
	case __NR_fchown:
		return host_syscall2(__NR_fstat, r->a[0], (long)st);
	case __NR_fchownat:
		return host_syscall4(__NR_newfstatat, r->a[0], r->a[1], (long)st, r->a[4]);
	}
	return host_syscall4(__NR_newfstatat, AT_FDCWD, r->a[0], (long)st, r->nr == __NR_lchown ? AT_SYMLINK_NOFOLLOW : 0);
}

/* chown() and its relatives: the host refuses ids that it does not map. */
long sim_chown(struct gate_regs *r, gate_handler otherwise)
{
	bool at = r->nr == __NR_fchownat, capable;
	u32 ids = at ? 2 : 1, uid = r->a[ids], gid = r->a[ids + 1];
	struct gate_tcb *tcb = gate_tcb();
	struct gate_regs own = *r;
	struct stat st;
	long member, ret;

	if (tcb->own_users)
		return otherwise(r);
	capable = sim_ids_capable(CAP_CHOWN);
	member = in_group(gid);
	if (!tcb->one_id || is_of_node(at || r->nr == __NR_fchown ? (s32)r->a[0] : AT_FDCWD,
				       r->nr == __NR_fchown ? 0 : r->a[at ? 1 : 0]))
		return otherwise(r);
	if (member < 0)
		return member;
	if (!capable && (uid != NO_ID || gid != NO_ID)) {
		ret = look_at_file(r, &st);
		if (ret)
			return ret;
		if (st.st_uid || (uid != NO_ID && uid != tcb->node_uid) || (gid != NO_ID && !member))
			return -EPERM;
	}
	own.a[ids] = own.a[ids + 1] = NO_ID;
	return otherwise(&own);
}

static u32 owner_of(u32 id, u32 self)
{
	return id == OVERFLOW_ID ? 0 : id ? id : self;
}

/* What stat() or statx() has said of a file. */
void sim_ids_of_file(const struct gate_regs *r, u64 user)
{
	bool at = r->nr == __NR_newfstatat || r->nr == __NR_statx, fd = r->nr == __NR_fstat;
	struct gate_tcb *tcb = gate_tcb();
	struct statx stx;
	struct stat st;

	if (likely(!tcb->one_id) || is_of_node(at || fd ? (s32)r->a[0] : AT_FDCWD, fd ? 0 : r->a[at ? 1 : 0]))
		return;
	if (r->nr == __NR_statx) {
		if (gate_copy_in(&stx, user_ptr(user), sizeof(stx)))
			return;
		stx.stx_uid = owner_of(stx.stx_uid, tcb->node_uid);
		stx.stx_gid = owner_of(stx.stx_gid, tcb->node_gid);
		gate_copy_out(user_ptr(user), &stx, sizeof(stx));
	} else {
		if (gate_copy_in(&st, user_ptr(user), sizeof(st)))
			return;
		st.st_uid = owner_of(st.st_uid, tcb->node_uid);
		st.st_gid = owner_of(st.st_gid, tcb->node_gid);
		gate_copy_out(user_ptr(user), &st, sizeof(st));
	}
}
