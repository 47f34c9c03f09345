// SPDX-License-Identifier: GPL-2.0
/*
 * bpf.c - runs classic BPF as seccomp allows it (kernel/seccomp.c: seccomp_check_filter())
 */
#include "sandbox/bpf.h"

#define DEPENDS_FROM	offsetof(struct seccomp_data, instruction_pointer)

static u32 alu(u32 op, u32 a, u32 b, bool *dead)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		*dead = !b;
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & 31);
	case BPF_RSH:
		return a >> (b & 31);
	default:			/* BPF_NEG */
		return -a;
	}
}

static bool jump_taken(u32 op, u32 a, u32 b)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGE:
		return a >= b;
	case BPF_JGT:
		return a > b;
	default:			/* BPF_JSET */
		return a & b;
	}
}

u32 bpf_run(const struct sock_filter *code, const struct seccomp_data *data, bool *args)
{
	u32 a = 0, x = 0, mem[BPF_MEMWORDS], operand;
	bool dead = false;

	for (;; code++) {
		operand = BPF_SRC(code->code) == BPF_X ? x : code->k;
		switch (BPF_CLASS(code->code)) {
		case BPF_LD:
			if (BPF_MODE(code->code) == BPF_ABS) {
				a = *(const u32 *)((const char *)data + code->k);
				if (code->k >= DEPENDS_FROM)
					*args = true;
			} else if (BPF_MODE(code->code) == BPF_MEM) {
				a = mem[code->k];
			} else {
				a = BPF_MODE(code->code) == BPF_LEN ? sizeof(*data) : code->k;
			}
			break;
		case BPF_LDX:
			if (BPF_MODE(code->code) == BPF_MEM)
				x = mem[code->k];
			else
				x = BPF_MODE(code->code) == BPF_LEN ? sizeof(*data) : code->k;
			break;
		case BPF_ST:
			mem[code->k] = a;
			break;
		case BPF_STX:
			mem[code->k] = x;
			break;
		case BPF_ALU:
			a = alu(BPF_OP(code->code), a, operand, &dead);
			if (dead)
				return SECCOMP_RET_KILL_THREAD;
			break;
		case BPF_JMP:
			if (BPF_OP(code->code) == BPF_JA)
				code += code->k;
			else
				code += jump_taken(BPF_OP(code->code), a, operand) ? code->jt : code->jf;
			break;
		case BPF_MISC:
			if (BPF_MISCOP(code->code) == BPF_TAX)
				x = a;
			else
				a = x;
			break;
		default:		/* BPF_RET */
			return BPF_RVAL(code->code) == BPF_A ? a : code->k;
		}
	}
}
