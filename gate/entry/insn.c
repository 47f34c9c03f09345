// SPDX-License-Identifier: GPL-2.0
/*
 * insn.c - where instructions begin and end (x86-64, 64-bit mode)
 *
 * Theory of operation
 * -------------------
 * An instruction is: legacy prefixes; REX, VEX, EVEX or XOP; an opcode in a map; ModRM, SIB and a displacement; an
 * immediate. Its length follows from the class of the opcode, from ModRM and from a few of the prefixes. The maps
 * below give the class as one character:
 *
 *   66		immediates of 4 bytes have 2, unless there is REX.W
 *   67		addresses in the opcode (a0-a3) have 4 bytes in place of 8. Nothing else: those
 *		by ModRM are as long with 32 bits as with 64
 *   REX.W	the immediate of b8-bf has 8 bytes
 *
 * A REX that another prefix follows is ignored by the processor, and here. VEX, EVEX and XOP
 * name the map and stand for 0f, 66, f2, f3 and REX, which must not be there as well.
 *
 * An opcode that no manual defines has length 0, as far as opcode and map can tell. So an instruction newer than
 * these tables is "none", never one of a wrong length. Operands are hardly checked. For jumps with 66 and without
 * REX.W, Intel takes 4 bytes of offset and AMD 2. Compilers make no such jumps; this file follows AMD, as objdump
 * does.
 *
 * Finding boundaries (gate_insn_find): one cannot decode backwards, but decoding synchronises itself. Two chains of
 * instructions that share one boundary are equal from there on, and chains that begin at neighbouring bytes mostly
 * meet after a few instructions. So every byte of a stretch well before the place is taken as the beginning of a
 * chain. If every chain that reaches the place without an undefined instruction has a boundary there, the place is
 * a boundary. A chain can also end at an undefined instruction before it meets others. If fewer than half of the
 * chains are left, or if they disagree, the next stretch farther away is tried.
 *
 * How reliable that is: no instruction is longer than the stretch, so in a text that holds only defined
 * instructions some of the beginnings are true boundaries. The chain of such a beginning stays on true boundaries
 * and reaches the place. If the place were inside an instruction, this chain would jump over it, and the answer
 * would be no. So a wrong yes needs data in the text, in the stretch or behind it, or an instruction that is not in
 * the tables. Either may end the true chain and all chains that have met it, which is why half of them have to be
 * left. Padding with zeros is such data, and it decodes (00 00 is an add); therefore four such instructions end a
 * chain. (Of 499,000 places in random bytes, one got a yes; of as many in letters, 837.) A wrong no is possible
 * (chains that do not meet; data; the first bytes of a text), so callers must treat it as harmless.
 */
#include "host.h"
#include "entry/insn.h"

/*
 * A stretch is the first START_BYTES of CHAIN_BYTES, which end at the place or at the beginning of the stretch
 * before.
 */
#define CHAIN_BYTES	240UL
#define START_BYTES	64UL
#define STRETCHES	8UL
#define STARTS_MIN	16UL	/* at the beginning of a text; no instruction is longer */

/*
 * Classes of opcodes; of those in capitals ModRM comes first.
 *   -	none in 64-bit mode		.  M	nothing more
 *   b  B	1 byte			d  D	4, with 66 2
 *   w	2 bytes				q	as d, with REX.W 8
 *   e	3 bytes (enter)			a	an address
 *   p	a prefix			@	escape: 0f, c4, c5, 62, 8f; REX, 0f 38 and 0f 3a
 *   T  U	with /0 and /1 (test) as B and D, else nothing more
 *   X  Y	as B and D, but only /0 and one of /7 (xabort, xbegin)
 *   I	/0 and /1 only (inc, dec)	J	not /7
 *   S	with 66 and f2 2 bytes (sse4a), else nothing more
 */
static const char one_byte[256] __attribute__((nonstring)) =
	/*  0123456789abcdef */
	"MMMMbd--MMMMbd-@"	/* 0 */
	"MMMMbd--MMMMbd--"
	"MMMMbdp-MMMMbdp-"	/* 2 */
	"MMMMbdp-MMMMbdp-"
	"@@@@@@@@@@@@@@@@"	/* 4: REX */
	"................"
	"--@MppppdDbB...."	/* 6 */
	"bbbbbbbbbbbbbbbb"
	"BD-BMMMMMMMMMMM@"	/* 8 */
	"..........-....."
	"aaaa....bd......"	/* a */
	"bbbbbbbbqqqqqqqq"
	"BBw.@@XYe.w..b-."	/* c */
	"MMMM---.MMMMMMMM"
	"bbbbbbbbdd-b...."	/* e */
	"p.pp..TU......IJ";

