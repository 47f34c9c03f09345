// SPDX-License-Identifier: GPL-2.0
/*
 * A handler of `ring3 forward` that does what the packet says: `loop`, `call` (loops in the C library), `sleep`, `fault`,
 * `deep` (overflows its stack), `long` (claims more bytes than there is room for), `sockets` (closes the agent's); anything else
 * passes. With the words `open` or `close` that function does not return.
 */
#include "../../include/ring3_forward.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int is(const struct ring3_packet *packet, const char *word)
{
	return packet->len == strlen(word) && !memcmp(packet->data, word, packet->len);
}

static volatile int depth;

static __attribute__((noinline)) int deep(int level)
{
	volatile char frame[4096];

	frame[0] = (char)level;
	depth = level;
	return frame[0] + (depth >= 0 ? deep(level + 1) : 0) + frame[0];
}

static uint64_t packet(void *state, struct ring3_packet *packet)
{
	static char text[1 << 16];
	static int *volatile nowhere;
	const struct timespec hour = { .tv_sec = 3600 };

	(void)state;
	if (is(packet, "loop"))
		for (;;)
			__asm__ volatile("");
	if (is(packet, "call")) {
		memset(text, 'x', sizeof(text) - 1);
		while (strlen(text))
			__asm__ volatile("" : : : "memory");
	}
	while (is(packet, "sleep"))
		nanosleep(&hour, NULL);
	if (is(packet, "fault"))
		*nowhere = 0;
	if (is(packet, "deep"))
		deep(0);
	for (int fd = 3; is(packet, "sockets") && fd < 64; fd++) {
		struct stat stat;

		if (!fstat(fd, &stat) && S_ISSOCK(stat.st_mode))
			close(fd);
	}
	if (is(packet, "long"))
		packet->len = packet->room + 1;
	return RING3_TO_ALL;
}

static int loops_in_close;

static int open_handler(const char *words, uint32_t targets, void **state)
{
	(void)targets, (void)state;
	loops_in_close = !strcmp(words, "close");
	if (!strcmp(words, "open")) {
		fputs("in open()\n", stderr);
		for (;;)
			__asm__ volatile("");
	}
	return 0;
}

static void close_handler(void *state)
{
	(void)state;
	while (loops_in_close)
		__asm__ volatile("");
}

const struct ring3_handler ring3_handler = {
	.abi = RING3_HANDLER_ABI, .open = open_handler, .packet = packet, .close = close_handler
};
