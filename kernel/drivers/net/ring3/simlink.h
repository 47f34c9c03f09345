/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * simlink.h - attributes of a link of the kind "simlink", in IFLA_INFO_DATA
 *
 * `ring3 sim' has the same numbers in ring3/sim/src/simlink.rs; a test there compares them.
 */
#ifndef RING3_SIMLINK_H
#define RING3_SIMLINK_H

/* The other end, when a pair is made. All three are needed. */
#define SIMLINK_PEER_NAME	1	/* string */
#define SIMLINK_PEER_NETNS	2	/* u32, a descriptor of its network namespace */
#define SIMLINK_PEER_ADDRESS	3	/* six bytes */

/* What happens to what leaves by this end. One that is not said stays as it is; at first all are 0. */
#define SIMLINK_RATE		4	/* u64, bits per second; 0: no limit */
#define SIMLINK_DELAY		5	/* u64, nanoseconds */
#define SIMLINK_JITTER		6	/* u64, nanoseconds: standard deviation of the delay */
#define SIMLINK_LOSS		7	/* u32, share of the packets in parts of 2^32; the next three as well */
#define SIMLINK_CORRUPT		8	/* one bit is inverted */
#define SIMLINK_DUPLICATE	9	/* arrives twice */
#define SIMLINK_REORDER		10	/* arrives without the delay */
#define SIMLINK_SEED		11	/* u64, where the random numbers begin */
#define SIMLINK_MAX		11

#endif
