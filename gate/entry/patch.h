/* SPDX-License-Identifier: GPL-2.0 */
/* patch.h - rewritten sites, between patch.c, patch_interp.c and patch_context.c */
#ifndef GATE_PATCH_H
#define GATE_PATCH_H

#include "internal.h"

#define SYSCALL_BYTES	2U
#define FORM_A_SYSCALL	5U	/* where the `syscall' was */
#define FORM_A_BYTES	7U
#define HLT		0xf4
#define NO_CALL		(~0U)	/* patch_site.nr of the sites of cpuid.c */

struct patch_site {
	/* Read by stubs.S */
	u64 back;		/* address that the stub jumps to at its end */
	u32 nr;			/* call number that the stub is made for; with form A it can't be another */
	/* The program's side */
	u8 next_len;		/* form B: length of the instruction that was moved there */
	u8 done;		/* completely rewritten */
	u16 pad;
	u64 addr;		/* first byte overwritten; 0: free */
	u64 slot;		/* form B: near slot */
};

/* Form A's sites, then form B's. */
extern struct patch_site patch_sites[2 * PATCH_SITES] __attribute__((visibility("hidden")));
extern u32 patch_used[2];	/* sites in use, of form A and B */

/*
 * Which of the stubs is the site's, and the other way round. The first stubs of both forms lie together: each 64 KiB of them
 * costs a fork child a fault.
 */
static inline u32 patch_stub(u32 site)
{
	return 2 * (site % PATCH_SITES) + site / PATCH_SITES;
}

static inline u32 patch_site_of(u32 stub)
{
	return stub % 2 * PATCH_SITES + stub / 2;
}

/* Offsets in a stub, for form A and B. Filled in by stubs.S. */
struct patch_layout {
	u8 entry[CLASSES];	/* by CLASS_* */
	u8 fd_call, direct_call;	/* the program's own `syscall' */
	u8 straight;
	u8 gate_called, straight_called;	/* addresses after the calls of the gate */
	u8 fd_back, direct_back;	/* the stub's last instruction; the call has been counted */
};
extern const struct patch_layout patch_layout[2] __attribute__((visibility("hidden")));

static inline bool patch_is_form_a(u64 addr, u32 nr)
{
	const u8 *at = (const u8 *)addr;
	u32 imm;

	memcpy(&imm, at + 1, 4);
	return at[0] == 0xb8 && imm == nr && at[5] == 0x0f && at[6] == 0x05 &&
	       (at[-1] & 0xf0) != 0x40;
}

/* patch.c */
void patch_child_trapped(u64 rip, u64 nr);
bool patch_ahead(u64 addr, u32 nr);	/* form A; the text is writable and there is one thread. False: no place is left */

/* patch_near.c */
#define SLOT_BYTES	32
u32 near_movable(const u8 *p);		/* length of the instruction at p if it can run at any other address, else 0 */
u64 near_slot(u64 from);
void near_take(u64 slot);
bool near_area(u32 i, u64 *base, u64 *bytes);	/* false: there are fewer areas */
u64 patch_slot(u64 rip);		/* the near slot that rip is in; 0: none */

/* patch_fork.c: sites of fork children */
#define NOTES		3		/* words of gate[] from WORD_NOTES on */
void fork_note(u64 rip, u64 nr);

/* patch_interp.c: sites of the dynamic linker, which the node remembers */
void interp_note(u64 syscall_at, u64 nr);
void interp_is(const struct program_text *text);
void interp_rewrite(void);

#endif
