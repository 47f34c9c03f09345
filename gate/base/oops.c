// SPDX-License-Identifier: GPL-2.0
/*
 * oops.c - where the node's kernel was when it faulted
 *
 * The gate has no unwinder. Most words on the kernel stack that point into the image's text are return addresses,
 * which is enough to find the call path with addr2line.
 */
#include "internal.h"

#define WORDS_MAX	512	/* words of stack that are searched */
#define FOUND_MAX	20

void oops_trace(const struct ucontext *uc)
{
	const struct sigcontext *sc = &uc->uc_mcontext;
	u64 base = (u64)gate.region, at = sc->rsp & ~7ULL, end = base + gate.region->size;
	char line[400];
	u32 i, found = 0;
	size_t n;

	n = gate_format(line, sizeof(line), "kernel code faulted at +0x%lx, address 0x%lx; on its stack:",
			(unsigned long)(sc->rip - base), (unsigned long)sc->cr2);
	for (i = 0; i < WORDS_MAX && found < FOUND_MAX; i++, at += 8) {
		u64 word;

		if (at < base || at + 8 > end)
			break;
		word = *(const u64 *)at;
		if (word < gate.text_start || word >= gate.text_end)
			continue;
		n += gate_format(line + n, sizeof(line) - n, " +0x%lx", (unsigned long)(word - base));
		found++;
	}
	gate_warn("%s", line);
}
