// SPDX-License-Identifier: GPL-2.0
/*
 * seccomp.c - what a program's own filter says about its calls: errno, trap, kill; before and
 * after fork, exec and in threads; calls that the node serves and calls that the host does
 */
#include "oracle.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define NR	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ARG(n)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define ON(k, ret)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1), BPF_STMT(BPF_RET | BPF_K, ret)
#define ALLOW	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define E(e)	(SECCOMP_RET_ERRNO | (e))

static long install(struct sock_filter *code, size_t n, unsigned int flags)
{
	struct sock_fprog prog = { .len = n, .filter = code };

	return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}
#define INSTALL(flags, ...) ({						\
	struct sock_filter code[] = { __VA_ARGS__ };			\
	install(code, ARRAY_SIZE(code), flags);				\
})

/* Runs fn in a child; says how that ended. */
static void child(const char *name, void (*fn)(void))
{
	int status;
	pid_t pid = must(fork());

	if (!pid) {
		fn();
		fflush(stdout);
		_exit(0);
	}
	must(waitpid(pid, &status, 0));
	if (WIFSIGNALED(status))
		say("%s: signal %d", name, WTERMSIG(status));
	else
		say("%s: exit %d", name, WEXITSTATUS(status));
}

static int inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static void errno_inet(void)
{
	OK(inet());
	T(INSTALL(0, NR, ON(__NR_socket, E(EACCES)), ON(__NR_getpid, E(ENOTTY)),
		  ON(__NR_sendto, E(0)), ON(__NR_bind, E(5000)), ALLOW));
	OK(inet());
	T(socket(AF_UNIX, SOCK_STREAM, 0));
	for (int i = 0; i < 12; i++)	/* often enough for the site to be rewritten */
		need(syscall(__NR_getpid) == -1 && errno == ENOTTY);
	T(sendto(1, "x", 1, 0, NULL, 0));
	errno = 0;
	N(bind(0, NULL, 0));
	N(errno);
	N(prctl(PR_GET_SECCOMP));
}

/* By argument: only AF_INET. And that calls of sockets made before go on, or not. */
static void by_argument(void)
{
	int pair[2];
	char b[4];

	udp_pair(AF_INET, pair);
	T(INSTALL(0, NR, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
		  ARG(0), ON(AF_INET, E(EPERM)), ALLOW));
	OK(inet());
	OK(socket(AF_INET6, SOCK_STREAM, 0));
	T(send(pair[0], "abc", 3, 0));
	T(recv(pair[1], b, 4, 0));
	T(INSTALL(0, NR, ON(__NR_recvfrom, E(EBADMSG)), ALLOW));
	for (int i = 0; i < 12; i++)
		need(send(pair[0], "abc", 3, 0) == 3 && recv(pair[1], b, 4, 0) == -1);
	T(recv(pair[1], b, 4, 0));
	T(read(pair[1], b, 4));
}

/* The strictest of several filters counts, of equals the newest. */
static void several(void)
{
	T(INSTALL(0, NR, ON(__NR_getppid, E(1)), ON(__NR_getuid, E(1)), ALLOW));
	T(INSTALL(0, NR, ON(__NR_getppid, E(2)), ON(__NR_geteuid, E(3)), ALLOW));
	T(INSTALL(0, NR, ON(__NR_getuid, SECCOMP_RET_LOG), ALLOW));
	T(syscall(__NR_getppid));
	T(syscall(__NR_getuid));
	T(syscall(__NR_geteuid));
	OK(syscall(__NR_getgid));
}

static void kill_process(void)
{
	T(INSTALL(0, NR, ON(__NR_socket, SECCOMP_RET_KILL_PROCESS), ALLOW));
	OK(inet());
	say("alive");
}

static void kill_only_thread(void)
{
	T(INSTALL(0, NR, ON(__NR_getppid, SECCOMP_RET_KILL_THREAD), ALLOW));
	syscall(__NR_getppid);
	say("alive");
}

