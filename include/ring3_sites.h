/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_sites.h - what gates tell each other about the dynamic linker
 *
 * Each program that starts makes the same few calls from its ELF interpreter, each a trap,
 * and rarely one so often that rewriting it would pay. So they are remembered for the node: in the
 * words of init_thread.gate[], which no gate uses otherwise. [0] says of which file (0: of none
 * yet), those behind it hold a site each (0: free): its call number << 32 | its offset in the mapped
 * file. Words are only ever set, by compare-and-swap. Whoever reads one checks it against the file.
 */
#ifndef RING3_SITES_H
#define RING3_SITES_H

#define RING3_SITES_FILE	0
#define RING3_SITES_FIRST	1
#define RING3_SITES_END		64

#endif /* RING3_SITES_H */
