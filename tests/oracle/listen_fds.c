// SPDX-License-Identifier: GPL-2.0
/* Listening sockets that a program inherits from number 3 on, as systemd hands them over. */
#include "scm.h"

static int service(void)
{
	int n = atoi(getenv("LISTEN_FDS") ?: "0"), fd, c;
	char b[16];
	ssize_t len;

	say("for me %d, %d of them", atoi(getenv("LISTEN_PID")) == getpid(), n);
	for (fd = 3; fd < 3 + n; fd++) {
		union address a;
		socklen_t size = sizeof(a);

		say("%s, type %d, cloexec %d", kind(fd), int_option(fd, SOL_SOCKET, SO_TYPE),
		    fcntl(fd, F_GETFD));
		must(getsockname(fd, &a.sa, &size));
		say("%s", address_text(&a));
	}
	say("no more: %d", is_open(fd));
	c = must(accept(3, NULL, NULL));
	len = must(recv(c, b, sizeof(b), 0));
	must(send(c, b, len, 0));
	return 0;
}

int main(int argc, char **argv)
{
	int l, u, l6, c, port, status;
	char b[16] = "";
	pid_t pid;

	if (argc == 2)
		return service();
	for (int fd = 3; fd < 20; fd++)
		close(fd);
	l = listener(AF_INET, 8);
	u = bound(AF_INET, SOCK_DGRAM);
	l6 = listener(AF_INET6, 8);
	need(l == 3 && u == 4 && l6 == 5);
	port = local_port(l);
	/* The client is there before the service. */
	c = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	T(connect_port(c, AF_INET, port));
	T(send(c, "early", 5, 0));
	pid = must(fork());
	if (!pid) {
		char text[16];

		snprintf(text, sizeof(text), "%d", getpid());
		setenv("LISTEN_PID", text, 1);
		setenv("LISTEN_FDS", "3", 1);
		execl("/proc/self/exe", argv[0], "service", NULL);
		_exit(98);
	}
	T(recv(c, b, 5, MSG_WAITALL));
	must(waitpid(pid, &status, 0));
	say("%s %d %s", b, status, end_of(c));
	return 0;
}
