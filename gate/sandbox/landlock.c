// SPDX-License-Identifier: GPL-2.0
/*
 * landlock.c - sandboxes that a program puts itself into (Documentation/userspace-api/landlock.rst)
 *
 * The host enforces them. Its rules for TCP ports would never see a socket of the node, and a rule that is accepted
 * but not enforced is worse than none. So the gate behaves like a kernel from before these rules, for which
 * programs check first if they can do without. A program that a sandboxed program executes begins with the gate's
 * file, so the gate adds a rule to each ruleset that allows it.
 */
#include "policy.h"

#define ABI_WITHOUT_NET		3
#define GET_VERSION		1U	/* LANDLOCK_CREATE_RULESET_VERSION */
#define PATH_BENEATH		1	/* LANDLOCK_RULE_PATH_BENEATH */
#define FS_EXECUTE		(1UL << 0)
#define FS_READ_FILE		(1UL << 2)

struct ruleset_attr {		/* struct landlock_ruleset_attr, as far as it concerns us */
	u64 fs, net;
};

struct path_beneath {		/* struct landlock_path_beneath_attr */
	u64 allowed;
	s32 parent;
} __attribute__((packed));

long do_landlock_create_ruleset(struct gate_regs *r)
{
	struct ruleset_attr attr = { };
	u64 size = r->a[1];
	long fd;

	if (r->a[2]) {
		long version = gate_host_regs(r);

		return r->a[2] == GET_VERSION && version > ABI_WITHOUT_NET ? ABI_WITHOUT_NET : version;
	}
	if (size > GATE_PAGE)
		return -E2BIG;
	if (size > sizeof(attr))
		size = sizeof(attr);
	if (r->a[0] && gate_copy_in(&attr, (void *)r->a[0], size))
		return -EFAULT;
	if (attr.net)
		return -E2BIG;
	fd = gate_host_regs(r);
	if (fd >= 0 && (attr.fs & (FS_EXECUTE | FS_READ_FILE))) {
		struct path_beneath gate = {
			.allowed = attr.fs & (FS_EXECUTE | FS_READ_FILE), .parent = gate_fd(GATE_FD_SELF),
		};

		host_syscall4(__NR_landlock_add_rule, fd, PATH_BENEATH, (long)&gate, 0);
	}
	return fd;
}
