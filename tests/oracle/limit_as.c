// SPDX-License-Identifier: GPL-2.0
/*
 * RLIMIT_AS: what the program set is what it reads, and what it can map; what the node has mapped does not count. A
 * process that can map nothing more makes any call of the network, those that patch the kernel's code among them.
 */
#define LIMIT	RLIMIT_AS
#define PROT	PROT_NONE
#include "limit.h"

static void all_calls(void)
{
	int pair[2], i, on;
	char data[2000] = { 0 };

	udp_pair(AF_INET, pair);
	for (i = 0; i < 40; i++) {
		on = i % 2;
		must(setsockopt(pair[0], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
		must(setsockopt(pair[1], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)));
		must(send(pair[1], data, sizeof(data), 0));
		must(recv(pair[0], data, sizeof(data), 0));
	}
	tcp_pair(AF_INET6, pair);
	must(send(pair[0], data, sizeof(data), 0));
	must(recv(pair[1], data, sizeof(data), MSG_WAITALL));
	say("calls: ok");
}

int main(int argc, char **argv)
{
	struct rlimit r = { 512 * MIB, 1024 * MIB }, none = { MIB, MIB }, more = { RLIM_INFINITY, RLIM_INFINITY };
	long n;
	pid_t pid;
	int go[2];
	char c;

	if (argc > 1) {
		show("after exec");
		n = can_map();
		say("about %ld of 512 MiB", n > 490 && n <= 512 ? 512l : n);
		return 0;
	}
	/* Another's, from outside of it. */
	must(pipe(go));
	pid = must(fork());
	if (!pid) {
		must(read(go[0], &c, 1));
		show("set by another");
		fflush(stdout);
		if (!must(fork()))
			execl("/proc/self/exe", "again", "x", NULL);
		must(wait(NULL));
		_exit(0);
	}
	T(prlimit(pid, RLIMIT_AS, &r, NULL));
	r.rlim_cur = r.rlim_max = 0;
	T(prlimit(pid, RLIMIT_AS, NULL, &r));
	N(r.rlim_cur);
	N(r.rlim_max);
	must(write(go[1], "x", 1));
	end("it", pid);

	fflush(stdout);
	if (!(pid = must(fork()))) {
		r = (struct rlimit){ 512 * MIB, 1024 * MIB };
		T(setrlimit(RLIMIT_AS, &r));
		show("set");
		r.rlim_cur = 2048 * MIB;
		T(setrlimit(RLIMIT_AS, &r));
		r.rlim_cur = 512 * MIB;
		T(setrlimit(RLIMIT_AS, &r));
		T(syscall(SYS_setrlimit, RLIMIT_AS, (void *)8));
		T(syscall(SYS_prlimit64, 0, RLIMIT_AS, (void *)8, NULL));
		T(syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, (void *)8));
		n = can_map();
		say("about %ld of 512 MiB", n > 490 && n <= 512 ? 512l : n);
		all_calls();
		fflush(stdout);
		execl("/proc/self/exe", "again", "x", NULL);
		_exit(9);
	}
	end("half a gigabyte", pid);

	fflush(stdout);
	if (!(pid = must(fork()))) {
		T(setrlimit(RLIMIT_AS, &none));
		show("nearly none");
		OK(mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		all_calls();
		fflush(stdout);
		_exit(0);
	}
	end("nearly none", pid);
	show("the parent's");
	T(setrlimit(RLIMIT_AS, &more));
	show("no limit");
	all_calls();
	return 0;
}
