// SPDX-License-Identifier: GPL-2.0
/* Both rings of a packet socket in one mapping: frames written to the second arrive in the first. */
#include "oracle.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>

#define BLOCK	8192		/* bytes: more than a page, so that pages within blocks count */
#define RX	3		/* blocks */
#define TX	2
#define FRAME	2048
#define FRAMES	(TX * BLOCK / FRAME)
#define TYPE	0x88b5		/* of local experiments */

int main(void)
{
	struct tpacket_req rx = { BLOCK, RX, FRAME, RX * BLOCK / FRAME }, tx = { BLOCK, TX, FRAME, FRAMES };
	struct sockaddr_ll lo = { .sll_family = AF_PACKET, .sll_protocol = htons(TYPE) };
	int fd = must(socket(AF_PACKET, SOCK_RAW, 0));
	char *ring, *page;

	lo.sll_ifindex = if_nametoindex("lo");
	T(set_int(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2));
	T(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &rx, sizeof(rx)));
	T(setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &tx, sizeof(tx)));
	T(bind(fd, (struct sockaddr *)&lo, sizeof(lo)));
	OK(mmap(NULL, RX * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	ring = mmap(NULL, (RX + TX) * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		say("mmap -> %s", ename(errno));
		return 0;
	}
	page = ring + RX * BLOCK;
	for (int i = 0; i < FRAMES; i++) {
		struct tpacket2_hdr *h = (struct tpacket2_hdr *)(page + i * FRAME);
		struct ether_header *e = (struct ether_header *)((char *)h + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll));

		memset(e, 0, sizeof(*e));
		e->ether_type = htons(TYPE);
		memset(e + 1, 'a' + i, 100);
		h->tp_len = sizeof(*e) + 100;
		h->tp_status = TP_STATUS_SEND_REQUEST;
	}
	T(send(fd, NULL, 0, 0));
	for (int i = 0; i < FRAMES; i++) {
		struct tpacket2_hdr *h = (struct tpacket2_hdr *)(ring + i * FRAME);
		char *data;

		if (!(*(volatile unsigned int *)&h->tp_status & TP_STATUS_USER))
			need(poll(&(struct pollfd){ fd, POLLIN }, 1, 1000) == 1);
		data = (char *)h + h->tp_mac + sizeof(struct ether_header);
		say("%d bytes, %.3s", h->tp_len, data);
	}
	T(munmap(ring, (RX + TX) * BLOCK));
	return 0;
}
