// SPDX-License-Identifier: GPL-2.0
/*
 * Calls while EFLAGS has what Linux's way in clears: AC, with which the processor faults where an access is not
 * aligned, and DF, with which copies go backwards. The kernel's are not aligned, and go forwards.
 */
#include "oracle.h"
#include <sys/syscall.h>

#define AC	0x40000UL
#define DF	0x400UL

/* Often enough for its `syscall' to be rewritten. The C library wants neither flag: they are set around the call only. */
static long call(unsigned long flag, long nr, long a, long b, long c)
{
	register long r10 asm("r10") = 0;
	register long r8 asm("r8") = 0;
	register long r9 asm("r9") = 0;
	long ret;

	asm volatile("sub $128, %%rsp\n"
		     "	pushf\n	or %[flag], (%%rsp)\n	popf\n"
		     "	syscall\n"
		     "	cmp $-4095, %%rax\n"
		     "	cld\n	pushf\n	andl $~0x40000, (%%rsp)\n	popf\n"
		     "	add $128, %%rsp"
		     : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9), [flag] "r"(flag)
		     : "rcx", "r11", "memory", "cc");
	return ret;
}

static int with(unsigned long flag)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(to);
	char out[1003], in[1003];
	int i, fd = must(socket(AF_INET, SOCK_DGRAM, 0)), bad = 0;

	must(bind(fd, (void *)&to, sizeof(to)));
	must(getsockname(fd, (void *)&to, &len));
	must(connect(fd, (void *)&to, sizeof(to)));
	for (i = 0; i < (int)sizeof(out); i++)
		out[i] = (char)(i * 7);
	for (i = 0; i < 50; i++) {
		int stream = call(flag, SYS_socket, AF_INET, SOCK_STREAM, 0);

		memset(in, 0, sizeof(in));
		bad += stream < 0;
		bad += call(flag, SYS_write, fd, (long)out + 1, 1000) != 1000;
		bad += call(flag, SYS_read, fd, (long)in + 3, 1000) != 1000;
		bad += memcmp(out + 1, in + 3, 1000) != 0;
		bad += call(flag, SYS_close, stream, 0, 0) != 0;
	}
	close(fd);
	return bad;
}

int main(void)
{
	N(with(0));
	N(with(AC));
	N(with(DF));
	return 0;
}
