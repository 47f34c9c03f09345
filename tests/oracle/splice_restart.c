// SPDX-License-Identifier: GPL-2.0
/* Signals that come while splice() or sendfile() waits: with SA_RESTART it goes on, without it fails; bytes stay where they are. */
#include "oracle.h"
#include <sys/sendfile.h>

static volatile sig_atomic_t handled;
static pthread_t caller;
static int s[2], p[2];
static char bytes[1 << 16], arrived[1 << 16];
static long received;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void handle(int flags)
{
	must(sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = flags }, NULL));
}

static void empty_socket(void)
{
	long n;

	do {
		while ((n = recv(s[1], arrived, sizeof(arrived), MSG_DONTWAIT)) > 0)
			received += n;
	} while (poll(&(struct pollfd){ .fd = s[1], .events = POLLIN }, 1, 300) == 1);
}

/* Two signals for the thread that waits, and later what it waits for. */
static void *events_come(void *end)
{
	for (int i = 0; i < 2; i++) {
		sleep_ms(150);
		pthread_kill(caller, SIGUSR1);
	}
	sleep_ms(150);
	if (*(int *)end == p[0])
		must(read(p[0], bytes, sizeof(bytes)));
	else if (*(int *)end == s[1])
		empty_socket();
	else
		must(write(*(int *)end, "end", 3));
	return NULL;
}

/* Twice: the first time all signals restart the call; then the first one ends it. */
#define WAITING(end, call) do {					\
	int end_ = (end);					\
	for (int restart = 1; restart >= 0; restart--) {	\
		pthread_t t_;					\
		handle(restart ? SA_RESTART : 0);		\
		handled = 0;					\
		t_ = spawn(events_come, &end_);			\
		T(call);					\
		N(handled);					\
		join(t_);					\
	}							\
} while (0)

static void fill_pipe(void)
{
	nonblocking(p[1]);
	while (write(p[1], bytes, 4096) > 0)
		;
	must(fcntl(p[1], F_SETFL, 0));
}

static void empty_pipe(void)
{
	while (poll(&(struct pollfd){ .fd = p[0], .events = POLLIN }, 1, 0) == 1)
		must(read(p[0], bytes, sizeof(bytes)));
}

/* How much a full socket takes of it is the kernel's own affair: what it has not taken is in the pipe. */
static void into_full_socket(bool restart)
{
	int end = s[1], left = 0;
	pthread_t thread;
	size_t sent;
	long n, came;

	empty_pipe();
	sent = fill(s[0], bytes, sizeof(bytes));
	must(write(p[1], bytes, sizeof(bytes)));
	handle(restart ? SA_RESTART : 0);
	handled = received = 0;
	thread = spawn(events_come, &end);
	n = splice(p[0], NULL, s[0], NULL, sizeof(bytes), 0);
	say("a full socket: moved some %d, or interrupted %d", restart ? n > 0 : 0, !restart && (n > 0 || errno == EINTR));
	join(thread);
	empty_socket();
	came = received - sent;
	must(ioctl(p[0], FIONREAD, &left));
	say("the rest is in the pipe %d, all else has come %d", left == (long)sizeof(bytes) - (n > 0 ? n : 0), came == (n > 0 ? n : 0));
}

int main(void)
{
	int file = must(open("/proc/sys/net/ipv4/ip_default_ttl", O_RDONLY));
	off_t at = 0;

	alarm(60);
	caller = pthread_self();
	tcp_pair(AF_INET, s);
	must(pipe(p));

	say("an empty pipe");
	WAITING(p[1], splice(p[0], NULL, s[0], NULL, 100, 0));
	T(recv(s[1], bytes, sizeof(bytes), 0));
	T(splice(p[0], NULL, s[0], NULL, 100, SPLICE_F_NONBLOCK));
	T(recv(s[1], bytes, sizeof(bytes), MSG_DONTWAIT));

	say("an empty socket");
	WAITING(s[0], splice(s[1], NULL, p[1], NULL, 100, 0));
	T(splice(s[1], NULL, p[1], NULL, 100, 0));
	T(read(p[0], bytes, sizeof(bytes)));

	say("a full pipe");
	must(send(s[0], "abc", 3, 0));
	need(wait_for(s[1], POLLIN));
	fill_pipe();
	WAITING(p[0], ({ fill_pipe(); splice(s[1], NULL, p[1], NULL, 1, 0); }));
	T(recv(s[1], bytes, sizeof(bytes), MSG_DONTWAIT));
	empty_pipe();

	say("a file into a full pipe");
	WAITING(p[0], ({ fill_pipe(); sendfile(p[1], file, &at, 100); }));
	N(at);
	empty_pipe();

	for (int restart = 1; restart >= 0; restart--)
		into_full_socket(restart);
	return 0;
}
