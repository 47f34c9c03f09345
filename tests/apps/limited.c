// SPDX-License-Identifier: GPL-2.0
/*
 * limited - is inside its node's kernel nearly all the time, until a limit of the host's meets it
 *
 *	limited address-space	nothing can be mapped any more; ends after half a second
 *	limited processor	a second of processor time, then the host kills it
 *	limited parent MS	by its parent, which has said that its death is the child's
 *	limited file-size	writes no files; takes what socket memory it gets
 *	limited memory		takes socket memory as long as it gets some; for a small memory cgroup
 *	limited toggle		turns time stamps of a socket on and off, for half a second
 */
#include "oracle.h"
#include <sys/prctl.h>
#include <sys/resource.h>

#define PAIRS	400

static char b[60000];

/* A call that fails for lack of memory below its limits is no error. */
static void traffic(double length)
{
	double end = seconds() + length;
	int u[2], p[2];

	udp_pair(AF_INET, u);
	tcp_pair(AF_INET, p);
	while (!length || seconds() < end) {
		for (int i = 0; i < 20; i++) {
			if (send(u[0], b, sizeof(b), 0) == sizeof(b))
				recv(u[1], b, sizeof(b), MSG_DONTWAIT);
			if (errno == EIO || write(p[0], b, 30000) < 0 ||
			    recv(p[1], b, 30000, MSG_WAITALL) < 0) {
				say("error %s", ename(errno));
				exit(3);
			}
		}
	}
}

static void limit(int which, rlim_t value)
{
	struct rlimit r = { value, value };

	must(setrlimit(which, &r));
}

/* Queues bytes on many connections, until neither the node nor the host has more. */
static void hoard(void)
{
	static int fd[PAIRS][2];
	long bytes = 0;

	for (int i = 0; i < PAIRS; i++) {
		fd[i][0] = socket(AF_INET, SOCK_DGRAM, 0);
		fd[i][1] = -1;
		if (fd[i][0] < 0)
			break;
		close(fd[i][0]);
		tcp_pair(AF_INET, fd[i]);
		for (int size = 4 << 20, k = 0; k < 2; k++) {
			setsockopt(fd[i][k], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
			setsockopt(fd[i][k], SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
		}
		for (ssize_t n; (n = send(fd[i][0], b, sizeof(b), MSG_DONTWAIT)) > 0;)
			bytes += n;
		if (errno == EIO) {
			say("error EIO");
			exit(3);
		}
		if (bytes > 96 << 20)
			break;
	}
	say("queued %ld MiB", bytes >> 20);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int on = 0, fd;
	double end;

	if (!strcmp(mode, "address-space")) {
		limit(RLIMIT_AS, 1 << 20);
		/* The kernel's text is changed for this, by who has the vCPU a moment later. */
		fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		on = 1;
		must(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
		traffic(0.5);
	} else if (!strcmp(mode, "processor")) {
		limit(RLIMIT_CPU, 1);
		traffic(0);
	} else if (!strcmp(mode, "parent")) {
		need(argc == 3);
		switch (must(fork())) {
		case 0:
			must(prctl(PR_SET_PDEATHSIG, SIGKILL));
			traffic(0);
		}
		usleep(1000 * atoi(argv[2]));
	} else if (!strcmp(mode, "file-size")) {
		limit(RLIMIT_FSIZE, 0);
		traffic(0.3);
		hoard();
	} else if (!strcmp(mode, "memory")) {
		hoard();
		traffic(0.3);
	} else if (!strcmp(mode, "toggle")) {
		fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		for (end = seconds() + 0.5; seconds() < end; usleep(200)) {
			on = !on;
			must(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
		}
	} else {
		return 2;
	}
	return 0;
}
