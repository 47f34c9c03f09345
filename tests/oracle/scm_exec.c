// SPDX-License-Identifier: GPL-2.0
/* Passed between programs: over exec, to grandchildren, and by a name in the file system. */
#include "scm.h"

static int child(int over)
{
	int fd = take_one(over, 0), keep = take_one(over, MSG_CMSG_CLOEXEC);
	char number[16], flag[16];

	snprintf(number, sizeof(number), "%d", fd);
	snprintf(flag, sizeof(flag), "%d", keep);
	execl("/proc/self/exe", "scm_exec", "last", number, flag, NULL);
	return 99;
}

static int last(int fd, int gone)
{
	say("in the last: %s, the other %s", kind(fd), is_open(gone) ? "open" : "closed");
	must(write(fd, "last", 4));
	return 3;
}

/* A listener of a name; its server is another program that gets a connection from us. */
static void by_name(const char *self)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int l, c, tcp[2], status;
	char text[16] = "", number[16];
	pid_t pid;

	snprintf(name.sun_path, sizeof(name.sun_path), "/tmp/scm-%d", getpid());
	l = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(bind(l, (struct sockaddr *)&name, sizeof(name)));
	must(listen(l, 1));
	snprintf(number, sizeof(number), "%d", l);
	pid = must(fork());
	if (!pid) {
		execl("/proc/self/exe", self, "serve", number, NULL);
		_exit(98);
	}
	close(l);
	c = must(socket(AF_UNIX, SOCK_STREAM, 0));
	must(connect(c, (struct sockaddr *)&name, sizeof(name)));
	must(unlink(name.sun_path));
	tcp_pair(AF_INET, tcp);
	T(pass_one(c, tcp[0]));
	close(tcp[0]);
	T(recv(tcp[1], text, 6, MSG_WAITALL));
	must(waitpid(pid, &status, 0));
	say("%s %d %s", text, WEXITSTATUS(status), end_of(tcp[1]));
}

static int serve(int l)
{
	int c = must(accept(l, NULL, NULL));
	int fd = take_one(c, 0);

	must(write(fd, "served", 6));
	return 4;
}

int main(int argc, char **argv)
{
	int ux[2], tcp[2], u[2], status;
	char number[16], text[16] = "";
	pid_t pid;

	if (argc == 4)
		return last(atoi(argv[2]), atoi(argv[3]));
	if (argc == 3)
		return !strcmp(argv[1], "serve") ? serve(atoi(argv[2])) : child(atoi(argv[2]));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	tcp_pair(AF_INET, tcp);
	udp_pair(AF_INET, u);
	/* Sent before anybody is there to receive. */
	T(pass_one(ux[0], tcp[0]));
	T(pass_one(ux[0], u[0]));
	snprintf(number, sizeof(number), "%d", ux[1]);
	pid = must(vfork());
	if (!pid) {
		fcntl(tcp[0], F_SETFD, FD_CLOEXEC);
		fcntl(tcp[1], F_SETFD, FD_CLOEXEC);
		execl("/proc/self/exe", argv[0], "child", number, NULL);
		_exit(98);
	}
	close(tcp[0]);
	T(recv(tcp[1], text, 4, MSG_WAITALL));
	must(waitpid(pid, &status, 0));
	say("%s %d %s", text, WEXITSTATUS(status), end_of(tcp[1]));
	by_name(argv[0]);
	return 0;
}
