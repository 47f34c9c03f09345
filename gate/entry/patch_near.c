// SPDX-License-Identifier: GPL-2.0
/*
 * patch_near.c - slots within reach of a near jump, which hold the overwritten instruction of form B
 *
 * See patch.c. All functions but near_area() and patch_slot() are called with gate_patch_lock held.
 */
#include "entry/patch.h"

#define NEAR_BYTES	(64UL << 10)
#define NEAR_LOW	0x7ff20000UL	/* the near area of programs linked low */
#define NEAR_AREAS	64
#define REACH		0x7fff0000UL

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

/* Length of ModRM, SIB and displacement; 0: the operand is relative to rip, and would be another one elsewhere. */
static u32 modrm_len(const u8 *p)
{
	u32 mod = p[0] >> 6, rm = p[0] & 7, n = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {				/* SIB */
		n = 2;
		if (mod == 0 && (p[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		return 0;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/*
 * Length of the instruction at p if it can run at any other address, else 0. If it faults in the slot, the fault is
 * reported at the site, see leave_slot().
 */
u32 near_movable(const u8 *p)
{
	u32 n = 0, m;

	if ((p[0] & 0xf0) == 0x40)
		n = 1;				/* REX */
	if (p[n] == 0x3d)			/* cmp $imm32,%eax/%rax */
		return n + 5;
	m = modrm_len(p + n + 1);
	if (!m)
		return 0;
	switch (p[n]) {
	case 0x80:				/* cmp $imm8 */
	case 0x83:
		return (p[n + 1] >> 3 & 7) == 7 ? n + 1 + m + 1 : 0;
	case 0x81:				/* cmp $imm32 */
		return (p[n + 1] >> 3 & 7) == 7 ? n + 1 + m + 4 : 0;
	case 0x89:				/* mov, test */
	case 0x8b:
	case 0x85:
		return n + 1 + m;
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
