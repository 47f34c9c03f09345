// SPDX-License-Identifier: GPL-2.0
/* clone() with CLONE_VFORK and memory of its own: the caller waits until the child executes or ends; other threads go on. */
#include "oracle.h"
#include <sched.h>

static int to_child[2], from_child[2];

static void *nothing(void *arg)
{
	return arg;
}

/* Beside the thread that waits. */
static void *other(void *arg)
{
	char c;

	(void)arg;
	must(read(from_child[0], &c, 1));
	join(spawn(nothing, NULL));
	say("a thread is made while the child lives");
	if (!must(fork()))
		_exit(0);
	say("a process, too");
	must(write(to_child[1], "x", 1));
	return NULL;
}

static long vforks(int more)
{
	return syscall(SYS_clone, CLONE_VFORK | SIGCHLD | more, NULL, NULL, NULL, NULL);
}

static void ended(pid_t pid)
{
	int s;

	must(waitpid(pid, &s, 0));
	say("%s %d", WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
}

int main(int argc, char **argv)
{
	static const int flags[] = { 0, CLONE_FILES };
	volatile int *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	pid_t pid;
	char c;

	alarm(20);
	if (argc == 2) {
		must(read(atoi(argv[1]), &c, 1));
		return 4;
	}
	need(word != MAP_FAILED);
	must(pipe(to_child));
	must(pipe(from_child));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		say("flags %x", flags[i]);
		/* It ends. */
		*word = 0;
		thread = spawn(other, NULL);
		fflush(stdout);
		pid = must(vforks(flags[i]));
		if (!pid) {
			must(write(from_child[1], "x", 1));
			must(read(to_child[0], &c, 1));
			*word = 1;
			_exit(3);
		}
		N(*word);
		ended(pid);
		join(thread);

		/* It is killed. */
		*word = 0;
		pid = must(vforks(flags[i]));
		if (!pid) {
			*word = 2;
			raise(SIGKILL);
		}
		N(*word);
		ended(pid);

		/* It executes what goes on until we are back. */
		*word = 0;
		pid = must(vforks(flags[i]));
		if (!pid) {
			char number[12];

			sleep_ms(50);
			*word = 3;
			snprintf(number, sizeof(number), "%d", to_child[0]);
			execl("/nonexistent", "x", NULL);
			*word = 4;
			execl("/proc/self/exe", argv[0], number, NULL);
			_exit(9);
		}
		N(*word);
		must(write(to_child[1], "x", 1));
		ended(pid);

		/* It ends, and nobody asks for it. */
		signal(SIGCHLD, SIG_IGN);
		*word = 0;
		pid = must(vforks(flags[i]));
		if (!pid) {
			sleep_ms(50);
			*word = 5;
			_exit(3);
		}
		N(*word);
		signal(SIGCHLD, SIG_DFL);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
