// SPDX-License-Identifier: GPL-2.0
/*
 * duplicate.c - everything to the first target, and every Nth packet to each other, as a monitor wants it
 *
 *	cc -O2 -shared -fPIC -I include -o duplicate.so examples/forward/duplicate.c
 *	ring3 forward --on b --listen udp:5000 --to 10.0.1.2:5000 --to 10.0.2.2:5000 --handler ./duplicate.so --words 10
 */
#include <ring3_forward.h>
#include <stdlib.h>

struct sampler {
	uint64_t each, count;
};

static int open_sampler(const char *words, uint32_t targets, void **state)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	(void)targets;
	if (!sampler)
		return 1;
	sampler->each = strtoul(words, NULL, 10);
	*state = sampler;
	return sampler->each ? 0 : 1;
}

static uint64_t packet(void *state, struct ring3_packet *packet)
{
	struct sampler *sampler = state;

	(void)packet;
	return sampler->count++ % sampler->each ? RING3_TO(0) : RING3_TO_ALL;
}

const struct ring3_handler ring3_handler = {
	.abi = RING3_HANDLER_ABI,
	.open = open_sampler,
	.packet = packet,
	.close = free,
};
