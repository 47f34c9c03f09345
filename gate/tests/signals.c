// SPDX-License-Identifier: GPL-2.0
/*
 * signals.c - handlers, masks, restarts, jumps; prints the same on the host
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(c)	printf("%-60s %s\n", #c, (c) ? "yes" : "NO")

static volatile sig_atomic_t got, got_code, got_value, depth, on_alt;
static sigjmp_buf jump;
static char alt[1 << 16];

static void set(int sig, void *fn, int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	sigemptyset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
}

static void note(int sig, siginfo_t *si, void *uc)
{
	char here;

	got++;
	got_code = si->si_code;
	got_value = si->si_value.sival_int;
	on_alt = &here >= alt && &here < alt + sizeof(alt);
}

static void alarm_in(long us)
{
	struct itimerval it = { .it_value = { us / 1000000, us % 1000000 } };

	setitimer(ITIMER_REAL, &it, NULL);
}

static void blocking(void)
{
	struct timespec ts = { 5, 0 };
	int p[2], status;
	sigset_t set_, old;
	fd_set fds;
	char c;

	if (pipe(p))
		exit(1);
	set(SIGALRM, note, 0);
	got = 0;
	alarm_in(20000);
	CHECK(read(p[0], &c, 1) == -1 && errno == EINTR && got == 1);

	set(SIGALRM, note, SA_RESTART);
	if (!fork()) {
		usleep(60000);
		if (write(p[1], "x", 1) != 1)
			_exit(1);
		_exit(0);
	}
	got = 0;
	alarm_in(20000);
	CHECK(read(p[0], &c, 1) == 1 && c == 'x' && got == 1);
	wait(&status);

	got = 0;
	alarm_in(20000);
	CHECK(nanosleep(&ts, &ts) == -1 && errno == EINTR && ts.tv_sec == 4 && got == 1);
	got = 0;
	alarm_in(20000);
	CHECK(poll(NULL, 0, 3000) == -1 && errno == EINTR && got == 1);

	sigemptyset(&set_);
	sigaddset(&set_, SIGALRM);
	sigprocmask(SIG_BLOCK, &set_, &old);
	got = 0;
	alarm_in(20000);
	usleep(40000);
	CHECK(got == 0);
	ts = (struct timespec){ 3, 0 };
	CHECK(ppoll(NULL, 0, &ts, &old) == -1 && errno == EINTR && got == 1);
	sigprocmask(SIG_BLOCK, NULL, &set_);
	CHECK(sigismember(&set_, SIGALRM) == 1);
	alarm_in(20000);
	CHECK(sigsuspend(&old) == -1 && errno == EINTR && got == 2);
	FD_ZERO(&fds);
	FD_SET(p[0], &fds);
	alarm_in(20000);
	CHECK(pselect(p[0] + 1, &fds, NULL, NULL, &ts, &old) == -1 && errno == EINTR && got == 3);
	alarm_in(20000);
	sigemptyset(&set_);
	sigaddset(&set_, SIGALRM);
	CHECK(sigwaitinfo(&set_, NULL) == SIGALRM && got == 3);
	alarm_in(1);
	usleep(5000);
	sigprocmask(SIG_SETMASK, &old, NULL);
	CHECK(got == 4);
	close(p[0]);
	close(p[1]);
}

static void on_nested(int sig, siginfo_t *si, void *uc)
{
	if (++depth < 5)
		raise(sig);
	got++;
}

static void basics(void)
{
	union sigval v = { .sival_int = 77 };
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) }, old;
	struct sigaction sa;

	set(SIGUSR1, note, 0);
	got = 0;
	raise(SIGUSR1);
	CHECK(got == 1 && got_code == SI_TKILL && !on_alt);
	kill(getpid(), SIGUSR1);
	CHECK(got == 2 && got_code == SI_USER);
	set(SIGRTMIN + 2, note, 0);
	sigqueue(getpid(), SIGRTMIN + 2, v);
	CHECK(got == 3 && got_code == SI_QUEUE && got_value == 77);

	CHECK(sigaltstack(NULL, &old) == 0 && old.ss_flags == SS_DISABLE);
	CHECK(sigaltstack(&ss, NULL) == 0);
	set(SIGUSR1, note, SA_ONSTACK);
	raise(SIGUSR1);
	CHECK(on_alt == 1);
	CHECK(sigaltstack(NULL, &old) == 0 && old.ss_sp == alt && old.ss_flags == 0);
	set(SIGUSR1, note, 0);
	raise(SIGUSR1);
	CHECK(on_alt == 0);

	set(SIGUSR2, on_nested, SA_NODEFER);
	got = depth = 0;
	raise(SIGUSR2);
	CHECK(depth == 5 && got == 5);

	set(SIGUSR1, note, SA_RESETHAND);
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &sa);
	CHECK(sa.sa_handler == SIG_DFL);
	signal(SIGUSR1, SIG_IGN);
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &sa);
	CHECK(sa.sa_handler == SIG_IGN);
	CHECK(sigaction(SIGKILL, &sa, NULL) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_rt_sigaction, SIGUSR1, (void *)8, NULL, 8) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_rt_sigaction, SIGUSR1, NULL, (void *)8, 8) == -1 && errno == EFAULT);
	CHECK(syscall(SYS_rt_sigprocmask, 0, (void *)8, NULL, 8) == -1 && errno == EFAULT);
}

static void on_segv_jump(int sig, siginfo_t *si, void *uc)
{
	got++;
	got_value = si->si_addr == (void *)16;
	siglongjmp(jump, 1);
}

static void on_segv_fix(int sig, siginfo_t *si, void *arg)
{
	ucontext_t *uc = arg;

	mprotect((void *)((uintptr_t)si->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
	got++;
	got_value = uc->uc_mcontext.gregs[REG_ERR] & 2;	/* a write */
}

