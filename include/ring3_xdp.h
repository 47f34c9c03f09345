/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_xdp.h - where the rings of an AF_XDP socket lie in every process of a node
 *
 * The keeper makes the socket and its four rings of RING3_XDP_ENTRIES each
 * (linux/if_xdp.h). Every process maps ring n of it at the port's window + n *
 * RING3_XDP_STRIDE. What the rings speak of, the UMEM, is memory of the region: the image
 * registers it in PORT_ADD. After that the keeper binds the socket and
 * attaches the program that sends the interface's frames to it.
 */
#ifndef RING3_XDP_H
#define RING3_XDP_H

#include "ring3.h"

#define RING3_XDP_ENTRIES	1024u
#define RING3_XDP_STRIDE	0x10000u

enum ring3_xdp_ring {
	RING3_XDP_RX,
	RING3_XDP_TX,
	RING3_XDP_FILL,
	RING3_XDP_COMPLETION,
	RING3_XDP_RINGS
};

/* Bytes of a mapping: what the host keeps before the entries is less than a page. */
#define RING3_XDP_RXTX_BYTES	(4096u + RING3_XDP_ENTRIES * 16u)
#define RING3_XDP_UMEM_BYTES	(4096u + RING3_XDP_ENTRIES * 8u)

/* Bytes of the UMEM for one frame, 256 of which the host keeps for itself. */
#define RING3_XDP_CHUNK		2048u
/* So the largest MTU: less an Ethernet header and two VLAN tags. */
#define RING3_XDP_MTU_MAX	(RING3_XDP_CHUNK - 256u - 14u - 8u)

#endif /* RING3_XDP_H */
