// SPDX-License-Identifier: GPL-2.0
/*
 * cpuid.c - answers the `cpuid` instructions of a program's start from memory, where the instruction is slow
 *
 * Theory of operation
 * -------------------
 * Under a hypervisor each `cpuid` traps and takes 4 to 10 us or more (0.1 us on the bare processor). The start-up
 * code of a C library executes some forty, which is half of the time that the host needs to start a small program.
 * Later code executes hardly any. So the gate searches only the text that runs first: the ELF interpreter's, or the
 * program's own if it has no interpreter.
 *
 * Which sites: most are `mov $leaf,%eax; cpuid`, seven bytes like form A of patch.c. Some load a subleaf between
 * the two instructions. Most ask for data that is the same on all CPUs until the host reboots (answerable()).
 * Before the program's first instruction, the gate rewrites these sites into the same jump. Their stubs (cpuid.S)
 * load four registers with answers that the processor gave once. Other sites stay as they are, for example those
 * that ask which CPU this is. On a machine with unlike CPUs, all sites stay. Letting them fault (2 us) instead
 * would gain little.
 *
 * Finding sites: the search compares bytes and decodes nothing. A site has 7 to 12 of them, which include the leaf. They
 * could be constants of one instruction: may_be_constants() leaves those alone. They could belong to several instructions,
 * but one of these would be `add %al,(%rax)' (00 00), `mov %al,moffs64' (a2), or an opcode that 64-bit mode does not
 * have, none of which compilers make, or a one-byte access with the displacement or the mask that the leaf gives. (Of 353
 * sites in 4,287 files of a Debian system all were the two instructions; one was left alone.) The search takes some
 * hundred microseconds, so the node remembers the sites of a file (struct ring3_cpuid_file). A larger text is searched only
 * when it starts for the second time.
 *
 * Code that jumps to the instruction after the `mov` meets the trapping byte of form A, and patch_fault() lets
 * cpuid_at() emulate that instruction. A `cpuid` that does not follow the `mov` directly is still in place. Unlike
 * the instruction, a stub does not serialize; code that relies on serialization has no such mov before it. For a
 * program that asks the host to let `cpuid` fault (ARCH_SET_CPUID), the gate restores the original instructions.
 */
#include "internal.h"
#include "tuning.h"

#define TEXT_AT_ONCE	(512UL << 10)	/* largest text that is searched at its first start */
#define TEXT_MAX	(16UL << 20)
#define MOV_BYTES	5
#define SITE_MAX	12
#define NOT_LOOKED	(~0U)
#define BUSY		1		/* ring3_cpuid_file.key */
#define FLAGS_OF_XOR	0x8d5UL		/* all arithmetic flags */
#define FLAGS_OF_ZERO	0x44UL		/* ZF, PF */

static const u8 cpuid_insn[] = { 0x0f, 0xa2 };

/* The instruction between `mov $leaf,%eax' and `cpuid', and its bytes: it loads the subleaf. */
enum between { BETWEEN_NONE, BETWEEN_XOR, BETWEEN_ESI, BETWEEN_EDI, BETWEEN_EBP, BETWEEN_MOV };
static const struct {
	u8 len, code[2];	/* for MOV the first byte; its subleaf follows */
} betweens[] = {
	[BETWEEN_NONE] = { 0, { 0 } },		[BETWEEN_XOR] = { 2, { 0x31, 0xc9 } },
	[BETWEEN_ESI] = { 2, { 0x89, 0xf1 } },	[BETWEEN_EDI] = { 2, { 0x89, 0xf9 } },
	[BETWEEN_EBP] = { 2, { 0x89, 0xe9 } },	[BETWEEN_MOV] = { 5, { 0xb9 } },
};
extern const u8 cpuid_layout[BETWEEN_MOV] __attribute__((visibility("hidden")));

