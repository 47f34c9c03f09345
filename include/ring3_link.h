/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_link.h - the memory between two nodes joined by a `link` port
 *
 * A memfd of RING3_LINK_BYTES, mapped into every process of both nodes at the
 * port's window. Two byte rings, one per direction: side s sends into ring[s]
 * and receives from ring[!s]. Each ring has one producer and one consumer (the
 * vCPU of a node; an SMP node takes a lock on its own end).
 *
 * A record is struct ring3_record followed by `len` bytes of Ethernet frame,
 * padded to 64 bytes. A record never wraps: where it would, the producer writes
 * a record with len = RING3_RECORD_SKIP and starts again at offset 0.
 *
 * The far side is not trusted: a consumer reads each field once, checks it
 * against the ring's size and never follows anything else. A record that makes no sense
 * ends the use of the ring (the port loses its carrier), a frame that makes none is dropped.
 *
 * Waking: a consumer that goes to sleep stores armed = 1, then looks once more. A
 * producer that finds armed takes it (xchg 0), increments doorbell and
 * wakes the futex. `waiting` is the same for a producer that found no room.
 */
#ifndef RING3_LINK_H
#define RING3_LINK_H

#include "ring3.h"

#define RING3_LINK_MAGIC	0x6b6e696c33676e72ULL
#define RING3_RING_BYTES	(4u << 20)	/* data of one direction */
#define RING3_LINK_HEAD		4096u		/* the struct below, then the data of ring 0 and 1 */
#define RING3_LINK_BYTES	(RING3_LINK_HEAD + 2 * RING3_RING_BYTES)
#define RING3_RECORD_SKIP	0xffffffffu

/* virtio_net_hdr (12 bytes, little endian; include/uapi/linux/virtio_net.h). */
struct ring3_record {
	r3_u32 len;
	r3_u8 vnet_hdr[12];
	r3_u8 pad[16];
};

struct ring3_ring {
	r3_a32 head __attribute__((aligned(64)));	/* producer: bytes written, mod 2^32 */
	r3_a32 tail __attribute__((aligned(64)));	/* consumer: bytes consumed, mod 2^32 */
};

struct ring3_side {
	r3_a32 doorbell __attribute__((aligned(64)));	/* futex word this side's KEEP waits on */
	r3_a32 armed;		/* this side sleeps: ring when there is input */
	r3_a32 waiting;		/* this side waits for room: ring when there is some */
	r3_a32 up;		/* this side is there: carrier */
	r3_as32 pid;		/* its keeper, to see it die */
	r3_a32 cpu;		/* of the host, where it last ran, plus 1; 0: unknown */
};

struct ring3_link {
	r3_u64 magic;
	r3_u32 abi;
	r3_u32 ring_bytes;	/* RING3_RING_BYTES */
	struct ring3_ring ring[2];	/* by sending side */
	struct ring3_side side[2];
};

#endif /* RING3_LINK_H */
