// SPDX-License-Identifier: GPL-2.0
/* /proc/net/tcp, tcp6, udp and raw list this network's sockets, in the right states. */
#include "procfs.h"

static void find(const char *path, int local, int remote)
{
	char *copy = strdup(contents(path)), *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned int lp, rp, state, tx, rx;
		char la[40], ra[40];

		if (sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %x:%x", la, &lp, ra, &rp, &state, &tx, &rx) != 7)
			continue;
		if ((int)lp == local && (int)rp == remote)
			say("%s: %s %s state %s tx %u rx %u", path, la, ra, tcp_state_name(state), tx,
			    strstr(path, "udp") ? rx > 0 : rx);
	}
	free(copy);
}

int main(void)
{
	int l = listener(AF_INET, 5), c = must(socket(AF_INET, SOCK_STREAM, 0)), s, u[2], p6[2];
	int before, after;

	first_line("/proc/net/tcp");
	before = lines(contents("/proc/net/tcp"));
	say("lines with one listener %d", before);
	find("/proc/net/tcp", local_port(l), 0);
	must(connect_port(c, AF_INET, local_port(l)));
	find("/proc/net/tcp", local_port(l), 0);	/* one waits to be accepted */
	s = must(accept(l, NULL, NULL));
	must(write(c, "abcde", 5));
	need(wait_for(s, POLLIN));
	find("/proc/net/tcp", local_port(c), local_port(l));
	find("/proc/net/tcp", local_port(l), local_port(c));
	must(shutdown(c, SHUT_WR));
	sleep_ms(100);
	find("/proc/net/tcp", local_port(c), local_port(l));
	find("/proc/net/tcp", local_port(l), local_port(c));
	after = lines(contents("/proc/net/tcp"));
	say("two more %d", after - before);
	tcp_pair(AF_INET6, p6);
	find("/proc/net/tcp6", local_port(p6[0]), local_port(p6[1]));
	say("tcp6 lines %d", lines(contents("/proc/net/tcp6")));
	udp_pair(AF_INET, u);
	must(send(u[0], "abc", 3, 0));
	find("/proc/net/udp", local_port(u[1]), local_port(u[0]));
	must(socket(AF_INET, SOCK_RAW, 200));
	say("raw lines %d", lines(contents("/proc/net/raw")));
	return 0;
}
