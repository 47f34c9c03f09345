// SPDX-License-Identifier: GPL-2.0
/*
 * rewrite.c - puts a line with the sender's port in front of each datagram, and writes it in capitals
 *
 *	cc -O2 -shared -fPIC -I include -o rewrite.so examples/forward/rewrite.c
 *	ring3 forward --on b --listen udp:5000 --to 10.0.1.2:5000 --handler ./rewrite.so
 */
#include <ring3_forward.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static unsigned int port_of(const struct sockaddr *from)
{
	switch (from->sa_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)from)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)from)->sin6_port);
	}
	return 0;
}

static uint64_t packet(void *state, struct ring3_packet *packet)
{
	char line[32];
	uint32_t i, len = snprintf(line, sizeof(line), "from %u\n", port_of(packet->from));

	(void)state;
	for (i = 0; i < packet->len; i++)
		if (packet->data[i] >= 'a' && packet->data[i] <= 'z')
			packet->data[i] -= 'a' - 'A';
	if (packet->stream || packet->len + len > packet->room)
		return RING3_TO_ALL;
	memmove(packet->data + len, packet->data, packet->len);
	memcpy(packet->data, line, len);
	packet->len += len;
	return RING3_TO_ALL;
}

const struct ring3_handler ring3_handler = { .abi = RING3_HANDLER_ABI, .packet = packet };
