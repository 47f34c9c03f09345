// SPDX-License-Identifier: GPL-2.0
/* exec: close-on-exec descriptors go, others stay and work in the new program. */
#include "oracle.h"

int main(int argc, char **argv)
{
	char kept[16], dropped[16], dir[16], b[16] = "";
	int p[2], f, status;
	pid_t pid;

	if (argc == 4) {	/* the new program */
		int k = atoi(argv[1]), d = atoi(argv[2]), n = atoi(argv[3]);

		say("kept: %s", fcntl(k, F_GETFD) < 0 ? ename(errno) : "open");
		say("dropped: %s", fcntl(d, F_GETFD) < 0 ? ename(errno) : "open");
		say("dropped file: %s", fcntl(n, F_GETFD) < 0 ? ename(errno) : "open");
		say("lowest is the dropped one's %d", socket(AF_INET, SOCK_DGRAM, 0) == (d < n ? d : n));
		T(write(k, "from the new one", 16));
		return 5;
	}
	tcp_pair(AF_INET, p);
	must(fcntl(p[1], F_SETFD, FD_CLOEXEC));
	f = must(open("/dev/null", O_RDONLY | O_CLOEXEC));
	snprintf(kept, sizeof(kept), "%d", p[0]);
	snprintf(dropped, sizeof(dropped), "%d", p[1]);
	snprintf(dir, sizeof(dir), "%d", f);
	pid = must(fork());
	if (!pid) {
		execl("/proc/self/exe", argv[0], kept, dropped, dir, NULL);
		_exit(98);
	}
	must(waitpid(pid, &status, 0));
	say("it ended with %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	T(recv(p[1], b, 16, 0));
	say("%.16s", b);
	return 0;
}
