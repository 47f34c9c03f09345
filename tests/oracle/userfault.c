// SPDX-License-Identifier: GPL-2.0
/* Memory that another thread of the program fills in when it is touched (userfaultfd), with what it asks a server for: sent from and received into. */
#include "oracle.h"
#include <linux/userfaultfd.h>

#define PAGE	4096
#define PAGES	64
#define ROUND	8	/* pages a call */

static int fault_fd, store[2], stream[2];
static char *memory;

/* Asks for each page that is touched. */
static void *fill_in(void *none)
{
	static char page[PAGE];

	for (int i = 0; i < PAGES; i++) {
		struct uffd_msg msg;
		struct uffdio_copy copy = { .src = (unsigned long)page, .len = PAGE };
		int number;

		must(read(fault_fd, &msg, sizeof(msg)));
		copy.dst = msg.arg.pagefault.address & -PAGE;
		number = (copy.dst - (unsigned long)memory) / PAGE;
		must(send(store[0], &number, sizeof(number), 0));
		must(recv(store[0], page, PAGE, MSG_WAITALL));
		must(ioctl(fault_fd, UFFDIO_COPY, &copy));
	}
	return none;
}

static void *serve(void *none)
{
	char page[PAGE];
	int number;

	while (must(recv(store[1], &number, sizeof(number), MSG_WAITALL)) == sizeof(number)) {
		memset(page, 'A' + number, PAGE);
		must(send(store[1], page, PAGE, 0));
	}
	return none;
}

int main(void)
{
	static char got[ROUND * PAGE];
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .range.len = PAGES * PAGE, .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct iovec part = { NULL, ROUND * PAGE };
	pthread_t fills, serves;
	int wrong = 0;

	fault_fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fault_fd < 0) {
		printf("no userfaultfd here that may wait for faults in the kernel\n");
		return 77;
	}
	must(ioctl(fault_fd, UFFDIO_API, &api));
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = (unsigned long)memory;
	must(ioctl(fault_fd, UFFDIO_REGISTER, &all));
	tcp_pair(AF_INET, store);
	tcp_pair(AF_INET, stream);
	fills = spawn(fill_in, NULL);
	serves = spawn(serve, NULL);
	for (int at = 0; at < PAGES; at += 2 * ROUND) {
		T(send(stream[0], memory + at * PAGE, ROUND * PAGE, 0));
		T(recv(stream[1], got, ROUND * PAGE, MSG_WAITALL));
		for (int i = 0; i < ROUND * PAGE; i++)
			wrong += got[i] != (char)('A' + at + i / PAGE);
		part.iov_base = memory + (at + ROUND) * PAGE;
		T(send(stream[1], got, ROUND * PAGE, 0));
		T(recvmsg(stream[0], &(struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 }, MSG_WAITALL));
		wrong += memcmp(memory + (at + ROUND) * PAGE, got, ROUND * PAGE) != 0;
	}
	N(wrong);
	join(fills);
	must(shutdown(store[0], SHUT_WR));
	join(serves);
	return 0;
}
