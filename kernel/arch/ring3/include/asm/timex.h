/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_TIMEX_H
#define _ASM_RING3_TIMEX_H

typedef unsigned long cycles_t;

static inline cycles_t get_cycles(void)
{
	unsigned int lo, hi;

	asm volatile("rdtsc" : "=a" (lo), "=d" (hi));
	return ((u64)hi << 32) | lo;
}
#define get_cycles get_cycles

#endif
