// SPDX-License-Identifier: GPL-2.0
/*
 * hammer.c - host calls with fuzzed arguments, made directly from within a sandbox; static
 *
 *   hammer SEED CALLS FOLDER FILE NAME PID... <LIST
 *
 * First it takes its node over (taken.h). LIST is what ring3_sandbox::list says, one line for each call: its number, then "pass" or the error that it has
 * to give, or alternatives of conditions on arguments. A call that comes to another end is a finding.
 *
 *   12 pass
 *   41 if =0:1 &1:14 | =0:1 =1:5	else ENOSYS
 *   165 1				EPERM
 *
 * Children make the calls; one that does not go on, or has made enough, is killed and replaced. What they start is told to end by a number that
 * changes.
 * Prints "calls N passed N" now and then, "finding ..." for each finding, at last "scribbled N" and "over". The last act is to write
 * random words over all memory that is shared with others: the node's, its links', its keeper's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "taken.h"

#define CALLS_MAX	1024	/* numbers that the list may name */
#define CONDITIONS_MAX	128	/* of one call, all alternatives together */
#define WORKERS		2
#define PLACES		64	/* of 4 KiB each, which calls read and write */
#define PLACE		4096
/* Far from each other, from all else, and from what a call may name by chance: what is read into a place ends behind it. */
#define SHARED_AT	((void *)0x1230000000)
#define PLACES_AT	((void *)0x4560000000)
#define TURN_NS		2000000	/* after which a child that has not gone on is replaced */
#define TURN_CALLS	20000	/* of a child and what it starts: else they would become ever more */
#define REPORT		50000	/* calls between two lines */
#define FINDINGS_MAX	256
#define NOT_MADE	1	/* what no call of the list's errors gives */
#define LOOKS_MAX	1000
#define HEAVY_1_IN	256	/* of the calls that end, stop or duplicate their caller */
#define SCRIBBLES	200000
#define UNLISTED	(-ENOSYS)

struct condition {
	char kind;		/* = ! & 0, ~ of the kind of file in a mode; | ends an alternative */
	unsigned char argument;
	uint32_t value;
};

struct entry {
	int named, pass, error, count;
	struct condition conditions[CONDITIONS_MAX];
};

struct finding {
	long nr, args[6], result, expected;
};

static struct entry list[CALLS_MAX];
static int allowed[CALLS_MAX], allowed_count, checked[CALLS_MAX], checked_count;
static long victims[16];
static int victim_count;
static const char *folder, *file, *name;
static char *places;
static uint64_t state;

/* Of all children, and of what they start. */
static struct {
	uint64_t calls[WORKERS], passed[WORKERS], turn[WORKERS];
	unsigned int findings;
	volatile long result;
	struct finding found[FINDINGS_MAX];
} *shared;