static void on_skip(int sig, siginfo_t *si, void *arg)
{
	ucontext_t *uc = arg;

	uc->uc_mcontext.gregs[REG_RIP] += 2;	/* ud2 */
	uc->uc_mcontext.gregs[REG_RBX] = 4711;
	got++;
}

static void faults(void)
{
	sigset_t set_, seen;
	long rbx;
	volatile char *page;
	double d = 1.5;

	set(SIGSEGV, on_segv_jump, 0);
	got = 0;
	for (int i = 0; i < 3; i++)
		if (!sigsetjmp(jump, 1))
			*(volatile int *)16 = 1;
	CHECK(got == 3 && got_value);
	sigprocmask(SIG_BLOCK, NULL, &set_);
	CHECK(!sigismember(&set_, SIGSEGV));
	CHECK(write(1, (void *)16, 1) == -1 && errno == EFAULT && got == 3);

	set(SIGSEGV, on_segv_fix, SA_ONSTACK);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	got = 0;
	page[5] = 7;
	CHECK(page[5] == 7 && got == 1 && got_value);

	set(SIGILL, on_skip, 0);
	got = 0;
	d *= 2;
	asm volatile("mov $1, %%rbx; ud2; mov %%rbx, %0" : "=r"(rbx) : : "rbx");
	CHECK(got == 1 && rbx == 4711 && d == 3.0);

	sigfillset(&set_);
	sigprocmask(SIG_SETMASK, &set_, NULL);
	sigprocmask(SIG_SETMASK, NULL, &seen);
	CHECK(sigismember(&seen, SIGSEGV) && sigismember(&seen, SIGSYS) && sigismember(&seen, SIGUSR1));
	CHECK(getppid() == getppid());
	set(SIGSEGV, note, 0);
	got = 0;
	raise(SIGSEGV);
	CHECK(got == 0);
	sigemptyset(&set_);
	sigprocmask(SIG_SETMASK, &set_, NULL);
	CHECK(got == 1);
}

