// SPDX-License-Identifier: GPL-2.0
/*
 * PR_SET_PDEATHSIG, SIGKILL above all: who only calls its network is killed when its parent ends, and nobody else notices.
 */
#include "oracle.h"
#include <sys/prctl.h>

static int get(void)
{
	int sig = -1;

	must(prctl(PR_GET_PDEATHSIG, &sig));
	return sig;
}

static void *show(void *arg)
{
	say("in a thread: %d", get());
	return arg;
}

static void calls(void)
{
	char data[1200] = { 0 };
	int pair[2];

	udp_pair(AF_INET, pair);
	for (;;) {
		send(pair[0], data, sizeof(data), 0);
		recv(pair[1], data, sizeof(data), 0);
	}
}

/* A grandchild whose parent ends: how it ends itself. */
static void orphan(int how)
{
	int ready[2], s;
	sigset_t all;
	pid_t pid;
	char c;

	fflush(stdout);
	must(pipe(ready));
	pid = must(fork());
	if (!pid) {
		if (!must(fork())) {
			sigfillset(&all);
			must(sigprocmask(SIG_SETMASK, &all, NULL));
			must(prctl(PR_SET_PDEATHSIG, how == 2 ? SIGSTKFLT : SIGKILL));
			must(write(ready[1], "x", 1));
			if (how == 1)
				execl("/proc/self/exe", "calls", "x", NULL);
			if (how == 2) {
				sigemptyset(&all);
				must(sigprocmask(SIG_SETMASK, &all, NULL));
			}
			if (how == 3)
				poll(NULL, 0, 20000);
			calls();
		}
		must(read(ready[0], &c, 1));
		sleep_ms(30);
		_exit(0);
	}
	must(waitpid(pid, &s, 0));
	must(wait(&s));
	say("%d: signal %d", how, WIFSIGNALED(s) ? WTERMSIG(s) : -1);
	close(ready[0]);
	close(ready[1]);
}

int main(int argc, char **argv)
{
	int i, s, pair[2];
	pid_t pid;
	char c;

	if (argc > 1 && argv[1][0] == 'g') {
		say("after exec: %d", get());
		return 0;
	}
	if (argc > 1)
		calls();
	must(prctl(PR_SET_PDEATHSIG, 0));	/* of who started us */
	T(prctl(PR_SET_PDEATHSIG, 65));
	T(prctl(PR_SET_PDEATHSIG, -1));
	N(get());
	T(prctl(PR_SET_PDEATHSIG, SIGSTKFLT));
	N(get());
	T(prctl(PR_SET_PDEATHSIG, SIGKILL));
	N(get());
	T(prctl(PR_GET_PDEATHSIG, (void *)8));
	join(spawn(show, NULL));
	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		say("in a child: %d", get());
		T(prctl(PR_SET_PDEATHSIG, SIGKILL));
		fflush(stdout);
		execl("/proc/self/exe", "again", "get", NULL);
		_exit(9);
	}
	must(waitpid(pid, &s, 0));
	T(prctl(PR_SET_PDEATHSIG, SIGTERM));
	N(get());
	T(prctl(PR_SET_PDEATHSIG, 0));
	N(get());

	must(prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (i = 0; i < 12; i++)
		orphan(i % 4);
	tcp_pair(AF_INET, pair);
	T(send(pair[0], "x", 1, 0));
	T(recv(pair[1], &c, 1, 0));
	return 0;
}
