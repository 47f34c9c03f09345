// SPDX-License-Identifier: GPL-2.0
/* clone() with CLONE_PIDFD as Go's runtime makes it; a process that is killed during it leaves nothing open. */
#include "oracle.h"
#include <sched.h>
#include <sys/prctl.h>

#define ROUNDS	60

static long legacy(long flags, void *stack, int *word)
{
	return syscall(SYS_clone, flags, stack, word, NULL, NULL);
}

/* As fork() and vfork() do it, in one: the child only leaves. */
static void makes(int *pidfd)
{
	long pid = legacy(CLONE_PIDFD | SIGCHLD, NULL, pidfd);

	if (!pid)
		_exit(5);
	must(pid);
}

static int ends(void *arg)
{
	_exit((long)arg);
}

static void look(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	siginfo_t info = { 0 };
	int pidfd = -1, s;

	/* As Go's runtime does. */
	must(clone(ends, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, (void *)7, &pidfd));
	T(waitid(P_PIDFD, pidfd, &info, WEXITED));
	N(info.si_status);
	close(pidfd);
	must(clone(ends, stack + sizeof(stack), CLONE_VM | CLONE_PIDFD | SIGCHLD, (void *)8, &pidfd));
	T(waitid(P_PIDFD, pidfd, &info, WEXITED));
	N(info.si_status);
	close(pidfd);

	makes(&pidfd);
	N(pidfd >= 0);
	OK(fcntl(pidfd, F_GETFD));
	T(waitid(P_PIDFD, pidfd, &info, WEXITED));
	N(info.si_status);
	close(pidfd);
	T(legacy(CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, NULL, &pidfd));
	T(legacy(CLONE_PIDFD | CLONE_SIGHAND | SIGCHLD, NULL, &pidfd));
	T(legacy(CLONE_PIDFD | SIGCHLD, NULL, (int *)8));
	/* The signal that tells of its end is its own. */
	signal(SIGUSR1, SIG_IGN);
	if (!must(legacy(CLONE_PIDFD | SIGUSR1, NULL, &pidfd)))
		_exit(6);
	T(waitpid(-1, NULL, 0));
	T(waitpid(-1, &s, __WALL) > 0);
	N(WEXITSTATUS(s));
	close(pidfd);
}

int main(void)
{
	int fd = bound(AF_INET, SOCK_DGRAM), port = local_port(fd), kept = 0, s;
	union address a = loopback(AF_INET, port);

	alarm(60);
	look();
	must(close(fd));
	srandom(1);
	for (int i = 0; i < ROUNDS && !kept; i++) {
		pid_t pid = must(fork());

		if (!pid) {
			fd = must(socket(AF_INET, SOCK_DGRAM, 0));
			must(bind(fd, &a.sa, address_len(&a)));
			for (;;) {
				int pidfd;

				makes(&pidfd);
				must(wait(&s));
				close(pidfd);
			}
		}
		usleep(3000 + random() % 5000);
		must(kill(pid, SIGKILL));
		must(waitpid(pid, &s, 0));
		if (!WIFSIGNALED(s))
			say("it ended by itself");
		/* Its last child may be on its way out. */
		fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		for (int turn = 0; (kept = !!bind(fd, &a.sa, address_len(&a))) && turn < 500; turn++)
			sleep_ms(10);
		must(close(fd));
	}
	N(kept);
	return 0;
}