/*
 * 0f: the ModRM of 20 to 23 (control registers) never names memory; a 3DNow! instruction (0f 0f) ends in its
 * opcode.
 */
static const char two_byte[256] __attribute__((nonstring)) =
	/*  0123456789abcdef */
	"MMMM-.....-.-M.B"	/* 0 */
	"MMMMMMMMMMMMMMMM"
	"bbbb----MMMMMMMM"	/* 2 */
	"......-.@-@-----"
	"MMMMMMMMMMMMMMMM"	/* 4 */
	"MMMMMMMMMMMMMMMM"
	"MMMMMMMMMMMMMMMM"	/* 6 */
	"BBBBMMM.SM--MMMM"
	"dddddddddddddddd"	/* 8 */
	"MMMMMMMMMMMMMMMM"
	"...MBMMM...MBMMM"	/* a */
	"MMMMMMMMMMBMMMMM"
	"MMBMBBBM........"	/* c */
	"MMMMMMMMMMMMMMMM"
	"MMMMMMMMMMMMMMMM"	/* e */
	"MMMMMMMMMMMMMMMM";

/* Which opcodes exist: by row, one bit for each column. 0f 38: ModRM follows. */
static const u16 three_byte_38[16] = {
	0x0fff, 0x70b1, 0x0f3f, 0xffbf, 0x0003, 0, 0, 0,
	0x0007, 0, 0, 0, 0xbf00, 0xf900, 0, 0x1f63,
};
/* 0f 3a: ModRM and 1 byte follow */
static const u16 three_byte_3a[16] = {
	0xff00, 0x00f0, 0x0007, 0, 0x0017, 0, 0x000f, 0,
	0, 0, 0, 0, 0xd000, 0x8000, 0, 0x0001,
};
/* Map 1 of VEX and EVEX: the vector and mask instructions of 0f. Classes as in two_byte. */
static const u16 vector_0f[16] = {
	0, 0x00ff, 0xff00, 0, 0x0cf6, 0xffff, 0xffff, 0xffff,
	0, 0x030f, 0x4000, 0, 0x0074, 0xffff, 0xffff, 0x7fff,
};

struct insn {
	const u8 *code;
	unsigned int avail;
	unsigned int len;	/* length known so far; more than `avail`: the instruction is cut off */
	bool opsize, addrsize, repne, rex, rex_w;
	bool simd;		/* has a prefix that VEX and its like encode themselves */
};

static bool has(const u16 *rows, u8 opcode)
{
	return rows[opcode >> 4] >> (opcode & 15) & 1;
}

/* The next byte, without consuming it. Zero at the end, where the result is certain already. */
static u8 peek(const struct insn *in)
{
	return in->len < in->avail ? in->code[in->len] : 0;
}

static u8 take(struct insn *in)
{
	u8 byte = peek(in);

	in->len++;
	return byte;
}

/* Consumes all prefixes; returns the opcode after them. */
static u8 take_prefixes(struct insn *in)
{
	for (;;) {
		u8 byte = take(in);
		bool rex = (byte & 0xf0) == 0x40;

		if (!rex && one_byte[byte] != 'p')
			return byte;
		in->rex = rex;
		in->rex_w = rex && (byte & 8);
		in->opsize |= byte == 0x66;
		in->addrsize |= byte == 0x67;
		in->repne |= byte == 0xf2;
		in->simd |= byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
	}
}

/* ModRM, SIB and the displacement. */
static u8 take_modrm(struct insn *in)
{
	u8 modrm = take(in), mod = modrm >> 6, base = modrm & 7;

	if (mod == 3)
		return modrm;
	if (base == 4)
		base = take(in) & 7;	/* SIB */
	if (mod == 1)
		in->len += 1;
	else if (mod == 2 || base == 5)	/* with mod 0: no base, or rip */
		in->len += 4;
	return modrm;
}

