// SPDX-License-Identifier: GPL-2.0
/*
 * RLIMIT_CPU's hard limit ends a process that does nothing but call its network: killed, as ever, and nobody else
 * notices. Set by itself, by another, before an exec and before a fork, below what has been used; with threads.
 */
#include "oracle.h"

static void *calls(void *arg)
{
	char data[1200] = { 0 };
	int pair[2];

	udp_pair(AF_INET, pair);
	for (;;) {
		send(pair[0], data, sizeof(data), 0);
		recv(pair[1], data, sizeof(data), 0);
	}
	return arg;
}

static const struct rlimit second = { 1, 1 };

static double used(void)
{
	struct timespec t;

	must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Another one sets the limit when this process has used more. Several of them: one may not be in its node's kernel just then. */
static void late(void)
{
	struct rlimit got = { 0 };
	int told[2], s;
	pid_t pids[3];
	char c;

	must(pipe(told));
	for (int i = 0; i < 3; i++) {
		fflush(stdout);
		pids[i] = must(fork());
		if (pids[i])
			continue;
		signal(SIGXCPU, SIG_IGN);
		spawn(calls, NULL);
		while (used() < 1.3)
			sleep_ms(1);
		must(write(told[1], "x", 1));
		calls(NULL);
	}
	close(told[1]);
	for (int i = 0; i < 3; i++)
		must(read(told[0], &c, 1));
	for (int i = 0; i < 3; i++) {
		must(prlimit(pids[i], RLIMIT_CPU, &second, &got));
		say("%d", got.rlim_max == RLIM_INFINITY);
		must(waitpid(pids[i], &s, 0));
		say("late: signal %d", WTERMSIG(s));
	}
}

static pid_t start(int how)
{
	pid_t pid;

	fflush(stdout);
	pid = must(fork());
	if (pid)
		return pid;
	signal(SIGXCPU, SIG_IGN);
	switch (how) {
	case 0:			/* by another */
		spawn(calls, NULL);
		break;
	case 1:
		must(setrlimit(RLIMIT_CPU, &second));
		execl("/proc/self/exe", "calls", "x", NULL);
		_exit(9);
	case 2:
		must(setrlimit(RLIMIT_CPU, &second));
		pid = must(fork());
		if (!pid)
			break;
		must(waitpid(pid, &how, 0));
		_exit(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL ? 7 : 8);
	}
	calls(NULL);
	_exit(9);
}

int main(int argc, char **argv)
{
	struct rlimit r = { 3, 4 }, got = { 0 };
	pid_t pids[3];
	double at = seconds();
	int i, s, pair[2];
	char c;

	if (argc > 1)
		calls(NULL);
	for (i = 0; i < 3; i++)
		pids[i] = start(i);
	must(prlimit(pids[0], RLIMIT_CPU, &second, NULL));
	must(prlimit(pids[0], RLIMIT_CPU, NULL, &got));
	say("%ld %ld", (long)got.rlim_cur, (long)got.rlim_max);
	for (i = 0; i < 3; i++) {
		must(waitpid(pids[i], &s, 0));
		say("%d: %s %d", i, WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
	}
	say("%s", seconds() - at < 0.4 ? "too early" : "in time");
	late();

	T(setrlimit(RLIMIT_CPU, &r));
	T(getrlimit(RLIMIT_CPU, &got));
	say("%ld %ld", (long)got.rlim_cur, (long)got.rlim_max);
	tcp_pair(AF_INET, pair);
	T(send(pair[0], "x", 1, 0));
	T(recv(pair[1], &c, 1, 0));
	return 0;
}
