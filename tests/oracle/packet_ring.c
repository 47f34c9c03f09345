// SPDX-License-Identifier: GPL-2.0
/* A mapped receive ring (TPACKET_V2), as tcpdump uses it. */
#include "oracle.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>

int main(void)
{
	int fd = must(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))), u[2], seen = 0;
	struct tpacket_req req = { .tp_block_size = 4096, .tp_block_nr = 4, .tp_frame_size = 2048, .tp_frame_nr = 8 };
	struct tpacket_req odd = { .tp_block_size = 4096, .tp_block_nr = 4, .tp_frame_size = 2048, .tp_frame_nr = 7 };
	char *ring;

	T(set_int(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2));
	T(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &odd, sizeof(odd)));
	T(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)));
	ring = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		say("mmap -> %s", ename(errno));
		return 0;
	}
	say("mapped");
	udp_pair(AF_INET, u);
	for (int i = 0; i < 3; i++)
		must(send(u[0], "ring", 4, 0));
	for (int i = 0; i < 6; i++) {
		struct tpacket2_hdr *h = (struct tpacket2_hdr *)(ring + i * 2048);

		if (!(*(volatile unsigned int *)&h->tp_status & TP_STATUS_USER))
			need(poll(&(struct pollfd){ fd, POLLIN }, 1, 1000) == 1);
		seen += !memcmp((char *)h + h->tp_mac + 42, "ring", 4) && h->tp_len == 46;
		h->tp_status = TP_STATUS_KERNEL;
	}
	N(seen);
	T(munmap(ring, 4 * 4096));
	return 0;
}