/* One rewritten site. cpuid.S reads the fields up to minus_subleaf. */
struct cpuid_data {
	u32 regs[4];
	u64 back;		/* address after the cpuid */
	u64 insn;		/* address of the cpuid */
	u32 leaf, subleaf;
	u32 minus_subleaf;
	u32 between;
};
struct cpuid_data cpuid_data[RING3_CPUID_SITES] GATE_TABLE __attribute__((visibility("hidden")));
_Static_assert(sizeof(struct cpuid_data) == CPUID_DATA_BYTES, "cpuid.S");
_Static_assert(offsetof(struct cpuid_data, minus_subleaf) == 40, "cpuid.S");
_Static_assert(RING3_CPUID_SITES == CPUID_STUBS, "cpuid.S");
extern const char cpuid_stubs[], cpuid_stubs_end[] __attribute__((visibility("hidden")));

static u64 text_start, text_bytes;
static u64 text_key;
static struct ring3_cpuid_file *text_file;
static u32 text_sites, stubs;
static u32 text_site[RING3_CPUID_SITES] GATE_KEPT;
static bool stopped;		/* the original instructions are restored, also for faults at these sites */

static void host_cpuid(u32 leaf, u32 subleaf, u32 regs[4])
{
	asm volatile("cpuid" : "=a"(regs[0]), "=b"(regs[1]), "=c"(regs[2]), "=d"(regs[3])
		     : "a"(leaf), "c"(subleaf));
}

/* The answer for the program: the processor's, or that of the virtual processor. */
static void told_cpuid(u32 leaf, u32 subleaf, u32 regs[4])
{
	if (sim_cpu_hidden())
		sim_cpuid(leaf, subleaf, regs);
	else
		host_cpuid(leaf, subleaf, regs);
}

/* ---- is it worth while here? ---- */

static bool is_slow(void)
{
	u64 best = ~0UL;
	u32 regs[4];
	int i;

	for (i = 0; i < 2; i++) {
		u64 before = gate_clock_ns(CLOCK_MONOTONIC), took;

		host_cpuid(0, 0, regs);
		took = gate_clock_ns(CLOCK_MONOTONIC) - before;
		if (took < best)
			best = took;
	}
	return best > CPUID_SLOW_NS;
}

/* Large and small cores in one machine. */
static bool is_mixed(void)
{
	u32 regs[4];

	host_cpuid(0, 0, regs);
	if (regs[0] >= 7) {
		host_cpuid(7, 0, regs);
		if (regs[3] & 1U << 15)			/* Intel: hybrid part */
			return true;
	}
	host_cpuid(0x80000000, 0, regs);
	if (regs[0] < 0x80000026)
		return false;
	host_cpuid(0x80000026, 0, regs);
	return regs[0] & 1U << 30;			/* AMD: heterogeneous cores */
}

/* The part of the node's memory that holds answers and sites, or NULL if it is not to be used. */
static struct ring3_cpuid *memory(void)
{
	struct ring3_cpuid *c = gate.region ? &gate.region->cpuid : NULL;

	if (!c || gate_debugged)
		return NULL;
	if (READ_ONCE(c->use) == RING3_CPUID_UNKNOWN)
		WRITE_ONCE(c->use, sim_cpu_hidden() || (is_slow() && !is_mixed()) ? RING3_CPUID_REMEMBER : RING3_CPUID_HOST);
	return READ_ONCE(c->use) == RING3_CPUID_REMEMBER ? c : NULL;
}

/* ---- answers ---- */

/*
 * True for leaves that say nothing about the CPU that answers. Without a subleaf: the leaves that each 64-bit
 * processor has, namely largest leaf and vendor, largest extended leaf, features, brand, caches, power and address
 * sizes. With a subleaf: caches, features, XSAVE, and further leaves that the C library asks for.
 */
static bool answerable(u32 leaf, enum between between)
{
	switch (leaf) {
	case 0:
	case 0x80000000 ... 0x80000008:
		return between == BETWEEN_NONE;
	case 4:
	case 7:
	case 0xd:
	case 0x14:
	case 0x19:
	case 0x8000001d:
		return between != BETWEEN_NONE;
	}
	return false;
}

