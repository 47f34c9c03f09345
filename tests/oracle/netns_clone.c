// SPDX-License-Identifier: GPL-2.0
/* clone(CLONE_NEWNET), children by their pids, and the remains of a namespace that ends. */
#include "rtnl.h"
#include <sys/syscall.h>
#include <sys/wait.h>

static int to_child[2], to_parent[2];

static void child(void)
{
	char c;

	must(write(to_parent[1], "x", 1));
	must(read(to_child[0], &c, 1));
	say("child: links %s", links());
	must(rtnl_up("vb", "10.9.8.2"));
	{
		int fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		union address a = address4("10.9.8.2", 7000);

		must(bind(fd, &a.sa, sizeof(a.in)));
		must(write(to_parent[1], "x", 1));
		char buf[16] = "";

		N(wait_for(fd, POLLIN));
		T(recv(fd, buf, sizeof(buf), MSG_DONTWAIT));
		say("child: got %s", buf);
	}
	fflush(stdout);
	_exit(3);
}

int main(void)
{
	char ns[64], c;
	int status, i;
	pid_t pid;

	must(pipe(to_child));
	must(pipe(to_parent));
	fflush(stdout);
	pid = must(syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
	if (!pid)
		child();
	must(read(to_parent[0], &c, 1));
	snprintf(ns, sizeof(ns), "/proc/%d/ns/net", pid);
	say("the child's is ours %d", same_file(ns, "/proc/self/ns/net"));
	T(rtnl_veth("va", "vb", IFLA_NET_NS_PID, pid));
	say("links %s", links());
	must(rtnl_up("va", "10.9.8.1"));
	fflush(stdout);
	must(write(to_child[1], "x", 1));
	must(read(to_parent[0], &c, 1));
	{
		int fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		union address a = address4("10.9.8.2", 7000);

		must(sendto(fd, "hello", 5, 0, &a.sa, sizeof(a.in)));
	}
	must(waitpid(pid, &status, 0));
	N(WEXITSTATUS(status));
	/* Both ends of the pair go with the namespace, some time later. */
	for (i = 0; i < 500 && if_nametoindex("va"); i++)
		sleep_ms(10);
	say("links %s", links());
	T(rtnl_veth("va", "vb", IFLA_NET_NS_PID, pid));

	/* A plain child shares the network; its number is known as well. */
	pid = must(fork());
	if (!pid) {
		close(to_child[1]);
		own_netns();
		must(write(to_parent[1], "x", 1));
		c = 0;
		(void)!read(to_child[0], &c, 1);
		_exit(0);
	}
	must(read(to_parent[0], &c, 1));
	snprintf(ns, sizeof(ns), "/proc/%d/ns/net", pid);
	say("a fork's is ours %d", same_file(ns, "/proc/self/ns/net"));
	T(rtnl_veth("va", "vb", IFLA_NET_NS_PID, pid));
	say("links %s", links());
	must(write(to_child[1], "x", 1));
	must(waitpid(pid, &status, 0));
	N(status);
	return 0;
}
