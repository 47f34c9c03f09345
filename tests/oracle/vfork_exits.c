// SPDX-License-Identifier: GPL-2.0
/* vfork children that leave by exit(2) while other threads come and go: each thread has its own stack and signals. */
#include "oracle.h"

static volatile bool done;
static int u[2];

static void *vforks(void *arg)
{
	while (!done) {
		int status;
		pid_t pid = vfork();

		if (!pid)
			syscall(SYS_exit, 3);
		if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3)
			return "a child is lost";
	}
	return arg;
}

static void *waits(void *arg)
{
	struct pollfd f = { u[0], POLLIN, 0 };

	return poll(&f, 1, 3) ? "poll" : arg;
}

static void *begins(void *arg)
{
	while (!done) {
		pthread_t t[4];

		for (int i = 0; i < 4; i++)
			t[i] = spawn(waits, NULL);
		for (int i = 0; i < 4; i++) {
			void *ret;

			if (pthread_join(t[i], &ret) || ret)
				return "a thread is lost";
		}
	}
	return arg;
}

int main(void)
{
	pthread_t t[4];

	alarm(30);
	udp_pair(AF_INET, u);
	for (int i = 0; i < 4; i++)
		t[i] = spawn(i % 2 ? vforks : begins, NULL);
	sleep_ms(3000);
	done = true;
	for (int i = 0; i < 4; i++) {
		void *ret;

		must(pthread_join(t[i], &ret));
		say("%s", ret ? (char *)ret : "well");
	}
	return 0;
}
