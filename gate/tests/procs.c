// SPDX-License-Identifier: GPL-2.0
/*
 * procs.c - threads, fork, vfork, spawn, exec; prints the same on the host
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(c)	printf("%-60s %s\n", #c, (c) ? "yes" : "NO")

extern char **environ;
static __thread int tls = 5;
static volatile int shared;

static void *worker(void *arg)
{
	long sum = 0;

	tls = (long)arg;
	for (int i = 0; i < 2000; i++) {
		sum += getpid() > 0;
		if (i % 100 == 0)
			sched_yield();
	}
	return (void *)(tls == (long)arg ? sum : 0);
}

static void threads(void)
{
	pthread_t t[16];
	long good = 0;
	void *ret;

	for (int round = 0; round < 8; round++) {
		for (long i = 0; i < 16; i++)
			pthread_create(&t[i], NULL, worker, (void *)i);
		for (int i = 0; i < 16; i++) {
			pthread_join(t[i], &ret);
			good += ret == (void *)2000;
		}
	}
	CHECK(good == 128);
	CHECK(tls == 5);
}

static void *forker(void *arg)
{
	long bad = 0;

	for (int i = 0; i < 10; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			char *p = malloc(100);

			free(p);
			_exit(getpid() != getppid() ? 7 : 8);
		}
		if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
			bad++;
	}
	return (void *)bad;
}

static void forks(void)
{
	pthread_t t[4];
	long bad = 0;
	void *ret;
	int status;

	shared = 1;
	if (!fork()) {
		shared = 2;
		_exit(shared + tls);
	}
	wait(&status);
	CHECK(shared == 1 && WEXITSTATUS(status) == 7);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, forker, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &ret);
		bad += (long)ret;
	}
	CHECK(bad == 0);

	if (!vfork()) {
		shared = 3;
		_exit(9);
	}
	wait(&status);
	CHECK(shared == 3 && WEXITSTATUS(status) == 9);
	for (int i = 0; i < 30; i++)
		if (!vfork()) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		} else {
			wait(&status);
			bad += status != 0;
		}
	CHECK(bad == 0);
	if (!vfork()) {
		execl("/nonexistent", "x", NULL);
		_exit(errno == ENOENT ? 3 : 4);
	}
	wait(&status);
	CHECK(WEXITSTATUS(status) == 3);
}

static void handler(int sig)
{
	shared = sig;
}

static void spawns(void)
{
	char *sh[] = { "sh", "-c", "test \"$X\" = y && kill -USR1 $$; exit 5", NULL };
	char *env[] = { "X=y", "PATH=/bin:/usr/bin", NULL };
	posix_spawnattr_t attr;
	sigset_t def;
	int status;
	pid_t pid;

	signal(SIGUSR1, handler);
	CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, sh, env) == 0);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	raise(SIGUSR1);
	CHECK(shared == SIGUSR1);
	posix_spawnattr_init(&attr);
	sigfillset(&def);
	posix_spawnattr_setsigdefault(&attr, &def);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	sigemptyset(&def);
	posix_spawnattr_setsigmask(&attr, &def);
	sh[2] = "exit 6";
	CHECK(posix_spawn(&pid, "/bin/sh", NULL, &attr, sh, environ) == 0);
	waitpid(pid, &status, 0);
	CHECK(WEXITSTATUS(status) == 6);
	shared = 0;
	raise(SIGUSR1);
	CHECK(shared == SIGUSR1);
	CHECK(posix_spawn(&pid, "/nonexistent", NULL, NULL, sh, environ) == ENOENT);
	CHECK(WEXITSTATUS(system("exit 4")) == 4);
}

static int raw_child(void *arg)
{
	shared += (long)arg;
	return 11;
}

static void raw(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct clone_args ca = { .exit_signal = SIGCHLD };
	int status, pidfd = -1;
	siginfo_t si;
	pid_t pid;

	shared = 0;
	pid = clone(raw_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)5);
	waitpid(pid, &status, 0);
	CHECK(shared == 5 && WEXITSTATUS(status) == 11);
	pid = clone(raw_child, stack + sizeof(stack), SIGCHLD, (void *)5);
	waitpid(pid, &status, 0);
	CHECK(shared == 5 && WEXITSTATUS(status) == 11);
	ca.flags = CLONE_PIDFD;
	ca.pidfd = (unsigned long)&pidfd;
	pid = syscall(SYS_clone3, &ca, sizeof(ca));
	if (!pid)
		_exit(12);
	CHECK(waitid(P_PIDFD, pidfd, &si, WEXITED) == 0 && si.si_status == 12);
	close(pidfd);
	ca.flags = CLONE_CLEAR_SIGHAND;
	ca.pidfd = 0;
	pid = syscall(SYS_clone3, &ca, sizeof(ca));
	if (!pid) {
		struct sigaction sa;

		sigaction(SIGUSR1, NULL, &sa);
		_exit(sa.sa_handler == SIG_DFL ? 13 : 14);
	}
	waitpid(pid, &status, 0);
	CHECK(WEXITSTATUS(status) == 13);
	CHECK(syscall(SYS_clone3, (void *)8, sizeof(ca)) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_clone3, &ca, 8) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_clone, CLONE_THREAD, 0, 0, 0, 0) == -1 && errno == EINVAL);
}

static char *run(char *const argv[], int fd)
{
	static char out[4096];
	int p[2], status;
	ssize_t n, len = 0;
	pid_t pid;

	if (pipe(p))
		exit(1);
	pid = fork();
	if (!pid) {
		dup2(p[1], 1);
		close(p[0]);
		close(p[1]);
		if (fd >= 0)
			fexecve(fd, argv, environ);
		else
			execv(argv[0], argv);
		dprintf(1, "errno %d", errno);
		_exit(1);
	}
	close(p[1]);
	while ((n = read(p[0], out + len, sizeof(out) - 1 - len)) > 0)
		len += n;
	out[len] = 0;
	close(p[0]);
	waitpid(pid, &status, 0);
	return out;
}

static void write_file(const char *path, const char *text, int mode)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, mode);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		exit(1);
	fchmod(fd, mode);
	close(fd);
}

static void execs(void)
{
	char dir[] = "/tmp/ring3-gate-XXXXXX", a[200], b[200];
	char *script[] = { a, "one", "two words", NULL };
	char *nested[] = { b, "arg", NULL };
	char *sh[] = { "/bin/sh", "-c", "echo $0 $1; readlink /proc/self/fd/1 | cut -c1-4", "zero", "x", NULL };
	char *cmd[] = { "/bin/cat", "/proc/self/cmdline", NULL };
	int fd;

	if (!mkdtemp(dir))
		exit(1);
	snprintf(a, sizeof(a), "%s/a", dir);
	snprintf(b, sizeof(b), "%s/b", dir);
	write_file(a, "#! /bin/sh -e\necho \"$#\" \"$1\" \"$2\"; cat /proc/$$/comm\n", 0755);
	CHECK(!strcmp(run(script, -1), "2 one two words\na\n"));
	write_file(b, "#! \n", 0755);
	CHECK(!strcmp(run(nested, -1), "errno 8"));
	{
		char text[300];

		snprintf(text, sizeof(text), "#!%s  x y \n", a);
		write_file(b, text, 0755);
	}
	{
		char want[400];

		snprintf(want, sizeof(want), "3 x y %s\nb\n", b);
		CHECK(!strcmp(run(nested, -1), want));
	}
	write_file(b, "#!/nonexistent\n", 0755);
	CHECK(!strcmp(run(nested, -1), "errno 2"));
	write_file(b, "garbage", 0755);
	CHECK(!strcmp(run(nested, -1), "errno 8"));
	write_file(b, "\177ELF garbage", 0755);
	CHECK(!strcmp(run(nested, -1), "errno 8"));
	write_file(b, "#!/bin/sh\n", 0644);
	CHECK(!strcmp(run(nested, -1), "errno 13"));
	CHECK(!strcmp(run(sh, -1), "zero x\npipe\n"));
	fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	CHECK(!strcmp(run(sh, fd), "zero x\npipe\n"));
	close(fd);
	fd = open("/bin/sh", O_PATH);
	CHECK(!strcmp(run(sh, fd), "zero x\npipe\n"));
	close(fd);
	CHECK(!memcmp(run(cmd, -1), "/bin/cat\0/proc/self/cmdline", 28));
	CHECK(execve("/bin/true", (void *)8, environ) == -1 && errno == EFAULT);
	CHECK(execve((void *)8, sh, environ) == -1 && errno == EFAULT);
	CHECK(execve("/bin/true", sh, (void *)8) == -1 && errno == EFAULT);
	CHECK(execve("", sh, environ) == -1 && errno == ENOENT);
	CHECK(execve("/", sh, environ) == -1 && errno == EACCES);
	unlink(a);
	unlink(b);
	rmdir(dir);
}

static void memory(void)
{
	char *was = sbrk(0), *p;

	p = sbrk(1 << 24);
	CHECK(p == was);
	memset(p, 1, 1 << 24);
	CHECK(sbrk(-(1 << 24)) == was + (1 << 24));
	CHECK((unsigned long)was < 0x550000000000ul || (unsigned long)was > 0x555400000000ul);
}

static void *exec_self(void *arg)
{
	execl("/bin/echo", "echo", "exec from a thread", NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	setvbuf(stdout, NULL, _IONBF, 0);
	threads();
	forks();
	spawns();
	raw();
	execs();
	memory();
	pthread_create(&t, NULL, exec_self, NULL);
	pthread_join(t, NULL);
	return 1;
}
