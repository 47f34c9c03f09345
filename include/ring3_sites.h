/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_sites.h - what programs that start on a node need to know from those before them
 *
 * Each program that starts makes the same few calls from its ELF interpreter, each a trap,
 * and rarely one so often that rewriting it would pay. So they are remembered for the node: in the
 * words of init_thread.gate[], which no gate uses otherwise. [0] says of which file (0: of none
 * yet), those behind it hold a site each (0: free): its call number << 32 | its offset in the mapped
 * file. Words are only ever set, by compare-and-swap. Whoever reads one checks it against the file.
 *
 * The last word is the keeper's: which parts of 2 MiB of the node's memory are in huge pages. Bit i is
 * the i-th from the start, bit 63 - i the i-th from the end. To map these at once takes less time
 * than the page faults of a program's first calls.
 */
#ifndef RING3_SITES_H
#define RING3_SITES_H

#define RING3_SITES_FILE	0
#define RING3_SITES_FIRST	1
#define RING3_SITES_END		63
#define RING3_SITES_HUGE	63
#define RING3_SITES_HUGE_PARTS	32
#define RING3_SITES_PART_BYTES	0x200000ULL

#endif /* RING3_SITES_H */
