// SPDX-License-Identifier: GPL-2.0
/* Calls while EFLAGS.AC is set, with which the processor faults where an access is not aligned: none of the kernel's does. */
#include "oracle.h"
#include <sys/syscall.h>

#define AC	"0x40000"

/* Often enough for its `syscall' to be rewritten. The C library is not aligned: the flag is set around the call only. */
static long call(long nr, long a, long b, long c)
{
	register long r10 asm("r10") = 0;
	register long r8 asm("r8") = 0;
	register long r9 asm("r9") = 0;
	long ret;

	asm volatile("sub $128, %%rsp\n	pushf\n	orl $" AC ", (%%rsp)\n	popf\n"
		     "syscall\n"
		     "cmp $-4095, %%rax\n"
		     "pushf\n	andl $~" AC ", (%%rsp)\n	popf\n	add $128, %%rsp"
		     : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "rcx", "r11", "memory", "cc");
	return ret;
}

int main(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(to);
	char text[32] = "";
	int i, fd = must(socket(AF_INET, SOCK_DGRAM, 0)), bad = 0;

	must(bind(fd, (void *)&to, sizeof(to)));
	must(getsockname(fd, (void *)&to, &len));
	must(connect(fd, (void *)&to, sizeof(to)));
	for (i = 0; i < 50; i++) {
		int stream = call(SYS_socket, AF_INET, SOCK_STREAM, 0);

		bad += stream < 0;
		bad += call(SYS_write, fd, (long)"unaligned" + 1, 7) != 7;
		bad += call(SYS_read, fd, (long)text + 3, 7) != 7;
		bad += memcmp(text + 3, "naligne", 7) != 0;
		bad += call(SYS_close, stream, 0, 0) != 0;
	}
	N(bad);
	return 0;
}
