// SPDX-License-Identifier: GPL-2.0
/*
 * cpuid - what the instruction says in the forms that compilers make, and what it leaves alone
 *
 *	cpuid		a line for each form and input; ends with 1 where a register or a flag
 *			that is none of the results has changed
 *	cpuid ns	how long it takes, at best
 *	cpuid sites	the first byte of each form, after all have run
 *	cpuid signals	all of it again and again under a storm of signals: always the same
 *	cpuid fault	asks the host to let it fault, and says what came of it
 *
 * Linked statically: a node looks for the instruction in what runs first, see gate/entry/cpuid.c.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct regs {
	uint64_t ax, bx, cx, dx, flags, si, di, bp, r8, r15, red;
};

/*
 * Each form is a function that fills all registers before, and tells all after; so it does with the word below
 * the stack pointer. With to_middle set it jumps behind the form's mov.
 */
#define FORM(name, code)							\
extern const unsigned char name##_site[];					\
void name(struct regs *r, long to_middle);					\
asm(".globl " #name "\n"							\
    #name ":\n"									\
    "	push %rbx; push %rbp; push %r15; push %rdi; push %rsi\n"		\
    "	mov 0(%rdi), %rax; mov 8(%rdi), %rbx; mov 16(%rdi), %rcx; mov 24(%rdi), %rdx\n"	\
    "	mov 56(%rdi), %rbp; mov 64(%rdi), %r8; mov 72(%rdi), %r15\n"		\
    "	movq $0x1ed, -8(%rsp)\n"						\
    "	cmpq $0, (%rsp)\n"							\
    "	jne 1f\n"								\
    "	push 32(%rdi); popf\n"							\
    "	mov 40(%rdi), %rsi; mov 48(%rdi), %rdi\n"				\
    "	movq $0x1ed, -8(%rsp)\n"						\
    "	jmp " #name "_site\n"							\
    "1:	push 32(%rdi); popf\n"							\
    "	mov 40(%rdi), %rsi; mov 48(%rdi), %rdi\n"				\
    "	movq $0x1ed, -8(%rsp)\n"						\
    "	jmp " #name "_site + 5\n"						\
    /* No data before it: that there is code is what tells a site. */		\
    "	.rept 64; mov %rax, %rdx; add $1, %rcx; .endr\n"			\
    ".globl " #name "_site\n"							\
    #name "_site:\n"								\
    code									\
    "	mov %rdi, %r9\n"							\
    "	mov 8(%rsp), %rdi\n"							\
    "	mov %rax, 0(%rdi)\n"							\
    "	mov -8(%rsp), %rax; mov %rax, 80(%rdi)\n"				\
    "	mov %rbx, 8(%rdi); mov %rcx, 16(%rdi); mov %rdx, 24(%rdi)\n"		\
    "	pushf; pop 32(%rdi)\n"							\
    "	mov %rsi, 40(%rdi); mov %r9, 48(%rdi); mov %rbp, 56(%rdi); mov %r8, 64(%rdi); mov %r15, 72(%rdi)\n" \
    "	pop %rsi; pop %rdi; pop %r15; pop %rbp; pop %rbx\n"			\
    "	ret\n")

FORM(form_plain, "mov $0x80000006, %eax; cpuid\n");
FORM(form_vendor, "mov $0, %eax; cpuid\n");
FORM(form_xor, "mov $0xd, %eax; xor %ecx, %ecx; cpuid\n");
FORM(form_esi, "mov $7, %eax; mov %esi, %ecx; cpuid\n");
FORM(form_edi, "mov $0xd, %eax; mov %edi, %ecx; cpuid\n");
FORM(form_ebp, "mov $0x14, %eax; mov %ebp, %ecx; cpuid\n");
FORM(form_mov, "mov $0x8000001d, %eax; mov $2, %ecx; cpuid\n");
/* These stay: which CPU this is, a leaf from a register, and the bytes within another instruction. */
FORM(form_cpu, "mov $1, %eax; cpuid\n");
FORM(form_any, "mov %eax, %eax; nop; nop; nop; cpuid\n");
FORM(form_decoy, "movabs $0xa20f80000006b8, %r9; xchg %rax, %r9; nop\n");
unsigned int room;
FORM(form_store, "lea room - 0xb8(%rip), %r9; movl $0xa20f00, 0xb8(%r9); mov 0xb8(%r9), %eax; nop\n");

static const struct form {
	const char *name;
	void (*run)(struct regs *r, long to_middle);
	const unsigned char *site;
	int rewritten, is_cpuid, sets_flags;
} forms[] = {
	{ "plain", form_plain, form_plain_site, 1, 1, 0 },
	{ "vendor", form_vendor, form_vendor_site, 1, 1, 0 },
	{ "xor", form_xor, form_xor_site, 1, 1, 1 },
	{ "esi", form_esi, form_esi_site, 1, 1, 0 },
	{ "edi", form_edi, form_edi_site, 1, 1, 0 },
	{ "ebp", form_ebp, form_ebp_site, 1, 1, 0 },
	{ "mov", form_mov, form_mov_site, 1, 1, 0 },
	{ "cpu", form_cpu, form_cpu_site, 0, 1, 0 },
	{ "any", form_any, form_any_site, 0, 1, 0 },
	{ "decoy", form_decoy, form_decoy_site, 0, 0, 0 },
	{ "store", form_store, form_store_site, 0, 0, 0 },
};
#define FORMS		(sizeof(forms) / sizeof(forms[0]))

