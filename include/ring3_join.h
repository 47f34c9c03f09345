/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_join.h - how a process joins a node
 *
 * The keeper listens on a SOCK_SEQPACKET unix socket in the node's runtime folder
 * (mode 0600, and SO_PEERCRED must show the node's own user). A gate that
 * starts without a thread block connects to the path in the environment
 * variable RING3_NODE, sends one ring3_join_request and receives one
 * ring3_join_reply with SCM_RIGHTS: first the region, then a socket to the
 * keeper (ring3_park.h), then the descriptors that `ports` announces, in the
 * order of `ports`. One exchange, then close.
 *
 * The gate maps the region (all RW, then text_start..text_end R-X over it, then
 * the alias RW), each link's memfd RW at base + RING3_LINK_OFFSET + index *
 * RING3_LINK_STRIDE, the rings of an AF_XDP socket at the same place (ring3_xdp.h), moves fd-backed ports to reserved high numbers and writes
 * those into proc->port_fd[index].
 */
#ifndef RING3_JOIN_H
#define RING3_JOIN_H

#include "ring3.h"

#define RING3_JOIN_MAGIC	0x326e696f6a3367ULL
#define RING3_ADOPT_MAGIC	0x3274706f64613367ULL	/* of the keeper's adopter: gets adopter_thread */
#define RING3_ENV_NODE		"RING3_NODE"	/* path of the node's socket */
#define RING3_ENV_ADOPT		"RING3_ADOPT"	/* be the node's adopter: "best", or "trace" */

struct ring3_join_request {
	r3_u64 magic;
	r3_u32 abi;		/* RING3_ABI of the gate */
	r3_s32 pid;		/* must equal SO_PEERCRED's */
};

struct ring3_join_port {
	r3_u32 index;		/* 0 .. RING3_PORTS_MAX-1 */
	r3_u32 kind;		/* enum ring3_port_kind */
};

struct ring3_join_reply {
	r3_u64 magic;
	r3_u32 abi;
	r3_s32 status;		/* 0 or -errno; then only `message` counts */
	char message[160];	/* one line for a person, when status != 0 */
	r3_u64 base;
	r3_u64 size;
	r3_u64 text_start;	/* offsets */
	r3_u64 text_end;
	r3_u64 thread;		/* address of the joiner's thread block */
	char node[64];
	r3_u32 nports;
	r3_u32 pad;
	struct ring3_join_port ports[RING3_PORTS_MAX];
};

#endif /* RING3_JOIN_H */