static volatile long ticks;

static void on_tick(int sig, siginfo_t *si, void *uc)
{
	ticks++;
	if (getppid() < 0)
		abort();
}

/* A storm of signals over calls that must neither fail nor get lost. */
static void storm(void)
{
	struct itimerval it = { { 0, 300 }, { 0, 300 } };
	volatile double sum = 0;
	long calls = 0, wrong = 0;
	int p[2];
	char c;

	if (pipe(p))
		exit(1);
	set(SIGALRM, on_tick, SA_RESTART);
	setitimer(ITIMER_REAL, &it, NULL);
	while (ticks < 400) {
		pid_t me = getpid();

		for (int i = 0; i < 50; i++)
			sum += i * 0.5;
		if (write(p[1], "z", 1) != 1 || read(p[0], &c, 1) != 1 || c != 'z' ||
		    syscall(SYS_getpid) != me)
			wrong++;
		calls++;
	}
	memset(&it, 0, sizeof(it));
	setitimer(ITIMER_REAL, &it, NULL);
	CHECK(wrong == 0 && calls > 100);
	/* Nothing but computing: must be interrupted as well. */
	it.it_value.tv_usec = 1000;
	ticks = 0;
	setitimer(ITIMER_REAL, &it, NULL);
	while (!ticks)
		sum += 1;
	CHECK(ticks == 1);
}

static int child_status(void (*fn)(void))
{
	struct rlimit none = { 0, 0 };
	int status;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		fn();
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void die_term(void) { raise(SIGTERM); }
static void die_abort(void) { abort(); }
static void die_segv(void) { signal(SIGSEGV, SIG_DFL); *(volatile int *)16 = 1; }
static void die_segv_blocked(void)
{
	sigset_t s;

	sigfillset(&s);
	sigprocmask(SIG_SETMASK, &s, NULL);
	set(SIGSEGV, note, 0);
	*(volatile int *)16 = 1;
}
static void die_segv_ignored(void) { signal(SIGSEGV, SIG_IGN); *(volatile int *)16 = 1; }
static void die_alarm(void) { signal(SIGALRM, SIG_DFL); alarm_in(10000); for (;;) pause(); }
static void die_loop(void) { signal(SIGALRM, SIG_DFL); alarm_in(10000); for (;;) ; }
static void die_pipe(void)
{
	int p[2];

	signal(SIGPIPE, SIG_DFL);
	if (!pipe(p)) {
		close(p[0]);
		if (write(p[1], "x", 1))
			_exit(98);
	}
}
static void die_overflow(void) { volatile char big[256]; big[0] = 1; die_overflow(); big[1] = 2; }

static void deaths(void)
{
	CHECK(WTERMSIG(child_status(die_term)) == SIGTERM);
	CHECK(WTERMSIG(child_status(die_abort)) == SIGABRT);
	CHECK(WTERMSIG(child_status(die_segv)) == SIGSEGV);
	CHECK(WTERMSIG(child_status(die_segv_blocked)) == SIGSEGV);
	CHECK(WTERMSIG(child_status(die_segv_ignored)) == SIGSEGV);
	CHECK(WTERMSIG(child_status(die_alarm)) == SIGALRM);
	CHECK(WTERMSIG(child_status(die_loop)) == SIGALRM);
	CHECK(WTERMSIG(child_status(die_pipe)) == SIGPIPE);
	CHECK(WTERMSIG(child_status(die_overflow)) == SIGSEGV);
}

static void *sleeper(void *arg);

/* Stopped and continued, in a call and out of one; with and without threads. */
static void stops(void)
{
	for (int mode = 0; mode < 3; mode++) {
		int status, p[2];
		pid_t pid;

		if (pipe(p))
			exit(1);
		pid = fork();
		if (!pid) {
			pthread_t t;
			char c;

			setpgid(0, 0);
			if (mode == 2)
				pthread_create(&t, NULL, sleeper, NULL);
			if (mode == 1)
				raise(SIGTSTP);
			else if (read(p[0], &c, 1) != 1)
				_exit(1);
			_exit(17);
		}
		setpgid(pid, pid);
		usleep(20000);
		if (mode != 1)
			kill(pid, SIGTTIN);
		waitpid(pid, &status, WUNTRACED);
		/* An orphaned group ignores these: so on the host, so here. */
		printf("mode %d stopped %d by %d\n", mode, WIFSTOPPED(status), WSTOPSIG(status));
		kill(pid, SIGCONT);
		if (write(p[1], "x", 1) != 1)
			exit(1);
		if (WIFSTOPPED(status))
			waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 17);
		close(p[0]);
		close(p[1]);
	}
}

