// SPDX-License-Identifier: GPL-2.0
/* A GS base of the program's own, which threads and children inherit: calls, signals and faults leave it and its memory alone. */
#include "oracle.h"
#include <asm/prctl.h>
#include <setjmp.h>

#define ROUNDS	3000
#define PAGES	4
#define BYTES	(PAGES * 4096)

static unsigned char *memory;		/* GS points to the second page of it */
static volatile sig_atomic_t signals, wrong_in_handler;
static sigjmp_buf back;
static int ends[2], pipes[2];

static long set_base(const void *base)
{
	return syscall(SYS_arch_prctl, ARCH_SET_GS, base);
}

static unsigned long base_of(void)
{
	unsigned long base = 1;

	must(syscall(SYS_arch_prctl, ARCH_GET_GS, &base));
	return base;
}

static unsigned long by_gs(unsigned long offset)
{
	unsigned long value;

	asm volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"(offset) : "memory");
	return value;
}

static unsigned char *own_memory(void)
{
	unsigned char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned int i = 0; i < BYTES; i++)
		p[i] = i * 7 + (i >> 8);
	return p;
}

static int unchanged(const unsigned char *p)
{
	for (unsigned int i = 0; i < BYTES; i++)
		if (p[i] != (unsigned char)(i * 7 + (i >> 8)))
			return 0;
	return 1;
}

static int points_to(const unsigned char *p)
{
	unsigned long want;

	memcpy(&want, p + 8, sizeof(want));
	return by_gs(8) == want && base_of() == (unsigned long)p;
}

static void on_signal(int sig)
{
	unsigned long want;

	memcpy(&want, memory + 4096 + 16, sizeof(want));
	wrong_in_handler += by_gs(16) != want;
	signals++;
}

static void on_fault(int sig)
{
	siglongjmp(back, 1);
}

/* Calls of the node's sockets, of the host's pipes, of both, and calls without a descriptor. */
static int calls(const unsigned char *base)
{
	char bytes[64] = "";
	int wrong = 0;
	struct pollfd both[2] = { { .fd = ends[1], .events = POLLIN }, { .fd = pipes[0], .events = POLLIN } };

	for (int i = 0; i < ROUNDS; i++) {
		wrong += send(ends[0], bytes, sizeof(bytes), 0) != sizeof(bytes);
		wrong += write(pipes[1], bytes, 1) != 1;
		wrong += poll(both, 2, -1) < 1;
		wrong += recv(ends[1], bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes);
		wrong += read(pipes[0], bytes, 1) != 1;
		wrong += getppid() <= 0;
		wrong += base && by_gs(8) != *(unsigned long *)(base + 8);
	}
	return wrong;
}

static void *inherits(void *base)
{
	unsigned char *mine = own_memory();

	N(points_to(base));
	OK(set_base(mine));
	for (int i = 0; i < ROUNDS; i++)
		must(fcntl(ends[0], F_GETFL));
	N(points_to(mine));
	N(unchanged(mine));
	return NULL;
}

static void pair(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(to);
	int listener = must(socket(AF_INET, SOCK_STREAM, 0));

	must(bind(listener, (struct sockaddr *)&to, len));
	must(listen(listener, 1));
	must(getsockname(listener, (struct sockaddr *)&to, &len));
	ends[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(ends[0], (struct sockaddr *)&to, len));
	ends[1] = must(accept(listener, NULL, NULL));
	must(pipe(pipes));
}

int main(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	unsigned char *base;
	int status;

	memory = own_memory();
	base = memory + 4096;
	pair();
	N(calls(NULL));			/* all sites have been used before */
	N(base_of());
	OK(set_base(base));
	N(points_to(base));
	N(calls(base));
	N(points_to(base));
	N(unchanged(memory));

	signal(SIGALRM, on_signal);
	must(setitimer(ITIMER_REAL, &often, NULL));
	N(calls(base));
	while (signals < 20)
		if (by_gs(8) != *(unsigned long *)(base + 8))
			printf("the base has changed\n");
	must(setitimer(ITIMER_REAL, &never, NULL));
	N(wrong_in_handler);
	N(points_to(base));

	join(spawn(inherits, base));
	N(points_to(base));

	fflush(stdout);
	if (!must(fork())) {
		N(points_to(base));
		N(calls(base));
		N(unchanged(memory));
		fflush(stdout);
		_exit(7);
	}
	must(wait(&status));
	N(WEXITSTATUS(status));
	N(points_to(base));

	signal(SIGSEGV, on_fault);
	if (!sigsetjmp(back, 1))
		by_gs(1UL << 46);
	N(points_to(base));
	N(unchanged(memory));

	T(set_base((void *)(1UL << 63)));
	N(points_to(base));
	OK(set_base(NULL));
	N(base_of());
	N(unchanged(memory));
	return 0;
}
