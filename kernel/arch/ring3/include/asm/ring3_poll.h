/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_POLL_H
#define _ASM_RING3_POLL_H

#include <linux/types.h>

/*
 * The two ends of a polled port tell each other on which of the host's CPUs they run
 * (plus one; 0: unknown). To be called after ring3_poll_add().
 */
void ring3_poll_cpus(unsigned int port, u32 *ours, const u32 *theirs);

/*
 * A polled port's sender may wait for room: until the far side's position `taken' has come to `*wanted', where that is not 0.
 * Bit 0 is set in it, for 0 is a position too. Who looks at the port sees that. Who arms it has the far side ring, by `*waiting'. To be called after ring3_poll_add().
 */
void ring3_poll_room(unsigned int port, const u32 *taken, const u32 *wanted, u32 *waiting);

/* Is the port one of those whose memory is looked at? */
bool ring3_poll_watches(unsigned int port);
bool ring3_irq_wanted(unsigned int port);
u32 ring3_host_cpu(void);

/*
 * A port is left unarmed with something in it: the way out of calls, the idle loop and
 * KEEP's tick look at it. For the holder of the vCPU.
 */
void ring3_poll_later(void);

/*
 * The same for a port that nobody sees by its memory: its interrupt is raised again when one
 * of them looks. For the holder of the vCPU.
 */
void ring3_poll_owe(unsigned int port);

#endif
