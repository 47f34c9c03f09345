// SPDX-License-Identifier: GPL-2.0
/*
 * jump_label.c - patch branches through the writable alias of the text
 *
 * With one vCPU no other thread executes kernel code meanwhile. A thread that takes the vCPU later has executed a
 * locked instruction, and its CPU snoops stores to cached code. The patching CPU itself may have prefetched the old
 * text, since it writes by another address: it serializes.
 */
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/ring3.h>

/*
 * User mode has few serializing instructions. Under a hypervisor `cpuid` takes microseconds; an `iretq` to the next
 * instruction does not.
 */
static void serialize(void)
{
	unsigned long at, segment;

	asm volatile("mov %%rsp, %0\n\t"
		     "mov %%ss, %k1\n\t"
		     "push %q1\n\t"
		     "push %0\n\t"
		     "pushf\n\t"
		     "mov %%cs, %k1\n\t"
		     "push %q1\n\t"
		     "lea 1f(%%rip), %0\n\t"
		     "push %0\n\t"
		     "iretq\n"
		     "1:"
		     : "=&r" (at), "=&r" (segment) : : "cc", "memory");
}

void arch_jump_label_transform(struct jump_entry *entry, enum jump_label_type type)
{
	u8 *site = (u8 *)(jump_entry_code(entry) + RING3_ALIAS_OFFSET);
	u8 code[JUMP_LABEL_NOP_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	unsigned int i;
	s32 rel;

	if (type == JUMP_LABEL_JMP) {
		rel = jump_entry_target(entry) - (jump_entry_code(entry) + JUMP_LABEL_NOP_SIZE);
		code[0] = 0xe9;
		memcpy(code + 1, &rel, sizeof(rel));
	}
	for (i = 0; i < sizeof(code); i++)
		WRITE_ONCE(site[i], code[i]);
	serialize();
}
