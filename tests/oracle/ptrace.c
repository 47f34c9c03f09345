// SPDX-License-Identifier: GPL-2.0
/*
 * ptrace.c - a tracer and its children: which stops it is told of, registers, single steps
 */
#include "oracle.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static char self[4096];

/* ---- what the children do ---- */

static void nothing(int sig)
{
	(void)sig;
}

extern const char steps_begin[], steps_end[];

/* A call between two traps; its number is one that the host serves (getppid). */
__attribute__((noinline)) static void steps(void)
{
	asm volatile(".globl steps_begin, steps_end\n"
		     "int3\n"
		     "steps_begin:\n"
		     "mov $110, %%eax\n"
		     "syscall\n"
		     "nop\n"
		     "nop\n"
		     "int3\n"
		     "steps_end:\n"
		     ::: "rax", "rcx", "r11", "memory");
}

static int traced(const char *what)
{
	int pair[2];
	char b[16];

	if (!strcmp(what, "calls")) {
		signal(SIGUSR1, nothing);
		udp_pair(AF_INET, pair);
		for (int i = 0; i < 20; i++)
			need(send(pair[0], "abc", 3, 0) == 3 && recv(pair[1], b, 16, 0) == 3);
		T(recv(pair[1], (void *)8, 16, MSG_DONTWAIT));
		need(send(pair[0], "abc", 3, 0) == 3);
		T(recv(pair[1], (void *)8, 16, MSG_DONTWAIT));	/* a fault of the kernel's */
		raise(SIGUSR1);
		must(kill(getpid(), SIGSYS) ? -1 : 0);
		return 3;
	}
	if (!strcmp(what, "steps")) {
		for (int i = 0; i < 12; i++)
			steps();
		return 4;
	}
	if (!strcmp(what, "crash")) {
		udp_pair(AF_INET, pair);
		*(volatile int *)8 = 1;
	}
	if (!strcmp(what, "block")) {
		udp_pair(AF_INET, pair);
		for (int i = 0; i < 20; i++)
			need(send(pair[0], "abc", 3, 0) == 3 && recv(pair[1], b, 16, 0) == 3);
		write(1, "waits\n", 6);
		T(recv(pair[1], b, 7, 0));
	}
	return 5;
}

/* ---- the tracer ---- */

enum how { FORK, VFORK };

static pid_t start(enum how how, char *what)
{
	char *argv[] = { self, what, NULL };
	pid_t pid = how == VFORK ? vfork() : fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(self, argv);
		_exit(1);
	}
	return must(pid);
}

static void tell(int status)
{
	if (WIFSTOPPED(status) && status >> 16)
		say("stop: %s, event %d", sigabbrev_np(WSTOPSIG(status)), status >> 16);
	else if (WIFSTOPPED(status))
		say("stop: %s", sigabbrev_np(WSTOPSIG(status)));
	else if (WIFSIGNALED(status))
		say("killed: %s", sigabbrev_np(WTERMSIG(status)));
	else
		say("exit %d", WEXITSTATUS(status));
}

/* Passes all signals but SIGTRAP; gives up at `limit` stops. */
static void follow(pid_t pid, int request, int limit)
{
	int status, sig;

	while (limit--) {
		must(waitpid(pid, &status, 0));
		tell(status);
		if (!WIFSTOPPED(status))
			return;
		sig = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		must(ptrace(request, pid, 0, sig));
	}
}

static void exec_event(void)
{
	pid_t pid = start(FORK, "steps");
	struct user_regs_struct regs;
	siginfo_t info;
	int status;

	must(waitpid(pid, &status, 0));
	tell(status);
	must(ptrace(PTRACE_GETSIGINFO, pid, 0, &info));
	N(info.si_code);
	N(info.si_pid == pid);
	/* The program is there, as the host's exec would have left it. */
	must(ptrace(PTRACE_GETREGS, pid, 0, &regs));
	errno = 0;
	N(ptrace(PTRACE_PEEKDATA, pid, regs.rsp, 0));
	N(errno);
	ptrace(PTRACE_PEEKTEXT, pid, regs.rip, 0);
	N(errno);
	N(regs.rax | regs.rbx | regs.rcx | regs.rdx | regs.rdi | regs.rsi | regs.rbp);
	must(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL));
	must(ptrace(PTRACE_CONT, pid, 0, 0));
	must(waitpid(pid, &status, 0));
	tell(status);
	must(ptrace(PTRACE_CONT, pid, 0, SIGKILL));
	must(waitpid(pid, &status, 0));
	tell(status);
}