static void *dies(void *arg)
{
	T(INSTALL(0, NR, ON(__NR_socket, SECCOMP_RET_KILL_THREAD), ALLOW));
	inet();
	say("the thread lives");
	return arg;
}

/* Joining is by the kernel's clearing of its tid; the rest of the process has no filter. */
static void kill_one_thread(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, dies, NULL) ? -1 : 0);
	pthread_join(thread, NULL);
	OK(inet());
	N(prctl(PR_GET_SECCOMP));
}

static void *says(void *arg)
{
	say("thread: %s", syscall(__NR_getppid) == -1 ? ename(errno) : "ok");
	return arg;
}

static int tell[2], told[2];

static void *was_there(void *arg)
{
	char c;

	need(read(tell[0], &c, 1) == 1);
	says(NULL);
	need(write(told[1], "x", 1) == 1);
	return arg;
}

/* A thread started later inherits; one that is there is only reached by TSYNC. */
static void threads(void)
{
	pthread_t old, new;
	char c;

	must(pipe(tell));
	must(pipe(told));
	must(pthread_create(&old, NULL, was_there, NULL) ? -1 : 0);
	T(INSTALL(0, NR, ON(__NR_getppid, E(EDOM)), ALLOW));
	must(pthread_create(&new, NULL, says, NULL) ? -1 : 0);
	pthread_join(new, NULL);
	need(write(tell[1], "x", 1) == 1 && read(told[0], &c, 1) == 1);
	pthread_join(old, NULL);

	must(pthread_create(&old, NULL, was_there, NULL) ? -1 : 0);
	T(INSTALL(SECCOMP_FILTER_FLAG_TSYNC, NR, ON(__NR_getppid, E(ERANGE)), ALLOW));
	need(write(tell[1], "x", 1) == 1 && read(told[0], &c, 1) == 1);
	pthread_join(old, NULL);
}

static volatile sig_atomic_t trapped;

static void on_sys(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *regs = uc->uc_mcontext.gregs;

	trapped++;
	need(sig == SIGSYS && info->si_code == 1 /* SYS_SECCOMP */);
	need((greg_t)info->si_call_addr == regs[REG_RIP]);
	need(info->si_arch == AUDIT_ARCH_X86_64 && info->si_syscall == regs[REG_RAX]);
	if (trapped < 2)
		say("trap: call %d, data %d", info->si_syscall, info->si_errno);
	regs[REG_RAX] = 1000 + info->si_errno;
}

static void trap(void)
{
	struct sigaction act = { .sa_sigaction = on_sys, .sa_flags = SA_SIGINFO };

	must(sigaction(SIGSYS, &act, NULL));
	T(INSTALL(0, NR, ON(__NR_socket, SECCOMP_RET_TRAP | 7), ON(__NR_getppid, SECCOMP_RET_TRAP | 8),
		  ALLOW));
	T(inet());
	for (int i = 0; i < 20; i++)
		need(syscall(__NR_getppid) == 1008);
	N(trapped);
	T(inet());
}

static void trap_default(void)
{
	T(INSTALL(0, NR, ON(__NR_socket, SECCOMP_RET_TRAP), ALLOW));
	inet();
	say("alive");
}

static void trap_ignored(void)
{
	signal(SIGSYS, SIG_IGN);
	trap_default();
}

static void nobody_listens(void)
{
	T(INSTALL(0, NR, ON(__NR_getppid, SECCOMP_RET_TRACE | 1), ALLOW));
	T(syscall(__NR_getppid));
}

static void strict(void)
{
	int pair[2];
	char b[4] = "";

	udp_pair(AF_INET, pair);
	T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	if (write(pair[0], "ok", 2) == 2 && read(pair[1], b, 4) == 2)
		write(1, "read and write work\n", 20);
	syscall(__NR_exit, b[0] == 'o' ? 3 : 4);
}

static void strict_kills(void)
{
	T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	inet();
	say("alive");
}

static void strict_after_filter(void)
{
	T(INSTALL(0, ALLOW));
	T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	T(prctl(PR_SET_SECCOMP, 9));
}

