// SPDX-License-Identifier: GPL-2.0
/* splice() between a socket and the wrong end of a pipe, a pipe without readers, or no pipe at all: an error at once. */
#include "oracle.h"

static volatile sig_atomic_t broken;

static void on_alarm(int sig)
{
	(void)sig;
}

static void on_pipe(int sig, siginfo_t *info, void *context)
{
	(void)context;
	say("signal %d, from oneself %d", sig == SIGPIPE, info->si_code == SI_USER && info->si_pid == getpid());
	broken++;
}

/* A call that waits is one that alarm() has to end: its second argument is for that. */
static long spliced(int in, loff_t *in_at, int out, loff_t *out_at)
{
	long ret;

	alarm(2);
	ret = splice(in, in_at, out, out_at, 100, 0);
	alarm(0);
	return ret;
}

static void *closes(void *arg)
{
	sleep_ms(100);
	close(*(int *)arg);
	return NULL;
}

int main(void)
{
	struct sigaction alarms = { .sa_handler = on_alarm };
	struct sigaction pipes = { .sa_sigaction = on_pipe, .sa_flags = SA_SIGINFO };
	int s[2], p[2], null = must(open("/dev/null", O_RDWR)), path = must(open("/dev/null", O_PATH));
	int wronly = must(open("/dev/null", O_WRONLY)), rdonly = must(open("/dev/null", O_RDONLY));
	static char full[65536];
	loff_t at = 0;
	pthread_t t;

	must(sigaction(SIGALRM, &alarms, NULL));
	must(sigaction(SIGPIPE, &pipes, NULL));
	tcp_pair(AF_INET, s);
	must(pipe(p));
	say("the wrong end");
	T(spliced(s[0], NULL, p[0], NULL));
	T(spliced(p[1], NULL, s[0], NULL));
	T(spliced(s[0], NULL, p[0], &at));
	T(spliced(p[1], &at, s[0], NULL));
	T(spliced(s[0], &at, p[0], NULL));
	T(spliced(p[1], NULL, s[0], &at));
	T(spliced(s[0], &at, p[1], NULL));
	T(spliced(p[0], NULL, s[0], &at));
	say("no pipe");
	T(spliced(s[0], NULL, null, NULL));
	T(spliced(null, NULL, s[0], NULL));
	T(spliced(s[0], NULL, rdonly, NULL));
	T(spliced(wronly, NULL, s[0], NULL));
	T(spliced(s[0], NULL, path, NULL));
	T(spliced(path, NULL, s[0], NULL));
	T(spliced(s[0], NULL, 999, NULL));
	T(spliced(999, NULL, s[0], NULL));
	T(splice(s[0], NULL, p[1], NULL, 0, 64));
	T(splice(s[0], NULL, p[1], NULL, 1, 64));

	say("nobody reads");
	must(close(p[0]));
	T(spliced(s[0], NULL, p[1], NULL));
	N(broken);
	signal(SIGPIPE, SIG_IGN);
	T(spliced(s[0], NULL, p[1], NULL));
	T(splice(s[0], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	must(close(p[1]));

	say("nobody reads any more");
	must(pipe(p));
	must(send(s[1], "hello", 5, 0));
	must(wait_for(s[0], POLLIN));
	need(write(p[1], full, sizeof(full)) == sizeof(full));
	t = spawn(closes, &p[0]);
	T(spliced(s[0], NULL, p[1], NULL));
	join(t);
	T(recv(s[0], full, sizeof(full), MSG_DONTWAIT));
	must(close(p[1]));

	say("nobody writes");
	must(pipe(p));
	must(close(p[1]));
	T(spliced(p[0], NULL, s[0], NULL));
	return 0;
}
