// SPDX-License-Identifier: GPL-2.0
/*
 * forks.c - many short connections to a server that forks for each (src/apps/fork_storm.rs)
 *
 *	forks serve PORT SEED NAMED
 *				a child for each connection, which sends back what it gets. Of
 *				twenty the server kills one, and of NAMED (0: none) it names one as
 *				"victim PID" for somebody else to kill. On SIGTERM it waits for the
 *				children that are left: "forked N, crashed N, descriptors left N"
 *	forks call ADDR PORT CONNECTIONS SEED
 *				connections from eight threads, a record on each, checked byte by
 *				byte: "answered N, cut N"
 *
 * A connection is cut when its child was killed. Both end with "poisoned" (status 5) where the node says
 * EIO, the caller with "corrupt" (9) or "hung" (6) besides.
 */
#include "oracle.h"
#include <dirent.h>

#define THREADS		8
#define RECORD		20000	/* bytes at most */
#define POISONED	5	/* exit statuses */
#define HUNG		6
#define CORRUPT		9

static _Noreturn void end(int status, const char *why)
{
	printf("%s\n", why);
	exit(status);
}

static uint32_t rnd(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

static int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	need(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void echo(int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t done = 0, w; done < n; done += w) {
			w = write(fd, buf + done, n - done);
			if (w < 0)
				return;
		}
}

static volatile sig_atomic_t over;

static void on_term(int sig)
{
	over = 1;
}

static int serve(int port, uint64_t rng, unsigned int named)
{
	struct sigaction act = { .sa_handler = on_term };
	union address a = address4("0.0.0.0", port);
	int fd, one = 1, forked = 0, crashed = 0, status, before;
	pid_t pid;

	signal(SIGPIPE, SIG_IGN);
	must(sigaction(SIGTERM, &act, NULL));
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	must(bind(fd, &a.sa, sizeof(a.in)));
	must(listen(fd, 128));
	before = descriptors();
	puts("ready");
	for (;;) {
		int c = over ? -1 : accept(fd, NULL, NULL);

		if (c < 0 && (over || errno == EINTR)) {
			pid = waitpid(-1, &status, 0);
			if (pid < 0 && errno == ECHILD)
				break;
		} else if (c < 0) {
			if (errno == EIO)
				end(POISONED, "poisoned");
			end(1, ename(errno));
		} else {
			pid = fork();
			if (pid < 0)
				end(errno == EIO ? POISONED : 1, errno == EIO ? "poisoned" : ename(errno));
			if (!pid) {
				close(fd);
				echo(c);
				_exit(0);
			}
			close(c);
			forked++;
			if (rnd(&rng) % 20 == 0) {
				for (int i = rnd(&rng) % 5000; i; i--)
					__builtin_ia32_pause();
				kill(pid, SIGKILL);
			} else if (named && rnd(&rng) % named == 0) {
				printf("victim %d\n", pid);
			}
			pid = waitpid(-1, &status, WNOHANG);
		}
		/* Of the killed ones nothing is wrong. */
		if (pid > 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) && status) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == POISONED)
				end(POISONED, "poisoned");
			crashed++;
		}
	}
	printf("forked %d, crashed %d, descriptors left %d\n", forked, crashed,
	       descriptors() - before);
	return 0;
}

static union address far;
static int per_thread;
static int answered, cut;	/* of all threads */

/* True: all of the record came back. */
static bool ask(uint64_t *rng)
{
	static const struct timeval limit = { 20, 0 };
	static __thread unsigned char out[RECORD], in[RECORD];
	size_t len = 1 + rnd(rng) % RECORD, sent = 0, got = 0;
	bool whole = true;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		end(errno == EIO ? POISONED : 1, errno == EIO ? "poisoned" : ename(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	for (size_t i = 0; i < len; i++)
		out[i] = rnd(rng);
	if (connect(fd, &far.sa, sizeof(far.in)))
		whole = false;
	while (whole && sent < len) {
		ssize_t n = send(fd, out + sent, len - sent, MSG_NOSIGNAL);

		if (n < 0)
			whole = false;
		else
			sent += n;
	}
	while (whole && got < len) {
		ssize_t n = recv(fd, in + got, len - got, 0);

		if (n <= 0) {
			if (!n)
				errno = ECONNRESET;
			whole = false;
		} else {
			got += n;
		}
	}
	if (!whole && errno == EIO)
		end(POISONED, "poisoned");
	if (!whole && (errno == EAGAIN || errno == EINPROGRESS || errno == ETIMEDOUT))
		end(HUNG, "hung");
	if (!whole && errno != ECONNRESET && errno != EPIPE)
		end(1, ename(errno));
	if (memcmp(in, out, got))
		end(CORRUPT, "corrupt");
	close(fd);
	return whole;
}

static void *call(void *seed)
{
	uint64_t rng = (uint64_t)seed;

	for (int i = 0; i < per_thread; i++)
		if (ask(&rng))
			__atomic_fetch_add(&answered, 1, __ATOMIC_RELAXED);
		else
			__atomic_fetch_add(&cut, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc == 5 && !strcmp(argv[1], "serve"))
		return serve(atoi(argv[2]), strtoull(argv[3], NULL, 0), atoi(argv[4]));
	need(argc == 6 && !strcmp(argv[1], "call"));
	far = address4(argv[2], atoi(argv[3]));
	per_thread = atoi(argv[4]) / THREADS;
	for (int i = 0; i < THREADS; i++)
		need(!pthread_create(&threads[i], NULL, call,
				     (void *)(strtoull(argv[5], NULL, 0) * THREADS + i)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("answered %d, cut %d\n", answered, cut);
	return 0;
}