/* No memory of this process's own is used once calls are made but these, so that what a call does to it is seen as it is. */
static long make(long nr, const long *a)
{
	return direct(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#define MAKE7(nr, a, b, c, d, e, f, ...) make(SYS_##nr, (long[]){ (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f) })
#define MAKE(nr, ...) MAKE7(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(rnd() >> 32) % n;
}

/* ---- what a call has to come to ---- */

static void read_list(void)
{
	char line[4096], *word, *rest;

	while (fgets(line, sizeof(line), stdin)) {
		struct entry *e;
		long nr = strtol(line, &rest, 10);

		if (nr < 0 || nr >= CALLS_MAX) {
			printf("list: no call %ld\n", nr);
			exit(1);
		}
		e = &list[nr];
		e->named = 1;
		word = strtok(rest, " \n");
		if (!strcmp(word, "pass")) {
			e->pass = 1;
			allowed[allowed_count++] = (int)nr;
			continue;
		}
		if (strcmp(word, "if")) {
			e->error = -atoi(word);
			continue;
		}
		e->error = -atoi(strtok(NULL, " \n"));
		checked[checked_count++] = (int)nr;
		while ((word = strtok(NULL, " \n"))) {
			struct condition *c = &e->conditions[e->count++];

			if (e->count == CONDITIONS_MAX) {
				printf("list: call %ld has too many conditions\n", nr);
				exit(1);
			}
			c->kind = word[0];
			if (word[0] != '|') {
				c->argument = (unsigned char)(word[1] - '0');
				c->value = (uint32_t)strtoul(word + 3, NULL, 10);
			}
		}
	}
}

static int holds(const struct condition *c, const long *args)
{
	uint32_t low = (uint32_t)args[c->argument];

	switch (c->kind) {
	case '=': return low == c->value;
	case '!': return low != c->value;
	case '&': return !(low & c->value);
	case '~': return (low & S_IFMT) == c->value;
	default: return !args[c->argument];
	}
}

/* Zero: it may come to anything. */
static long expected(long number, const long *args)
{
	int nr = (int)number, i, all = 1;	/* the host takes the low half, with its sign */
	const struct entry *e;

	if (nr < 0 || nr >= CALLS_MAX || !list[nr].named)
		return UNLISTED;
	e = &list[nr];
	if (e->pass || !e->count)
		return e->pass ? 0 : e->error;
	for (i = 0; i < e->count; i++) {
		if (e->conditions[i].kind != '|')
			all &= holds(&e->conditions[i], args);
		else if (all)
			return 0;
		else
			all = 1;
	}
	return all ? 0 : e->error;
}

/* ---- what is called ---- */

/* These end, stop or duplicate their caller, or take its memory; others would hardly be made beside them. */
static int is_heavy(long nr)
{
	static const short heavy[] = {
		SYS_exit, SYS_exit_group, SYS_pause, SYS_rt_sigsuspend, SYS_rt_sigreturn, SYS_fork, SYS_vfork, SYS_clone,
		SYS_execve, SYS_execveat, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
		SYS_pidfd_send_signal, SYS_ptrace, SYS_select, SYS_pselect6, SYS_poll, SYS_ppoll, SYS_nanosleep,
		SYS_clock_nanosleep, SYS_futex, SYS_futex_waitv, SYS_wait4, SYS_waitid, SYS_epoll_wait, SYS_epoll_pwait,
		SYS_epoll_pwait2, SYS_rt_sigtimedwait, SYS_munmap, SYS_mremap, SYS_mmap, SYS_mprotect, SYS_brk, SYS_alarm, SYS_setitimer,
		SYS_timer_settime, SYS_seccomp, SYS_setrlimit, SYS_prlimit64, SYS_close_range, SYS_accept,
		SYS_accept4, SYS_flock, SYS_fsync, SYS_fdatasync, SYS_mlockall, SYS_mlock, SYS_mlock2, SYS_setsid,
		SYS_setpgid, SYS_getrandom, SYS_landlock_restrict_self, SYS_read, SYS_recvmsg, SYS_recvfrom, SYS_madvise,
		SYS_membarrier, SYS_copy_file_range, SYS_sendfile, SYS_splice, SYS_tee, SYS_rt_sigaction, SYS_arch_prctl,
		SYS_process_vm_readv, SYS_process_vm_writev, SYS_setuid, SYS_setreuid, SYS_setresuid, SYS_msync,
		SYS_readahead, SYS_recvmmsg,
	};
	unsigned int i;

	for (i = 0; i < sizeof(heavy) / sizeof(heavy[0]); i++)
		if (heavy[i] == nr)
			return 1;
	return 0;
}

static long any_number(void)
{
	long nr;

	for (;;) {
		switch (below(8)) {
		case 0:
			return (long)rnd() & ~0xffff0000L;	/* what lies above the low half is nothing to the host */
		case 1:
			return (long)rnd();
		case 2:
			nr = checked[below((uint32_t)checked_count)];
			break;
		case 3: case 4:
			nr = allowed[below((uint32_t)allowed_count)];
			break;
		case 5:
			nr = below(600) | (below(4) ? 0 : 0x40000000);
			break;
		default:
			nr = below(600);
		}
		if (!is_heavy(nr) || !below(HEAVY_1_IN))
			return nr;
	}
}

/* But for uretprobe() and uprobe(), which pass every filter by the host's own rule, and do nothing outside of a probe. */
static long number(void)
{
	long nr;

	do
		nr = any_number();
	while ((int)nr == 335 || (int)nr == 336);
	return nr;
}

static char *place(void)
{
	return places + below(PLACES) * PLACE + (below(4) ? 0 : below(PLACE));
}

static long argument(void)
{
	static const long sizes[] = { 0, 1, 4, 8, 12, 16, 24, 64, 112, 4096, 65536, 1 << 20, -1, 0x7fffffff, 0x80000000 };

	switch (below(12)) {
	case 0: return 0;
	case 1: return below(24) + 3;		/* a descriptor; standard ones are the sandbox's, to no file */
	case 2: return -100;			/* AT_FDCWD */
	case 3: return sizes[below(sizeof(sizes) / sizeof(sizes[0]))];
	case 4: return 1L << below(64);
	case 5: return (long)(rnd() & rnd() & rnd());
	case 6: return (long)rnd();
	case 7: return victims[below((uint32_t)victim_count)];
	case 8: return (long)gadget - (long)below(1 << 22);	/* the node's text; scribble() does the rest */
	case 9: return below(70000);
	default: return (long)place();
	}
}

/* Of a call with conditions, its alternatives and what lies near them. */
static void near_conditions(long nr, long *args)
{
	const struct entry *e = nr >= 0 && nr < CALLS_MAX ? &list[nr] : NULL;
	int i;

	if (!e || !e->count || !below(3))
		return;
	for (i = (int)below((uint32_t)e->count); i < e->count && e->conditions[i].kind != '|'; i++) {
		const struct condition *c = &e->conditions[i];
		uint32_t value = c->kind == '0' ? 0 : c->value;

		if (!below(3))
			value ^= 1U << below(32);
		args[c->argument] = (long)value | (below(4) ? 0 : (long)(rnd() << 32));
	}
}

/* Paths, names, numbers and addresses, as calls read them. */
static void fill(char *p)
{
	static const char * const paths[] = {
		"/", "/etc/shadow", "/proc/self/mem", "/proc/1/root", "/dev/mem", "/dev/kmsg", "/sys/kernel", "/tmp/..",
		"/usr/bin/env", "..", "/proc/self/exe", "/dev/shm", "/proc/self/fd/3", "/run", "/root",
	};
	struct sockaddr_un *un = (void *)p;
	uint32_t i;

	switch (below(8)) {
	case 0:
		strcpy(p, file);
		break;
	case 1:
		snprintf(p, 256, "%s/%s", folder, below(2) ? "spare" : "new");
		break;
	case 2:
		strcpy(p, paths[below(sizeof(paths) / sizeof(paths[0]))]);
		break;
	case 3:
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s/server", folder);
		break;
	case 4:
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "%s", name);
		break;
	case 5:
		for (i = 0; i < 8; i++)
			((long *)p)[i] = below(2) ? (long)place() : (long)below(4096);
		break;
	case 6:
		*(struct timespec *)p = (struct timespec){ 0, below(1000) };
		break;
	default:
		for (i = 0; i < 64; i++)
			((uint64_t *)p)[i] = rnd() >> below(64);
	}
}

