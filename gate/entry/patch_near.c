// SPDX-License-Identifier: GPL-2.0
/*
 * patch_near.c - slots within reach of a near jump, which hold the overwritten instruction of form B
 *
 * See patch.c. All functions but near_area() and patch_slot() are called with gate_patch_lock held.
 */
#include "entry/patch.h"
#include "entry/insn.h"

#define NEAR_BYTES	(64UL << 10)
#define NEAR_LOW	0x7ff20000UL	/* the near area of programs linked low */
#define NEAR_AREAS	64
#define REACH		0x7fff0000UL
#define MOVED_MAX	12U	/* REX, opcode, ModRM, SIB, displacement and immediate of 4 bytes */

static struct {
	u64 base;
	u8 taken[NEAR_BYTES / SLOT_BYTES];
} *near_areas[NEAR_AREAS] GATE_TABLE;
static u32 near_count;

static bool trap_byte(u8 b)
{
	return (b >= 0x6c && b <= 0x6f) ||	/* ins, outs */
	       (b >= 0xec && b <= 0xef) ||	/* in, out */
	       b == HLT || b == 0xfa || b == 0xfb;	/* cli, sti */
}

/*
 * Length of the instruction at p if it can run at any other address, else 0: a compare, test or move whose operand is not
 * relative to rip. If it faults in the slot, the fault is reported at the site, see leave_slot().
 */
u32 near_movable(const u8 *p)
{
	const u8 *opcode = p + ((p[0] & 0xf0) == 0x40);		/* behind REX */
	u32 len = gate_insn_length(p, MOVED_MAX), op = opcode[1] >> 3 & 7;

	if (opcode[0] == 0x3d)			/* cmp $imm32,%eax/%rax */
		return len;
	if ((opcode[1] & 0xc7) == 5)		/* ModRM: relative to rip */
		return 0;
	switch (opcode[0]) {
	case 0x80:				/* cmp $imm */
	case 0x81:
	case 0x83:
		return op == 7 ? len : 0;
	case 0x85:				/* test, mov */
	case 0x89:
	case 0x8b:
		return len;
	}
	return 0;
}

/* Finds a slot of this area whose address makes the jump's second byte a trapping one. */
static u64 slot_in(u32 area, u64 from)
{
	u64 base = near_areas[area]->base, i;

	for (i = 0; i < NEAR_BYTES / SLOT_BYTES; i++) {
		u64 at = base + i * SLOT_BYTES;

		if (!near_areas[area]->taken[i] && trap_byte((at - from) >> 8 & 0xff))
			return at;
	}
	return 0;
}

static bool reachable(u64 base, u64 from)
{
	return base < from ? from - base < REACH : base + NEAR_BYTES - from < REACH;
}

static bool near_map(u64 at)
{
	long p = host_syscall6(__NR_mmap, at, NEAR_BYTES, PROT_READ | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (HOST_IS_ERR(p))
		return false;
	if ((u64)p != at) {
		host_syscall2(__NR_munmap, p, NEAR_BYTES);
		return false;
	}
	near_areas[near_count] = gate_pages(sizeof(**near_areas));
	if (!near_areas[near_count])
		return false;
	near_areas[near_count]->base = at;
	WRITE_ONCE(near_count, near_count + 1);
	return true;
}

/* Maps a new area within reach: below the site, where libraries leave room, or in low memory. */
static bool near_new(u64 from)
{
	u64 step;

	if (near_count == NEAR_AREAS)
		return false;
	if (reachable(NEAR_LOW, from) && near_map(NEAR_LOW))
		return true;
	for (step = 256UL << 20; step < REACH; step += 64UL << 20)
		if (from > step + (1UL << 20) && near_map(page_start(from - step) & ~0xffffUL))
			return true;
	return false;
}

/*
 * Finds a slot that a jump whose end is `from' reaches, and whose address makes its second byte a trapping one; 0:
 * none.
 */
u64 near_slot(u64 from)
{
	u64 slot;
	u32 i;

	for (i = 0; i < near_count; i++) {
		slot = reachable(near_areas[i]->base, from) ? slot_in(i, from) : 0;
		if (slot)
			return slot;
	}
	return near_new(from) ? slot_in(near_count - 1, from) : 0;
}

static u32 area_of(u64 at)
{
	u32 i, n = __atomic_load_n(&near_count, __ATOMIC_ACQUIRE);

	for (i = 0; i < n && at - near_areas[i]->base >= NEAR_BYTES; i++)
		;
	return i;
}

void near_take(u64 slot)
{
	u32 area = area_of(slot);

	near_areas[area]->taken[(slot - near_areas[area]->base) / SLOT_BYTES] = 1;
}

bool near_area(u32 i, u64 *base, u64 *bytes)
{
	if (i >= __atomic_load_n(&near_count, __ATOMIC_ACQUIRE))
		return false;
	*base = near_areas[i]->base;
	*bytes = NEAR_BYTES;
	return true;
}

u64 patch_slot(u64 rip)
{
	return area_of(rip) < READ_ONCE(near_count) ? rip & ~(u64)(SLOT_BYTES - 1) : 0;
}
