// SPDX-License-Identifier: GPL-2.0
/*
 * cred.c - credentials on both sides: set*id(), capabilities and user namespaces
 *
 * Theory of operation
 * -------------------
 * A program that joins a node is root there, whatever its uid on the host. From then on the node follows the host:
 * a call that changed credentials on the host is repeated by the node's task. So Linux's own rules apply on both
 * sides, also to threads (libc's setuid() has each of them make the call), children and after exec (kernel/cred.c).
 *
 * A call that changed nothing on the host is not repeated. An ordinary user's daemon may set its own uid, or drop
 * capabilities that it does not have: it stays root on its node.
 *
 * User namespaces: a new one on the host is a new one on the node, which owns the network namespaces that are made
 * in it. Its mapping of ids is the host's: on the node the mapping is one to one, and the task gets the ids that
 * the program sees whenever they matter (cred_align()).
 */
#include "policy.h"
#include "internal.h"

#include <linux/auxvec.h>
#include <linux/capability.h>
#include <linux/prctl.h>

struct ids {
	u32 uid[4], gid[4];	/* real, effective, saved, file system */
};

static void ids_read(struct ids *ids)
{
	host_syscall3(__NR_getresuid, (long)&ids->uid[0], (long)&ids->uid[1], (long)&ids->uid[2]);
	host_syscall3(__NR_getresgid, (long)&ids->gid[0], (long)&ids->gid[1], (long)&ids->gid[2]);
	ids->uid[3] = host_syscall1(__NR_setfsuid, -1);
	ids->gid[3] = host_syscall1(__NR_setfsgid, -1);
}

static u64 two(const u32 *ids)
{
	return ids[0] | (u64)ids[1] << 32;
}

static void ids_tell(const struct ids *ids)
{
	image_call4(RING3_NR_IDS, two(ids->uid), two(ids->uid + 2), two(ids->gid),
		    two(ids->gid + 2));
}

void cred_align(const u64 *auxv)
{
	struct ids ids = { 0 };

	for (; auxv[0] != AT_NULL; auxv += 2) {
		switch (auxv[0]) {
		case AT_UID:
			ids.uid[0] = auxv[1];
			break;
		case AT_EUID:
			ids.uid[1] = ids.uid[2] = ids.uid[3] = auxv[1];
			break;
		case AT_GID:
			ids.gid[0] = auxv[1];
			break;
		case AT_EGID:
			ids.gid[1] = ids.gid[2] = ids.gid[3] = auxv[1];
			break;
		}
	}
	ids_tell(&ids);
}

/* The host has made the call. If the node can't follow, its task has more rights than the program expects. */
static void repeat(const struct gate_regs *r)
{
	long ret = image_pass(r);

	if (ret < 0)
		gate_warn("credentials: call %lu was done on the host, but not on the node (error %ld)",
			  r->nr, -ret);
}

/* set*id(), setgroups() */
long do_setid(struct gate_regs *r)
{
	struct ids before, after;
	long ret;

	ids_read(&before);
	ret = gate_host_regs(r);
	if (ret < 0)
		return ret;
	ids_read(&after);
	if (r->nr != __NR_setgroups && !memcmp(&before, &after, sizeof(before)))
		return ret;
	ids_tell(&before);
	repeat(r);
	return ret;
}

struct caps {
	struct __user_cap_data_struct word[2];
};

static long caps_read(struct caps *caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return host_syscall2(__NR_capget, (long)&head, (long)caps->word);
}

/*
 * The node's task may have more capabilities than the host has granted: a program that drops some keeps those that
 * it names.
 */
long do_capset(struct gate_regs *r)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct caps before, after, node;
	struct gate_regs again = *r;
	long ret;
	int i;

	ret = caps_read(&before);
	if (ret < 0)
		return ret;
	ret = gate_host_regs(r);
	if (ret < 0)
		return ret;
	ret = caps_read(&after);
	if (ret < 0)
		return ret;
	if (!memcmp(&before, &after, sizeof(before)))
		return 0;
	ret = image_call2(__NR_capget, &head, node.word);
	for (i = 0; i < 2 && !ret; i++) {
		u32 most = node.word[i].permitted;

		node.word[i].permitted = after.word[i].permitted & most;
		node.word[i].effective = after.word[i].effective & most;
		node.word[i].inheritable = after.word[i].inheritable & (most | node.word[i].inheritable);
	}
	head = (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
	again.a[0] = (u64)&head;
	again.a[1] = (u64)node.word;
	repeat(&again);
	return 0;
}

