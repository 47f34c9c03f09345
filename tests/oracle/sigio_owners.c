// SPDX-License-Identifier: GPL-2.0
/* SIGIO and SIGURG to others: a thread, a child, the parent, a process group. */
#include "oracle.h"
#include <sys/prctl.h>

static int io_fd[2];
static int ready[2], heard[2];

/* Owner of the signals: says which it got. */
static pid_t child(const char *name, pid_t group)
{
	pid_t pid;
	char c = 'r';

	fflush(stdout);
	pid = must(fork());
	if (pid) {
		need(read(ready[0], &c, 1) == 1);
		return pid;
	}
	if (group >= 0)
		must(setpgid(0, group));
	sigset_t set;
	siginfo_t info;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGURG);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGTERM);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	need(write(ready[1], &c, 1) == 1);
	for (;;) {
		int sig = sigwaitinfo(&set, &info);

		if (sig == SIGTERM)
			_exit(0);
		c = sig == SIGIO ? 'i' : sig == SIGURG ? 'u' : 's';
		(void)name;
		need(write(heard[1], &c, 1) == 1);
	}
}

/* How many hear of one datagram or byte. */
static void count(const char *what, int sent, int expected)
{
	struct pollfd p = { .fd = heard[0], .events = POLLIN };
	int n = 0;
	char c = 0, kinds[16] = "";

	need(sent == 1);
	while (n < 8 && poll(&p, 1, n < expected ? 3000 : 100) == 1) {
		need(read(heard[0], &c, 1) == 1);
		kinds[n++] = c;
	}
	say("%s: %d heard: %s", what, n, kinds);
}

static void end(pid_t pid)
{
	must(kill(pid, SIGTERM));
	must(waitpid(pid, NULL, 0));
}

static volatile pid_t tid;
static volatile sig_atomic_t wrong, right;

static void on_io(int sig)
{
	if (gettid() == tid)
		right++;
	else
		wrong++;
}

static void *thread(void *arg)
{
	char c = 'r';

	tid = gettid();
	need(write(ready[1], &c, 1) == 1);
	for (int i = 0; i < 600 && !right && !wrong; i++)
		sleep_ms(5);
	return arg;
}

static void threads(void)
{
	struct f_owner_ex own, got;
	pthread_t t;
	char b[4];

	signal(SIGIO, on_io);
	must(pthread_create(&t, NULL, thread, NULL) ? -1 : 0);
	need(read(ready[0], b, 1) == 1);
	own = (struct f_owner_ex){ F_OWNER_TID, tid };
	T(fcntl(io_fd[0], F_SETOWN_EX, &own));
	T(fcntl(io_fd[0], F_GETOWN_EX, &got));
	N(got.type);
	N(got.pid == tid);
	must(send(io_fd[1], "x", 1, 0));
	pthread_join(t, NULL);
	say("thread: right %d, wrong %d", right > 0, wrong);
	must(recv(io_fd[0], b, 4, 0));
	T(fcntl(io_fd[0], F_SETOWN_EX, &own));		/* it is gone */
	signal(SIGIO, SIG_IGN);
}

int main(void)
{
	struct f_owner_ex own, got;
	pid_t a, b, me = getpid();
	int tcp[2];
	char c[4];

	must(pipe(ready));
	must(pipe(heard));
	udp_pair(AF_INET, io_fd);
	must(fcntl(io_fd[0], F_SETFL, O_ASYNC | O_NONBLOCK));
	threads();

	a = child("a", -1);
	T(fcntl(io_fd[0], F_SETOWN, a));
	N(fcntl(io_fd[0], F_GETOWN) == a);
	count("child", send(io_fd[1], "x", 1, 0), 1);
	must(recv(io_fd[0], c, 4, 0));
	must(fcntl(io_fd[0], F_SETSIG, SIGRTMIN));
	count("child, real-time", send(io_fd[1], "x", 1, 0), 1);
	must(recv(io_fd[0], c, 4, 0));
	must(fcntl(io_fd[0], F_SETSIG, 0));
	tcp_pair(AF_INET, tcp);
	T(fcntl(tcp[0], F_SETOWN, a));
	count("child, urgent", send(tcp[1], "!", 1, MSG_OOB), 1);
	end(a);
	count("dead child", send(io_fd[1], "x", 1, 0), 0);
	must(recv(io_fd[0], c, 4, 0));
	T(fcntl(io_fd[0], F_SETOWN, a));

	a = child("a", 0);
	b = child("b", a);
	T(fcntl(io_fd[0], F_SETOWN, -a));
	N(fcntl(io_fd[0], F_GETOWN) == -a);
	T(fcntl(io_fd[0], F_GETOWN_EX, &got));
	N(got.type);
	N(got.pid == a);
	count("group", send(io_fd[1], "x", 1, 0), 2);
	must(recv(io_fd[0], c, 4, 0));
	own = (struct f_owner_ex){ F_OWNER_PGRP, a };
	T(fcntl(tcp[0], F_SETOWN_EX, &own));
	count("group, urgent", send(tcp[1], "!", 1, MSG_OOB), 2);
	T(ioctl(io_fd[0], FIOSETOWN, &(int){ -b }));	/* no group */
	end(b);
	end(a);

	/* A child makes its parent the owner of what both have. */
	signal(SIGIO, on_io);
	tid = me;
	right = wrong = 0;
	fflush(stdout);
	a = must(fork());
	if (!a) {
		T(fcntl(io_fd[0], F_SETOWN, getppid()));
		N(fcntl(io_fd[0], F_GETOWN) == getppid());
		must(send(io_fd[1], "x", 1, 0));
		fflush(stdout);
		_exit(0);
	}
	must(waitpid(a, NULL, 0));
	for (int i = 0; i < 600 && !right && !wrong; i++)
		sleep_ms(5);
	say("parent: %d", right > 0);
	return 0;
}
