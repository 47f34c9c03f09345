// SPDX-License-Identifier: GPL-2.0
/*
 * ends.c MODE - a process ends while its threads are busy with sockets
 *
 * On a node each end must leave the node alive (`run` sees 125 otherwise).
 * MODE: exit, raise, exec, kill, thread (a thread ends it), fork (a child does the same).
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *busy(void *arg)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t len = sizeof(in);
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	char b[64] = "";

	bind(s, (void *)&in, len);
	getsockname(s, (void *)&in, &len);
	for (;;) {
		sendto(s, b, sizeof(b), 0, (void *)&in, len);
		recv(s, b, sizeof(b), 0);
	}
	return arg;
}

static void *end(void *arg)
{
	exit(3);
	return arg;
}

static void start(void)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, busy, NULL);
	usleep(10000);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "exit";
	pthread_t t;
	int status;

	start();
	if (!strcmp(mode, "raise"))
		raise(SIGTERM);
	if (!strcmp(mode, "kill"))
		kill(getpid(), SIGTERM);
	if (!strcmp(mode, "exec"))
		execl("/bin/sh", "sh", "-c", "exit 3", NULL);
	if (!strcmp(mode, "thread")) {
		pthread_create(&t, NULL, end, NULL);
		pthread_join(t, NULL);
	}
	if (!strcmp(mode, "fork")) {
		for (int i = 0; i < 5; i++) {
			if (!fork()) {
				start();
				exit(4);
			}
			wait(&status);
			if (WEXITSTATUS(status) != 4)
				exit(5);
		}
	}
	exit(3);
}
