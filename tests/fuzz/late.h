/* SPDX-License-Identifier: GPL-2.0 */
/*
 * late.h - a process that does not come to its end: does it hang, or is it kept from running?
 *
 * Its time runs while it sleeps, and while it has a CPU; not while it waits for one, by what the host
 * says of each of its threads and of its children's. So one that sleeps for ever is found
 * in the same time on a busy machine as on a quiet one, and one that spins once it has spun for long.
 */
#ifndef FUZZ_LATE_H
#define FUZZ_LATE_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LATE_TASKS	64

struct late {
	uint64_t since, last;	/* ms of the clock: when it was looked at first, and last */
	uint64_t had_ms;	/* of the time since: what it could have used */
	struct late_task {
		int tid;
		uint64_t ran_ns;
	} tasks[LATE_TASKS];
	int n;
};

static void late_read(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, size - 1, f) : 0;

	text[n] = 0;
	if (f)
		fclose(f);
}

/* One thread: what it ran since last time, as far as it limits what its process had. */
static void late_task(struct late *l, int pid, int tid, uint64_t *had_ns)
{
	char path[64], text[512], *name_end;
	uint64_t ran, before;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	late_read(path, text, sizeof(text));
	ran = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	late_read(path, text, sizeof(text));
	name_end = strrchr(text, ')');
	for (i = 0; i < l->n && l->tasks[i].tid != tid; i++)
		;
	if (i == LATE_TASKS)
		return;
	before = i < l->n ? l->tasks[i].ran_ns : ran;
	l->tasks[i] = (struct late_task){ tid, ran };
	l->n += i == l->n;
	if (name_end && !strncmp(name_end, ") R", 3) && ran - before < *had_ns)
		*had_ns = ran - before;
}

static void late_process(struct late *l, int pid, uint64_t *had_ns, int depth)
{
	char path[80], text[512], *at, *end;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		int tid = atoi(e->d_name);

		if (!tid)
			continue;
		late_task(l, pid, tid, had_ns);
		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
		late_read(path, text, sizeof(text));
		for (at = text; depth && strtol(at, &end, 10) > 0; at = end)
			late_process(l, (int)strtol(at, NULL, 10), had_ns, depth - 1);
	}
	if (d)
		closedir(d);
}

/* Looks at a late process, at the most ten times a second. */
static void late_look(struct late *l, int pid, uint64_t now)
{
	uint64_t had_ns;

	if (!l->since)
		l->since = l->last = now;
	else if (now - l->last < 100)
		return;
	had_ns = (now - l->last) * 1000000;
	late_process(l, pid, &had_ns, 3);
	l->had_ms += had_ns / 1000000;
	l->last = now;
}

/* Which signals wait, and which are blocked. */
static void late_signals(int pid, int tid)
{
	char path[80], text[4096], *line;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	late_read(path, text, sizeof(text));
	for (line = strtok(text, "\n"); tid && line; line = strtok(NULL, "\n"))
		if (!strncmp(line, "Sig", 3) || !strncmp(line, "ShdPnd", 6))
			printf("  %d %s\n", tid, line);
}

/* For whoever looks for the reason: what its threads and its children's are doing. */
static void late_print(int pid, int depth)
{
	char path[80], text[512], *at, *end;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		static const char * const files[] = { "stat", "schedstat", "syscall", "children" };
		size_t i;

		for (i = 0; atoi(e->d_name) && i < sizeof(files) / sizeof(files[0]); i++) {
			snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, atoi(e->d_name), files[i]);
			late_read(path, text, sizeof(text));
			text[strcspn(text, "\n")] = 0;
			printf("  %d %s: %.100s\n", atoi(e->d_name), files[i], text);
		}
		late_signals(pid, atoi(e->d_name));
		/* `children' is still there: the last of the files. */
		for (at = text; atoi(e->d_name) && depth && strtol(at, &end, 10) > 0; at = end)
			late_print((int)strtol(at, NULL, 10), depth - 1);
	}
	if (d)
		closedir(d);
}

#endif
