// SPDX-License-Identifier: GPL-2.0
/* A packet ring lives as long as a process has it mapped: without its descriptor, in a child, and in parts. */
#include "oracle.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/wait.h>

#define BLOCK	4096
#define BLOCKS	4
#define FRAME	2048
#define TYPE	0x88b6		/* of local experiments */

static int lo;

static char *ring_of(int fd)
{
	struct tpacket_req req = { BLOCK, BLOCKS, FRAME, BLOCKS * BLOCK / FRAME };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(TYPE), .sll_ifindex = lo };
	char *ring;

	must(set_int(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2));
	must(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)));
	must(bind(fd, (struct sockaddr *)&at, sizeof(at)));
	ring = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(ring != MAP_FAILED);
	return ring;
}

static void send_one(char letter)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(TYPE), .sll_ifindex = lo, .sll_halen = 6 };
	char frame[100];
	int fd = must(socket(AF_PACKET, SOCK_DGRAM, 0));

	memset(frame, letter, sizeof(frame));
	must(sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)));
	close(fd);
}

/* Prints the packet that came into this frame of the ring within a second. */
static int came(char *ring, int i)
{
	struct tpacket2_hdr *h = (struct tpacket2_hdr *)(ring + i * FRAME);
	int turns;

	for (turns = 0; turns < 1000; turns++) {
		if (*(volatile unsigned int *)&h->tp_status & TP_STATUS_USER)
			return ((char *)h)[h->tp_net + 5];
		usleep(1000);
	}
	return 0;
}

/* Pages that are nobody's any more would be the kernel's again: many of them, written to and looked at by it. */
static void use_memory(void)
{
	int fd[200], i;

	for (i = 0; i < 200; i++) {
		char text[4096];

		fd[i] = must(socket(AF_INET, SOCK_DGRAM, 0));
		memset(text, 'k', sizeof(text));
		sendto(fd[i], text, sizeof(text), 0, (struct sockaddr *)&(struct sockaddr_in){ AF_INET, htons(9), { htonl(INADDR_LOOPBACK) } }, 16);
	}
	for (i = 0; i < 200; i++)
		close(fd[i]);
}

int main(void)
{
	struct tpacket_req none = { 0 };
	int fd = must(socket(AF_PACKET, SOCK_RAW, 0)), again, status;
	char *ring, *other;

	lo = if_nametoindex("lo");
	ring = ring_of(fd);
	T(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)));
	T(set_int(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V1));

	/* Two mappings, and one of them goes in two parts. */
	other = mmap(NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(other != MAP_FAILED);
	T(munmap(other + BLOCK, BLOCK));
	T(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)));
	T(munmap(other, BLOCK));
	T(munmap(other + 2 * BLOCK, 2 * BLOCK));
	T(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)));

	/* Without its descriptor it still receives. */
	T(close(fd));
	send_one('a');
	N(came(ring, 0));
	use_memory();
	memset(ring + FRAME, 0x55, (BLOCKS * BLOCK / FRAME - 1) * FRAME);
	use_memory();
	memset(ring + FRAME, 0, (BLOCKS * BLOCK / FRAME - 1) * FRAME);
	send_one('b');
	N(came(ring, 1));

	/* A child has it too, and keeps it when its parent gives it up. */
	fflush(stdout);
	if (!must(fork())) {
		usleep(20000);
		send_one('c');
		N(came(ring, 2));
		T(munmap(ring, BLOCKS * BLOCK));
		fflush(stdout);
		_exit(0);
	}
	T(munmap(ring, BLOCKS * BLOCK));
	fflush(stdout);
	must(wait(&status));
	N(status);

	/* Nobody has it: another may have its ring. */
	again = must(socket(AF_PACKET, SOCK_RAW, 0));
	ring = ring_of(again);
	T(munmap(ring + BLOCK, 2 * BLOCK));
	T(munmap(ring, BLOCK));
	T(setsockopt(again, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)));
	T(munmap(ring, BLOCKS * BLOCK));
	T(setsockopt(again, SOL_PACKET, PACKET_RX_RING, &none, sizeof(none)));
	send_one('d');
	use_memory();
	return 0;
}
