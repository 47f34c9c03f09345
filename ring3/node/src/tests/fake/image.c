// SPDX-License-Identifier: GPL-2.0
/*
 * image.c - a kernel image that is none: it answers just enough calls for the keeper's
 * tests to run where the real image is not built. Not a model of Linux.
 *
 * Calls are served without a lock or a stack of their own: the tests make one at a time.
 */
#include "ring3.h"

#define __NR_read	0
#define __NR_write	1
#define __NR_close	3
#define __NR_socket	41
#define __NR_sendto	44
#define __NR_recvfrom	45
#define __NR_openat	257
#define __NR_futex	202

#ifndef FAKE_ABI
#define FAKE_ABI RING3_ABI
#endif
#ifndef FAKE_BOOT
#define FAKE_BOOT 0
#endif

#define ENOENT	2
#define EAGAIN	11
#define ENOSYS	38

extern char __text_start[], __text_end[], __end[];
long fake_boot(struct ring3_thread *init);
void fake_enter(void);
r3_u64 fake_fixup(r3_u64 rip);

#define OFFSET(symbol) ((r3_u64)(symbol))

__attribute__((section(".head"))) struct ring3_region head = {
	.magic = RING3_MAGIC,
	.abi = FAKE_ABI,
	.image_size = (r3_u64)__end,
	.text_start = (r3_u64)__text_start,
	.text_end = (r3_u64)__text_end,
	.boot = (r3_u64)fake_boot,
	.enter = (r3_u64)fake_enter,
	.fixup = (r3_u64)fake_fixup,
	.version = "6.12.0 fake",
};

static struct ring3_thread threads[16];
static r3_u32 answer[9];	/* the netlink acknowledgement that recvfrom returns */

__asm__(".globl fake_enter\n"
	"fake_enter:\n"
	"	push %rbx\n"
	"	push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n"
	"	mov %rsp, %rdx\n"	/* args[5] .. args[0] */
	"	mov %rax, %rdi\n"
	"	mov %r10, %rsi\n"
	"	mov %rsp, %rbx\n"
	"	and $-16, %rsp\n"
	"	call fake_call\n"
	"	mov %rbx, %rsp\n"
	"	add $48, %rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	/* A load that faults when its address is bad, and the way round it. */
	".globl fake_load, fake_load_fault, fake_load_fixup\n"
	"fake_load:\n"
	"fake_load_fault:\n"
	"	mov (%rdi), %rax\n"
	"	ret\n"
	"fake_load_fixup:\n"
	"	mov $-14, %rax\n"
	"	ret\n");

long fake_load(r3_u64 address);
extern char fake_load_fault[], fake_load_fixup[];

r3_u64 fake_fixup(r3_u64 rip)
{
	return rip == (r3_u64)fake_load_fault ? (r3_u64)fake_load_fixup : 0;
}

static long host(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static void copy(void *to, const void *from, unsigned long len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

static long keep(void)
{
	while (__atomic_load_n(&head.state, __ATOMIC_ACQUIRE) < RING3_POISONED) {
		r3_u32 kick = __atomic_load_n(&head.kick, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&head.state, __ATOMIC_ACQUIRE) < RING3_POISONED)
			host(__NR_futex, (long)&head.kick, 0, kick, 0);
	}
	return 0;
}

static long spawn(int pid)
{
	for (int i = 0; i < 16; i++) {
		struct ring3_proc *proc = &head.procs[i];

		if (proc->state)
			continue;
		proc->state = 1;
		proc->pid = pid;
		proc->threads = 1;
		threads[i].self = (r3_u64)&threads[i];
		threads[i].region = (r3_u64)&head;
		threads[i].proc = (r3_u64)proc;
		head.procs_used = 16;
		head.procs_gen++;
		return (long)&threads[i];
	}
	return -EAGAIN;
}

static long log_read(char *to, r3_u64 *seq)
{
	static const char line[] = "<6>[0000.000001] fake\n";

	if (*seq >= 2)
		return 0;
	++*seq;
	copy(to, line, sizeof(line) - 1);
	return sizeof(line) - 1;
}

/* args are in reverse: args[5] is the first. */
__attribute__((used)) long fake_call(long nr, struct ring3_thread *thread, r3_u64 *args)
{
	const r3_u32 *request = (const r3_u32 *)args[4];

	(void)thread;
	if (head.state >= RING3_POISONED && nr != RING3_NR_KEEP)
		return -5;
	switch (nr) {
	case RING3_NR_KEEP:
		return keep();
	case RING3_NR_SPAWN:
		return spawn(args[5]);
	case RING3_NR_REAP:
		/* The vCPU has another holder than boot's: a test's, which is dead. */
		if (head.vcpu[0].owner && head.vcpu[0].owner != head.init_thread.tid)
			return -EAGAIN;
		((struct ring3_proc *)args[5])->state = 0;
		head.procs_gen++;
		return 0;
	case RING3_NR_PORT_ADD:
		return 2 + ((struct ring3_port_config *)args[5])->index;
	case RING3_NR_LOG_READ:
		return log_read((char *)args[5], (r3_u64 *)args[3]);
	case RING3_NR_DRIVE:
	case RING3_NR_PORT_DEL:
	case __NR_close:
		return 0;
	case __NR_socket:
		return 3;
	case __NR_openat:
		return 4;
	case __NR_write:
		return args[3];
	case __NR_read:
		return fake_load(args[4]);
	case __NR_sendto:
		answer[0] = sizeof(answer);
		answer[1] = 2;			/* NLMSG_ERROR, flags 0 */
		answer[2] = request[2];		/* sequence number */
		answer[4] = 0;			/* no error */
		copy(&answer[5], request, 16);
		return args[3];
	case __NR_recvfrom:
		copy((void *)args[4], answer, sizeof(answer));
		return sizeof(answer);
	}
	return -ENOSYS;
}

long fake_boot(struct ring3_thread *init)
{
	static const char why[] = "no init found";

	(void)init;
	(void)init;
	head.vcpu[0].owner = init->tid;
	if (FAKE_BOOT == 1) {
		copy(head.poison, why, sizeof(why));
		head.state = RING3_POISONED;
		return 0;
	}
	if (FAKE_BOOT == 2)
		return -ENOENT;
	head.state = RING3_UP;
	return 0;
}
