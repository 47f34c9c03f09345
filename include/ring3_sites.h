/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_sites.h - what programs that start on a node need to know from those before them
 *
 * Each program that starts makes the same few calls from its ELF interpreter, each a trap,
 * and rarely one so often that rewriting it would pay. So they are remembered for the node, in
 * region->site[]. Each word holds a site (0: free):
 *
 *   63..42  of which file and version of it (a hash)
 *   41..33  its call's number
 *   32..0   its offset in the file's first executable segment
 *
 * A word that is taken may become another's when all are. Whoever reads one checks it against what
 * is mapped: what is no such call is left alone.
 */
#ifndef RING3_SITES_H
#define RING3_SITES_H

#define RING3_SITES		64
#define RING3_SITES_FILE_SHIFT	42
#define RING3_SITES_NR_SHIFT	33
#define RING3_SITES_NR_BITS	9

#endif /* RING3_SITES_H */
