// SPDX-License-Identifier: GPL-2.0
/*
 * patch.c - rewrites system call sites so that they no longer trap
 *
 * Theory of operation
 * -------------------
 * A `syscall` instruction has two bytes, a jump needs more. A site is examined after it has trapped PATCH_HOT_TRAPS
 * times. Two forms are rewritten:
 *
 * A: b8 nr32 0f 05 (mov $nr,%eax; syscall) becomes ff 24 25 word32 (jmp *word), 7 bytes. The word lies in a table
 * of the gate below 2 GiB and holds the address of the site's stub (stubs.S). Two checks confirm that the five
 * bytes before the syscall are this mov: rax has that value at the trap, and there is no REX prefix before it.
 *
 * B: 0f 05 and the next instruction become e9 rel32 (jmp near), 5 bytes, if that instruction is a compare or move
 * that can run elsewhere. `near` is a slot in a page of the gate within 2 GiB of the site:
 *        jmp *word; <the instruction that was overwritten>; jmp back
 *
 * Other code may jump to an instruction in the middle of the overwritten bytes (the syscall of A, the compare of
 * B), and a thread may be interrupted there right now. So the byte that lands on each such instruction is chosen
 * such that it raises a general protection fault in user mode (trap_byte() in patch_near.c): for A by the address
 * of the table (the third byte of TABLE is 0xf4, hlt), for B by the address of the slot. The SIGSEGV handler knows
 * the overwritten instruction and emulates it (patch_fault() in patch_context.c).
 *
 * Writing under running threads: first byte to hlt, wait until every core has seen it, the trapping byte in the
 * middle, wait, the rest, wait, the first byte. Threads that reach hlt meanwhile are sent back to try again.
 *
 * Only private, read-only, executable mappings of files are rewritten, and the vDSO (which makes calls for clocks of the
 * processor's time), never JIT output or the gate. A site that can't be rewritten keeps trapping: Syscall User Dispatch
 * catches its calls.
 */
#include "entry/patch.h"
#include "tuning.h"
#include <linux/membarrier.h>

#define TABLE		0x7ff40000UL	/* 2 * PATCH_SITES words: 64 KiB */
#define TABLE_BYTES	(2 * PATCH_SITES * 8)
#define REFUSED		0x8000
#define SEEN_BITS	7
#define SEEN_WAYS	4
#define RANGES		512

/* Kept together: each page that a program touches at its start costs a fault. */
struct patch_site patch_sites[2 * PATCH_SITES] GATE_TABLE __attribute__((visibility("hidden")));
_Static_assert(sizeof(struct patch_site) == PATCH_SITE_BYTES, "stubs.S");
_Static_assert(offsetof(struct patch_site, nr) == 8, "stubs.S");
_Static_assert((TABLE >> 16 & 0xff) == HLT, "form A's middle byte");
_Static_assert(TABLE_BYTES <= 65536, "form A's middle byte");

u32 patch_used[2];

/* Indexed by a hash of the site's address: another part of the hash, and the number of traps so far (0: free). */
static struct seen {
	u16 tag, hits;
} seen[1u << SEEN_BITS][SEEN_WAYS] GATE_TABLE;

static struct {
	u64 start, end;
} ranges[RANGES] GATE_TABLE;
static u32 range_count;
static u64 vdso_start, vdso_end;

struct gate_mutex gate_patch_lock;
static bool table_ready, table_refused, many_threads;
static bool look_closer;		/* no class but CLASS_GATE is used any more */
static bool own_gs;			/* ... nor that, but the stubs that look at GS */

/* ---- which mappings ---- */

static bool is_vdso(const char *rest)
{
	const char *name = strchr(rest, '[');

	return name && !strncmp(name, "[vdso]", 6);
}

/* Collects private r-x mappings of files from /proc/self/maps, and the vDSO. */
static void read_ranges(void)
{
	static struct own_maps maps GATE_TABLE;
	const char *rest;
	u64 start, end;

	range_count = 0;
	if (!own_maps_open(&maps))
		return;
	while ((rest = own_maps_next(&maps, &start, &end))) {
		bool vdso = is_vdso(rest);

		if (strncmp(rest, " r-xp ", 6) || (!vdso && !strchr(rest, '/')) || range_count == RANGES ||
		    (end > RING3_GATE_BASE && start < RING3_SPACE_END))
			continue;
		if (vdso) {
			vdso_start = start;
			vdso_end = end;
		}
		ranges[range_count].start = start;
		ranges[range_count++].end = end;
	}
}

