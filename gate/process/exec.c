// SPDX-License-Identifier: GPL-2.0
/*
 * exec.c - execve() starts the gate again
 *
 * The host executes the gate's own file, with the program's unchanged argv and one more environment variable
 * (start.c), which names the thread block to continue with. The gate opens and checks the program before that, so
 * that most errors can still be returned to the caller.
 */
#include "internal.h"
#include "process/trace.h"
#include <linux/openat2.h>
#include <linux/ptrace.h>

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK	0x10000
#endif
#define ENV_MAX		(1u << 20)	/* pointers */
#define ENV_FEW		96		/* up to so many need no allocation */
#define VARIABLE	"RING3_EXEC="
#define BEFORE_PATH	80		/* room for the part before the path: 79 at most */
#define OPEN_PROGRAM	(O_RDONLY | O_CLOEXEC | O_NONBLOCK)	/* a FIFO is refused, not waited for */
#define PATH_FEW	256		/* bytes of a path that need no larger frame: see gate_execve() */

/*
 * Another program takes GATE_FD_PROGRAM for its exec. Returns a duplicate of the current one, which the exec
 * closes, or -errno if there is none: then the path is known.
 */
static long program_set_aside(void)
{
	long fd;

	fd = host_syscall3(__NR_fcntl, gate_fd(GATE_FD_PROGRAM), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		gate_exe_path();
	return fd;
}

#define NOT_TAKEN	(-4096)		/* not an errno: GATE_FD_PROGRAM is unchanged */

/* The exec failed. */
static void program_put_back(long aside)
{
	if (aside < 0 || gate_fd_keep(aside, GATE_FD_PROGRAM) < 0)
		fd_slot_idle(GATE_FD_PROGRAM);
}

static void program_end(u32 lent, long aside)
{
	if (lent)
		host_syscall1(__NR_close, lent);
	if (aside != NOT_TAKEN)
		program_put_back(aside);
}

/*
 * A path whose last component is exe may be that of a process of the node, which is the gate on the host. A
 * separate frame: see gate_execve().
 */
static long __attribute__((noinline)) open_exe(int dir, const char *path)
{
	char exe[PROC_EXE_BYTES];
	const char *file = gate_life.exe(dir, path, exe);

	return file ? gate_open_for_exec(AT_FDCWD, file, OPEN_PROGRAM) : gate_open_for_exec(dir, path, OPEN_PROGRAM);
}

/* Opens the file that execve(at) names; fills in the path for the new program. */
static long open_target(struct gate_regs *r, char *path, size_t size)
{
	bool at = r->nr == __NR_execveat;
	int dir = at ? (int)r->a[0] : AT_FDCWD;
	u64 flags = at ? r->a[4] : 0;
	long n = gate_strncpy_in(path, (void *)r->a[at], size), fd;
	char link[64];

	if (n < 0)
		return n;
	if (flags & ~(u64)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	if (!n && !(flags & AT_EMPTY_PATH))
		return -ENOENT;
	if (!n && (dir == AT_FDCWD || gate_fd_is_node(dir)))
		return -EACCES;		/* a directory, a socket */
	if (!n && host_syscall2(__NR_fcntl, dir, F_GETFD) < 0)
		return -EBADF;
	if (!n) {
		/* fexecve: the descriptor may be O_PATH, or close-on-exec */
		gate_format(link, sizeof(link), "/proc/self/fd/%d", dir);
		fd = gate_open_for_exec(AT_FDCWD, link, OPEN_PROGRAM);
		gate_format(path, size, "/dev/fd/%d", dir);
		return fd;
	}
	if (flags & AT_SYMLINK_NOFOLLOW)
		fd = gate_open_for_exec(dir, path, OPEN_PROGRAM | O_NOFOLLOW);
	else if (unlikely(n >= 3 && !strcmp(path + n - 3, "exe")))
		fd = open_exe(dir, path);
	else
		fd = gate_open_for_exec(dir, path, OPEN_PROGRAM);
	if (dir != AT_FDCWD && path[0] != '/') {
		size_t before = gate_format(link, sizeof(link), "/dev/fd/%d/", dir);

		if (before + n < size) {
			memmove(path + before, path, n + 1);
			memcpy(path, link, before);
		} else if (size == PATH_FEW) {
			if (fd >= 0)
				host_syscall1(__NR_close, fd);
			return -ENAMETOOLONG;
		}
	}
	return fd;
}

/*
 * The program's environment plus one variable: in `few', or if that is too small in allocated memory, which the
 * caller frees on failure. *size: the size of that memory.
 */
static long build_env(struct gate_regs *r, const char *variable, u64 few[ENV_FEW], u64 **env,
		      size_t *size)
{
	u64 from = r->nr == __NR_execveat ? r->a[3] : r->a[2], word;
	size_t n = 0, i;

	for (; from && n < ENV_MAX; n++) {
		if (gate_copy_in(&word, (void *)(from + 8 * n), 8))
			return -EFAULT;
		if (!word)
			break;
	}
	if (n == ENV_MAX)
		return -E2BIG;
	*env = few;
	if (n + 2 > ENV_FEW) {
		*size = (n + 2) * 8;
		*env = gate_pages(*size);
		if (!*env)
			return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		if (gate_copy_in(&(*env)[i], (void *)(from + 8 * i), 8))
			return -EFAULT;
	(*env)[n] = (u64)variable;
	(*env)[n + 1] = 0;
	return 0;
}

/* Does the path of execveat() lead through a descriptor that the exec closes? */
static bool path_closes(const struct gate_regs *r)
{
	char first = 0;

	return r->nr == __NR_execveat && (int)r->a[0] != AT_FDCWD &&
	       !gate_copy_in(&first, (void *)r->a[1], 1) && first != '/' &&
	       host_syscall2(__NR_fcntl, (int)r->a[0], F_GETFD) == FD_CLOEXEC;
}

/*
 * A file that is open for writing must not be executed (ETXTBSY). The gate maps the program itself, so the host
 * does not check; but it answers an explicit question. Linux before 6.14 does not know the question: there such a
 * file is executed.
 */
static bool is_being_written(long fd)
{
	static bool unknown;
	u64 argv[2] = { (u64)"", 0 };
	long ret;

	if (unknown)
		return false;
	ret = host_syscall5(__NR_execveat, fd, (long)"", (long)argv, (long)&argv[1], AT_EMPTY_PATH | AT_EXECVE_CHECK);
	unknown = ret == -EINVAL;
	return ret == -ETXTBSY;
}

/* `variable' has BEFORE_PATH bytes, followed by room for a path. */
static long execve_in(struct gate_regs *r, char *variable, size_t size_of_path)
{
	struct gate_tcb *tcb = gate_tcb();
	char *path = variable + BEFORE_PATH, *start, why[WHY_BYTES];
	u64 argv = r->nr == __NR_execveat ? r->a[2] : r->a[1];
	u64 empty[2] = { (u64)"", 0 }, few[ENV_FEW];
	u64 *env = NULL;
	size_t size = 0;
	long fd, ret, filters, aside, n;
	u32 lent = 0;

	fd = open_target(r, path, size_of_path);
	if (fd < 0)
		return fd;
	ret = program_probe(fd, path, path_closes(r), why);
	if (!ret && is_being_written(fd))
		ret = -ETXTBSY;
	if (ret) {
		host_syscall1(__NR_close, fd);
		if (why[0])
			gate_warn("%s", why);
		return ret;
	}
	aside = program_set_aside();
	ret = gate_fd_keep(fd, GATE_FD_PROGRAM);
	if (ret == -EMFILE) {
		/*
		 * The row is above a hard limit that was lowered since: the program is passed by its ordinary
		 * number.
		 */
		if (aside >= 0)
			host_syscall1(__NR_close, aside);
		aside = NOT_TAKEN;
		lent = fd;
		ret = host_syscall3(__NR_fcntl, fd, F_SETFD, 0);
	}
	filters = ret < 0 ? ret : seccomp_save();
	if (filters < 0) {
		program_end(lent, aside);
		return filters;
	}
	if (gate.sim)
		sim_exec_begins();
	n = gate_format(variable, BEFORE_PATH, VARIABLE "%lx:%x:%x:%lx:%x:",
			(unsigned long)gate_thread()->self, gate_fd_base, (u32)filters,
			(unsigned long)gate.links, lent);
	start = memmove(path - n, variable, n);
	ret = build_env(r, start, few, &env, &size);
	if (!ret) {
		/* In a vfork child this memory is the parent's, which frees it. */
		tcb->scratch = size ? env : NULL;
		tcb->scratch_size = size;
		if (gate_debug)
			counts_print();
		stat_flush();
		stop_others();
		if (tcb->traceme) {	/* from here on the tracer's stops can't keep this thread from the exec */
			struct ring3_proc *own = trace_place_take(host_syscall0(__NR_gettid));

			host_syscall4(__NR_ptrace, PTRACE_TRACEME, 0, 0, 0);
			trace_place_give(own);
		}
		signal_exec(true);
		gate_life.exec(true);
		/* A noted signal is delivered first: after the exec it would be lost, with all others blocked. */
		ret = gate_host(__NR_execveat, gate_fd(GATE_FD_SELF), (long)"",
				argv ? argv : (u64)empty, (long)env, AT_EMPTY_PATH, 0);
		gate_life.exec(false);
		signal_exec(false);
		stop_undo();
		tcb->scratch = NULL;
	}
	if (env && size)
		gate_pages_free(env, size);
	program_end(lent, aside);
	return ret;
}

static long __attribute__((noinline)) execve_few(struct gate_regs *r)
{
	char variable[BEFORE_PATH + PATH_FEW];

	return execve_in(r, variable, PATH_FEW);
}

static long __attribute__((noinline)) execve_many(struct gate_regs *r)
{
	char variable[BEFORE_PATH + 4096];

	return execve_in(r, variable, 4096);
}

/* In a child that was forked to exec, each page of stack costs a fault. */
long gate_execve(struct gate_regs *r)
{
	long ret = execve_few(r);

	return ret == -ENAMETOOLONG ? execve_many(r) : ret;
}
