// SPDX-License-Identifier: GPL-2.0
/*
 * filter.c - lets through only packets that begin with the given words
 *
 *	cc -O2 -shared -fPIC -I include -o filter.so examples/forward/filter.c
 *	ring3 forward --on b --listen udp:5000 --to 10.0.1.2:5000 --handler ./filter.so --words hello
 */
#include <ring3_forward.h>
#include <stdlib.h>
#include <string.h>

struct filter {
	size_t len;
	char begin[256];
};

static int open_filter(const char *words, uint32_t targets, void **state)
{
	struct filter *filter = calloc(1, sizeof(*filter));

	(void)targets;
	if (!filter || strlen(words) >= sizeof(filter->begin))
		return 1;
	filter->len = strlen(words);
	strcpy(filter->begin, words);
	*state = filter;
	return 0;
}

static uint64_t packet(void *state, struct ring3_packet *packet)
{
	const struct filter *filter = state;

	if (packet->len < filter->len || memcmp(packet->data, filter->begin, filter->len))
		return RING3_DROP;
	return RING3_TO_ALL;
}

const struct ring3_handler ring3_handler = {
	.abi = RING3_HANDLER_ABI,
	.open = open_filter,
	.packet = packet,
	.close = free,
};
