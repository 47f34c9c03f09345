// SPDX-License-Identifier: GPL-2.0
/* setup.c - the node's memory and command line, as the keeper has set them up */
#include <linux/cpu.h>
#include <linux/init.h>
#include <linux/initrd.h>
#include <linux/kasan.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/of_fdt.h>
#include <linux/pfn.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/ring3.h>
#include <asm/ring3_grow.h>
#include <asm/sections.h>
#include <asm/setup.h>
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

extern char __head_end[];

char __initdata boot_command_line_buf[COMMAND_LINE_SIZE];
unsigned char ring3_zero_page[PAGE_SIZE] __aligned(PAGE_SIZE);
EXPORT_SYMBOL(ring3_zero_page);

void __init ring3_console_init(void);
void __init ring3_poison_init(void);

void __init setup_arch(char **cmdline_p)
{
	unsigned long zones[MAX_NR_ZONES] = { 0 };
	unsigned long pages = ring3_region.size >> PAGE_SHIFT;

	/*
	 * Interfaces that a plain host does not show, either, are off. The hash tables of file names are small,
	 * since the node has few files, and so are DCCP's (2 MiB otherwise). No jitter entropy: its self-test takes
	 * a quarter of the boot, and the host fills the pool. Tasks may use half of the node's memory, where Linux
	 * allows an eighth: the memory of their programs is the host's. The keeper's words come last and override
	 * these.
	 */
	snprintf(boot_command_line, COMMAND_LINE_SIZE, "%s sysctl.kernel.threads-max=%lu %s",
		 "bonding.max_bonds=0 dummy.numdummies=0 ifb.numifbs=0 "
		 "dhash_entries=2048 ihash_entries=2048 dccp.thash_entries=2048 "
		 "initcall_blacklist=jent_mod_init",
		 pages >> (THREAD_SIZE_ORDER + 1), ring3_region.cmdline);
	turn_observed(boot_command_line);
	strscpy(boot_command_line_buf, boot_command_line, COMMAND_LINE_SIZE);
	*cmdline_p = boot_command_line_buf;
	if (strstr(boot_command_line, "ring3_console"))
		ring3_console_init();
	ring3_poison_init();

	ring3_setup_cpus();
	memblock_add(0, ring3_region.size);
	memblock_reserve(0, __pa(__head_end));
	memblock_reserve(__pa(_stext), _end - _stext);
#ifdef CONFIG_KASAN
	memblock_reserve(__pa(KASAN_SHADOW_START), PAGE_ALIGN(KASAN_SHADOW_SIZE));
	kasan_init();
#endif
	min_low_pfn = 0;
	max_low_pfn = max_pfn = pages;
	ring3_grow_reserve();
	high_memory = __va(ring3_region.size);
	zones[ZONE_NORMAL] = pages;
	free_area_init(zones);
	/* A no-op without CONFIG_OF; the kunit flavour's tests need a tree, which may be empty. */
	unflatten_device_tree();

	add_bootloader_randomness(ring3_region.seed, sizeof(ring3_region.seed));
	memzero_explicit(ring3_region.seed, sizeof(ring3_region.seed));
}

void __init mem_init(void)
{
	ring3_grow_account();
}

void free_initmem(void)
{
	/* .init.text is kept: it is mapped R-X. The data is freed. */
	free_reserved_area(__init_begin, __init_end, 0, "init data");
}

/*
 * The OOM killer looks for a task whose death frees memory, and panics if there is none. The node's tasks have no
 * memory (their processes' is the host's). So a failed allocation is an error for its caller only, and other tasks
 * go on.
 */
static int __init no_oom_killer(void)
{
	return oom_killer_disable(1) ? 0 : -EBUSY;
}
late_initcall(no_oom_killer);

static int show_cpuinfo(struct seq_file *m, void *v)
{
	seq_printf(m, "processor\t: %ld\nmodel name\t: ring3 vCPU\n", (long)v - 1);
	/*
	 * The processor that programs see in virtual time: gate/sim/sim_cpu.c. Its cycle counter counts nanoseconds. procps
	 * (ps, vmstat, top) ends where there is no `core id'.
	 */
	if (IS_ENABLED(CONFIG_RING3_SIM))
		seq_puts(m, "cpu MHz\t\t: 1000.000\nphysical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\n"
			 "vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc cx8 cmov clflush mmx fxsr sse sse2 syscall nx lm pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm\n");
	if ((long)v < num_online_cpus())
		seq_putc(m, '\n');
	return 0;
}

static void *c_start(struct seq_file *m, loff_t *pos)
{
	return *pos < num_online_cpus() ? (void *)(long)(*pos + 1) : NULL;
}

static void *c_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return c_start(m, pos);
}

static void c_stop(struct seq_file *m, void *v)
{
}

const struct seq_operations cpuinfo_op = {
	.start	= c_start,
	.next	= c_next,
	.stop	= c_stop,
	.show	= show_cpuinfo,
};
