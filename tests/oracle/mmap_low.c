// SPDX-License-Identifier: GPL-2.0
/*
 * A program clears away or takes the last megabytes below 2 GiB, which seem to be free: its calls work after that.
 * (An order for a place where something lies may be refused, for the host's kernel may have something there, too.)
 */
#include "oracle.h"

#define LAST	0x7fe00000UL

static void calls(const char *after)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0)), i, good = 0;

	for (i = 0; i < 1000; i++)
		good += syscall(SYS_getppid) > 0 && fcntl(fd, F_GETFL) >= 0;
	close(fd);
	printf("after %s: %d calls\n", after, good);
}

int main(void)
{
	size_t size = 4096, i;
	char *p;

	calls("nothing");
	printf("munmap: %s\n", ename(munmap((void *)LAST, 0x80000000UL - LAST) ? errno : 0));
	calls("munmap");
	for (i = 0; i < 0x80000000UL - LAST; i += size) {
		p = mmap((void *)(LAST + i), size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (p != MAP_FAILED)
			memset(p, 0xf4, size);
	}
	calls("mmap, where there is room");
	p = must((long)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + (char *)0;
	for (i = 0; i < 16; i++) {
		char *to = (char *)LAST + i * (0x80000000UL - LAST) / 16;

		if (mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to)
			p = to;
	}
	memset(p, 0xf4, size);
	calls("mremap");
	for (i = 0; i < 0x80000000UL - LAST; i += size) {
		p = mmap((void *)(LAST + i), size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (p != MAP_FAILED)
			memset(p, 0xf4, size);
	}
	calls("mmap, everywhere");
	return 0;
}
