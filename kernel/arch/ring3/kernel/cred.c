// SPDX-License-Identifier: GPL-2.0
/*
 * cred.c - credentials of the node's tasks
 *
 * The gate repeats a program's set*id(), setgroups(), capset() and prctl() here after the host has allowed them, so
 * they are Linux's own calls. This file does what is not a call of the program: exec, and user namespaces, whose
 * mapping is written to a file of the host. So a user namespace of the node is mapped to its parent one to one, and
 * its tasks have the ids that their programs see (IDS).
 */
#include <linux/binfmts.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <asm/ring3.h>
#include "cred.h"

static void map_all(struct uid_gid_map *map)
{
	if (map->nr_extents)
		return;
	/* -1 is not a valid id. */
	map->extent[0] = (struct uid_gid_extent){ .first = 0, .lower_first = 0, .count = ~0U };
	smp_wmb();	/* pairs with map_id_range_down() */
	map->nr_extents = 1;
}

void ring3_map_user_ns(struct task_struct *task)
{
	struct user_namespace *ns = task_cred_xxx(task, user_ns);

	if (ns == &init_user_ns)
		return;
	map_all(&ns->uid_map);
	map_all(&ns->gid_map);
	map_all(&ns->projid_map);
}

/*
 * As unshare(CLONE_NEWUSER). That call fails if the caller shares its memory, and tasks have none here; the host
 * has checked it.
 */
long ring3_sys_newuser(void)
{
	struct cred *cred = NULL;
	int ret;

	ret = unshare_userns(CLONE_NEWUSER, &cred);
	if (!ret)
		ret = set_cred_ucounts(cred);
	if (ret) {
		if (cred)
			put_cred(cred);
		return ret;
	}
	commit_creds(cred);
	ring3_map_user_ns(current);
	return 0;
}

struct ids {
	u32 uid, euid, suid, fsuid, gid, egid, sgid, fsgid;
};

static bool has_ids(const struct cred *cred, const struct ids *ids)
{
	return __kuid_val(cred->uid) == ids->uid && __kuid_val(cred->euid) == ids->euid &&
	       __kuid_val(cred->suid) == ids->suid && __kuid_val(cred->fsuid) == ids->fsuid &&
	       __kgid_val(cred->gid) == ids->gid && __kgid_val(cred->egid) == ids->egid &&
	       __kgid_val(cred->sgid) == ids->sgid && __kgid_val(cred->fsgid) == ids->fsgid;
}

/* Linux's own calls set the ids, from a state in which they are allowed and change nothing else. */
long ring3_sys_ids(u64 uid, u64 suid, u64 gid, u64 sgid)
{
	const struct ids ids = {
		.uid = uid, .euid = uid >> 32, .suid = suid, .fsuid = suid >> 32,
		.gid = gid, .egid = gid >> 32, .sgid = sgid, .fsgid = sgid >> 32,
	};
	kernel_cap_t effective;
	unsigned int securebits;
	struct cred *cred;
	long ret;

	if (current_user_ns() == &init_user_ns || has_ids(current_cred(), &ids))
		return 0;
	cred = prepare_creds();
	if (!cred)
		return -ENOMEM;
	effective = cred->cap_effective;
	securebits = cred->securebits;
	cred->securebits |= SECBIT_NO_SETUID_FIXUP;
	cap_raise(cred->cap_effective, CAP_SETUID);
	cap_raise(cred->cap_effective, CAP_SETGID);
	commit_creds(cred);

	ret = sys_setresgid(ids.gid, ids.egid, ids.sgid);
	if (!ret)
		ret = sys_setresuid(ids.uid, ids.euid, ids.suid);
	if (!ret) {
		sys_setfsgid(ids.fsgid);
		sys_setfsuid(ids.fsuid);
	}

	cred = prepare_creds();
	if (!cred)	/* it keeps the right to choose ids, but only in its own user namespace */
		return -ENOMEM;
	cred->cap_effective = effective;
	cred->securebits = securebits;
	commit_creds(cred);
	return ret;
}

static struct file *plain_file;	/* without set-id bits and capabilities, as the gate's own */

/* Changes the caller's credentials as execve() does. */
long ring3_exec_creds(void)
{
	struct linux_binprm *bprm = kzalloc(sizeof(*bprm), GFP_KERNEL);
	int ret;

	if (!bprm)
		return -ENOMEM;
	bprm->filename = "a program";
	bprm->cred = prepare_exec_creds();
	if (!bprm->cred) {
		kfree(bprm);
		return -ENOMEM;
	}
	if (task_no_new_privs(current))
		bprm->unsafe |= LSM_UNSAFE_NO_NEW_PRIVS;
	ret = security_bprm_creds_from_file(bprm, plain_file);
	if (ret)
		abort_creds(bprm->cred);
	else
		commit_creds(bprm->cred);
	kfree(bprm);
	return ret;
}

/* bprm_caps_from_vfs_caps() and the following part of cap_bprm_creds_from_file(), for a file of the host. */
long ring3_sys_file_caps(u64 permitted, u64 inheritable, bool effective)
{
	const struct cred *old = current_cred();
	kuid_t root = make_kuid(old->user_ns, 0);
	kernel_cap_t all;
	struct cred *cred;

	if (uid_eq(old->euid, root) || uid_eq(old->uid, root) || task_no_new_privs(current))
		return 0;
	cred = prepare_creds();
	if (!cred)
		return -ENOMEM;
	all.val = permitted & CAP_VALID_MASK;
	cred->cap_permitted.val = (cred->cap_bset.val & permitted) | (cred->cap_inheritable.val & inheritable);
	if (effective && !cap_issubset(all, cred->cap_permitted)) {
		abort_creds(cred);
		return -EPERM;
	}
	cap_clear(cred->cap_ambient);
	cred->cap_effective = effective ? cred->cap_permitted : CAP_EMPTY_SET;
	commit_creds(cred);
	return 0;
}

static int __init plain_file_init(void)
{
	plain_file = filp_open("/", O_RDONLY | O_DIRECTORY, 0);
	return PTR_ERR_OR_ZERO(plain_file);
}
late_initcall(plain_file_init);
