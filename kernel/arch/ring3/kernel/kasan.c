// SPDX-License-Identifier: GPL-2.0
/* kasan.c - the shadow needs no making: asm/kasan.h has where it is */
#include <linux/init.h>
#include <linux/kasan.h>
#include <linux/printk.h>
#include <linux/sched/task.h>
#include <asm/ring3.h>

/* Of all memory that is not the region's; an access of 16 bytes reads two. */
const u8 ring3_kasan_outside[2];

void __init kasan_init(void)
{
	/* Nothing is reported before. */
	init_task.kasan_depth = 0;
	pr_info("KernelAddressSanitizer initialized: %llu MiB of shadow\n",
		(u64)KASAN_SHADOW_SIZE >> 20);
}
