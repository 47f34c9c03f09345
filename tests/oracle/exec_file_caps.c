// SPDX-License-Identifier: GPL-2.0
/*
 * File capabilities and set-id bits on exec: the former where Linux applies them, the latter where it does not
 * (nosuid, NO_NEW_PRIVS, a user namespace in which the owner has no id).
 */
#include "oracle.h"
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/xattr.h>

#define NOBODY	65534

static char file[64];

static void copy_self(const char *to)
{
	char b[1 << 16];
	int i = must(open("/proc/self/exe", O_RDONLY)), o = must(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755));
	ssize_t n;

	while ((n = must(read(i, b, sizeof(b)))) > 0)
		must(write(o, b, n));
	must(fchmod(o, 0755));
	close(i);
	close(o);
}

static void capabilities(unsigned permitted, unsigned inheritable, bool effective)
{
	struct vfs_cap_data data = {
		.magic_etc = VFS_CAP_REVISION_2 | (effective ? VFS_CAP_FLAGS_EFFECTIVE : 0),
		.data[0] = { permitted, inheritable },
	};

	if (setxattr(file, "security.capability", &data, sizeof(data), 0))
		skip(ename(errno));
}

/* Prints which privileged operations this process can do on its network. */
static void probe(void)
{
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);

	say("  raw socket: %s", fd < 0 ? ename(errno) : "ok");
	close(fd);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in low = { .sin_family = AF_INET, .sin_port = htons(81) };
	say("  port 81: %s", bind(fd, (void *)&low, sizeof(low)) ? ename(errno) : "ok");
	close(fd);
	say("  uid %d, effective %d", getuid(), geteuid());
}

enum { NNP = 1, USERNS = 2, NO_RAW = 4, ROOT = 8, RAISED = 16 };

static void run(const char *what, int how)
{
	int s;

	say("%s:", what);
	fflush(stdout);
	if (!must(fork())) {
		if (how & NO_RAW)
			must(prctl(PR_CAPBSET_DROP, CAP_NET_RAW));
		if (how & RAISED) {
			struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
			struct __user_cap_data_struct caps[2];

			must(syscall(SYS_capget, &head, caps));
			caps[0].inheritable |= 1 << CAP_NET_RAW;
			must(syscall(SYS_capset, &head, caps));
		}
		if (!(how & ROOT)) {
			must(setgroups(0, NULL));
			must(setgid(NOBODY));
			must(setuid(NOBODY));
		}
		if (how & NNP)
			must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		if ((how & USERNS) && unshare(CLONE_NEWUSER))
			skip("no user namespaces");
		execl(file, file, "probe", NULL);
		say("  %s", ename(errno));
		fflush(stdout);
		_exit(1);
	}
	must(wait(&s));
	N(WEXITSTATUS(s));
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/oracle-caps.XXXXXX";
	unsigned raw = 1 << CAP_NET_RAW, bind_low = 1 << CAP_NET_BIND_SERVICE;

	(void)argv;
	if (argc == 2) {
		probe();
		return 0;
	}
	if (geteuid())
		skip("needs root");
	must(mkdtemp(dir) ? 0 : -1);
	must(chmod(dir, 0755));
	snprintf(file, sizeof(file), "%s/probe", dir);
	copy_self(file);
	run("no capabilities", 0);
	capabilities(raw, 0, true);
	run("one, effective", 0);
	run("and NO_NEW_PRIVS", NNP);
	run("by root", ROOT);
	capabilities(raw, 0, false);
	run("one, not effective", 0);
	capabilities(raw | bind_low, 0, true);
	run("two", 0);
	capabilities(0, raw, true);
	run("to be inherited", 0);
	run("inherited", RAISED);
	capabilities(raw, 0, true);
	run("in a user namespace", USERNS);
	must(removexattr(file, "security.capability"));

	must(chmod(file, 04755));
	run("set-user-ID, but NO_NEW_PRIVS", NNP);
	run("set-user-ID, but in a user namespace without its owner", USERNS);
	must(chmod(file, 02755));
	run("set-group-ID, but in a user namespace without its owner", USERNS);
	unlink(file);
	if (!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("none", dir, "tmpfs", MS_NOSUID, "mode=755")) {
		copy_self(file);
		must(chmod(file, 06755));
		run("set-ID, but nosuid", 0);
		must(umount2(dir, MNT_DETACH));
	}
	rmdir(dir);
	return 0;
}
