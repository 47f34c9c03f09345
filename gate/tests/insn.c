// SPDX-License-Identifier: GPL-2.0
/*
 * insn.c - ../insn.c against objdump, and against random bytes
 *
 * usage:
 *   objdump -d -w -z FILE | insn [-l] [-n LINES] NAME	-l: don't find cpuid
 *   insn generate >FILE
 *   insn fuzz
 *   insn known
 *
 * The bytes are taken from objdump's output too, so its sections are ours. Where
 * objdump shows other units than the processor has, this counts as the processor does:
 *
 *   - "(bad)" and .byte: not compared. objdump goes on one byte later or so, and may say of the
 *     prefixes before it what it likes.
 *   - prefixes on a line of their own (rex.W that another prefix follows, and so is ignored):
 *     they belong to the next line's instruction.
 *   - 9b, fwait, is shown as part of an x87 instruction that follows (fstcw for fwait; fnstcw).
 *
 * Lines "ok insn NAME: ..." and "FAIL insn NAME: ..." say how it went.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint8_t u8;
#include "../entry/insn.h"

#define SHOWN		20	/* differences printed for a file */
#define MIDDLES		20000	/* offsets inside instructions that are looked at in a file */
#define NEAR		512	/* objdump has seen data so many bytes before */
#define GENERATED	50000
#define FUZZ		1000000

enum kind { INSIDE, START, PREFIX, BAD };	/* of a byte: what the line is that begins there */

static const char *name;
static bool only_lengths;
static unsigned long compared, differ, undefined;
static unsigned long cpuids, missed_near, found, inside, wrong, wrong_near, starts, starts_found;

static struct {
	u8 *text, *kind, *cpuid;
	unsigned long size, room, addr;
} sec;

static uint64_t state = 88172645463325252ULL;

