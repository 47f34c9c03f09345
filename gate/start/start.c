// SPDX-License-Identifier: GPL-2.0
/*
 * start.c - from the host's exec of the gate to the program's first instruction
 *
 *   ring3-gate [--] PROGRAM ARGS...	with RING3_NODE in the environment: joins
 *   (any argv)			with RING3_EXEC in it: goes on after an exec
 *
 * gate_execve() makes RING3_EXEC, and this file removes it: THREAD:FD_BASE:FILTERS:LINKS:LENT:PATH (hexadecimal
 * numbers). The program is open at GATE_FD_PROGRAM, or at LENT if that is not 0. LINKS: ports with memory, one bit
 * each. If FILTERS is not 0, GATE_FD_FILTERS has the seccomp filters.
 * Exit status: 125 ring3's own failure, 126 not executable, 127 not found.
 */
#include "process/clone.h"
#include "process/trace.h"
#include <linux/prctl.h>

struct gate_state gate;

static const char *env_value(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static void env_remove(char **envp, const char *name)
{
	size_t n = strlen(name);
	char **to = envp;

	for (; *envp; envp++)
		if (strncmp(*envp, name, n) || (*envp)[n] != '=')
			*to++ = *envp;
	*to = NULL;
}

static long open_path(const char *path)
{
	return host_syscall4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
}

/* execvp's search: the first file that can be run. Remembers a refused file for the message. */
static long search(const char *name, const char *path, char *found, size_t size)
{
	long best = -ENOENT, fd;

	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
	while (true) {
		size_t n = 0;

		while (path[n] && path[n] != ':')
			n++;
		if (n + strlen(name) + 2 <= size) {
			struct stat st;

			memcpy(found, path, n);
			gate_format(found + n, size - n, "%s%s", n ? "/" : "./", name);
			fd = open_path(found);
			if (fd >= 0 && !host_syscall2(__NR_fstat, fd, (long)&st) &&
			    (st.st_mode & 0170000) == 0100000 &&
			    !host_syscall3(__NR_faccessat, AT_FDCWD, (long)found, 1))
				return fd;
			if (fd >= 0)
				host_syscall1(__NR_close, fd);
			if (fd == -EACCES)
				best = fd;
		}
		if (!path[n])
			return best;
		path += n + 1;
	}
}

static void __attribute__((noreturn)) cannot_run(const char *path, long error, const char *why)
{
	int code = error == -ENOENT ? 127 : 126;

	if (why[0])
		gate_die(code, "%s", why);
	switch (-error) {
	case ENOENT:
		gate_die(code, "%s: not found", path);
	case EACCES:
		gate_die(code, "%s: not an executable file that may be read and run (ring3 maps programs itself, so it must be able to read them)",
			 path);
	case ENOEXEC:
		gate_die(code, "%s: neither an x86-64 program nor a script with a #! line", path);
	case ELOOP:
		gate_die(code, "%s: too many levels of #! interpreters", path);
	}
	gate_die(code, "%s: cannot be run (error %ld)", path, -error);
}

static void fresh_program(struct program *p, char **envp)
{
	static char found[4096] GATE_TABLE;
	long fd;

	if (strchr(p->argv[0], '/')) {
		p->path = p->argv[0];
		fd = open_path(p->path);
	} else {
		fd = search(p->argv[0], env_value(envp, "PATH"), found, sizeof(found));
		p->path = fd < 0 ? p->argv[0] : found;
	}
	if (fd < 0)
		cannot_run(p->path, fd, "");
	p->fd = fd;
	p->execfn = p->path;
}

static void name_thread(const char *path)
{
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	host_syscall2(__NR_prctl, PR_SET_NAME, (long)path);
	thread_named(path);
}

static void usage(void)
{
	gate_die(125, "usage: RING3_NODE=SOCKET ring3-gate [--] PROGRAM [ARGS...]; people use `ring3 run' or `ring3 exec'");
}

/* The state that the gate before an exec has passed on: the variable of exec.c. */
struct left {
	u64 thread, filters, links;
	u64 lent;		/* the program's file has this ordinary number */
};

static void begin_after_exec(struct program *p, char **envp, const char *after, struct left *left)
{
	left->thread = gate_strtou(after, 16, &after);
	fds_start(gate_strtou(after + 1, 16, &after));
	left->filters = gate_strtou(after + 1, 16, &after);
	left->links = gate_strtou(after + 1, 16, &after);
	left->lent = gate_strtou(after + 1, 16, &after);
	env_remove(envp, "RING3_EXEC");
	p->path = p->execfn = after + 1;
	p->fd = left->lent ? (int)left->lent : gate_fd(GATE_FD_PROGRAM);
}

static void begin_fresh(struct program *p, char **envp)
{
#ifndef GATE_NO_NODE
	if (env_value(envp, RING3_ENV_ADOPT))
		gate_adopt(env_value(envp, RING3_ENV_NODE), env_value(envp, RING3_ENV_ADOPT));
#endif
	if (p->argc > 1 && !strcmp(p->argv[1], "--"))
		p->argc--, p->argv++;
	p->argc--, p->argv++;
	if (p->argc < 1)
		usage();
	fds_start(0);
	fresh_program(p, envp);
}

/* Moves the program's file to its reserved number, if there is room. */
static void program_keep(struct program *p, struct left *left)
{
	struct stat st;
	long ret;

	if (left->lent)
		left->lent = p->fd;		/* a script's interpreter may have another number */
	if (p->fd != gate_fd(GATE_FD_PROGRAM)) {
		ret = gate_fd_keep(p->fd, GATE_FD_PROGRAM);
		if (ret < 0 && !left->lent)
			gate_die(125, "cannot keep the program's file open (error %ld)", -ret);
		left->lent = ret < 0 ? left->lent : 0;
		p->fd = ret < 0 ? p->fd : ret;
	}
	gate.asked = p->path;
	if (!host_syscall2(__NR_fstat, p->fd, (long)&st)) {
		gate.exe_dev = st.st_dev;
		gate.exe_ino = st.st_ino;
	}
}

u8 gate_straight[GATE_STRAIGHT_NR] GATE_KEPT;

void gate_start(u64 *sp)
{
	struct program p = { .argc = sp[0], .argv = (char **)(sp + 1) };
	char **envp = p.argv + p.argc + 1;
	const char *after = env_value(envp, "RING3_EXEC");
	struct ring3_thread *t;
	struct gate_tcb *tcb;
	char why[WHY_BYTES];
	struct left left = { 0 };
	u64 *auxv;
	long ret;

	for (auxv = (u64 *)envp; *auxv; auxv++)
		;
	auxv++;
	gate_debug = env_value(envp, "RING3_GATE_DEBUG");
	gate.threads = 1;
	memcpy(gate_straight, gate_straight_calls, sizeof(gate_straight));
	if (after)
		begin_after_exec(&p, envp, after, &left);
	else
		begin_fresh(&p, envp);
	ret = program_resolve(&p, after, why);	/* gate_execve() has probed it */
	if (ret)
		cannot_run(p.path, ret, why);
	program_keep(&p, &left);
#ifdef GATE_NO_NODE
	t = null_thread_new();
#else
	if (after)
		t = node_inherit(left.thread, left.links);
	else
		t = node_join(env_value(envp, RING3_ENV_NODE), RING3_JOIN_MAGIC);
#endif
	if (!after && gate_fd_keep(open_path("/proc/self/exe"), GATE_FD_SELF) < 0)
		gate_die(125, "cannot keep the gate's own file open");
	fds_started();
	if (after)
		vfork_done(t);
	memset(t->gate, 0, sizeof(t->gate));
	tcb = tcb_first(t);
	if (gate.sim && after)
		sim_exec_number(t);
	thread_adopt(t, tcb, tcb_altstack(tcb));
	if (after)
		proc_of(t)->wants = 0;	/* of a thread that the exec has ended */
	else
		trace_await();
	if (gate.sim && !after)
		image_call0(__NR_getpid);	/* waits for the first turn */
	signal_start();
	if (gate.sim && after)
		sim_exec_alone();
	if (gate.sim)
		sim_start();
	tsc_start();
	limits_start(!after);
	if (after) {
		cred_align(auxv);	/* exec changes capabilities depending on the ids */
		image_call0(RING3_NR_EXEC);
		cred_of_file(p.fd);
	}
	if (gate.sim)
		gate_life.sim_ids(auxv, after);
	if (left.filters)
		seccomp_restore();
	gate_life.start(!after);
	program_map(&p);
	if (left.lent) {
		gate_exe_note(left.lent);
		host_syscall1(__NR_close, left.lent);
	}
	program_stack(&p, envp, auxv, (u64)sp);
	name_thread(p.execfn);
	patch_start(&p);
	sim_cpu_start();
	sud_arm();
	gate_jump(p.entry, p.sp);
}
