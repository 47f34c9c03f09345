// SPDX-License-Identifier: GPL-2.0
/*
 * hostile.c - far sides that misbehave, one for each kind of port
 *
 *	hostile tap IFNAME COUNT [SEED]	garbage frames into the host's end of a TAP
 *	hostile link FILE COUNT [SEED]	the other end of a link that writes garbage records
 *	hostile link-break FILE		... and then a position that makes no sense
 *	passt ...			(by that name) a passt that answers nothing, sends garbage
 *					frames and, when the file $HOSTILE_BREAK appears, a
 *					length that no frame has
 *
 * The first three say on stdout how many frames they sent; of a link's, only those that a
 * node has to count as errors.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link_ring.h"

static uint64_t rng_state = 1;

static uint32_t rnd(void)
{
	rng_state = rng_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(rng_state >> 33);
}

static void die(const char *what)
{
	fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pause_us(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/* An Ethernet frame of len bytes that says it is something and mostly is not. */
static void garbage(uint8_t *frame, uint32_t len)
{
	static const uint16_t types[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_ARP, ETH_P_8021Q, 0x1234, 60 };
	uint8_t head[64];
	uint32_t i;

	for (i = 0; i < sizeof(head); i++)
		head[i] = (uint8_t)rnd();
	memset(head, 0xff, 6);
	head[6] &= 0xfe;
	head[12] = (uint8_t)(types[rnd() % 6] >> 8);
	head[13] = (uint8_t)types[rnd() % 6];
	head[14] = rnd() % 2 ? 0x45 : 0x60;
	for (i = 0; i < len; i++)
		frame[i] = i < sizeof(head) ? head[i] : (uint8_t)(i * 7);
}

static struct virtio_net_hdr garbage_header(void)
{
	static const uint8_t types[] = { 0, 0, 1, 3, 4, 5, 0x81, 0x84, 77 };

	return (struct virtio_net_hdr) {
		.flags = rnd() % 5,
		.gso_type = types[rnd() % 9],
		.hdr_len = (uint16_t)(rnd() % 200),
		.gso_size = (uint16_t)(rnd() % 3 ? rnd() % 1500 : 0),
		.csum_start = (uint16_t)(rnd() % 100),
		.csum_offset = (uint16_t)(rnd() % 30),
	};
}

/* The host refuses some of what we ask it to send; only what it took is counted. */
static int tap(const char *ifname, int count)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1, sent = 0, i;
	static uint8_t buf[10 + 65536];

	to.sll_ifindex = (int)if_nametoindex(ifname);
	if (fd < 0 || !to.sll_ifindex)
		die(ifname);
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)))
		die("PACKET_VNET_HDR");
	for (i = 0; i < count; i++) {
		struct virtio_net_hdr hdr = garbage_header();
		uint32_t len = rnd() % 3 ? 14 + rnd() % 1500 : rnd() % 65000;

		memcpy(buf, &hdr, sizeof(hdr));
		garbage(buf + sizeof(hdr), len);
		if (sendto(fd, buf, sizeof(hdr) + len, 0, (void *)&to, sizeof(to)) >= 0)
			sent++;
		if (i % 64 == 0)
			pause_us(500);
	}
	printf("%d\n", sent);
	return 0;
}

/* Side 1 of a link whose side 0 is a node. */
struct end {
	struct ring3_link *mem;
	struct link_tx tx;
	struct ring3_side *self, *peer;
};

