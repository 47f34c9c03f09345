// SPDX-License-Identifier: GPL-2.0
/* AF_XDP's memory: whether it is to be had or not, the stack goes on. */
#include "oracle.h"
#include <linux/if_xdp.h>

int main(void)
{
	void *m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct xdp_umem_reg r = { .addr = (uintptr_t)m, .len = 65536, .chunk_size = 4096 };
	int fd = socket(44 /* AF_XDP */, SOCK_RAW, 0);

	if (fd < 0)
		skip("no AF_XDP");
	setsockopt(fd, 283 /* SOL_XDP */, XDP_UMEM_REG, &r, sizeof(r));
	OK(socket(AF_INET, SOCK_DGRAM, 0));
	close(fd);
	OK(socket(AF_INET, SOCK_DGRAM, 0));
	return 0;
}
