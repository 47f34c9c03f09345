// SPDX-License-Identifier: GPL-2.0
/* A network namespace is a thread's: another thread of the process stays where it was. */
#include "rtnl.h"
#include <sys/syscall.h>

static int go[2], done[2];
static char path[64];

static void *other(void *arg)
{
	int before = own_netns(), own;
	char c;

	(void)arg;
	snprintf(path, sizeof(path), "/proc/%d/task/%ld/ns/net", getpid(), syscall(SYS_gettid));
	must(unshare(CLONE_NEWNET));
	own = must(open("/proc/thread-self/ns/net", O_RDONLY));
	say("thread: before as now %d", same_netns(before, own));
	say("thread: self is the leader's %d", same_file("/proc/self/ns/net", "/proc/thread-self/ns/net"));
	say("thread: by its number %d", same_file(path, "/proc/thread-self/ns/net"));
	say("thread: links %s", links());
	must(write(done[1], "x", 1));
	must(read(go[0], &c, 1));
	return NULL;
}

int main(void)
{
	pthread_t t;
	char c;
	int fd;

	must(pipe(go));
	must(pipe(done));
	must(rtnl_veth("va", "vb", 0, 0));
	t = spawn(other, NULL);
	must(read(done[0], &c, 1));
	say("main: links %s", links());
	say("main: the thread's %d", same_file("/proc/self/ns/net", path));
	fd = must(open(path, O_RDONLY));
	T(rtnl_move("vb", IFLA_NET_NS_FD, fd));
	say("main: links %s", links());
	T(setns(fd, CLONE_NEWNET));
	say("main: links %s", links());
	must(write(go[1], "x", 1));
	join(t);
	return 0;
}
