// SPDX-License-Identifier: GPL-2.0
/*
 * inject.c - makes allocations and copies of a node's kernel fail; runs on the node
 *
 *	inject set NAME=VALUE...	files of debugfs, such as failslab/probability=1
 *	inject prepare			lets all kinds of failures be had, and none happen by itself
 *	inject nth [-w] [-f N] [-m N] -- PROGRAM [ARG]...
 *					runs it with its first, second, third... chance to fail taken, up to
 *					the last (or from and up to those numbers); -w: it may wait for ever,
 *					and is killed
 *	inject leaks [FUNCTION]...	what kmemleak finds now and was not asked for by these; status 1 if there is any
 *
 * Documentation/fault-injection/fault-injection.rst describes the means. All kinds that the kernel was
 * built with take part; by default it spares allocations that may wait, here none is spared.
 *
 * A program may fail as it likes, but not by a signal, nor may it hang, and the node must serve
 * after each. `nth` ends with "injected N, programs failed N, waited N, findings N", its status is 1 for findings.
 */
#include "node_files.h"

static const char * const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };
#define MANY		1000000000
#define LIMIT_S		30	/* for one run of the program */
#define WAITS_S		4	/* where it may wait for ever */

static void set(const char *name, const char *value)
{
	int fd = open_debug(name, O_WRONLY);

	write_text(fd, value, name);
	close(fd);
}

static void prepare(void)
{
	char name[64], many[16];
	size_t i;

	snprintf(many, sizeof(many), "%d", MANY);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(name, sizeof(name), "%s/times", kinds[i]);
		set(name, many);
		snprintf(name, sizeof(name), "%s/verbose", kinds[i]);
		set(name, getenv("INJECT_VERBOSE") ? "2" : "0");
	}
	set("failslab/ignore-gfp-wait", "N");
	set("fail_page_alloc/ignore-gfp-wait", "N");
	set("fail_page_alloc/ignore-gfp-highmem", "N");
	set("fail_page_alloc/min-order", "0");
}

static long injected(void)
{
	char name[64];
	long sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(name, sizeof(name), "%s/times", kinds[i]);
		sum += MANY - read_number(name);
	}
	return sum;
}

/* Does the node serve? A connection over its loopback, and a few bytes each way. */
static const char *probe(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 10 };
	socklen_t len = sizeof(a);
	int l = -1, c = -1, s = -1;
	const char *bad = NULL;
	char got[4];

	l = socket(AF_INET, SOCK_STREAM, 0);
	c = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || c < 0)
		bad = "socket";
	else if (bind(l, (void *)&a, sizeof(a)) || listen(l, 1) ||
		 getsockname(l, (void *)&a, &len))
		bad = "listen";
	else if (setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
		 setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
		 connect(c, (void *)&a, len))
		bad = "connect";
	else if ((s = accept(l, NULL, NULL)) < 0)
		bad = "accept";
	else if (send(s, "here", 4, 0) != 4 || recv(c, got, 4, MSG_WAITALL) != 4 || memcmp(got, "here", 4))
		bad = "send and receive";
	if (l >= 0)
		close(l);
	if (c >= 0)
		close(c);
	if (s >= 0)
		close(s);
	return bad;
}

static int nth(int argc, char **argv)
{
	int from = 1, most = 100000, failed = 0, findings = 0, waited = 0, n, opt;
	bool may_wait = false;

	while ((opt = getopt(argc, argv, "+wf:m:")) != -1) {
		if (opt == 'w')
			may_wait = true;
		else if (opt == 'f')
			from = atoi(optarg);
		else if (opt == 'm')
			most = atoi(optarg);
		else
			return 2;
	}
	argv += optind;
	if (!argv[0] || from < 1)
		return 2;
	prepare();
	for (n = from; n <= most; n++) {
		long before = injected();
		double start = seconds();
		const char *bad;
		int status = 0;
		pid_t pid = fork(), ended;

		if (!pid) {
			int fd = open_fail_nth();
			int null = open("/dev/null", O_RDWR);

			dup2(null, 0);
			if (!getenv("INJECT_VERBOSE")) {
				dup2(null, 1);
				dup2(null, 2);
			}
			setpgid(0, 0);
			arm(fd, n);
			execvp(argv[0], argv);
			_exit(126);
		}
		if (pid < 0)
			die("fork: %m");
		while (!(ended = waitpid(pid, &status, WNOHANG)) && seconds() - start < (may_wait ? WAITS_S : LIMIT_S))
			usleep(1000);
		if (!ended && may_wait) {
			waited++;
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
		} else if (!ended) {
			printf("finding: %d: %s does not end\n", n, argv[0]);
			findings++;
			kill(-pid, SIGKILL);
			waitpid(pid, &status, 0);
		} else if (WIFSIGNALED(status)) {
			printf("finding: %d: %s died of signal %d\n", n, argv[0], WTERMSIG(status));
			findings++;
		} else if (status) {
			failed++;
			if (getenv("INJECT_VERBOSE"))
				printf("%d: status %d\n", n, WEXITSTATUS(status));
		}
		bad = probe();
		if (bad) {
			printf("finding: %d: then the node does not serve: %s: %m\n", n, bad);
			findings++;
			break;
		}
		if (injected() == before)
			break;	/* it has no more chances */
	}
	printf("injected %d, programs failed %d, waited %d, findings %d\n", n - from, failed, waited, findings);
	return findings > 0;
}

/* An object that nothing points to is reported when two scans have seen it. */
static int leaks(char **known)
{
	int fd = open_debug("kmemleak", O_RDWR), i, left = 0, others = 0;
	static char text[4 << 20];
	size_t got = 0;
	ssize_t n;
	char *object, *next;

	for (i = 0; i < 3; i++) {
		write_text(fd, "scan", "kmemleak");
		sleep(6);	/* those younger than 5 s are left out */
	}
	while ((n = read(fd, text + got, sizeof(text) - 1 - got)) > 0)
		got += n;
	if (n < 0)
		die("kmemleak: %m");
	for (object = strstr(text, "unreferenced object"); object; object = next) {
		char **name;

		next = strstr(object + 1, "unreferenced object");
		if (next)
			next[-1] = 0;
		for (name = known; *name && !strstr(object, *name); name++)
			;
		if (*name) {
			others++;
			continue;
		}
		left++;
		printf("%s\n", object);
	}
	printf("leaked %d, known %d\n", left, others);
	return left > 0;
}

int main(int argc, char **argv)
{
	int i;

	if (argc > 2 && !strcmp(argv[1], "set")) {
		for (i = 2; i < argc; i++) {
			char *value = strchr(argv[i], '=');

			if (!value)
				die("%s: NAME=VALUE is wanted", argv[i]);
			*value++ = 0;
			set(argv[i], value);
		}
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "nth")) {
		i = nth(argc - 1, argv + 1);
		if (i != 2)
			return i;
	}
	if (argc >= 2 && !strcmp(argv[1], "leaks"))
		return leaks(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "prepare")) {
		prepare();
		return 0;
	}
	fprintf(stderr, "usage: inject set NAME=VALUE... | prepare | nth [-w] [-f N] [-m N] -- PROGRAM [ARG]... | leaks [FUNCTION]...\n");
	return 2;
}