/* Consumes VEX, EVEX or XOP after its first byte, up to the opcode; returns the class of the opcode. */
static char take_vector(struct insn *in, u8 first)
{
	u8 map = first == 0xc5 ? 1 : take(in) & 0x1f, fixed = take(in), opcode;
	bool evex = first == 0x62;

	if (in->simd || in->rex)
		return '-';
	if (evex) {
		if ((map & 8) || !(fixed & 4))
			return '-';
		map &= 7;
		take(in);
	}
	opcode = take(in);
	if (first == 0x8f)
		return map == 8 ? 'B' : map == 9 ? 'M' : map == 10 ? 'D' : '-';
	switch (map) {
	case 1:
		if (!has(vector_0f, opcode) || (evex && opcode == 0x77))
			return '-';
		return opcode >= 0x78 && opcode <= 0x7b ? 'M' : two_byte[opcode];
	case 2:
		return 'M';
	case 3:
		return 'B';
	case 5:		/* FP16 */
	case 6:
		return evex ? 'M' : '-';
	}
	return '-';
}

/* The class of `opcode` in the one-byte map; consumes all further bytes of the opcode. */
static char take_opcode(struct insn *in, u8 opcode)
{
	if (one_byte[opcode] != '@')
		return one_byte[opcode];
	if (opcode == 0x8f && !(peek(in) & 0x38))
		return 'M';	/* pop; with a map above 7 it is XOP */
	if (opcode != 0x0f)
		return take_vector(in, opcode);
	opcode = take(in);
	if (opcode == 0x38)
		return has(three_byte_38, take(in)) ? 'M' : '-';
	if (opcode == 0x3a)
		return has(three_byte_3a, take(in)) ? 'B' : '-';
	return two_byte[opcode];
}

/* The number of immediate bytes of a class; -1: not an instruction. */
static int immediate(const struct insn *in, char class, u8 modrm)
{
	int word = in->opsize && !in->rex_w ? 2 : 4, reg = modrm >> 3 & 7;

	switch (class) {
	case '.':
	case 'M':
		return 0;
	case 'b':
	case 'B':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'd':
	case 'D':
		return word;
	case 'q':
		return in->rex_w ? 8 : word;
	case 'a':
		return in->addrsize ? 4 : 8;
	case 'T':
		return reg < 2 ? 1 : 0;
	case 'U':
		return reg < 2 ? word : 0;
	case 'X':
		return reg == 0 || modrm == 0xf8 ? 1 : -1;
	case 'Y':
		return reg == 0 || modrm == 0xf8 ? word : -1;
	case 'I':
		return reg < 2 ? 0 : -1;
	case 'J':
		return reg < 7 ? 0 : -1;
	case 'S':
		return in->opsize || in->repne ? 2 : 0;
	}
	return -1;
}

unsigned int gate_insn_length(const u8 *code, unsigned long avail)
{
	struct insn in = {
		.code = code,
		.avail = avail < INSN_BYTES_MAX ? avail : INSN_BYTES_MAX,
	};
	char class = take_opcode(&in, take_prefixes(&in));
	u8 modrm = class >= 'A' && class <= 'Z' ? take_modrm(&in) : 0;
	int more = immediate(&in, class, modrm);

	if (more < 0 || in.len + more > in.avail)
		return 0;
	return in.len + more;
}

bool gate_insn_find(const u8 *text, unsigned long size, unsigned long at)
{
	/* How the chains ended at the last 16 places: no instruction reaches farther */
	enum { ENDED, OVER, THERE } fate[16] = { THERE }, *f;	/* by distance % 16 */
	unsigned long starts = 0, there = 0, over = 0;

	if (at >= size || !gate_insn_length(text + at, size - at))
		return false;
	for (unsigned long d = 1; d <= STRETCHES * CHAIN_BYTES && d <= at; d++) {
		const u8 *code = text + at - d;
		unsigned int len = gate_insn_length(code, size - at + d);
		bool last = d == at || d % CHAIN_BYTES == 0;

		if (d >= 4 && !(code[0] | code[1] | code[2] | code[3]))
			len = 0;
		f = &fate[d % 16];
		*f = !len ? ENDED : len <= d ? fate[(d - len) % 16] : OVER;
		if ((d - 1) % CHAIN_BYTES < CHAIN_BYTES - START_BYTES) {
			starts = there = over = 0;
			continue;
		}
		starts++;
		there += *f == THERE;
		over += *f == OVER;
		if (last && starts >= STARTS_MIN && !over && 2 * there >= starts)
			return true;
	}
	return false;
}
