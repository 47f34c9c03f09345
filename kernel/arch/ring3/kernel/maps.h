/* SPDX-License-Identifier: GPL-2.0 */
/* maps.h - region memory that processes have mapped: mmap.c */
#ifndef RING3_MAPS_H
#define RING3_MAPS_H

#include <linux/types.h>

/* proc: a struct ring3_proc of the region's table */
int ring3_maps_fork(u64 parent, u64 child, bool shared);
void ring3_maps_exit(u64 proc);

#endif
