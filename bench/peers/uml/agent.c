// SPDX-License-Identifier: GPL-2.0
/*
 * agent - the first process of a User-mode Linux: runs what call(1) asks for
 *
 *	init=.../agent -- ADDRESS [WORD...] end
 *
 * Mounts what programs need, gives the interface vec0 its ADDRESS/24 (none for "-")
 * and the TCP settings of the bench (bench/src/bed.rs), and then either runs WORD... and
 * stops, or serves the port in frame.h: a connection brings a command and takes away
 * its output. A connection that is closed ends its command. User-mode Linux adds words
 * of its own to the kernel's command line: ours are over with "end".
 */
#define _GNU_SOURCE
#include "frame.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>

#define WORDS	64
#define PARTING	100	/* ms between the asking and the killing of a command */

static const char *const settings[][2] = {
	{ "/proc/sys/net/ipv4/tcp_congestion_control", "reno" },
	{ "/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456" },
	{ "/proc/sys/net/ipv4/tcp_wmem", "4096 16384 4194304" },
	{ "/proc/sys/net/ipv4/tcp_tw_reuse", "1" },
	{ "/proc/sys/net/ipv4/ip_local_port_range", "10000 65000" },
};

static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		die(path);
	close(fd);
}

static int run(char *const *words)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(words[0], words);
		die(words[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("run");
	return status;
}

static void ip(const char *line)
{
	char *words[WORDS] = { "/bin/ip" }, *copy = strdup(line), *word;
	int n = 1;

	for (word = strtok(copy, " "); word && n < WORDS - 1; word = strtok(NULL, " "))
		words[n++] = word;
	if (run(words)) {
		fprintf(stderr, "agent: ip %s failed\n", line);
		exit(1);
	}
	free(copy);
}

static void prepare(const char *address)
{
	char line[128];

	if (mount("proc", "/proc", "proc", 0, NULL))
		die("/proc");
	if (mount("sys", "/sys", "sysfs", 0, NULL))
		die("/sys");
	if (mount("tmp", "/tmp", "tmpfs", 0, NULL) || mount("run", "/run", "tmpfs", 0, NULL))
		die("/tmp, /run");
	setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", 1);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		set(settings[i][0], settings[i][1]);
	ip("link set lo up");
	if (!strcmp(address, "-"))
		return;
	snprintf(line, sizeof(line), "addr add %s/24 dev vec0", address);
	ip(line);
	ip("link set vec0 up");
}

/* The words of a command, as they come: each ends with a zero, the last one is empty. */
static void take_words(int fd, char **words)
{
	static char buf[65536];
	size_t n = 0;
	int count = 0, start = 0;

	for (;;) {
		ssize_t got = read(fd, buf + n, sizeof(buf) - n);

		if (got <= 0)
			exit(1);
		for (size_t end = n + got; n < end; n++) {
			if (buf[n])
				continue;
			if (start == (int)n) {
				words[count] = NULL;
				return;
			}
			if (count < WORDS - 1)
				words[count++] = buf + start;
			start = n + 1;
		}
	}
}

/* What is in a pipe, as frames; 0 when it is closed. */
static int pass_on(int from, int to, char kind)
{
	char buf[4096];
	ssize_t n = read(from, buf, sizeof(buf));

	if (n > 0)
		frame_put(to, kind, buf, n);
	return n > 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGTERM);
	for (int i = 0; i < PARTING; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			exit(0);
		usleep(1000);
	}
	kill(pid, SIGKILL);
	exit(0);
}

/* One command, in a process of its own. */
static void serve(int fd)
{
	char *words[WORDS];
	int out[2], err[2], status;
	pid_t pid;

	take_words(fd, words);
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		die("pipe");
	pid = fork();
	if (!pid) {
		signal(SIGCHLD, SIG_DFL);
		dup2(out[1], 1);
		dup2(err[1], 2);
		execvp(words[0], words);
		die(words[0]);
	}
	close(out[1]);
	close(err[1]);

	struct pollfd p[] = {
		{ .fd = out[0], .events = POLLIN },
		{ .fd = err[0], .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 3, -1) < 0)
			die("poll");
		if (p[2].revents)
			end(pid);
		if (p[0].revents && !pass_on(out[0], fd, FRAME_OUT))
			p[0].fd = -1;
		if (p[1].revents && !pass_on(err[0], fd, FRAME_ERR))
			p[1].fd = -1;
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	frame_put(fd, FRAME_STATUS, &status, sizeof(status));
	exit(0);
}

static void answer(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(FRAME_PORT) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(listener, 16))
		die("listen");
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (fd < 0)
			continue;
		if (!fork())
			serve(fd);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	int last = 1;

	while (last < argc && strcmp(argv[last], "end"))
		last++;
	if (last < 2 || last == argc) {
		fprintf(stderr, "usage: see the head of agent.c\n");
		return 2;
	}
	argv[last] = NULL;
	prepare(argv[1]);
	if (last == 2)
		answer();
	run(argv + 2);
	reboot(RB_POWER_OFF);
	return 1;
}
