// SPDX-License-Identifier: GPL-2.0
/* SIGPIPE: which call raises it, which does not, and that it goes to the calling thread. */
#include "oracle.h"

static volatile sig_atomic_t count;
static __thread volatile sig_atomic_t mine;

static void on_pipe(int signo)
{
	count++;
	mine++;
}

static void *elsewhere(void *arg)
{
	T(write(*(int *)arg, "x", 1));
	say("in the writing thread %d", mine);
	return NULL;
}

int main(void)
{
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sigaction sa = { .sa_handler = on_pipe };
	int p[2], status;
	pid_t pid;

	must(sigaction(SIGPIPE, &sa, NULL));
	tcp_pair(AF_INET, p);
	must(shutdown(p[0], SHUT_WR));
	T(write(p[0], "x", 1));
	N(count);
	T(send(p[0], "x", 1, 0));
	N(count);
	T(send(p[0], "x", 1, MSG_NOSIGNAL));
	N(count);
	T(writev(p[0], &iov, 1));
	N(count);
	T(sendmsg(p[0], &m, 0));
	N(count);
	T(sendmsg(p[0], &m, MSG_NOSIGNAL));
	N(count);
	mine = 0;
	join(spawn(elsewhere, &p[0]));
	say("in the main thread %d", mine);
	sa.sa_handler = SIG_IGN;
	must(sigaction(SIGPIPE, &sa, NULL));
	count = 0;
	T(write(p[0], "x", 1));
	N(count);
	sleep_ms(1);	/* an ignored signal must not disturb later calls */
	T(poll(NULL, 0, 1));
	p[1] = must(socket(AF_INET, SOCK_STREAM, 0));
	T(write(p[1], "x", 1));	/* never connected */

	/* By default it kills. */
	pid = must(fork());
	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		write(p[0], "x", 1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0));
	say("child: signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}
