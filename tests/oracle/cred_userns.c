// SPDX-License-Identifier: GPL-2.0
/* A user namespace: all rights over the networks made in it, none over those outside. */
#include "cred.h"

static int told[2], asked[2];

static void tell(int *pipe)
{
	must(write(pipe[1], "", 1));
}

static void wait_told(int *pipe)
{
	char c;

	must(read(pipe[0], &c, 1));
}

static void write_file(const char *path, const char *text)
{
	int fd = must(open(path, O_WRONLY));

	must(write(fd, text, strlen(text)));
	close(fd);
}

static void map(pid_t pid, const char *uids, const char *gids, bool groups)
{
	char path[64];

	if (!groups) {
		snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
		write_file(path, "deny");
	}
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	write_file(path, uids);
	snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	write_file(path, gids);
}

static void as_nobody(void)
{
	must(setgroups(0, NULL));
	must(setresgid(NOBODY, NOBODY, NOBODY));
	must(setresuid(NOBODY, NOBODY, NOBODY));
	must(prctl(PR_SET_DUMPABLE, 1));	/* or /proc/self would be root's */
}

static void unprivileged(void)
{
	as_nobody();
	T(unshare(CLONE_NEWNET));
	if (unshare(CLONE_NEWUSER))
		skip("no user namespaces for ordinary users");
	rights("no mapping yet");
	map(getpid(), "0 65534 1", "0 65534 1", false);
	N(getuid());
	rights("root there");
	must(unshare(CLONE_NEWNET));
	rights("root there, own network");
	T(setuid(5));
	must(caps_set(caps_permitted() & ~CAP(NET_RAW), caps_permitted() & ~CAP(NET_RAW), 0));
	rights("without NET_RAW");
	IN_CHILD(rights("child"));
	must(unshare(CLONE_NEWUSER));
	rights("in another below it");
}

static void both_at_once(void)
{
	as_nobody();
	must(unshare(CLONE_NEWUSER | CLONE_NEWNET));
	rights("both at once");
}

/* Run again by exec: without a mapping all rights are lost, with one root keeps them. */
static void over_exec(bool mapped)
{
	as_nobody();
	must(unshare(CLONE_NEWUSER | CLONE_NEWNET));
	if (mapped)
		map(getpid(), "0 65534 1", "0 65534 1", false);
	execl("/proc/self/exe", "cred_userns", mapped ? "exec, mapped" : "exec, not mapped", NULL);
	exit(1);
}

/* A process with many ids in its user namespace can become another user there. */
static void mapped_by_root(void)
{
	pid_t pid;
	int status;

	must(pipe(told));
	must(pipe(asked));
	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		must(unshare(CLONE_NEWUSER | CLONE_NEWNET));
		tell(told);
		wait_told(asked);
		must(setresgid(0, 0, 0));
		must(setresuid(0, 0, 0));
		rights("root of many");
		must(seteuid(77));
		rights("seteuid there");
		must(seteuid(0));
		must(setuid(77));
		rights("setuid there");
		exit(0);
	}
	wait_told(told);
	map(pid, "0 100000 1000", "0 100000 1000", true);
	tell(asked);
	must(waitpid(pid, &status, 0));
	N(status);
}

static int cloned(void *arg)
{
	(void)arg;
	tell(told);
	wait_told(asked);
	rights("cloned");
	return 0;
}

static char stack[65536] __attribute__((aligned(64)));

static void entered(void)
{
	char path[64];
	int user, net, status;
	pid_t pid;

	must(pipe(told));
	must(pipe(asked));
	fflush(stdout);
	pid = must(clone(cloned, stack + sizeof(stack), CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, NULL));
	wait_told(told);
	map(pid, "0 0 1", "0 0 1", true);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	user = must(open(path, O_RDONLY));
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	net = must(open(path, O_RDONLY));
	must(setns(user, CLONE_NEWUSER));
	rights("entered, outside's network");
	must(setns(net, CLONE_NEWNET));
	rights("entered, with its network");
	T(setns(user, CLONE_NEWUSER));
	tell(asked);
	must(waitpid(pid, &status, 0));
	N(status);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		rights(argv[1]);
		return 0;
	}
	need_root();
	IN_CHILD(unprivileged());
	IN_CHILD(both_at_once());
	IN_CHILD(over_exec(false));
	IN_CHILD(over_exec(true));
	IN_CHILD(mapped_by_root());
	IN_CHILD(entered());
	rights("root");
	return 0;
}
