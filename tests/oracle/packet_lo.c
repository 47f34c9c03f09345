// SPDX-License-Identifier: GPL-2.0
/* AF_PACKET on lo: frames seen, sent, filtered by protocol; statistics; the mapped ring's absence or presence. */
#include "oracle.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>

int main(void)
{
	int raw = must(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))), dgram = must(socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)));
	int u[2], n;
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = 1 }, from;
	socklen_t len = sizeof(from);
	unsigned char b[200], frame[60];
	struct tpacket_stats stats;

	T(bind(raw, (void *)&ll, sizeof(ll)));
	T(bind(raw, (void *)&ll, 5));
	ll.sll_ifindex = 99;
	T(bind(dgram, (void *)&ll, sizeof(ll)));
	udp_pair(AF_INET, u);
	must(send(u[0], "seen", 4, 0));
	for (int i = 0; i < 2; i++) {	/* once going out, once coming in */
		n = recvfrom(raw, b, sizeof(b), 0, (void *)&from, &len);
		say("raw %d bytes ethertype %04x type %d protocol %04x if %d hatype %d halen %d", n,
		    b[12] << 8 | b[13], from.sll_pkttype, ntohs(from.sll_protocol), from.sll_ifindex,
		    from.sll_hatype, from.sll_halen);
		say("payload %.4s", b + 42);
	}
	T(recv(raw, b, sizeof(b), MSG_DONTWAIT));
	n = recvfrom(dgram, b, sizeof(b), MSG_DONTWAIT, (void *)&from, &len);
	say("dgram %d bytes version %d type %d", n, b[0] >> 4, from.sll_pkttype);

	memset(frame, 0, sizeof(frame));
	frame[12] = 0x88;
	frame[13] = 0xb5;	/* local experimental ethertype */
	memset(&ll, 0, sizeof(ll));
	ll.sll_family = AF_PACKET;
	ll.sll_ifindex = 1;
	T(sendto(raw, frame, sizeof(frame), 0, (void *)&ll, sizeof(ll)));
	T(sendto(raw, frame, 5, 0, (void *)&ll, sizeof(ll)));
	T(sendto(raw, frame, 14, 0, (void *)&ll, sizeof(ll)));
	while ((n = recv(raw, b, sizeof(b), MSG_DONTWAIT)) >= 0)
		say("seen %d bytes ethertype %02x%02x", n, b[12], b[13]);
	len = sizeof(stats);
	T(getsockopt(raw, SOL_PACKET, PACKET_STATISTICS, &stats, &len));
	say("packets %u drops %u", stats.tp_packets, stats.tp_drops);
	T(set_int(raw, SOL_PACKET, PACKET_VERSION, TPACKET_V2));
	T(set_int(raw, SOL_PACKET, PACKET_VERSION, 17));
	T(set_int(raw, SOL_PACKET, PACKET_AUXDATA, 1));
	N(int_option(raw, SOL_PACKET, PACKET_AUXDATA));
	{
		struct packet_mreq m = { .mr_ifindex = 1, .mr_type = PACKET_MR_PROMISC };

		T(setsockopt(raw, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)));
		T(setsockopt(raw, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &m, sizeof(m)));
		T(setsockopt(raw, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &m, sizeof(m)));
	}
	T(connect(raw, (void *)&ll, sizeof(ll)));
	T(listen(raw, 1));
	return 0;
}
