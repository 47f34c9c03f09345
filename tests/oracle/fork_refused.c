// SPDX-License-Identifier: GPL-2.0
/* Children that are refused use nothing up, nor do those of a thread whose others map packet rings meanwhile. */
#include "oracle.h"
#include <linux/if_packet.h>
#include <linux/sched.h>
#include <net/ethernet.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define REFUSED	5000
#define FORKS	300

static volatile int over;

static void *maps(void *arg)
{
	struct tpacket_req req = { 4096, 1, 2048, 2 };
	int fd = must(socket(AF_PACKET, SOCK_RAW, 0));

	must(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)));
	while (!over) {
		void *ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		need(ring != MAP_FAILED);
		must(munmap(ring, 4096));
	}
	close(fd);
	return arg;
}

int main(void)
{
	struct clone_args args = { .exit_signal = 1000 };
	int i, status, refused = 0, bad = 0;
	pthread_t t;

	for (i = 0; i < REFUSED; i++)
		refused += syscall(SYS_clone3, &args, sizeof(args)) == -1 && errno == EINVAL;
	N(refused);
	t = spawn(maps, NULL);
	for (i = 0; i < FORKS; i++) {
		int pid = must(fork());

		if (!pid)
			_exit(3);
		must(waitpid(pid, &status, 0));
		bad += WEXITSTATUS(status) != 3;
	}
	over = 1;
	join(t);
	N(bad);
	return 0;
}
