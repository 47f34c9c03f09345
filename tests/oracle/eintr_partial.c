// SPDX-License-Identifier: GPL-2.0
/* A call that has done a part when the signal comes reports that part. */
#include "oracle.h"

static volatile sig_atomic_t handled;
static pthread_t target;
static pid_t target_tid;
static int p[2];

static void on_signal(int signo)
{
	handled++;
}

static void *disturb(void *arg)
{
	wait_until_asleep(target_tid);
	if (arg)
		must(write(p[1], "abc", 3));
	wait_until_asleep(target_tid);
	pthread_kill(target, SIGUSR1);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	static char big[16 << 20];
	pthread_t t;
	ssize_t n;

	target = pthread_self();
	target_tid = gettid();
	must(sigaction(SIGUSR1, &sa, NULL));
	tcp_pair(AF_INET, p);
	t = spawn(disturb, p);
	T(recv(p[0], big, 10, MSG_WAITALL));
	N(handled);
	join(t);
	t = spawn(disturb, NULL);
	n = write(p[0], big, sizeof(big));
	say("a part was written: %d", n > 0 && n < (ssize_t)sizeof(big));
	N(handled);
	join(t);
	return 0;
}
