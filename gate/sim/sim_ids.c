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
 * simulation to it, and no other (gate.one_id). The host would refuse every other id. So there the node alone makes set*id(), setgroups(),
 * capset() and the like (cred_prctl() in process/cred.c). Linux's rules apply as ever: who has given up root may not bind port 80. On the host the process stays what it was:
 * it may do with files what the user may.
 *
 * Files have the user's number, or one that is not mapped. A chown() to an id of the simulation succeeds where Linux would let it, and
 * changes nothing. stat() says that a file of the user's is of who asks, and that all other files are root's.
 */
#include "internal.h"
#include "policy.h"
#include <linux/auxvec.h>
#include <linux/stat.h>

#define NO_ID		0xffffffffu
#define OVERFLOW_ID	65534	/* what stat() shows of an id that is not mapped */

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

/* Within a user namespace that a program of the simulation has made, the host's rules apply, and its answers. */
void sim_ids_nested(void)
{
	gate.own_users = true;
	gate.one_id = false;
}

static void look_at_map(void)
{
	char own[MAP_BYTES], first[MAP_BYTES];
	long n = read_proc("/proc/self/uid_map", own, sizeof(own));

	if (n < 0)
		return;
	gate.one_id = is_one_id(own);
	/* From another user namespace the keeper's map looks different. */
	if (read_proc("/proc/1/uid_map", first, sizeof(first)) >= 0 && strcmp(own, first))
		sim_ids_nested();
}

/* The program starts. After exec the host says who it is there; the node knows better. */
void sim_ids_start(u64 *auxv, bool after)
{
	struct gate_tcb *tcb = gate_tcb();
	u32 uid[3] = { 0 }, gid[3] = { 0 };

	look_at_map();
	if (gate.own_users)
		return;
	if (after) {
		image_call3(__NR_getresuid, &uid[0], &uid[1], &uid[2]);
		image_call3(__NR_getresgid, &gid[0], &gid[1], &gid[2]);
	}
	tcb->node_uid = uid[1];
	tcb->node_gid = gid[1];
	if (!gate.one_id)
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
	return gate.own_users ? otherwise(r) : image_pass(r);
}

static void note(u32 *owner, u64 id)
{
	if ((u32)id != NO_ID)
		*owner = id;
}

/* set*id(), setgroups(), capset() */
long sim_setid(struct gate_regs *r, gate_handler otherwise)
{
	struct gate_tcb *tcb = gate_tcb();
	long ret = gate.one_id ? image_pass(r) : otherwise(r);

	if (ret < 0)
		return ret;
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
	}
	return ret;
}

static bool is_foreign(u64 id)
{
	return (u32)id != NO_ID && id;
}

/* chown() and its relatives: the host refuses ids that it does not map. */
long sim_chown(struct gate_regs *r, gate_handler otherwise)
{
	u32 at = r->nr == __NR_fchownat ? 2 : 1;
	struct gate_tcb *tcb = gate_tcb();
	struct gate_regs own = *r;

	if (likely(!gate.one_id) || (r->nr == __NR_fchown && fd_is_node(r->a[0])))
		return otherwise(r);
	if (tcb->node_uid && (u32)r->a[at] != NO_ID && (u32)r->a[at] != tcb->node_uid)
		return -EPERM;
	if (is_foreign(r->a[at]))
		own.a[at] = NO_ID;
	if (is_foreign(r->a[at + 1]))
		own.a[at + 1] = NO_ID;
	return otherwise(&own);
}

static u32 owner_of(u32 id, u32 self)
{
	return id == OVERFLOW_ID ? 0 : id ? id : self;
}

/* What stat() or statx() has said of a file. */
void sim_ids_of_file(u64 nr, u64 user)
{
	struct gate_tcb *tcb = gate_tcb();
	struct statx stx;
	struct stat st;

	if (likely(!gate.one_id))
		return;
	if (nr == __NR_statx) {
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
