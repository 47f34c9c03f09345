// SPDX-License-Identifier: GPL-2.0
/* SIGCONT soon after SIGTSTP: the process continues, whatever its threads were doing. */
#include "oracle.h"

#define THREADS	12
#define ROUNDS	200
#define LOST_MAX	2	/* tests/limits.toml */

static volatile long *turns;

static void *calls(void *arg)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	for (;;) {
		fcntl(fd, F_GETFL);
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 65536 }, sizeof(int));
		if (arg)
			__atomic_fetch_add(turns, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static bool goes_on(int ms)
{
	long before = *turns;

	for (int i = 0; i < ms / 10; i++) {
		if (*turns > before + 1)
			return true;
		sleep_ms(10);
	}
	return false;
}

int main(void)
{
	int s, lost = 0;
	pid_t pid;

	alarm(60);
	turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(turns != MAP_FAILED);
	pid = must(fork());
	if (!pid) {
		must(setpgid(0, 0));	/* not one of an orphaned group, where SIGTSTP is ignored */
		for (int i = 1; i < THREADS; i++)
			spawn(calls, NULL);
		calls("");
	}
	need(goes_on(10000));
	must(kill(pid, SIGTSTP));
	must(waitpid(pid, &s, WUNTRACED));
	N(WIFSTOPPED(s) ? WSTOPSIG(s) : -1);
	must(kill(pid, SIGCONT));
	N(goes_on(10000));
	for (int i = 0; i < ROUNDS; i++) {
		must(kill(pid, SIGTSTP));
		usleep(200 + i % 40 * 20);
		must(kill(pid, SIGCONT));
		if (goes_on(2000))
			continue;
		lost++;
		must(kill(pid, SIGCONT));
		need(goes_on(10000));
	}
	N(lost <= LOST_MAX);
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &s, 0));
	N(WTERMSIG(s));
	return 0;
}