static void answer(struct ring3_cpuid *c, u32 leaf, u32 subleaf, u32 regs[4])
{
	struct ring3_cpuid_answer *a;
	u32 i, free = 0;

	for (i = 0; i < RING3_CPUID_ANSWERS; i++) {
		u32 state;

		a = &c->answers[i];
		state = __atomic_load_n(&a->state, __ATOMIC_ACQUIRE);
		if (!state)
			break;
		if (state != RING3_CPUID_READY || a->leaf != leaf || a->subleaf != subleaf)
			continue;
		memcpy(regs, a->regs, sizeof(a->regs));
		return;
	}
	told_cpuid(leaf, subleaf, regs);
	if (i < RING3_CPUID_ANSWERS &&
	    __atomic_compare_exchange_n(&a->state, &free, RING3_CPUID_WRITING, false,
					__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		a->leaf = leaf;
		a->subleaf = subleaf;
		memcpy(a->regs, regs, sizeof(a->regs));
		__atomic_store_n(&a->state, RING3_CPUID_READY, __ATOMIC_RELEASE);
	}
}

/* ---- files ---- */

static struct ring3_cpuid_file *file_of(struct ring3_cpuid *c, u64 key)
{
	u32 i;

	for (i = 0; i < RING3_CPUID_FILES; i++)
		if (READ_ONCE(c->files[i].key) == key)
			return &c->files[i];
	return NULL;
}

/* Marks the entry as being written, if its key is still `key'. */
static bool file_begin(struct ring3_cpuid_file *f, u64 key)
{
	return key != BUSY && __atomic_compare_exchange_n(&f->key, &key, BUSY, false,
							  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void file_end(struct ring3_cpuid_file *f, u64 key)
{
	__atomic_store_n(&f->key, key, __ATOMIC_RELEASE);
}

/* An entry for another file; NULL: other threads were faster. */
static struct ring3_cpuid_file *file_new(struct ring3_cpuid *c, u64 key)
{
	struct ring3_cpuid_file *f = file_of(c, 0);

	if (!f)
		f = &c->files[key % RING3_CPUID_FILES];
	return file_begin(f, READ_ONCE(f->key)) ? f : NULL;
}

/* Fills in the file's sites; false: they are not known. */
static bool read_file(struct ring3_cpuid_file *f, u64 key)
{
	u32 i, n = READ_ONCE(f->sites);

	if (n > RING3_CPUID_SITES)
		return false;
	for (i = 0; i < n; i++)
		text_site[i] = READ_ONCE(f->site[i]);
	text_sites = n;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return READ_ONCE(f->key) == key;
}

/* Will cpuid_start() write into this file's text? */
bool cpuid_knows(u64 key)
{
	struct ring3_cpuid *c = memory();

	text_file = c ? file_of(c, key) : NULL;
	text_key = key;
	if (text_file && !read_file(text_file, key))
		text_sites = 0;
	return text_sites;
}

/* ---- finding ---- */

/* Is this a site that has `between' in it? Then fills in what it asks for. */
static bool is_site(const u8 *at, enum between between, struct cpuid_data *data)
{
	const u8 *next = at + MOV_BYTES, *insn = next + betweens[between].len;

	if (at[0] != 0xb8 || memcmp(insn, cpuid_insn, sizeof(cpuid_insn)) ||
	    memcmp(next, betweens[between].code, between == BETWEEN_MOV ? 1 : betweens[between].len))
		return false;
	memcpy(&data->leaf, at + 1, sizeof(data->leaf));
	data->subleaf = 0;
	if (between == BETWEEN_MOV)
		memcpy(&data->subleaf, next + 1, sizeof(data->subleaf));
	else if (between >= BETWEEN_ESI && data->leaf == 0xd)
		data->subleaf = 1;	/* a guess */
	data->minus_subleaf = -data->subleaf;
	data->between = between;
	data->insn = (u64)insn;
	data->back = data->insn + sizeof(cpuid_insn);
	return answerable(data->leaf, between);
}

static bool find_site(const u8 *at, struct cpuid_data *data)
{
	u32 between;

	for (between = BETWEEN_NONE; between <= BETWEEN_MOV; between++)
		if (is_site(at, between, data))
			return true;
	return false;
}

static bool has_byte(u64 word, u8 byte)
{
	const u64 ones = 0x0101010101010101UL;

	word ^= ones * byte;
	return (word - ones) & ~word & ones << 7;
}

/*
 * Could the bytes from `at' on be constants of one instruction? Seven in a row occur in two kinds: movabs has eight, and
 * other opcodes have an immediate of four bytes behind a displacement of four. The opcode is at most four bytes before.
 */
static bool may_be_constants(const u8 *at)
{
	int i;

	for (i = 1; i <= 4; i++) {
		u8 opcode = at[-i];

		if (((opcode & 0xf8) == 0xb8 && (at[-i - 1] & 0xf8) == 0x48) ||		/* movabs, behind REX.W */
		    opcode == 0x69 || opcode == 0x81 || opcode == 0xc7 || opcode == 0xf7)
			return true;
	}
	return false;
}

/* Adds the sites whose cpuid is at text + at. A REX prefix before the mov makes it another one. */
static void look_before(const u8 *text, u64 at)
{
	struct cpuid_data data;
	u32 between;

	for (between = BETWEEN_NONE; between <= BETWEEN_MOV; between++) {
		u64 start = at - MOV_BYTES - betweens[between].len;

		if (text_sites < RING3_CPUID_SITES && is_site(text + start, between, &data) &&
		    (text[start - 1] & 0xf0) != 0x40 && !may_be_constants(text + start))
			text_site[text_sites++] = start;
	}
}

static void find_sites(const u8 *text, u64 size)
{
	u64 at, word, i;

	for (at = 2 * sizeof(word); at + sizeof(word) <= size; at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		if (!has_byte(word, cpuid_insn[1]))
			continue;
		for (i = at; i < at + sizeof(word); i++)
			if (text[i] == cpuid_insn[1] && text[i - 1] == cpuid_insn[0])
				look_before(text, i - 1);
	}
}

/* A file of which the node knows nothing yet, or only that it has been started once. */
static void look_at(struct ring3_cpuid *c, const u8 *text, u64 size)
{
	bool look = text_file || size <= TEXT_AT_ONCE;

	if (size > TEXT_MAX)
		return;
	if (look)
		find_sites(text, size);
	if (!text_file)
		text_file = file_new(c, text_key);
	else if (!file_begin(text_file, text_key))
		text_file = NULL;
	if (!text_file)
		return;
	memcpy(text_file->site, text_site, text_sites * sizeof(text_site[0]));
	text_file->sites = look ? text_sites : NOT_LOOKED;
	file_end(text_file, text_key);
}

/* ---- rewriting ---- */

static u64 site_of(const struct cpuid_data *data)
{
	return data->insn - betweens[data->between].len - MOV_BYTES;
}

static void protect_text(u64 prot)
{
	u64 start = page_start(text_start), end = page_align(text_start + text_bytes);

	host_syscall3(__NR_mprotect, start, end - start, prot);
}

/* Runs before the first instruction of the program: there are no other threads. */
static void write_sites(struct ring3_cpuid *c)
{
	u32 i;

	for (i = 0; i < text_sites && stubs < RING3_CPUID_SITES; i++) {
		struct cpuid_data *data = &cpuid_data[stubs];
		u8 *at = (u8 *)text_start + text_site[i];
		u64 stub;

		if (text_site[i] + SITE_MAX > text_bytes)
			continue;
		/* Write before the first read: a write copies the page at once, a read would cost another fault. */
		asm volatile("lock orb $0, %0" : "+m"(*at) : : "memory");
		if (!find_site(at, data))
			continue;
		answer(c, data->leaf, data->subleaf, data->regs);
		stub = (u64)cpuid_stubs + stubs * CPUID_STUB_BYTES +
		       cpuid_layout[data->between == BETWEEN_MOV ? BETWEEN_NONE : data->between];
		if (!patch_cpuid((u64)at, stub))
			break;
		stubs++;
	}
}

void cpuid_start(const struct program_text *text)
{
	struct ring3_cpuid *c = memory();

	if (!c || !text->key || text->key != text_key)
		return;
	text_start = text->start;
	text_bytes = text->end - text->start;
	if (!text_file || READ_ONCE(text_file->sites) == NOT_LOOKED)
		look_at(c, (const u8 *)text_start, text_bytes);
	if (!text_sites)
		return;
	if (!text->open)
		protect_text(PROT_READ | PROT_WRITE | PROT_EXEC);
	write_sites(c);
	if (!text->open)
		protect_text(PROT_READ | PROT_EXEC);
}

/* The program has asked for faulting `cpuid' instructions: restores the original ones. */
void cpuid_stop(void)
{
	u32 i;

	if (!stubs)
		return;
	protect_text(PROT_READ | PROT_WRITE | PROT_EXEC);
	for (i = 0; i < stubs; i++) {
		const struct cpuid_data *data = &cpuid_data[i];
		u8 code[SITE_MAX] = { 0xb8 };

		memcpy(code + 1, &data->leaf, sizeof(data->leaf));
		memcpy(code + MOV_BYTES, betweens[data->between].code, sizeof(betweens[0].code));
		memcpy(code + MOV_BYTES + 1, &data->subleaf, data->between == BETWEEN_MOV ? sizeof(data->subleaf) : 0);
		if (data->between == BETWEEN_NONE)
			memcpy(code + MOV_BYTES, cpuid_insn, sizeof(cpuid_insn));
		patch_cpuid_undo(site_of(data), code);
	}
	protect_text(PROT_READ | PROT_EXEC);
	WRITE_ONCE(stopped, true);
}

/* ---- faults and contexts ---- */

/*
 * The program has jumped behind the mov of `site`: emulates the instruction that was there. False: the instruction
 * is still there and has faulted itself.
 */
bool cpuid_at(u64 site, struct sigcontext *sc)
{
	const struct cpuid_data *data;
	u32 i, regs[4];

	if (READ_ONCE(stopped))
		return false;
	for (i = 0; i < stubs - 1 && site_of(&cpuid_data[i]) != site; i++)
		;
	data = &cpuid_data[i];
	switch (data->between) {
	case BETWEEN_NONE:
		told_cpuid(sc->rax, sc->rcx, regs);
		sc->rax = regs[0];
		sc->rbx = regs[1];
		sc->rcx = regs[2];
		sc->rdx = regs[3];
		sc->rip = data->back;
		return true;
	case BETWEEN_XOR:
		sc->rcx = 0;
		sc->eflags = (sc->eflags & ~FLAGS_OF_XOR) | FLAGS_OF_ZERO;
		break;
	case BETWEEN_ESI:
		sc->rcx = (u32)sc->rsi;
		break;
	case BETWEEN_EDI:
		sc->rcx = (u32)sc->rdi;
		break;
	case BETWEEN_EBP:
		sc->rcx = (u32)sc->rbp;
		break;
	case BETWEEN_MOV:
		sc->rcx = data->subleaf;
		break;
	}
	sc->rip = data->insn;
	return true;
}

/* The context is in a stub: moves it to the beginning of the site's instructions. */
void cpuid_leave(struct sigcontext *sc)
{
	if (sc->rip >= (u64)cpuid_stubs && sc->rip < (u64)cpuid_stubs_end)
		sc->rip = site_of(&cpuid_data[(sc->rip - (u64)cpuid_stubs) / CPUID_STUB_BYTES]);
}
