// SPDX-License-Identifier: GPL-2.0
/*
 * patch_fork.c - fork children tell the thread that has forked them where they trap
 *
 * A server that forks for each connection has children that end before a site has trapped PATCH_HOT_TRAPS times. What they
 * have counted ends with them, so each of them would trap at the same sites. So a child notes its first sites in its
 * parent's thread block. The parent counts them at its next fork as traps of its own, and rewrites those that are hot: its
 * next children have them rewritten from their beginning.
 *
 * A word that holds the parent's tag is empty. The tag is chosen at the first fork of a program, and a child has a copy of
 * it. So a child notes nothing in a block that is another thread's by now, or whose process has executed another program:
 * the words there are zeroes, or hold another tag.
 */
#include "entry/patch.h"

#define TAG		(1UL << 63)
#define ADDRESS_BITS	48		/* of a note; the call number is above them */
#define NUMBER_MAX	0x7fff

_Static_assert(WORD_NOTES + NOTES <= GATE_WORD_POLICY, "asm_defs.h");

static u64 tag;			/* 0: this program has not forked */
static u64 *notes;		/* of the thread that has forked this process; NULL: none has */

/* A site of this process has trapped. rip is the address after the `syscall'. */
void fork_note(u64 rip, u64 nr)
{
	u64 note = nr << ADDRESS_BITS | rip, empty;
	u32 i;

	if (likely(!notes) || nr > NUMBER_MAX || rip >> ADDRESS_BITS)
		return;
	for (i = 0; i < NOTES; i++) {
		empty = tag;
		if (__atomic_compare_exchange_n(&notes[i], &empty, note, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		    empty == note)
			return;
	}
}

void patch_forks(void)
{
	u64 *words = &gate_thread()->gate[WORD_NOTES], note;
	u32 i;

	if (unlikely(!tag))
		tag = TAG | __builtin_ia32_rdtsc();
	for (i = 0; i < NOTES; i++) {
		note = __atomic_exchange_n(&words[i], tag, __ATOMIC_SEQ_CST);
		if (note && !(note & TAG))
			patch_child_trapped(note & ((1UL << ADDRESS_BITS) - 1), note >> ADDRESS_BITS);
	}
}

void patch_forked(struct ring3_thread *parent)
{
	notes = &parent->gate[WORD_NOTES];
}