static bool in_ranges(u64 start, u64 end)
{
	u32 i;

	for (i = 0; i < range_count; i++)
		if (start >= ranges[i].start && end <= ranges[i].end)
			return true;
	return false;
}

static bool rewritable(u64 start, u64 end)
{
	if (in_ranges(start, end))
		return true;
	read_ranges();
	return in_ranges(start, end);
}

/* ---- writing ---- */

static void sync_cores(void)
{
	if (many_threads)
		host_syscall3(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

void patch_threads(void)
{
	if (!many_threads) {
		host_syscall3(__NR_membarrier,
			      MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
		WRITE_ONCE(many_threads, true);
	}
}

static long protect_text(u64 addr, size_t len, int prot)
{
	u64 start = page_start(addr), end = page_align(addr + len);

	/* The host does not split it (special_mapping_split() in mm/mmap.c). */
	if (addr >= vdso_start && addr < vdso_end) {
		start = vdso_start;
		end = vdso_end;
	}
	return host_syscall3(__NR_mprotect, start, end - start, prot);
}

static bool open_text(u64 addr, size_t len)
{
	return !protect_text(addr, len, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void close_text(u64 addr, size_t len)
{
	protect_text(addr, len, PROT_READ | PROT_EXEC);
}

/* mid: offset of the byte on which an overwritten instruction began. */
static void write_site(u64 addr, const u8 *code, size_t len, size_t mid)
{
	volatile u8 *at = (u8 *)addr;
	size_t i;

	at[0] = HLT;
	sync_cores();
	at[mid] = code[mid];
	sync_cores();
	for (i = 1; i < len; i++)
		at[i] = code[i];
	sync_cores();
	at[0] = code[0];
	sync_cores();
}

/* ---- form A ---- */

static u32 table_word(u32 site)
{
	return TABLE + 8 * site;
}

/* jmp *word, FORM_A_BYTES long */
static void put_jump(u8 *at, u32 word)
{
	memcpy(at, (u8[]){ 0xff, 0x24, 0x25 }, 3);
	memcpy(at + 3, &word, 4);
}

static int find_place(u32 kind, u64 addr)
{
	u32 i, base = kind * PATCH_SITES;

	for (i = 0; i < patch_used[kind]; i++)
		if (patch_sites[base + i].addr == addr)
			return base + i;
	if (patch_used[kind] == PATCH_SITES)
		return -1;
	return base + patch_used[kind];
}

static void point_to(u32 site, u32 class)
{
	u64 to = (u64)patch_stubs + patch_stub(site) * PATCH_STUB_BYTES + patch_layout[site / PATCH_SITES].entry[class];

	if (own_gs)
		to = (u64)own_gs_stubs + patch_stub(site) * OWN_GS_STUB_BYTES;
	*(volatile u64 *)(u64)table_word(site) = to;
}

static void point_all(void)
{
	u32 kind, i;

	for (kind = 0; kind < 2; kind++)
		for (i = 0; i < patch_used[kind]; i++)
			if (patch_sites[kind * PATCH_SITES + i].nr != NO_CALL)
				point_to(kind * PATCH_SITES + i, CLASS_GATE);
}

/*
 * A seccomp filter has to be asked about each call. Threads that are in a stub right now made their call before the
 * filter was set.
 */
void patch_look_closer(void)
{
	gate_lock(&gate_patch_lock);
	look_closer = true;
	point_all();
	gate_unlock(&gate_patch_lock);
}

/* From now on a thread may have a GS base of its own. In the stubs right now there is none that has. */
void patch_own_gs(void)
{
	gate_lock(&gate_patch_lock);
	own_gs = true;
	point_all();
	gate_unlock(&gate_patch_lock);
}

static void publish(u32 site, u64 addr, u64 back, u32 nr)
{
	u32 kind = site / PATCH_SITES;

	patch_sites[site].back = back;
	patch_sites[site].nr = nr;
	point_to(site, look_closer ? CLASS_GATE : gate_class(nr));
	patch_sites[site].addr = addr;
	patch_sites[site].done = 0;
	barrier();
	if (site - kind * PATCH_SITES == patch_used[kind])
		WRITE_ONCE(patch_used[kind], patch_used[kind] + 1);
}

static bool rewrite_a(u64 syscall_at, u64 nr)
{
	u64 addr = syscall_at - FORM_A_SYSCALL;
	u8 code[FORM_A_BYTES];
	int site;

	if (!rewritable(addr - 1, addr + FORM_A_BYTES) || !patch_is_form_a(addr, nr))
		return false;
	site = find_place(0, addr);
	if (site < 0 || !open_text(addr, FORM_A_BYTES))
		return false;
	publish(site, addr, addr + FORM_A_BYTES, nr);
	put_jump(code, table_word(site));
	write_site(addr, code, FORM_A_BYTES, FORM_A_SYSCALL);
	WRITE_ONCE(patch_sites[site].done, 1);
	close_text(addr, FORM_A_BYTES);
	return true;
}

/* ---- form B ---- */

static bool rewrite_b(u64 addr, u64 nr)
{
	const u8 *next = (u8 *)addr + 2;
	u8 code[5] = { 0xe9 }, slot[SLOT_BYTES];
	u64 at;
	u32 len, i;
	s32 rel;
	int site;

	if (!rewritable(addr, addr + 16))
		return false;
	len = near_movable(next);
	if (len < 3)
		return false;
	site = find_place(1, addr);
	if (site < 0)
		return false;
	at = near_slot(addr + 5);
	if (!at || !open_text(at, SLOT_BYTES))
		return false;

	memset(slot, HLT, sizeof(slot));
	put_jump(slot, table_word(site));
	memcpy(slot + 7, next, len);
	slot[7 + len] = 0xe9;
	rel = (addr + 2 + len) - (at + 7 + len + 5);
	memcpy(slot + 8 + len, &rel, 4);
	for (i = 0; i < sizeof(slot); i++)
		((volatile u8 *)at)[i] = slot[i];
	close_text(at, SLOT_BYTES);

	if (!open_text(addr, 5))
		return false;
	near_take(at);
	patch_sites[site].slot = at;
	patch_sites[site].next_len = len;
	publish(site, addr, at + 7, nr);
	rel = at - (addr + 5);
	memcpy(code + 1, &rel, 4);
	write_site(addr, code, 5, 2);
	WRITE_ONCE(patch_sites[site].done, 1);
	close_text(addr, 5);
	return true;
}

bool patch_within(u64 *start, u64 *end)
{
	u64 base = TABLE, bytes = TABLE_BYTES;
	u32 i;

	for (i = 0; i == 0 || near_area(i - 1, &base, &bytes); i++) {
		if (*start >= base + bytes || *end <= base || (!i && !READ_ONCE(table_ready)))
			continue;
		if (*start < base)
			*start = base;
		if (*end > base + bytes)
			*end = base + bytes;
		return true;
	}
	return false;
}

/* ---- when ---- */

static bool table_map(void)
{
	long at;

	if (table_ready || table_refused)
		return table_ready;
	at = host_syscall6(__NR_mmap, TABLE, TABLE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	table_ready = (u64)at == TABLE;
	table_refused = !table_ready;
	if (table_refused)
		gate_log("no room for the site table at 0x%lx: every call will trap", TABLE);
	return table_ready;
}

/*
 * For cpuid.c: `mov $imm32,%eax; cpuid' has the bytes of form A, and other code may jump into its middle, too. Its
 * text is writable, and only one thread runs.
 */
bool patch_cpuid(u64 addr, u64 stub)
{
	int site;

	if (!table_map())
		return false;
	site = find_place(0, addr);
	if (site < 0)
		return false;
	*(volatile u64 *)(u64)table_word(site) = stub;
	patch_sites[site] = (struct patch_site){ .addr = addr, .nr = NO_CALL, .done = 1 };
	patch_used[0]++;
	put_jump((u8 *)addr, table_word(site));
	return true;
}

/* Restores the site under running threads. Its text is writable. */
void patch_cpuid_undo(u64 addr, const u8 *code)
{
	int site = find_place(0, addr);

	gate_lock(&gate_patch_lock);
	WRITE_ONCE(patch_sites[site].done, 0);
	write_site(addr, code, FORM_A_BYTES, FORM_A_SYSCALL);
	WRITE_ONCE(patch_sites[site].done, 1);
	gate_unlock(&gate_patch_lock);
}

bool patch_ahead(u64 addr, u32 nr)
{
	int site = find_place(0, addr);

	if (site < 0)
		return false;
	publish(site, addr, addr + FORM_A_BYTES, nr);
	put_jump((u8 *)addr, table_word(site));
	patch_sites[site].done = 1;
	count(COUNT_SITES);
	return true;
}

/* A program without an interpreter gets its table when the first of its sites is to be rewritten. */
void patch_start(const struct program *p)
{
	const struct program_text *text = &p->first;

	if (p->has_interp)
		interp_is(text);
	if (p->has_interp && text->key && table_map() && text->open && !gate_debugged)
		interp_rewrite();
	cpuid_start(text);
	if (text->open)
		close_text(text->start, text->end - text->start);
}

/*
 * The entry of a site. NULL: too many other sites have the same hash. Each of them loses a hit then, so that of
 * sites that take turns some reach the limit, and after them the others.
 */
static struct seen *seen_of(u64 rip)
{
	u64 hash = rip * 0x9e3779b97f4a7c15UL;
	struct seen *set = seen[hash >> (64 - SEEN_BITS)], *least = set;
	u16 tag = hash >> (64 - SEEN_BITS - 16);
	u32 i;

	/* Write before the first read: reading a new page first would cost another fault. */
	asm volatile("orb $0, %0" : "+m"(*(u8 *)set) : : "memory");
	for (i = 0; i < SEEN_WAYS; i++) {
		if (set[i].tag == tag && set[i].hits)
			return &set[i];
		if (set[i].hits < least->hits)
			least = &set[i];
	}
	if (least->hits && least->hits != REFUSED && --least->hits)
		return NULL;
	least->tag = tag;
	least->hits = 0;
	return least;
}

/* Of a site in a fork child the text around it may have gone from here. */
static bool is_syscall(u64 rip)
{
	u8 text[FORM_A_BYTES + 16];
	const u8 *insn = text + FORM_A_SYSCALL;

	return !gate_copy_in(text, (void *)(rip - FORM_A_BYTES), sizeof(text)) && insn[0] == 0x0f && insn[1] == 0x05;
}

static void trapped(u64 rip, u64 nr, bool is_new)
{
	struct seen *s;

	s = seen_of(rip);
	if (!s || s->hits == REFUSED || ++s->hits < PATCH_HOT_TRAPS || nr == __NR_rt_sigreturn)
		return;
	gate_lock(&gate_patch_lock);
	if (is_new)
		range_count = 0;
	if (!is_syscall(rip)) {
		/* another thread has rewritten it */
		gate_unlock(&gate_patch_lock);
		return;
	}
	if (table_map() && (rewrite_a(rip - 2, nr) || rewrite_b(rip - 2, nr))) {
		count(COUNT_SITES);
		s->hits = 0;	/* it can't trap again */
	} else {
		count(COUNT_REFUSED);
		s->hits = REFUSED;
		gate_log("site 0x%lx, call %lu: not rewritten", rip - 2, nr);
	}
	gate_unlock(&gate_patch_lock);
}

/* Called for each trap. rip is the address after the `syscall'. */
void patch_trap(u64 rip, u64 nr)
{
	if (table_refused || gate_debugged)	/* a debugger's view needs all registers: trace.c */
		return;
	interp_note(rip - SYSCALL_BYTES, nr);
	fork_note(rip, nr);
	trapped(rip, nr, false);
}

/* The same for a trap of a fork child. The mapping may have changed since the child was made. */
void patch_child_trapped(u64 rip, u64 nr)
{
	if (table_refused || gate_debugged)
		return;
	trapped(rip, nr, true);
}