static void waitid_sees(void)
{
	pid_t pid = start(VFORK, "calls");
	siginfo_t info;

	for (int i = 0; i < 10; i++) {
		memset(&info, 0, sizeof(info));
		must(waitid(P_PID, pid, &info, WEXITED | WSTOPPED));
		say("code %d, status %d", info.si_code, info.si_status);
		if (info.si_code != CLD_TRAPPED)
			return;
		must(ptrace(PTRACE_CONT, pid, 0, info.si_status == SIGTRAP ? 0 : info.si_status));
	}
}

/* Single steps from one trap of steps() to the next; where each ends. */
static void step(void)
{
	struct user_regs_struct regs;
	int status, count;
	unsigned long begin;
	pid_t pid = start(FORK, "steps");

	must(waitpid(pid, &status, 0));
	must(ptrace(PTRACE_CONT, pid, 0, 0));
	for (int turn = 0; turn < 12; turn++) {
		must(waitpid(pid, &status, 0));
		must(ptrace(PTRACE_GETREGS, pid, 0, &regs));
		begin = regs.rip;
		printf("turn:");
		for (count = 0; count < 10; count++) {
			must(ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
			must(waitpid(pid, &status, 0));
			must(ptrace(PTRACE_GETREGS, pid, 0, &regs));
			printf(" %ld", (long)(regs.rip - begin));
			if (regs.rip - begin >= (unsigned long)(steps_end - steps_begin))
				break;
		}
		printf("%s\n", WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP ? "" : " ?");
		must(ptrace(PTRACE_CONT, pid, 0, 0));
	}
	must(waitpid(pid, &status, 0));
	tell(status);
}

/* Registers of a child that waits in a call of the node's. */
static void blocked(void)
{
	struct user_regs_struct regs;
	int status, out[2], saved, slept;
	char b[16];
	pid_t pid;

	must(pipe(out));
	fflush(stdout);
	saved = must(dup(1));
	must(dup2(out[1], 1));
	pid = start(VFORK, "block");
	must(dup2(saved, 1));
	must(waitpid(pid, &status, 0));
	must(ptrace(PTRACE_CONT, pid, 0, 0));
	/* A tracer on a node has to wait for its child: that is what makes it go on. */
	nonblocking(out[0]);
	while (read(out[0], b, sizeof(b)) != 6) {
		need(!waitpid(pid, &status, WNOHANG));
		sleep_ms(1);
	}
	for (slept = 0; slept < 200; slept++) {
		need(!waitpid(pid, &status, WNOHANG));
		sleep_ms(1);
	}
	must(kill(pid, SIGUSR2));
	must(waitpid(pid, &status, 0));
	tell(status);
	must(ptrace(PTRACE_GETREGS, pid, 0, &regs));
	N(regs.orig_rax);
	N(regs.rax);
	N(regs.rdx);
	N(regs.r10);
	N(regs.rip == regs.rcx);
	errno = 0;
	N((ptrace(PTRACE_PEEKTEXT, pid, regs.rip - 2, 0) & 0xffff) == 0x050f);
	N(errno);
	must(ptrace(PTRACE_SETREGS, pid, 0, &regs));
	must(ptrace(PTRACE_CONT, pid, 0, SIGUSR2));
	must(waitpid(pid, &status, 0));
	tell(status);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return traced(argv[1]);
	must(readlink("/proc/self/exe", self, sizeof(self) - 1));
	say("fork:");
	follow(start(FORK, "calls"), PTRACE_CONT, 20);
	say("vfork:");
	follow(start(VFORK, "calls"), PTRACE_CONT, 20);
	say("crash:");
	follow(start(VFORK, "crash"), PTRACE_CONT, 3);
	say("exec:");
	exec_event();
	say("waitid:");
	waitid_sees();
	say("steps:");
	step();
	say("blocked:");
	blocked();
	return 0;
}
