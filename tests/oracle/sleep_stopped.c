// SPDX-License-Identifier: GPL-2.0
/* Sleeps and timed waits of a process that is stopped for a while end on time; the remaining time of one that a handler ends. */
#include "oracle.h"

#define LENGTH	4	/* seconds; who begins again after that takes as long once more */
#define SLACK	3

static void handler(int sig)
{
	(void)sig;
}

static int by_nanosleep(void)
{
	struct timespec t = { .tv_sec = LENGTH };

	return nanosleep(&t, &t) ? errno : 0;
}

static int by_clock_nanosleep(void)
{
	struct timespec t = { .tv_sec = LENGTH };

	return clock_nanosleep(CLOCK_REALTIME, 0, &t, NULL);
}

static int by_boottime(void)
{
	struct timespec t = { .tv_sec = LENGTH };

	return clock_nanosleep(CLOCK_BOOTTIME, 0, &t, &t);
}

static int by_poll(void)
{
	int p[2];
	struct pollfd set = { .events = POLLIN };

	must(pipe(p));
	set.fd = p[0];
	return poll(&set, 1, LENGTH * 1000) < 0 ? errno : 0;
}

static int by_poll_of_socket(void)
{
	struct pollfd set = { .events = POLLIN, .fd = bound(AF_INET, SOCK_DGRAM) };

	return poll(&set, 1, LENGTH * 1000) < 0 ? errno : 0;
}

static int by_poll_of_both(void)
{
	struct pollfd set[2] = { { .events = POLLIN }, { .events = POLLIN, .fd = bound(AF_INET, SOCK_DGRAM) } };
	int p[2];

	must(pipe(p));
	set[0].fd = p[0];
	return poll(set, 2, LENGTH * 1000) < 0 ? errno : 0;
}

static const struct {
	const char *name;
	int (*sleeps)(void);
} kinds[] = {
	{ "nanosleep", by_nanosleep },
	{ "clock_nanosleep", by_clock_nanosleep },
	{ "clock_nanosleep, boot time", by_boottime },
	{ "poll of a pipe", by_poll },
	{ "poll of a socket", by_poll_of_socket },
	{ "poll of both", by_poll_of_both },
};

static void stopped(void)
{
	pid_t pids[ARRAY_SIZE(kinds)];
	double *ended = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double start, go_on;
	int s;

	need(ended != MAP_FAILED);
	start = seconds();
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		pids[i] = must(fork());
		if (!pids[i]) {
			int error;

			/* Not one of an orphaned group, where SIGTSTP is ignored. */
			must(setpgid(0, 0));
			for (int n = 0; n < 3; n++)
				/* The second time its sites are rewritten. */
				nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
			error = kinds[i].sleeps();
			ended[i] = seconds();
			_exit(error);
		}
	}
	sleep_ms(1000);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		must(kill(pids[i], SIGTSTP));
		must(waitpid(pids[i], &s, WUNTRACED));
		say("%s: %s", kinds[i].name, WIFSTOPPED(s) ? "stopped" : "not stopped");
	}
	while (seconds() < start + LENGTH)
		sleep_ms(50);
	go_on = seconds();
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		must(kill(pids[i], SIGCONT));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		must(waitpid(pids[i], &s, 0));
		say("%s: %s, %s", kinds[i].name, ename(WEXITSTATUS(s)),
		    ended[i] < start + LENGTH ? "too early" : ended[i] < go_on + SLACK ? "in time" : "too late");
	}
}

static long left_ms(const struct timespec *t)
{
	return t->tv_sec * 1000 + t->tv_nsec / 1000000;
}

/* The raw calls: the library's nanosleep() is clock_nanosleep(). */
static void interrupted(void)
{
	struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct timespec t = { .tv_sec = 1000 }, left = { 0 };
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };
	double start = seconds();

	must(sigaction(SIGALRM, &act, NULL));
	must(setitimer(ITIMER_REAL, &soon, NULL));
	T(syscall(SYS_nanosleep, &t, &left));
	N(left_ms(&left) < 1000000 && left_ms(&left) > 1000000 - 1 - (seconds() - start) * 1000);
	must(setitimer(ITIMER_REAL, &soon, NULL));
	T(syscall(SYS_nanosleep, &t, NULL));
	must(setitimer(ITIMER_REAL, &soon, NULL));
	T(syscall(SYS_nanosleep, &t, (void *)8));
	must(setitimer(ITIMER_REAL, &soon, NULL));
	left.tv_sec = 0;
	T(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, &left));
	N(left_ms(&left) > 900000);
	must(setitimer(ITIMER_REAL, &soon, NULL));
	t.tv_sec = INT64_MAX;
	T(syscall(SYS_nanosleep, &t, NULL));
	t.tv_sec = 1000;
	must(setitimer(ITIMER_REAL, &soon, NULL));
	T(poll(NULL, 0, 1000000));
	must(setitimer(ITIMER_REAL, &soon, NULL));
	t.tv_sec += time(NULL);
	left.tv_sec = 42;
	T(syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &t, &left));
	N(left.tv_sec);
}

static void wrong(void)
{
	struct timespec t = { .tv_nsec = 1000000000 }, negative = { .tv_sec = -1 }, zero = { 0 };

	T(syscall(SYS_nanosleep, &t, NULL));
	T(syscall(SYS_nanosleep, &negative, NULL));
	T(syscall(SYS_nanosleep, &zero, NULL));
	T(syscall(SYS_nanosleep, (void *)8, NULL));
	T(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL));
	T(syscall(SYS_clock_nanosleep, 99, 0, (void *)8, NULL));
	T(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (void *)8, NULL));
	T(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &zero, NULL));
	T(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &zero, NULL));
}

int main(void)
{
	alarm(60);
	stopped();
	alarm(0);
	interrupted();
	wrong();
	return 0;
}