static uint64_t roll(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void show(const char *what, unsigned long at, unsigned int want, unsigned int got)
{
	printf("%s: %lx: %s, %u for %u:", name, sec.addr + at, what, got, want);
	for (unsigned long i = at; i < at + 15 && i < sec.size; i++)
		printf(" %02x", sec.text[i]);
	printf("\n");
}

static bool prefix(u8 byte)
{
	return (byte & 0xf0) == 0x40 || (byte & 0xe7) == 0x26 || (byte & 0xfc) == 0x64 ||
	       byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
}

/* Undefined by all manuals, while objdump takes no notice of the prefix. */
static bool vector_with_prefix(unsigned long at)
{
	u8 simd = 0, byte;

	for (; at < sec.size && prefix(byte = sec.text[at]); at++)
		simd |= (byte & 0xf0) == 0x40 || byte == 0x66 || byte >= 0xf0;
	byte = at < sec.size ? sec.text[at] : 0;
	return simd && (byte == 0x62 || byte == 0x8f || (byte & 0xfe) == 0xc4);
}

static void compare(unsigned long at, unsigned int want)
{
	const u8 *code = sec.text + at;
	unsigned int got = gate_insn_length(code, sec.size - at);

	if (!got && vector_with_prefix(at)) {
		undefined++;
		return;
	}
	compared++;
	if (got == want && (gate_insn_length(code, want) != want ||
			    gate_insn_length(code, want - 1) != 0))
		got = 99;	/* more or less than it needs */
	if (got != want && differ++ < SHOWN)
		show("length", at, want, got);
}

static void lengths(void)
{
	unsigned long at = 0, begin, end;

	while (at < sec.size) {
		for (begin = at; at < sec.size && sec.kind[at] == PREFIX; )
			for (at++; at < sec.size && sec.kind[at] == INSIDE; at++)
				;
		if (at == sec.size)
			return;
		for (end = at + 1; end < sec.size && sec.kind[end] == INSIDE; end++)
			;
		if (sec.kind[at] == START && end - begin <= INSN_BYTES_MAX) {
			for (; at + 1 < end; at++) {
				if (sec.text[at] == 0x9b) {
					compare(begin, at + 1 - begin);
					begin = at + 1;
					sec.kind[begin] = START;
				} else if (!prefix(sec.text[at])) {
					break;
				}
			}
			compare(begin, end - begin);
		}
		at = end;
	}
}

/* Where objdump has just seen data it may have lost the boundaries, and so may we. */
static bool near_data(unsigned long at)
{
	for (unsigned long i = 0; i < NEAR && i <= at; i++)
		if (sec.kind[at - i] == BAD)
			return true;
	return false;
}

/* Some linkers pad with zeros, which objdump shows as instructions. */
static bool near_padding(unsigned long at)
{
	static const u8 zeros[8];

	for (unsigned long i = sizeof(zeros); i < NEAR && i <= at; i++)
		if (!memcmp(sec.text + at - i, zeros, sizeof(zeros)))
			return true;
	return false;
}

static void not_here(unsigned long at)
{
	inside++;
	if (!gate_insn_find(sec.text, sec.size, at))
		return;
	if (near_data(at))
		wrong_near++;
	else if (wrong++ < SHOWN)
		show("inside, but found", at, 0, 1);
}

static void finds(void)
{
	unsigned long rolls = sec.size < 65536 ? sec.size / 16 : MIDDLES;

	for (unsigned long at = 0; at + 1 < sec.size; at++) {
		if (sec.cpuid[at]) {
			if (gate_insn_find(sec.text, sec.size, at))
				found++;
			else if (near_data(at) || near_padding(at))
				missed_near++;
			else
				show("cpuid not found", at, 1, 0);
			cpuids++;
		} else if (sec.kind[at] == INSIDE && !memcmp(sec.text + at, "\x0f\xa2", 2)) {
			not_here(at);
		}
	}
	for (unsigned long tries = 16 * rolls; rolls && tries; tries--) {
		unsigned long at = roll() % sec.size;

		if (sec.kind[at] == START) {
			starts++;
			starts_found += gate_insn_find(sec.text, sec.size, at);
		} else if (sec.kind[at] == INSIDE) {
			not_here(at);
			rolls--;
		}
	}
}

static void section_end(void)
{
	if (!sec.size)
		return;
	lengths();
	if (!only_lengths)
		finds();
	sec.size = 0;
}

static bool prefixes_only(const char *text)
{
	static const char *const names[] = {
		"rex", "data16", "addr32", "lock", "rep", "cs", "ds", "es", "ss", "fs", "gs", "bnd",
		"notrack", "xacquire", "xrelease",
	};
	char word[32];
	int n;

	while (sscanf(text, " %31s%n", word, &n) == 1) {
		bool known = false;

		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			known |= !strncmp(word, names[i], strlen(names[i])) &&
				 (strchr(".nz", word[strlen(names[i])]));
		if (!known)
			return false;
		text += n;
	}
	return true;
}

/*
 * objdump forgets prefixes that it shows on a line of their own. A REX is nothing then; others
 * still hold for the processor. A fwait may be shown as such a line, too.
 */
static u8 prefix_kind(unsigned long at)
{
	for (unsigned long i = at; i < sec.size; i++)
		if ((sec.text[i] & 0xf0) != 0x40)
			return BAD;
	return PREFIX;
}

static void line(char *l)
{
	char *bytes = strchr(l, '\t'), *text = bytes ? strchr(bytes + 1, '\t') : NULL, *end;
	unsigned long addr = strtoul(l, &end, 16), at;

	if (!bytes || *end != ':')
		return;
	if (text)
		*text++ = 0;
	if (addr != sec.addr + sec.size) {
		section_end();
		sec.addr = addr;
	}
	at = sec.size;
	for (bytes++; *bytes; bytes = end) {
		unsigned long byte = strtoul(bytes, &end, 16);

		if (end == bytes)
			break;
		if (sec.size == sec.room) {
			sec.room = sec.room ? 2 * sec.room : 1 << 20;
			sec.text = realloc(sec.text, sec.room);
			sec.kind = realloc(sec.kind, sec.room);
			sec.cpuid = realloc(sec.cpuid, sec.room);
			if (!sec.text || !sec.kind || !sec.cpuid)
				exit(1);
		}
		sec.cpuid[sec.size] = 0;
		sec.kind[sec.size] = INSIDE;
		sec.text[sec.size++] = byte;
	}
	sec.kind[at] = !text || strstr(text, "(bad)") || strstr(text, ".byte") ? BAD :
		       prefixes_only(text) ? prefix_kind(at) : START;
	sec.cpuid[at] = text && !strncmp(text, "cpuid", 5);
}

static int result(const char *what, bool bad)
{
	printf("%s insn %s: %s\n", bad ? "FAIL" : "ok", name, what);
	return bad;
}

static int files(unsigned long limit)
{
	static char l[4096];
	char what[256];
	int bad;

	while (limit-- && fgets(l, sizeof(l), stdin))
		line(l);
	section_end();
	snprintf(what, sizeof(what), "%lu lengths, %lu differ; %lu undefined", compared, differ,
		 undefined);
	bad = result(what, differ || !compared);
	if (only_lengths)
		return bad;
	snprintf(what, sizeof(what),
		 "found %lu of %lu cpuid (%lu not, near data), %.1f%% of %lu instructions; "
		 "%lu of %lu that are none (%lu near data)", found, cpuids, missed_near,
		 starts ? 100.0 * starts_found / starts : 0, starts, wrong, inside, wrong_near);
	return result(what, found + missed_near < cpuids || wrong) | bad;
}

/* What no compiler makes, or 64-bit mode does not have, by the manual. */
static int known(void)
{
	static const struct {
		u8 want;
		const char *code;
	} cases[] = {
		{ 1, "90" }, { 2, "0f a2" }, { 3, "48 0f a2" }, { 2, "0f 05" },
		{ 3, "f3 48 90" }, { 4, "48 66 01 c0" }, { 3, "66 01 c0" },
		{ 5, "48 66 b8 01 02" }, { 4, "66 b8 01 02" }, { 5, "b8 01 02 03 04" },
		{ 10, "48 b8 01 02 03 04 05 06 07 08" },
		{ 11, "66 48 b8 01 02 03 04 05 06 07 08" }, { 7, "66 48 05 01 02 03 04" },
		{ 4, "66 05 01 02" }, { 2, "b0 01" }, { 9, "a1 01 02 03 04 05 06 07 08" },
		{ 6, "67 a3 01 02 03 04" }, { 10, "48 a0 01 02 03 04 05 06 07 08" },
		{ 3, "f6 c0 01" }, { 3, "f6 c8 01" }, { 2, "f6 d0" }, { 6, "f7 c0 01 02 03 04" },
		{ 6, "f7 c9 01 02 03 04" }, { 2, "f7 d0" }, { 5, "66 f7 c0 01 02" },
		{ 4, "c8 01 02 03" }, { 5, "66 c8 01 02 03" }, { 3, "c2 01 02" },
		{ 5, "e8 01 02 03 04" }, { 7, "66 48 e8 01 02 03 04" },
		{ 6, "0f 84 01 02 03 04" }, { 3, "c6 f8 01" }, { 6, "c7 f8 01 02 03 04" },
		{ 0, "c6 c8 01" }, { 0, "c7 d0 01 02 03 04" }, { 2, "8f c0" }, { 2, "8f 00" },
		{ 0, "8f 20 00 00 00 00 00 00" }, { 0, "8f eb 78 12 c0" },
		{ 6, "8f e8 78 c0 c0 01" }, { 5, "8f e9 78 c0 c0" },
		{ 9, "8f ea 78 10 c0 01 02 03 04" }, { 4, "0f 0f c1 bf" },
		{ 8, "0f 0f 05 01 02 03 04 bf" }, { 3, "0f 20 04" }, { 4, "66 0f 79 c0" },
		{ 6, "66 0f 78 c0 01 02" }, { 6, "f2 0f 78 c0 01 02" }, { 3, "0f 78 c0" },
		{ 3, "c5 f8 77" }, { 5, "c5 f1 c6 c0 01" }, { 4, "c5 f8 57 c0" },
		{ 5, "c4 e2 79 18 00" }, { 6, "c4 e3 79 0f c0 01" }, { 0, "66 c5 f8 57 c0" },
		{ 0, "48 c5 f8 57 c0" }, { 0, "c4 e0 79 0f c0" }, { 6, "62 f1 7c 48 28 c0" },
		{ 7, "62 f1 7c 48 28 40 01" }, { 7, "62 f3 7d 48 03 c0 01" },
		{ 6, "62 f5 7c 48 58 c0" }, { 6, "62 f1 7d 48 7b c0" },
		{ 0, "62 f1 78 48 28 c0" }, { 0, "62 f8 7c 48 28 c0" },
		{ 0, "62 f4 7c 48 28 c0" }, { 6, "66 0f 3a 0f c1 01" }, { 5, "66 0f 38 00 c1" },
		{ 0, "0f 38 ff c0" }, { 0, "0f 3a 00 c0 01" }, { 7, "8b 04 25 01 02 03 04" },
		{ 6, "8b 05 01 02 03 04" }, { 3, "8b 45 01" }, { 4, "8b 44 24 01" },
		{ 7, "8b 84 24 01 02 03 04" }, { 3, "8b 04 24" }, { 2, "8b 00" },
		{ 3, "67 8b 00" }, { 4, "8b 44 25 01" }, { 7, "67 8b 05 01 02 03 04" },
		{ 15, "66 66 66 66 66 66 66 66 66 66 66 66 66 01 c0" },
		{ 0, "66 66 66 66 66 66 66 66 66 66 66 66 66 66 01 c0" },
		{ 0, "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66" }, { 0, "06" }, { 0, "07" },
		{ 0, "0e" }, { 0, "16" }, { 0, "17" }, { 0, "1e" }, { 0, "1f" }, { 0, "27" },
		{ 0, "2f" }, { 0, "37" }, { 0, "3f" }, { 0, "60" }, { 0, "61" }, { 0, "62 00" },
		{ 0, "82 c0 01" }, { 0, "9a 01 02 03 04 05 06" }, { 0, "c4 00" }, { 0, "c5 00" },
		{ 0, "ce" }, { 0, "d4 0a" }, { 0, "d5 0a" }, { 0, "d6" },
		{ 0, "ea 01 02 03 04 05 06" }, { 0, "fe d0" }, { 2, "fe c8" }, { 0, "ff f8" },
		{ 2, "ff f0" }, { 0, "0f 04" }, { 0, "" },
	};
	char what[64];
	unsigned int n = sizeof(cases) / sizeof(*cases);
	u8 nops[4096];

	name = "known";
	for (unsigned int i = 0; i < n; i++) {
		u8 code[16];
		const char *text = cases[i].code;
		char *end;

		for (sec.size = 0; *text; text = end)
			code[sec.size++] = strtoul(text, &end, 16);
		sec.text = code;
		if (cases[i].want)
			compare(0, cases[i].want);
		else if (gate_insn_length(code, sec.size) && differ++ < SHOWN)
			show("length", 0, 0, gate_insn_length(code, sec.size));
	}
	memset(nops, 0x90, sizeof(nops));
	for (unsigned long at = 0; at < sizeof(nops) + 2; at++)
		if (gate_insn_find(nops, sizeof(nops), at) != (at >= 192 && at < sizeof(nops))) {
			printf("find: %lu of %zu nops\n", at, sizeof(nops));
			differ++;
		}
	/* Chains of 2 bytes that never meet: half get there */
	memset(nops, 0x01, sizeof(nops));
	for (unsigned long at = 0; at < sizeof(nops); at++)
		if (gate_insn_find(nops, sizeof(nops), at)) {
			printf("find: %lu of add %%eax,(%%rcx)\n", at);
			differ++;
		}
	/* The last of the zeros and the 31 would be an instruction, and the ed one more */
	memset(nops, 0x90, sizeof(nops));
	memcpy(nops + 1000, "\0\0\0\0\0\0\0\x31\xed", 9);
	if (gate_insn_find(nops, sizeof(nops), 1008)) {
		printf("find: behind padding\n");
		differ++;
	}
	snprintf(what, sizeof(what), "%u instructions, %lu differ", n, differ);
	return result(what, differ);
}

/* Instructions of all maps, prefixes and operands, most of which no compiler makes. */
static int generate(void)
{
	static const u8 prefixes[] = {
		0x66, 0x67, 0xf2, 0xf3, 0x66, 0x67, 0xf2, 0xf3,
		0xf0, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65,
	};
	u8 slot[32];

	for (int i = 0; i < GENERATED; i++) {
		unsigned int n = 0, prefix = roll() % 4, kind = roll() % 16;

		while (prefix-- > 1)
			slot[n++] = prefixes[roll() % sizeof(prefixes)];
		if (kind < 8 && roll() % 2)
			slot[n++] = 0x40 | roll() % 16;
		for (unsigned int j = n; j < n + 13; j++)
			slot[j] = roll();
		switch (kind) {
		case 0: case 1: case 2:
			break;
		case 3: case 4: case 5:
			slot[n] = 0x0f;
			break;
		case 6: case 7:
			slot[n] = 0x0f;
			slot[n + 1] = kind == 6 ? 0x38 : 0x3a;
			break;
		case 8: case 9:
			slot[n] = 0xc5;
			break;
		case 10: case 11: case 12:
			slot[n] = 0xc4;
			slot[n + 1] = (slot[n + 1] & 0xe0) | (1 + roll() % 3);
			break;
		case 13: case 14:
			slot[n] = 0x62;
			slot[n + 1] = (slot[n + 1] & 0xf0) | (1 + roll() % 6);
			slot[n + 2] |= 4;
			break;
		case 15:
			slot[n] = 0x8f;
			slot[n + 1] = (slot[n + 1] & 0xe0) | (8 + roll() % 3);
		}
		memset(slot + n + 13, 0x90, sizeof(slot) - n - 13);
		fwrite(slot, sizeof(slot), 1, stdout);
	}
	return fflush(stdout) != 0;
}

static int fuzz(void)
{
	unsigned long page = sysconf(_SC_PAGESIZE), taken = 0;
	u8 *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u8 *end = map + page;
	bool bad = false;
	char what[64];

	if (map == MAP_FAILED || mprotect(end, page, PROT_NONE))
		return 1;
	for (int i = 0; i < FUZZ; i++) {
		unsigned int avail = roll() % 16, got;
		uint64_t random[2] = { roll(), roll() };

		memcpy(end - avail, random, avail);
		got = gate_insn_length(end - avail, avail);
		bad |= got > avail;
		taken += got != 0;
	}
	name = "fuzz";
	snprintf(what, sizeof(what), "%d strings, %lu of them instructions", FUZZ, taken);
	return result(what, bad);
}

int main(int argc, char **argv)
{
	unsigned long limit = -1UL;
	int opt;

	while ((opt = getopt(argc, argv, "ln:")) != -1) {
		if (opt == 'n')
			limit = strtoul(optarg, NULL, 0);
		else if (opt == 'l')
			only_lengths = true;
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	name = argv[optind];
	if (!strcmp(name, "fuzz"))
		return fuzz();
	if (!strcmp(name, "known"))
		return known();
	if (!strcmp(name, "generate"))
		return generate();
	return files(limit);
}