static void end_open(struct end *e, const char *file)
{
	int fd = open(file, O_RDWR);

	if (fd < 0)
		die(file);
	e->mem = mmap(NULL, RING3_LINK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (e->mem == MAP_FAILED)
		die("mmap");
	e->self = &e->mem->side[1];
	e->peer = &e->mem->side[0];
	link_tx_open(&e->tx, &e->mem->ring[1], (r3_u8 *)e->mem + RING3_LINK_HEAD + RING3_RING_BYTES,
		     RING3_RING_BYTES);
	link_store(&e->self->pid, getpid());
	link_store_release(&e->self->up, 1);
	link_inc(&e->peer->doorbell);
}

/* No futex: the node's second look has to find us. Takes what the node sends. */
static void end_flush(struct end *e)
{
	link_tx_publish(&e->tx);
	link_inc(&e->peer->doorbell);
	link_store_release(&e->mem->ring[0].tail, link_load_acquire(&e->mem->ring[0].head));
}

static void wait_empty(struct end *e)
{
	int i;

	for (i = 0; i < 3000 && link_load_acquire(&e->mem->ring[1].tail) != e->tx.head; i++)
		pause_us(1000);
}

static int link_garbage(const char *file, int count, bool then_break)
{
	struct end e;
	int i, bad = 0;

	end_open(&e, file);
	pause_us(900000);
	for (i = 0; i < count; i++) {
		uint32_t len = rnd() % 4 ? rnd() % 1514 : rnd() % LINK_FRAME_MAX;
		struct virtio_net_hdr hdr = garbage_header();
		struct ring3_record *rec;

		while (link_tx_room(&e.tx, LINK_FRAME_MAX) != LINK_OK) {
			end_flush(&e);
			pause_us(1000);
		}
		if (rnd() % 2)
			memset(&hdr, 0, sizeof(hdr));
		rec = link_tx_reserve(&e.tx, len);
		memcpy(rec->vnet_hdr, &hdr, sizeof(hdr));
		garbage((uint8_t *)(rec + 1), len);
		link_tx_commit(&e.tx, len);
		/* Runts, and giants that are no segments: what surely is an error. */
		bad += len < ETH_HLEN || (len > 1522 && hdr.gso_type == 0);
		if (i % 32 == 0)
			end_flush(&e);
	}
	end_flush(&e);
	wait_empty(&e);
	if (then_break) {
		link_store_release(&e.mem->ring[1].head, e.tx.head + 12345);
		link_inc(&e.peer->doorbell);
		pause_us(900000);
		pause_us(900000);
	}
	printf("%d\n", bad);
	return 0;
}

static void stream(const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = send(0, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			exit(0);
		data += n;
		len -= (size_t)n;
	}
}

/* ring3 asks for an address and waits for the answer, to know that passt serves. */
static void answer_probe(void)
{
	uint8_t ask[4 + 42], answer[4 + 42];

	if (recv(0, ask, sizeof(ask), MSG_WAITALL) != sizeof(ask))
		die("no probe");
	memcpy(answer, ask, sizeof(answer));
	memcpy(answer + 4, ask + 10, 6);		/* to whom */
	answer[25] = 2;					/* reply */
	memset(answer + 26, 0x52, 6);			/* sender */
	memcpy(answer + 32, ask + 42, 4);
	memcpy(answer + 36, ask + 26, 10);		/* target */
	stream(answer, sizeof(answer));
}

/* Standard input is the node's socket, as ring3 starts passt. */
static int fake_passt(void)
{
	static uint8_t buf[4 + 65600];
	int i;

	answer_probe();

	for (i = 0; i < 3000; i++) {
		uint32_t len = rnd() % 4 ? rnd() % 1514 : rnd() % 65000, be = htonl(len);
		uint32_t cut = rnd() % (len + 4);

		memcpy(buf, &be, 4);
		garbage(buf + 4, len);
		stream(buf, cut);
		if (i % 50 == 0)
			pause_us(2000);
		stream(buf + cut, len + 4 - cut);
		while (recv(0, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
	}
	/* Until the test has looked: then the stream loses its step. */
	for (i = 0; i < 3000; i++) {
		const char *mark = getenv("HOSTILE_BREAK");

		if (mark && access(mark, F_OK) == 0)
			break;
		while (recv(0, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
		pause_us(10000);
	}
	memset(buf, 0xab, sizeof(buf));
	stream(buf, 4096);
	for (i = 0; i < 3000; i++)
		pause_us(10000);
	return 0;
}

int main(int argc, char **argv)
{
	const char *self = strrchr(argv[0], '/');
	int count = argc > 3 ? atoi(argv[3]) : 0;

	if (!strcmp(self ? self + 1 : argv[0], "passt"))
		return fake_passt();
	if (argc > 4)
		rng_state = (uint64_t)atoi(argv[4]);
	if (argc >= 4 && !strcmp(argv[1], "tap"))
		return tap(argv[2], count);
	if (argc >= 4 && !strcmp(argv[1], "link"))
		return link_garbage(argv[2], count, false);
	if (argc >= 3 && !strcmp(argv[1], "link-break"))
		return link_garbage(argv[2], 100, true);
	fprintf(stderr, "usage: hostile tap IFNAME COUNT [SEED] | link FILE COUNT [SEED] | link-break FILE\n");
	return 2;
}
