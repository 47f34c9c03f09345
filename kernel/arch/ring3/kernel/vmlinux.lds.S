/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Layout of the region, as in the file: head, text (mapped R-X), data. Linked at 0; head.c relocates it once to the
 * address of its slot.
 */
#include <generated/asm-offsets.h>
#include <ring3/ring3_asm.h>
#include <asm/page.h>
#include <asm/cache.h>
#include <asm/thread_info.h>

#define LOAD_OFFSET		0
#define HUGE_PAGE		0x200000
#undef EMITS_PT_NOTE
#define RO_EXCEPTION_TABLE_ALIGN 16

#include <asm-generic/vmlinux.lds.h>

OUTPUT_FORMAT("elf64-x86-64")
OUTPUT_ARCH(i386:x86-64)
ENTRY(ring3_boot)
jiffies = jiffies_64;

PHDRS
{
	head PT_LOAD FLAGS(6);
	text PT_LOAD FLAGS(5);
	data PT_LOAD FLAGS(6);
}

SECTIONS
{
	. = 0;
	.ring3_region : {
		ring3_region = .;
#ifndef CONFIG_SMP
		/* asm/irqwords.h */
		ring3_pending = ring3_region + REGION_PENDING;
		ring3_irq_enabled = ring3_region + REGION_VCPU + VCPU_IRQ_ENABLED;
		ring3_driving = ring3_region + REGION_VCPU + VCPU_DRIVER;
#endif
		QUAD(RING3_MAGIC)
		LONG(RING3_ABI)
#ifdef CONFIG_SMP
		LONG(RING3_FLAVOUR_SMP)
#else
#ifdef CONFIG_RING3_SIM
		LONG(RING3_FLAVOUR_SIM)
#else
		LONG(RING3_FLAVOUR_UP)
#endif
#endif
		QUAD(_end - ring3_region)
		QUAD(_stext - ring3_region)
		QUAD(__text_end - ring3_region)
		QUAD(ring3_boot - ring3_region)
		QUAD(ring3_enter - ring3_region)
		QUAD(ring3_fixup - ring3_region)
		*(.ring3_version)
		. = SIZEOF_REGION;
	} :head
	. = ALIGN(PAGE_SIZE);
	__head_end = .;

	/* Whole huge pages: see make_huge() in ring3/node/src/load.rs. The memory in the gap is used by the node. */
	. = ALIGN(HUGE_PAGE);
	_text = .;
	_stext = .;
	.text : {
		/* The code of each call and of each program start is kept together: each huge page costs a fault. */
		SCHED_TEXT
		LOCK_TEXT
		*lib.a:(.text .text.*)
		*drivers/char/random.o(.text .text.*)
		TEXT_TEXT
		KPROBES_TEXT
		IRQENTRY_TEXT
		SOFTIRQENTRY_TEXT
		*(.text.fixup)
		*(.fixup)
	} :text
	/* Not freed: these pages are mapped R-X, so their next user could not write to them. */
	.init.text : {
		_sinittext = .;
		INIT_TEXT
		_einittext = .;
	}
	.exit.text : { EXIT_TEXT }
	_etext = .;
	/*
	 * The last huge page of the text has room for data that is only read at boot, and for strings without
	 * relocations. So the rest of the data fits into one huge page.
	 */
	.rela.dyn : {
		__rela_start = .;
		*(.rela .rela*)
		__rela_end = .;
	}
	.rostr : { *(.rodata.str1.8) }
	. = ALIGN(HUGE_PAGE);
	__text_end = .;

	_sdata = .;
	/* Names the segment of all the following sections. */
	.data_head : { QUAD(0) } :data
	RO_DATA(PAGE_SIZE)
	.dynamic : { *(.dynamic) }
	.dynsym : { *(.dynsym) }
	.dynstr : { *(.dynstr) }
	.hash : { *(.hash) *(.gnu.hash) }
	.got : { *(.got) *(.got.plt) *(.igot*) }
	.eh_frame : { *(.eh_frame) *(.eh_frame_hdr) }

	RW_DATA(L1_CACHE_BYTES, PAGE_SIZE, THREAD_SIZE)
	.data.rel : { *(.data.rel*) }
	_edata = .;

	. = ALIGN(PAGE_SIZE);
	__init_begin = .;
	INIT_DATA_SECTION(16)
	.exit.data : { EXIT_DATA }
	PERCPU_SECTION(L1_CACHE_BYTES)
	. = ALIGN(PAGE_SIZE);
	__init_end = .;

	BSS_SECTION(PAGE_SIZE, PAGE_SIZE, PAGE_SIZE)
	. = ALIGN(PAGE_SIZE);
	_end = .;

	STABS_DEBUG
	DWARF_DEBUG
	ELF_DETAILS
	DISCARDS
}