#define ARITHMETIC	0x8c5	/* the flags that instructions set, but the undefined one of xor */
#define XOR		0x44

static jmp_buf faulted;
static int quiet;
static uint64_t sum;		/* of all answers */
static volatile unsigned int signals;

static int one(const struct form *form, uint32_t leaf, uint32_t subleaf, int to_middle)
{
	struct regs r = {
		0xabcd000000000000 | leaf, 0x1111111111111111, 0xdcba000000000000 | subleaf, 0x2222222222222222,
		ARITHMETIC | 0x202, 0x3000000000000000 | subleaf, 0x4000000000000000 | subleaf,
		0x5000000000000000 | subleaf, 6, 7, 0,
	}, in = r;
	uint64_t flags = form->sets_flags ? XOR : ARITHMETIC;

	form->run(&r, to_middle);
	/* An initial APIC number follows the CPU. */
	if (form->run == form_cpu)
		r.bx &= 0xffffff;
	sum = (sum ^ r.ax ^ r.bx << 16 ^ r.cx << 24 ^ r.dx << 32) * 0x100000001b3;
	if (!quiet)
		printf("%s %x.%x %s: %lx %lx %lx %lx\n", form->name, leaf, subleaf,
		       to_middle ? "middle" : "whole", r.ax, r.bx, r.cx, r.dx);
	if ((r.flags & ARITHMETIC) != flags || r.si != in.si || r.di != in.di || r.bp != in.bp || r.r8 != in.r8 ||
	    r.r15 != in.r15 || r.red != 0x1ed || (form->is_cpuid && (r.ax | r.bx | r.cx | r.dx) >> 32)) {
		printf("%s: something else changed\n", form->name);
		return 1;
	}
	return 0;
}

static int all(void)
{
	static const uint32_t leaves[] = { 0, 7, 0xd, 0x80000000, 0x80000006, 0x8000001d, 0x40000000 };
	int bad = 0, to_middle;
	uint32_t leaf, sub;
	size_t i;

	for (i = 0; i < FORMS; i++)
		for (leaf = 0; leaf < sizeof(leaves) / sizeof(leaves[0]); leaf++)
			for (sub = 0; sub < 3; sub++)
				for (to_middle = 0; to_middle < 1 + forms[i].is_cpuid; to_middle++)
					bad |= one(&forms[i], leaves[leaf], sub, to_middle);
	return bad;
}

static int ns(void)
{
	double best = 1e9;
	struct timespec a, b;
	struct regs r = { 0 };
	int i;

	for (i = 0; i < 100; i++) {
		clock_gettime(CLOCK_MONOTONIC, &a);
		form_any(&r, 0);
		clock_gettime(CLOCK_MONOTONIC, &b);
		double took = (b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec;

		if (took < best)
			best = took;
	}
	return printf("%.0f\n", best) < 0;
}

static int sites(void)
{
	int rewritten = 0, left = 0;
	size_t i;

	for (i = 0; i < FORMS; i++) {
		if (forms[i].rewritten)
			rewritten += forms[i].site[0] == 0xff;
		else
			left += forms[i].site[0] != 0xff;
	}
	return printf("%d rewritten, %d left\n", rewritten, left) < 0;
}

static void on_alarm(int sig)
{
	(void)sig;
	signals++;
}

static int under_signals(void)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	uint64_t expected;

	quiet = 1;
	if (all())
		return 1;
	expected = sum;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (signals < 5000) {
		sum = 0;
		if (all() || sum != expected)
			return printf("something changed after %u signals\n", signals) > 0;
	}
	return printf("always the same\n") < 0;
}

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(faulted, 1);
}

static int fault(void)
{
	struct regs r = { 0 };
	volatile size_t i;

	signal(SIGSEGV, on_fault);
	if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0))
		printf("%s\n", strerror(errno));
	for (i = 0; i < FORMS; i++) {
		if (!sigsetjmp(faulted, 1)) {
			forms[i].run(&r, 0);
			printf("%s: no fault\n", forms[i].name);
		} else {
			printf("%s: a fault\n", forms[i].name);
		}
	}
	syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
	sites();
	return all();
}

int main(int argc, char **argv)
{
	if (argc == 1)
		return all();
	if (!strcmp(argv[1], "ns"))
		return ns();
	if (!strcmp(argv[1], "sites"))
		return sites();
	if (!strcmp(argv[1], "signals"))
		return under_signals();
	if (!strcmp(argv[1], "fault"))
		return fault();
	return 2;
}