static void note(long nr, const long *args, long result, long wanted)
{
	unsigned int at = __atomic_fetch_add(&shared->findings, 1, __ATOMIC_RELAXED);
	int i;

	if (at >= FINDINGS_MAX)		/* drive() looks often: there are never so many */
		return;
	shared->found[at] = (struct finding){ .nr = nr, .result = result, .expected = wanted };
	for (i = 0; i < 6; i++)
		shared->found[at].args[i] = args[i];
}

static void work(int worker, uint64_t turn, uint64_t seed)
{
	long args[6];
	int i;

	state = seed | 1;
	for (i = 0; i < PLACES; i++)
		fill(places + i * PLACE);
	while (__atomic_load_n(&shared->turn[worker], __ATOMIC_RELAXED) == turn) {
		long nr = number(), wanted, result;

		for (i = 0; i < 6; i++)
			args[i] = argument();
		near_conditions(nr, args);
		wanted = expected(nr, args);
		result = make(nr, args);
		__atomic_fetch_add(&shared->calls[worker], 1, __ATOMIC_RELAXED);
		if (!wanted)
			__atomic_fetch_add(&shared->passed[worker], 1, __ATOMIC_RELAXED);
		else if (result != wanted)
			note(nr, args, result, wanted);
		if (!below(64))
			fill(places + below(PLACES) * PLACE);
	}
	MAKE(exit_group, 0);
}

/* ---- children ---- */

static long start(int worker)
{
	uint64_t turn = __atomic_add_fetch(&shared->turn[worker], 1, __ATOMIC_RELAXED), seed = rnd();
	/* By the host's own: neither gate nor node has a part in it. */
	long pid = MAKE(fork, 0);

	if (!pid) {
		long null = MAKE(open, "/dev/null", O_RDWR), fd;

		MAKE(setpgid, 0, 0);
		for (fd = 0; fd < 3; fd++)
			MAKE(dup2, null, fd);
		work(worker, turn, seed);
	}
	return pid;
}

/* The node, by way of which others write, may be no more. */
static void put(const char *format, ...)
{
	char line[512];
	va_list list;
	int len;

	va_start(list, format);
	len = vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	MAKE(write, 1, line, len);
}

static void tell(void)
{
	uint64_t calls = 0, passed = 0;
	int i;

	for (i = 0; i < WORKERS; i++)
		calls += shared->calls[i], passed += shared->passed[i];
	put("calls %llu passed %llu\n", (unsigned long long)calls, (unsigned long long)passed);
}

/*
 * The same call once more, in a child of its own. What the host's filter says depends on number and arguments alone. What a worker has noted may be
 * another's: clone() and vfork() leave two on one stack.
 */