bool cred_prctl_is(u64 option)
{
	if (gate_tcb()->one_id && (option == PR_CAPBSET_READ || option == PR_GET_SECUREBITS || option == PR_GET_KEEPCAPS))
		return true;
	return option == PR_CAPBSET_DROP || option == PR_SET_SECUREBITS ||
	       option == PR_SET_KEEPCAPS || option == PR_SET_NO_NEW_PRIVS ||
	       option == PR_CAP_AMBIENT;
}

long cred_prctl(struct gate_regs *r)
{
	long ret;

	/* The process's capabilities on the host say nothing of its task on the node: sim_ids.c. */
	if (gate_tcb()->one_id && r->a[0] != PR_SET_NO_NEW_PRIVS)
		return image_pass(r);
	ret = gate_host_regs(r);
	if (ret < 0 || (r->a[0] == PR_CAP_AMBIENT && r->a[1] == PR_CAP_AMBIENT_IS_SET))
		return ret;
	repeat(r);
	return ret;
}

/*
 * Set-id bits count only if both ids of the file are mapped in the caller's user namespace. An unmapped id looks
 * like the overflow id, which the mapping does not contain either.
 */
static bool is_mapped(const char *map, u32 id)
{
	char text[1024];
	const char *line;
	long n = read_proc(map, text, sizeof(text));

	if (n < 0)
		return true;
	for (line = text; *line; line += *line == '\n') {	/* inside, outside, count */
		u64 word[3];
		u32 i;

		for (i = 0; i < 3; i++) {
			while (*line == ' ')
				line++;
			word[i] = gate_strtou(line, 10, &line);
		}
		if (id >= word[0] && id - word[0] < word[2])
			return true;
		if (*line && *line != '\n')
			return true;
	}
	return n == sizeof(text) - 1;	/* the file may be longer */
}

bool cred_host_ignores_set_id(const struct stat *st)
{
	return host_syscall5(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	       !is_mapped("/proc/self/uid_map", st->st_uid) || !is_mapped("/proc/self/gid_map", st->st_gid);
}

/*
 * The host has ignored the file capabilities of the program, since it executed the gate's file. On the node they
 * count, as on Linux.
 */
void cred_of_file(int fd)
{
	struct vfs_ns_cap_data data;
	struct host_statfs fs;
	u64 permitted, inheritable;
	long n = host_syscall4(__NR_fgetxattr, fd, (long)"security.capability", (long)&data, sizeof(data));

	/*
	 * Capabilities of another user namespace (revision 3, with its root) do not apply; those of this one are
	 * shown as revision 2.
	 */
	if (likely(n != XATTR_CAPS_SZ_2) || (data.magic_etc & VFS_CAP_REVISION_MASK) != VFS_CAP_REVISION_2)
		return;
	if (host_syscall2(__NR_fstatfs, fd, (long)&fs) || (fs.flags & HOST_NOSUID))
		return;
	permitted = data.data[0].permitted | (u64)data.data[1].permitted << 32;
	inheritable = data.data[0].inheritable | (u64)data.data[1].inheritable << 32;
	n = image_call3(RING3_NR_FILE_CAPS, permitted, inheritable, data.magic_etc & VFS_CAP_FLAGS_EFFECTIVE);
	if (n < 0)	/* Linux refuses to execute a file that can't get all its capabilities; here the program has already begun */
		gate_warn("the program runs without its file's capabilities (error %ld)", -n);
}

static long user_ns_name(s32 pid, char *name, u32 size)
{
	char path[40];

	gate_format(path, sizeof(path), "/proc/%d/ns/user", pid);
	return proc_link(path, name, size);
}

/*
 * The host has moved this process into another user namespace. If another process of the node is in it, the node
 * has a matching one. If not, it is unknown to the node, and the task has no rights over the node in it.
 */
long cred_follow_user_ns(void)
{
	char ours[32], theirs[32], path[40];
	s32 self = host_syscall0(__NR_getpid);
	struct ring3_proc *proc;
	long fd, ret;
	u32 i = 0;

	sim_ids_nested(gate_tcb());
	if (user_ns_name(self, ours, sizeof(ours)) <= 0)
		return image_call0(RING3_NR_NEWUSER);
	while ((proc = proc_next(&i))) {
		s32 pid = READ_ONCE(proc->pid);

		if (pid == self || user_ns_name(pid, theirs, sizeof(theirs)) <= 0 || strcmp(ours, theirs))
			continue;
		gate_format(path, sizeof(path), "/proc/%d/ns/user", pid);
		fd = fd_create(true, __NR_openat, AT_FDCWD, (u64)path, O_RDONLY | O_CLOEXEC, 0);
		if (fd < 0)
			continue;
		ret = image_call2(__NR_setns, fd, CLONE_NEWUSER);
		fd_drop(fd);
		if (!ret)
			return 0;
	}
	return image_call0(RING3_NR_NEWUSER);
}
