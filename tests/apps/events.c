// SPDX-License-Identifier: GPL-2.0
/*
 * events - every event has to arrive: processes and threads wait in sets that mix the host's descriptors with the node's
 *
 * events SECONDS PROCESSES LIMIT_MS [SEED]
 *
 * A driver sends one token at a time to a thread of some process, by an eventfd, a pipe, a unix or a TCP socket or a datagram,
 * and waits for the answer, by the same or another way, in a set of its own. Threads wait by epoll (level, edge, one-shot),
 * poll() or select(), some with time-outs. Now and then a process is forked anew, with its parent's descriptors. Whatever takes
 * longer than LIMIT_MS is said, with what was sent and who waits how, and then the worst and how many.
 */
#include "oracle.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <pthread.h>
#include <poll.h>

enum way { EVENTFD, PIPE, UNIX, TCP, UDP, WAYS };
static const char * const way_names[] = { "eventfd", "pipe", "unix", "tcp", "udp" };
enum how { LEVEL, EDGE, ONESHOT, POLL, SELECT, HOWS };
static const char * const how_names[] = { "epoll", "edge", "one-shot", "poll", "select" };

#define THREADS	2
#define PROCS_MAX	8

struct lane { int to, from; };		/* the sender's end, the receiver's */
struct worker {
	struct lane in[WAYS], out[WAYS];
	enum how how;
	int timeout;			/* of its waits, ms; -1: none */
};
static struct worker workers[PROCS_MAX][THREADS];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void nonblock(int fd)
{
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

static struct lane lane(enum way way)
{
	struct lane l = { -1, -1 };
	int p[2];

	switch (way) {
	case EVENTFD:
		l.to = l.from = must(eventfd(0, EFD_NONBLOCK));
		return l;
	case PIPE:
		must(pipe(p));
		l = (struct lane){ p[1], p[0] };
		break;
	case UNIX:
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
		l = (struct lane){ p[1], p[0] };
		break;
	case TCP:
		tcp_pair(AF_INET, p);
		l = (struct lane){ p[1], p[0] };
		break;
	default:
		udp_pair(AF_INET, p);
		l = (struct lane){ p[0], p[1] };
	}
	nonblock(l.from);
	return l;
}

/* Takes what is there; one token is one byte, or a count of one: its value is who it is from. */
static bool take(int fd, enum way way)
{
	char b[64];

	return read(fd, b, way == EVENTFD ? 8 : sizeof(b)) > 0;
}

static void give(int fd, enum way way)
{
	static const unsigned long one = 1;

	must(write(fd, &one, way == EVENTFD ? 8 : 1));
}

/* Waits until one of the lanes has something; its way, -1: the time is over. */
struct set { enum how how; int ep; const struct lane *lanes; };

static void set_make(struct set *s, enum how how, const struct lane *lanes)
{
	*s = (struct set){ how, -1, lanes };
	if (how > ONESHOT)
		return;
	s->ep = must(epoll_create1(0));
	for (int w = 0; w < WAYS; w++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = w };

		if (how == EDGE)
			ev.events |= EPOLLET;
		if (how == ONESHOT)
			ev.events |= EPOLLONESHOT;
		must(epoll_ctl(s->ep, EPOLL_CTL_ADD, lanes[w].from, &ev));
	}
}

static int set_wait(struct set *s, int ms)
{
	struct pollfd p[WAYS];
	struct epoll_event ev;
	fd_set in;
	int n, top = 0;

	switch (s->how) {
	case POLL:
		for (int w = 0; w < WAYS; w++)
			p[w] = (struct pollfd){ .fd = s->lanes[w].from, .events = POLLIN };
		if (poll(p, WAYS, ms) <= 0)
			return -1;
		for (int w = 0; w < WAYS; w++)
			if (p[w].revents)
				return w;
		return -1;
	case SELECT:
		FD_ZERO(&in);
		for (int w = 0; w < WAYS; w++) {
			FD_SET(s->lanes[w].from, &in);
			if (s->lanes[w].from > top)
				top = s->lanes[w].from;
		}
		struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

		if (select(top + 1, &in, NULL, NULL, ms < 0 ? NULL : &tv) <= 0)
			return -1;
		for (int w = 0; w < WAYS; w++)
			if (FD_ISSET(s->lanes[w].from, &in))
				return w;
		return -1;
	default:
		n = epoll_wait(s->ep, &ev, 1, ms);
		return n > 0 ? (int)ev.data.u32 : -1;
	}
}