static long again(const struct finding *f)
{
	struct timespec turn = { 0, TURN_NS };
	long pid, looks;

	shared->result = NOT_MADE;
	pid = MAKE(fork, 0);
	if (!pid) {
		shared->result = make(f->nr, f->args);
		MAKE(exit_group, 0);
	}
	for (looks = 0; looks < LOOKS_MAX && shared->result == NOT_MADE; looks++)
		MAKE(nanosleep, &turn, 0);
	MAKE(kill, pid, SIGKILL);
	return shared->result;
}

static void tell_findings(unsigned int *told)
{
	for (; *told < shared->findings && *told < FINDINGS_MAX; (*told)++) {
		struct finding *f = &shared->found[*told];
		long wanted = expected(f->nr, f->args), result = wanted ? again(f) : 0;

		if (result == wanted)
			continue;
		put("finding: call %#lx(%#lx, %#lx, %#lx, %#lx, %#lx, %#lx) gives %ld instead of %ld\n", f->nr, f->args[0],
		    f->args[1], f->args[2], f->args[3], f->args[4], f->args[5], result, wanted);
	}
	if (*told == FINDINGS_MAX && shared->findings >= FINDINGS_MAX)
		*told = shared->findings = 0;
}

static void drive(uint64_t calls)
{
	struct timespec turn = { 0, TURN_NS };
	uint64_t first[WORKERS] = { 0 }, last[WORKERS] = { 0 }, told = 0;
	unsigned int findings = 0;
	long pids[WORKERS] = { 0 };
	int i;

	for (;;) {
		uint64_t sum = 0;

		for (i = 0; i < WORKERS; i++) {
			uint64_t now = __atomic_load_n(&shared->calls[i], __ATOMIC_RELAXED);

			sum += now;
			if (pids[i] > 0 && now != last[i] && now - first[i] < TURN_CALLS) {
				last[i] = now;
				continue;
			}
			if (pids[i] > 0) {
				MAKE(kill, -pids[i], SIGKILL);
				MAKE(kill, pids[i], SIGKILL);
			}
			first[i] = now;
			pids[i] = start(i);
		}
		if (sum / REPORT != told) {
			told = sum / REPORT;
			tell();
		}
		tell_findings(&findings);
		if (sum >= calls)
			break;
		MAKE(nanosleep, &turn, 0);
		while (MAKE(wait4, -1, 0, 1 /* WNOHANG */, 0) > 0)
			;
	}
	for (i = 0; i < WORKERS; i++) {
		__atomic_add_fetch(&shared->turn[i], 1, __ATOMIC_RELAXED);
		MAKE(kill, -pids[i], SIGKILL);
	}
	tell();
	tell_findings(&findings);
}

/* ---- memory that others share ---- */

static void scribble(void)
{
	static char text[1 << 16];
	struct { unsigned long from, to; } maps[64];
	long fd = MAKE(epoll_wait_old, 0), len = 0, got, i;	/* the warden gives a process its own /proc/PID/maps */
	int count = 0;
	char *line;

	while (fd >= 0 && len < (long)sizeof(text) - 1 && (got = MAKE(read, fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += got;
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char mode[5];

		if (sscanf(line, "%lx-%lx %4s", &maps[count].from, &maps[count].to, mode) == 3 && !strncmp(mode + 1, "w", 1) &&
		    mode[3] == 's' && maps[count].from != (unsigned long)shared && count < 63)
			count++;
	}
	put("scribbled %d\n", count ? SCRIBBLES : 0);
	for (i = 0; count && i < SCRIBBLES; i++) {
		int at = (int)below((uint32_t)count);
		uint64_t *word = (void *)(maps[at].from + rnd() % (maps[at].to - maps[at].from) / 8 * 8);

		/* What lies near the beginning of each: heads and rings. */
		if (!below(4))
			word = (void *)(maps[at].from + below(4096) / 8 * 8);
		*word = rnd() >> below(64);
	}
	put("over\n");
	MAKE(exit_group, 0);
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 7)
		return 2;
	state = strtoull(argv[1], NULL, 0) | 1;
	folder = argv[3], file = argv[4], name = argv[5];
	for (i = 6; i < argc && victim_count < 14; i++)
		victims[victim_count++] = atol(argv[i]);
	victims[victim_count++] = -1;
	read_list();
	take_over();
	places = mmap(PLACES_AT, PLACES * PLACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	shared = mmap(SHARED_AT, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (places == MAP_FAILED || shared == MAP_FAILED)
		return 2;
	drive(strtoull(argv[2], NULL, 0));
	scribble();
	return 0;
}
