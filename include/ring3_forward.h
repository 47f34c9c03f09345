/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_forward.h - handlers of `ring3 forward`: your code on the way of each packet
 *
 * A handler is a shared object that has the symbol `ring3_handler`:
 *
 *	#include <ring3_forward.h>
 *
 *	static uint64_t packet(void *state, struct ring3_packet *packet)
 *	{
 *		return packet->len >= 100 ? RING3_TO_ALL : RING3_DROP;
 *	}
 *
 *	const struct ring3_handler ring3_handler = { .abi = RING3_HANDLER_ABI, .packet = packet };
 *
 *	cc -O2 -shared -fPIC -o large.so large.c
 *	ring3 forward --on NODE --listen udp:5000 --to 10.0.1.2:5000 --handler ./large.so
 *
 * packet() is called on the thread that has taken the packet out of the node's socket, before it takes another. No
 * other thread calls it. It has a budget of time (--budget). When that is used up, the call is cut off where it is:
 * the packet is lost, a line says so, and the handler is not called again. The same happens to a handler that faults.
 * What it held then stays as it was, so take no lock in packet() that others need, and allocate nothing there:
 * open() is the place for that.
 */
#ifndef RING3_FORWARD_H
#define RING3_FORWARD_H

#include <stdint.h>
#include <sys/socket.h>

#define RING3_HANDLER_ABI	1

/* What packet() returns: the targets that get the packet, a bit for each. --to in the order of the command line. */
#define RING3_DROP		UINT64_C(0)
#define RING3_TO(target)	(UINT64_C(1) << (target))
#define RING3_TO_ALL		(~UINT64_C(0))

/* Read and written by the handler during the call. */
struct ring3_packet {
	uint8_t *data;		/* a datagram's payload, or the next bytes of a stream; to be changed in place */
	uint32_t len;		/* bytes at data; may be set to less, or to more, up to room */
	uint32_t room;		/* bytes that may be used at data */
	uint64_t stream;	/* number of the TCP connection, from 1 on; 0: a datagram */
	uint32_t back;		/* 1: bytes of a stream on their way from a target to the client */
	uint32_t from_len;	/* bytes at from */
	const struct sockaddr *from;	/* of the client */
};

struct ring3_handler {
	uint32_t abi;		/* RING3_HANDLER_ABI */
	/*
	 * May be NULL. Called once, before the first packet: words is what --words says, "" without; targets is the
	 * number of --to. What it stores at *state comes to the others. Nonzero: the start fails.
	 */
	int (*open)(const char *words, uint32_t targets, void **state);
	uint64_t (*packet)(void *state, struct ring3_packet *packet);
	/* May be NULL. Called at the end, unless the handler was cut off. */
	void (*close)(void *state);
};

extern const struct ring3_handler ring3_handler;

#endif
