// SPDX-License-Identifier: GPL-2.0
/*
 * patch_interp.c - the node remembers the call sites of its dynamic linker (struct ring3_sites in ring3.abi)
 *
 * Each program makes the same calls from the same sites before its main(), and each would trap there until the site
 * is rewritten. The first traps of one process record the sites; in the next program the gate rewrites them before
 * the first instruction runs.
 */
#include "entry/patch.h"
#include "ring3.h"
#include "tuning.h"


static struct {
	u64 key, start, end;
} interp;

static u64 *interp_words(void)
{
	return gate.region ? gate.region->site : NULL;
}

/* The word of a site at this offset. Without one, the word that all of the file's sites share. */
static u64 interp_word(u64 nr, u64 offset)
{
	return (interp.key * 0x9e3779b97f4a7c15UL >> RING3_SITES_FILE_SHIFT) << RING3_SITES_FILE_SHIFT |
	       nr << RING3_SITES_NR_SHIFT | offset;
}

/*
 * Called for one of the first traps of a process. If the site is in the interpreter and of form A, the node's next
 * program need not trap there. Later sites are less likely to be used by each program, and each costs a page. The
 * same is true of sites of a program without an interpreter: they are scattered, and a page costs as much as a
 * trap.
 */
void interp_note(u64 syscall_at, u64 nr)
{
	u64 addr = syscall_at - FORM_A_SYSCALL, entry, *words = interp_words();
	u32 i;

	if (!interp.key || !words || gate.counts[COUNT_TRAPS] > PATCH_FIRST_TRAPS || addr <= interp.start ||
	    syscall_at + 2 > interp.end || (addr - interp.start) >> RING3_SITES_NR_SHIFT ||
	    nr >> RING3_SITES_NR_BITS || !patch_is_form_a(addr, nr))
		return;
	entry = interp_word(nr, addr - interp.start);
	for (i = 0; i < RING3_SITES; i++) {
		u64 free = 0;

		if (READ_ONCE(words[i]) == entry ||
		    __atomic_compare_exchange_n(&words[i], &free, entry, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST) || free == entry)
			return;
	}
	WRITE_ONCE(words[entry * 0x9e3779b97f4a7c15UL >> 58], entry);
}

bool patch_knows(u64 interp_key)
{
	const u64 *words = interp_words();
	u32 i;

	interp.key = interp_key;
	for (i = 0; words && i < RING3_SITES; i++)
		if (READ_ONCE(words[i]) && !((words[i] ^ interp_word(0, 0)) >> RING3_SITES_FILE_SHIFT))
			return true;
	return false;
}

void interp_is(const struct program_text *text)
{
	interp.key = text->key;
	interp.start = text->start;
	interp.end = text->end;
}

/* Runs before the first instruction of the program: there are no other threads. */
void interp_rewrite(void)
{
	const u64 *words = interp_words();
	u64 file = interp_word(0, 0), offset_mask = (1UL << RING3_SITES_NR_SHIFT) - 1;
	u32 i;

	for (i = 0; i < RING3_SITES; i++) {
		u64 entry = READ_ONCE(words[i]), addr = interp.start + (entry & offset_mask);
		u32 nr = entry >> RING3_SITES_NR_SHIFT & ((1 << RING3_SITES_NR_BITS) - 1);

		if ((entry ^ file) >> RING3_SITES_FILE_SHIFT || !entry || addr <= interp.start ||
		    addr + FORM_A_BYTES > interp.end)
			continue;
		/* Write before the first read: a write copies the page at once, a read would cost another fault. */
		asm volatile("lock orb $0, %0" : "+m"(*(u8 *)addr) : : "memory");
		if (!patch_is_form_a(addr, nr))
			continue;
		if (!patch_ahead(addr, nr))
			break;
	}
}