static void *sleeper(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	for (;;)
		pause();
	return NULL;
}

static void cancel(void)
{
	pthread_t t;
	void *ret;

	pthread_create(&t, NULL, sleeper, NULL);
	usleep(10000);
	pthread_cancel(t);
	pthread_join(t, &ret);
	CHECK(ret == PTHREAD_CANCELED);
}

static void fp(void)
{
	fesetround(FE_UPWARD);
	set(SIGUSR1, note, 0);
	raise(SIGUSR1);
	CHECK(fegetround() == FE_UPWARD);
	fesetround(FE_TONEAREST);
}

static void fds(void)
{
	struct signalfd_siginfo si;
	sigset_t s;
	int fd;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	sigprocmask(SIG_BLOCK, &s, NULL);
	fd = signalfd(-1, &s, 0);
	raise(SIGUSR1);
	CHECK(read(fd, &si, sizeof(si)) == sizeof(si) && si.ssi_signo == SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &s, NULL);
}

static volatile sig_atomic_t stray;

/* Where do handlers find the program? Ours lies nowhere near the gate (RING3_GATE_BASE on). */
static void look(int sig, siginfo_t *si, void *context)
{
	uint64_t rip = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	got++;
	stray |= rip >= 0x550000000000 && rip < 0x555400000000;
}

/* Signals at all places of calls that are made directly, those that wait included. */
static void calls(void)
{
	struct itimerval it = { { 0, 97 }, { 0, 97 } }, off = { 0 };
	pid_t parent = getppid();
	int p[2], bad = 0;
	char c = 0;

	got = 0;
	if (pipe(p))
		exit(1);
	set(SIGALRM, look, SA_RESTART);
	for (int i = 0; i < 20; i++) {		/* sites that are called often */
		getppid();
		if (write(p[1], &c, 1) + read(p[0], &c, 1) != 2)
			bad = 1;
		usleep(1);
	}
	setitimer(ITIMER_REAL, &it, NULL);
	for (int i = 0; i < 300000 && !bad; i++) {
		bad |= getppid() != parent;
		c = i;
		bad |= write(p[1], &c, 1) != 1;
		bad |= read(p[0], &c, 1) != 1 || c != (char)i;
	}
	CHECK(!bad);
	CHECK(got > 100 && !stray);
	if (!fork()) {
		struct timespec ts = { 0, 50000000 };

		nanosleep(&ts, NULL);
		c = 77;
		_exit(write(p[1], &c, 1) != 1);
	}
	CHECK(read(p[0], &c, 1) == 1 && c == 77);	/* restarted each time */
	setitimer(ITIMER_REAL, &off, NULL);
	wait(NULL);
	set(SIGALRM, look, 0);
	alarm_in(20000);
	CHECK(read(p[0], &c, 1) == -1 && errno == EINTR);
	CHECK(!stray);
	signal(SIGALRM, SIG_DFL);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	basics();
	blocking();
	faults();
	fp();
	fds();
	calls();
	storm();
	deaths();
	stops();
	cancel();
	return 0;
}
