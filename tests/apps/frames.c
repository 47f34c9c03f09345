// SPDX-License-Identifier: GPL-2.0
/*
 * frames INTERFACE - puts frames on an interface of the host that no sane sender makes:
 * runts, giants, headers that lie about lengths, noise. Says how many went out.
 */
#include "oracle.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>

static int fd;
static struct sockaddr_ll to = { .sll_family = AF_PACKET };
static int sent, refused;
static unsigned char mac[6];
static uint64_t state = 88172645463325252ULL;

static uint64_t noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void put(const unsigned char *frame, size_t len)
{
	if (sendto(fd, frame, len, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)len)
		sent++;
	else
		refused++;
}

int main(int argc, char **argv)
{
	static unsigned char f[70000];
	static const size_t lengths[] = { 14, 15, 17, 20, 33, 34, 41, 42, 53, 54, 60, 500, 1514, 1515, 4000, 8000, 9014 };
	static const int types[] = { 0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x0000, 0x05dc, 0xffff, 0x8847, 0x8863 };

	need(argc == 3);
	need(sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) == 6);
	fd = must(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)));
	to.sll_ifindex = if_nametoindex(argv[1]);
	need(to.sll_ifindex);
	for (int round = 0; round < 200; round++)
		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
			int type = types[noise() % ARRAY_SIZE(types)];
			size_t len = lengths[l];

			for (size_t i = 0; i < len; i += 8) {
				uint64_t n = noise();

				memcpy(f + i, &n, 8);
			}
			memcpy(f, mac, 6);
			f[6] &= 0xfe;
			f[12] = type >> 8;
			f[13] = type;
			/* Half of the IP ones get a plausible start, so that they go further in. */
			if (type == 0x0800 && round & 1 && len > 34) {
				f[14] = 0x45 + (noise() & 15);
				f[23] = (const unsigned char[]){ 1, 2, 6, 17, 132, 4, 50, 253 }[noise() & 7];
			}
			if (type == 0x86dd && round & 1 && len > 54) {
				f[14] = 0x60;
				f[20] = (const unsigned char[]){ 0, 43, 44, 58, 6, 17, 60, 50 }[noise() & 7];
			}
			put(f, len);
		}
	say("sent %d refused %d", sent, refused);
	return 0;
}
