// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * firstline - how long a program takes until it says a word, and its memory then
 *
 *	firstline WORD PROGRAM [ARGUMENT...]
 *
 * Prints "ms", "mib": the memory of the program and all that descends from it, SETTLE
 * later, and "beyond_mib": that without text. A stack that has its memory in a file without a name (a node, a
 * User-mode Linux) has what the host has given to that file, whoever maps how much of it; all else counts by
 * the proportional share. Text is what is mapped from files to be executed and not to be written, and a
 * node's kernel, which all of its processes share. A User-mode Linux maps its kernel from
 * a file; its programs' text is its own memory. Then all of them are ended.
 */
#include "wire.h"
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define SETTLE	300	/* ms */
#define PATIENCE 10	/* s */
#define FILES	64	/* of memory, in all processes */

/* Files of memory that were counted. */
static struct { dev_t dev; ino_t ino; } counted[FILES];
static int files;

static double all, text;	/* KiB */
static unsigned long node_text;	/* where it was counted */

/* Counts the file of memory behind a mapping, unless it has been, or is gone. */
static void file_of(int pid, unsigned long from, unsigned long to)
{
	char path[128];
	struct stat s;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, from, to);
	if (stat(path, &s)) {
		if (errno == ENOENT)
			return;
		die(path);
	}
	for (int i = 0; i < files; i++)
		if (counted[i].dev == s.st_dev && counted[i].ino == s.st_ino)
			return;
	if (files == FILES) {
		fprintf(stderr, "more than %d files of memory\n", FILES);
		exit(1);
	}
	counted[files].dev = s.st_dev;
	counted[files++].ino = s.st_ino;
	all += s.st_blocks / 2.0;
}

/* Counts one process, unless it is gone. */
static void count(int pid)
{
	char path[64], line[4096], mode[8];
	unsigned long from, to;
	int own = 1, is_text = 0, end;
	double kib;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	f = fopen(path, "r");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		end = 0;
		if (sscanf(line, "%lx-%lx %7s %*x %*x:%*x %*u %n", &from, &to, mode, &end) == 3 && end) {
			own = strncmp(line + end, "/memfd:", 7) && strncmp(line + end, "/dev/shm/", 9);
			is_text = mode[2] == 'x' && mode[1] != 'w' && line[end] == '/';
			if (!own)
				file_of(pid, from, to);
			/* All processes of a node map it at the same place, whole, and it is filled at boot. */
			if (!own && is_text && !strncmp(line + end, "/memfd:ring3:", 13) && from != node_text) {
				node_text = from;
				text += (to - from) / 1024.0;
			}
		} else if (own && sscanf(line, "Pss: %lf", &kib) == 1) {
			all += kib;
			text += is_text ? kib : 0;
		}
	}
	fclose(f);
}

/* All that descends from a process, itself first. */
static int family[256], members;

static void gather(int pid)
{
	char path[64];
	int child;
	FILE *f;

	if (members == sizeof(family) / sizeof(family[0]))
		return;
	family[members++] = pid;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "r");
	if (!f)
		return;
	while (fscanf(f, "%d", &child) == 1)
		gather(child);
	fclose(f);
}

/* Processes made with CLONE_VM have one memory between them: User-mode Linux's do. */
static int shares_memory(int with)
{
	for (int i = 0; i < with; i++) {
		long order = syscall(SYS_kcmp, family[i], family[with], KCMP_VM, 0, 0);

		if (!order)
			return 1;
		/* One of them is gone. */
		if (order < 0 && errno != ESRCH)
			die("kcmp");
	}
	return 0;
}

/* The program is asked to end, what is left of its family a second later is killed. */
static void end(int pid)
{
	kill(pid, SIGTERM);
	for (int i = 0; i < 1000 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		usleep(1000);
	members = 0;
	gather(getpid());
	for (int i = 1; i < members; i++)
		kill(family[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

int main(int argc, char **argv)
{
	uint64_t start, said = 0;
	char line[1024];
	int ends[2];
	pid_t pid;
	FILE *f;

	if (argc < 3) {
		fprintf(stderr, "usage: see the head of firstline.c\n");
		return 2;
	}
	/* What the program leaves behind becomes a child of this one. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || pipe2(ends, O_CLOEXEC))
		die("firstline");
	alarm(PATIENCE);
	start = now_ns();
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	while (!said && fgets(line, sizeof(line), f))
		if (strstr(line, argv[1]))
			said = now_ns();
	if (!said) {
		fprintf(stderr, "%s ended without a word\n", argv[2]);
		return 1;
	}
	usleep(SETTLE * 1000);
	gather(pid);
	for (int i = 0; i < members; i++)
		if (!shares_memory(i))
			count(family[i]);
	end(pid);
	out("ms", (said - start) / 1e6);
	out("mib", all / 1024);
	out("beyond_mib", (all - text) / 1024);
	return 0;
}
