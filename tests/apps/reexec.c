// SPDX-License-Identifier: GPL-2.0
/*
 * reexec N - executes itself N times, each time by a thread that is not the first, while others make calls and new ones
 * are made. Says "PID" at first and "end" in the end.
 */
#include "oracle.h"

static char **self;

static void *calls(void *arg)
{
	for (;;)
		close(socket(AF_INET, SOCK_DGRAM, 0));
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *makes(void *arg)
{
	for (;;) {
		pthread_t t;

		if (!pthread_create(&t, NULL, nothing, NULL))
			pthread_join(t, NULL);
	}
	return arg;
}

static void *executes(void *arg)
{
	usleep(2000 + getpid() % 7 * 1000);
	execv("/proc/self/exe", self);
	_exit(1);
	return arg;
}

int main(int argc, char **argv)
{
	static char left[16];
	void *(*const all[])(void *) = { calls, calls, makes, executes };
	pthread_t t;
	int n;

	need(argc == 2 || argc == 3);
	n = atoi(argv[1]);
	if (argc == 2)
		say("%d", getpid());
	if (!n) {
		say("end");
		return 0;
	}
	snprintf(left, sizeof(left), "%d", n - 1);
	self = (char *[]){ argv[0], left, "again", NULL };
	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		need(!pthread_create(&t, NULL, all[i], NULL));
	for (;;)
		pause();
}