static void bad(void)
{
	struct sock_fprog prog = { .len = 1, .filter = (void *)8 };

	T(INSTALL(0, NR));				/* runs off its end */
	T(INSTALL(0, BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(0xff, 0)));
	T(install(NULL, 0, 0));
	T(INSTALL(1u << 20, ALLOW));
	T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8));
	N(prctl(PR_GET_SECCOMP));
}

/* A filter that allows next to nothing: what ring3 does by itself must not count. */
static void narrow(void)
{
	int pair[2], udp[2], e, null;
	struct epoll_event ev;
	char b[4];

	tcp_pair(AF_INET, pair);
	udp_pair(AF_INET, udp);
	e = must(epoll_create1(0));
	ev = (struct epoll_event){ .events = EPOLLIN };
	must(epoll_ctl(e, EPOLL_CTL_ADD, pair[1], &ev));
	null = must(open("/dev/null", O_RDWR));
	T(INSTALL(0, NR, ON(__NR_read, SECCOMP_RET_ALLOW), ON(__NR_write, SECCOMP_RET_ALLOW),
		  ON(__NR_exit_group, SECCOMP_RET_ALLOW), ON(__NR_epoll_wait, SECCOMP_RET_ALLOW),
		  ON(__NR_recvfrom, SECCOMP_RET_ALLOW), ON(__NR_sendto, SECCOMP_RET_ALLOW),
		  ON(__NR_close, SECCOMP_RET_ALLOW), ON(__NR_rt_sigreturn, SECCOMP_RET_ALLOW),
		  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)));
	for (int i = 0; i < 20; i++) {
		need(send(pair[0], "abc", 3, 0) == 3);
		need(epoll_wait(e, &ev, 1, 1000) == 1);
		need(recv(pair[1], b, 4, 0) == 3);
		need(write(null, "x", 1) == 1);
		need(send(udp[0], "abc", 3, 0) == 3 && read(udp[1], b, 4) == 3);
	}
	T(close(pair[0]));
	T(close(null));
	inet();
}

static void after_exec(char *self)
{
	T(INSTALL(0, NR, ON(__NR_socket, E(EXFULL)), ALLOW));
	T(INSTALL(0, NR, ON(__NR_getppid, E(EBADE)), ALLOW));
	fflush(stdout);
	execl(self, self, "again", NULL);
}

static char *self;

static void execs(void)
{
	after_exec(self);
}

static void vforks(void)
{
	char *argv[] = { self, "again", NULL };
	int status;
	pid_t pid;

	T(INSTALL(0, NR, ON(__NR_getppid, E(EBADE)), ALLOW));
	pid = vfork();
	if (!pid) {
		execv(self, argv);
		_exit(1);
	}
	must(waitpid(pid, &status, 0));
	N(status);
	T(syscall(__NR_getppid));
}

static void after(void)
{
	say("after exec:");
	OK(inet());
	for (int i = 0; i < 12; i++)
		need(syscall(__NR_getppid) == -1 && errno == EBADE);
	N(prctl(PR_GET_SECCOMP));
	/* A second list on top of the inherited one. */
	T(INSTALL(0, NR, ON(__NR_getppid, E(EXDEV)), ALLOW));
	T(syscall(__NR_getppid));
}

int main(int argc, char **argv)
{
	static char path[4096];

	if (argc > 1) {
		after();
		return 0;
	}
	must(readlink("/proc/self/exe", path, sizeof(path) - 1));
	self = path;
	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	child("errno", errno_inet);
	child("by argument", by_argument);
	child("several", several);
	child("kill process", kill_process);
	child("kill the only thread", kill_only_thread);
	child("kill one thread", kill_one_thread);
	child("threads", threads);
	child("trap", trap);
	child("trap, default", trap_default);
	child("trap, ignored", trap_ignored);
	child("trace", nobody_listens);
	child("strict", strict);
	child("strict, kills", strict_kills);
	child("strict after a filter", strict_after_filter);
	child("bad", bad);
	child("narrow", narrow);
	child("exec", execs);
	child("vfork and exec", vforks);
	OK(inet());
	return 0;
}
