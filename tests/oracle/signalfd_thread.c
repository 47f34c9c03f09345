// SPDX-License-Identifier: GPL-2.0
/*
 * A signalfd among sockets, in poll and select sets, is ready for a signal that was sent to the waiting
 * thread alone (another would not see it), as for one to the process.
 */
#include "waiting.h"

/* ms: the sender waits until the other is asleep, which looks from time to time, and may lack a CPU. */
#define PATIENCE	20000

static pthread_t waiter;
static pid_t waiter_tid;
static int sfd, udp[2];

static void *to_thread(void *arg)
{
	wait_until_asleep(waiter_tid);
	need(!pthread_kill(waiter, SIGUSR1));
	return NULL;
}

static void *to_process(void *arg)
{
	wait_until_asleep(waiter_tid);
	must(kill(getpid(), SIGUSR1));
	return NULL;
}

static void taken(void)
{
	struct signalfd_siginfo si;

	say("read: %s", read(sfd, &si, sizeof(si)) == sizeof(si) ? "a signal" : ename(errno));
}

static void by_poll(const char *what, void *(*sender)(void *), int fd)
{
	struct pollfd f[2] = { { fd, POLLIN }, { udp[0], POLLIN } };
	pthread_t t = spawn(sender, NULL);
	int n = poll(f, 2, PATIENCE);

	say("poll, %s: %d %s %s", what, n, events(f[0].revents), events(f[1].revents));
	join(t);
	taken();
}

static void by_epoll(const char *what, void *(*sender)(void *), int e)
{
	pthread_t t = spawn(sender, NULL);

	waited(what, e, PATIENCE);
	join(t);
	taken();
}

int main(void)
{
	int e = must(epoll_create1(0)), copy, other;
	struct timeval tv = { PATIENCE / 1000, 0 };
	sigset_t set;
	pthread_t t;
	fd_set r;

	waiter = pthread_self();
	waiter_tid = gettid();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	sfd = must(signalfd(-1, &set, SFD_NONBLOCK));
	udp_pair(AF_INET, udp);

	by_poll("thread", to_thread, sfd);
	by_poll("process", to_process, sfd);
	by_poll("thread again", to_thread, sfd);

	FD_ZERO(&r);
	FD_SET(sfd, &r);
	FD_SET(udp[0], &r);
	t = spawn(to_thread, NULL);
	T(select(64, &r, NULL, NULL, &tv));
	N(!!FD_ISSET(sfd, &r));
	join(t);
	taken();

	add(e, sfd, EPOLLIN, 1);
	by_epoll("epoll, host only", to_thread, e);
	add(e, udp[0], EPOLLIN, 2);
	by_epoll("epoll of both, process", to_process, e);

	/* A duplicate, at a number that was another file's. */
	copy = must(dup(sfd));
	by_poll("a duplicate", to_thread, copy);
	close(copy);
	other = must(eventfd(0, 0));
	N(other == copy);
	by_poll("beside an eventfd", to_thread, sfd);
	{
		struct pollfd f[2] = { { other, POLLIN }, { udp[0], POLLIN } };

		T(poll(f, 2, 20));
	}
	by_poll("at its number", to_thread, must(dup2(sfd, other)));
	return 0;
}