/* One-shot members are armed again after their token was taken. */
static void set_taken(struct set *s, int w)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.u32 = w };

	if (s->how == ONESHOT)
		must(epoll_ctl(s->ep, EPOLL_CTL_MOD, s->lanes[w].from, &ev));
}

static void *work(void *arg)
{
	struct worker *me = arg;
	unsigned int seed = (unsigned long)arg;
	struct set set;

	set_make(&set, me->how, me->in);
	for (;;) {
		int w = set_wait(&set, me->timeout), back;
		bool got;

		if (w < 0)
			continue;
		got = take(me->in[w].from, w);
		set_taken(&set, w);
		if (!got)
			continue;
		back = rand_r(&seed) % 3 ? w : (int)(rand_r(&seed) % WAYS);
		give(me->out[back].to, back);
	}
	return NULL;
}

static pid_t start(int proc)
{
	pid_t pid = must(fork());

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int t = 1; t < THREADS; t++) {
		pthread_t thread;

		need(!pthread_create(&thread, NULL, work, &workers[proc][t]));
	}
	work(&workers[proc][0]);
	return 0;
}

int main(int argc, char **argv)
{
	double end = now() + atof(argv[1]), limit = atof(argv[3]) / 1000, worst = 0;
	int procs = atoi(argv[2]);
	unsigned int seed = argc > 4 ? atoi(argv[4]) : 1;
	static struct set sets[PROCS_MAX][THREADS];
	unsigned long rounds = 0, late = 0;
	pid_t pids[PROCS_MAX];

	for (int p = 0; p < procs; p++)
		for (int t = 0; t < THREADS; t++) {
			struct worker *it = &workers[p][t];

			for (int w = 0; w < WAYS; w++) {
				it->in[w] = lane(w);
				it->out[w] = lane(w);
			}
			it->how = rand_r(&seed) % HOWS;
			it->timeout = (int[]){ -1, 3, 200 }[rand_r(&seed) % 3];
			set_make(&sets[p][t], rand_r(&seed) % HOWS, it->out);
		}
	for (int p = 0; p < procs; p++)
		pids[p] = start(p);
	while (now() < end) {
		int p = rand_r(&seed) % procs, t = rand_r(&seed) % THREADS, w = rand_r(&seed) % WAYS, got;
		struct worker *it = &workers[p][t];
		struct set *set = &sets[p][t];
		double begun = now(), took;

		give(it->in[w].to, w);
		for (;;) {
			got = set_wait(set, (int)(limit * 1000) + 1);
			took = now() - begun;
			if (got < 0 && took > limit) {
				late++;
				printf("LATE: %s to pid %d (%s, time-out %d), who answers a %s: nothing in %.0f ms\n",
				       way_names[w], (int)pids[p], how_names[it->how], it->timeout,
				       how_names[set->how], took * 1000);
				fflush(stdout);
				if (took > 10 * limit)
					return 1;
				continue;
			}
			if (got < 0)
				continue;
			bool some = take(it->out[got].from, got);

			set_taken(set, got);
			if (some)
				break;
		}
		if (took > worst)
			worst = took;
		rounds++;
		if (rounds % 3000 == 0) {
			must(kill(pids[p], SIGKILL));
			must(waitpid(pids[p], NULL, 0));
			pids[p] = start(p);
		}
		if (rand_r(&seed) % 50 == 0)
			usleep(rand_r(&seed) % 3000);
	}
	printf("rounds %lu, late %lu, the slowest %.1f ms\n", rounds, late, worst * 1000);
	for (int p = 0; p < procs; p++)
		kill(pids[p], SIGKILL);
	return late != 0;
}
