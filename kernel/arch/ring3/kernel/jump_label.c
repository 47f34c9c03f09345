// SPDX-License-Identifier: GPL-2.0
/*
 * jump_label.c - patch branches through the writable alias of the text
 *
 * One vCPU: nobody else executes kernel code meanwhile. A thread that takes
 * the vCPU over later came through a locked instruction, and its CPU snoops
 * stores to cached code; the patching thread itself serializes.
 */
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/ring3.h>

void arch_jump_label_transform(struct jump_entry *entry, enum jump_label_type type)
{
	u8 *site = (u8 *)(jump_entry_code(entry) + RING3_ALIAS_OFFSET);
	u8 code[JUMP_LABEL_NOP_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	s32 rel;

	if (type == JUMP_LABEL_JMP) {
		rel = jump_entry_target(entry) - (jump_entry_code(entry) + JUMP_LABEL_NOP_SIZE);
		code[0] = 0xe9;
		memcpy(code + 1, &rel, sizeof(rel));
	}
	memcpy(site, code, sizeof(code));
	/* A locked operation drains the store before anything else is fetched from there. */
	asm volatile("lock addl $0, -4(%%rsp)" : : : "memory");
}
