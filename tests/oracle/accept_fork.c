// SPDX-License-Identifier: GPL-2.0
/* accept() waits in one thread while another forks or executes a program: the number that it will return is free there. */
#include "oracle.h"
#include <spawn.h>

static int l;
static volatile pid_t tid;
static volatile bool watched;

static void *accepts(void *arg)
{
	tid = gettid();
	while (!watched)
		sched_yield();
	return (void *)(long)(arg ? accept4(l, NULL, NULL, SOCK_CLOEXEC) : accept(l, NULL, NULL));
}

static pthread_t accepting(void *arg)
{
	char path[64];
	pthread_t t;
	int low, fd;

	tid = 0;
	watched = false;
	t = spawn(accepts, arg);
	while (!tid)
		sleep_ms(1);
	/* The descriptor that tells whether it sleeps has no number that accept() could get. */
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	low = must(open(path, O_RDONLY));
	fd = must(fcntl(low, F_DUPFD, 100));
	close(low);
	watched = true;
	wait_until_asleep_by(fd);
	close(fd);
	return t;
}

/* Prints the open descriptors, and the number that the next one gets. */
static void look(const char *who)
{
	int open_ones = 0;

	for (int fd = 3; fd < 40; fd++)
		open_ones += fcntl(fd, F_GETFD) >= 0;
	say("%s: %d open, next %d", who, open_ones, open("/dev/null", O_RDONLY));
}

static void ended(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0));
	N(status);
}

static void children(void)
{
	static char * const listing[] = { "accept_fork", "spawned", NULL };
	pid_t pid = must(fork());

	if (!pid) {
		look("forked");
		/* The number is an ordinary one there. */
		N(must(dup2(0, 5)));
		pid = must(fork());
		if (!pid) {
			look("forked twice");
			_exit(0);
		}
		ended(pid);
		execl("/proc/self/exe", "accept_fork", "executed", NULL);
		_exit(1);
	}
	ended(pid);
	need(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, listing, environ));
	ended(pid);
}

/* The thread has its connection, at the number and with the flag that it asked for. */
static void connects(pthread_t t)
{
	int c = must(socket(AF_INET, SOCK_STREAM, 0));
	void *fd;

	must(connect_port(c, AF_INET, local_port(l)));
	need(!pthread_join(t, &fd));
	T((int)(long)fd);
	T(fcntl((int)(long)fd, F_GETFD));
	T(write(c, "x", 1));
	T(read((int)(long)fd, &(char){ 0 }, 1));
	close(c);
	close((int)(long)fd);
}

int main(int argc, char **argv)
{
	static char large[200 << 10];
	char *many[40];
	sigset_t set;
	pthread_t t;

	if (argc > 1) {
		look(argv[1]);
		return 0;
	}
	alarm(20);
	/*
	 * fork() and posix_spawn() block signals for a moment. A SIGCHLD that comes then is not ignored, but taken by a thread
	 * that has it unblocked: Linux begins its accept() again, with whatever number is free.
	 */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	need(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	l = listener(AF_INET, 4);
	t = accepting(NULL);
	children();
	connects(t);
	t = accepting("");
	children();
	connects(t);

	/* An exec that the host refuses leaves the number as it is. */
	memset(large, 'x', sizeof(large) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = i < ARRAY_SIZE(many) - 1 ? large : NULL;
	t = accepting(NULL);
	T(execv("/proc/self/exe", many));
	connects(t);
	t = accepting("");
	T(execv("/proc/self/exe", many));
	connects(t);

	accepting(NULL);
	execl("/proc/self/exe", "accept_fork", "executed", NULL);
	return 1;
}
